//! Products of f32 of a tile of pixels and a group of packed weights (`conv2d_f32`): an element of up to six pixels at a time against sixteen channels, so
//! that twelve registers hold sums, two weights, and two what is being multiplied.
//!
//! Each loop is there twice. In order, every product is rounded before it is added: the bits of `portable`. Fused, a product and its sum are rounded once.

use core::arch::x86_64::*;

/// Output channels of a group.
pub(super) const GROUP: usize = 16;

/// Pixels of a tile, at most.
pub(super) const TILE: usize = 6;

/// Groups that one pixel is multiplied with at a time: its sums alone would wait for each other.
pub(super) const SIDE: usize = 4;

/// The limits of a step's outputs.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    low: __m256,
    high: __m256,
}

impl Limits {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn new([low, high]: [f32; 2]) -> Self {
        Self {
            low: _mm256_set1_ps(low),
            high: _mm256_set1_ps(high),
        }
    }

    /// Sums within the limits; a NaN stays one, as in `portable`: both instructions give their second operand where one is no number.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn of(self, sum: __m256) -> __m256 {
        _mm256_min_ps(self.high, _mm256_max_ps(self.low, sum))
    }
}

/// `sum + x * w`.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn mac<const FUSED: bool>(sum: __m256, x: __m256, w: __m256) -> __m256 {
    if FUSED {
        _mm256_fmadd_ps(x, w, sum)
    } else {
        _mm256_add_ps(sum, _mm256_mul_ps(x, w))
    }
}

/// Eight numbers of `table` from `at` on; zeros where it is null.
///
/// # Safety
/// `table` is null or valid for reads of them.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn from(table: *const f32, at: usize) -> __m256 {
    if table.is_null() {
        _mm256_setzero_ps()
    } else {
        // SAFETY: `table` is not null: eight numbers are readable from `at` on (fn docs).
        unsafe { _mm256_loadu_ps(table.add(at)) }
    }
}

/// A tile of pixels and a group of channels.
pub(super) struct Tile {
    /// Of each pixel as many addresses as it has segments: where they are.
    pub(super) segments: *const *const f32,
    /// Segments of a pixel's window.
    pub(super) count: usize,
    /// Numbers of a segment.
    pub(super) len: usize,
    /// The group's weights: rows of as many as it has channels, rounded up to four.
    pub(super) weights: *const f32,
    /// The group's biases; null for none.
    pub(super) bias: *const f32,
    /// The group's outputs of the first pixel.
    pub(super) out: *mut f32,
    /// Numbers from a pixel's outputs to the next one's.
    pub(super) step: usize,
    /// Tensor that is added, of the outputs' layout; null for none.
    pub(super) residual: *const f32,
    pub(super) limits: Limits,
}

/// The first of sixteen lanes, all bits of each.
#[target_feature(enable = "avx2")]
#[inline]
fn lanes(first: usize) -> [__m256i; 2] {
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    [0, 8].map(|from| _mm256_cmpgt_epi32(_mm256_set1_epi32(first as i32 - from), numbers))
}

