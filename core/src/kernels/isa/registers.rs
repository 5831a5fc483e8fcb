//! Registers that naked functions did not restore, for the test kit.

#[cfg(registers)]
#[macro_use]
mod check;

#[cfg(registers)]
pub(crate) use check::enter;

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
    return check::take();
    #[cfg(not(registers))]
    None
}
