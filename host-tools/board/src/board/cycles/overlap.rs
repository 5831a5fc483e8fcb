//! Cortex-M0, M0+, M3 and M4: a time for each instruction, and what it shares with the one before it.
//!
//! - Cortex-M0: Technical Reference Manual, ARM DDI 0432C, table 3-1. A multiplication of one cycle (the other choice is 32), loads and stores 2,
//!   multiples 1 + N, taken branches and BX 3, BL 4, POP with the program counter 4 + N.
//! - Cortex-M0+: ARM DDI 0484C, table 3.1. The same but for branches 2, BL 3, BX 2, POP with the program counter 3 + N.
//! - Cortex-M3: ARM DDI 0337I, table 3.1 and section 3.3.3, "Load/store timings". MLA 2, SMULL 3 to 5, SMLAL 4 to 7, division 2 to 12, of each the middle.
//!   STR with an immediate offset 1; LDR 2, or 1 behind another single load unless its address is what that loads; STR with a register offset 2, or 1
//!   behind a load; LDRD, STRD, LDM and STM 1 + N, and nothing overlaps with them. An address that the instruction before computed costs one
//!   cycle more. IT behind an instruction of 16 bits is folded into it. A branch takes 1 + P, for a refill P of "1 to 3 depending on the alignment and
//!   width of the target instruction, and whether the processor manages to speculate the address early": here 1 where the instruction has the
//!   address, 2 from a register, 3 from memory, and one more for a target of 32 bits that lies in two words.
//! - Cortex-M4: ARM 100166, tables 3-1 and 7-1 and section 7.2.3. As the M3, but every integer product takes 1. VMLA and VFMA 3, VDIV and VSQRT 14, other
//!   arithmetic 1, and one more where the next instruction takes the result, unless as the addend of a multiply-accumulate. VLDR and VSTR 2, multiples 1 + N,
//!   VMOV of two registers 2.

use super::instruction::{Instruction, Kind, Target};
use crate::board::table::Core;

/// Properties in which these cores differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timings {
    multiply_accumulate: u64,
    multiply_long: u64,
    multiply_accumulate_long: u64,
    divide: u64,
    /// Cycles of a jump beside the instruction's own cycle, by [`Target`].
    refill: [u64; 3],
    /// Cycles of a call beside those of a jump.
    call: u64,
    /// Whether loads and stores overlap, addresses stall, and targets of two words take longer.
    pipelined: bool,
}

/// A pipeline in the course of a sequence.
#[derive(Debug, Clone)]
pub(super) struct Overlapping {
    timings: Timings,
    now: u64,
    before: Option<Instruction>,
}

const M0: Timings = Timings {
    multiply_accumulate: 1,
    multiply_long: 1,
    multiply_accumulate_long: 1,
    divide: 1,
    refill: [2, 2, 3],
    call: 1,
    pipelined: false,
};

const M3: Timings = Timings {
    multiply_accumulate: 2,
    multiply_long: 4,
    multiply_accumulate_long: 6,
    divide: 7,
    refill: [1, 2, 3],
    call: 0,
    pipelined: true,
};

impl Overlapping {
    pub(super) fn of(core: Core) -> Option<Self> {
        let timings = match core {
            Core::M0 => M0,
            Core::M0Plus => Timings {
                refill: [1, 1, 2],
                ..M0
            },
            Core::M3 => M3,
            Core::M4 => Timings {
                multiply_accumulate: 1,
                multiply_long: 1,
                multiply_accumulate_long: 1,
                ..M3
            },
            _ => return None,
        };
        Some(Self {
            timings,
            now: 0,
            before: None,
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn execute(&mut self, instruction: &Instruction) {
        self.now += self.time(instruction) + self.stall(instruction);
        self.before = Some(instruction.clone());
    }

    pub(super) fn jump(&mut self, branch: &Instruction, target: &Instruction) {
        let call = u64::from(branch.kind == Kind::Call) * self.timings.call;
        let straddling = u64::from(self.timings.pipelined && target.straddles());
        self.now += self.timings.refill[Target::of(branch) as usize] + call + straddling;
        self.before = None;
    }

    fn time(&self, instruction: &Instruction) -> u64 {
        let t = &self.timings;
        let words = |count: u32| 1 + u64::from(count);
        match instruction.kind {
            Kind::Alu | Kind::Multiply | Kind::Float | Kind::LoopStart | Kind::LoopEnd | Kind::Vector(_) => 1,
            Kind::IfThen => u64::from(!self.folds()),
            Kind::MultiplyAccumulate => t.multiply_accumulate,
            Kind::MultiplyLong => t.multiply_long,
            Kind::MultiplyAccumulateLong => t.multiply_accumulate_long,
            Kind::Divide => t.divide,
            Kind::Load | Kind::FloatLoad(1) if self.overlaps(instruction) => 1,
            Kind::Load | Kind::FloatLoad(1) => 2,
            Kind::Store if t.pipelined && (!instruction.shifted || self.behind_load()) => 1,
            Kind::FloatStore(1) if self.behind_load() => 1,
            Kind::Store | Kind::FloatStore(1) => 2,
            Kind::LoadTwo | Kind::StoreTwo => 3,
            Kind::LoadMultiple(count) | Kind::StoreMultiple(count) | Kind::Return(count) => words(count),
            Kind::FloatLoad(count) | Kind::FloatStore(count) => words(count),
            Kind::Branch | Kind::ConditionalBranch | Kind::Call | Kind::IndirectBranch => 1,
            // The table's entry, and its address.
            Kind::TableBranch => 3,
            Kind::FloatMultiplyAccumulate => 3,
            Kind::FloatDivide => 14,
            Kind::FloatMove if instruction.reads.0.count_ones().max(instruction.writes.0.count_ones()) > 1 => 2,
            Kind::FloatMove => 1,
        }
    }

    fn behind_load(&self) -> bool {
        self.timings.pipelined
            && self
                .before
                .as_ref()
                .is_some_and(|before| before.is_load() && before.is_single_access())
    }

    /// Whether a load's address phase is the data phase of the load before it.
    fn overlaps(&self, load: &Instruction) -> bool {
        self.behind_load()
            && self
                .before
                .as_ref()
                .is_some_and(|before| !before.writes.without(before.updates).meets(load.addresses))
    }

    /// Whether an IT is executed with the instruction before it.
    fn folds(&self) -> bool {
        self.timings.pipelined && self.before.as_ref().is_some_and(|before| before.size == 2)
    }

    /// Returns the cycles for which the instruction waits for the result of the instruction before it.
    fn stall(&self, instruction: &Instruction) -> u64 {
        let Some(before) = self.before.as_ref().filter(|_| self.timings.pipelined) else {
            return 0;
        };
        match before.kind {
            Kind::Alu
            | Kind::Multiply
            | Kind::MultiplyAccumulate
            | Kind::MultiplyLong
            | Kind::MultiplyAccumulateLong
            | Kind::Divide => u64::from(before.writes.meets(instruction.addresses)),
            Kind::Float | Kind::FloatMultiplyAccumulate | Kind::FloatDivide => {
                u64::from(before.writes.meets(instruction.reads))
            }
            _ => 0,
        }
    }
}
