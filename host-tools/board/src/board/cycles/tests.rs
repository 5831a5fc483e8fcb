//! Sequences whose cycles were counted by hand from the manuals.

use super::instruction::{Instruction, Kind, Registers};
use super::*;
use crate::board::trace::{Block, Executed};

/// `0xHHHHLLLL` is an encoding, first halfword first, that no disassembler knows.
fn executed(size: u64, count: u64, text: &str) -> Executed {
    let encoding = text
        .strip_prefix("0x")
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    Executed {
        size,
        count,
        split: 0,
        crossing: 0,
        encoding: encoding.unwrap_or(0).rotate_left(16),
        text: text.to_owned(),
    }
}

/// Instructions from address 0 on, executed once: lines of `SIZE TEXT`.
fn straight(core: Core, lines: &[&str]) -> u64 {
    let mut interval = Interval::default();
    let mut address = 0;
    for line in lines {
        let (size, text) = line.split_once(' ').expect("SIZE TEXT");
        let size = size.parse().expect("a size");
        interval.executed.insert(address, executed(size, 1, text));
        address += size;
    }
    let block = Block {
        address: 0,
        instructions: lines.len() as u32,
    };
    interval.edges.insert((None, block), 1);
    interval.cycles(core).expect("a model").cycles
}

/// A loop at address `start`, executed ten times and left by its end: lines of `SIZE TEXT`.
fn ten_times(core: Core, start: u64, lines: &[&str]) -> u64 {
    let mut interval = Interval::default();
    let mut address = start;
    for line in lines {
        let (size, text) = line.split_once(' ').expect("SIZE TEXT");
        let size = size.parse().expect("a size");
        interval.executed.insert(address, executed(size, 10, text));
        address += size;
    }
    let block = Block {
        address: start,
        instructions: lines.len() as u32,
    };
    interval.edges.insert((None, block), 1);
    interval.edges.insert((Some(block), block), 9);
    interval.cycles(core).expect("a model").cycles
}

/// DDI 0337I, section 3.3.3: its own examples, "normally three cycles total", "normally four cycles total".
#[test]
fn the_manuals_examples_of_neighbouring_loads() {
    for core in [Core::M3, Core::M4] {
        for (cycles, lines) in [
            (3, &["2 ldr r0, [r1]", "2 ldr r1, [r2]"][..]),
            (3, &["2 ldr r0, [r1, r2]", "2 str r0, [r3, #20]"]),
            (3, &["2 ldr r0, [r1, r2]", "2 str r1, [r3, r2]"]),
            (4, &["2 ldr r0, [r1, r5]", "2 ldr r1, [r2]", "2 ldr r2, [r3, #4]"]),
        ] {
            assert_eq!(straight(core, lines), cycles, "{core:?} {lines:?}");
        }
    }
}

