//! Transpositions of bytes, four by four in words.

use crate::ops::movement::CopyLoop;

/// The two inner axes of a copy where they are a transposition: that along which what is written are neighbours, and that of which what is read are.
pub(crate) fn axes(middle: CopyLoop, inner: CopyLoop) -> Option<[CopyLoop; 2]> {
    let is_transposed = |along: &CopyLoop, across: &CopyLoop| {
        // Along the second both may be neighbours only where the copy is none of a plane. In the destination it has the longer step, which is what makes load
        // refuse operands that overlap.
        along.to == 1 && across.from == 1 && across.to > 1 && across.count > 1
    };
    if is_transposed(&inner, &middle) {
        Some([inner, middle])
    } else if is_transposed(&middle, &inner) {
        Some([middle, inner])
    } else {
        None
    }
}

/// A plane of bytes: the element at `i` of the one axis and `j` of the other is read at `i * ahead + j` and written to `i + j * step`.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) along: usize,
    /// Modulo 2^N.
    pub(crate) ahead: usize,
    pub(crate) across: usize,
    pub(crate) step: usize,
}

impl Plane {
    /// # Safety
    /// 1. The `along * across` elements lie at both `to` and `from`, which do not overlap, at least four along each axis.
    /// 2. The core reads and writes words at every fourth element along the axes.
    #[inline(never)]
    pub(crate) unsafe fn by_words(&self, mut to: *mut u8, mut from: *const u8) {
        let (along, across) = ((self.along, 1, self.ahead), (self.across, self.step, 1));
        // The longer axis innermost.
        let ((inner, step, ahead), (outer, next, beside)) = if self.along < self.across {
            (across, along)
        } else {
            (along, across)
        };
        let steps = |blocks: usize| {
            [
                self.ahead,
                self.step,
                ahead.wrapping_mul(4),
                step.wrapping_mul(4),
                blocks,
            ]
        };
        let (blocks, last) = (steps(inner / 4), inner.wrapping_sub(4));
        let mut left = outer;
        loop {
            // SAFETY: `blocks` blocks, and where `inner` is no multiple of four its last four elements, of four lines of the plane (point 1).
            unsafe {
                blocks_of_four(to, from, &blocks);
                if !inner.is_multiple_of(4) {
                    let (to, from) = (
                        to.wrapping_add(last.wrapping_mul(step)),
                        from.wrapping_add(last.wrapping_mul(ahead)),
                    );
                    blocks_of_four(to, from, &steps(1));
                }
            }
            left = left.wrapping_sub(4);
            if left == 0 {
                return;
            }
            let by = left.min(4);
            left = left.max(4);
            to = to.wrapping_add(by.wrapping_mul(next));
            from = from.wrapping_add(by.wrapping_mul(beside));
        }
    }

    /// # Safety
    /// The `along * across` elements lie at both `to` and `from`, which do not overlap.
    #[inline(never)]
    pub(crate) unsafe fn by_bytes(&self, to: *mut u8, from: *const u8) {
        #[cfg(kernel_isa = "mve")]
        // SAFETY: `transpose` has the contract of this function.
        if unsafe { helium::transpose(self, to, from) } {
            return;
        }
        // The longer axis innermost.
        let (lines, [next_to, next_from]) = if self.along < self.across {
            (self.along, [1, self.ahead])
        } else {
            (self.across, [self.step, 1])
        };
        let (mut to, mut from) = (to, from);
        for _ in 0..lines {
            // SAFETY: a line of `across` or `along` elements, `step` and `ahead` apart, of the plane that lies at both (fn docs).
            unsafe {
                if self.along < self.across {
                    spread(to, from, self.across, self.step);
                } else {
                    gather(to, from, self.along, self.ahead);
                }
            }
            (to, from) = (to.wrapping_add(next_to), from.wrapping_add(next_from));
        }
    }
}

