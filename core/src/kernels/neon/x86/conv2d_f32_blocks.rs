//! Convolutions of f32 (`conv2d_f32`) by blocks of pixels: a group of weights serves all pixels of a block before the next group is read, so that weights
//! that no cache holds are read once a block. Windows are read where they lie, through a table of addresses; those of few channels a row of the window at a
//! time, copied where the row passes the input's edge.
//!
//! A block's outputs may be written only where no input lies that is still to be read. Where the plan of the memory has them overlap, blocks become smaller,
//! down to the four pixels at a time whose order the kernel states, windows copied to scratch.

use core::mem::MaybeUninit;

use super::gemm_f32_tiles::{GROUP, Limits, SIDE, TILE, Tile};
use crate::ops::window::Window2d;

/// A convolution: the operands of `conv2d_f32`.
pub(in crate::kernels) struct Convolution<'a> {
    pub(in crate::kernels) window: &'a Window2d,
    pub(in crate::kernels) input: *const f32,
    pub(in crate::kernels) output: *mut f32,
    /// Four windows, or all where there are fewer; null where windows are single pixels, which are read in place.
    pub(in crate::kernels) scratch: *mut f32,
    pub(in crate::kernels) weights: *const f32,
    /// Null for none.
    pub(in crate::kernels) bias: *const f32,
    /// Added, of the output's shape; null for none.
    pub(in crate::kernels) residual: *const f32,
    pub(in crate::kernels) limits: [f32; 2],
    /// Whether products are fused with their sums.
    pub(in crate::kernels) fused: bool,
}

/// Pixels that the kernel's order takes at a time.
const ORDER: usize = 4;

/// Addresses of a block.
const ADDRESSES: usize = 512;

/// Numbers of a block's input that the second cache holds beside weights.
const CACHED: usize = 40 << 10;

/// Numbers of copied windows of a block.
const COPIES: usize = 4096;

/// Windows of fewer channels are read by rows.
const FEW: usize = 16;

/// Values of taps outside the input.
static ZEROS: [f32; 4096] = [0.0; 4096];

/// Source of a block's pixels.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Every tap by itself.
    Taps,
    /// Rows of windows.
    Lines,
    /// From windows copied to scratch.
    Scratch,
}

/// A convolution under way.
struct Walk<'a> {
    of: &'a Convolution<'a>,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    pixels: usize,
    /// Of the last group.
    last_bias: [f32; GROUP],
}

/// # Safety
/// The operands are as the window says, weights as `conv2d_f32::pack` lays them out, and overlap at most as the kernel allows; the processor has AVX2
/// and FMA.
pub(super) unsafe fn run(of: &Convolution<'_>) {
    let window = of.window;
    let [oh, ow, channels] = window.output.map(usize::from);
    let mut last_bias = [0.0; GROUP];
    if !of.bias.is_null() {
        let rest = channels % GROUP;
        // SAFETY: `of.bias` is not null and has `channels` elements, of which the last `rest < GROUP` are copied.
        unsafe {
            of.bias
                .add(channels - rest)
                .copy_to_nonoverlapping(last_bias.as_mut_ptr(), rest);
        }
    }
    let walk = Walk {
        of,
        input: window.input.map(usize::from),
        output: window.output.map(usize::from),
        kernel: window.kernel.map(usize::from),
        stride: window.stride.map(usize::from),
        padding: window.padding.map(usize::from),
        pixels: usize::from(window.batch) * oh * ow,
        last_bias,
    };
    // SAFETY: `blocks` has the contract of this function.
    unsafe {
        if of.fused {
            walk.blocks::<true>();
        } else {
            walk.blocks::<false>();
        }
    }
}

