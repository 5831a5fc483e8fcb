//! Effect of an instruction on the stack, and the place of the next one, read from the disassembler's text.

/// Control flow behind an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next instruction.
    Next,
    /// The next one, or the one at this address.
    Branch(u64),
    /// The one at this address.
    Jump(u64),
    /// A call of what is at this address, then the next one.
    Call(u64),
    /// A call through a register, then the next one.
    CallIndirect,
    /// A place that a register or a table says.
    JumpIndirect,
    /// Nothing in this function.
    End,
    /// Nothing or, as the instruction has a condition, the next one.
    EndOrNext,
}

/// How an instruction moves the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// Not at all.
    No,
    /// Down by so many bytes, where negative up.
    Down(i64),
    /// To what a register holds: up again, behind a frame's end, or down to a multiple of more than the stack's own alignment.
    FromRegister,
    /// In a way that is not known here.
    Unknown,
}

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Thumb,
    RiscV,
    Aarch64,
}

const CONDITIONS: [&str; 16] = [
    "eq", "ne", "hs", "lo", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le",
];

impl Set {
    /// The set of a target.
    pub(super) fn of(triple: &str) -> Self {
        match triple {
            triple if triple.starts_with("thumb") => Self::Thumb,
            triple if triple.starts_with("riscv") => Self::RiscV,
            _ => Self::Aarch64,
        }
    }

    /// Returns the control flow behind `mnemonic operands`. Calls by name, as far ones are shown, are looked up by `named`.
    pub(super) fn flow(self, mnemonic: &str, operands: &str, named: &dyn Fn(&str) -> Option<u64>) -> Flow {
        match self {
            Self::Thumb => thumb_flow(mnemonic, operands),
            Self::RiscV => riscv_flow(mnemonic, operands, named),
            Self::Aarch64 => aarch64_flow(mnemonic, operands),
        }
    }

    /// Returns the effect on the stack pointer.
    pub(super) fn moves(self, mnemonic: &str, operands: &str) -> Moves {
        match self {
            // Where an instruction's condition does not hold, the frame stays.
            Self::Thumb => match thumb_moves(mnemonic, operands) {
                Moves::Down(bytes) if bytes < 0 && thumb_name(mnemonic).1 => Moves::No,
                moves => moves,
            },
            Self::RiscV => riscv_moves(mnemonic, operands),
            Self::Aarch64 => aarch64_moves(mnemonic, operands),
        }
    }
}