/// As many blocks of four by four as the last of the numbers says, at least one. The others are the steps in what is read and what is written, within a block
/// and from a block to the next.
///
/// # Safety
/// `blocks` blocks of four by four elements are readable at `from` and writable at `to`, at addresses where the core reads and writes words.
#[cfg(not(kernel_isa = "cortex_m"))]
#[inline(always)]
unsafe fn blocks_of_four(mut to: *mut u8, mut from: *const u8, &[ahead, step, next, beside, blocks]: &[usize; 5]) {
    for _ in 0..blocks {
        // SAFETY: each of `blocks` blocks has four words at `from` and at `to`, where the core reads and writes words (fn docs).
        unsafe {
            let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(|i| word(from.wrapping_add(ahead.wrapping_mul(i))));
            swap::<8>(&mut a, &mut b);
            swap::<8>(&mut c, &mut d);
            swap::<16>(&mut a, &mut c);
            swap::<16>(&mut b, &mut d);
            for (i, word) in [a, b, c, d].into_iter().enumerate() {
                put(to.wrapping_add(step.wrapping_mul(i)), word);
            }
        }
        to = to.wrapping_add(beside);
        from = from.wrapping_add(next);
    }
}

/// The same in 26 instructions for sixteen bytes: each pair of words swaps what differs.
///
/// # Safety
/// As for the portable `blocks_of_four`, with the numbers of `steps`.
#[cfg(kernel_isa = "armv7m")]
#[unsafe(naked)]
unsafe extern "C" fn blocks_of_four(to: *mut u8, from: *const u8, steps: &[usize; 5]) {
    naked!(
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        "ldm r2, {{r2, r3, r9, r10, r12}}",
        "add lr, r2, r2, lsl #1",
        "add r11, r3, r3, lsl #1",
        "2: ldr r5, [r1, r2]",
        "ldr r6, [r1, r2, lsl #1]",
        "ldr r7, [r1, lr]",
        "ldr r4, [r1]",
        "add r1, r9",
        "eor r8, r5, r4, lsr #8",
        "and r8, r8, #0x00FF00FF",
        "eor r5, r5, r8",
        "eor r4, r4, r8, lsl #8",
        "eor r8, r7, r6, lsr #8",
        "and r8, r8, #0x00FF00FF",
        "eor r7, r7, r8",
        "eor r6, r6, r8, lsl #8",
        "lsr r8, r4, #16",
        "bfi r4, r6, #16, #16",
        "bfi r6, r8, #0, #16",
        "lsr r8, r5, #16",
        "bfi r5, r7, #16, #16",
        "bfi r7, r8, #0, #16",
        "str r5, [r0, r3]",
        "str r6, [r0, r3, lsl #1]",
        "str r7, [r0, r11]",
        "str r4, [r0]",
        "add r0, r10",
        "subs r12, #1",
        "bne 2b",
        "pop {{r4-r11, pc}}",
    )
}

/// The same in 45 instructions.
///
/// # Safety
/// As for the portable `blocks_of_four`, with the numbers of `steps`.
#[cfg(kernel_isa = "armv6m")]
#[unsafe(naked)]
unsafe extern "C" fn blocks_of_four(to: *mut u8, from: *const u8, steps: &[usize; 5]) {
    naked!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r4-r7}}",
        // r8, r9: the steps; r10, r11: from the last words of a block to the next one; r12: the end of what is written.
        "ldm r2!, {{r3-r7}}",
        "muls r7, r6, r7",
        "adds r7, r7, r0",
        "mov r12, r7",
        "mov r8, r3",
        "lsls r3, r3, #2",
        "subs r5, r5, r3",
        "mov r10, r5",
        "mov r9, r4",
        "lsls r4, r4, #2",
        "subs r6, r6, r4",
        "mov r11, r6",
        "ldr r2, 3f",
        "2: ldr r4, [r1]",
        "add r1, r8",
        "ldr r5, [r1]",
        "add r1, r8",
        "ldr r6, [r1]",
        "add r1, r8",
        "ldr r7, [r1]",
        "add r1, r8",
        "add r1, r10",
        "lsrs r3, r4, #8",
        "eors r3, r5",
        "ands r3, r2",
        "eors r5, r3",
        "lsls r3, r3, #8",
        "eors r4, r3",
        "lsrs r3, r6, #8",
        "eors r3, r7",
        "ands r3, r2",
        "eors r7, r3",
        "lsls r3, r3, #8",
        "eors r6, r3",
        "lsrs r3, r4, #16",
        "eors r3, r6",
        "uxth r3, r3",
        "eors r6, r3",
        "lsls r3, r3, #16",
        "eors r4, r3",
        "lsrs r3, r5, #16",
        "eors r3, r7",
        "uxth r3, r3",
        "eors r7, r3",
        "lsls r3, r3, #16",
        "eors r5, r3",
        "str r4, [r0]",
        "add r0, r9",
        "str r5, [r0]",
        "add r0, r9",
        "str r6, [r0]",
        "add r0, r9",
        "str r7, [r0]",
        "add r0, r9",
        "add r0, r11",
        "cmp r0, r12",
        "bne 2b",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
        ".p2align 2",
        "3: .word 0x00FF00FF",
    )
}

