//! Numbers of known magnitude times a multiplier: the reference's two roundings and the zero point, without a look at the number.
//!
//! The first rounding is `q = (x * m + 2^30) >> 31`, the high word of `2x * m` rounded. The second one, of `q / 2^s` with ties away from zero, is
//! `(q + 2^(s-1) - [x < 0]) >> s` for s > 0 (where a negative number's q is 0, one less does not matter); the zero point goes into its addend. All of it has
//! 32 bits where the numbers are as small as they are said to be.

use crate::kernels::isa::dsp::smmlar;
use crate::quant::{Multiplier, high_mul_in_range, wide_product};

/// A multiplier that shifts to the right, and the zero point of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rescale {
    mantissa: i32,
    right: u32,
    /// Zero point and second rounding.
    addend: i32,
}

impl Rescale {
    /// For numbers of at most `magnitude`. `None` where the multiplier is not positive or does not shift to the right, or something has more than 32 bits.
    pub(crate) fn new(multiplier: Multiplier, magnitude: i64, zero: i32) -> Option<Self> {
        let Multiplier { mantissa, shift } = multiplier;
        if !multiplier.narrows() || magnitude > Self::REACH {
            return None;
        }
        let right = u32::from(shift.unsigned_abs());
        let addend = (2 * i64::from(zero) + 1) << (right - 1);
        let largest = ((magnitude * i64::from(mantissa)) >> 31) + 2;
        i32::try_from(addend.abs().saturating_add(largest)).ok()?;
        let addend = addend as i32;
        Some(Self {
            mantissa,
            right,
            addend,
        })
    }

    /// The largest magnitude.
    const REACH: i64 = 1 << 30;

    /// Mantissa, addend and shift to the right, for loops in assembly: twice the number times the mantissa, its high word rounded, with the addend and one less
    /// where the number is negative.
    #[cfg_attr(not(any(kernel_isa = "armv7m", target_arch = "riscv32")), allow(dead_code))]
    pub(crate) fn parts(&self) -> (i32, i32, u32) {
        (self.mantissa, self.addend, self.right)
    }

    /// The number scaled, with the zero point. Twice `x` has 32 bits.
    #[inline(always)]
    pub(crate) fn apply(&self, x: i32) -> i32 {
        self.of_twice(x << 1)
    }

    /// The same of twice the number.
    #[inline(always)]
    pub(crate) fn of_twice(&self, twice: i32) -> i32 {
        high_of_twice(twice, self.mantissa, self.addend)
            .wrapping_add(twice >> 31)
            .wrapping_shr(self.right)
    }

    /// The same of the number `-n / 2`.
    #[inline(always)]
    pub(crate) fn of_minus_twice(&self, n: i32) -> i32 {
        high_of_twice(n, self.mantissa.wrapping_neg(), self.addend.wrapping_sub(1))
            .wrapping_sub(n >> 31)
            .wrapping_shr(self.right)
    }
}

/// A multiplier that does not shift to the right, and the zero point of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Enlarge {
    mantissa: i32,
    left: u32,
    zero: i32,
}

impl Enlarge {
    /// For numbers of at most `magnitude`. `None` where the multiplier is not positive or shifts to the right, or something has more than 32 bits.
    pub(crate) fn new(multiplier: Multiplier, magnitude: i64, zero: i32) -> Option<Self> {
        let Multiplier { mantissa, shift } = multiplier;
        let left = u32::try_from(shift).ok()?;
        let fits = mantissa >= 0 && left < 31 && magnitude < Rescale::REACH >> left && zero.unsigned_abs() < 1 << 30;
        fits.then_some(Self { mantissa, left, zero })
    }

    /// Of twice a number.
    #[inline(always)]
    pub(crate) fn of_twice(&self, twice: i32) -> i32 {
        high_of_twice(twice.wrapping_shl(self.left), self.mantissa, self.zero)
    }
}

