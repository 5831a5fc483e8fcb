//! TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM (Hochreiter and Schmidhuber 1997, with a forget gate), without peepholes,
//! projection or layer normalisation.
//!
//! For each time, with `gate = bias + W x + R h`: `f, i, o = sigmoid(gate)`, `g = tanh(gate)`, `c = clip(f * c + i * g)`,
//! `h = o * tanh(c)`; the output is h. Hidden state h and cell state c live on in the state slice. Quantised, gates have scale 2^-12,
//! their functions 2^-15, and c a power of two; each of the two products of a gate is rounded and saturated to int16 before
//! they are added.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;

operator! {
    /// Places and extents of an LSTM.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LstmShape<P> {
        /// `[batch, time, cells]`, or `[time, batch, cells]`.
        pub output: P,
        /// `[batch, time, features]`, or `[time, batch, features]`.
        pub input: P,
        /// h: `[batch, cells]`
        pub hidden: P,
        /// c: `[batch, cells]`
        pub cell: P;
        /// Sequences.
        pub batch: u32,
        /// Steps of a run.
        pub time: u32,
        /// Features of the input.
        pub features: u32,
        /// Features of the output.
        pub cells: u32,
        /// Time is the outermost axis.
        pub time_major: bool,
        /// Offsets of the gates' parameters: input, forget, cell, output.
        pub gates: [Gate; 4],
    }
}

/// Offsets of one gate's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gate {
    /// W: `[cells, features]`
    pub weights: u32,
    /// R: `[cells, cells]`
    pub recurrent: u32,
    /// `[cells]`, f32; i32 for int8, i64 for int16 activations.
    pub bias: u32,
}

operator! {
    /// An LSTM of int8 or int16 activations, int8 weights and int16 cell state.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LstmInt<P> {
        /// Places and extents.
        pub shape: LstmShape<P>;
        /// Type of input, hidden state and output.
        pub dtype: DType,
        /// Zero points of input and hidden state; 0 for int16.
        pub zero: [i32; 2],
        /// Of W x and of R h, for each gate.
        pub gates: [[Multiplier; 2]; 4],
        /// Of f * c, i * g and o * tanh(c): not negative, and to the right by 1 to 30.
        pub products: [Multiplier; 3],
        /// tanh for the cell state's scale; what it rounds has 32 bits.
        pub tanh: SigmoidI16,
        /// Largest magnitude of c; none where 0.
        pub clip: i16,
    }
}

operator! {
    /// An f32 LSTM.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LstmF32<P> {
        /// Places and extents.
        pub shape: LstmShape<P>;
        /// Largest magnitude of c; none where 0.
        pub clip: f32,
    }
}

impl<P: Place> LstmShape<P> {
    /// Four gates over features and cells, and three products and two functions of each cell, at each time; `each` computations of a cell beside these, which
    /// are what its type takes to round four sums and two products.
    fn cost(&self, operands: Cost, each: u64) -> Cost {
        let outputs = [self.batch, self.time].map(u64::from);
        let outputs = outputs.iter().fold(u64::from(self.cells), |n, &m| n.saturating_mul(m));
        let terms = (u64::from(self.features) + u64::from(self.cells)).saturating_mul(4);
        operands
            .sums(outputs, terms.saturating_add(16))
            .computations(outputs, each)
    }

    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.batch, self.time, self.features, 8])?;
        checked_size(&[self.batch, self.time, self.cells, 8])?;
        checked_size(&[self.cells, self.cells, 8])?;
        checked_size(&[self.cells, self.features, 8])?;
        Ok(())
    }

    fn operands(&self, types: [DType; 4], visit: &mut dyn FnMut(Operand<P>)) {
        let [activations, cell, weights, bias] = types;
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        let steps = len(&[self.batch, self.time]);
        let constant = |dtype, offset, count| Operand::of_type(dtype, Access::Read, P::constant(offset), count);
        visit(Operand::of_type(
            activations,
            Access::Write,
            self.output,
            len(&[steps, self.cells]),
        ));
        visit(Operand::of_type(
            activations,
            Access::Read,
            self.input,
            len(&[steps, self.features]),
        ));
        let state = len(&[self.batch, self.cells]);
        visit(Operand::of_type(activations, Access::Update, self.hidden, state));
        visit(Operand::of_type(cell, Access::Update, self.cell, state));
        for gate in &self.gates {
            visit(constant(weights, gate.weights, len(&[self.cells, self.features])));
            visit(constant(weights, gate.recurrent, len(&[self.cells, self.cells])));
            visit(constant(bias, gate.bias, self.cells));
        }
    }
}

impl<P: Place> Operator for LstmInt<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape.check()?;
        let valid = self.gates.iter().flatten().all(|m| m.is_valid()) && self.products.iter().all(|m| m.narrows());
        let zero = self.dtype == DType::I8 || self.zero == [0; 2];
        if valid && zero && self.clip >= 0 && self.tanh.has_room() && matches!(self.dtype, DType::I8 | DType::I16) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let bias = if self.dtype == DType::I8 {
            DType::I32
        } else {
            DType::I64
        };
        self.shape.operands([self.dtype, DType::I16, DType::I8, bias], visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Sums of more products of int16 have 64 bits.
        let longest = self.shape.features.max(self.shape.cells);
        let factor = if self.dtype == DType::I16 && longest > 511 {
            10
        } else {
            1
        };
        let each = if self.dtype == DType::I16 { 150 } else { 48 };
        self.shape
            .cost(of_operands(|visit| self.operands(needs, visit)), each)
            .times(factor)
    }
}

impl<P: Place> Operator for LstmF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape.check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        self.shape.operands([DType::F32; 4], visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape.cost(of_operands(|visit| self.operands(needs, visit)), 72)
    }
}
