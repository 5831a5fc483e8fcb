//! Thumb instructions from their disassembly.

use super::helium;
use super::instruction::{Instruction, Kind, Registers};
use crate::board::trace::Executed;

/// Decodes what was executed at `address`.
pub(super) fn decode(address: u64, executed: &Executed, helium: bool) -> Instruction {
    // Disassemblers take some of Helium for instructions of coprocessors, so that its encodings go first.
    if let Some(vector) = helium.then(|| helium::decode(address, executed)).flatten() {
        return vector;
    }
    let (mnemonic, operands) = executed
        .text
        .split_once(char::is_whitespace)
        .unwrap_or((&executed.text, ""));
    let (full, types) = mnemonic.split_once('.').unwrap_or((mnemonic, ""));
    let named = name(full);
    let mut instruction = Instruction::new(address, executed.size, named.kind, named.name);
    instruction.double = types.contains("f64");
    operate(&mut instruction, operands);
    if named.sets_flags || matches!(named.name, "cmp" | "cmn" | "tst" | "teq") {
        instruction.writes = instruction.writes.and(Registers::FLAGS);
    }
    if matches!(named.name, "vcmp" | "vcmpe") {
        instruction.writes = Registers::FPSCR;
    }
    if named.conditional || matches!(named.name, "adc" | "sbc" | "sel") {
        instruction.reads = instruction.reads.and(Registers::FLAGS);
    }
    instruction
}

/// Parts of a mnemonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named<'a> {
    name: &'a str,
    kind: Kind,
    conditional: bool,
    sets_flags: bool,
}

const CONDITIONS: [&str; 17] = [
    "eq", "ne", "hs", "lo", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al",
];

/// Takes condition and `s` off a mnemonic.
fn name(full: &str) -> Named<'_> {
    let found = |name, conditional, sets_flags| {
        let kind = kind(name)?;
        let kind = match kind {
            Kind::Branch if conditional => Kind::ConditionalBranch,
            kind => kind,
        };
        Some(Named {
            name,
            kind,
            conditional,
            sets_flags,
        })
    };
    let condition = CONDITIONS.iter().find_map(|condition| full.strip_suffix(condition));
    let exact = found(full, false, false);
    let with_condition = || condition.and_then(|name| found(name, true, false));
    let with_flags = || full.strip_suffix('s').and_then(|name| found(name, false, true));
    let with_both = || condition.and_then(|name| found(name.strip_suffix('s')?, true, true));
    let it = || {
        let rest = full.strip_prefix("it")?;
        rest.bytes()
            .all(|letter| matches!(letter, b't' | b'e'))
            .then_some(Named {
                name: "it",
                kind: Kind::IfThen,
                conditional: true,
                sets_flags: false,
            })
    };
    exact
        .or_else(with_condition)
        .or_else(with_flags)
        .or_else(with_both)
        .or_else(it)
        .unwrap_or(Named {
            name: full,
            kind: Kind::Alu,
            conditional: false,
            sets_flags: false,
        })
}