/// A multiplier that shifts either way; no zero point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Either {
    mantissa: i32,
    left: u32,
    right: u32,
}

impl Either {
    /// For numbers of at most `magnitude`. `None` where the multiplier is negative, or something has more than 32 bits.
    pub(crate) fn new(multiplier: Multiplier, magnitude: i64) -> Option<Self> {
        let Multiplier { mantissa, shift } = multiplier;
        let (left, right) = (shift.max(0) as u32, shift.min(0).unsigned_abs().into());
        let fits = mantissa >= 0 && left < 30 && right <= 30 && magnitude <= (Rescale::REACH - 1) >> left;
        fits.then_some(Self { mantissa, left, right })
    }

    /// Mantissa, shift to the left and to the right, for loops in assembly.
    #[cfg_attr(not(kernel_isa = "gpr32"), allow(dead_code))]
    pub(crate) fn parts(&self) -> (i32, u32, u32) {
        (self.mantissa, self.left, self.right)
    }

    /// Of the second rounding: half of what it shifts to one, and -1; both 0 without a shift, when nothing is taken off.
    #[inline(always)]
    pub(crate) fn rounding(&self) -> (i32, i32) {
        (
            1_i32.wrapping_shl(self.right) >> 1,
            i32::from(self.right > 0).wrapping_neg(),
        )
    }

    /// The number scaled.
    #[inline(always)]
    pub(crate) fn apply(&self, x: i32) -> i32 {
        let twice = x.wrapping_shl(self.left.wrapping_add(1));
        let (half, sign) = self.rounding();
        high_of_twice(twice, self.mantissa, half)
            .wrapping_add((twice >> 31) & sign)
            .wrapping_shr(self.right)
    }
}

/// `acc + ((twice * m / 2 + 2^30) >> 31)` of an even number.
#[inline(always)]
fn high_of_twice(twice: i32, m: i32, acc: i32) -> i32 {
    if cfg!(kernel_isa = "armv6m") {
        high_mul_in_range(twice >> 1, m).wrapping_add(acc)
    } else {
        smmlar(twice, m, acc)
    }
}

/// A term of an int16 sum, `x * 2^15` times a multiplier that shifts to the right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    mantissa: i32,
    right: u32,
    half: i32,
}

impl Term {
    /// `None` where the multiplier is not positive or does not shift to the right.
    pub(crate) fn new(multiplier: Multiplier) -> Option<Self> {
        let Multiplier { mantissa, shift } = multiplier;
        multiplier.narrows().then(|| Self {
            mantissa,
            right: u32::from(shift.unsigned_abs()),
            half: 1 << (shift.unsigned_abs() - 1),
        })
    }

    /// Of a number of 16 bits: `(x * 2^15 * m + 2^30) >> 31`, and the second rounding.
    #[inline(always)]
    pub(crate) fn apply(&self, x: i32) -> i32 {
        if cfg!(kernel_isa = "dsp") {
            let x = x << 16;
            return smmlar(x, self.mantissa, self.half)
                .wrapping_add(x >> 31)
                .wrapping_shr(self.right);
        }
        // Two products of 32 bits.
        let low = x
            .wrapping_mul(self.mantissa & 0xFFFF)
            .wrapping_add(1 << 15)
            .wrapping_shr(16);
        let q = x.wrapping_mul(self.mantissa >> 16).wrapping_add(low);
        q.wrapping_add(q >> 31).wrapping_add(self.half).wrapping_shr(self.right)
    }
}

/// A term of an int8 sum, `(x - zero) * 2^20` times a multiplier that does not shift to the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteTerm {
    mantissa: i32,
    right: u32,
    half: i32,
    /// Mask of the sign that is added to a quotient: -1 where the multiplier shifts to the right, else 0.
    sign: i32,
    zero: i32,
}

