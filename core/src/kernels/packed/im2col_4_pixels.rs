//! The windows of four pixels, unpacked side by side ([`super::conv2d_s8`]).

use super::conv2d_s8_pieces::{COPIES, ROWS, TAPS, WHOLE};
use super::unpack_4_pixels::{UnpackLines, unpack};
use crate::ops::window::Window2d;

/// The most channels, and the fewest columns, of windows whose rows of taps are copied where they cross the border.
const MOST_CHANNELS: usize = 4;
/// See [`MOST_CHANNELS`].
const FEWEST_COLUMNS: usize = 3;

/// The windows of one image, one after the other.
pub(super) struct Patches<'a> {
    window: &'a Window2d,
    /// A pixel of the border.
    border: *const i8,
    /// Byte of padding.
    zero_point: i8,
    /// The next window.
    next: Corner,
    /// The first window of its row.
    row: Corner,
    /// Windows that are left of its row.
    left: usize,
    /// Bytes between windows of a row, and between rows of them.
    steps: [usize; 2],
}

/// A window's first tap: where it lies, or would, and its row and column.
#[derive(Clone, Copy)]
struct Corner {
    at: *const i8,
    y: isize,
    x: isize,
}

impl<'a> Patches<'a> {
    /// From the first window of `image` on; `border` is a pixel of `zero_point`.
    pub(super) fn new(window: &'a Window2d, image: *const i8, border: *const i8, zero_point: i8) -> Self {
        let [_, width, channels] = window.input.map(usize::from);
        let [top, left] = window.padding.map(usize::from);
        let [down, right] = window.stride.map(usize::from);
        let pitch = width * channels;
        let first = Corner {
            at: image.wrapping_sub(top * pitch + left * channels),
            y: -(top as isize),
            x: -(left as isize),
        };
        Self {
            window,
            border,
            zero_point,
            next: first,
            row: first,
            left: usize::from(window.output[1]),
            steps: [right * channels, down * pitch],
        }
    }

    /// The next window.
    #[inline(always)]
    fn take(&mut self) -> Corner {
        let corner = self.next;
        let [down, right] = self.window.stride.map(isize::from);
        self.left = self.left.wrapping_sub(1);
        if self.left == 0 {
            self.left = usize::from(self.window.output[1]);
            self.row.at = self.row.at.wrapping_add(self.steps[1]);
            self.row.y = self.row.y.wrapping_add(down);
            self.next = self.row;
        } else {
            self.next.at = self.next.at.wrapping_add(self.steps[0]);
            self.next.x = self.next.x.wrapping_add(right);
        }
        corner
    }

    /// The next four windows, of one row.
    #[inline(always)]
    fn take_four(&mut self) -> [Corner; 4] {
        let first = self.next;
        let (step, right) = (self.steps[0], isize::from(self.window.stride[1]));
        let at = |i: u8| Corner {
            at: first.at.wrapping_add(step.wrapping_mul(i.into())),
            y: first.y,
            x: first.x.wrapping_add(right.wrapping_mul(i.into())),
        };
        self.next = at(4);
        self.left = self.left.wrapping_sub(4);
        [at(0), at(1), at(2), at(3)]
    }

    /// The next `count` windows, four at most, the last of fewer again.
    fn take_some(&mut self, count: usize) -> [Corner; 4] {
        let a = self.take();
        let b = if count > 1 { self.take() } else { a };
        let c = if count > 2 { self.take() } else { b };
        let d = if count > 3 { self.take() } else { c };
        [a, b, c, d]
    }

    /// Unpacks the next four windows; where `count` are left, the last of them again.
    ///
    /// # Safety
    /// 1. At least `count` windows are left, one to four, and `words` takes two words for each input of a window.
    /// 2. `pieces` has what [`Patches::pieces`] gives for them.
    #[inline(never)]
    pub(super) unsafe fn unpack(&mut self, count: usize, words: *mut i32, pieces: u32) {
        let has = |piece: u32| pieces & piece != 0;
        // Mostly they lie in one row, and another one behind them.
        let in_row = count == 4 && self.left > 4;
        let corners = if in_row {
            self.take_four()
        } else {
            self.take_some(count)
        };
        let [a, _, _, d] = corners;
        let [height, width, channels] = self.window.input.map(usize::from);
        let [rows, columns] = self.window.kernel.map(usize::from);
        let [down, right] = self.window.dilation.map(usize::from);
        let (pitch, run) = (width * channels, columns * channels);
        // A row of taps lies together; it may cross the border's columns.
        let together = right == 1;
        let before_end = |corner: &Corner| corner.x as usize + columns <= width;
        let within = |corner: &Corner| corner.x >= 0 && before_end(corner);
        let across = together
            && if in_row {
                a.x >= 0 && before_end(&d)
            } else {
                corners.iter().all(within)
            };
        let inside = |y: isize, row: usize| ((y + row as isize) as usize) < height;
        // Windows follow one another down the image.
        let all = |row: usize| inside(a.y, row) && inside(d.y, row);
        let others = has(ROWS | COPIES | TAPS);
        if has(WHOLE) && (!others || across && all(0) && all((rows - 1) * down)) {
            let skip = (down * pitch).wrapping_sub(run);
            let lines = UnpackLines { run, count: rows, skip };
            // SAFETY: all lines of each window lie in the image (`across`, `all`), or `pieces` says so (point 2); `words` takes them (point 1).
            unsafe { unpack(corners.map(|corner| corner.at), lines, words) };
            return;
        }
        if !others {
            return;
        }
        let narrow = has(COPIES) && together && columns >= FEWEST_COLUMNS && channels <= MOST_CHANNELS;
        let mut words = words;
        for row in 0..rows {
            let (at, last) = (row * down, row + 1 == rows);
            let line = |corner: &Corner| corner.at.wrapping_add(at * pitch);
            // SAFETY: a row of taps inside the image, or what the functions make of one that is not. Copies go where the words of the next row will, which are
            // twice as long.
            words = unsafe {
                if has(ROWS) && across && all(at) {
                    unpack(corners.map(|corner| line(&corner)), UnpackLines::one(run), words)
                } else if narrow && !last {
                    let mut to = words.add(2 * run).cast::<i8>();
                    let mut lines = [core::ptr::null(); 4];
                    // Not `map`, which would copy the corners.
                    for (from, corner) in lines.iter_mut().zip(&corners) {
                        let y = inside(corner.y, at);
                        *from = line(corner);
                        if !(y && within(corner)) {
                            self.copy(corner.x, y, *from, to);
                            *from = to;
                            to = to.add(run);
                        }
                    }
                    unpack(lines, UnpackLines::one(run), words)
                } else if has(TAPS) {
                    self.taps(&corners, at, words)
                } else {
                    words
                }
            };
        }
    }