#[cfg(kernel_isa = "mve")]
mod helium {
    use super::Plane;

    /// Eight at a time to or from addresses with a step between, along the longer axis. Whether the step's multiples have 16 bits, and it has done so.
    ///
    /// # Safety
    /// The plane's `along * across` elements lie at both `to` and `from`, which do not overlap.
    #[inline(always)]
    pub(super) unsafe fn transpose(plane: &Plane, to: *mut u8, from: *const u8) -> bool {
        const LARGEST: usize = 9000;
        // Lines, elements of a line, steps between lines in what is written and read, and along a line.
        // SAFETY: the axes passed on are those of the plane, whose elements lie at both (fn docs); steps are at most `LARGEST`, so that their multiples fit 16
        // bits.
        unsafe {
            if plane.along < plane.across && plane.step <= LARGEST {
                spread(
                    to,
                    from,
                    &[plane.along, plane.across, 1, plane.ahead, plane.step, plane.step << 3],
                );
                true
            } else if plane.ahead <= LARGEST {
                gather(
                    to,
                    from,
                    &[plane.across, plane.along, plane.step, 1, plane.ahead, plane.ahead << 3],
                );
                true
            } else {
                false
            }
        }
    }

    /// Defines a loop over lines; `$load` and `$store` of eight elements.
    macro_rules! lines {
        ($name:ident, $line:literal, $other:literal, $load:literal, $store:literal) => {
            /// As many lines and elements as the first two numbers say, none of them 0.
            #[unsafe(naked)]
            unsafe extern "C" fn $name(to: *mut u8, from: *const u8, args: &[usize; 6]) {
                naked!(
                    ".cpu cortex-m55",
                    "push {{r4-r8, lr}}",
                    "ldm r2, {{r3-r8}}",
                    "movs r2, #0",
                    "vidup.u16 q1, r2, #1",
                    "vmul.i16 q1, q1, r7",
                    concat!("1: mov r2, ", $line),
                    concat!("mov r12, ", $other),
                    "dlstp.16 lr, r4",
                    concat!("2: ", $load),
                    $store,
                    "add r12, r8",
                    "letp lr, 2b",
                    "add r0, r5",
                    "add r1, r6",
                    "subs r3, #1",
                    "bne 1b",
                    "pop {{r4-r8, pc}}",
                )
            }
        };
    }

    lines! { spread, "r1", "r0", "vldrb.u16 q0, [r2], #8", "vstrb.16 q0, [r12, q1]" }
    lines! { gather, "r0", "r1", "vldrb.u16 q0, [r12, q1]", "vstrb.16 q0, [r2], #8" }
}

/// Neighbours to elements with a step between.
///
/// # Safety
/// `count` elements at `from`, and at `to`, `step` apart.
#[inline(always)]
unsafe fn spread(mut to: *mut u8, mut from: *const u8, count: usize, step: usize) {
    let mut left = count;
    // SAFETY: `left` of the `count` elements that this function's contract guarantees remain at both.
    unsafe {
        while left >= 4 {
            for i in 0..4 {
                to.write(from.add(i).read());
                to = to.wrapping_add(step);
            }
            from = from.wrapping_add(4);
            left -= 4;
        }
        while left > 0 {
            to.write(from.read());
            (to, from) = (to.wrapping_add(step), from.wrapping_add(1));
            left -= 1;
        }
    }
}

