//! Elements along axes, at addresses that are checked once and not for each element: strided copies, and pairs of operands that are broadcast.

use crate::cells::{Dst, Element, Src};
use crate::ops::elementwise::{Loop, MAX_LOOPS, operand_len, output_len};
use crate::ops::movement::CopyLoop;

/// Bytes from which on the compiler's own `memmove` is worth its call, where a loop of words is not allowed to be unaligned.
const LONG: usize = 24;

/// Whether the core reads and writes words at any address.
const UNALIGNED: bool = !cfg!(any(
    cortex_m = "baseline",
    target_arch = "riscv32",
    target_arch = "riscv64"
));

/// Copies along `loops`, outermost first; the source's first element is `from`. Elements are read and written in order, so that the output may lie before
/// what it is copied from. `None` where an element is in neither operand.
pub(crate) fn copy<T: Element>(loops: &[CopyLoop], from: u32, output: Dst<'_, T>, input: Src<'_, T>) -> Option<()> {
    let (mut last, mut low, mut high) = (0_u32, from, from);
    for l in loops {
        let steps = l.count.checked_sub(1)?;
        last = last.checked_add(steps.checked_mul(l.to)?)?;
        let reach = steps.checked_mul(l.from.unsigned_abs())?;
        if l.from < 0 {
            low = low.checked_sub(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    if low > high || last as usize >= output.cells().len() || high as usize >= input.len() {
        return None;
    }
    const ONE: CopyLoop = CopyLoop {
        count: 1,
        to: 1,
        from: 1,
    };
    let (outer, middle, inner) = match *loops {
        [ref outer @ .., middle, inner] => (outer, middle, inner),
        [inner] => (&[][..], ONE, inner),
        [] => (&[][..], ONE, ONE),
    };
    let (to, from) = (output.as_mut_ptr(), input.as_ptr().wrapping_add(from as usize));
    let count = inner.count as usize;
    // SAFETY: all places that the loops reach lie inside the operands, as just checked.
    unsafe {
        match (inner.to, inner.from) {
            (1, 1) => lines(outer, middle, to, from, |to, from| {
                run(to.cast(), from.cast(), count.wrapping_mul(size_of::<T>()));
            }),
            (1, 0) => lines(outer, middle, to, from, |to, from| fill(to, from.read(), count)),
            (step, ahead) => lines(outer, middle, to, from, |to, from| {
                strided(to, from, count, [step as usize, ahead as isize as usize]);
            }),
        }
    }
    Some(())
}

/// Calls `line` for the first element of each innermost line, in order.
///
/// # Safety
/// `line` may be called for each of them.
#[inline(always)]
unsafe fn lines<T>(
    outer: &[CopyLoop],
    middle: CopyLoop,
    mut to: *mut T,
    mut from: *const T,
    line: impl Fn(*mut T, *const T),
) {
    let mut index = [0_u32; MAX_LOOPS];
    loop {
        let (mut t, mut s) = (to, from);
        for _ in 0..middle.count {
            line(t, s);
            t = t.wrapping_add(middle.to as usize);
            s = s.wrapping_offset(middle.from as isize);
        }
        // The outer axes advance like an odometer.
        let mut done = true;
        for (l, n) in outer.iter().zip(index.iter_mut()).rev() {
            *n += 1;
            to = to.wrapping_add(l.to as usize);
            from = from.wrapping_offset(l.from as isize);
            if *n < l.count {
                done = false;
                break;
            }
            to = to.wrapping_sub((l.to as usize).wrapping_mul(l.count as usize));
            from = from.wrapping_sub((l.from as isize as usize).wrapping_mul(l.count as usize));
            *n = 0;
        }
        if done {
            return;
        }
    }
}

/// Copies neighbours, the first ones first: where both overlap, `to` is not behind `from`.
///
/// # Safety
/// `len` bytes at both.
#[inline(always)]
unsafe fn run(mut to: *mut u8, mut from: *const u8, len: usize) {
    let mut left = len;
    // SAFETY: as many bytes as are left, of `len`.
    unsafe {
        if UNALIGNED {
            while left >= 16 {
                // What is read lies ahead of what is written.
                for _ in 0..4 {
                    to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
                    (to, from) = (to.add(4), from.add(4));
                }
                left -= 16;
            }
            while left >= 4 {
                to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
                (to, from) = (to.add(4), from.add(4));
                left -= 4;
            }
        } else if left >= LONG {
            core::ptr::copy(from, to, left);
            return;
        }
        while left > 0 {
            to.write(from.read());
            (to, from) = (to.add(1), from.add(1));
            left -= 1;
        }
    }
}

/// Writes `value` to `count` neighbours.
///
/// # Safety
/// `count` elements at `to`.
#[inline(always)]
unsafe fn fill<T: Element>(mut to: *mut T, value: T, count: usize) {
    let mut left = count;
    // SAFETY: as many elements as are left, of `count`.
    unsafe {
        while left >= 8 {
            for i in 0..8 {
                to.add(i).write(value);
            }
            to = to.add(8);
            left -= 8;
        }
        while left > 0 {
            to.write(value);
            to = to.add(1);
            left -= 1;
        }
    }
}

/// Copies elements with `steps` between neighbours, modulo 2^N.
///
/// # Safety
/// All of them are there.
#[inline(always)]
unsafe fn strided<T: Element>(mut to: *mut T, mut from: *const T, count: usize, [step, ahead]: [usize; 2]) {
    let mut left = count;
    // SAFETY: the elements in order.
    unsafe {
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
    let lens = [
        output_len(loops)?,
        operand_len(loops, |l| l.a)?,
        operand_len(loops, |l| l.b)?,
    ];
    let [len, len_a, len_b] = lens.map(|n| n as usize);
    if len > output.cells().len() || len_a > a.len() || len_b > b.len() {
        return None;
    }
    let (outer, inner) = match loops {
        [outer @ .., inner] => (outer, *inner),
        [] => (loops, Loop { count: 1, a: 0, b: 0 }),
    };
    let [count, step_a, step_b] = [inner.count, inner.a, inner.b].map(|n| n as usize);
    let (mut y, mut a, mut b) = (output.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    let mut index = [0_u32; MAX_LOOPS];
    loop {
        let (mut left, mut right) = (a, b);
        for _ in 0..count {
            // SAFETY: inside the operands, whose lengths are those that the loops reach.
            unsafe { y.write(f(left.read(), right.read())) };
            y = y.wrapping_add(1);
            left = left.wrapping_add(step_a);
            right = right.wrapping_add(step_b);
        }
        let mut done = true;
        for (l, n) in outer.iter().zip(index.iter_mut()).rev() {
            *n += 1;
            a = a.wrapping_add(l.a as usize);
            b = b.wrapping_add(l.b as usize);
            if *n < l.count {
                done = false;
                break;
            }
            a = a.wrapping_sub((l.a as usize).wrapping_mul(l.count as usize));
            b = b.wrapping_sub((l.b as usize).wrapping_mul(l.count as usize));
            *n = 0;
        }
        if done {
            return Some(());
        }
    }
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