impl Tile {
    /// A group of eight or sixteen channels: as many as `VECTORS` have.
    ///
    /// # Safety
    /// Segments, weights and biases are valid for reads, outputs for writes, of `ROWS` pixels; the processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn whole<const ROWS: usize, const VECTORS: usize, const FUSED: bool>(&self) {
        // SAFETY: segments, weights and biases of `8 * VECTORS` channels are readable, and outputs of `ROWS` pixels writable (fn docs).
        unsafe {
            let mut bias = [_mm256_setzero_ps(); VECTORS];
            for (vector, bias) in bias.iter_mut().enumerate() {
                *bias = from(self.bias, 8 * vector);
            }
            let mut sums = [bias; ROWS];
            let mut weights = self.weights;
            for segment in 0..self.count {
                let x: [*const f32; ROWS] = core::array::from_fn(|row| *self.segments.add(row * self.count + segment));
                for i in 0..self.len {
                    let w: [__m256; VECTORS] = core::array::from_fn(|vector| _mm256_loadu_ps(weights.add(8 * vector)));
                    for (sums, x) in sums.iter_mut().zip(x) {
                        let x = _mm256_broadcast_ss(&*x.add(i));
                        for (sum, w) in sums.iter_mut().zip(w) {
                            *sum = mac::<FUSED>(*sum, x, w);
                        }
                    }
                    weights = weights.add(8 * VECTORS);
                }
            }
            for (row, sums) in sums.into_iter().enumerate() {
                for (vector, mut sum) in sums.into_iter().enumerate() {
                    let at = row * self.step + 8 * vector;
                    if !self.residual.is_null() {
                        sum = _mm256_add_ps(sum, _mm256_loadu_ps(self.residual.add(at)));
                    }
                    _mm256_storeu_ps(self.out.add(at), self.limits.of(sum));
                }
            }
        }
    }

    /// A last group of any number of channels, of which `channels` are there.
    ///
    /// # Safety
    /// As for [`Tile::whole`]; all sixteen biases are readable.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn part<const ROWS: usize, const FUSED: bool>(&self, channels: usize) {
        // SAFETY: segments, weights and outputs are as for `whole`, biases all sixteen (fn docs); no lane beyond the group's is read or written.
        unsafe {
            let width = channels.next_multiple_of(4);
            let (read, written) = (lanes(width), lanes(channels));
            let mut sums = [[from(self.bias, 0), from(self.bias, 8)]; ROWS];
            let mut weights = self.weights;
            for segment in 0..self.count {
                let x: [*const f32; ROWS] = core::array::from_fn(|row| *self.segments.add(row * self.count + segment));
                for i in 0..self.len {
                    let w0 = _mm256_maskload_ps(weights, read[0]);
                    let w1 = _mm256_maskload_ps(weights.wrapping_add(8), read[1]);
                    for ([s0, s1], x) in sums.iter_mut().zip(x) {
                        let x = _mm256_broadcast_ss(&*x.add(i));
                        *s0 = mac::<FUSED>(*s0, x, w0);
                        *s1 = mac::<FUSED>(*s1, x, w1);
                    }
                    weights = weights.add(width);
                }
            }
            for (row, sums) in sums.into_iter().enumerate() {
                for (vector, (mut sum, lanes)) in sums.into_iter().zip(written).enumerate() {
                    let at = row * self.step + 8 * vector;
                    if !self.residual.is_null() {
                        let more = _mm256_maskload_ps(self.residual.wrapping_add(at), lanes);
                        sum = _mm256_add_ps(sum, more);
                    }
                    _mm256_maskstore_ps(self.out.wrapping_add(at), lanes, self.limits.of(sum));
                }
            }
        }
    }

    /// [`SIDE`] groups of sixteen channels of one pixel.
    ///
    /// # Safety
    /// As for [`Tile::whole`], of one pixel and [`SIDE`] groups.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn side<const FUSED: bool>(&self) {
        // SAFETY: segments, weights, biases and outputs of one pixel and `SIDE` groups are valid (fn docs).
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; SIDE];
            for (group, [s0, s1]) in sums.iter_mut().enumerate() {
                *s0 = from(self.bias, GROUP * group);
                *s1 = from(self.bias, GROUP * group + 8);
            }
            let apart = GROUP * self.count * self.len;
            let mut weights = self.weights;
            for segment in 0..self.count {
                let x = *self.segments.add(segment);
                for i in 0..self.len {
                    let x = _mm256_broadcast_ss(&*x.add(i));
                    for (group, [s0, s1]) in sums.iter_mut().enumerate() {
                        let w = weights.add(group * apart);
                        *s0 = mac::<FUSED>(*s0, x, _mm256_loadu_ps(w));
                        *s1 = mac::<FUSED>(*s1, x, _mm256_loadu_ps(w.add(8)));
                    }
                    weights = weights.add(GROUP);
                }
            }
            for (vector, mut sum) in sums.into_iter().flatten().enumerate() {
                if !self.residual.is_null() {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(self.residual.add(8 * vector)));
                }
                _mm256_storeu_ps(self.out.add(8 * vector), self.limits.of(sum));
            }
        }
    }

    /// A group of `channels`, at most sixteen, of `rows` pixels.
    ///
    /// # Safety
    /// As for [`Tile::whole`] and [`Tile::part`]; one to [`TILE`] rows.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn run<const FUSED: bool>(&self, rows: usize, channels: usize) {
        // SAFETY: each arm has `rows` pixels; `of_width` has the contract of this function.
        unsafe {
            match rows {
                1 => self.of_width::<1, FUSED>(channels),
                2 => self.of_width::<2, FUSED>(channels),
                3 => self.of_width::<3, FUSED>(channels),
                4 => self.of_width::<4, FUSED>(channels),
                5 => self.of_width::<5, FUSED>(channels),
                _ => self.of_width::<TILE, FUSED>(channels),
            }
        }
    }

    /// # Safety
    /// As for [`Tile::run`].
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn of_width<const ROWS: usize, const FUSED: bool>(&self, channels: usize) {
        // SAFETY: each arm has `channels` channels; segments, weights, biases and outputs are valid for them (docs of `run`).
        unsafe {
            match channels {
                GROUP => self.whole::<ROWS, 2, FUSED>(),
                8 => self.whole::<ROWS, 1, FUSED>(),
                _ => self.part::<ROWS, FUSED>(channels),
            }
        }
    }
}