#[test]
fn cortex_m3_and_m4_by_hand() {
    for (m3, m4, lines) in [
        // Arithmetic takes a cycle, whatever its operands.
        (
            3,
            3,
            &["2 adds r0, r0, r1", "4 add.w r2, r0, r3, lsl #2", "4 sxtb16 r0, r1"][..],
        ),
        // The loaded value is the address of the next load: nothing overlaps.
        (4, 4, &["2 ldr r0, [r1]", "2 ldr r2, [r0]"]),
        // A load behind a store does not overlap.
        (3, 3, &["2 str r0, [r1, #4]", "2 ldr r2, [r3]"]),
        // A store with a register offset takes two, with an immediate one.
        (3, 3, &["2 str r0, [r1, r2]", "2 str r0, [r1]"]),
        // An address that was just computed.
        (4, 4, &["2 adds r1, #4", "2 ldr r0, [r1]"]),
        // A base that a load updates itself is no such address.
        (3, 3, &["4 ldr r0, [r1], #4", "4 ldr r2, [r1], #4"]),
        // Two words and multiples overlap with nothing.
        (5, 5, &["2 ldr r0, [r1]", "4 ldrd r2, r3, [r4]"]),
        (5, 5, &["4 ldm.w r0!, {r1, r2, r3, r4}"]),
        (6, 6, &["4 push.w {r4, r5, r6, r7, lr}"]),
        // Products.
        (2, 2, &["4 mul r0, r1, r2", "2 muls r0, r1, r0"]),
        (2, 1, &["4 mla r0, r1, r2, r3"]),
        (4, 1, &["4 smull r0, r1, r2, r3"]),
        (6, 1, &["4 smlal r0, r1, r2, r3"]),
        (7, 7, &["4 sdiv r0, r1, r2"]),
        // An IT behind 16 bits is folded, behind 32 bits not.
        (2, 2, &["2 cmp r0, #0", "2 it ne", "2 movne r0, #1"]),
        (3, 3, &["4 cmp.w r8, #0", "2 it ne", "2 movne r0, #1"]),
    ] {
        assert_eq!(straight(Core::M3, lines), m3, "M3 {lines:?}");
        assert_eq!(straight(Core::M4, lines), m4, "M4 {lines:?}");
    }
}

/// 100166, table 7-1 and section 7.2.3.
#[test]
fn the_fpu_of_the_cortex_m4_by_hand() {
    for (cycles, lines) in [
        (2, &["4 vadd.f32 s0, s1, s2", "4 vmul.f32 s3, s4, s5"][..]),
        // The next instruction takes the result.
        (3, &["4 vadd.f32 s0, s1, s2", "4 vmul.f32 s3, s0, s5"]),
        (6, &["4 vfma.f32 s0, s1, s2", "4 vfma.f32 s3, s4, s5"]),
        // As an addend it does not wait, as a factor it does.
        (4, &["4 vmul.f32 s0, s1, s2", "4 vmla.f32 s0, s4, s5"]),
        (5, &["4 vmul.f32 s0, s1, s2", "4 vmla.f32 s3, s0, s5"]),
        (14, &["4 vdiv.f32 s0, s1, s2"]),
        (2, &["4 vldr s0, [r0]"]),
        (3, &["4 vldr s0, [r0]", "4 vldr s1, [r0, #4]"]),
        (5, &["4 vldmia r0!, {s0, s1, s2, s3}"]),
        (3, &["4 vldr d0, [r0]"]),
        (1, &["4 vmov s0, r0"]),
        (2, &["4 vmov r0, r1, d0"]),
    ] {
        assert_eq!(straight(Core::M4, lines), cycles, "{lines:?}");
    }
}

#[test]
fn branches_of_cortex_m0_to_m4_by_hand() {
    // Nine of ten branches are taken: by the address in the instruction the refill is 1, 2 on the M0.
    let lines = ["2 ldr r0, [r1]", "2 subs r2, #1", "2 bne #0x0"];
    assert_eq!(ten_times(Core::M0, 0, &lines), 10 * (2 + 1 + 1) + 9 * 2);
    assert_eq!(ten_times(Core::M0Plus, 0, &lines), 10 * (2 + 1 + 1) + 9);
    assert_eq!(ten_times(Core::M3, 0, &lines), 10 * (2 + 1 + 1) + 9);
    assert_eq!(ten_times(Core::M4, 0, &lines), 10 * (2 + 1 + 1) + 9);
    // A target of 32 bits in two words takes one more.
    let wide = ["4 ldr.w r0, [r1]", "2 subs r2, #1", "2 bne #0x0"];
    assert_eq!(ten_times(Core::M4, 0, &wide), 10 * (2 + 1 + 1) + 9);
    assert_eq!(ten_times(Core::M4, 2, &wide), 10 * (2 + 1 + 1) + 9 * 2);
}

