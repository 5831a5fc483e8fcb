//! Helium and low-overhead loops from their encodings, for qemu's disassembler knows neither.
//!
//! Only what time depends on is told apart: the pipe, the latency's class, the registers. Encodings: Armv8-M Architecture Reference Manual
//! (DDI 0553), chapter C2. Names are those of the table of the Cortex-M55, each for a group of instructions of the same timing.

use super::instruction::{Instruction, Kind, Pipe, Registers};
use crate::board::trace::Executed;

/// Decodes an instruction of the vector extension or of low-overhead loops; `None` for every other one.
pub(super) fn decode(address: u64, executed: &Executed) -> Option<Instruction> {
    if executed.size != 4 {
        return None;
    }
    let (high, low) = (executed.encoding & 0xffff, executed.encoding >> 16);
    let decoded = looping(high, low).or_else(|| match high & 0xef00 {
        0xec00 | 0xed00 if low & 0x0e00 == 0x0e00 => Some(memory(high, low)),
        0xee00 if low & 0x0e00 == 0x0e00 => Some(special(high, low)),
        0xee00 if low & 0x0f5f == 0x0b10 && high & 0xff91 == 0xee80 => Some(duplicate(high, low)),
        0xef00 => Some(three_vectors(high, low)),
        _ => None,
    })?;
    let mut instruction = Instruction::new(address, 4, decoded.kind, decoded.name);
    instruction.reads = decoded.reads;
    instruction.addresses = decoded.addresses;
    instruction.addends = decoded.addends;
    instruction.writes = decoded.writes;
    instruction.updates = decoded.writes.only(decoded.addresses);
    Some(instruction)
}

struct Decoded {
    name: &'static str,
    kind: Kind,
    reads: Registers,
    addresses: Registers,
    addends: Registers,
    writes: Registers,
}

impl Decoded {
    fn new(name: &'static str, pipe: Pipe, reads: Registers, writes: Registers) -> Self {
        Self {
            name,
            kind: Kind::Vector(pipe),
            reads,
            addresses: Registers::NONE,
            addends: Registers::NONE,
            writes,
        }
    }
}

/// Bits `low` to `high` of a halfword.
fn bits(halfword: u32, high: u32, low: u32) -> u32 {
    (halfword >> low) & ((1 << (high - low + 1)) - 1)
}

/// The destination.
fn qd(low: u32) -> Registers {
    Registers::vector(bits(low, 15, 13))
}

/// The first operand.
fn qn(high: u32) -> Registers {
    Registers::vector(bits(high, 3, 1))
}

/// The second operand.
fn qm(low: u32) -> Registers {
    Registers::vector(bits(low, 3, 1))
}

/// `DLS`, `WLS`, `LE`, their tail-predicated forms, and `VCTP`.
fn looping(high: u32, low: u32) -> Option<Decoded> {
    let number = Registers::integer(bits(high, 3, 0));
    let (name, kind, reads, writes) = match (high & 0xfff0, low) {
        (0xf000 | 0xf010 | 0xf020, _) if bits(high, 3, 0) == 15 && low & 0xf001 == 0xc001 => {
            ("le", Kind::LoopEnd, Registers::LINK, Registers::LINK)
        }
        (0xf000..=0xf040, 0xe001) => ("dls", Kind::LoopStart, number, Registers::LINK),
        (0xf000..=0xf040, _) if low & 0xf001 == 0xc001 => ("wls", Kind::LoopStart, number, Registers::LINK),
        (0xf000..=0xf030, 0xe801) => ("vctp", Kind::Vector(Pipe::Control), number, Registers::PREDICATE),
        _ => return None,
    };
    Some(Decoded {
        kind,
        ..Decoded::new(name, Pipe::Control, reads, writes)
    })
}