impl ByteTerm {
    /// `None` where the multiplier is negative or shifts to the left.
    pub(crate) fn new(multiplier: Multiplier, zero: i8) -> Option<Self> {
        let Multiplier { mantissa, shift } = multiplier;
        let right = u32::from(shift.unsigned_abs());
        (mantissa >= 0 && (-30..=0).contains(&shift)).then_some(Self {
            mantissa,
            right,
            half: (1 << right) >> 1,
            sign: -i32::from(right > 0),
            zero: zero.into(),
        })
    }

    /// `((x - zero) * 2^20 * m + 2^30) >> 31`, and the second rounding.
    #[inline(always)]
    pub(crate) fn apply(&self, x: i8) -> i32 {
        let x = i32::from(x).wrapping_sub(self.zero);
        let q = if cfg!(kernel_isa = "dsp") {
            smmlar(x << 21, self.mantissa, self.half)
        } else {
            // Two products of 32 bits.
            let low = x.wrapping_mul(self.mantissa & 0xFFFF).wrapping_add(1 << 10) >> 11;
            x.wrapping_mul((self.mantissa >> 16) << 5)
                .wrapping_add(low)
                .wrapping_add(self.half)
        };
        // Subtracting one from a negative number's quotient of 0 does not change the result.
        ((x >> 31) & self.sign).wrapping_add(q).wrapping_shr(self.right)
    }
}

/// [`Multiplier::apply_wide`] of numbers of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RescaleS64 {
    mantissa: i32,
    /// 1 to 31.
    right: u32,
}

impl RescaleS64 {
    /// `None` where it shifts by more than 31.
    pub(crate) fn new(multiplier: Multiplier) -> Option<Self> {
        let (mantissa, right) = multiplier.wide();
        (right < 32).then_some(Self { mantissa, right })
    }

    /// Mantissa, shift to the left of a product's high word, and to the right of its low one as a number below 0.
    #[cfg(kernel_isa = "mve")]
    pub(crate) fn parts(&self) -> [i32; 3] {
        let right = self.right as i32;
        [self.mantissa, 32 - right, -right]
    }

