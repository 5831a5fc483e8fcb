//! An estimate of cycles from counted instructions and the cores' published timings.
//!
//! It assumes zero-wait-state memory and no stall between dependent instructions beyond what the tables state, so it compares
//! loops on one core; it does not replace a measurement. A conditional branch counts as taken as often as it was executed more
//! often than the instruction behind it.
//!
//! Published, and compared with the tables here:
//!
//! - Cortex-M0: Technical Reference Manual, ARM DDI 0432C, table 3-1. Multiplication 1 or 32 (here 1), loads and stores 2, multiples 1 + N, taken
//!   branches and BX 3, BL 4, POP with the program counter 4 + N.
//! - Cortex-M0+: ARM DDI 0484C, table 3.1. The same but for branches 2, BL 3, POP with the program counter 3 + N.
//! - Cortex-M3: ARM DDI 0337I, table 3.1. MLA 2, SMULL 3 to 5, SMLAL 4 to 7, division 2 to 12, branches 1 + P with a refill P of 1 to 3, of each
//!   the middle; loads 2, of which one overlaps with a load or store right behind (note c of the table); a store's data phase overlaps with whatever
//!   is next (section 3.3.2).
//! - Cortex-M4: ARM 100166, tables 3-1 and 7-1. As the M3, but every integer product takes 1; VFMA and VMLA 3, VDIV and VSQRT 14.
//!
//! Estimates, because nothing is published: Cortex-M7 and M33 (the M4's table), M55, RISC-V. Each says so in its `source`.

use std::collections::BTreeMap;

use super::table::Core;
use super::trace::{Executed, Interval};

/// An estimate, and where its timings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Cycles.
    pub cycles: u64,
    /// The table.
    pub source: &'static str,
}

impl Interval {
    /// An estimate of the cycles that `core` takes; `None` for a core without a table.
    pub fn cycles(&self, core: Core) -> Option<Estimate> {
        estimate(core, &self.executed)
    }
}

/// Cycles of `core` for these instructions.
fn estimate(core: Core, executed: &BTreeMap<u64, Executed>) -> Option<Estimate> {
    let timings = timings(core)?;
    let cycles = executed
        .iter()
        .map(|(address, instruction)| match classify(core, instruction) {
            Class::ConditionalBranch => {
                let behind = executed.get(&(address + instruction.size)).map_or(0, |next| next.count);
                let taken = instruction.count.saturating_sub(behind);
                instruction.count * timings.alu + taken * (timings.taken_branch - timings.alu)
            }
            Class::Load if timings.overlapping && access_behind(core, executed, *address, instruction) => {
                instruction.count * (timings.load - 1)
            }
            class => instruction.count * timings.of(class),
        });
    Some(Estimate {
        cycles: cycles.sum(),
        source: timings.source,
    })
}

fn classify(core: Core, instruction: &Executed) -> Class {
    match core {
        Core::Rv32 | Core::Rv64 => riscv(&instruction.text),
        _ => thumb(&instruction.text, instruction.size),
    }
}

/// Whether another single load or store follows at once.
fn access_behind(core: Core, executed: &BTreeMap<u64, Executed>, address: u64, instruction: &Executed) -> bool {
    let behind = executed.get(&(address + instruction.size));
    behind.is_some_and(|behind| matches!(classify(core, behind), Class::Load | Class::Store))
}

/// What an instruction's time depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Arithmetic, moves, hints, and the v7E-M SIMD instructions, which take as long.
    Alu,
    Multiply,
    MultiplyAccumulate,
    MultiplyLong,
    MultiplyAccumulateLong,
    Divide,
    Load,
    Store,
    /// Of this many registers.
    LoadMultiple(u64),
    StoreMultiple(u64),
    /// A load multiple with the program counter among its registers.
    Return(u64),
    ConditionalBranch,
    Branch,
    Call,
    Float,
    FloatMultiplyAccumulate,
    FloatDivide,
    /// A Helium instruction, loads and stores included.
    Vector,
    /// The end of a low-overhead loop.
    LoopEnd,
}

/// Cycles by class.
struct Timings {
    alu: u64,
    multiply: u64,
    multiply_accumulate: u64,
    multiply_long: u64,
    multiply_accumulate_long: u64,
    divide: u64,
    load: u64,
    store: u64,
    /// Whether a load's last cycle is the first of a single load or store behind it.
    overlapping: bool,
    /// For each register of a multiple, beside one cycle.
    each: u64,
    taken_branch: u64,
    /// A load multiple of the program counter, beside its registers.
    returning: u64,
    call: u64,
    float: u64,
    float_multiply_accumulate: u64,
    float_divide: u64,
    vector: u64,
    loop_end: u64,
    source: &'static str,
}

