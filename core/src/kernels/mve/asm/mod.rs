//! The loops in Helium assembly.
//!
//! Why assembly: LLVM 22 has no stable intrinsics for Helium, and its vectoriser reaches 0.27 instructions a MAC on an int8 dot product
//! where these loops take 0.11 to 0.13 (it neither blocks over channels nor keeps accumulators in core registers). Each function is
//! naked: it owns all registers, which `asm!` cannot give (eight accumulators need r6 and lr), and it is linked only where used. The
//! block `.cpu cortex-m55` lets the assembler accept Helium in a build for any Armv8-M Mainline core.
//!
//! Accumulators of `vmladava` are even core registers; narrowing stores and widening loads take their address from r0 to r7 only.
//! These two rules decide the registers below. The figures beside the loops count instructions.

mod add_s8;
mod copy;
mod dwconv_s8;
mod dwconv_s8_indirection;
mod gemm_f32;
mod gemm_s8;
mod linear_f32;
mod linear_s8;

pub(super) use add_s8::*;
pub(super) use copy::*;
pub(super) use dwconv_s8::*;
pub(super) use dwconv_s8_indirection::*;
pub(super) use gemm_f32::*;
pub(super) use gemm_s8::*;
pub(super) use linear_f32::*;
pub(super) use linear_s8::*;
