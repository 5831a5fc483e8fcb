//! 3 x 3 sums over one channel's padded plane.

// The cores with loops of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "plane_m0.rs"]
mod loops;
#[cfg(cortex_m = "mainline")]
#[path = "plane_m3.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "plane_rv32.rs"]
mod loops;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "plane_portable.rs"]
mod loops;

/// What the plane's bytes are changed by, bit by bit: ARMv6-M loads unsigned bytes with one instruction less.
pub(super) const FLIP: u8 = match cfg!(cortex_m = "baseline") {
    true => 0x80,
    false => 0,
};

pub(super) use loops::plane3;

/// One channel, three outputs of a row at a time. The last three of a row overlap their neighbours where the width is no multiple of three: they are
/// computed twice, from a plane that does not change. The assembly knows these offsets.
#[repr(C)]
pub(super) struct Plane {
    /// Start of every sum.
    pub(super) bias: i32,
    /// Q31.
    pub(super) multiplier: i32,
    /// [`super::requant::addend`].
    pub(super) addend: i32,
    /// The record's code; its low byte is the shift.
    pub(super) code: i32,
    /// The first window's first tap.
    pub(super) plane: *const i8,
    /// Bytes between rows of the plane.
    pub(super) pitch: usize,
    /// Nine weights.
    pub(super) weights: *const i8,
    /// First output.
    pub(super) out: *mut i8,
    /// Bytes between outputs.
    pub(super) stride: usize,
    /// Rows of outputs; at least one.
    pub(super) rows: usize,
    /// Whole groups of three in a row; at least one.
    pub(super) groups: usize,
    /// 1 where an overlapping group follows, else 0.
    pub(super) rest: usize,
    /// How far back that group starts, in the plane.
    pub(super) back: usize,
    /// The same, in the output.
    pub(super) back_out: usize,
    /// From the end of a row of windows to the next row, modulo the address space.
    pub(super) step: usize,
}
