//! Windows that may reach over the borders, one pixel at a time, and pixels without a window: bytes to pairs of 16 bits.

use core::mem::MaybeUninit;

use super::im2col_s16_loops::{Im2col4Args, widen_4};
use super::rows::Rows;
use super::windows::Geometry;
use crate::kernels::isa::dsp::{halves, sxtb16, sxtb16_ror8};
use crate::rolled::MAX_TURN_ROWS;

/// Widens activations to pairs, in the order of [`super::windows::Layout::pair`]; a missing last one is 0.
///
/// # Safety
/// `len` bytes are readable, a word for every two of them writable.
pub(super) unsafe fn widen(src: *const i8, dst: *mut u32, len: usize) {
    let (mut word, mut pair) = (src.cast::<u32>(), dst);
    // SAFETY: `len / 4` words and `len % 4` bytes are the `len` bytes at `src`; each two of them have a word at `dst` (fn docs).
    unsafe {
        for _ in 0..len / 4 {
            let x = word.read_unaligned();
            *pair = sxtb16(x);
            *pair.add(1) = sxtb16_ror8(x);
            (word, pair) = (word.add(1), pair.add(2));
        }
        let byte = |at: usize| i32::from(*word.cast::<i8>().add(at));
        match len % 4 {
            1 => *pair = halves(byte(0), 0),
            2 => *pair = halves(byte(0), byte(1)),
            3 => {
                *pair = halves(byte(0), byte(1));
                *pair.add(1) = halves(byte(2), 0);
            }
            _ => {}
        }
    }
}

/// A run of the windows of four pixels: where it begins, and where its pairs go.
#[derive(Clone, Copy)]
pub(super) struct Run {
    line: isize,
    to: *mut u32,
    tails: *mut i16,
}

/// The runs of windows that begin where `lines` say, at most as many as there is room for.
#[inline(always)]
pub(super) fn runs_of<'a>(
    windows: &Im2col4Args,
    lines: impl Iterator<Item = isize>,
    room: &'a mut [MaybeUninit<Run>; MAX_TURN_ROWS],
) -> &'a [Run] {
    let mut at = usize::from(windows.tails.addr() & 2 != 0);
    let tails = windows.tails.wrapping_sub(at);
    let mut count = 0;
    for (run, line) in room.iter_mut().zip(lines) {
        run.write(Run {
            line,
            to: windows.to.wrapping_add(count * windows.words * 8),
            // Two halves of a pair are neighbours; the next pair is behind those of the other pixels.
            tails: tails.wrapping_add(at / 2 * 8 + at % 2),
        });
        at += windows.tail;
        count += 1;
    }
    let written = room.get(..count).unwrap_or_default();
    // SAFETY: the loop wrote the first `count`.
    unsafe { written.assume_init_ref() }
}

/// [`widen_4`] of these runs, seen from `first`. Of `windows` it leaves the last one.
///
/// # Safety
/// As for [`widen_4`] with each of the runs alone.
#[inline(always)]
pub(super) unsafe fn widen_runs(windows: &mut Im2col4Args, first: *const i8, runs: &[Run]) {
    windows.runs = 1;
    for run in runs {
        (windows.to, windows.tails) = (run.to, run.tails);
        // SAFETY: a run of four pixels at its place, and its own part of the pairs (fn docs).
        unsafe { widen_4(windows, first.wrapping_offset(run.line)) };
    }
}

/// Widens one window, which may reach over the borders, into pairs `step` words apart.
///
/// # Safety
/// `image` is readable in the rows that begin where `lines` says, `dst` writable for the pairs; `top` and `left` are the window's first row and column.
#[inline(never)]
pub(super) unsafe fn widen_pixel<R: Rows>(
    g: &Geometry,
    dst: *mut u32,
    step: usize,
    (image, lines): (*const i8, &R),
    (top, left): (isize, isize),
) {
    let channels = g.input[2];
    let mut lane = Lane::new(g, dst, step);
    let columns_inside = left >= 0 && left as usize + g.kernel[1] <= g.input[1];
    let mut y = top;
    for _ in 0..g.kernel[0] {
        let row = (y as usize) < g.input[0];
        let line = image.wrapping_offset(lines.offset(y, g.row));
        let at = |x: isize| line.wrapping_offset(x * channels as isize);
        // SAFETY: `row` and the columns are compared: bytes outside of the image are not read; `dst` takes all pairs (fn docs).
        unsafe {
            if g.dilation[1] == 1 && (columns_inside || !row) {
                lane.run(row.then(|| at(left)), g.words, g.tail, g.zero_point);
            } else {
                let mut x = left;
                for _ in 0..g.kernel[1] {
                    let inside = row && (x as usize) < g.input[1];
                    lane.run(inside.then(|| at(x)), channels / 4, channels % 4, g.zero_point);
                    x += g.dilation[1] as isize;
                }
            }
        }
        y += g.dilation[0] as isize;
    }
}

