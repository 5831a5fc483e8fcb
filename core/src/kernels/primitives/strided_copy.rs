//! Elements along axes, at addresses that are checked once and not for each element: strided copies, and pairs of operands that are broadcast.

use super::broadcast_rows::walk;
#[cfg(any(kernel_isa = "armv6m", target_arch = "riscv32"))]
use super::copy_short;
use super::transpose;
use crate::cells::{Dst, Element, Src};
use crate::ops::elementwise::{Loop, MAX_LOOPS};
use crate::ops::movement::CopyLoop;
use crate::ops::size::product;

/// Bytes from which on the compiler's own `memmove` is worth its call, where a loop of words is not allowed to be unaligned.
const LONG: usize = 24;

/// Whether the core reads and writes words at any address.
const UNALIGNED: bool = !cfg!(any(
    kernel_isa = "armv6m",
    target_arch = "riscv32",
    target_arch = "riscv64"
));

/// An axis of one element.
const ONE: CopyLoop = CopyLoop {
    count: 1,
    to: 1,
    from: 1,
};

/// Whether the core reads and writes vectors of bytes with any step between.
const HELIUM: bool = cfg!(kernel_isa = "mve");

/// Copies along `loops`, outermost first; the source's first element is `from`. Elements are read and written in order, so that the output may lie before
/// what it is copied from. `None` where an element is in neither operand.
pub(crate) fn copy<T: Element>(loops: &[CopyLoop], from: u32, output: Dst<'_, T>, input: Src<'_, T>) -> Option<()> {
    let (mut last, mut low, mut high) = (0_u32, from, from);
    for l in loops {
        let steps = l.count.checked_sub(1)?;
        last = last.checked_add(product(steps, l.to)?)?;
        let reach = product(steps, l.from.unsigned_abs())?;
        if l.from < 0 {
            low = low.checked_sub(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    if low > high || last as usize >= output.cells().len() || high as usize >= input.len() {
        return None;
    }
    let (outer, middle, inner) = match *loops {
        [ref outer @ .., middle, inner] => (outer, middle, inner),
        [inner] => (&[][..], ONE, inner),
        [] => (&[][..], ONE, ONE),
    };
    let (to, from) = (output.as_mut_ptr(), input.as_ptr().wrapping_add(from as usize));
    let (element, count) = (size_of::<T>(), inner.count as usize);
    let lines = CopyLines {
        outer,
        middle,
        element,
        to: to.cast(),
        from: from.cast(),
    };
    let bytes = count.wrapping_mul(element);
    if let (1, Some([along, across])) = (element, transpose::axes(middle, inner)) {
        // SAFETY: all places that the loops reach lie inside the operands, as just checked; where the step of `across` is more in the destination than in the
        // source, the operands do not overlap.
        unsafe { transpose_planes(&lines, &along, &across) };
        return Some(());
    }
    // SAFETY: all places that the loops reach lie inside the operands, as just checked.
    unsafe {
        match (inner.to, inner.from, element) {
            (1, 1, _) => copy_lines(&lines, bytes),
            (1, 0, 1) => repeats(&lines, bytes, |from| u32::from(from.read()).wrapping_mul(0x0101_0101)),
            (1, 0, 2) => repeats(&lines, bytes, |from| {
                u32::from(from.cast::<u16>().read()).wrapping_mul(0x0001_0001)
            }),
            (1, 0, 4) => repeats(&lines, bytes, |from| from.cast::<u32>().read()),
            (step, ahead, _) => lines.each(|to, from| {
                strided::<T>(to.cast(), from.cast(), count, [step as usize, ahead as isize as usize]);
            }),
        }
    }
    Some(())
}

/// The innermost lines of a copy.
struct CopyLines<'l> {
    outer: &'l [CopyLoop],
    middle: CopyLoop,
    /// Bytes of an element.
    element: usize,
    to: *mut u8,
    from: *const u8,
}

impl CopyLines<'_> {
    /// Calls `line` for the first element of each, in order.
    ///
    /// # Safety
    /// `line` may be called for each of them.
    #[inline(always)]
    unsafe fn each(&self, line: impl Fn(*mut u8, *const u8)) {
        let (mut to, mut from) = (self.to, self.from);
        let [step, ahead] = self.bytes(&self.middle);
        let mut index = [0_u32; MAX_LOOPS];
        loop {
            let (mut t, mut s) = (to, from);
            for _ in 0..self.middle.count {
                line(t, s);
                t = t.wrapping_add(step);
                s = s.wrapping_add(ahead);
            }
            // The outer axes advance like an odometer.
            let mut done = true;
            for (l, n) in self.outer.iter().zip(index.iter_mut()).rev() {
                let [step, ahead] = self.bytes(l);
                *n += 1;
                to = to.wrapping_add(step);
                from = from.wrapping_add(ahead);
                if *n < l.count {
                    done = false;
                    break;
                }
                to = to.wrapping_sub(step.wrapping_mul(l.count as usize));
                from = from.wrapping_sub(ahead.wrapping_mul(l.count as usize));
                *n = 0;
            }
            if done {
                return;
            }
        }
    }

    /// The first elements of the outer axes alone.
    #[inline(always)]
    fn without_middle(&self) -> Self {
        Self { middle: ONE, ..*self }
    }

    /// Bytes between neighbours along an axis, in both, modulo 2^N.
    #[inline(always)]
    fn bytes(&self, l: &CopyLoop) -> [usize; 2] {
        [l.to as usize, l.from as isize as usize].map(|step| step.wrapping_mul(self.element))
    }

    /// Whether all lines of `bytes` begin and end at words, in what is written and, where it is asked for, in what is read.
    fn are_words(&self, bytes: usize, read: bool) -> bool {
        let both = |[to, from]: [usize; 2]| to | if read { from } else { 0 };
        let axes = self.outer.iter().chain([&self.middle]).filter(|l| l.count > 1);
        let steps = axes.fold(0, |bits, l| bits | both(self.bytes(l)));
        (steps | bytes | both([self.to as usize, self.from as usize])).is_multiple_of(4)
    }
}

/// Transposes planes of bytes.
///
/// # Safety
/// For each line of `lines`, the `along.count * across.count` elements of the plane that begins there lie inside the operands. Destination and source do not
/// overlap.
#[inline(never)]
unsafe fn transpose_planes(lines: &CopyLines<'_>, along: &CopyLoop, across: &CopyLoop) {
    let planes = lines.without_middle();
    let words = UNALIGNED || {
        let [to, from] = [across.to, along.from as u32];
        planes.are_words((along.count | across.count | to | from) as usize, true)
    };
    let plane = transpose::Plane {
        along: along.count as usize,
        ahead: along.from as isize as usize,
        across: across.count as usize,
        step: across.to as usize,
    };
    // SAFETY: the elements of each plane lie inside operands that do not overlap (fn docs). `by_words` runs with at least four elements along each axis, and
    // only where words may be at any address, or all addresses, steps and counts are multiples of four.
    unsafe {
        if words && !HELIUM && plane.along >= 4 && plane.across >= 4 {
            planes.each(|to, from| plane.by_words(to, from));
        } else {
            planes.each(|to, from| plane.by_bytes(to, from));
        }
    }
}

/// Copies lines of neighbours, the first ones first: where both overlap, no line's `to` is behind its `from`.
///
/// # Safety
/// For each line of `lines`, `bytes` bytes are readable at its source and writable at its destination.
#[inline(never)]
unsafe fn copy_lines(lines: &CopyLines<'_>, bytes: usize) {
    let words = UNALIGNED || lines.are_words(bytes, true);
    #[cfg(any(kernel_isa = "armv6m", target_arch = "riscv32"))]
    if bytes > 0 && bytes <= if words { 4 * copy_short::MOST } else { copy_short::MOST } {
        let [step, ahead] = lines.bytes(&lines.middle);
        let args = copy_short::CopyShortArgs::new(lines.middle.count as usize, [step, ahead], bytes, words);
        // SAFETY: `0 < bytes <= copy_short::MOST` bytes, or words, of each line (fn docs), aligned where `words`. Where both overlap, an element is read before
        // elements behind it are written.
        unsafe { lines.without_middle().each(|to, from| args.copy(to, from)) };
        return;
    }
    // SAFETY: each line has `bytes` bytes at both (fn docs); `words` implies that the core reads words there. A line is read before it is written, or word by
    // word, where the bytes read lie ahead of the bytes written.
    unsafe {
        match bytes {
            1 if UNALIGNED => short::<1>(lines),
            2 if UNALIGNED => short::<2>(lines),
            3 if UNALIGNED => short::<3>(lines),
            // Words that overlap, so that no bytes are left.
            4..=8 if words => lines.each(|to, from| {
                let [a, b] = [0, bytes - 4].map(|at| load(from.add(at)));
                store(to, a);
                store(to.add(bytes - 4), b);
            }),
            9..=16 if words => lines.each(|to, from| {
                let [a, b, c, d] = [0, 4, bytes - 8, bytes - 4].map(|at| load(from.add(at)));
                store(to, a);
                store(to.add(4), b);
                store(to.add(bytes - 8), c);
                store(to.add(bytes - 4), d);
            }),
            _ => lines.each(|to, from| run(to, from, bytes, words)),
        }
    }
}

/// Copies lines of so few bytes that they are an element.
///
/// # Safety
/// As for [`copy_lines`], with lines of `BYTES` bytes.
#[inline(always)]
unsafe fn short<const BYTES: usize>(lines: &CopyLines<'_>) {
    let [step, ahead] = lines.bytes(&lines.middle);
    let count = lines.middle.count as usize;
    // SAFETY: `lines.middle.count` lines of `BYTES` bytes lie `step` and `ahead` apart from each `to` and `from` on (fn docs).
    unsafe {
        lines.without_middle().each(|to, from| {
            let (mut to, mut from) = (to.cast::<[u8; BYTES]>(), from.cast::<[u8; BYTES]>());
            let mut copy = || {
                to.write(from.read());
                (to, from) = (to.wrapping_byte_add(step), from.wrapping_byte_add(ahead));
            };
            for _ in 0..count >> 2 {
                copy();
                copy();
                copy();
                copy();
            }
            for _ in 0..count & 3 {
                copy();
            }
        });
    }
}

/// Writes lines of one element each, of which `pattern` makes a word.
///
/// # Safety
/// 1. `bytes` bytes of each line, a multiple of the element's size, are writable at its destination.
/// 2. An element of one, two or four bytes is readable at its source.
#[inline(always)]
unsafe fn repeats(lines: &CopyLines<'_>, bytes: usize, pattern: impl Fn(*const u8) -> u32) {
    let words = UNALIGNED || lines.are_words(bytes, false);
    // SAFETY: `bytes` bytes are written from `to` on (point 1) and an element is read at `from` (point 2). An element's bytes are those of the word from any
    // multiple of its size on.
    unsafe {
        if words && bytes == 4 {
            return lines.each(|to, from| store(to, pattern(from)));
        }
        if words && (4..=8).contains(&bytes) {
            return lines.each(|to, from| {
                let word = pattern(from);
                store(to, word);
                store(to.add(bytes - 4), word);
            });
        }
        lines.each(|to, from| fill(to, pattern(from), bytes, words));
    }
}

/// A word at any address where the core reads such, else at a multiple of four.
///
/// # Safety
/// 1. Four bytes are readable at `from`.
/// 2. Unless [`UNALIGNED`], `from` is a multiple of four.
#[inline(always)]
unsafe fn load(from: *const u8) -> u32 {
    // SAFETY: four readable bytes at `from` (point 1), aligned where the read needs it (point 2).
    unsafe {
        if UNALIGNED {
            from.cast::<u32>().read_unaligned()
        } else {
            from.cast::<u32>().read()
        }
    }
}

/// As [`load`].
///
/// # Safety
/// 1. Four bytes are writable at `to`.
/// 2. Unless [`UNALIGNED`], `to` is a multiple of four.
#[inline(always)]
unsafe fn store(to: *mut u8, word: u32) {
    // SAFETY: four writable bytes at `to` (point 1), aligned where the write needs it (point 2).
    unsafe {
        if UNALIGNED {
            to.cast::<u32>().write_unaligned(word);
        } else {
            to.cast::<u32>().write(word);
        }
    }
}

/// Copies neighbours, the first ones first: where both overlap, `to` is not behind `from`. `words`: whether the core may copy words there.
///
/// # Safety
/// 1. `len` bytes are writable at `to` and readable at `from`.
/// 2. With `words`, unless [`UNALIGNED`], `to` and `from` are multiples of four.
#[inline(always)]
unsafe fn run(mut to: *mut u8, mut from: *const u8, len: usize, words: bool) {
    let mut left = len;
    // SAFETY: `left` bytes remain of the `len` bytes at both (point 1). Words are copied at multiples of four from the start (point 2).
    unsafe {
        if words {
            while left >= 16 {
                // The bytes read lie ahead of the bytes written.
                for _ in 0..4 {
                    store(to, load(from));
                    (to, from) = (to.add(4), from.add(4));
                }
                left -= 16;
            }
            while left >= 4 {
                store(to, load(from));
                (to, from) = (to.add(4), from.add(4));
                left -= 4;
            }
        } else if left >= LONG {
            core::ptr::copy(from, to, left);
            return;
        }
        while left >= 4 {
            for i in 0..4 {
                to.add(i).write(from.add(i).read());
            }
            (to, from) = (to.add(4), from.add(4));
            left -= 4;
        }
        while left > 0 {
            to.write(from.read());
            (to, from) = (to.add(1), from.add(1));
            left -= 1;
        }
    }
}

/// Copies `count` neighbours that do not overlap.
///
/// # Safety
/// `count` elements at `to` and `from`, aligned for `T`.
#[inline(always)]
pub(crate) unsafe fn line<T: Element>(to: *mut T, from: *const T, count: usize) {
    let words = UNALIGNED || size_of::<T>() == 4;
    // SAFETY: `count * size_of::<T>()` bytes at both are valid (fn docs). Without unaligned words, `words` is set for elements of four bytes only, which are
    // aligned.
    unsafe { run(to.cast(), from.cast(), count.wrapping_mul(size_of::<T>()), words) };
}

/// Writes `len` bytes of a word again and again. `words`: whether the core may write words there.
///
/// # Safety
/// 1. `len` bytes are writable at `to`.
/// 2. With `words`, unless [`UNALIGNED`], `to` is a multiple of four.
#[inline(always)]
unsafe fn fill(mut to: *mut u8, mut word: u32, len: usize, words: bool) {
    let mut left = len;
    // SAFETY: `left` bytes remain of the `len` bytes at `to` (point 1). Words are written at multiples of four from the start (point 2).
    unsafe {
        if words {
            while left >= 16 {
                (0..4).for_each(|at| store(to.add(4 * at), word));
                to = to.add(16);
                left -= 16;
            }
            while left >= 4 {
                store(to, word);
                to = to.add(4);
                left -= 4;
            }
        }
        while left >= 4 {
            for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
                to.add(i).write(byte);
            }
            to = to.add(4);
            left -= 4;
        }
        while left > 0 {
            to.write(word as u8);
            word = word.rotate_right(8);
            to = to.add(1);
            left -= 1;
        }
    }
}