impl Timings {
    fn of(&self, class: Class) -> u64 {
        match class {
            Class::Alu | Class::ConditionalBranch => self.alu,
            Class::Multiply => self.multiply,
            Class::MultiplyAccumulate => self.multiply_accumulate,
            Class::MultiplyLong => self.multiply_long,
            Class::MultiplyAccumulateLong => self.multiply_accumulate_long,
            Class::Divide => self.divide,
            Class::Load => self.load,
            Class::Store => self.store,
            Class::LoadMultiple(registers) | Class::StoreMultiple(registers) => 1 + registers * self.each,
            Class::Return(registers) => registers * self.each + self.returning,
            Class::Branch => self.taken_branch,
            Class::Call => self.call,
            Class::Float => self.float,
            Class::FloatMultiplyAccumulate => self.float_multiply_accumulate,
            Class::FloatDivide => self.float_divide,
            Class::Vector => self.vector,
            Class::LoopEnd => self.loop_end,
        }
    }
}

const M0: Timings = Timings {
    alu: 1,
    multiply: 1,
    multiply_accumulate: 1,
    multiply_long: 1,
    multiply_accumulate_long: 1,
    divide: 1,
    load: 2,
    store: 2,
    overlapping: false,
    each: 1,
    taken_branch: 3,
    returning: 4,
    call: 4,
    float: 1,
    float_multiply_accumulate: 1,
    float_divide: 1,
    vector: 1,
    loop_end: 1,
    source: "Cortex-M0 Technical Reference Manual (DDI 0432C), table 3-1; one-cycle multiplier, no wait states",
};

const M3: Timings = Timings {
    multiply_accumulate: 2,
    multiply_long: 4,
    multiply_accumulate_long: 6,
    divide: 7,
    load: 2,
    store: 1,
    overlapping: true,
    // Refilling the pipeline takes one to three cycles beside the branch's own.
    returning: 3,
    call: 3,
    source: "Cortex-M3 Technical Reference Manual (DDI 0337I), table 3.1: MLA 2, SMULL 3 to 5, SMLAL 4 to 7, \
        division 2 to 12, refill 1 to 3, of each the middle; neighbouring loads and stores overlap",
    ..M0
};

const M4: Timings = Timings {
    multiply_accumulate: 1,
    multiply_long: 1,
    multiply_accumulate_long: 1,
    float: 1,
    float_multiply_accumulate: 3,
    float_divide: 14,
    source: "Cortex-M4 Technical Reference Manual (100166), tables of processor and FPU instructions: every \
        product 1, VFMA 3, VDIV 14, division 2 to 12, refill 1 to 3, of each the middle; neighbouring loads \
        and stores overlap",
    ..M3
};

// Neither of the two is in qemu. CV32E40P (OpenHW Group): loads 1 and a stall for a use right behind, MUL 1, MULH 5, division 3 to 35, taken branches 3,
// jumps 2. SiFive E31: the same stall, branches predicted. Two cycles for a load take the stall for granted.
const RV: Timings = Timings {
    multiply: 1,
    multiply_long: 5,
    divide: 19,
    load: 2,
    store: 1,
    taken_branch: 3,
    call: 2,
    source: "an estimate, after the user manual of the CV32E40P, a single-issue RV32IMC core: loads 2 (1 and \
        the stall of a use right behind), MULH 5, division 3 to 35 (the middle), taken branches 3, jumps 2",
    ..M0
};

fn timings(core: Core) -> Option<Timings> {
    Some(match core {
        Core::M0 => M0,
        Core::M0Plus => Timings {
            taken_branch: 2,
            returning: 3,
            call: 3,
            source: "Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3.1; one-cycle multiplier, no wait states",
            ..M0
        },
        Core::M3 => M3,
        Core::M4 => M4,
        Core::M7 => Timings {
            source: "an estimate: no table is published for the Cortex-M7; the Cortex-M4's, without dual issue, so rather too many",
            ..M4
        },
        Core::M33 => Timings {
            source: "an estimate: no table is published for the Cortex-M33; the Cortex-M4's",
            ..M4
        },
        Core::M55 => Timings {
            load: 1,
            overlapping: false,
            divide: 6,
            float_multiply_accumulate: 1,
            vector: 2,
            loop_end: 0,
            source: "an estimate, from two beats a cycle (Introduction to the Arm Cortex-M55 Processor): one \
                cycle for scalar instructions, two for each 128-bit vector instruction, none for the end of a \
                low-overhead loop; overlapping vector instructions are not taken into account, so rather too many",
            ..M4
        },
        Core::Rv32 | Core::Rv64 => RV,
        Core::A64 => return None,
    })
}

