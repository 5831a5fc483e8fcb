//! Models that are compiled: what [`include_model!`](crate::include_model) writes of a file is made of these.
//!
//! The macro has checked the file as [`Model::load`](crate::Model::load) does, on the machine that compiled the program, and has written each step's parameters
//! as a constant and the step as a call of its kernel. A session has nothing left to decode, to check or to choose.

mod checks;
pub mod names;
mod place;
mod ports;
mod refusal;
mod session;

pub use heapless::Vec;

pub use crate::arena::{Bounds, Mem};
pub use crate::blob::StateInit;
pub use crate::cells::Block;
pub use crate::embed::is_file;
pub use crate::kernels::api::kernel::Kernel;
pub use crate::kernels::table::{KernelId, checked, runs as run, types as kernel};
pub use crate::typed::Described;
pub use checks::are_intact;
pub use names as op;
pub use place::PortPlace;
pub use ports::{Inputs, Outputs};
pub use refusal::{Ended, IndexError, Indexed, refused};
pub use session::{Memories, Memory, Network, Session};

/// Weights where kernels want them.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Weights<const N: usize>(pub [u8; N]);

/// Marker of modules that have a file; those of compiled models have none. The lifetime says nothing: it lets a program that never asks compile.
#[diagnostic::on_unimplemented(
    message = "this model is compiled, and has no file that a program could load",
    label = "reads the model's file",
    note = "say `loaded` behind the path: include_model!(mod net = \"net.bin\", loaded)"
)]
pub trait HasFile<'a> {}

/// Module of a compiled model.
#[derive(Debug)]
pub struct Compiled;

/// Whether this build has a step's kernel; `otherwise` says what it lacks.
///
/// # Panics
/// Where it has not: an error of the compiler.
#[track_caller]
pub const fn linked(kernel: KernelId, otherwise: &str) {
    if !kernel.backend().available() {
        panic!("{}", otherwise);
    }
}