    /// The number scaled.
    #[inline(always)]
    pub(crate) fn apply(&self, x: i32) -> i32 {
        wide_product(x, self.mantissa, self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::isa::dsp::{sadd16, smulbb, smultt};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        #[test]
        fn it_is_the_multiplier(x in -(1_i32 << 30)..1 << 30, bits in 0..30, near in -3_i32..4, mantissa in 0..=i32::MAX, shift in -31_i8..2, zero: i16) {
            let multiplier = Multiplier { mantissa, shift };
            for x in [x >> bits, (near << (bits % 28)) + near / 2, 1 << 30, 1 - (1 << 30)] {
                if let Some(rescale) = Rescale::new(multiplier, i64::from(x).abs(), zero.into()) {
                    let expected = multiplier.apply(x).wrapping_add(zero.into());
                    if x < 1 << 30 {
                        prop_assert_eq!(rescale.apply(x), expected, "{} {:?}", x, multiplier);
                    }
                    prop_assert_eq!(rescale.of_minus_twice(x.wrapping_mul(-2)), expected, "{} {:?}", x, multiplier);
                }
            }
        }

        #[test]
        fn enlarging_is_the_multiplier(x in -(1_i32 << 30)..1 << 30, bits in 0..30, mantissa in 0..=i32::MAX, shift in -1_i8..20, zero: i16) {
            let multiplier = Multiplier { mantissa, shift };
            let x = x >> bits;
            if let Some(enlarge) = Enlarge::new(multiplier, i64::from(x).abs(), zero.into()) {
                prop_assert!(shift >= 0);
                prop_assert_eq!(enlarge.of_twice(x << 1), multiplier.apply(x).wrapping_add(zero.into()), "{} {:?}", x, multiplier);
            }
        }

        #[test]
        fn either_way_is_the_multiplier(x in 1 - (1_i32 << 30)..1 << 30, bits in 0..30, near in -3_i32..4, mantissa: i32, shift in -31_i8..=31) {
            let multiplier = Multiplier { mantissa, shift };
            for x in [x >> bits, near << (bits % 28), (1 << 30) - 1, 1 - (1 << 30)] {
                match Either::new(multiplier, i64::from(x).abs()) {
                    Some(either) => prop_assert_eq!(either.apply(x), multiplier.apply(x), "{} {:?}", x, multiplier),
                    None => prop_assert!(mantissa < 0 || shift == -31 || shift >= 30 || i64::from(x).abs() << shift.max(0) >= 1 << 30),
                }
            }
        }

        #[test]
        fn a_term_is_its_multiplier(x: i16, mantissa in 0..=i32::MAX, shift in -31_i8..2) {
            let multiplier = Multiplier { mantissa, shift };
            if let Some(term) = Term::new(multiplier) {
                for x in [x, i16::MIN, i16::MAX, -1, 0, 1].map(i32::from) {
                    prop_assert_eq!(term.apply(x), multiplier.apply(x << 15), "{} {:?}", x, multiplier);
                }
            }
        }

        #[test]
        fn a_byte_term_is_its_multiplier(mantissa in 0..=i32::MAX, shift in -31_i8..2, zero: i8) {
            let multiplier = Multiplier { mantissa, shift };
            if let Some(term) = ByteTerm::new(multiplier, zero) {
                for x in i8::MIN..=i8::MAX {
                    let expected = multiplier.apply((i32::from(x) - i32::from(zero)) << 20);
                    prop_assert_eq!(term.apply(x), expected, "{} - {} {:?}", x, zero, multiplier);
                }
            } else {
                prop_assert!(shift > 0 || shift == -31);
            }
        }

        #[test]
        fn instructions_are_what_they_mean(a: i32, b: i32, c: i32) {
            let product = (i64::from(a) * i64::from(b) + (1 << 31)) >> 32;
            prop_assert_eq!(smmlar(a, b, c), c.wrapping_add(product as i32));
            let (x, y) = (a as u32, b as u32);
            prop_assert_eq!(smulbb(x, y), i32::from(a as i16) * i32::from(b as i16));
            prop_assert_eq!(smultt(x, y), (a >> 16) * (b >> 16));
            let low = (a as i16).wrapping_add(b as i16) as u16;
            prop_assert_eq!(sadd16(x, y), u32::from(low) | ((x >> 16).wrapping_add(y >> 16) << 16));
        }
    }

    #[test]
    fn what_has_no_form() {
        let of = |mantissa, shift| Multiplier { mantissa, shift };
        assert!(Rescale::new(of(1 << 30, -1), 1 << 30, 0).is_some());
        assert!(Rescale::new(of(1 << 30, -1), (1 << 30) + 1, 0).is_none());
        assert!(Rescale::new(of(-1, -1), 1, 0).is_none());
        assert!(Rescale::new(of(1 << 30, 0), 1, 0).is_none());
        assert!(Rescale::new(of(1 << 30, -30), 1, 4).is_none());
        assert!(Enlarge::new(of(1 << 30, 1), (1 << 29) - 1, 0).is_some());
        assert!(Enlarge::new(of(1 << 30, 1), 1 << 29, 0).is_none());
        assert!(Enlarge::new(of(1 << 30, -1), 1, 0).is_none());
        assert!(Enlarge::new(of(-1, 0), 1, 0).is_none());
        assert!(Either::new(of(1 << 30, 1), (1 << 29) - 1).is_some());
        assert!(Either::new(of(1 << 30, 1), 1 << 29).is_none());
        assert!(Either::new(of(-1, 1), 1).is_none());
        assert!(Either::new(of(1 << 30, -31), 1).is_none());
        assert!(Either::new(of(1 << 30, 30), 0).is_none());
        assert!(Term::new(of(1 << 30, 0)).is_none());
        assert!(Term::new(of(-1, -1)).is_none());
    }
}