impl Walk<'_> {
    /// # Safety
    /// As for [`run`].
    #[target_feature(enable = "avx2,fma")]
    unsafe fn blocks<const FUSED: bool>(&self) {
        let [kh, kw] = self.kernel;
        let c = self.input[2];
        let k = kh * kw * c;
        let pixels_alone = self.of.scratch.is_null();
        let lines = !pixels_alone && c < FEW && k * ORDER <= COPIES;
        let (way, count, len) = if lines {
            (Way::Lines, kh, kw * c)
        } else {
            (Way::Taps, kh * kw, c)
        };
        let most = ADDRESSES / count;
        // Without a place for the addresses, or for as many zeros.
        let most = if pixels_alone || len <= ZEROS.len() { most } else { 0 };
        let cached = (CACHED / (c * self.stride[0] * self.stride[1])).max(4 * TILE);
        let mut table = [core::ptr::null(); ADDRESSES];
        let mut copies = [const { MaybeUninit::<f32>::uninit() }; COPIES];
        let mut done = 0;
        while done < self.pixels {
            let mut block = (self.pixels - done).min(most).min(cached);
            while block > TILE && !self.free(done, block) {
                block /= 2;
            }
            // SAFETY: the operands are those of `run` (`# Safety`); the table has an address for every segment of `block <= most` pixels.
            unsafe {
                if block >= TILE.min(self.pixels - done) && self.free(done, block) {
                    let copies = copies.as_mut_ptr().cast();
                    let block = self.find(way, done, block, &mut table, copies);
                    self.multiply::<FUSED>(&table, [count, len], done, block, TILE);
                    done += block;
                } else {
                    let block = (self.pixels - done).min(ORDER);
                    if pixels_alone {
                        self.find(Way::Taps, done, block, &mut table, core::ptr::null_mut());
                    } else {
                        self.find(Way::Scratch, done, block, &mut table, self.of.scratch);
                    }
                    self.multiply::<FUSED>(&table, [1, k], done, block, ORDER);
                    done += block;
                }
            }
        }
    }

    /// Image, row and column of an output pixel.
    fn place(&self, pixel: usize) -> [usize; 3] {
        let [oh, ow, _] = self.output;
        [pixel / (oh * ow), pixel / ow % oh, pixel % ow]
    }

    /// Whether the outputs of a block from pixel `from` on overlap nothing that it or later blocks read, but for a residual at their very place.
    fn free(&self, from: usize, block: usize) -> bool {
        let [ih, iw, c] = self.input;
        let channels = self.output[2];
        let [image, y, x] = self.place(from);
        let mut at = (image * ih + (y * self.stride[0]).saturating_sub(self.padding[0])) * iw;
        if self.kernel[0] == 1 {
            at += (x * self.stride[1]).saturating_sub(self.padding[1]);
        }
        let out = self.of.output.wrapping_add(from * channels).addr();
        let end = out + 4 * block * channels;
        let apart = |first: *const f32, at: usize, all: usize| {
            let (start, stop) = (first.wrapping_add(at).addr(), first.wrapping_add(all).addr());
            end <= start || stop <= out
        };
        let input = apart(self.of.input, at * c, usize::from(self.of.window.batch) * ih * iw * c);
        let residual = self.of.residual;
        let same = residual.is_null() || residual.addr() == self.of.output.addr();
        input && (same || apart(residual, from * channels, self.pixels * channels))
    }

    /// Fills the table in for a block of pixels, and copies what of them must be; the pixels whose copies had a place.
    ///
    /// # Safety
    /// As for [`run`]; `copies` has room for [`COPIES`] numbers, or four windows for [`Way::Scratch`].
    unsafe fn find(
        &self,
        way: Way,
        from: usize,
        block: usize,
        table: &mut [*const f32; ADDRESSES],
        copies: *mut f32,
    ) -> usize {
        let [ih, iw, c] = self.input;
        let [oh, ow, _] = self.output;
        let [kh, kw] = self.kernel;
        let pitch = iw * c;
        let [mut image, mut y, mut x] = self.place(from);
        let mut entries = table.iter_mut();
        let mut next = |address: *const f32| {
            if let Some(entry) = entries.next() {
                *entry = address;
            }
        };
        let mut used = 0;
        for pixel in 0..block {
            let base = self.of.input.wrapping_add(image * ih * pitch);
            let top = (y * self.stride[0]) as isize - self.padding[0] as isize;
            let left = (x * self.stride[1]) as isize - self.padding[1] as isize;
            let within = left >= 0 && left as usize + kw <= iw;
            let line = |row: isize| base.wrapping_offset(row * pitch as isize + left * c as isize);
            match way {
                Way::Taps => {
                    for row in top..top + kh as isize {
                        let inside = (row as usize) < ih;
                        let mut tap = line(row);
                        for column in left..left + kw as isize {
                            let there = inside && (column as usize) < iw;
                            next(if there { tap } else { ZEROS.as_ptr() });
                            tap = tap.wrapping_add(c);
                        }
                    }
                }
                Way::Lines if within => {
                    for row in top..top + kh as isize {
                        let inside = (row as usize) < ih;
                        next(if inside { line(row) } else { ZEROS.as_ptr() });
                    }
                }
                Way::Lines | Way::Scratch => {
                    let (k, run) = (kh * kw * c, kw * c);
                    if way == Way::Lines && used + k > COPIES {
                        return pixel;
                    }
                    let copy = copies.wrapping_add(used);
                    used += k;
                    let first = left.clamp(0, iw as isize);
                    let past = (left + kw as isize).clamp(first, iw as isize);
                    let (skip, numbers) = ((first - left) as usize * c, (past - first) as usize * c);
                    for (line_of, row) in (top..top + kh as isize).enumerate() {
                        let to = copy.wrapping_add(line_of * run);
                        let numbers = if (row as usize) < ih { numbers } else { 0 };
                        // SAFETY: `copies` has room for a line of `run` numbers (fn docs); the `numbers` that lie inside the input are read there.
                        unsafe {
                            if numbers < run {
                                to.write_bytes(0, run);
                            }
                            if numbers > 0 {
                                line(row)
                                    .wrapping_add(skip)
                                    .copy_to_nonoverlapping(to.add(skip), numbers);
                            }
                        }
                        if way == Way::Lines {
                            next(to);
                        }
                    }
                    if way == Way::Scratch {
                        next(copy);
                    }
                }
            }
            x += 1;
            if x == ow {
                (x, y) = (0, y + 1);
                if y == oh {
                    (y, image) = (0, image + 1);
                }
            }
        }
        block
    }

    /// All channels of a block of pixels from `from` on, whose windows have `count` segments of `len` numbers, in tiles of at most `tile`.
    ///
    /// # Safety
    /// As for [`run`]; the table has the block's segments.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn multiply<const FUSED: bool>(
        &self,
        table: &[*const f32; ADDRESSES],
        [count, len]: [usize; 2],
        from: usize,
        block: usize,
        tile: usize,
    ) {
        let channels = self.output[2];
        let of = self.of;
        let tiles = block.div_ceil(tile);
        let mut first = 0;
        while first < channels {
            let width = (channels - first).min(GROUP);
            let side = block == 1 && channels - first >= SIDE * GROUP;
            let mut pixel = 0;
            for left in (1..=tiles).rev() {
                // As even as they can be.
                let rows = (block - pixel).div_ceil(left);
                let at = (from + pixel) * channels + first;
                let task = Tile {
                    segments: table.as_ptr().wrapping_add(pixel * count),
                    count,
                    len,
                    weights: of.weights.wrapping_add(first * count * len),
                    bias: match width < GROUP {
                        _ if of.bias.is_null() => of.bias,
                        true => self.last_bias.as_ptr(),
                        false => of.bias.wrapping_add(first),
                    },
                    out: of.output.wrapping_add(at),
                    step: channels,
                    residual: if of.residual.is_null() {
                        of.residual
                    } else {
                        of.residual.wrapping_add(at)
                    },
                    limits: Limits::new(of.limits),
                };
                // SAFETY: the segments are those of the table, weights, biases, residual and outputs those of the tile, all inside the operands that the caller
                // guarantees.
                unsafe {
                    if side {
                        task.side::<FUSED>();
                    } else {
                        task.run::<FUSED>(rows, width);
                    }
                }
                pixel += rows;
            }
            first += if side { SIDE * GROUP } else { width };
        }
    }
}
