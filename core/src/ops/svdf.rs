//! TensorFlow Lite's SVDF: a rank-limited filter over features and time (Nakkiran et al., "Compressing Deep Neural Networks using
//! a Rank-Constrained Topology", 2015).
//!
//! The state holds for each filter its last `memory` outputs over features. A run shifts it by one, appends
//! `s[f] = sum x[i] * w[f, i]`, and gives for each unit `y[u] = act(bias[u] + sum over its filters f and times t of
//! s[f, t] * v[f, t])`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::packed_conv2d::Form;
use crate::ops::size::{checked_size, size};
use crate::quant::Multiplier;
use crate::tensor::DType;

/// Extents of an SVDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SvdfShape {
    /// Rows of the input.
    pub batch: u32,
    /// Features of the input.
    pub features: u32,
    /// Features of the output.
    pub units: u32,
    /// Filters of a unit.
    pub rank: u32,
    /// Times that a filter remembers.
    pub memory: u32,
}

operator! {
    /// An int8 SVDF with int8 or int16 state.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SvdfS8<P> {
        /// `[batch, units]`
        pub output: P,
        /// `[batch, features]`
        pub input: P,
        /// `[batch, filters, memory]`
        pub state: P;
        /// Extents.
        pub shape: SvdfShape,
        /// Type of state and time weights: int8 or int16.
        pub state_type: DType,
        /// Offset of the feature weights `[filters, features]`, int8.
        pub weights: u32,
        /// Offset of the time weights `[filters, memory]`.
        pub time_weights: u32,
        /// Offset of the bias `[units]`, i32.
        pub bias: u32,
        /// Zero points of input, state and output.
        pub zero: [i32; 3],
        /// Into the state, and into the output.
        pub multipliers: [Multiplier; 2],
    }
}

operator! {
    /// An int8 SVDF with int8 state of zero point 0, whose constants are in the layout of a kernel for fully connected layers, which sums over the features.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PackedSvdfS8<P> {
        /// `[batch, units]`
        pub output: P,
        /// `[batch, features]`
        pub input: P,
        /// `[batch, filters, memory]`
        pub state: P,
        /// The kernel's scratch.
        pub scratch: P;
        /// Extents; features and filters have 16 bits.
        pub shape: SvdfShape,
        /// Offset of the constants: the feature weights as the fully connected kernel has them, the biases `[units]`, i32, and the time weights
        /// `[filters, memory]`, int8. A multiple of 4.
        pub weights: u32,
        /// Requantisation form of the fully connected kernel.
        pub form: Form,
        /// Zero points of input and output.
        pub zero: [i8; 2],
        /// Into the output.
        pub multiplier: Multiplier,
    }
}

operator! {
    /// An f32 SVDF.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SvdfF32<P> {
        /// `[batch, units]`
        pub output: P,
        /// `[batch, features]`
        pub input: P,
        /// `[batch, filters, memory]`
        pub state: P;
        /// Extents.
        pub shape: SvdfShape,
        /// Offset of the feature weights `[filters, features]`.
        pub weights: u32,
        /// Offset of the time weights `[filters, memory]`.
        pub time_weights: u32,
        /// Offset of the bias `[units]`.
        pub bias: u32,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

impl SvdfShape {
    /// Each filter over the features, and over its memory.
    fn cost(&self, operands: Cost) -> Cost {
        let filters = u64::from(self.batch).saturating_mul(self.filters().into());
        // In addition the state moves on.
        operands.sums(filters, u64::from(self.features) + 3 * u64::from(self.memory))
    }

    /// Units times rank.
    pub fn filters(&self) -> u32 {
        self.units.saturating_mul(self.rank)
    }

    fn check(&self) -> Result<(), Fault> {
        let Self {
            batch,
            features,
            units,
            rank,
            memory,
        } = *self;
        checked_size(&[batch, features, 4])?;
        checked_size(&[units, rank, features, 4])?;
        checked_size(&[batch, units, rank, memory, 4])?;
        Ok(())
    }

    fn operands<P: Place>(
        &self,
        dtype: DType,
        state_type: DType,
        places: [P; 3],
        offsets: [u32; 3],
        visit: &mut dyn FnMut(Operand<P>),
    ) {
        let [output, input, state] = places;
        let [weights, time_weights, bias] = offsets;
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        let constant = |dtype, offset, count| Operand::of_type(dtype, Access::Read, P::constant(offset), count);
        visit(Operand::of_type(
            dtype,
            Access::Write,
            output,
            len(&[self.batch, self.units]),
        ));
        visit(Operand::of_type(
            dtype,
            Access::Read,
            input,
            len(&[self.batch, self.features]),
        ));
        let states = len(&[self.batch, self.filters(), self.memory]);
        visit(Operand::of_type(state_type, Access::Update, state, states));
        visit(constant(dtype, weights, len(&[self.filters(), self.features])));
        visit(constant(state_type, time_weights, len(&[self.filters(), self.memory])));
        visit(constant(DType::I32, bias, self.units));
    }
}

impl<P: Place> Operator for SvdfS8<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape.check()?;
        let valid = self.multipliers.iter().all(|m| m.is_valid());
        if valid && matches!(self.state_type, DType::I8 | DType::I16) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let places = [self.output, self.input, self.state];
        let offsets = [self.weights, self.time_weights, self.bias];
        self.shape.operands(DType::I8, self.state_type, places, offsets, visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape.cost(of_operands(|visit| self.operands(needs, visit)))
    }
}

impl<P: Place> PackedSvdfS8<P> {
    /// Outputs of all rows.
    pub(crate) fn outputs(&self) -> Option<u32> {
        size(&[self.shape.batch, self.shape.units])
    }

    /// Elements of the state.
    pub(crate) fn states(&self) -> Option<u32> {
        size(&[self.shape.batch, self.shape.filters(), self.shape.memory])
    }
}

impl<P: Place> Operator for PackedSvdfS8<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape.check()?;
        let extents = [self.shape.batch, self.shape.features, self.shape.filters()];
        if extents.iter().any(|&extent| u16::try_from(extent).is_err()) {
            return Err(Fault::Shape);
        }
        if self.multiplier.is_valid() {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let bytes = |access, place, len: Option<u32>| Operand::of::<i8>(access, place, len.unwrap_or(u32::MAX));
        let inputs = size(&[self.shape.batch, self.shape.features]);
        visit(bytes(Access::Write, self.output, self.outputs()));
        visit(bytes(Access::Read, self.input, inputs));
        visit(bytes(Access::Update, self.state, self.states()));
        visit(Operand::scratch(self.scratch, needs.scratch));
        visit(Operand {
            align: 4,
            ..Operand::constant::<i8>(self.weights, needs.weights)
        });
    }

    fn set_constants(&mut self, weights: u32, _: u32) {
        self.weights = weights;
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape.cost(of_operands(|visit| self.operands(needs, visit)))
    }
}

impl<P: Place> Operator for SvdfF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape.check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let places = [self.output, self.input, self.state];
        let offsets = [self.weights, self.time_weights, self.bias];
        self.shape.operands(DType::F32, DType::F32, places, offsets, visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape.cost(of_operands(|visit| self.operands(needs, visit)))
    }
}