/// Loads and stores, and moves of two lanes.
fn memory(high: u32, low: u32) -> Decoded {
    let (pre, write_back, load) = (bits(high, 8, 8) == 1, bits(high, 5, 5) == 1, bits(high, 4, 4) == 1);
    let base = Registers::integer(bits(high, 3, 0));
    if high & 0xffe0 == 0xec00 {
        let pair = Registers::integer(bits(low, 3, 0)).and(base);
        return if load {
            Decoded::new("vmov to lanes", Pipe::Integer, pair.and(qd(low)), qd(low))
        } else {
            Decoded::new("vmov from lanes", Pipe::Multiplier, qd(low), pair)
        };
    }
    let (name, pipe, addresses) = match high & 0xff00 {
        // Addresses from a vector of bases, and from a base and a vector of offsets.
        0xfd00 => (if load { "gather" } else { "scatter" }, Pipe::Scattered, qn(high)),
        0xfc00 => (if load { "vld4" } else { "vst4" }, Pipe::Memory, base),
        _ if !pre && !write_back => (
            if load { "gather" } else { "scatter" },
            Pipe::Scattered,
            base.and(qm(low)),
        ),
        _ => (if load { "vldr" } else { "vstr" }, Pipe::Memory, base),
    };
    let count = if high & 0xff00 == 0xfc00 { 1 + (low & 1) } else { 0 };
    let values = (0..=count).fold(qd(low), |all, at| all.and(Registers::vector(bits(low, 15, 13) + at)));
    let updated = if write_back { base } else { Registers::NONE };
    let (reads, writes) = if load {
        (addresses, values.and(updated))
    } else {
        (addresses.and(values), updated)
    };
    Decoded {
        addresses,
        ..Decoded::new(name, pipe, reads, writes)
    }
}

/// `VDUP` from an integer register.
fn duplicate(high: u32, low: u32) -> Decoded {
    let vector = Registers::vector(bits(high, 3, 1));
    Decoded::new("vdup", Pipe::Integer, Registers::integer(bits(low, 15, 12)), vector)
}

/// Decodes other instructions among the coprocessors' encodings: reductions, operations with an integer register, narrowing and widening, comparisons.
fn special(high: u32, low: u32) -> Decoded {
    let (a, b, d) = (qn(high), qm(low), qd(low));
    let scalar = Registers::integer(bits(low, 3, 0));
    let sum = Registers::integer(bits(low, 15, 13) * 2);
    let integer = |name, reads: Registers| Decoded::new(name, Pipe::Integer, reads, d);
    let multiplier = |name, reads: Registers| Decoded::new(name, Pipe::Multiplier, reads, d);
    let predicate = |name, reads| Decoded::new(name, Pipe::Multiplier, reads, Registers::PREDICATE);
    let accumulating = |name, reads: Registers| Decoded {
        addends: d,
        ..Decoded::new(name, Pipe::Multiplier, reads, d)
    };
    let group = low & 0x0f00;
    if bits(high, 7, 7) == 1 {
        return match (high & 0x0071, low & 0x0041) {
            // Widening moves and shifts, narrowing shifts.
            (_, 0x0040) => integer("vmovl", b),
            (_, 0x0041) => integer("vshrn", b.and(d)),
            (0x0060, 0x0000) if group == 0x0f00 => Decoded::new("vmaxv", Pipe::Integer, b.and(sum), sum),
            (_, 0x0001) if group == 0x0f00 && bits(high, 4, 4) == 0 => {
                Decoded::new("vabav", Pipe::Integer, a.and(b).and(sum), sum)
            }
            _ => {
                // `VADDV` has no first operand, and reductions that accumulate read what they write.
                let addends = if bits(low, 5, 5) == 1 { sum } else { Registers::NONE };
                let values = if high & 0x0071 == 0x0071 { b } else { a.and(b) };
                Decoded {
                    addends,
                    ..Decoded::new("vmlav", Pipe::Multiplier, values, sum)
                }
            }
        };
    }
    let (wide, signed) = (bits(high, 5, 4) == 3, high & 0x1000 == 0);
    match (group, bits(low, 6, 6) == 1, bits(high, 0, 0) == 1, low & 1 == 1) {
        (0x0f00, true, true, _) if low & 0x00ff == 0x4d && bits(high, 6, 6) == 0 && low & 0xe000 == 0 => {
            Decoded::new("vpnot", Pipe::Control, Registers::PREDICATE, Registers::PREDICATE)
        }
        (0x0f00, true, true, _) if low & 0x00ff == 0x4d => {
            Decoded::new("vpst", Pipe::Control, Registers::NONE, Registers::NONE)
        }
        (0x0f00, true, true, _) if signed && !wide && low & 0x0020 == 0x0020 => {
            integer("vidup", Registers::integer(bits(high, 3, 1) * 2))
        }
        (0x0f00, _, true, true) if bits(high, 5, 4) == 3 && high & 0xf000 == 0xf000 && low & 0x1ff1 == 0x0f01 => {
            integer("vpsel", a.and(b).and(Registers::PREDICATE))
        }
        (0x0f00, true, true, _) if signed && !wide => integer("vadd.i", a.and(scalar)),
        (0x0f00, scalar_too, true, _) => predicate("vcmp", if scalar_too { a.and(scalar) } else { a.and(b) }),
        (0x0f00, true, false, _) if wide && low & 0x0020 == 0 => multiplier("vadd.f scalar", a.and(scalar)),
        (0x0f00, true, false, _) if wide => multiplier("vqdmull", a.and(scalar)),
        (0x0f00, true, false, _) => integer("vadd.i", a.and(scalar)),
        (0x0f00, false, false, true) => multiplier("vqdmull", a.and(b)),
        (0x0f00, false, false, false) if wide => integer("vadc", a.and(b)),
        (0x0f00, false, false, false) => integer("vadd.i", a.and(b)),
        (_, true, true, _) if wide && low & 0x1020 == 0x1020 && high & 0x0002 == 0 => integer("vshl", d.and(scalar)),
        (_, true, true, _) if wide && low & 0x1020 == 0x1020 => integer("vrshl", d.and(scalar)),
        (_, true, true, _) if low & 0x1020 == 0x1020 && high & 0xf000 == 0xf000 => integer("vbrsr", a.and(scalar)),
        (_, true, true, _) if low & 0x0020 == 0x0020 => multiplier("vmul.i", a.and(scalar)),
        (_, true, _, _) => accumulating("vmla", a.and(scalar)),
        // Shifted by as many bits as an element has.
        (_, false, true, true) if wide && high & 2 == 0 && low & 0x80 == 0 => integer("vmovl", b),
        (_, false, true, true) if wide => integer("vmovn", b.and(d)),
        (_, false, _, _) => multiplier("vmul.i", a.and(b)),
    }
}