/// Classifies a Thumb instruction by its disassembly.
fn thumb(text: &str, size: u64) -> Class {
    let (mnemonic, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let base = mnemonic.split('.').next().unwrap_or_default();
    // What the disassembler does not know is, in code for these cores, Helium's.
    if base == "bytes" || (mnemonic.starts_with('.') && size == 4) {
        return Class::Vector;
    }
    if base.starts_with('v') {
        return if operands.contains('q') && !matches!(base, "vldmia" | "vldm" | "vstmia" | "vstm" | "vpush" | "vpop") {
            Class::Vector
        } else {
            float(base, operands)
        };
    }
    let starts = |names: &[&str]| names.iter().any(|name| base.starts_with(name));
    match base {
        "push" => Class::StoreMultiple(registers(operands)),
        "pop" if operands.contains("pc") => Class::Return(registers(operands)),
        "pop" => Class::LoadMultiple(registers(operands)),
        "bl" => Class::Call,
        // With a register a call takes what a jump takes, in every table.
        "b" | "bx" | "blx" | "tbb" | "tbh" => Class::Branch,
        "cbz" | "cbnz" => Class::ConditionalBranch,
        "le" | "letp" => Class::LoopEnd,
        // A branch with a condition: beq, bne, …; but bic and bfi are arithmetic.
        _ if base.len() == 3 && base.starts_with('b') && !matches!(base, "bic" | "bfi" | "bfc") => {
            Class::ConditionalBranch
        }
        "bics" => Class::Alu,
        _ if starts(&["ldm"]) && operands.contains("pc") => Class::Return(registers(operands)),
        _ if starts(&["ldm"]) => Class::LoadMultiple(registers(operands)),
        _ if starts(&["stm"]) => Class::StoreMultiple(registers(operands)),
        _ if starts(&["ldrd"]) => Class::LoadMultiple(2),
        _ if starts(&["strd"]) => Class::StoreMultiple(2),
        _ if starts(&["ldr", "lda"]) => Class::Load,
        _ if starts(&["str", "stl"]) => Class::Store,
        _ if starts(&["sdiv", "udiv"]) => Class::Divide,
        _ if starts(&["smlal", "umlal", "umaal", "smlsld"]) => Class::MultiplyAccumulateLong,
        _ if starts(&["smull", "umull"]) => Class::MultiplyLong,
        _ if starts(&["mla", "mls", "smla", "smls", "smmla", "smmls", "usada"]) => Class::MultiplyAccumulate,
        _ if starts(&["mul", "smul", "smmul", "smua", "smus"]) => Class::Multiply,
        _ => Class::Alu,
    }
}

/// Classifies a scalar floating-point instruction.
fn float(base: &str, operands: &str) -> Class {
    match base {
        "vldmia" | "vldm" | "vldmdb" | "vpop" => Class::LoadMultiple(registers(operands)),
        "vstmia" | "vstm" | "vstmdb" | "vpush" => Class::StoreMultiple(registers(operands)),
        "vldr" => Class::Load,
        "vstr" => Class::Store,
        "vdiv" | "vsqrt" => Class::FloatDivide,
        "vmla" | "vmls" | "vnmla" | "vnmls" | "vfma" | "vfms" | "vfnma" | "vfnms" => Class::FloatMultiplyAccumulate,
        _ => Class::Float,
    }
}

/// Classifies a RISC-V instruction.
fn riscv(text: &str) -> Class {
    let (mnemonic, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match mnemonic {
        "lb" | "lbu" | "lh" | "lhu" | "lw" | "lwu" | "ld" | "flw" | "fld" => Class::Load,
        "sb" | "sh" | "sw" | "sd" | "fsw" | "fsd" => Class::Store,
        "mul" | "mulw" => Class::Multiply,
        "mulh" | "mulhu" | "mulhsu" => Class::MultiplyLong,
        "div" | "divu" | "rem" | "remu" | "divw" | "divuw" | "remw" | "remuw" => Class::Divide,
        "j" | "jr" | "ret" => Class::Branch,
        "jal" | "jalr" if operands.trim_start().starts_with("zero") => Class::Branch,
        "jal" | "jalr" | "call" => Class::Call,
        _ if mnemonic.starts_with("fdiv") || mnemonic.starts_with("fsqrt") => Class::FloatDivide,
        _ if mnemonic.starts_with("fmadd") || mnemonic.starts_with("fmsub") => Class::FloatMultiplyAccumulate,
        _ if mnemonic.starts_with('b') => Class::ConditionalBranch,
        _ => Class::Alu,
    }
}

/// Registers of a list such as `{r4-r7, lr}` or `{s0, s1}`.
fn registers(operands: &str) -> u64 {
    let list = operands
        .split_once('{')
        .map_or(operands, |(_, list)| list)
        .trim_end_matches('}');
    let number = |name: &str| {
        name.trim()
            .trim_start_matches(|letter: char| letter.is_ascii_alphabetic())
            .parse::<u64>()
    };
    let count = |item: &str| match item.split_once('-') {
        Some((first, last)) => match (number(first), number(last)) {
            (Ok(first), Ok(last)) if last >= first => last - first + 1,
            _ => 1,
        },
        None => 1,
    };
    list.split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[(u64, u64, &str)]) -> BTreeMap<u64, Executed> {
        let line = |&(address, count, text): &(u64, u64, &str)| {
            (
                address,
                Executed {
                    size: 2,
                    count,
                    text: text.to_owned(),
                },
            )
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_loop_costs_what_the_manual_says() {
        // Nine of ten branches are taken: 10 x (load 2 + alu 1) + 9 x taken + 1 x not taken.
        let executed = lines(&[
            (0, 10, "ldr r0, [r1]"),
            (2, 10, "subs r2, #1"),
            (4, 10, "bne #0x0"),
            (6, 1, "pop {r4, pc}"),
        ]);
        let cycles = |core| estimate(core, &executed).expect("has a table").cycles;
        assert_eq!(cycles(Core::M0), 10 * 3 + 9 * 3 + 1 + (2 + 4));
        assert_eq!(cycles(Core::M0Plus), 10 * 3 + 9 * 2 + 1 + (2 + 3));
        assert_eq!(estimate(Core::A64, &executed), None);
    }

    #[test]
    fn neighbouring_loads_overlap_where_the_manual_says_so() {
        let executed = lines(&[
            (0, 10, "ldr r0, [r1]"),
            (2, 10, "ldrb r2, [r3]"),
            (4, 10, "adds r0, r2"),
        ]);
        let cycles = |core| estimate(core, &executed).expect("has a table").cycles;
        assert_eq!((cycles(Core::M0), cycles(Core::M3), cycles(Core::M4)), (50, 40, 40));
    }

    #[test]
    fn instructions_are_classified() {
        for (text, class) in [
            ("smlad r0, r1, r2, r3", Class::MultiplyAccumulate),
            ("smlal r0, r1, r2, r3", Class::MultiplyAccumulateLong),
            ("muls r0, r1, r0", Class::Multiply),
            ("sxtb16 r0, r1", Class::Alu),
            ("bic r0, r1, #3", Class::Alu),
            ("beq #0x10", Class::ConditionalBranch),
            ("b.w #0x10", Class::Branch),
            ("bl #0x10", Class::Call),
            ("ldrd r0, r1, [r2]", Class::LoadMultiple(2)),
            ("ldm.w r0, {r1, r4-r7}", Class::LoadMultiple(5)),
            ("push.w {r4-r11, lr}", Class::StoreMultiple(9)),
            ("vfma.f32 s0, s1, s2", Class::FloatMultiplyAccumulate),
            ("vldmia r0!, {s0-s3}", Class::LoadMultiple(4)),
            ("vmladavas8 r0, q1, q2", Class::Vector),
            ("bytes f0e12345", Class::Vector),
        ] {
            assert_eq!(thumb(text, 4), class, "{text}");
        }
        for (text, class) in [
            ("lw a0,0(a0)", Class::Load),
            ("bnez a0,-2", Class::ConditionalBranch),
            ("jalr zero,t1,8", Class::Branch),
            ("jalr ra,a1,0", Class::Call),
            ("mul a0,a1,a2", Class::Multiply),
        ] {
            assert_eq!(riscv(text), class, "{text}");
        }
    }
}
