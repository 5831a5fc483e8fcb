//! Numbers of floating point as int8 of one scale: in vectors, and where a core has no unit for their division by a product of integers.

use crate::cells::{Dst, Src};
#[cfg(kernel_isa = "mve")]
use crate::kernels::isa::dsp::vcvta;
use crate::quant::quantize;

/// Whether a product of integers is all that a core has: 64 bits of it.
const SOFT: bool = cfg!(any(
    all(kernel_isa = "armv7m", not(kernel_isa = "fpu")),
    all(target_arch = "riscv32", not(target_feature = "f"))
));

/// Writes [`quantize`] of each within int8; `scale` is above 0.
pub(crate) fn quantised(input: Src<'_, f32>, output: Dst<'_, i8>, scale: f32, zero: i32) {
    #[cfg(kernel_isa = "mve")]
    {
        let count = input.len().min(output.cells().len());
        if count >= 4 {
            // SAFETY: `count / 4 * 4 <= count` elements lie in both. Where both overlap, the outputs written last lie before the inputs not yet read.
            unsafe {
                helium::fours(
                    input.as_ptr(),
                    output.as_mut_ptr(),
                    count / 4,
                    &helium::QuantizeF32Args { scale, zero },
                )
            };
        }
        for (y, x) in output.cells().iter().zip(input.iter()).skip(count & !3) {
            let stored = vcvta(x / scale).saturating_add(zero);
            y.set(stored.clamp(-128, 127) as i8);
        }
    }
    #[cfg(not(kernel_isa = "mve"))]
    {
        let divider = if SOFT { Divider::new(scale, zero) } else { None };
        if let Some(divider) = divider {
            for (y, x) in output.cells().iter().zip(input.iter()) {
                y.set(divider.apply(x));
            }
            return;
        }
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(exact(x, scale, zero));
        }
    }
}

#[inline(always)]
fn exact(x: f32, scale: f32, zero: i32) -> i8 {
    quantize(x, scale, zero, -128, 127) as i8
}

/// A scale's reciprocal. Its product with a number is the quotient but for a part in 2^23, so that both are rounded to one integer unless they lie next to the
/// middle between two.
#[cfg_attr(kernel_isa = "mve", allow(dead_code))]
#[derive(Debug, Clone, Copy)]
struct Divider {
    /// Of the reciprocal, with its top bit at bit 31.
    mantissa: u32,
    /// Fraction bits of a product's upper 30 bits, and the number's exponent as it is stored.
    places: u32,
    scale: f32,
    zero: i32,
}

#[cfg_attr(kernel_isa = "mve", allow(dead_code))]
impl Divider {
    /// Exponents of scales whose reciprocals are no subnormal numbers.
    const EXPONENTS: core::ops::RangeInclusive<u32> = 32..=222;

    /// In the upper 30 bits of a product, no less than what it is off the quotient: a part in 2^24 by the reciprocal, and as much by the quotient's own
    /// rounding.
    const NEAR: u32 = 256;

    /// `None` for scales that no network has.
    fn new(scale: f32, zero: i32) -> Option<Self> {
        let fits = Self::EXPONENTS.contains(&(scale.to_bits() >> 23)) && i8::try_from(zero).is_ok();
        let reciprocal = (1.0 / scale).to_bits();
        fits.then_some(Self {
            mantissa: reciprocal << 8 | 1 << 31,
            places: 282_u32.wrapping_sub(reciprocal >> 23),
            scale,
            zero,
        })
    }

    #[inline(always)]
    fn apply(&self, x: f32) -> i8 {
        let bits = x.to_bits();
        let places = self.places.wrapping_sub(bits >> 23 & 0xFF);
        if places.wrapping_sub(21) > 10 {
            return self.apart(x, places);
        }
        let product = u64::from(bits << 8 | 1 << 31) * u64::from(self.mantissa);
        let rounded = ((product >> 34) as u32).wrapping_add(1 << (places & 31) >> 1);
        let up = 32_u32.wrapping_sub(places);
        if rounded.wrapping_add(Self::NEAR).wrapping_shl(up) < (2 * Self::NEAR).wrapping_shl(up) {
            return self.apart(x, 0);
        }
        let magnitude = rounded.wrapping_shr(places) as i32;
        let sign = bits as i32 >> 31;
        let stored = (magnitude ^ sign).wrapping_sub(sign).wrapping_add(self.zero);
        stored.clamp(-128, 127) as i8
    }

