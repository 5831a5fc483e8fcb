//! Shared parts of the int16 convolution loops: the lines under a window, and the requantisation of sums that fit 32 bits. One product scales such a sum; its
//! high word is the output.

pub(crate) mod depthwise;
#[cfg(kernel_isa = "armv7m_gpr")]
mod gathered;
pub(crate) mod output_rows;

use crate::quant::Multiplier;

/// Shifts of a multiplier whose factor, a half and this many places, has 32 bits: `-LONGEST_SHIFT..=-1`.
const LONGEST_SHIFT: i32 = 17;

/// The constants of an int16 convolution's channels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channels<'a> {
    /// OHWI.
    pub(crate) weights: &'a [i8],
    /// One for each channel.
    pub(crate) bias: &'a [i64],
    /// Mantissa and shift of each channel.
    pub(crate) records: &'a [[i32; 2]],
    /// Of the outputs.
    pub(crate) clamp: [i16; 2],
}

impl Channels<'_> {
    /// Whether [`Channels::short`] finishes all sums of at most `products` products.
    #[inline(never)]
    pub(crate) fn are_short(&self, products: usize) -> bool {
        // A product's magnitude is 2^22 at most.
        let Some(room) = i32::MAX.checked_sub_unsigned((products as u32).saturating_mul(1 << 22)) else {
            return false;
        };
        if room < 0 {
            return false;
        }
        let in_range = |&bias: &i64| i32::try_from(bias).is_ok_and(|bias| bias.unsigned_abs() <= room as u32);
        let shifts = |&[_, shift]: &[i32; 2]| (-LONGEST_SHIFT..0).contains(&shift);
        self.bias.iter().all(in_range) && self.records.iter().all(shifts)
    }

    /// Whether sums of any number of products have 32 bits, and [`Channels::short`] finishes them, as the weights are no larger than they are.
    #[cfg(any(test, kernel_isa = "mve"))]
    #[inline(never)]
    pub(crate) fn are_short_by_weights(&self) -> bool {
        let filter = self.weights.len().checked_div(self.bias.len()).unwrap_or(0);
        // Of which the magnitudes' sum has 32 bits.
        if filter == 0 || filter > 1 << 16 || !self.are_short(0) {
            return false;
        }
        let mut rows = self.weights.chunks_exact(filter).zip(self.bias);
        rows.all(|(row, bias)| {
            // Inputs are -32768 at least.
            let products = u64::from(magnitude(row)) << 15;
            products.saturating_add(bias.unsigned_abs()) <= i32::MAX as u64
        })
    }

    /// The output of a channel: `Multiplier::apply_wide` of the sum, in which the bias is, clamped.
    #[inline(always)]
    pub(crate) fn short(&self, sum: i32, record: [i32; 2]) -> i16 {
        let [low, high] = self.clamp.map(i32::from);
        // No `clamp`, which panics where it does not see that the limits are in order.
        scaled(sum, record).max(low).min(high) as i16
    }

    /// The same of any sum.
    #[cold]
    #[inline(never)]
    pub(crate) fn long(&self, sum: i64, [mantissa, shift]: [i32; 2]) -> i16 {
        let [low, high] = self.clamp.map(i32::from);
        let shift = shift as i8;
        let scaled = Multiplier { mantissa, shift }.apply_wide(sum);
        scaled.max(low).min(high) as i16
    }
}

/// The lines of neighbours under a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowLines {
    /// Rows of lines, and lines in a row.
    pub(crate) count: [usize; 2],
    /// Elements of a line; 0 where the window is padding alone.
    pub(crate) len: usize,
    /// Elements from a row to the next and from a line to the next in the input.
    pub(crate) steps: [usize; 2],
    /// The same in the weights.
    pub(crate) weights_steps: [usize; 2],
}

impl WindowLines {
    /// Elements from the first one to behind the last.
    pub(crate) fn reach(&self, [row, line]: [usize; 2]) -> Option<usize> {
        let [rows, lines] = self.count;
        let of = |count: usize, step: usize| count.checked_sub(1)?.checked_mul(step);
        of(rows, row)?.checked_add(of(lines, line)?)?.checked_add(self.len)
    }
}

/// `(x * mantissa + half) >> (15 - shift)` for the mantissa's high half, rounded and at most 32767.
#[inline(always)]
fn scaled(x: i32, [mantissa, shift]: [i32; 2]) -> i32 {
    let half = mantissa.saturating_add(1 << 15) >> 16;
    if cfg!(kernel_isa = "armv6m") {
        by_halves(x, half, shift)
    } else {
        // A shift to the left first turns the multiplier's shift to the right into one of 32 places.
        let factor = half.wrapping_shl(shift.wrapping_add(LONGEST_SHIFT) as u32);
        ((i64::from(x) * i64::from(factor) + (1 << 31)) >> 32) as i32
    }
}