    /// The pieces of code that the next four windows take, or `count`; as [`Patches::unpack`] goes.
    #[cfg(any(test, packing))]
    pub(super) fn pieces(&mut self, count: usize) -> u32 {
        let in_row = count == 4 && self.left > 4;
        let corners = if in_row {
            self.take_four()
        } else {
            self.take_some(count)
        };
        let [a, _, _, d] = corners;
        let [height, width, channels] = self.window.input.map(usize::from);
        let [rows, columns] = self.window.kernel.map(usize::from);
        let [down, right] = self.window.dilation.map(usize::from);
        let within = |corner: &Corner| corner.x >= 0 && corner.x as usize + columns <= width;
        let across = right == 1 && corners.iter().all(within);
        let inside = |y: isize, row: usize| ((y + row as isize) as usize) < height;
        let all = |row: usize| inside(a.y, row) && inside(d.y, row);
        if across && all(0) && all((rows - 1) * down) {
            return WHOLE;
        }
        let narrow = right == 1 && columns >= FEWEST_COLUMNS && channels <= MOST_CHANNELS;
        let piece = |row: usize| {
            if across && all(row * down) {
                ROWS
            } else if narrow && row + 1 < rows {
                COPIES
            } else {
                TAPS
            }
        };
        (0..rows).map(piece).fold(0, |pieces, piece| pieces | piece)
    }

    /// Copies a row of taps, which begins in column `x` of `line`, or lies in the border altogether.
    ///
    /// # Safety
    /// The taps of the row inside the image are readable from `line` on, and the bytes of the row's taps are writable at `to`.
    unsafe fn copy(&self, x: isize, inside: bool, line: *const i8, to: *mut i8) {
        let channels = usize::from(self.window.input[2]);
        let [width, columns] = [self.window.input[1], self.window.kernel[1]].map(|n| n as isize);
        // Columns before the image, and those before its end.
        let (before, until) = if inside {
            let before = (-x).max(0).min(columns);
            (before, (width - x).min(columns).max(before))
        } else {
            (columns, columns)
        };
        let [before, until, end] = [before, until, columns].map(|n| n as usize * channels);
        let put = |i: usize, byte: i8| {
            // SAFETY: `to` takes the `end` bytes of the row's taps (fn docs), of which this is one.
            unsafe { to.add(i).write(byte) };
            // Nothing, but the compiler makes a `memcpy` or `memset` of no loop that holds it: half a KB, for a few bytes a row.
            core::hint::black_box(());
        };
        // SAFETY: `before..until` are those inside the image, which are readable.
        unsafe {
            (0..before).for_each(|i| put(i, self.zero_point));
            (before..until).for_each(|i| put(i, *line.wrapping_add(i)));
            (until..end).for_each(|i| put(i, self.zero_point));
        }
    }

    /// Unpacks a row of taps, `at` rows below the windows' first ones, tap by tap.
    ///
    /// # Safety
    /// `words` takes two words for each input of the row.
    #[inline(never)]
    unsafe fn taps(&self, corners: &[Corner; 4], at: usize, words: *mut i32) -> *mut i32 {
        let [height, width, channels] = self.window.input.map(usize::from);
        let right = usize::from(self.window.dilation[1]);
        let mut words = words;
        for column in 0..usize::from(self.window.kernel[1]) {
            let past = column * right;
            let places = corners.map(|corner| {
                let [y, x] = [corner.y + at as isize, corner.x + past as isize].map(|n| n as usize);
                if y < height && x < width {
                    corner.at.wrapping_add((at * width + past) * channels)
                } else {
                    self.border
                }
            });
            // SAFETY: each place is a pixel inside the image, by the comparison above, or the border's; `words` takes two words for each input (fn docs).
            words = unsafe { unpack(places, UnpackLines::one(channels), words) };
        }
        words
    }
}
