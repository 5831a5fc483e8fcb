//! Files: how every command reads its inputs and writes its outputs, and how it prints.

pub mod input;
pub(crate) mod json;
pub(crate) mod npy;
pub mod output;
pub mod paths;
pub mod print;
mod report;
pub mod scratch;
pub mod signals;
pub(crate) mod zip;

pub use input::{Input, read, read_text};
pub use output::{Draft, Output, publish, write};
pub use report::Print;
pub use scratch::Scratch;