/// DDI 0432C, table 3-1, and DDI 0484C, table 3.1.
#[test]
fn jumps_of_cortex_m0_and_m0_plus_by_hand() {
    for (m0, m0_plus, m3, text) in [
        (3, 2, 2, "b #0x100"),
        (4, 3, 2, "bl #0x100"),
        (3, 2, 3, "bx lr"),
        (4 + 2, 3 + 2, 1 + 2 + 3, "pop {r4, pc}"),
        (3, 2, 2, "beq #0x100"),
        (3, 2, 2, "cbz r0, #0x100"),
    ] {
        for (core, cycles) in [(Core::M0, m0), (Core::M0Plus, m0_plus), (Core::M3, m3)] {
            let mut interval = Interval::default();
            interval.executed.insert(0, executed(2, 1, text));
            interval.executed.insert(0x100, executed(2, 1, "nop"));
            let block = |address| Block {
                address,
                instructions: 1,
            };
            interval.edges.insert((None, block(0)), 1);
            interval.edges.insert((Some(block(0)), block(0x100)), 1);
            assert_eq!(
                interval.cycles(core).expect("a model").cycles,
                cycles + 1,
                "{core:?} {text}"
            );
        }
    }
}

#[test]
fn cortex_m0_by_hand() {
    for (cycles, lines) in [
        (2, &["2 ldr r0, [r1]"][..]),
        (4, &["2 ldr r0, [r1]", "2 ldr r2, [r3]"]),
        (4, &["2 ldrb r0, [r1, r2]", "2 strb r0, [r1, r2]"]),
        (1, &["2 muls r0, r1, r0"]),
        (3, &["2 adds r0, r0, r1", "2 lsls r0, r0, #2", "2 mov r8, r0"]),
        (5, &["2 ldm r0!, {r1, r2, r3, r4}"]),
        (3, &["2 stm r0!, {r1, r2}"]),
        (6, &["2 push {r4, r5, r6, r7, lr}"]),
        (4, &["2 pop {r4, r5, r6}"]),
        (3, &["2 adds r1, #4", "2 ldr r0, [r1]"]),
        (2, &["2 sxtb r0, r1", "2 uxth r0, r0"]),
        (1, &["2 bne #0x10"]),
    ] {
        for core in [Core::M0, Core::M0Plus] {
            assert_eq!(straight(core, lines), cycles, "{core:?} {lines:?}");
        }
    }
}

/// The user manual of the CV32E40P, chapter "Pipeline Details", table "Cycle counts per instruction type".
#[test]
fn risc_v_by_hand() {
    for (cycles, lines) in [
        (1, &["4 add a0,a0,a1"][..]),
        (2, &["4 add a0,a0,a1", "4 sub a0,a0,a2"]),
        (2, &["4 lw a0,0(a1)", "4 lw a2,4(a1)"]),
        (3, &["4 lw a0,0(a1)", "4 add a0,a0,a2"]),
        (3, &["4 lw a0,0(a1)", "4 add a3,a3,a4", "4 add a0,a0,a2"]),
        (3, &["4 lw a0,0(a1)", "4 lw a2,0(a0)"]),
        (2, &["4 sw a0,0(a1)", "4 sb a0,0(a1)"]),
        (2, &["4 mul a0,a1,a2", "4 add a0,a0,a1"]),
        (5, &["4 mulh a0,a1,a2"]),
        (19, &["4 div a0,a1,a2"]),
        (1, &["4 bne a0,a1,-4"]),
        (3, &["2 mv a0,a1", "2 li a2,1", "2 nop"]),
    ] {
        assert_eq!(straight(Core::Rv32, lines), cycles, "{lines:?}");
    }
    // A taken branch takes 3.
    let lines = ["2 lw a0,0(a1)", "2 addi a1,a1,4", "4 bne a1,a2,-4"];
    assert_eq!(ten_times(Core::Rv32, 0, &lines), 10 * 3 + 9 * 2);
}

