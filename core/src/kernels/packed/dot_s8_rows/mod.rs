//! The inner loop: words that hold two activations (or two weights) each, times rows of bytes.

use core::mem::MaybeUninit;

use super::args::{DotRowsArgs, LANES};
use super::channel_record::{GENERAL, Record, SINGLE};
use super::conv2d_s8_pieces as pieces;
use super::requantize;
use super::requantize::Rounding;

// The cores with loops of their own; hosts, and other cores, run the portable one.
mod armv6m;
mod armv7m;
mod portable;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(kernel_isa = "gpr32"))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

pub(super) use loops::rows;
#[cfg(kernel_isa = "rv32im")]
use loops::{rows_by_2, rows_by_4, rows_by_8};

/// [`rows`], or a part of it where the pieces are known and take no more.
///
/// # Safety
/// As for [`rows`]; the records are all those of a step with these pieces, or of several.
#[inline(always)]
unsafe fn rows_of(
    pieces: u32,
    (x, w): (*const i32, *const i8),
    at: *const Record,
    job: &mut DotRowsArgs,
) -> *const Record {
    // SAFETY: the operands are those of this function; pieces name the blocks of all records, and channels at which the loop stops.
    unsafe {
        #[cfg(kernel_isa = "rv32im")]
        match pieces & (pieces::BLOCKS | pieces::OTHERS | pieces::SOME) {
            pieces::BY_2 => return rows_by_2(x, w, at, job),
            pieces::BY_4 => return rows_by_4(x, w, at, job),
            pieces::BY_8 => return rows_by_8(x, w, at, job),
            _ => {}
        }
        #[cfg(not(kernel_isa = "rv32im"))]
        let _ = pieces;
        rows(x, w, at, job)
    }
}

/// The rows of weights, for any number of pixels.
pub(super) struct Rows<'a> {
    x: *const i32,
    weights: *const i8,
    records: &'a [Record],
    zero_point: i8,
    job: DotRowsArgs,
}

impl<'a> Rows<'a> {
    /// Of the words at `x`, two for each of `inputs`, and as many bytes of weights for each of the records; pixels of the output are `stride` bytes apart.
    pub(super) fn new(
        (x, weights): (*const i32, *const i8),
        inputs: usize,
        records: &'a [Record],
        stride: usize,
        zero_point: i8,
        rounding: Rounding,
    ) -> Self {
        Self {
            x,
            weights,
            records,
            zero_point,
            job: DotRowsArgs {
                half: rounding.half(),
                out: core::ptr::null_mut(),
                stride,
                end: records.as_ptr_range().end,
                twice: requantize::twice(zero_point),
                left: rounding.left(SINGLE),
                inputs,
                right: rounding.right(),
                sums: MaybeUninit::uninit(),
            },
        }
    }

    /// All channels of `count` pixels, four at most, requantised and stored. The words are those of four, the last of fewer again.
    ///
    /// # Safety
    /// 1. `x` has two words for each input of four pixels.
    /// 2. Weights and records are those of a valid step: `job.inputs` bytes of weights for each record.
    /// 3. `out` takes the outputs of `count` pixels, `job.stride` bytes apart.
    /// 4. `pieces` of a checked step: see [`pieces`].
    #[inline(always)]
    pub(super) unsafe fn multiply(&mut self, out: *mut i8, count: usize, pieces: u32) {
        self.job.out = out;
        // SAFETY: `four` and `some` have the contract of this function (points 1 to 3); with one pixel the stride is 0, so that `four` writes the one
        // pixel at `out`.
        unsafe {
            match count {
                4 => self.four(pieces),
                // All four are stored in one place.
                1 => {
                    let stride = core::mem::take(&mut self.job.stride);
                    self.four(pieces);
                    self.job.stride = stride;
                }
                _ if pieces & pieces::SOME != 0 => self.some(count),
                _ => {}
            }
        }
    }

    /// Four pixels.
    ///
    /// # Safety
    /// As for [`Rows::multiply`], with four pixels.
    #[inline(never)]
    unsafe fn four(&mut self, pieces: u32) {
        let range = self.records.as_ptr_range();
        // SAFETY: the operands passed to `rows` are those of points 1 to 3. `rows` returns a pointer into the records, or their end: the offset is in bounds.
        unsafe {
            let reached = rows_of(pieces, (self.x, self.weights), range.start, &mut self.job);
            if pieces & pieces::OTHERS != 0 && reached != range.end {
                self.go_on(reached.offset_from(range.start) as usize);
            }
        }
    }

    /// Four pixels, from the channels on at which the loop has stopped.
    ///
    /// # Safety
    /// As for [`Rows::multiply`], with four pixels; `reached` is a record at which `rows` has stopped.
    #[cold]
    #[inline(never)]
    unsafe fn go_on(&mut self, reached: usize) {
        let range = self.records.as_ptr_range();
        let mut done = reached;
        while done < self.records.len() {
            // SAFETY: `rows` has stopped at record `done` of the records, and has left its sums in `job.sums`.
            done = unsafe { self.store(done, 4) };
            // A last channel of the general form leaves no row; `rows` takes at least one.
            if done < self.records.len() {
                // SAFETY: `done < records.len()`: rows of weights and records from `done` on are those of point 2. `rows` returns a pointer into the records,
                // or their end.
                unsafe {
                    let (w, first) = (self.weights.add(done * self.job.inputs), range.start.add(done));
                    done = rows(self.x, w, first, &mut self.job).offset_from(range.start) as usize;
                }
            }
        }
    }

    /// Two or three pixels: the loop, which stores four, is given records of the general form, whatever form the channels have, so that every sum is
    /// handed back.
    ///
    /// # Safety
    /// As for [`Rows::multiply`], with two or three pixels.
    #[inline(never)]
    unsafe fn some(&mut self, count: usize) {
        let end = self.job.end;
        let mut general = [[0; 3]; LANES];
        let mut done = 0;
        while done < self.records.len() {
            for (general, &[bias, _, code]) in general.iter_mut().zip(self.records.iter().skip(done)) {
                *general = [bias, 0, code & !SINGLE | GENERAL];
            }
            let first = general.as_ptr();
            self.job.end = first.wrapping_add(LANES.min(self.records.len() - done));
            // SAFETY: `done < records.len()`: rows of weights from `done` on are those of point 2; `job.end` bounds the records to `general`. The sums stored
            // are those that `rows` has left.
            unsafe {
                rows(self.x, self.weights.add(done * self.job.inputs), first, &mut self.job);
                done = self.store(done, count);
            }
        }
        self.job.end = end;
    }

    /// The outputs of the channels whose sums the loop has handed back, from `done` on; returns how many are done then.
    ///
    /// # Safety
    /// As for [`Rows::multiply`]; `rows` has handed sums back.
    unsafe fn store(&mut self, done: usize, count: usize) -> usize {
        let mut done = done;
        // SAFETY: `rows` has written the sums of all channels of a call that it ended (fn docs).
        let all = unsafe { self.job.sums.assume_init_ref() };
        for (record, sums) in self.records.iter().skip(done).zip(all) {
            for (pixel, &sum) in sums.iter().enumerate().take(count) {
                let value = requantize::any(sum, record, self.zero_point, [i8::MIN, i8::MAX]);
                let place = pixel * self.job.stride + (record[2] as u32 >> 16) as usize;
                // SAFETY: a valid record's place is below `stride`.
                unsafe { *self.job.out.add(place) = value };
            }
            done += 1;
        }
        done
    }
}
