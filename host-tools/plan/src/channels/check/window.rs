//! A layer of constant weights, its window laid at every position.

use std::collections::BTreeSet;
use std::sync::Arc;

use arenite::DType;
use arenite::quant::Multiplier;

use super::definition::{scaled, word};
use crate::graph::{Data, Graph, Node, Op, TensorId, TensorKind};
use crate::lower::numbers::{clamp_s8, per_tensor};

/// The layer.
pub(super) struct Window {
    pub(super) x: TensorId,
    pub(super) y: TensorId,
    /// OHWI.
    weights: Arc<[u8]>,
    biases: Vec<i64>,
    taps: usize,
    inputs: usize,
    /// Output channels of an input channel, of a depthwise layer.
    of_each: Option<usize>,
    zero_in: i64,
    zero_out: i128,
    clamp: [i128; 2],
    multipliers: Vec<Multiplier>,
    /// The taps that meet the input, for every position where they differ.
    positions: Vec<Vec<usize>>,
}

impl Window {
    /// The layer at `node`, where it is one of int8 and of one group or as many as channels.
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let operand = |i: usize| node.inputs.get(i).copied().flatten();
        let (x, w, y) = (operand(0)?, operand(1)?, *node.outputs.first()?);
        let (tx, tw, ty) = (graph.tensor(x), graph.tensor(w), graph.tensor(y));
        let TensorKind::Const(Data::Bytes(weights)) = &tw.kind else {
            return None;
        };
        let ((scale_in, zero_in), (scale_out, zero_out)) = (per_tensor(tx).ok()?, per_tensor(ty).ok()?);
        let quant = tw.quant.as_ref()?;
        let fits = [tx, tw, ty].iter().all(|t| t.dtype == DType::I8) && quant.zero_point.iter().all(|&z| z == 0);
        if !fits || operand(3).is_some() || tx.is_const() {
            return None;
        }
        let outputs = *tw.shape.first()?;
        let inputs = *tw.shape.last()?;
        let channels = *tx.shape.last()?;
        let (groups, activation, positions) = match &node.op {
            Op::Conv2d(attrs) => {
                let [rows, columns] = [0, 1].map(|axis| {
                    let before = [attrs.padding.top, attrs.padding.left][axis];
                    let met = |o: usize| {
                        let first = o * attrs.stride[axis];
                        let reached = (0..tw.shape[1 + axis]).map(move |tap| (tap, first + tap * attrs.dilation[axis]));
                        let inside = reached.filter(|(_, i)| *i >= before && i - before < tx.shape[1 + axis]);
                        inside.map(|(tap, _)| tap).collect::<Vec<usize>>()
                    };
                    (0..ty.shape[1 + axis]).map(met).collect::<BTreeSet<_>>()
                });
                let width = tw.shape[2];
                let at = |row: &[usize], column: &[usize]| {
                    let taps = row.iter().flat_map(|y| column.iter().map(move |x| y * width + x));
                    taps.collect::<Vec<usize>>()
                };
                let positions = rows
                    .iter()
                    .flat_map(|row| columns.iter().map(move |column| at(row, column)));
                (attrs.groups, attrs.activation, positions.collect())
            }
            Op::Linear { activation } => (1, *activation, vec![vec![0]]),
            _ => return None,
        };
        if groups != 1 && groups != channels {
            return None;
        }
        let biases = match operand(2).map(|id| &graph.tensor(id).kind) {
            None => vec![0; outputs],
            Some(TensorKind::Const(Data::Bytes(bytes))) => (bytes.as_chunks::<4>().0.iter())
                .map(|word| i64::from(i32::from_le_bytes(*word)))
                .collect(),
            Some(_) => return None,
        };
        let linear = matches!(node.op, Op::Linear { .. });
        let factor = |o: usize| {
            let scale = quant.scale[if quant.axis.is_some() { o } else { 0 }];
            let product = if linear && quant.axis.is_none() {
                f64::from(scale_in * scale)
            } else {
                f64::from(scale_in) * f64::from(scale)
            };
            Multiplier::from_real(product / f64::from(scale_out))
        };
        let clamp = clamp_s8(activation, (scale_out, zero_out)).ok()?;
        Some(Self {
            x,
            y,
            weights: Arc::clone(weights),
            taps: tw.elements() / (outputs * inputs).max(1),
            inputs,
            of_each: (groups > 1).then(|| outputs / channels.max(1)),
            zero_in: i64::from(zero_in),
            zero_out: i128::from(zero_out),
            clamp: clamp.map(i128::from),
            multipliers: (0..outputs).map(factor).collect::<Option<_>>()?,
            positions,
            biases: (biases.len() == outputs).then_some(biases)?,
        })
    }

    pub(super) fn is_depthwise(&self) -> bool {
        self.of_each.is_some()
    }

    pub(super) fn outputs(&self) -> usize {
        self.biases.len()
    }

    /// Input channels of each output channel.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// The channel of the input that is the `c`th of an output channel.
    pub(super) fn input(&self, output: usize, c: usize) -> usize {
        self.of_each.map_or(c, |each| output / each.max(1))
    }

    pub(super) fn bias(&self, output: usize) -> i64 {
        self.biases[output]
    }

    /// How many positions differ.
    pub(super) fn positions(&self) -> usize {
        self.positions.len()
    }

    /// The weights of one input channel, by tap.
    pub(super) fn column(&self, output: usize, c: usize) -> Vec<i64> {
        let row = &self.weights[output * self.taps * self.inputs..][..self.taps * self.inputs];
        let of_channel = row.iter().skip(c).step_by(self.inputs);
        of_channel.map(|&byte| i64::from(byte as i8)).collect()
    }

    /// Whether an output channel is its bias alone.
    pub(super) fn is_zero(&self, output: usize) -> bool {
        (0..self.inputs).all(|c| self.column(output, c).iter().all(|&weight| weight == 0))
    }

    /// The weights of a column that meet the input at a position.
    pub(super) fn met(&self, position: usize, column: &[i64]) -> impl Iterator<Item = i64> {
        self.positions[position].iter().map(|&tap| column[tap])
    }

    /// Returns the contribution of a channel that is always `value` to a sum.
    pub(super) fn contribution(&self, position: usize, column: &[i64], value: i32) -> i64 {
        let weights: i64 = self.met(position, column).sum();
        weights * (i64::from(value) - self.zero_in)
    }

    /// The stored result of a sum; `None` where 32 bits do not hold it.
    pub(super) fn requantised(&self, output: usize, sum: i64) -> Option<i32> {
        let stored = scaled(word(i128::from(sum))?, self.multipliers[output])? + self.zero_out;
        let [low, high] = self.clamp;
        Some(word(stored)?.max(low).min(high) as i32)
    }

    /// Returns the values that each output channel can hold, from the claims about the input's.
    pub(super) fn derived(&self, claims: &[Vec<(i32, i32)>]) -> Vec<(i32, i32)> {
        let claims = &claims[self.x.0];
        let of_output = |output: usize| {
            let (mut least, mut most) = (i64::MAX, i64::MIN);
            let mut sums = vec![(self.biases[output], self.biases[output]); self.positions.len()];
            for c in 0..self.inputs {
                let claim = claims.get(self.input(output, c)).copied().unwrap_or((-128, 127));
                let (low, high) = (i64::from(claim.0) - self.zero_in, i64::from(claim.1) - self.zero_in);
                let column = self.column(output, c);
                for (position, (sum_low, sum_high)) in sums.iter_mut().enumerate() {
                    for weight in self.met(position, &column) {
                        let (at_low, at_high) = if weight < 0 { (high, low) } else { (low, high) };
                        *sum_low += weight * at_low;
                        *sum_high += weight * at_high;
                    }
                }
            }
            for (low, high) in sums {
                (least, most) = (least.min(low), most.max(high));
            }
            match [least, most].map(|sum| self.requantised(output, sum)) {
                [Some(a), Some(b)] => (a.min(b), a.max(b)),
                _ => (self.clamp[0] as i32, self.clamp[1] as i32),
            }
        };
        (0..self.outputs()).map(of_output).collect()
    }
}