#[test]
fn the_cortex_m33_waits_for_loads_only_where_they_are_used() {
    for (cycles, lines) in [
        (2, &["2 ldr r0, [r1]", "2 adds r2, #1"][..]),
        (3, &["2 ldr r0, [r1]", "2 adds r0, #1"]),
        (2, &["4 smlad r0, r1, r2, r0", "4 smlad r0, r3, r4, r0"]),
        (4, &["4 ldm.w r0!, {r1, r2, r3, r4}"]),
    ] {
        assert_eq!(straight(Core::M33, lines), cycles, "{lines:?}");
    }
}

/// `ARMScheduleM7.td`: latencies and units of the table, M7Read_ISS, ReadMAC, BeginGroup, SingleIssue.
#[test]
fn cortex_m7_by_hand() {
    for (cycles, lines) in [
        (1, &["2 adds r0, r0, r1", "2 adds r2, r2, r3"][..]),
        (2, &["2 adds r0, r0, r1", "2 adds r2, r0, r3"]),
        // Two arithmetic units, two instructions a cycle.
        (2, &["2 adds r0, r0, r1", "2 adds r2, r2, r3", "2 adds r4, r4, r5"]),
        // Words are there a cycle later, bytes two.
        (2, &["2 ldr r0, [r1]", "2 adds r0, r0, r2"]),
        (3, &["2 ldrb r0, [r1]", "2 adds r0, r0, r2"]),
        // Addresses are wanted a cycle before arithmetic.
        (3, &["2 adds r1, #4", "2 ldr r0, [r1]"]),
        // Two loads, but one store.
        (1, &["2 ldr r0, [r1]", "2 ldr r2, [r3]"]),
        (2, &["2 str r0, [r1]", "2 str r2, [r3]"]),
        // One multiplier, whose sums are wanted a cycle late.
        (2, &["4 smlad r0, r1, r2, r0", "4 smlad r0, r3, r4, r0"]),
        (3, &["4 smlad r0, r1, r2, r0", "2 adds r0, r0, r5"]),
        (1, &["2 ldr r5, [r6]", "4 smlad r0, r1, r2, r0"]),
        // The first of its cycle.
        (2, &["2 ldr r5, [r6]", "4 sxtb16 r0, r1"]),
        (1, &["4 sxtb16 r0, r1", "2 ldr r5, [r6]"]),
        // Two words a cycle, beside nothing.
        (3, &["4 ldm.w r0!, {r1, r2, r3, r4}", "2 adds r5, r5, r6"]),
        (4, &["4 vfma.f32 s0, s1, s2", "4 vfma.f32 s0, s3, s4"]),
        (4, &["4 vadd.f32 s0, s1, s2", "4 vadd.f32 s3, s0, s4"]),
    ] {
        assert_eq!(straight(Core::M7, lines), cycles, "{lines:?}");
    }
    // Taken nine times of ten, left once: the tenth is mispredicted, though the trace of this loop ends with it.
    let lines = ["2 subs r2, #1", "2 bne #0x0"];
    assert_eq!(ten_times(Core::M7, 0, &lines), 10 * 2);
}

