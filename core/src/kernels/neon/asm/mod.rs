//! The loops in A64 assembly.
//!
//! Memory is read and written by `ld1` and `st1` of bytes or aligned words: without an MMU all memory counts as device memory, where `ldr q` at an odd address
//! traps. Each function is naked and a leaf; it uses x0 to x17 and v0 to v7 and v16 to v31, which no call preserves. The figures beside the loops count
//! instructions.

mod copy;
mod depthwise;

pub(in crate::kernels) use copy::*;
pub(in crate::kernels) use depthwise::*;
