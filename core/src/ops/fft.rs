//! The Fourier transform of real samples and its inverse, as TensorFlow Lite Micro has them of kiss_fft (M. Borgerding): mixed radix, decimated in time.
//! Fixed-point forms divide by the radix before every stage, with rounding, so that nothing overflows; a transform so comes out divided by its length.
//!
//! Rows of `length` samples become `length / 2 + 1` pairs of real and imaginary part. The samples are seen as `n = length / 2` complex ones, which
//! are transformed; from them follow the real ones' bins. The factors of a stage lie in the order of their use: see [`FftPlan`].

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::tensor::DType;

/// The longest transform.
pub const MAX_FFT: u32 = 1 << 16;

/// Room for the stages of one: nine, of threes, are the most below [`MAX_FFT`] / 2.
pub const MAX_STAGES: usize = 12;

operator! {
    /// The transform of rows of real samples, or its inverse.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalFft<P> {
        /// `[rows, length + 2]`; of the inverse `[rows, length]`.
        pub output: P,
        /// `[rows, samples]`; of the inverse `[rows, length + 2]`.
        pub input: P;
        /// int16, int32 or f32.
        pub dtype: DType,
        /// Rows.
        pub rows: u32,
        /// Samples of a row; zeros follow up to `length`. Of the inverse: `length`.
        pub samples: u32,
        /// Length of the transform: even, half of it a product of 2, 3 and 5.
        pub length: u32,
        /// Back to samples.
        pub inverse: bool,
        /// Offset of [`FftPlan::factors`] complex factors, real and imaginary part.
        pub twiddles: u32,
    }
}

/// Computation of a transform of complex samples, in stages; those of the shortest transforms come first.
///
/// A stage of radix `p` makes transforms of `p * m` samples of those of `m`. Its factors are, with `w = exp(-2 pi i / (p * m))` (the inverse: its
/// conjugate): `w^m` for radix 3, `w^m` and `w^2m` for radix 5; then for each `u` below `m`: `w^u`, `w^2u`, … `w^(p-1)u`. Behind all stages are, for
/// `k` from 1 to `n / 2`, `-i exp(-i pi k / n)`, which join the halves of the real samples' transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FftPlan {
    /// The radices, those of the longest transforms first.
    radices: [u8; MAX_STAGES],
    stages: usize,
    /// Complex samples.
    n: u32,
}

impl FftPlan {
    /// The plan for `length` real samples; `None` where there is none.
    pub fn new(length: u32) -> Option<Self> {
        if !length.is_multiple_of(2) || !(4..=MAX_FFT).contains(&length) {
            return None;
        }
        let n = length / 2;
        let (mut left, mut radices, mut stages) = (n, [0; MAX_STAGES], 0);
        for radix in [4u8, 2, 3, 5] {
            while left.is_multiple_of(u32::from(radix)) {
                *radices.get_mut(stages)? = radix;
                stages += 1;
                left = left.checked_div(radix.into())?;
            }
        }
        (left == 1).then_some(Self { radices, stages, n })
    }

    /// The radices, those of the longest transforms first.
    pub fn radices(&self) -> &[u8] {
        self.radices.get(..self.stages).unwrap_or(&[])
    }

    /// Complex samples.
    pub fn n(&self) -> u32 {
        self.n
    }

    /// Complex factors of all stages, and of the joining.
    pub fn factors(&self) -> u32 {
        let mut m = 1;
        let stages = self.radices().iter().rev().map(|&radix| {
            let own = stage_factors(radix, m);
            m *= u32::from(radix);
            own
        });
        stages.sum::<u32>() + self.n / 2
    }
}

/// Complex factors of a stage of radix `radix` over transforms of `m`.
pub fn stage_factors(radix: u8, m: u32) -> u32 {
    leading_factors(radix) + (u32::from(radix) - 1) * m
}

/// Those that the whole stage has in common.
pub fn leading_factors(radix: u8) -> u32 {
    match radix {
        3 => 1,
        5 => 2,
        _ => 0,
    }
}

impl<P: Place> SignalFft<P> {
    /// Elements of a row of the input and of the output.
    pub fn row(&self) -> [u32; 2] {
        let pairs = self.length.saturating_add(2);
        if self.inverse {
            [pairs, self.length]
        } else {
            [self.samples, pairs]
        }
    }
}

impl<P: Place> Operator for SignalFft<P> {
    fn check(&self) -> Result<(), Fault> {
        if !matches!(self.dtype, DType::I16 | DType::I32 | DType::F32) {
            return Err(Fault::Unsupported);
        }
        FftPlan::new(self.length).ok_or(Fault::Unsupported)?;
        if self.samples == 0 || self.samples > self.length || (self.inverse && self.samples != self.length) {
            return Err(Fault::Shape);
        }
        for elements in self.row() {
            checked_size(&[self.rows, elements, 4])?;
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [from, to] = self.row();
        let of = |access, place, row| {
            let count = size(&[self.rows, row]).unwrap_or(u32::MAX);
            Operand::of_type(self.dtype, access, place, count)
        };
        visit(of(Access::Write, self.output, to));
        visit(of(Access::Read, self.input, from));
        let factors = FftPlan::new(self.length).map_or(0, |plan| plan.factors());
        let twiddles = factors.saturating_mul(2);
        visit(Operand::of_type(
            self.dtype,
            Access::Read,
            P::constant(self.twiddles),
            twiddles,
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let stages = FftPlan::new(self.length).map_or(0, |plan| plan.radices().len() as u64);
        let points = u64::from(self.rows).saturating_mul(self.length.into());
        let each = (stages + 2).saturating_mul(8);
        of_operands(|visit| self.operands(needs, visit)).plus(Cost {
            products: points.saturating_mul(each),
            ..Cost::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_products_of_small_primes() {
        let radices = |length| FftPlan::new(length).map(|plan| plan.radices().to_vec());
        assert_eq!(radices(512), Some([4, 4, 4, 4].into()));
        assert_eq!(radices(480), Some([4, 4, 3, 5].into()));
        assert_eq!(radices(24), Some([4, 3].into()));
        assert_eq!(radices(4), Some([2].into()));
        assert_eq!(radices(65_536), Some([4, 4, 4, 4, 4, 4, 4, 2].into()));
        for length in [0, 2, 3, 5, 7, 14, 22, 131_072] {
            assert_eq!(radices(length), None, "{length}");
        }
    }

    #[test]
    fn factors_are_counted() {
        // Radix 5 over 1: two and four; radix 3 over 5: one and ten; four and four over 15 and 60; and half of 240.
        let plan = FftPlan::new(480).expect("a plan");
        assert_eq!(plan.factors(), 6 + 11 + 45 + 180 + 120);
        let longest = (4..=MAX_FFT)
            .filter_map(FftPlan::new)
            .map(|plan| plan.radices().len())
            .max();
        assert!(longest.is_some_and(|stages| stages <= MAX_STAGES), "{longest:?}");
    }
}