/// Copies elements with `steps` between neighbours, modulo 2^N.
///
/// # Safety
/// `count` elements are writable at `to`, `step` apart, and readable at `from`, `ahead` apart.
#[inline(always)]
unsafe fn strided<T: Element>(mut to: *mut T, mut from: *const T, count: usize, [step, ahead]: [usize; 2]) {
    let mut left = count;
    // SAFETY: `left` of the `count` elements remain at `to` and at `from` (fn docs).
    unsafe {
        if step == 1 {
            while left >= 4 {
                for i in 0..4 {
                    to.add(i).write(from.read());
                    from = from.wrapping_add(ahead);
                }
                to = to.wrapping_add(4);
                left -= 4;
            }
        }
        while left >= 4 {
            for _ in 0..4 {
                to.write(from.read());
                (to, from) = (to.wrapping_add(step), from.wrapping_add(ahead));
            }
            left -= 4;
        }
        while left > 0 {
            to.write(from.read());
            (to, from) = (to.wrapping_add(step), from.wrapping_add(ahead));
            left -= 1;
        }
    }
}

/// Calls `f` on the elements of two operands that meet, outermost axis first, and writes the results in order. `None` where an operand is too short.
pub(crate) fn broadcast<A: Element, B: Element, Y: Element>(
    loops: &[Loop],
    output: Dst<'_, Y>,
    a: Src<'_, A>,
    b: Src<'_, B>,
    f: impl Fn(A, B) -> Y,
) -> Option<()> {
    walk(loops, output, a, b, |line| line.each(&f))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::cell::Cell;
    use std::vec::Vec;

    use super::*;

    fn cells(bytes: &[u8]) -> Vec<Cell<u8>> {
        bytes.iter().copied().map(Cell::new).collect()
    }

    fn values(cells: &[Cell<u8>]) -> Vec<u8> {
        cells.iter().map(Cell::get).collect()
    }

    fn axis(count: u32, to: u32, from: i32) -> CopyLoop {
        CopyLoop { count, to, from }
    }

    /// Every element by itself.
    fn naive(loops: &[CopyLoop], from: i64, to: i64, output: &mut [u8], input: &[u8]) {
        match loops {
            [] => output[to as usize] = input[from as usize],
            [outer, rest @ ..] => {
                for i in 0..i64::from(outer.count) {
                    let (from, to) = (from + i * i64::from(outer.from), to + i * i64::from(outer.to));
                    naive(rest, from, to, output, input);
                }
            }
        }
    }

    #[test]
    fn copies_are_those_of_single_elements() {
        let input: Vec<u8> = (0..250).map(|i| (i * 7 % 251) as u8).collect();
        let all = [
            Vec::new(),
            std::vec![axis(41, 1, 1)],
            std::vec![axis(3, 50, 60), axis(37, 1, 1)],
            std::vec![axis(3, 50, 60), axis(37, 1, 0)],
            std::vec![axis(5, 23, -11), axis(9, 2, 3)],
            std::vec![axis(2, 90, 100), axis(3, 30, 20), axis(4, 7, 5), axis(3, 1, 1)],
            std::vec![axis(2, 90, 100), axis(3, 1, 2), axis(11, 3, -4)],
            std::vec![axis(2, 40, 9), axis(4, 1, 0), axis(9, 4, 1)],
            std::vec![axis(4, 1, -7), axis(9, 4, 11)],
        ];
        for loops in &all {
            for from in [0, 1, 50] {
                let (mut expected, output) = ([0; 200], cells(&[0; 200]));
                let reach = |l: &CopyLoop| i64::from(l.from.min(0)) * (i64::from(l.count) - 1);
                let fits = i64::from(from) + loops.iter().map(reach).sum::<i64>() >= 0;
                let done = copy(loops, from, Dst::from_cells(&output).unwrap(), Src::from_slice(&input));
                assert_eq!(done.is_some(), fits, "{loops:?} from {from}");
                if fits {
                    naive(loops, i64::from(from), 0, &mut expected, &input);
                    assert_eq!(values(&output), expected, "{loops:?} from {from}");
                }
            }
        }
    }

    #[test]
    fn lines_of_every_length_are_copied_and_filled() {
        let input: Vec<u8> = (0..250).map(|i| (i * 7 % 251) as u8).collect();
        for (len, ahead, from) in (1..40).flat_map(|len| [(len, 1, 2), (len, 0, 0), (len, 0, 3)]) {
            let loops = [axis(3, 44, 61), axis(len, 1, ahead)];
            let (mut expected, output) = ([9; 140], cells(&[9; 140]));
            copy(&loops, from, Dst::from_cells(&output).unwrap(), Src::from_slice(&input)).unwrap();
            naive(&loops, i64::from(from), 0, &mut expected, &input);
            assert_eq!(values(&output), expected, "{loops:?}");
        }
    }

    #[test]
    fn wider_elements_are_filled() {
        let input: Vec<u8> = (0..16).map(|i| i * 5 + 1).collect();
        for len in 1..20 {
            let loops = [axis(2, 20, 1), axis(len, 1, 0)];
            fn filled<T: Element>(loops: &[CopyLoop], input: &[u8]) -> Vec<u8> {
                let output: Vec<Cell<u64>> = std::vec![Cell::new(0); 40];
                // SAFETY: 40 words of eight bytes are 320 cells of a byte, aligned for any element and borrowed as long as the view.
                let output = unsafe { core::slice::from_raw_parts(output.as_ptr().cast::<Cell<u8>>(), 320) };
                let words: Vec<u64> = input
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|w| u64::from_le_bytes(*w))
                    .collect();
                // SAFETY: 16 bytes of `words`, which holds at least two words of eight bytes and is aligned for any element.
                let input = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<T>(), 16 / size_of::<T>()) };
                copy(loops, 0, Dst::<T>::from_cells(output).unwrap(), Src::from_slice(input)).unwrap();
                values(output)
            }
            let of = |size: usize| {
                let mut expected = std::vec![0; 320];
                for (line, i) in (0..2).flat_map(|line| (0..len as usize).map(move |i| (line, i))) {
                    expected[(20 * line + i) * size..][..size].copy_from_slice(&input[line * size..][..size]);
                }
                expected
            };
            assert_eq!(filled::<u16>(&loops, &input), of(2));
            assert_eq!(filled::<u32>(&loops, &input), of(4));
            assert_eq!(filled::<i64>(&loops, &input), of(8));
        }
    }

    #[test]
    fn runs_of_every_length_move_forward() {
        let before: Vec<u8> = (0..120).collect();
        for (ahead, len) in (0..20).flat_map(|ahead| (1..100 - ahead).map(move |len| (ahead, len))) {
            let memory = cells(&before);
            let input = Dst::<u8>::from_cells(&memory).unwrap().as_src();
            copy(&[axis(len, 1, 1)], ahead, Dst::from_cells(&memory).unwrap(), input).unwrap();
            let (len, ahead) = (len as usize, ahead as usize);
            assert_eq!(values(&memory)[..len], before[ahead..ahead + len]);
            assert_eq!(values(&memory)[len..], before[len..]);
        }
    }

    #[test]
    fn nothing_beyond_an_operand_is_touched() {
        let input = [1_u8; 20];
        let output = cells(&[0; 20]);
        let copy =
            |loops: &[CopyLoop], from| copy(loops, from, Dst::from_cells(&output).unwrap(), Src::from_slice(&input));
        assert_eq!(copy(&[axis(20, 1, 1)], 0), Some(()));
        assert_eq!(copy(&[axis(20, 1, 1)], 1), None);
        assert_eq!(copy(&[axis(21, 1, 0)], 0), None);
        assert_eq!(copy(&[axis(3, 1, -5)], 9), None);
        assert_eq!(copy(&[axis(0, 1, 1)], 0), None);
        assert_eq!(copy(&[axis(1 << 31, 4, 1)], 0), None);
        let sum = |loops: &[Loop], len: usize| {
            broadcast(
                loops,
                Dst::from_cells(&output[..len]).unwrap(),
                Src::from_slice(&input),
                Src::from_slice(&input[..4]),
                |a: u8, b: u8| a + b,
            )
        };
        let axis = |count, a, b| Loop { count, a, b };
        assert_eq!(sum(&[axis(5, 4, 0), axis(4, 1, 1)], 20), Some(()));
        assert_eq!(sum(&[axis(5, 4, 0), axis(4, 1, 1)], 19), None);
        assert_eq!(sum(&[axis(5, 5, 0), axis(4, 1, 1)], 20), None);
        assert_eq!(sum(&[axis(5, 4, 1), axis(4, 1, 1)], 20), None);
    }
}
