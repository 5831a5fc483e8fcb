//! What a kernel is: its operator, what it needs and reads, what it costs, and what packing asks of it.

#[cfg(any(test, packing))]
pub mod candidate;
pub mod kernel;
pub(in crate::kernels) mod overlap;
pub(in crate::kernels) mod weight;
