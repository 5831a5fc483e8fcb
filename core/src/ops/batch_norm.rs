//! Batch norm whose parameters or statistics are no constants (Ioffe and Szegedy 2015), channels innermost.
//!
//! `y = (x - mean) * gain / sqrt(variance + epsilon) + shift`. In inference mean and variance are the moving ones, of a state; in training those of the batch:
//! the mean over all rows, and the mean square of what is beside it. With `n` rows, `x' = (x - mean) / sqrt(variance + epsilon)` and sums over the rows:
//!
//! `dshift = sum dy`, `dgain = sum dy x'`, `dx = gain / sqrt(variance + epsilon) * (dy - dshift / n - x' dgain / n)`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, TURN, blocks, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// A batch norm of f32.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BatchNormF32<P> {
        /// `[rows, channels]`
        pub output: P,
        /// `[rows, channels]`
        pub input: P,
        /// `[channels]`
        pub gain: P,
        /// `[channels]`
        pub shift: P,
        /// `[channels]`
        pub mean: P,
        /// `[channels]`
        pub variance: P,
        /// An f32 for each channel.
        pub scratch: P;
        /// Product of the outer extents.
        pub rows: u32,
        /// Channels.
        pub channels: u32,
        /// Added to the variance.
        pub epsilon: f32,
    }
}

operator! {
    /// Mean and variance of a batch, f32, and the moving ones that follow them: `moving = momentum * moving + (1 - momentum) * batch`. The moving variance
    /// takes the unbiased one, `variance * rows / (rows - 1)`, where there are two rows at least.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BatchStatisticsF32<P> {
        /// `[channels]`
        pub mean: P,
        /// `[channels]`
        pub variance: P,
        /// `[channels]`, updated.
        pub moving_mean: P,
        /// `[channels]`, updated.
        pub moving_variance: P,
        /// `[rows, channels]`
        pub input: P;
        /// Product of the outer extents.
        pub rows: u32,
        /// Channels.
        pub channels: u32,
        /// Share that the moving statistics keep.
        pub momentum: f32,
    }
}

operator! {
    /// Gradients of a batch norm of f32 whose mean and variance are those of its input.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BatchNormGradF32<P> {
        /// Gradient of the input, `[rows, channels]`.
        pub output: P,
        /// Gradient of the gain, `[channels]`.
        pub gain_gradient: P,
        /// Gradient of the shift, `[channels]`.
        pub shift_gradient: P,
        /// Gradient of the output, `[rows, channels]`.
        pub gradient: P,
        /// `[rows, channels]`
        pub input: P,
        /// `[channels]`
        pub gain: P,
        /// Mean of the batch, `[channels]`.
        pub mean: P,
        /// Variance of the batch, `[channels]`.
        pub variance: P,
        /// Three f32 for each channel.
        pub scratch: P;
        /// Product of the outer extents.
        pub rows: u32,
        /// Channels.
        pub channels: u32,
        /// Added to the variance.
        pub epsilon: f32,
    }
}

/// Neighbours that are summed at a time.
const LANES: u32 = 8;

fn check(rows: u32, channels: u32) -> Result<(), Fault> {
    checked_size(&[rows, channels, 4])?;
    checked_size(&[channels, 3, 4]).map(|_| ())
}

fn matrix<P: Place>(access: Access, place: P, rows: u32, channels: u32) -> Operand<P> {
    Operand::of::<f32>(access, place, rows.saturating_mul(channels))
}

impl<P: Place> Operator for BatchNormF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(self.rows, self.channels)
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Write, self.output, self.rows, self.channels));
        visit(matrix(Access::Read, self.input, self.rows, self.channels));
        for parameter in [self.gain, self.shift, self.mean, self.variance] {
            visit(matrix(Access::Read, parameter, 1, self.channels));
        }
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    fn cost(&self, needs: Needs) -> Cost {
        of_operands(|visit| self.operands(needs, visit))
            .sums(self.channels.into(), 8)
            .sums(self.rows.into(), u64::from(self.channels).saturating_mul(2))
    }
}

impl<P: Place> Operator for BatchStatisticsF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(self.rows, self.channels)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Write, self.mean, 1, self.channels));
        visit(matrix(Access::Write, self.variance, 1, self.channels));
        visit(matrix(Access::Update, self.moving_mean, 1, self.channels));
        visit(matrix(Access::Update, self.moving_variance, 1, self.channels));
        visit(matrix(Access::Read, self.input, self.rows, self.channels));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let turns = blocks(self.channels, LANES).saturating_mul(self.rows.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(
                self.channels.into(),
                u64::from(self.rows).saturating_mul(2).saturating_add(8),
            )
            .computations(turns.saturating_mul(2), TURN)
    }
}

impl<P: Place> Operator for BatchNormGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(self.rows, self.channels)
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(matrix(Access::Write, self.output, self.rows, self.channels));
        visit(matrix(Access::Write, self.gain_gradient, 1, self.channels));
        visit(matrix(Access::Write, self.shift_gradient, 1, self.channels));
        visit(matrix(Access::Read, self.gradient, self.rows, self.channels));
        visit(matrix(Access::Read, self.input, self.rows, self.channels));
        for parameter in [self.gain, self.mean, self.variance] {
            visit(matrix(Access::Read, parameter, 1, self.channels));
        }
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let turns = blocks(self.channels, LANES).saturating_mul(self.rows.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(
                self.channels.into(),
                u64::from(self.rows).saturating_mul(5).saturating_add(8),
            )
            .computations(turns, TURN)
    }
}
