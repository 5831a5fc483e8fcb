//! What is told of a network and its file, for people and for programs.

pub(crate) mod dump;
pub(crate) mod explain;
mod quantization;
mod summary;

pub use quantization::Quantization;
pub use summary::{PortSummary, RegionSummary, Summary};
