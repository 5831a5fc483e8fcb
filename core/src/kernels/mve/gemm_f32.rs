//! Rows of f32 activations times packed weights.
//!
//! **Layout.** Output channels come in groups of eight, the last padded with zeros: `[group][k][8]`. Two vectors of weights are multiplied by
//! one element of each of three rows, which sits in a core register: `vfma` by a scalar. Eight vector registers hold six accumulators and
//! two vectors of weights.

use super::args::ProductF32;
use super::im2col::Product;
use super::loops::{rows1_f32, rows3_f32};

/// Output channels of a group.
pub(super) const GROUP: usize = 8;

/// Bytes of packed weights; saturates.
pub(super) const fn packed_bytes(channels: u32, k: u32) -> u32 {
    channels
        .div_ceil(GROUP as u32)
        .saturating_mul(k)
        .saturating_mul(GROUP as u32 * 4)
}

/// Packs weights `[out][k]`, read through `weight(out, k)`; `None` where a slice is too short.
pub(super) fn pack(
    channels: usize,
    k: usize,
    weight: impl Fn(usize, usize) -> Option<f32>,
    dst: &mut [[u8; 4]],
) -> Option<()> {
    let groups = dst.chunks_exact_mut(k.checked_mul(GROUP)?);
    for (group, dst) in groups.enumerate().take(channels.div_ceil(GROUP)) {
        for (i, places) in dst.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            for (channel, place) in (group * GROUP..).zip(places) {
                let weight = if channel < channels { weight(channel, i)? } else { 0.0 };
                *place = weight.to_le_bytes();
            }
        }
    }
    Some(())
}

/// Packed weights and what they are multiplied to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    /// [`packed_bytes`].
    pub(super) weights: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) k: usize,
    pub(super) channels: usize,
    /// Of the output's shape; null for none.
    pub(super) residual: *const f32,
    pub(super) limits: [f32; 2],
}

impl Matrix<'_> {
    /// Groups `first..first + groups` of three rows, or of one.
    ///
    /// # Safety
    /// These groups, at least one, are among the packed weights; the row at `x`, or three rows `stride` bytes apart, and their outputs are valid.
    #[expect(clippy::too_many_arguments, reason = "the extents of a matrix product")]
    unsafe fn groups(
        &self,
        first: usize,
        groups: usize,
        lanes: usize,
        x: *const i8,
        stride: usize,
        three: bool,
        out: *mut i8,
        pixel: usize,
    ) {
        let residual = if self.residual.is_null() {
            self.residual
        } else {
            self.residual.wrapping_add(pixel * self.channels + first * GROUP)
        };
        let args = ProductF32 {
            x: x.cast(),
            x_stride: stride as u32,
            weights: self.weights.as_ptr().wrapping_add(first * self.k * GROUP),
            bias: self.bias.as_ptr().wrapping_add(first * GROUP),
            out: out.cast::<f32>().wrapping_add(first * GROUP),
            out_stride: (self.channels * 4) as u32,
            residual,
            pairs: (self.k / 2) as u32,
            odd: (self.k % 2) as u32,
            groups: groups as u32,
            lanes: [lanes.min(4) as u32, lanes.saturating_sub(4) as u32],
            limits: self.limits,
        };
        // SAFETY: `groups > 0` groups of packed weights from `first` on; the row, or three rows, at `x` and their outputs are valid (fn docs).
        unsafe { if three { rows3_f32(&args) } else { rows1_f32(&args) } }
    }
}

impl Product for Matrix<'_> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, pixel: usize) {
        let (full, rest) = (self.channels / GROUP, self.channels % GROUP);
        let mut row = 0;
        while row < rows {
            let three = rows - row >= 3;
            let (x, out) = (x.wrapping_add(row * stride), out.wrapping_add(row * self.channels * 4));
            // SAFETY: rows from `row < rows` on, three only where as many are left, are valid with their outputs (trait docs); each call has a group.
            unsafe {
                if full > 0 {
                    self.groups(0, full, GROUP, x, stride, three, out, pixel + row);
                }
                if rest > 0 {
                    self.groups(full, 1, rest, x, stride, three, out, pixel + row);
                }
            }
            row += if three { 3 } else { 1 };
        }
    }
}

/// The least instructions of a product.
pub(super) const fn bound(rows: u64, k: u64, channels: u64) -> u64 {
    let groups = channels.div_ceil(GROUP as u64);
    rows / 3 * groups * (k * 10 + 30) + rows % 3 * groups * (k * 5 + 24)
}
