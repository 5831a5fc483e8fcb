//! Cores whose instructions start in order, when operands and units are ready: Cortex-M7, M33, M55, and a RISC-V core.
//!
//! - Cortex-M7, M55: latencies and units from LLVM's scheduling models ([`super::models`]). Rules that `llvm-mca` does not print are here, from the same
//!   files: which instructions are issued two at a time, and which operands are read earlier or later than the others. A taken branch ends the cycle on the
//!   M7, which predicts branches, and costs `MispredictPenalty` where it goes the rarer way; on the M55 every taken branch costs that.
//! - Cortex-M33: no timings are published. One instruction a cycle, loads with a result after 2, as `ARMScheduleM55.td` says that the M55 is like the M33;
//!   floating point and branches as the Cortex-M4.
//! - RISC-V: CV32E40P (user manual, "Pipeline Details"): a use right behind a load waits 1, MUL 1, MULH 5, division 3 to 35, taken branches 3, jumps 2.

use super::instruction::{Instruction, Kind, Registers, Target};
use super::models::{Model, Row};
use crate::board::table::Core;

/// A pipeline in the course of a sequence.
#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    core: Core,
    /// The cycle of the last issue.
    cycle: u64,
    /// Instructions issued in the current cycle; none while nothing more fits.
    issued: Option<Issued>,
    started: bool,
    /// When each register can be read.
    ready: [u64; 64],
    /// When each unit is free.
    free: [u64; 16],
}

/// The first instruction of a cycle.
#[derive(Debug, Clone, Copy)]
struct Issued {
    narrow: bool,
    /// Whether it can be the second of a pair of the M55.
    simple: bool,
}

