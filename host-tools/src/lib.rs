//! Host tools of Arenite: a traced network in, one blob for the runtime out.
//!
//! ```text
//! import -> graph -> passes -> quantize -> schedule -> plan -> emit  =>  blob -> arena -> exec -> ops -> kernels
//! ```

pub mod board;
pub mod bundle;
pub mod cli;
pub mod compare;
mod dump;
pub mod emit;
pub mod error;
mod explain;
pub mod fit;
pub mod graph;
pub mod import;
pub mod in_place;
pub mod memory;
pub mod metadata;
pub mod model;
pub mod ops;
pub mod overlap;
pub mod pack;
pub mod passes;
pub mod plan;
pub mod program;
pub mod schedule;
pub mod summary;
pub mod weights;

pub use error::{Error, ErrorKind, Result};
