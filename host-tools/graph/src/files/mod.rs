//! Files: how every command reads its inputs and writes its outputs, and how it prints.

pub mod input;
pub mod json;
#[cfg(test)]
#[expect(unreachable_pub, reason = "it stands in for `system` where that is no disk")]
mod memory;
pub mod npy;
#[cfg_attr(target_arch = "wasm32", path = "held.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "output.rs")]
pub mod output;
pub mod paths;
pub mod print;
#[cfg(feature = "tools")]
mod report;
#[cfg(feature = "tools")]
pub mod scratch;
#[cfg(not(target_arch = "wasm32"))]
pub mod signals;
#[cfg_attr(target_arch = "wasm32", path = "memory.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "disk.rs")]
pub mod system;
pub mod zip;

pub use input::{Input, read, read_text};
pub use output::{Draft, Output, publish, write};
#[cfg(feature = "tools")]
pub use report::Print;
#[cfg(feature = "tools")]
pub use scratch::Scratch;
pub use system::File;