impl Scoreboard {
    pub(super) fn of(core: Core) -> Option<Self> {
        matches!(core, Core::M7 | Core::M33 | Core::M55 | Core::Rv32 | Core::Rv64).then_some(Self {
            core,
            cycle: 0,
            issued: None,
            started: false,
            ready: [0; 64],
            free: [0; 16],
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.cycle + u64::from(self.started)
    }

    pub(super) fn execute(&mut self, instruction: &Instruction) {
        // The end of a low-overhead loop is known before the loop's last instruction is issued.
        if instruction.kind == Kind::LoopEnd {
            return;
        }
        let row = Model::of(self.core).and_then(|model| model.row(instruction));
        let mut row = row.cloned().unwrap_or_else(|| self.default_row(instruction.kind));
        // M55WriteDI: the second of a pair takes no unit.
        if self.core == Core::M55 && instruction.size == 2 && simple(instruction) {
            row.units.clear();
        }
        let operands = self.operands(instruction, &row);
        let pairs = self.pairs(instruction, &row);
        let next = self.now();
        let mut start = operands.max(if pairs { self.cycle } else { next });
        loop {
            let wait = row.units.iter().map(|&(set, _)| self.free_at(set)).max().unwrap_or(0);
            if wait <= start {
                break;
            }
            start = wait;
        }
        let paired = pairs && start == self.cycle;
        for &(set, cycles) in &row.units {
            let unit = (0..16)
                .filter(|unit| set >> unit & 1 == 1)
                .min_by_key(|&unit| self.free[unit]);
            if let Some(unit) = unit {
                self.free[unit] = start + cycles;
            }
        }
        let busy = self.busy(instruction, &row);
        self.issued = (!paired && busy == 1 && self.leads(instruction)).then_some(Issued {
            narrow: instruction.size == 2,
            simple: simple(instruction),
        });
        self.cycle = start + busy - 1;
        self.started = true;
        let latency = row.latency.saturating_sub(self.early(instruction));
        let words = match instruction.kind {
            Kind::LoadMultiple(_) | Kind::FloatLoad(_) | Kind::Return(_) | Kind::LoadTwo => busy - 1,
            _ => 0,
        };
        instruction
            .writes
            .each()
            .for_each(|at| self.ready[at] = start + latency + words);
        // The M7 has the address that it writes back in the same cycle.
        let update = u64::from(self.core != Core::M7);
        instruction
            .updates
            .each()
            .for_each(|at| self.ready[at] = start + update);
    }

    pub(super) fn jump(&mut self, branch: &Instruction, target: &Instruction) {
        let refill = match (self.core, branch.kind, Target::of(branch)) {
            (_, Kind::LoopEnd, _) | (Core::M7, _, Target::Known) => 0,
            // MispredictPenalty.
            (Core::M7, ..) => 4,
            (Core::M55, ..) => 3,
            (Core::Rv32 | Core::Rv64, Kind::ConditionalBranch, _) => 2,
            (Core::Rv32 | Core::Rv64, ..) => 1,
            (_, _, target) => 1 + target as u64,
        };
        let straddling = matches!(self.core, Core::M33 | Core::Rv32 | Core::Rv64) && target.straddles();
        self.cycle += refill + u64::from(straddling);
        self.issued = None;
    }

    /// Returns the cycles of a conditional branch that goes the way that it rarely goes.
    pub(super) fn mispredicted(&self) -> u64 {
        if self.core == Core::M7 { 4 } else { 0 }
    }

    fn free_at(&self, set: u32) -> u64 {
        let units = (0..16).filter(|unit| set >> unit & 1 == 1);
        units.map(|unit| self.free[unit]).min().unwrap_or(0)
    }

    /// By how much it reads its earliest operands before the others.
    fn early(&self, instruction: &Instruction) -> u64 {
        let name = instruction.name.as_str();
        match self.core {
            // M7Read_ISS: addresses and operands of the first shifter.
            Core::M7 => {
                let bits = matches!(
                    name,
                    "ssat" | "usat" | "qdadd" | "qdsub" | "rbit" | "rev" | "rev16" | "revsh" | "sbfx" | "ubfx"
                );
                let adds = name.starts_with("sxta") || name.starts_with("uxta");
                let shifts = instruction.kind == Kind::Alu && (instruction.shifted || bits || adds);
                u64::from(shifts || instruction.addresses != Registers::NONE)
            }
            // M55GatherQRead: vectors of addresses.
            Core::M55 if matches!(name, "gather" | "scatter") => 4,
            _ => 0,
        }
    }

    /// When its operands are there.
    fn operands(&self, instruction: &Instruction, row: &Row) -> u64 {
        let awaited = |registers: Registers| registers.each().map(|at| self.ready[at]).max().unwrap_or(0);
        let values = awaited(instruction.reads.without(instruction.addresses));
        let (addresses, addends) = (awaited(instruction.addresses), awaited(instruction.addends));
        let stores = matches!(instruction.kind, Kind::Store | Kind::StoreTwo | Kind::StoreMultiple(_));
        let float_stores = matches!(instruction.kind, Kind::FloatStore(_));
        let started = |at: u64, later: u64| if at == 0 { 0 } else { at + later };
        match self.core {
            // M7Read_EX2, M7Read_EX3: values to store one and two cycles late; ReadMAC: addends one late, ReadFPMAC so late that chains take three.
            Core::M7 => {
                let late = u64::from(stores) + 2 * u64::from(float_stores);
                let advance = match instruction.kind {
                    Kind::FloatMultiplyAccumulate => row.latency.saturating_sub(3),
                    _ => 1,
                };
                let early = self.early(instruction);
                let values = match instruction.kind {
                    Kind::Alu => started(values, early),
                    _ => values.saturating_sub(late),
                };
                values
                    .max(started(addresses, early))
                    .max(addends.saturating_sub(advance))
            }
            // M55Read1: vectors to store one late.
            Core::M55 => {
                let vectors = Registers(instruction.addresses.0 & !0 << 32);
                let late = u64::from(instruction.name == "vstr");
                values
                    .saturating_sub(late)
                    .max(addresses)
                    .max(started(awaited(vectors), self.early(instruction)))
                    .max(addends)
            }
            _ => values.max(addresses).max(addends),
        }
    }

    /// Whether it can be issued in the same cycle as the instruction before it.
    fn pairs(&self, instruction: &Instruction, row: &Row) -> bool {
        let Some(first) = self.issued else { return false };
        match self.core {
            // BeginGroup: the DSP extension's instructions but products, 64-bit floating point, and a few more are the first of their cycle.
            Core::M7 => {
                let dsp = row.units.iter().any(|&(set, _)| set == 1 << 6);
                let name = instruction.name.as_str();
                self.leads(instruction)
                    && !dsp
                    && !instruction.double
                    && !matches!(name, "clz" | "bfi" | "bfc")
                    && !name.starts_with("vsel")
            }
            // Two instructions of 16 bits, of which one is a NOP, an IT, a branch, an addition of a constant, an extension or a move.
            Core::M55 => instruction.size == 2 && first.narrow && (first.simple || simple(instruction)),
            _ => false,
        }
    }

    /// Whether another one can be issued in the same cycle.
    fn leads(&self, instruction: &Instruction) -> bool {
        match self.core {
            // SingleIssue.
            Core::M7 => {
                !matches!(
                    instruction.kind,
                    Kind::LoadTwo
                        | Kind::StoreTwo
                        | Kind::LoadMultiple(_)
                        | Kind::StoreMultiple(_)
                        | Kind::Return(_)
                        | Kind::TableBranch
                        | Kind::Divide
                        | Kind::FloatLoad(2..)
                        | Kind::FloatStore(2..)
                ) && !matches!(instruction.name.as_str(), "vmrs" | "vmsr")
            }
            Core::M55 => instruction.size == 2,
            _ => false,
        }
    }

    /// Cycles until the next instruction can be issued.
    fn busy(&self, instruction: &Instruction, row: &Row) -> u64 {
        let words = |count: u32| u64::from(count).max(1);
        match (self.core, instruction.kind) {
            // Two words a cycle.
            (Core::M7 | Core::M55, Kind::LoadTwo | Kind::StoreTwo) => 1,
            (Core::M7 | Core::M55, Kind::LoadMultiple(count) | Kind::StoreMultiple(count) | Kind::Return(count)) => {
                words(count).div_ceil(2)
            }
            (Core::M7 | Core::M55, Kind::FloatLoad(count) | Kind::FloatStore(count)) => words(count).div_ceil(2),
            (_, Kind::LoadTwo | Kind::StoreTwo) => 2,
            (_, Kind::LoadMultiple(count) | Kind::StoreMultiple(count) | Kind::Return(count)) => words(count),
            (_, Kind::FloatLoad(count) | Kind::FloatStore(count)) => words(count),
            (Core::Rv32 | Core::Rv64, Kind::MultiplyLong) => 5,
            // Nothing overlaps with a division: 2 to 12 cycles, or 3 to 35.
            (_, Kind::Divide) => row.latency.max(7),
            _ => 1,
        }
    }

    /// Returns the timing of an instruction that no table lists.
    fn default_row(&self, kind: Kind) -> Row {
        let riscv = matches!(self.core, Core::Rv32 | Core::Rv64);
        let latency = match kind {
            Kind::Load | Kind::LoadTwo | Kind::LoadMultiple(_) | Kind::FloatLoad(_) | Kind::Return(_) => 2,
            Kind::MultiplyLong if riscv => 5,
            Kind::Divide if riscv => 19,
            Kind::Divide => 7,
            Kind::Float => 2,
            Kind::FloatMultiplyAccumulate if riscv => 2,
            Kind::FloatMultiplyAccumulate => 3,
            Kind::FloatDivide if riscv => 19,
            Kind::FloatDivide => 14,
            _ => 1,
        };
        Row {
            latency,
            units: Vec::new(),
        }
    }
}

/// Whether it is one of those that the M55 issues beside another one.
fn simple(instruction: &Instruction) -> bool {
    match instruction.name.as_str() {
        "nop" | "it" | "mov" | "uxtb" | "uxth" | "sxtb" | "sxth" => true,
        // By a constant.
        "add" | "sub" => instruction.reads.0.count_ones() <= 1,
        _ => matches!(instruction.kind, Kind::Branch | Kind::ConditionalBranch),
    }
}
