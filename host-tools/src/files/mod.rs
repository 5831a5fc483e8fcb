//! Files: how every command reads its inputs and writes its outputs, and how it prints.

pub mod output;
pub mod print;
pub mod scratch;
pub mod signals;

pub use output::{Draft, Output, publish, write};
pub use print::Print;
pub use scratch::Scratch;
