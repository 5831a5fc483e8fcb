//! Products of rows of int8 activations and packed weights (`gemm`).
//!
//! AVX2 widens both to 16 bits: `VPMADDWD` makes two sums of two products a channel, of four channels at once, which are added behind the last one. VNNI
//! takes sixteen channels at once, four products each; its weights are unsigned, 128 more than they are, so that 128 times a row's sum is subtracted.

use core::arch::x86_64::*;

use super::super::args::Product;
use super::requantize::{RequantizeX16, Stored, TABLE, bytes, parts, store, two};

/// Output channels of a group.
const GROUP: usize = 16;

/// A group of packed weights.
struct Group {
    biases: *const u8,
    weights: *const u8,
    table: *const u8,
    /// Channels.
    count: usize,
    /// Channels in the layout: a multiple of four.
    width: usize,
}

impl Group {
    /// The channels of the half of a group from `first`, and how far behind their first four the others are in units of four; 0 where there are no others.
    fn quad(&self, first: usize) -> usize {
        usize::from(self.width - first > 4)
    }
}

/// Calls `tile` for every tile of rows and group of channels: rows, weights, first output.
///
/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`].
#[inline(always)]
unsafe fn walk<const ROWS: usize>(args: &Product, mut tile: impl FnMut(*const i8, &Group, *mut i8)) {
    // SAFETY: `number < args.tiles` and `group <= args.groups`: rows, packed groups and outputs are valid (fn docs).
    unsafe {
        let steps = 4 * args.blocks + 2 * args.half;
        for number in 0..args.tiles {
            let x = args.x.add(number * ROWS * args.x_stride);
            let mut out = args.out.add(number * ROWS * args.out_stride);
            let mut biases = args.weights;
            for group in 0..=args.groups {
                let count = if group < args.groups { GROUP } else { args.rest };
                if count == 0 {
                    break;
                }
                let width = count.next_multiple_of(4);
                let weights = biases.add(4 * width);
                let table = weights.add(4 * width * steps);
                let of = Group {
                    biases,
                    weights,
                    table,
                    count,
                    width,
                };
                tile(x, &of, out);
                out = out.add(count);
                biases = table.add(12 * width);
            }
        }
    }
}

/// Requantises sums of the rows of a tile, eight channels and eight more, and writes them.
///
/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn write<const ROWS: usize>(args: &Product, group: &Group, sums: &[[__m256i; 2]; ROWS], out: *mut i8) {
    // SAFETY: `group` is one of the packed groups, and `out` takes its channels of `ROWS` rows (docs of `multiply`); of the second half no more is read than
    // there is.
    unsafe {
        let stored = Stored::new(args.zero_point, args.low, args.high);
        let second = if group.width > 8 { 8 } else { 0 };
        let [one, other] = [0, second].map(|first| {
            let quad = group.quad(first);
            let biases = two(group.biases.add(4 * first), 16 * quad);
            (biases, parts(group.table.add(TABLE / 4 * first), TABLE * quad))
        });
        for (row, &[first, second]) in sums.iter().enumerate() {
            let first = stored.of(_mm256_add_epi32(first, one.0), one.1);
            let second = stored.of(_mm256_add_epi32(second, other.0), other.1);
            store(bytes(first, second), out.add(row * args.out_stride), group.count);
        }
    }
}

/// Four bytes of a row.
///
/// # Safety
/// `x` is valid for reads of them.
#[inline(always)]
unsafe fn four(x: *const i8) -> i32 {
    // SAFETY: four bytes are readable at `x` (fn docs); the read is unaligned.
    unsafe { x.cast::<i32>().read_unaligned() }
}

/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`]; the processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<const ROWS: usize>(args: *const Product) {
    // SAFETY: `args` points to valid arguments; `walk` gives valid rows, groups and outputs (fn docs), and `steps` fours of each row.
    unsafe {
        let args = &*args;
        let steps = 4 * args.blocks + 2 * args.half;
        walk::<ROWS>(args, |x, group, out| {
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
            for (half, first) in [0, 8].into_iter().enumerate().take(group.width.div_ceil(8)) {
                let second = 16 * group.quad(first);
                let mut pairs = [[_mm256_setzero_si256(); 2]; ROWS];
                for step in 0..steps {
                    let weights = group.weights.add(4 * (step * group.width + first));
                    let [w0, w1] = [0, second].map(|at| _mm256_cvtepi8_epi16(_mm_loadu_si128(weights.add(at).cast())));
                    for (row, [p0, p1]) in pairs.iter_mut().enumerate() {
                        let x = _mm_set1_epi32(four(x.add(row * args.x_stride + 4 * step)));
                        let x = _mm256_cvtepi8_epi16(x);
                        *p0 = _mm256_add_epi32(*p0, _mm256_madd_epi16(x, w0));
                        *p1 = _mm256_add_epi32(*p1, _mm256_madd_epi16(x, w1));
                    }
                }
                for (sums, [p0, p1]) in sums.iter_mut().zip(pairs) {
                    let sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(p0, p1), 0b11_01_10_00);
                    let [first, second] = sums;
                    *if half == 0 { first } else { second } = sum;
                }
            }
            write(args, group, &sums, out);
        });
    }
}

