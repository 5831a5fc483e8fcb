//! Cycles by the core's own counter: how long steps take on the device.
//!
//! | core | counter | wraps |
//! | --- | --- | --- |
//! | Cortex-M3, M4, M7, M33, M55 | `Dwt` | after 2^32 cycles, seen where it is read at least that often |
//! | Cortex-M0, M0+, M23, and any other Cortex-M | `SysTick` | after 2^24 cycles, counted by the program's exception |
//! | RISC-V | `Mcycle` | never: 64 bits |
//! | ESP32-C3, whose core has no `mcycle` | `Esp32C3` | after 2^32 cycles, seen where it is read at least that often |
//!
//! Each is told how to reach its registers ([`Registers`], [`Csrs`]): `Core` reaches the core's own, a test brings its own.

mod cortex_m;
mod counter;
mod riscv;

pub use cortex_m::{Dwt, Registers, SysTick, Wraps};
#[cfg(any(
    kernel_isa = "cortex_m",
    all(target_os = "none", any(target_arch = "riscv32", target_arch = "riscv64"))
))]
pub use counter::Core;
pub use counter::CycleCounter;
pub use riscv::{Csrs, Esp32C3, Mcycle};

use crate::error::RunError;
use crate::kernels::table::Kernels;
use crate::session::Session;

impl<K: Kernels> Session<'_, '_, K> {
    /// Runs all remaining steps, calls `after` with each step and its cycles, and gives those of all. The time that `after` takes does not count.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run_counted(
        &mut self,
        counter: impl CycleCounter,
        mut after: impl FnMut(u32, u64),
    ) -> Result<u64, RunError> {
        let mut laps = Laps::begin(counter);
        self.run_with(|step| laps.end(step, &mut after))?;
        Ok(laps.sum)
    }
}

/// Cycles of the steps of a run, one after the other.
pub(crate) struct Laps<C> {
    counter: C,
    begun: u64,
    /// Those of all steps so far.
    pub(crate) sum: u64,
}

impl<C: CycleCounter> Laps<C> {
    /// Begins with the first step.
    pub(crate) fn begin(mut counter: C) -> Self {
        let begun = counter.cycles();
        Self { counter, begun, sum: 0 }
    }

    /// Ends a step, calls `after` with it and its cycles, and begins the next one behind that.
    pub(crate) fn end(&mut self, step: u32, after: &mut impl FnMut(u32, u64)) {
        let cycles = self.counter.cycles().wrapping_sub(self.begun);
        self.sum = self.sum.wrapping_add(cycles);
        after(step, cycles);
        self.begun = self.counter.cycles();
    }
}
