//! Programs and plans for people and for summaries.

pub mod dump;
pub mod explain;
mod summary;

pub use summary::{add_program, of_import};