/// The address that a branch names: the operands' last one, before any comment.
fn address(operands: &str) -> Option<u64> {
    let word = operands
        .split(['<', '@'])
        .next()?
        .split([',', ' ', '\t'])
        .rfind(|word| !word.is_empty())?;
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// A number such as `#-0x10` or `16`.
fn number(word: &str) -> Option<i64> {
    let word = word.trim().trim_start_matches('#');
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}

/// The instruction's name without its width and condition, and whether it had a condition.
fn thumb_name(mnemonic: &str) -> (&str, bool) {
    let base = mnemonic.split('.').next().unwrap_or(mnemonic);
    for name in [
        "bx", "blx", "pop", "ldm", "ldmia", "push", "ldr", "add", "sub", "mov", "bl",
    ] {
        if base.strip_prefix(name).is_some_and(|rest| CONDITIONS.contains(&rest)) {
            return (name, true);
        }
    }
    (base, false)
}

fn thumb_flow(mnemonic: &str, operands: &str) -> Flow {
    let (name, conditional) = thumb_name(mnemonic);
    let to = address(operands);
    let end = if conditional { Flow::EndOrNext } else { Flow::End };
    match (name, to) {
        ("b", Some(to)) => Flow::Jump(to),
        ("bl", Some(to)) => Flow::Call(to),
        ("blx", _) => Flow::CallIndirect,
        ("bx", _) if operands.trim() == "lr" => end,
        ("bx" | "tbb" | "tbh", _) => Flow::JumpIndirect,
        ("mov" | "ldr" | "add", _) if operands.trim_start().starts_with("pc") => Flow::JumpIndirect,
        ("pop" | "ldm" | "ldmia" | "ldmdb", _) if operands.contains("pc") => end,
        ("udf" | "bkpt", _) => Flow::End,
        ("cbz" | "cbnz" | "le" | "letp" | "wls" | "wlstp", Some(to)) => Flow::Branch(to),
        (name, Some(to)) if name.strip_prefix('b').is_some_and(|rest| CONDITIONS.contains(&rest)) => Flow::Branch(to),
        _ => Flow::Next,
    }
}

fn thumb_moves(mnemonic: &str, operands: &str) -> Moves {
    let (name, _) = thumb_name(mnemonic);
    let operands = operands.split('@').next().unwrap_or_default().trim();
    let (first, rest) = operands.split_once(',').unwrap_or((operands, ""));
    let (first, rest) = (first.trim(), rest.trim());
    let list = || registers(operands);
    let value = || number(rest.rsplit(',').next().unwrap_or_default());
    match name {
        "push" => Moves::Down(list() * 4),
        "pop" => Moves::Down(-list() * 4),
        "vpush" => Moves::Down(list() * float_bytes(operands)),
        "vpop" => Moves::Down(-list() * float_bytes(operands)),
        "stmdb" if first == "sp!" => Moves::Down(list() * 4),
        "ldm" | "ldmia" if first == "sp!" => Moves::Down(-list() * 4),
        "sub" | "subw" | "add" | "addw" if first == "sp" => match value() {
            Some(bytes) if rest.starts_with('#') || rest.starts_with("sp,") => {
                Moves::Down(if name.starts_with("sub") { bytes } else { -bytes })
            }
            // From another register: the frame's end.
            Some(_) => Moves::FromRegister,
            None => Moves::Unknown,
        },
        "ldm" | "ldmia" | "stm" | "stmia" if first == "sp" => Moves::No,
        "mov" if first == "sp" => Moves::FromRegister,
        _ if first == "sp" && !name.starts_with("cmp") && !operands.contains('[') && name != "msr" => Moves::Unknown,
        _ => indexed(operands, "sp"),
    }
}

/// A load or store that moves its base: `[sp, #-8]!` before it, `[sp], #8` behind it.
fn indexed(operands: &str, base: &str) -> Moves {
    let Some((_, place)) = operands.split_once(&format!("[{base}")) else {
        return Moves::No;
    };
    let moved = match place.split_once("]!") {
        Some((before, _)) => number(before.trim_start_matches([',', ' '])),
        None => place.split_once("], ").and_then(|(_, behind)| number(behind)),
    };
    moved.map_or(Moves::No, |bytes| Moves::Down(-bytes))
}

/// How many registers `{r4, r5-r7, lr}` are.
fn registers(operands: &str) -> i64 {
    let list = operands
        .split_once('{')
        .map_or("", |(_, list)| list)
        .trim_end_matches('}');
    let index = |name: &str| {
        name.trim()
            .trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .parse::<i64>()
    };
    let count = |item: &str| match item.split_once('-').map(|(first, last)| (index(first), index(last))) {
        Some((Ok(first), Ok(last))) => last - first + 1,
        _ => 1,
    };
    list.split(',').map(count).sum()
}

fn float_bytes(operands: &str) -> i64 {
    if operands.contains("{s") { 4 } else { 8 }
}

fn riscv_flow(mnemonic: &str, operands: &str, named: &dyn Fn(&str) -> Option<u64>) -> Flow {
    let to = address(operands);
    let name = || named(operands.split_once('<')?.1.trim_end_matches('>'));
    let links = || !operands.trim_start().starts_with("zero");
    match mnemonic {
        "ret" | "unimp" | "ebreak" | "mret" => Flow::End,
        "j" => to.map_or(Flow::JumpIndirect, Flow::Jump),
        "jal" if links() => to.map_or(Flow::CallIndirect, Flow::Call),
        "jal" => to.map_or(Flow::JumpIndirect, Flow::Jump),
        "jalr" if links() => name().map_or(Flow::CallIndirect, Flow::Call),
        "jr" | "jalr" => name().map_or(Flow::JumpIndirect, Flow::Jump),
        _ if mnemonic.starts_with('b') => to.map_or(Flow::Next, Flow::Branch),
        _ => Flow::Next,
    }
}

fn riscv_moves(mnemonic: &str, operands: &str) -> Moves {
    let words: Vec<&str> = operands.split(',').map(str::trim).collect();
    match (mnemonic, &words[..]) {
        ("addi", ["sp", "sp", bytes]) => number(bytes).map_or(Moves::Unknown, |bytes| Moves::Down(-bytes)),
        ("addi", ["sp", _, _]) | ("mv" | "andi", ["sp", ..]) => Moves::FromRegister,
        // Into a register of that name only: stores name it in brackets.
        (_, ["sp", ..]) if !mnemonic.starts_with('b') && !mnemonic.starts_with('s') => Moves::Unknown,
        ("sub" | "sh1add", ["sp", ..]) => Moves::Unknown,
        _ => Moves::No,
    }
}

fn aarch64_flow(mnemonic: &str, operands: &str) -> Flow {
    let to = address(operands);
    match mnemonic {
        "ret" | "brk" | "udf" | "eret" => Flow::End,
        "b" => to.map_or(Flow::JumpIndirect, Flow::Jump),
        "bl" => to.map_or(Flow::CallIndirect, Flow::Call),
        "blr" => Flow::CallIndirect,
        "br" => Flow::JumpIndirect,
        "cbz" | "cbnz" | "tbz" | "tbnz" => to.map_or(Flow::Next, Flow::Branch),
        _ if mnemonic.starts_with("b.") => to.map_or(Flow::Next, Flow::Branch),
        _ => Flow::Next,
    }
}

fn aarch64_moves(mnemonic: &str, operands: &str) -> Moves {
    let operands = operands.split("//").next().unwrap_or_default();
    let words: Vec<&str> = operands.split(',').map(str::trim).collect();
    match (mnemonic, &words[..]) {
        ("sub" | "add", ["sp", "sp", bytes, shift @ ..]) => {
            let factor = if shift.first().is_some_and(|shift| shift.contains("#12")) {
                4096
            } else {
                1
            };
            let factor = if mnemonic == "sub" { factor } else { -factor };
            number(bytes).map_or(Moves::Unknown, |bytes| Moves::Down(factor * bytes))
        }
        ("sub" | "add" | "mov" | "and", ["sp", ..]) => Moves::FromRegister,
        ("cmp" | "cmn", _) => Moves::No,
        (_, ["sp", ..]) => Moves::Unknown,
        _ => indexed(operands, "sp"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        let none = |_: &str| None;
        for (text, moves, flow) in [
            ("push {r4, r5, r6, r7, lr}", Moves::Down(20), Flow::Next),
            ("push.w {r4-r11, lr}", Moves::Down(36), Flow::Next),
            ("vpush {d8, d9}", Moves::Down(16), Flow::Next),
            ("vpop {s16, s17, s18}", Moves::Down(-12), Flow::Next),
            ("sub sp, #0x48", Moves::Down(72), Flow::Next),
            ("sub.w sp, sp, #0x400", Moves::Down(1024), Flow::Next),
            ("add sp, #0x8", Moves::Down(-8), Flow::Next),
            ("str lr, [sp, #-8]!", Moves::Down(8), Flow::Next),
            ("ldr lr, [sp], #8", Moves::Down(-8), Flow::Next),
            ("str r0, [sp, #0x8]", Moves::No, Flow::Next),
            ("ldm.w sp, {r8, r9}", Moves::No, Flow::Next),
            ("stmdb sp!, {r1, r2}", Moves::Down(8), Flow::Next),
            ("sub.w sp, r7, #0x10", Moves::FromRegister, Flow::Next),
            ("add sp, r4", Moves::Unknown, Flow::Next),
            ("pop {r4, pc}", Moves::Down(-8), Flow::End),
            ("pophi {r4, pc}", Moves::No, Flow::EndOrNext),
            ("addeq sp, #0x68", Moves::No, Flow::Next),
            ("bl 0x57cc <x> @ imm = #0x3de8", Moves::No, Flow::Call(0x57cc)),
            ("beq.w 0x10 <x+0x2>", Moves::No, Flow::Branch(0x10)),
            ("bic r0, r1, #3", Moves::No, Flow::Next),
            ("letp lr, 0x40", Moves::No, Flow::Branch(0x40)),
            ("cbz r0, 0x1a", Moves::No, Flow::Branch(0x1a)),
            ("bx lr", Moves::No, Flow::End),
            ("bx r6", Moves::No, Flow::JumpIndirect),
            ("tbh [pc, r0, lsl #1]", Moves::No, Flow::JumpIndirect),
        ] {
            let (mnemonic, operands) = text.split_once(' ').expect("operands");
            assert_eq!(Set::Thumb.moves(mnemonic, operands), moves, "{text}");
            assert_eq!(Set::Thumb.flow(mnemonic, operands, &none), flow, "{text}");
        }
        let by_name = |name: &str| (name == "far").then_some(0x900);
        for (text, moves, flow) in [
            ("addi sp, sp, -0x50", Moves::Down(80), Flow::Next),
            ("addi a0, sp, 0x8", Moves::No, Flow::Next),
            ("sw ra, 0x4c(sp)", Moves::No, Flow::Next),
            ("jal 0x80001000 <x>", Moves::No, Flow::Call(0x8000_1000)),
            ("jalr -0x6e(ra) <far>", Moves::No, Flow::Call(0x900)),
            ("jr 0x10(t1) <far>", Moves::No, Flow::Jump(0x900)),
            ("jalr a1", Moves::No, Flow::CallIndirect),
            ("bnez a0, 0x80001000 <x>", Moves::No, Flow::Branch(0x8000_1000)),
        ] {
            let (mnemonic, operands) = text.split_once(' ').expect("operands");
            assert_eq!(Set::RiscV.moves(mnemonic, operands), moves, "{text}");
            assert_eq!(Set::RiscV.flow(mnemonic, operands, &by_name), flow, "{text}");
        }
        for (text, moves, flow) in [
            ("sub sp, sp, #0x1, lsl #12", Moves::Down(4096), Flow::Next),
            ("stp x29, x30, [sp, #-0x60]!", Moves::Down(96), Flow::Next),
            ("ldp x29, x30, [sp], #0x60", Moves::Down(-96), Flow::Next),
            ("stp x20, x19, [sp, #0x10]", Moves::No, Flow::Next),
            ("tbz w0, #0x3, 0x40 <x>", Moves::No, Flow::Branch(0x40)),
            ("blr x8", Moves::No, Flow::CallIndirect),
        ] {
            let (mnemonic, operands) = text.split_once(' ').expect("operands");
            assert_eq!(Set::Aarch64.moves(mnemonic, operands), moves, "{text}");
            assert_eq!(Set::Aarch64.flow(mnemonic, operands, &none), flow, "{text}");
        }
    }
}