/// The same without a 64-bit product. Of neither half's product is anything lost, and the low one's lowest bits matter only where they round.
#[cfg_attr(not(kernel_isa = "armv6m"), allow(dead_code))]
#[inline(always)]
fn by_halves(x: i32, half: i32, shift: i32) -> i32 {
    // Places beyond sixteen, which the high half's product and what the low one's carries shift by.
    let places = shift.wrapping_neg().wrapping_sub(1) as u32;
    let unit = 1_i32.wrapping_shl(places);
    let low = (x & 0xFFFF).wrapping_mul(half).wrapping_add((unit & 1) << 15) >> 16;
    let high = (x >> 16).wrapping_mul(half);
    high.wrapping_add(low).wrapping_add(unit >> 1).wrapping_shr(places)
}

/// The sum of absolute weights, at most 2^16 of them.
#[cfg(any(test, kernel_isa = "mve"))]
#[inline(always)]
fn magnitude(weights: &[i8]) -> u32 {
    #[cfg(kernel_isa = "mve")]
    // SAFETY: pointer and length are those of the slice `weights`.
    unsafe {
        magnitude_of(weights.as_ptr(), weights.len())
    }
    #[cfg(not(kernel_isa = "mve"))]
    weights.iter().map(|w| u32::from(w.unsigned_abs())).sum()
}

/// Sixteen in three instructions.
///
/// # Safety
/// `len` weights are readable at `weights`.
#[cfg(kernel_isa = "mve")]
#[unsafe(naked)]
unsafe extern "C" fn magnitude_of(weights: *const i8, len: usize) -> u32 {
    naked!(
        ".cpu cortex-m55",
        "push {{r7, lr}}",
        "vmov.i32 q1, #0",
        "mov r2, #0",
        "wlstp.8 lr, r1, 3f",
        "2: vldrb.u8 q0, [r0], #16",
        "vabav.s8 r2, q0, q1",
        "letp lr, 2b",
        "3: mov r0, r2",
        "pop {{r7, pc}}",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 64))]

        #[test]
        fn short_sums_are_scaled_as_long_ones(x: i32, near in -70_000_i32..70_000, mantissa: i32, of in 0..4, shift in -LONGEST_SHIFT..0) {
            // Mantissas of every kind: those that are rounded up to what has no 16 bits, negative ones, and the usual.
            let mantissa = match of {
                0 => mantissa,
                1 => i32::MAX - (mantissa & 0x1_FFFF),
                2 => i32::MIN + (mantissa & 0x1_FFFF),
                _ => 1 << 30 | (mantissa & 0x3FFF_FFFF),
            };
            let multiplier = Multiplier { mantissa, shift: shift as i8 };
            // Sums beside ties as well.
            let tie = (i64::from(near) << (15 - shift)) / i64::from((mantissa >> 16).max(1));
            for x in [x, near, tie as i32, i32::MAX, i32::MIN] {
                let expected = multiplier.apply_wide(i64::from(x));
                prop_assert_eq!(scaled(x, [mantissa, shift]), expected, "{} {:?}", x, multiplier);
                let half = mantissa.saturating_add(1 << 15) >> 16;
                prop_assert_eq!(by_halves(x, half, shift), expected, "{} {:?}", x, multiplier);
            }
        }
    }

    #[test]
    fn sums_are_short_where_32_bits_hold_them() {
        let of = |bias: i64, shift: i32, products: usize| {
            let channels = Channels {
                weights: &[],
                bias: &[0, bias],
                records: &[[1 << 30, -3], [1 << 30, shift]],
                clamp: [-32768, 32767],
            };
            channels.are_short(products)
        };
        let room = i64::from(i32::MAX) - (9 << 22);
        assert!(of(room, -1, 9) && of(-room, -17, 9));
        assert!(!of(room + 1, -1, 9) && !of(-room - 1, -1, 9) && !of(room, -1, 10));
        assert!(!of(0, 0, 1) && !of(0, -18, 1));
        assert!(of(1000, -1, 511) && !of(0, -1, 512) && !of(0, -1, usize::MAX));
    }

    #[test]
    fn many_products_of_small_weights_are_short() {
        let of = |weights: &[i8], bias: &[i64], shift: i32| {
            let channels = Channels {
                weights,
                bias,
                records: &[[1 << 30, shift]; 2],
                clamp: [-32768, 32767],
            };
            channels.are_short_by_weights()
        };
        let mut weights = [-1_i8; 2 * 65535];
        // The second channel's products are -32768 times -65535 at most, which leaves room for 32767.
        assert!(of(&weights, &[0, 32767], -1) && of(&weights, &[0, -32767], -17));
        assert!(!of(&weights, &[0, 32768], -1) && !of(&weights, &[0, -32768], -1));
        assert!(!of(&weights, &[0, 32767], 0) && !of(&weights, &[0, i64::MIN], -1));
        weights[65535] = -2;
        assert!(!of(&weights, &[0, 0], -1));
        weights[65536] = 0;
        assert!(of(&weights, &[0, 32767], -1));
        assert!(!of(&[], &[0, 0], -1) && !of(&[0; 1 << 18], &[0, 0], -1) && !of(&[0; 16], &[], -1));
    }
}