/// Returns the kind of the instruction of this name; `None` for an unknown name.
fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "add" | "addw" | "sub" | "subw" | "rsb" | "adc" | "sbc" | "and" | "orr" | "orn" | "eor" | "bic" | "mov"
        | "movw" | "movt" | "mvn" | "cmp" | "cmn" | "tst" | "teq" | "lsl" | "lsr" | "asr" | "ror" | "rrx" | "neg"
        | "clz" | "rbit" | "rev" | "rev16" | "revsh" | "adr" | "bfi" | "bfc" | "sbfx" | "ubfx" | "sxtb" | "sxth"
        | "uxtb" | "uxth" | "sxtb16" | "uxtb16" | "sxtab" | "sxtah" | "uxtab" | "uxtah" | "sxtab16" | "uxtab16"
        | "pkhbt" | "pkhtb" | "ssat" | "usat" | "ssat16" | "usat16" | "qadd" | "qsub" | "qdadd" | "qdsub" | "sel"
        | "sadd16" | "ssub16" | "uadd16" | "usub16" | "qadd16" | "qsub16" | "uqadd16" | "uqsub16" | "shadd16"
        | "uhadd16" | "sadd8" | "ssub8" | "uadd8" | "usub8" | "qadd8" | "qsub8" | "uqadd8" | "uqsub8" | "sasx"
        | "ssax" | "qasx" | "qsax" | "usad8" | "nop" | "mrs" | "msr" | "dmb" | "dsb" | "isb" | "cpsid" | "cpsie"
        | "csel" | "csinc" | "csinv" | "csneg" | "cset" | "csetm" | "cinc" | "cinv" | "cneg" | "lsll" | "lsrl"
        | "asrl" | "sqrshr" | "uqrshl" | "sqshl" | "srshr" | "svc" | "bkpt" | "udf" => Kind::Alu,
        "mul" | "smulbb" | "smulbt" | "smultb" | "smultt" | "smulwb" | "smulwt" | "smuad" | "smuadx" | "smusd"
        | "smusdx" | "smmul" | "smmulr" => Kind::Multiply,
        "mla" | "mls" | "smlabb" | "smlabt" | "smlatb" | "smlatt" | "smlawb" | "smlawt" | "smlad" | "smladx"
        | "smlsd" | "smlsdx" | "smmla" | "smmlar" | "smmls" | "smmlsr" | "usada8" => Kind::MultiplyAccumulate,
        "smull" | "umull" => Kind::MultiplyLong,
        "smlal" | "umlal" | "umaal" | "smlald" | "smlaldx" | "smlsld" | "smlsldx" | "smlalbb" | "smlalbt"
        | "smlaltb" | "smlaltt" => Kind::MultiplyAccumulateLong,
        "sdiv" | "udiv" => Kind::Divide,
        "ldr" | "ldrb" | "ldrh" | "ldrsb" | "ldrsh" | "ldrt" | "ldrex" | "ldrexb" | "ldrexh" | "lda" | "ldab"
        | "ldah" => Kind::Load,
        "str" | "strb" | "strh" | "strt" | "strex" | "strexb" | "strexh" | "stl" | "stlb" | "stlh" => Kind::Store,
        "ldrd" => Kind::LoadTwo,
        "strd" => Kind::StoreTwo,
        // Their registers are counted where the operands are.
        "ldm" | "ldmia" | "ldmdb" | "pop" => Kind::LoadMultiple(0),
        "stm" | "stmia" | "stmdb" | "push" => Kind::StoreMultiple(0),
        "b" => Kind::Branch,
        "cbz" | "cbnz" => Kind::ConditionalBranch,
        "bl" => Kind::Call,
        "bx" | "blx" => Kind::IndirectBranch,
        "tbb" | "tbh" => Kind::TableBranch,
        "dls" | "wls" | "dlstp" | "wlstp" => Kind::LoopStart,
        "le" | "letp" => Kind::LoopEnd,
        "vldr" => Kind::FloatLoad(1),
        "vstr" => Kind::FloatStore(1),
        "vldm" | "vldmia" | "vldmdb" | "vpop" => Kind::FloatLoad(0),
        "vstm" | "vstmia" | "vstmdb" | "vpush" => Kind::FloatStore(0),
        "vmov" | "vmrs" | "vmsr" => Kind::FloatMove,
        "vmla" | "vmls" | "vnmla" | "vnmls" | "vfma" | "vfms" | "vfnma" | "vfnms" => Kind::FloatMultiplyAccumulate,
        "vdiv" | "vsqrt" => Kind::FloatDivide,
        "vadd" | "vsub" | "vmul" | "vnmul" | "vneg" | "vabs" | "vcmp" | "vcmpe" | "vcvt" | "vcvtr" | "vcvta"
        | "vcvtn" | "vcvtm" | "vcvtp" | "vcvtb" | "vcvtt" | "vseleq" | "vselge" | "vselgt" | "vselvs" | "vmaxnm"
        | "vminnm" | "vrinta" | "vrintn" | "vrintm" | "vrintp" | "vrintz" | "vrintx" | "vrintr" => Kind::Float,
        _ => return None,
    })
}