/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`]; the processor has AVX-512 F, BW, VL and VNNI.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn vnni<const ROWS: usize>(args: *const Product) {
    // SAFETY: `args` points to valid arguments; `walk` gives valid rows, groups and outputs (fn docs), and `steps` fours of each row.
    unsafe {
        let args = &*args;
        let steps = 4 * args.blocks + 2 * args.half;
        let (sign, mut of, mut more) = (_mm512_set1_epi8(i8::MIN), core::ptr::null(), [0i32; ROWS]);
        walk::<ROWS>(args, |x, group, out| {
            if x != of {
                of = x;
                for (row, more) in more.iter_mut().enumerate() {
                    *more = sum(x.add(row * args.x_stride), 4 * steps).wrapping_mul(128);
                }
            }
            let lanes = ((1u32 << group.width) - 1) as u16;
            let mut sums = [_mm512_setzero_si512(); ROWS];
            for step in 0..steps {
                let weights = _mm512_maskz_loadu_epi32(lanes, group.weights.add(4 * step * group.width).cast());
                let weights = _mm512_xor_si512(weights, sign);
                for (row, sum) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_epi32(four(x.add(row * args.x_stride + 4 * step)));
                    *sum = _mm512_dpbusd_epi32(*sum, weights, x);
                }
            }
            let requantize = RequantizeX16::new(group.table, group.width);
            let biases = _mm512_maskz_loadu_epi32(lanes, group.biases.cast());
            for (row, (sum, more)) in sums.into_iter().zip(more).enumerate() {
                let sum = _mm512_add_epi32(_mm512_sub_epi32(sum, _mm512_set1_epi32(more)), biases);
                let stored = requantize.of(sum, args.zero_point, args.low, args.high);
                let out = out.add(row * args.out_stride);
                _mm_mask_storeu_epi8(out, ((1u32 << group.count) - 1) as u16, _mm512_cvtepi32_epi8(stored));
            }
        });
    }
}

/// The sum of so many bytes.
///
/// # Safety
/// `x` is valid for reads of them; the processor has what [`vnni`] takes.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn sum(x: *const i8, count: usize) -> i32 {
    let (ones, mut sums, mut at) = (_mm512_set1_epi8(1), _mm512_setzero_si512(), 0);
    while at < count {
        let lanes = u64::MAX >> 64usize.saturating_sub(count - at);
        // SAFETY: the mask has the lanes below `count - at` alone, which are readable at `x` (fn docs); masked lanes are not read.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(lanes, x.add(at)) };
        sums = _mm512_dpbusd_epi32(sums, ones, bytes);
        at += 64;
    }
    _mm512_reduce_add_epi32(sums)
}
