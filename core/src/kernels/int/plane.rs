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

pub(super) use loops::plane3;
