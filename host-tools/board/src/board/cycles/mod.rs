//! An estimate of cycles from executed sequences and models of the cores' pipelines.
//!
//! qemu's plugin says which instructions were executed and which block behind which one, how often. They are decoded ([`thumb`], [`helium`], [`riscv`]
//! into [`instruction`]), put in sequence ([`sequence`]) and run through a model of the core's pipeline ([`pipeline`]: [`overlap`] for Cortex-M0 to
//! M4, [`scoreboard`] for the others), which says where its figures are from. Unaligned accesses are counted one by one.
//!
//! It assumes memory without wait states. It does not replace a measurement: docs/cycles.md compares it with published ones. Instructions whose condition
//! does not hold take their time as if it did.

mod helium;
mod instruction;
mod models;
mod overlap;
mod pipeline;
mod riscv;
mod scoreboard;
mod sequence;
#[cfg(test)]
mod tests;
mod thumb;

use super::table::Core;
use super::trace::Interval;
use pipeline::Pipeline;
use sequence::Sequences;

/// An estimate, and where its timings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Cycles.
    pub cycles: u64,
    /// The model.
    pub source: &'static str,
}

impl Interval {
    /// An estimate of the cycles that `core` takes; `None` for a core without a model.
    pub fn cycles(&self, core: Core) -> Option<Estimate> {
        let pipeline = Pipeline::of(core)?;
        let sequences = Sequences::decode(self, core);
        Some(Estimate {
            cycles: sequences.cycles(&pipeline) + self.unaligned(core),
            source: source(core)?,
        })
    }

    /// Cycles that unaligned accesses take beside those of aligned ones.
    fn unaligned(&self, core: Core) -> u64 {
        let executed = self.executed.values();
        match core {
            // They fault.
            Core::M0 | Core::M0Plus | Core::A64 => 0,
            // A bus of 32 bits has aligned accesses only (DDI 0337I, section 3.3.3; 100166, section 3.3.2).
            Core::M3 | Core::M4 | Core::M33 | Core::Rv32 | Core::Rv64 => executed.map(|executed| executed.split).sum(),
            // Tightly coupled memories and caches are read by eight bytes.
            Core::M7 | Core::M55 => executed.map(|executed| executed.crossing).sum(),
        }
    }
}

/// Where the model of `core` comes from.
fn source(core: Core) -> Option<&'static str> {
    Some(match core {
        Core::M0 => "Cortex-M0 Technical Reference Manual (DDI 0432C), table 3-1; one-cycle multiplier, no wait states",
        Core::M0Plus => {
            "Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3.1; one-cycle multiplier, no wait states"
        }
        Core::M3 => {
            "Cortex-M3 Technical Reference Manual (DDI 0337I), table 3.1 and load/store timings, on executed sequences; MLA 2, SMULL 3 to 5, SMLAL 4 to 7, \
            division 2 to 12, of each the middle; no wait states"
        }
        Core::M4 => {
            "Cortex-M4 Technical Reference Manual (100166), tables of processor and FPU instructions and load/store timings, on executed sequences; \
            division 2 to 12, the middle; no wait states"
        }
        Core::M7 => {
            "an estimate: LLVM 19's scheduling model of the Cortex-M7 (ARMScheduleM7.td) on executed sequences, two instructions a cycle; 4 cycles for a \
            mispredicted branch; no wait states"
        }
        Core::M33 => {
            "an estimate: no table is published for the Cortex-M33; the Cortex-M4's, with loads that take a second cycle only where the next instruction \
            waits for them"
        }
        Core::M55 => {
            "an estimate: LLVM 19's scheduling model of the Cortex-M55 (ARMScheduleM55.td) on executed sequences, two beats a cycle, overlapping where pipes \
            differ; 3 cycles for a taken branch, none for the end of a low-overhead loop; no wait states"
        }
        Core::Rv32 | Core::Rv64 => {
            "an estimate, after the user manual of the CV32E40P, a single-issue RV32IMC core: a use right behind a load waits 1, MULH 5, division 3 to 35 \
            (the middle), taken branches 3, jumps 2"
        }
        Core::A64 => return None,
    })
}