/// Reads the operands: which registers are written, read, make an address.
fn operate(instruction: &mut Instruction, operands: &str) {
    let words = split(operands);
    let all = |words: &[&str]| words.iter().fold(Registers::NONE, |all, word| all.and(registers(word)));
    let first = words.first().map_or(Registers::NONE, |word| registers(word));
    let name = instruction.name.as_str();
    let shift = |word: &&str| {
        ["lsl", "lsr", "asr", "ror", "rrx"]
            .iter()
            .any(|shift| word.starts_with(shift))
    };
    let memory = words.iter().position(|word| word.starts_with('['));
    if let Some(at) = memory {
        instruction.addresses = registers(words[at]).and(all(&words[at + 1..]));
        let inside = words[at]
            .trim_start_matches('[')
            .split([']', '!'])
            .next()
            .unwrap_or_default();
        instruction.shifted = inside.split(',').skip(1).any(|word| registers(word) != Registers::NONE);
        // An address that is written back: `[r0, #4]!`, or `[r0], #4`.
        if words[at].ends_with('!') || at + 1 < words.len() {
            let base = inside.split(',').next().unwrap_or_default();
            instruction.updates = registers(base);
        }
    } else {
        instruction.shifted = words.iter().skip(1).any(shift);
    }
    let values = all(&words[..memory.unwrap_or(words.len())]);
    let behind = all(words.get(1..memory.unwrap_or(words.len())).unwrap_or_default());
    // Of a double-precision register.
    instruction.kind = match instruction.kind {
        Kind::FloatLoad(1) => Kind::FloatLoad(values.0.count_ones()),
        Kind::FloatStore(1) => Kind::FloatStore(values.0.count_ones()),
        kind => kind,
    };
    let (reads, writes) = match instruction.kind {
        Kind::FloatLoad(_) if memory.is_some() => (Registers::NONE, values),
        Kind::FloatStore(_) if memory.is_some() => (values, Registers::NONE),
        Kind::Load | Kind::LoadTwo => (Registers::NONE, values),
        Kind::Store | Kind::StoreTwo => (values, Registers::NONE),
        Kind::LoadMultiple(_) | Kind::StoreMultiple(_) | Kind::FloatLoad(_) | Kind::FloatStore(_) => {
            multiple(instruction, &words);
            return;
        }
        Kind::Branch | Kind::IfThen => (Registers::NONE, Registers::NONE),
        Kind::ConditionalBranch | Kind::IndirectBranch | Kind::TableBranch => (values, Registers::NONE),
        Kind::Call => (Registers::NONE, Registers::LINK),
        Kind::LoopStart => (behind, Registers::LINK),
        Kind::LoopEnd => (Registers::LINK, Registers::LINK),
        Kind::MultiplyLong => (
            all(words.get(2..).unwrap_or_default()),
            all(words.get(..2).unwrap_or_default()),
        ),
        Kind::MultiplyAccumulateLong => {
            instruction.addends = all(words.get(..2).unwrap_or_default());
            (all(words.get(2..).unwrap_or_default()), instruction.addends)
        }
        Kind::MultiplyAccumulate => {
            instruction.addends = all(words.get(3..).unwrap_or_default());
            (all(words.get(1..3).unwrap_or_default()), first)
        }
        Kind::FloatMultiplyAccumulate => {
            instruction.addends = first;
            (behind, first)
        }
        Kind::Alu | Kind::Float if matches!(name, "cmp" | "cmn" | "tst" | "teq" | "vcmp" | "vcmpe") => {
            (values, Registers::NONE)
        }
        // `vmov r0, r1, d0` writes two, `vmov d0, r0, r1` one, `vmov s0, s1, r0, r1` two.
        Kind::FloatMove if words.len() > 2 => {
            let count = if words.len() == 4 || !words[0].starts_with('d') {
                2
            } else {
                1
            };
            (all(&words[count..]), all(&words[..count]))
        }
        // `adds r0, #1` adds to what it writes; moves and conversions of two operands do not.
        Kind::Alu | Kind::Multiply if words.len() == 2 && accumulates(name) => (values, first),
        Kind::Alu if matches!(name, "movt" | "bfi" | "bfc") => (values, first),
        _ => (behind, first),
    };
    instruction.reads = reads.and(instruction.addresses);
    instruction.writes = instruction.updates.and(writes);
    // An instruction that writes the program counter branches: `mov pc, lr`, `ldr pc, [r0]`.
    if writes.meets(Registers::COUNTER) && matches!(instruction.kind, Kind::Alu) {
        instruction.kind = Kind::IndirectBranch;
    } else if writes.meets(Registers::COUNTER) && instruction.kind == Kind::Load {
        instruction.kind = Kind::Return(1);
    }
}

