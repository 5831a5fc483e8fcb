//! Accumulators of int16 activations, which have 48 bits, scaled as TensorFlow Lite does.

use super::rounding::Multiplier;

impl Multiplier {
    /// `x` times the factor for 48-bit accumulators of 16-bit activations: the mantissa is rounded to 16 bits, the product once.
    /// The result is cut to 32 bits. Defined for shifts up to 7.
    #[inline]
    pub fn apply_wide(self, x: i64) -> i32 {
        let (mantissa, shift) = self.wide();
        if let (Ok(x), 1..=31) = (i32::try_from(x), shift) {
            // Most sums: one product of words, and the result from both of its halves.
            return wide_product(x, mantissa, shift);
        }
        let product = x.wrapping_mul(i64::from(mantissa)).wrapping_add(1 << (shift - 1));
        (product >> shift) as i32
    }

    /// Factor of [`Multiplier::apply_wide`], and its shift to the right, 1 to 63.
    #[inline]
    pub(crate) fn wide(self) -> (i32, u32) {
        let mantissa = self.mantissa.min(0x7FFE_FFFF).wrapping_add(1 << 15) >> 16;
        (mantissa, (15 - i32::from(self.shift)).clamp(1, 63) as u32)
    }
}

/// `(x * mantissa + 2^(shift - 1)) >> shift`, cut to 32 bits, from the two halves of the product; the shift is 1 to 31.
#[inline(always)]
pub(crate) fn wide_product(x: i32, mantissa: i32, shift: u32) -> i32 {
    let product = i64::from(x) * i64::from(mantissa) + i64::from(1_u32 << (shift - 1));
    ((product as u32 >> shift) | (((product >> 32) as u32) << (32 - shift))) as i32
}
