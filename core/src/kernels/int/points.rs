//! Windows of one output for each channel, read where they lie.

// The cores with loops of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "points_m0.rs"]
mod loops;
#[cfg(cortex_m = "mainline")]
#[path = "points_m3.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "points_rv32.rs"]
mod loops;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "points_portable.rs"]
mod loops;

pub(super) use loops::points;