/// Elements with a step between to neighbours.
///
/// # Safety
/// `count` elements at `to`, and at `from`, `ahead` apart.
#[inline(always)]
unsafe fn gather(mut to: *mut u8, mut from: *const u8, count: usize, ahead: usize) {
    let mut left = count;
    // SAFETY: `left` of the `count` elements that this function's contract guarantees remain at both.
    unsafe {
        while left >= 4 {
            for i in 0..4 {
                to.add(i).write(from.read());
                from = from.wrapping_add(ahead);
            }
            to = to.wrapping_add(4);
            left -= 4;
        }
        while left > 0 {
            to.write(from.read());
            (to, from) = (to.wrapping_add(1), from.wrapping_add(ahead));
            left -= 1;
        }
    }
}

/// Swaps every second `PLACES` bits of `low`, from these on, with those of `high` below.
#[cfg(not(kernel_isa = "cortex_m"))]
#[inline(always)]
fn swap<const PLACES: u32>(low: &mut u32, high: &mut u32) {
    let mask = if PLACES == 8 { 0x00FF_00FF } else { 0xFFFF };
    let differ = ((*low >> PLACES) ^ *high) & mask;
    *high ^= differ;
    *low ^= differ << PLACES;
}

/// # Safety
/// 1. Four bytes are readable at `from`.
/// 2. On RISC-V, `from` is a multiple of four.
#[cfg(not(kernel_isa = "cortex_m"))]
#[inline(always)]
unsafe fn word(from: *const u8) -> u32 {
    // SAFETY: four readable bytes (point 1), aligned where the read needs it (point 2).
    unsafe {
        if cfg!(any(target_arch = "riscv32", target_arch = "riscv64")) {
            u32::from_le(from.cast::<u32>().read())
        } else {
            u32::from_le(from.cast::<u32>().read_unaligned())
        }
    }
}

/// As [`word`].
///
/// # Safety
/// 1. Four bytes are writable at `to`.
/// 2. On RISC-V, `to` is a multiple of four.
#[cfg(not(kernel_isa = "cortex_m"))]
#[inline(always)]
unsafe fn put(to: *mut u8, word: u32) {
    // SAFETY: four writable bytes (point 1), aligned where the write needs it (point 2).
    unsafe {
        if cfg!(any(target_arch = "riscv32", target_arch = "riscv64")) {
            to.cast::<u32>().write(word.to_le());
        } else {
            to.cast::<u32>().write_unaligned(word.to_le());
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    use super::*;

    #[test]
    fn planes_of_all_sizes_are_turned() {
        for (along, across) in (1..14).flat_map(|along| (1..14).map(move |across| (along, across))) {
            for (wider, longer) in [(0, 0), (3, 1), (1, 4)] {
                let plane = Plane {
                    along,
                    ahead: across + wider,
                    across,
                    step: along + longer,
                };
                let from: std::vec::Vec<u8> = (0..along * plane.ahead).map(|i| (i * 7 % 251) as u8).collect();
                let mut expected = vec![255; across * plane.step];
                for (i, j) in (0..along).flat_map(|i| (0..across).map(move |j| (i, j))) {
                    expected[i + j * plane.step] = from[i * plane.ahead + j];
                }
                let mut found = vec![255; expected.len()];
                // SAFETY: `from` and `found` hold `along` and `across` lines of the plane.
                unsafe { plane.by_bytes(found.as_mut_ptr(), from.as_ptr()) };
                assert_eq!(found, expected, "{plane:?}");
                if along >= 4 && across >= 4 {
                    found.fill(255);
                    // SAFETY: `found` and `from` have the lengths of both, with at least four elements along each axis; hosts read and write words anywhere.
                    unsafe { plane.by_words(found.as_mut_ptr(), from.as_ptr()) };
                    assert_eq!(found, expected, "{plane:?}");
                }
            }
        }
    }

    #[test]
    fn what_may_overlap_is_not_turned() {
        let axis = |count, to, from| CopyLoop { count, to, from };
        let (a, b) = (axis(5, 1, 7), axis(7, 5, 1));
        assert_eq!(axes(a, b), Some([a, b]));
        assert_eq!(axes(b, a), Some([a, b]));
        assert_eq!(axes(axis(5, 1, -7), b).map(|[along, _]| along.from), Some(-7));
        for across in [axis(7, 1, 1), axis(7, 0, 1), axis(1, 5, 1), axis(7, 5, 2)] {
            assert_eq!(axes(a, across), None);
        }
    }
}