/// Whether an instruction of two operands reads the first one too.
fn accumulates(name: &str) -> bool {
    matches!(
        name,
        "add"
            | "addw"
            | "sub"
            | "subw"
            | "adc"
            | "sbc"
            | "and"
            | "orr"
            | "eor"
            | "bic"
            | "lsl"
            | "lsr"
            | "asr"
            | "ror"
            | "mul"
            | "rsb"
            | "orn"
    )
}

/// Reads the operands of a load or store of several registers.
fn multiple(instruction: &mut Instruction, words: &[&str]) {
    let list = words
        .iter()
        .find(|word| word.starts_with('{'))
        .copied()
        .unwrap_or_default();
    let listed = registers(list);
    let words_of = listed.0.count_ones();
    let base = match words.first() {
        Some(word) if !word.starts_with('{') => registers(word),
        _ => Registers::integer(13),
    };
    instruction.addresses = base;
    let written_back = !matches!(words.first(), Some(word) if !word.starts_with('{') && !word.ends_with('!'));
    let update = if written_back { base } else { Registers::NONE };
    let (kind, reads, writes) = match instruction.kind {
        Kind::LoadMultiple(_) if listed.meets(Registers::COUNTER) => (Kind::Return(words_of), base, listed),
        Kind::LoadMultiple(_) => (Kind::LoadMultiple(words_of), base, listed),
        Kind::StoreMultiple(_) => (Kind::StoreMultiple(words_of), base.and(listed), Registers::NONE),
        Kind::FloatLoad(_) => (Kind::FloatLoad(words_of), base, listed),
        _ => (Kind::FloatStore(words_of), base.and(listed), Registers::NONE),
    };
    instruction.kind = kind;
    instruction.reads = reads;
    instruction.updates = update;
    instruction.writes = writes.and(update);
}

/// Operands: commas inside of brackets and braces do not part them.
fn split(operands: &str) -> Vec<&str> {
    let (mut depth, mut start, mut words) = (0, 0, Vec::new());
    for (at, letter) in operands.char_indices() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                words.push(operands[start..at].trim());
                start = at + 1;
            }
            _ => (),
        }
    }
    words.push(operands[start..].trim());
    words.retain(|word| !word.is_empty());
    words
}

/// Every register that a text names: `{r4-r7, lr}`, `[r0, r1, lsl #2]!`, `s3`.
fn registers(text: &str) -> Registers {
    let mut all = Registers::NONE;
    let names =
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '#' && letter != '_');
    for name in names.filter(|name| !name.starts_with('#')) {
        match name.split_once('-') {
            Some((low, high)) => {
                let number = |name: &str| name.get(1..).and_then(|digits| digits.parse::<u32>().ok());
                if let (Some(letter), Some(low), Some(high)) = (low.chars().next(), number(low), number(high)) {
                    all = (low..=high).fold(all, |all, at| all.and(register(&format!("{letter}{at}"))));
                }
            }
            None => all = all.and(register(name)),
        }
    }
    all
}

fn register(name: &str) -> Registers {
    match name {
        "sp" => return Registers::integer(13),
        "lr" => return Registers::LINK,
        "pc" => return Registers::COUNTER,
        "sb" => return Registers::integer(9),
        "sl" => return Registers::integer(10),
        "fp" => return Registers::integer(11),
        "ip" => return Registers::integer(12),
        "apsr_nzcv" => return Registers::FLAGS,
        "fpscr" => return Registers::FPSCR,
        _ => (),
    }
    let number = |prefix: char, limit: u32| {
        let number: u32 = name.strip_prefix(prefix)?.parse().ok()?;
        (number < limit).then_some(number)
    };
    if let Some(at) = number('r', 16) {
        Registers::integer(at)
    } else if let Some(at) = number('s', 32) {
        Registers::float(at, 1)
    } else if let Some(at) = number('d', 16) {
        Registers::float(2 * at, 2)
    } else if let Some(at) = number('q', 8) {
        Registers::vector(at)
    } else {
        Registers::NONE
    }
}
