//! The outputs of four channels that are neighbours in memory, each with a record of the short form of its own: what fully connected layers end in.

// The cores with code of their own; hosts, and other cores, run the portable one.
#[cfg(cortex_m = "baseline")]
#[path = "four_m0.rs"]
mod store;
#[cfg(cortex_m = "mainline")]
#[path = "four_m3.rs"]
mod store;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "four_rv32.rs"]
mod store;
#[cfg(not(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
)))]
#[path = "four_portable.rs"]
mod store;

pub(super) use store::four;
#[cfg(any(
    cortex_m = "baseline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
))]
pub(super) use store::output;
