//! RISC-V instructions from their disassembly.

use super::instruction::{Instruction, Kind, Registers};
use crate::board::trace::Executed;

/// Decodes what was executed at `address`.
pub(super) fn decode(address: u64, executed: &Executed) -> Instruction {
    let (name, operands) = executed
        .text
        .split_once(char::is_whitespace)
        .unwrap_or((&executed.text, ""));
    let operands = operands.split('#').next().unwrap_or_default();
    let words: Vec<&str> = operands
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let mut instruction = Instruction::new(address, executed.size, kind(name, &words), name);
    let all = |words: &[&str]| words.iter().fold(Registers::NONE, |all, word| all.and(register(word)));
    let (first, behind) = (words.get(..1).unwrap_or_default(), words.get(1..).unwrap_or_default());
    (instruction.reads, instruction.writes) = match instruction.kind {
        Kind::Store | Kind::ConditionalBranch => (all(&words), Registers::NONE),
        Kind::Branch => (Registers::NONE, Registers::NONE),
        Kind::Call => (Registers::NONE, Registers::integer(1)),
        Kind::IndirectBranch if matches!(name, "ret") => (Registers::integer(1), Registers::NONE),
        Kind::IndirectBranch if words.len() < 2 => (all(&words), Registers::NONE),
        _ => (all(behind), all(first)),
    };
    // Register 0 is none.
    instruction.reads.0 &= !1;
    instruction.writes.0 &= !1;
    instruction
}

fn kind(name: &str, words: &[&str]) -> Kind {
    match name {
        "lb" | "lbu" | "lh" | "lhu" | "lw" | "lwu" | "ld" | "lr.w" | "lr.d" => Kind::Load,
        "sb" | "sh" | "sw" | "sd" | "sc.w" | "sc.d" => Kind::Store,
        "flw" | "fld" => Kind::FloatLoad(1),
        "fsw" | "fsd" => Kind::FloatStore(1),
        "mul" | "mulw" => Kind::Multiply,
        "mulh" | "mulhu" | "mulhsu" => Kind::MultiplyLong,
        "div" | "divu" | "rem" | "remu" | "divw" | "divuw" | "remw" | "remuw" => Kind::Divide,
        "j" => Kind::Branch,
        "jal" if words.first() == Some(&"zero") => Kind::Branch,
        "jal" | "call" => Kind::Call,
        "jr" | "jalr" | "ret" => Kind::IndirectBranch,
        _ if name.starts_with("fdiv") || name.starts_with("fsqrt") => Kind::FloatDivide,
        _ if ["fmadd", "fmsub", "fnmadd", "fnmsub"]
            .iter()
            .any(|fused| name.starts_with(fused)) =>
        {
            Kind::FloatMultiplyAccumulate
        }
        "fence" | "fence.i" => Kind::Alu,
        _ if name.starts_with('f') => Kind::Float,
        _ if name.starts_with('b') => Kind::ConditionalBranch,
        _ => Kind::Alu,
    }
}

/// The register of an operand such as `a0`, `8(sp)` or `fa0`.
fn register(word: &str) -> Registers {
    let name = word
        .split_once('(')
        .map_or(word, |(_, base)| base.trim_end_matches(')'));
    let numbered = |prefix: &str, first: u32| {
        let number: u32 = name.strip_prefix(prefix)?.parse().ok()?;
        Some(first + number)
    };
    let saved = |number: u32| if number < 2 { 8 + number } else { 16 + number };
    let temporary = |number: u32| if number < 3 { 5 + number } else { 25 + number };
    let integer = match name {
        "ra" => Some(1),
        "sp" => Some(2),
        "gp" => Some(3),
        "tp" => Some(4),
        _ => numbered("a", 10)
            .or_else(|| numbered("s", 0).map(saved))
            .or_else(|| numbered("t", 0).map(temporary)),
    };
    if let Some(number) = integer {
        return Registers::integer(number);
    }
    let number = numbered("fa", 10)
        .or_else(|| numbered("fs", 0).map(saved))
        .or_else(|| numbered("ft", 0).map(|number| if number < 8 { number } else { 20 + number }));
    number.map_or(Registers::NONE, |number| Registers::float(number, 1))
}