/// Three vectors, or one and an immediate value.
fn three_vectors(high: u32, low: u32) -> Decoded {
    let (a, b, d) = (qn(high), qm(low), qd(low));
    let integer = |name, reads: Registers| Decoded::new(name, Pipe::Integer, reads, d);
    let multiplier = |name, reads: Registers| Decoded::new(name, Pipe::Multiplier, reads, d);
    let unsigned = high & 0x1000 != 0;
    if bits(high, 7, 7) == 1 {
        // An immediate value; one operand and a shift by a constant; one operand.
        return match (bits(high, 5, 3), low & 0x00d0) {
            (0, _) if low & 0x0090 == 0x0010 => multiplier("vmov imm", Registers::NONE),
            _ if low & 0x0010 != 0 && low & 0x0f00 <= 0x0100 => integer("vshr", b),
            _ if low & 0x0010 != 0 && low & 0x0f00 <= 0x0300 => integer("vrshr", b),
            _ if low & 0x0010 != 0 && low & 0x0f00 == 0x0500 => integer("vshl", b),
            _ if low & 0x0010 != 0 && low & 0x0f00 <= 0x0700 => integer("vqshl", b),
            _ if low & 0x0010 != 0 => multiplier("vcvt", b),
            _ if unsigned && high & 0x0003 == 3 => multiplier("vcvt", b),
            _ if unsigned && high & 0x0003 == 2 => multiplier("vcvt", b),
            _ if unsigned && high & 0x0003 == 1 && low & 0x0400 != 0 => multiplier("vabs.f", b),
            _ => integer("vabs", b),
        };
    }
    match (low & 0x0f10, unsigned) {
        (0x0d00, _) => multiplier("vadd.f", a.and(b)),
        (0x0d10 | 0x0c10, true) => multiplier("vmul.f", a.and(b)),
        (0x0c10, false) => Decoded {
            addends: d,
            ..multiplier("vfma", a.and(b))
        },
        (0x0f10, _) => multiplier("vmaxnm", a.and(b)),
        (0x0910, _) => multiplier("vmul.i", a.and(b)),
        (0x0b00, _) => multiplier("vqdmulh", a.and(b)),
        (0x0800..=0x0810, _) => integer("vadd.i", a.and(b)),
        (0x0400, _) => integer("vshl", a.and(b)),
        (0x0410 | 0x0500 | 0x0510, _) => integer("vrshl", a.and(b)),
        _ => integer("vand", a.and(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(high: u32, low: u32) -> Option<Instruction> {
        let executed = Executed {
            size: 4,
            count: 1,
            split: 0,
            crossing: 0,
            encoding: high | low << 16,
            text: "?".to_owned(),
        };
        decode(0, &executed)
    }

    /// Encodings of the firmware, as llvm-objdump 22 disassembles them.
    #[test]
    fn encodings_are_what_a_disassembler_says() {
        let q = Registers::vector;
        let r = Registers::integer;
        for (high, low, name, reads, writes) in [
            (0xecb0, 0x5e10, "vldr", r(0), q(2).and(r(0))),
            (0xecb1, 0x2e88, "vldr", r(1), q(1).and(r(1))),
            (0xed91, 0x3e00, "vldr", r(1), q(1)),
            (0xeca2, 0x0f04, "vstr", r(2).and(q(0)), r(2)),
            (0xed8b, 0x1e00, "vstr", r(11).and(q(0)), Registers::NONE),
            (0xec83, 0xcf0e, "scatter", r(3).and(q(7)).and(q(6)), Registers::NONE),
            (0xec14, 0x8f00, "vmov to lanes", r(0).and(r(4)).and(q(4)), q(4)),
            (0xeef0, 0x2f04, "vmlav", q(0).and(q(2)), r(2)),
            (0xeef0, 0xae22, "vmlav", q(0).and(q(1)), r(10)),
            (0xee21, 0x0f48, "vadd.i", q(0).and(r(8)), q(0)),
            (0xee1a, 0xaf60, "vadd.i", q(5).and(r(0)), q(5)),
            (0xee3b, 0x1e6a, "vrshl", q(0).and(r(10)), q(0)),
            (0xee39, 0xde60, "vshl", q(6).and(r(0)), q(6)),
            (0xfe2d, 0xce67, "vmul.i", q(6).and(r(7)), q(6)),
            (0xfe25, 0x4e09, "vmul.i", q(2).and(q(4)), q(2)),
            (0xee23, 0x0e4c, "vmla", q(1).and(r(12)), q(0)),
            (0xee39, 0x0e44, "vmla", q(4).and(r(4)), q(0)),
            (0xee37, 0x8e09, "vmovn", q(4), q(4)),
            (0xfe35, 0x1e87, "vmovn", q(3).and(q(0)), q(0)),
            (0xee31, 0x5e01, "vmovl", q(0), q(2)),
            (0xeebf, 0x8f40, "vmovl", q(0), q(4)),
            (0xee90, 0xcfc9, "vshrn", q(4).and(q(6)), q(6)),
            (0xee2e, 0x9e67, "vmla", q(7).and(r(7)), q(4)),
            (0xeeb0, 0x7f40, "vmovl", q(0), q(3)),
            (0xeea2, 0x9b10, "vdup", r(9), q(1)),
            (0xef80, 0x4050, "vmov imm", Registers::NONE, q(2)),
            (0xefa1, 0x2054, "vshr", q(2), q(1)),
            (0xef24, 0xa44a, "vshl", q(5).and(q(2)), q(5)),
            (0xffb9, 0x6346, "vabs", q(3), q(3)),
            (0xef02, 0x2d46, "vadd.f", q(1).and(q(3)), q(1)),
            (0xff22, 0x2f5e, "vmaxnm", q(1).and(q(7)), q(1)),
            (0xef18, 0x8640, "vand", q(4).and(q(0)), q(4)),
            (0xff26, 0x6842, "vadd.i", q(3).and(q(1)), q(3)),
            (0xfe71, 0x0f4d, "vpst", Registers::NONE, Registers::NONE),
            (0xfe31, 0x4f4d, "vpst", Registers::NONE, Registers::NONE),
            (0xf026, 0xe801, "vctp", r(6), Registers::PREDICATE),
            (0xf01f, 0xc007, "le", Registers::LINK, Registers::LINK),
            (0xf012, 0xe001, "dls", r(2), Registers::LINK),
            (0xf040, 0xc023, "wls", r(0), Registers::LINK),
        ] {
            let found = decoded(high, low).unwrap_or_else(|| panic!("{high:04x} {low:04x} is {name}"));
            assert_eq!(
                (found.name.as_str(), found.reads, found.writes),
                (name, reads, writes),
                "{high:04x} {low:04x}"
            );
        }
    }

    #[test]
    fn other_encodings_are_none() {
        // vldr s0, [r1]; vadd.f32 s0, s1, s2; vmov s0, r1; ldrd; add.w; bl.
        for (high, low) in [
            (0xed91, 0x0a00),
            (0xee30, 0x0a81),
            (0xee00, 0x1a10),
            (0xe9d0, 0x0100),
            (0xeb00, 0x0001),
            (0xf000, 0xf800),
        ] {
            assert_eq!(decoded(high, low), None, "{high:04x} {low:04x}");
        }
    }
}