/// `ARMScheduleM55.td`: its own pictures of beats, latencies and units of the table, pairs of instructions of 16 bits.
#[test]
fn cortex_m55_by_hand() {
    // vldrb q0, [r0], #16; vldrb q2, [r0], #16; vmlava.s8 r2, q0, q2; vadd.i32 q0, q0, r8; vstrb q0, [r0], #16; vqrdmulh.s32 q0, q0, r6.
    let [load, other, product, sum, store, high] = [
        "4 0xecb01e10",
        "4 0xecb05e10",
        "4 0xeef02f24",
        "4 0xee210f48",
        "4 0xeca01e10",
        "4 0xfe210e66",
    ];
    for (cycles, lines) in [
        (1, &[load][..]),
        // The second load waits for the pipe.
        (3, &[load, other]),
        (2, &[load, sum]),
        (4, &[load, other, product]),
        // LD/ST, integer, multiplier, LD/ST one behind the other; the product is there a cycle late, and stored a cycle late.
        (4, &[load, sum, high, store]),
        // The accumulated sum waits for the one before.
        (3, &[product, product]),
        (3, &[high, sum]),
        // Two of 16 bits, of which one is an addition of a constant.
        (1, &["2 ldr r0, [r1]", "2 adds r2, #1"]),
        (2, &["2 adds r0, r0, r1", "2 adds r2, r2, r3"]),
        (2, &["2 ldr r0, [r1]", "4 add.w r2, r2, #1"]),
        (3, &["2 ldr r0, [r1]", "2 adds r0, r0, r2"]),
        (3, &["4 smlad r0, r1, r2, r0", "4 smlad r0, r3, r4, r0"]),
        (2, &["4 smlad r0, r1, r2, r0", "4 smlad r5, r3, r4, r5"]),
        (3, &["4 add.w r0, r1, r2, lsl #2", "2 adds r0, r0, r2"]),
    ] {
        assert_eq!(straight(Core::M55, lines), cycles, "{lines:?}");
    }
    // The loop's end takes nothing: a load and a product a round, two cycles.
    assert_eq!(ten_times(Core::M55, 0, &[load, product, "4 0xf00fc005"]), 20);
}

#[test]
fn unaligned_accesses_take_what_they_are_split_into() {
    let mut interval = Interval::default();
    let mut load = executed(4, 10, "ldr.w r0, [r1]");
    (load.split, load.crossing) = (7, 2);
    interval.executed.insert(0, load);
    let block = Block {
        address: 0,
        instructions: 1,
    };
    interval.edges.insert((None, block), 1);
    for (core, cycles) in [(Core::M0, 2), (Core::M4, 2 + 7), (Core::M7, 1 + 2)] {
        assert_eq!(interval.cycles(core).expect("a model").cycles, cycles, "{core:?}");
    }
    assert_eq!(interval.cycles(Core::A64), None);
}

fn thumb(text: &str) -> Instruction {
    super::thumb::decode(0, &executed(4, 1, text), false)
}

