//! RISC-V: a function is begun with t0 as the link register; t registers are free at a function's begin and end.

use core::arch::naked_asm;
use core::mem::offset_of;

use super::frame::{Frame, NEXT, PATTERNS, compare};

#[cfg(target_arch = "riscv32")]
macro_rules! word {
    ($load_or_store:literal) => {
        concat!($load_or_store, "w ")
    };
}
#[cfg(target_arch = "riscv64")]
macro_rules! word {
    ($load_or_store:literal) => {
        concat!($load_or_store, "d ")
    };
}

/// Loads or stores s1 to s11 from an address on, behind s0.
macro_rules! all_but_s0 {
    ($load_or_store:literal $at:literal) => {
        all_but_s0!($load_or_store $at: "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11")
    };
    ($load_or_store:literal $at:literal: $($n:literal)+) => {
        concat!($(word!($load_or_store), "s", $n, ", {word}*", $n, "(", $at, ")\n"),+)
    };
}

/// Begins a function: ra has its return address, t0 where it goes on.
///
/// # Safety
/// Called by `naked!` alone.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter() {
    naked_asm!(
        ".option push",
        ".option norelax",
        "la t1, {next}",
        concat!(word!("l"), "t2, (t1)"),
        "addi t3, t2, {frame}",
        concat!(word!("s"), "t3, (t1)"),
        concat!(word!("s"), "s0, (t2)"),
        all_but_s0!("s" "t2"),
        concat!(word!("s"), "sp, {sp_at}(t2)"),
        concat!(word!("s"), "ra, {back}(t2)"),
        concat!(word!("s"), "t0, {function}(t2)"),
        "la t1, {patterns}",
        concat!(word!("l"), "s0, (t1)"),
        all_but_s0!("l" "t1"),
        "la ra, {leave}",
        "jr t0",
        ".option pop",
        word = const size_of::<usize>(),
        sp_at = const 12 * size_of::<usize>(),
        frame = const size_of::<Frame>(),
        back = const offset_of!(Frame, back),
        function = const offset_of!(Frame, function),
        next = sym NEXT,
        patterns = sym PATTERNS,
        leave = sym leave,
    )
}

/// Ends a function.
///
/// # Safety
/// Returned to by a function that [`enter`] began.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!(
        ".option push",
        ".option norelax",
        "mv t3, sp",
        "addi sp, sp, -16",
        concat!(word!("s"), "a0, (sp)"),
        concat!(word!("s"), "a1, {word}(sp)"),
        "la t1, {next}",
        concat!(word!("l"), "a0, (t1)"),
        "addi a0, a0, -{frame}",
        concat!(word!("s"), "a0, (t1)"),
        "addi t2, a0, {left}",
        concat!(word!("s"), "s0, (t2)"),
        all_but_s0!("s" "t2"),
        concat!(word!("s"), "t3, {sp_at}(t2)"),
        "mv s0, a0",
        "call {compare}",
        concat!(word!("l"), "a0, (sp)"),
        concat!(word!("l"), "a1, {word}(sp)"),
        all_but_s0!("l" "s0"),
        concat!(word!("l"), "sp, {sp_at}(s0)"),
        concat!(word!("l"), "ra, {back}(s0)"),
        concat!(word!("l"), "s0, (s0)"),
        "ret",
        ".option pop",
        word = const size_of::<usize>(),
        sp_at = const 12 * size_of::<usize>(),
        frame = const size_of::<Frame>(),
        left = const offset_of!(Frame, left),
        back = const offset_of!(Frame, back),
        next = sym NEXT,
        compare = sym compare,
    )
}
