//! The stack: its size, a guard at its end, and a high-water mark by painting.

use core::arch::asm;
use core::ptr;

const PAINT: u32 = 0x5ac3_3ca5;
/// Words at the stack's end that must never change.
const GUARD_WORDS: usize = 8;

unsafe extern "C" {
    /// Top of the stack; from memory.x or the start-up crate's script.
    static _stack_start: u8;
    /// Its address is the stack's size in bytes.
    static _stack_size: u8;
}

/// Bytes reserved for the stack.
pub fn size() -> u32 {
    (&raw const _stack_size).addr() as u32
}

/// Lowest address of the stack.
pub fn limit() -> usize {
    (&raw const _stack_start).addr() - size() as usize
}

/// Runs `work` and returns how many stack bytes it used at its deepest, counted from the call.
///
/// Painting touches the whole reserved stack once, so keep it out of counted intervals.
#[inline(never)]
pub fn high_water(work: &mut dyn FnMut()) -> u32 {
    let base = pointer();
    paint();
    core::hint::black_box(work)();
    let lowest = lowest_touched();
    base.saturating_sub(lowest) as u32
}

/// Marks the end of the stack.
pub(crate) fn arm_guard() {
    for word in guard() {
        // SAFETY: the words lie in the reserved stack, far below the stack pointer.
        unsafe { ptr::write_volatile(word, PAINT) };
    }
}

/// Whether the mark is still there.
pub fn guard_intact() -> bool {
    // SAFETY: the words lie in the reserved stack, far below the stack pointer.
    guard().all(|word| unsafe { ptr::read_volatile(word) } == PAINT)
}

/// The guard's words.
pub fn guard() -> impl Iterator<Item = *mut u32> {
    words(limit(), limit() + GUARD_WORDS * size_of::<u32>())
}

fn words(from: usize, to: usize) -> impl Iterator<Item = *mut u32> {
    (from..to)
        .step_by(size_of::<u32>())
        .map(ptr::with_exposed_provenance_mut)
}

/// Part of its caller's frame, so that it can paint right up to it: everything below the stack pointer is free, as no
/// interrupt comes and the loop calls nothing.
#[inline(always)]
fn paint() {
    for word in words(limit(), pointer()) {
        // SAFETY: between the stack's end and the stack pointer nothing is in use.
        unsafe { ptr::write_volatile(word, PAINT) };
    }
}

#[inline(never)]
fn lowest_touched() -> usize {
    // SAFETY: the words lie between the stack's end and the stack pointer: reserved memory, initialised by `paint`.
    words(limit(), pointer())
        .find(|&word| unsafe { ptr::read_volatile(word) } != PAINT)
        .map_or(limit(), |word| word.addr())
}

#[inline(always)]
fn pointer() -> usize {
    let sp: usize;
    // SAFETY: copies a register.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
        #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
        asm!("mv {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
    }
    sp & !3
}
