//! The interface of a kernel: its operator, its memory, its cost, and what packing asks of it.

#[cfg(any(test, packing))]
pub mod candidate;
pub mod kernel;
pub(in crate::kernels) mod overlap;
#[cfg(feature = "rolling")]
pub mod turn;
pub(in crate::kernels) mod weight;
