//! Registers that naked functions did not restore, for the test kit (feature `testkit-registers`).
//!
//! `naked!` begins each function with a call of `enter`. This keeps the caller's registers in a frame beside the stack, gives each register a value of its
//! own, and lets the function return to `leave`, which compares them, notes those that changed, and restores the caller's. Arguments and results are
//! untouched, those on the stack as well.

#[cfg(all(registers, target_arch = "aarch64"))]
mod aarch64;
#[cfg(all(registers, target_arch = "arm"))]
mod cortex_m;
#[cfg(registers)]
mod frame;
#[cfg(all(registers, any(target_arch = "riscv32", target_arch = "riscv64")))]
mod riscv;

#[cfg(all(registers, target_arch = "aarch64"))]
pub(crate) use aarch64::enter;
#[cfg(all(registers, target_arch = "arm"))]
pub(crate) use cortex_m::enter;
#[cfg(all(registers, any(target_arch = "riscv32", target_arch = "riscv64")))]
pub(crate) use riscv::enter;

/// Registers that a naked function did not restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsaved {
    /// A bit for each. Arm: bits 4 to 11 of r4 to r11, 13 of sp, 16 to 31 of s16 to s31. AArch64: bits 8 to 15 of d8 to d15, 19 to 29 of x19 to x29, 31 of
    /// sp. RISC-V: bit n of xn.
    pub registers: u32,
    /// An address in the function.
    pub function: usize,
}

/// The first naked function since the last call that did not restore its caller's registers, in builds that look (feature `testkit-registers`, on boards).
pub fn unsaved() -> Option<Unsaved> {
    #[cfg(registers)]
    return frame::take().map(|(registers, function)| Unsaved { registers, function });
    #[cfg(not(registers))]
    None
}