/// Widens one window as [`widen_pixel`] does, but word by word, each in all rows: what of it lies inside the columns is the same in all of them.
///
/// # Safety
/// 1. The rows and columns of the window at `top` and `left` that lie inside the image are readable from where `lines` says on, seen from `image`.
/// 2. `dst` takes the window's pairs, `step` words apart.
#[inline(never)]
pub(super) unsafe fn widen_columns<R: Rows>(
    g: &Geometry,
    dst: *mut u32,
    step: usize,
    image: (*const i8, &R),
    corner: (isize, isize),
) {
    // SAFETY: the image inside and the pairs at `dst` are those of this function (points 1 and 2).
    unsafe { widen_known_columns(g, dst, step, image, corner) }
}

/// [`widen_columns`] of a geometry that is a constant, or where it is called once.
///
/// # Safety
/// That of [`widen_columns`].
#[inline(always)]
pub(super) unsafe fn widen_known_columns<R: Rows>(
    g: &Geometry,
    dst: *mut u32,
    step: usize,
    (image, lines): (*const i8, &R),
    (top, left): (isize, isize),
) {
    let mut lane = Lane::new(g, dst, step);
    let channels = g.input[2] as isize;
    // The window's first column in one of its rows.
    let line_of = |row: usize| {
        let y = top + (row * g.dilation[0]) as isize;
        image.wrapping_offset(lines.offset(y, g.row) + left * channels)
    };
    let line = g.dilation[0] * g.row;
    // Bytes of a row of the window that lie inside.
    let (from, to) = (-left * channels, (g.input[1] as isize - left) * channels);
    let inside = g.rows_inside(top);
    let outside = u32::from_ne_bytes([g.zero_point as u8; 4]);
    for word in 0..g.words {
        let i = word as isize * 4;
        // The nearest word of the row, and the bits by which it is moved to its place.
        let at = i.max(from).min(to - 4);
        let [up, down] = [at - i, i - at].map(|bytes| bytes.clamp(0, 4) as u32 * 8);
        let rows = if g.row >= 4 && up.max(down) < 32 {
            inside.clone()
        } else {
            0..0
        };
        let column = Column {
            to: dst.wrapping_add(word * 2 * step),
            step,
            next: g.words * 2 * step,
            rows: [rows.start, rows.len(), g.kernel[0] - rows.end],
            src: line_of(rows.start).wrapping_offset(at),
            line,
            up: up & 31,
            down: down & 31,
            filled: outside & !(u32::MAX << (up & 31) >> (down & 31)),
            outside: sxtb16(outside),
        };
        // SAFETY: `src` is inside the image for the rows inside (point 1); the pairs of the word lie in `dst` for all rows (point 2).
        unsafe {
            if !R::ARE_APART {
                widen_column(&column);
            } else {
                // A row at a time: each by itself is inside, above or below.
                for row in 0..g.kernel[0] {
                    widen_column(&Column {
                        to: column.to.wrapping_add(row * column.next),
                        rows: if rows.contains(&row) { [0, 1, 0] } else { [1, 0, 0] },
                        src: line_of(row).wrapping_offset(at),
                        ..column
                    });
                }
            }
        };
    }
    // Bytes that are in no such word: those left over, and all of rows of fewer than four.
    let bytes = if g.row < 4 { 0 } else { g.words * 4 };
    for row in 0..g.kernel[0] {
        for i in bytes..g.words * 4 + g.tail {
            let inside = inside.contains(&row) && (from..to).contains(&(i as isize));
            // SAFETY: with `inside`, byte `i` of the row lies in the image (point 1); its half of a pair lies in `dst` (point 2).
            unsafe {
                let byte = if inside { *line_of(row).add(i) } else { g.zero_point };
                if i >= g.words * 4 {
                    lane.tail(byte);
                } else {
                    let pair = dst.add(((row * g.words + i / 4) * 2 + i % 2) * step);
                    *pair.cast::<i16>().add(i % 4 / 2) = i16::from(byte);
                }
            }
        }
    }
}

