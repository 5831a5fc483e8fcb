//! The inner loops of [`dot`](super::dot) on the cores that have some of their own.

#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[path = "dsp.rs"]
mod loops;
#[cfg(all(cortex_m = "mve", feature = "mve"))]
#[path = "helium.rs"]
mod loops;
#[cfg(cortex_m = "baseline")]
#[path = "m0.rs"]
mod loops;
#[cfg(all(
    cortex_m = "mainline",
    not(any(all(cortex_m = "dsp", feature = "dsp"), all(cortex_m = "mve", feature = "mve")))
))]
#[path = "m3.rs"]
mod loops;
#[cfg(target_arch = "riscv32")]
#[path = "rv32.rs"]
mod loops;

pub(super) use loops::*;