    /// Numbers below a quarter of the scale, and all others that a product does not settle.
    #[cold]
    #[inline(never)]
    fn apart(&self, x: f32, places: u32) -> i8 {
        if places as i32 > 31 {
            self.zero as i8
        } else {
            exact(x, self.scale, self.zero)
        }
    }
}

#[cfg(kernel_isa = "mve")]
mod helium {
    #[repr(C)]
    pub(super) struct QuantizeF32Args {
        pub(super) scale: f32,
        pub(super) zero: i32,
    }

    /// Four at a time, in twelve instructions: divisions are those of single registers. `fours` is not 0.
    ///
    /// # Safety
    /// `4 * fours` elements at `x` and `y`.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn fours(x: *const f32, y: *mut i8, fours: usize, args: &QuantizeF32Args) {
        naked!(QuantizeF32Args { scale, zero } =>
            ".cpu cortex-m55",
            "push {{r7, lr}}",
            "vldr s4, [r3, #{scale}]",
            "ldr r12, [r3, #{zero}]",
            "mvn r3, #127",
            "vdup.32 q2, r3",
            "movs r3, #127",
            "vdup.32 q3, r3",
            "dls lr, r2",
            "2: vldrw.u32 q0, [r0], #16",
            "vdiv.f32 s0, s0, s4",
            "vdiv.f32 s1, s1, s4",
            "vdiv.f32 s2, s2, s4",
            "vdiv.f32 s3, s3, s4",
            // To nearest, ties away from zero, saturated; 0 of NaN.
            "vcvta.s32.f32 q0, q0",
            "vqadd.s32 q0, q0, r12",
            "vmax.s32 q0, q0, q2",
            "vmin.s32 q0, q0, q3",
            "vstrb.32 q0, [r1], #4",
            "le lr, 2b",
            "pop {{r7, pc}}",
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use core::cell::Cell;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 64))]

        /// Any numbers, those beside integers and ties, and those at the ends of the range; scales of networks and any others.
        #[test]
        fn products_are_rounded_as_quotients(
            bits: u32, scale in prop_oneof![1e-4_f32..2.0, 1e-28_f32..1e-20, 1e10_f32..1e28], odd: bool, zero: i8, halves in -700_i32..700,
            ulps in -140_i32..140,
        ) {
            // Divisors with few bits have quotients that are ties.
            let scale = if odd { scale } else { f32::from_bits(scale.to_bits() & 0xFFF0_0000) };
            let divider = Divider::new(scale, zero.into()).expect("a scale of networks");
            let beside = halves as f32 / 2.0 * scale;
            for x in [f32::from_bits(bits), beside, f32::from_bits(beside.to_bits().wrapping_add_signed(ulps)), 0.0, -0.0, f32::NAN, f32::INFINITY] {
                prop_assert_eq!(divider.apply(x), exact(x, scale, zero.into()), "{} of {}", x, scale);
            }
        }
    }

    #[test]
    fn what_has_no_divider() {
        for scale in [f32::INFINITY, f32::from_bits(1), 1e-30, 1e30] {
            assert!(Divider::new(scale, 0).is_none(), "{scale}");
        }
        assert!(Divider::new(1e-28, 0).is_some());
        assert!(Divider::new(0.5, 128).is_none());
        assert!(Divider::new(0.5, -128).is_some());
    }

    #[test]
    fn every_element_is_written() {
        for count in 0..10 {
            let input: Vec<f32> = (0..count).map(|i| i as f32 - 2.5).collect();
            let cells: Vec<Cell<u8>> = (0..count).map(|_| Cell::new(99)).collect();
            let output = Dst::<i8>::from_cells(&cells).expect("bytes");
            quantised(Src::from_slice(&input), output, 0.5, 3);
            let found: Vec<i8> = cells.iter().map(|y| y.get() as i8).collect();
            let expected: Vec<i8> = (0..count).map(|i| 2 * i as i8 - 2).collect();
            assert_eq!(found, expected);
        }
    }
}