#[test]
fn operands_are_read_and_written() {
    let r = |numbers: &[u32]| {
        numbers
            .iter()
            .fold(Registers::NONE, |all, &at| all.and(Registers::integer(at)))
    };
    let flags = Registers::FLAGS;
    for (text, kind, reads, addends, writes) in [
        (
            "smlad r0, r1, r2, r3",
            Kind::MultiplyAccumulate,
            r(&[1, 2]),
            r(&[3]),
            r(&[0]),
        ),
        (
            "smlal r0, r1, r2, r3",
            Kind::MultiplyAccumulateLong,
            r(&[2, 3]),
            r(&[0, 1]),
            r(&[0, 1]),
        ),
        (
            "umull r0, r1, r2, r3",
            Kind::MultiplyLong,
            r(&[2, 3]),
            r(&[]),
            r(&[0, 1]),
        ),
        (
            "muls r0, r1, r0",
            Kind::Multiply,
            r(&[0, 1]),
            r(&[]),
            r(&[0]).and(flags),
        ),
        ("adds r0, #4", Kind::Alu, r(&[0]), r(&[]), r(&[0]).and(flags)),
        ("addeq r0, r1, r2", Kind::Alu, r(&[1, 2]).and(flags), r(&[]), r(&[0])),
        ("mvns r0, r1", Kind::Alu, r(&[1]), r(&[]), r(&[0]).and(flags)),
        ("bic r0, r1, #3", Kind::Alu, r(&[1]), r(&[]), r(&[0])),
        ("bics r0, r1", Kind::Alu, r(&[0, 1]), r(&[]), r(&[0]).and(flags)),
        ("cmp r0, r1", Kind::Alu, r(&[0, 1]), r(&[]), flags),
        ("pkhbt r8, sb, r7, lsl #16", Kind::Alu, r(&[9, 7]), r(&[]), r(&[8])),
        ("bls #0x10", Kind::ConditionalBranch, flags, r(&[]), r(&[])),
        ("ble.w #0x10", Kind::ConditionalBranch, flags, r(&[]), r(&[])),
        ("blt #0x10", Kind::ConditionalBranch, flags, r(&[]), r(&[])),
        ("b.w #0x10", Kind::Branch, r(&[]), r(&[]), r(&[])),
        ("bl #0x10", Kind::Call, r(&[]), r(&[]), Registers::LINK),
        ("bx lr", Kind::IndirectBranch, Registers::LINK, r(&[]), r(&[])),
        (
            "mov pc, lr",
            Kind::IndirectBranch,
            Registers::LINK,
            r(&[]),
            Registers::COUNTER,
        ),
        ("ldr r0, [r1, r2, lsl #2]", Kind::Load, r(&[1, 2]), r(&[]), r(&[0])),
        (
            "ldrhhs r0, [r1, #-4]!",
            Kind::Load,
            r(&[1]).and(flags),
            r(&[]),
            r(&[0, 1]),
        ),
        ("ldr r0, [r1], #4", Kind::Load, r(&[1]), r(&[]), r(&[0, 1])),
        ("strd r0, r1, [sp, #8]", Kind::StoreTwo, r(&[0, 1, 13]), r(&[]), r(&[])),
        (
            "ldm.w r0, {r1, r4-r7}",
            Kind::LoadMultiple(5),
            r(&[0]),
            r(&[]),
            r(&[1, 4, 5, 6, 7]),
        ),
        (
            "push.w {r4-r6, lr}",
            Kind::StoreMultiple(4),
            r(&[4, 5, 6, 14, 13]),
            r(&[]),
            r(&[13]),
        ),
        ("pop {r4, pc}", Kind::Return(2), r(&[13]), r(&[]), r(&[4, 15, 13])),
        ("itte ne", Kind::IfThen, flags, r(&[]), r(&[])),
        ("tbb [pc, r3]", Kind::TableBranch, r(&[3, 15]), r(&[]), r(&[])),
    ] {
        let found = thumb(text);
        assert_eq!(
            (found.kind, found.reads, found.addends, found.writes),
            (kind, reads, addends, writes),
            "{text}"
        );
    }
    let s = Registers::float;
    for (text, kind, reads, addends, writes) in [
        (
            "vfma.f32 s0, s1, s2",
            Kind::FloatMultiplyAccumulate,
            s(1, 2),
            s(0, 1),
            s(0, 1),
        ),
        (
            "vldmia r0!, {s0, s1, s2, s3}",
            Kind::FloatLoad(4),
            r(&[0]),
            r(&[]),
            s(0, 4).and(r(&[0])),
        ),
        (
            "vpush {d8, d9}",
            Kind::FloatStore(4),
            s(16, 4).and(r(&[13])),
            r(&[]),
            r(&[13]),
        ),
        ("vldr d1, [r0, #8]", Kind::FloatLoad(2), r(&[0]), r(&[]), s(2, 2)),
        (
            "vstr s3, [r0]",
            Kind::FloatStore(1),
            r(&[0]).and(s(3, 1)),
            r(&[]),
            r(&[]),
        ),
        ("vmov r0, r1, d0", Kind::FloatMove, s(0, 2), r(&[]), r(&[0, 1])),
        ("vmov d0, r0, r1", Kind::FloatMove, r(&[0, 1]), r(&[]), s(0, 2)),
        ("vcmp.f32 s0, s1", Kind::Float, s(0, 2), r(&[]), Registers::FPSCR),
        (
            "vmrs apsr_nzcv, fpscr",
            Kind::FloatMove,
            Registers::FPSCR,
            r(&[]),
            flags,
        ),
    ] {
        let found = thumb(text);
        assert_eq!(
            (found.kind, found.reads, found.addends, found.writes),
            (kind, reads, addends, writes),
            "{text}"
        );
    }
}
