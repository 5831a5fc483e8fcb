//! SVDF and LSTM: operators that carry variable tensors from run to run.

use super::importer::{Importer, View};
use super::ops::activation;
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Op, TensorId};

use DType::{F32, I8, I16, I32, I64};

impl Importer<'_, '_> {
    pub(super) fn svdf(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, w) = (view.input(0)?, view.input(1)?);
        self.widen_hybrid(x, &[w, view.input(2)?])?;
        self.refuse_hybrid(view, x, w)?;
        let rank = view.option::<i32>(0, 0)?;
        let activation = activation(view.option(1, 0)?)?;
        let (x_shape, w_shape, time) = (self.shape(x)?, self.shape(w)?, self.shape(view.input(2)?)?);
        let y_shape = self.shape(view.output(0)?)?;
        let (&[batch, features], &[filters, w_in], &[t_filters, memory]) =
            (x_shape.as_slice(), w_shape.as_slice(), time.as_slice())
        else {
            return Err(Error::input("operands that are no matrices").expected("two axes each"));
        };
        let rank = usize::try_from(rank)
            .ok()
            .filter(|&r| r > 0 && filters % r == 0)
            .ok_or_else(|| {
                Error::input(format!("rank {rank} for {filters} filters")).expected("a divisor of the filters")
            })?;
        let state = view.input(4)?;
        let fits = features == w_in && filters == t_filters && y_shape == [batch, filters / rank];
        if !fits || self.shape(state)?.iter().product::<usize>() != batch * filters * memory {
            return Err(Error::input(format!(
                "operands {x_shape:?}, {w_shape:?}, {time:?}, result {y_shape:?}"
            )));
        }
        self.variable(state)?;
        let quantised = self.dtype(x)? == I8;
        if !quantised {
            let bias = view.optional(3).map(Ok);
            for tensor in [view.input(2), Ok(state), view.output(0)].into_iter().chain(bias) {
                self.expect_type(tensor?, F32)?;
            }
        }
        if quantised {
            for tensor in [x, w, view.input(2)?, state, view.output(0)?] {
                self.scale_of(tensor)?;
            }
            let types = [self.dtype(w)?, self.dtype(view.input(2)?)?, self.dtype(state)?];
            if !matches!(types, [I8, I8, I8] | [I8, I16, I16]) {
                return Err(Error::unsupported(format!(
                    "weights {}, time weights {}, state {}",
                    types[0].name(),
                    types[1].name(),
                    types[2].name()
                ))
                .expected("int8 weights, int8 or int16 time weights and state"));
            }
            if activation != Activation::None && activation != Activation::Relu {
                return Err(Error::unsupported("a fused activation other than RELU"));
            }
        }
        let mut inputs = Vec::new();
        for position in 0..5 {
            inputs.push(self.optional_operand(view.optional(position))?);
        }
        self.biases(view, &inputs, 3..4);
        let y = self.output(view.output(0)?)?;
        self.node(view, "", Op::Svdf { rank, activation }, inputs, vec![y]);
        Ok(())
    }

    pub(super) fn lstm(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        for (positions, what) in [
            (9..12, "peephole"),
            (16..18, "projection"),
            (20..24, "layer normalisation"),
        ] {
            if positions.into_iter().any(|p| view.optional(p).is_some()) {
                return Err(Error::unsupported(format!("{what} weights"))
                    .help("TensorFlow Lite Micro refuses them as well; build the network without them"));
            }
        }
        // The cell gate's activation; TensorFlow Lite Micro computes this one alone.
        if view.option::<i8>(0, 0)? != 4 {
            return Err(Error::unsupported("an activation other than TANH"));
        }
        let weights = view.input(2)?;
        let all: Vec<usize> = (1..9).map(|position| view.input(position)).collect::<Result<_>>()?;
        self.widen_hybrid(x, &all)?;
        self.refuse_hybrid(view, x, weights)?;
        let (x_shape, state_shape) = (self.shape(x)?, self.shape(view.input(18)?)?);
        let time_major = view.flag(3)?;
        let (&[a, b, features], &[batch, cells]) = (x_shape.as_slice(), state_shape.as_slice()) else {
            return Err(
                Error::input(format!("input {x_shape:?} and state {state_shape:?}")).expected("three and two axes")
            );
        };
        let shape_of = |position: usize| view.input(position).and_then(|t| self.shape(t));
        let mut fits =
            (if time_major { b } else { a }) == batch && shape_of(19)?.iter().product::<usize>() == batch * cells;
        for position in 1..5 {
            fits &= shape_of(position)? == [cells, features] && shape_of(position + 4)? == [cells, cells];
            fits &= shape_of(position + 11)? == [cells];
        }
        fits &= self.shape(view.output(0)?)? == [a, b, cells];
        if !fits {
            return Err(Error::input(format!(
                "weights that do not fit input {x_shape:?} and state {state_shape:?}"
            )));
        }
        let (hidden, cell) = (view.input(18)?, view.input(19)?);
        self.variable(hidden)?;
        self.variable(cell)?;
        let dtype = self.dtype(x)?;
        let (weight_type, cell_type, bias_type) = match dtype {
            F32 => (F32, F32, F32),
            I8 => (I8, I16, I32),
            _ => (I8, I16, I64),
        };
        for position in 1..9 {
            self.expect_type(view.input(position)?, weight_type)?;
        }
        for position in 12..16 {
            self.expect_type(view.input(position)?, bias_type)?;
        }
        self.expect_type(hidden, dtype)?;
        self.expect_type(view.output(0)?, dtype)?;
        self.expect_type(cell, cell_type)?;
        if dtype != F32 {
            for tensor in (1..9).map(|p| view.input(p)).chain([Ok(x), Ok(hidden), Ok(cell)]) {
                self.scale_of(tensor?)?;
            }
        }
        let mut inputs = Vec::new();
        for position in 0..24 {
            inputs.push(self.optional_operand(view.optional(position))?);
        }
        self.biases(view, &inputs, 12..16);
        let y = self.output(view.output(0)?)?;
        let cell_clip = view.option(1, 0.0)?;
        self.node(
            view,
            "",
            Op::UnidirectionalLstm { time_major, cell_clip },
            inputs,
            vec![y],
        );
        Ok(())
    }

    /// Notes the operands at `positions` as parameters, whatever their type.
    fn biases(&mut self, view: View<'_, '_>, inputs: &[Option<TensorId>], positions: std::ops::Range<usize>) {
        for position in positions {
            if let (Some(index), Some(&Some(id))) = (view.optional(position), inputs.get(position))
                && self.out.tensor(id).is_const()
            {
                self.parameter(index, id);
            }
        }
    }
}