/// A word of a window in each of its rows.
struct Column {
    /// The first row's first pair; `step` words from it to the second pair, `next` words to the next row's.
    to: *mut u32,
    step: usize,
    next: usize,
    /// Rows above the image, in it, below it.
    rows: [usize; 3],
    /// The first row's four bytes in the image, bytes to the next row's.
    src: *const i8,
    line: usize,
    /// Bits by which what is read is moved up, and down, and what comes into the bits that are free then.
    up: u32,
    down: u32,
    filled: u32,
    /// A pair of zero points.
    outside: u32,
}

/// Widens a column: apart, for the sake of registers.
///
/// # Safety
/// Of `column`, two words are writable in each row at `to`, and four bytes readable at `src` in each row inside the image.
#[inline(never)]
unsafe fn widen_column(column: &Column) {
    let Column {
        step,
        next,
        line,
        up,
        down,
        filled,
        outside,
        ..
    } = *column;
    let (mut to, mut src) = (column.to, column.src);
    let [above, inside, below] = column.rows;
    for _ in 0..above {
        // SAFETY: one of the rows above, whose two words are writable (fn docs).
        unsafe { (*to, *to.add(step)) = (outside, outside) };
        to = to.wrapping_add(next);
    }
    for _ in 0..inside {
        // SAFETY: one of the rows inside, whose four bytes are readable and whose two words are writable (fn docs).
        unsafe {
            let x = src.cast::<u32>().read_unaligned() << up >> down | filled;
            (*to, *to.add(step)) = (sxtb16(x), sxtb16_ror8(x));
        }
        to = to.wrapping_add(next);
        src = src.wrapping_add(line);
    }
    for _ in 0..below {
        // SAFETY: one of the rows below, whose two words are writable (fn docs).
        unsafe { (*to, *to.add(step)) = (outside, outside) };
        to = to.wrapping_add(next);
    }
}

/// Positions of one pixel's next pairs.
struct Lane {
    body: *mut u32,
    tails: *mut i16,
    half: usize,
    /// Words between pairs.
    step: usize,
}

impl Lane {
    fn new(g: &Geometry, dst: *mut u32, step: usize) -> Self {
        Self {
            body: dst,
            tails: dst.wrapping_add(g.runs * g.words * 2 * step).cast(),
            half: 0,
            step,
        }
    }

    /// A run, or as many zero points.
    ///
    /// # Safety
    /// With `src`, `4 * words + tail` bytes are readable there; the places of their pairs are writable.
    #[inline(always)]
    unsafe fn run(&mut self, src: Option<*const i8>, words: usize, tail: usize, zero_point: i8) {
        // SAFETY: `words` words and `tail` bytes are read at `src`, if any, and written as pairs; this function's contract guarantees both.
        unsafe {
            match src {
                Some(src) => {
                    let mut word = src.cast::<u32>();
                    for _ in 0..words {
                        let x = word.read_unaligned();
                        word = word.add(1);
                        self.word(sxtb16(x), sxtb16_ror8(x));
                    }
                    for byte in 0..tail {
                        self.tail(*word.cast::<i8>().add(byte));
                    }
                }
                None => {
                    let pair = sxtb16(u32::from_ne_bytes([zero_point as u8; 4]));
                    (0..words).for_each(|_| self.word(pair, pair));
                    (0..tail).for_each(|_| self.tail(zero_point));
                }
            }
        }
    }

    /// Writes the pairs of a word.
    ///
    /// # Safety
    /// The next pair and that `step` words behind it are writable.
    #[inline(always)]
    unsafe fn word(&mut self, even: u32, odd: u32) {
        // SAFETY: `body` and the place `step` words behind it are writable (fn docs).
        unsafe {
            *self.body = even;
            *self.body.add(self.step) = odd;
            self.body = self.body.add(2 * self.step);
        }
    }

    /// Writes a byte's half of a pair.
    ///
    /// # Safety
    /// The next half is writable.
    #[inline(always)]
    unsafe fn tail(&mut self, byte: i8) {
        // SAFETY: `tails` is writable (fn docs).
        unsafe { *self.tails = i16::from(byte) };
        self.tails = self
            .tails
            .wrapping_add(if self.half == 0 { 1 } else { 2 * self.step - 1 });
        self.half ^= 1;
    }
}
