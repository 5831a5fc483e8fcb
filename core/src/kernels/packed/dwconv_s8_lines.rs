//! The lines of an image that [`super::dwconv_s8`] copies channel by channel: one behind the other, or the rows of a turn.

use super::args::FLIP;
#[cfg(feature = "rolling")]
use crate::arena::Mem;
#[cfg(feature = "rolling")]
use crate::ops::conv2d::Conv2dS8;
#[cfg(feature = "rolling")]
use crate::rolled::MAX_TURN_ROWS;

/// Where the lines of an image are.
pub(super) enum Lines {
    /// One behind the other, from here on.
    Image(*const i8),
    /// Anywhere, each from here on.
    #[cfg(feature = "rolling")]
    Rows([*const i8; MAX_TURN_ROWS]),
}

impl Lines {
    /// The rows that a turn reads.
    #[cfg(feature = "rolling")]
    pub(super) fn of_rows(op: &Conv2dS8, mem: &Mem<'_>) -> Option<Self> {
        let [count, columns, channels] = op.window.input.map(u32::from);
        let mut rows = [core::ptr::null(); MAX_TURN_ROWS];
        for (row, place) in (0..count).zip(&mut rows) {
            *place = mem.row::<i8>(op.input, row, columns.checked_mul(channels)?)?.as_ptr();
        }
        (count as usize <= rows.len()).then_some(Self::Rows(rows))
    }

    /// The start, where they lie one behind the other.
    pub(super) fn image(&self) -> Option<*const i8> {
        match self {
            Self::Image(start) => Some(*start),
            #[cfg(feature = "rolling")]
            Self::Rows(_) => None,
        }
    }

    /// Copies channel `c` into the plane, past its border, as [`fill`] does.
    ///
    /// # Safety
    /// As for [`fill`], of an image whose lines these are, `c` bytes behind.
    #[inline(always)]
    pub(super) unsafe fn fill(
        &self,
        c: usize,
        [line, stride]: [usize; 2],
        [count, columns]: [usize; 2],
        plane: *mut i8,
        pitch: usize,
        flip: u8,
    ) {
        match self {
            // SAFETY: the same contract.
            Self::Image(start) => unsafe { fill(start.add(c), [line, stride], [count, columns], plane, pitch, flip) },
            #[cfg(feature = "rolling")]
            Self::Rows(rows) => {
                for (row, start) in rows.iter().take(count).enumerate() {
                    // SAFETY: the row has the columns of a line, the plane its place for them (fn docs).
                    unsafe {
                        fill(
                            start.add(c),
                            [0, stride],
                            [1, columns],
                            plane.add(row * pitch),
                            pitch,
                            flip,
                        )
                    };
                }
            }
        }
    }
}

/// Copies one channel into the plane, past its border, its bytes changed by `flip`.
///
/// # Safety
/// `input` has `rows` lines of `columns` pixels, `line` and `stride` bytes apart; `plane` takes as many rows, `pitch` bytes apart.
unsafe fn fill(
    input: *const i8,
    [line, stride]: [usize; 2],
    [rows, columns]: [usize; 2],
    plane: *mut i8,
    pitch: usize,
    flip: u8,
) {
    // On cores with `FLIP` 0 no byte is changed.
    let flip = if FLIP == 0 { 0 } else { flip as i8 };
    let (mut start, mut row) = (input, plane);
    for _ in 0..rows {
        let mut x = start;
        let (mut to, fours, end) = (row, row.wrapping_add(columns & !3), row.wrapping_add(columns));
        // SAFETY: `to` goes over the `columns` bytes of a row of `plane`, `x` over as many pixels of a line of `input` (fn docs).
        unsafe {
            while to != fours {
                let [a, b, c, d] = [*x, *x.add(stride), *x.add(2 * stride), *x.add(3 * stride)];
                *to = a ^ flip;
                *to.add(1) = b ^ flip;
                *to.add(2) = c ^ flip;
                *to.add(3) = d ^ flip;
                to = to.add(4);
                x = x.wrapping_add(4 * stride);
            }
            while to != end {
                *to = *x ^ flip;
                to = to.add(1);
                x = x.wrapping_add(stride);
            }
        }
        start = start.wrapping_add(line);
        row = row.wrapping_add(pitch);
    }
}
