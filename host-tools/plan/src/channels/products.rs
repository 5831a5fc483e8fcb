//! Convolutions and fully connected layers of int8 as what they are to a channel: sums of products, requantised.

use std::sync::Arc;

use arenite::DType;
use arenite::quant::Multiplier;

use crate::graph::{Activation, Conv2dAttrs, Data, Graph, Layout, Node, Op, TensorId, TensorKind};
use crate::lower::numbers::{clamp_s8, linear_multipliers, multipliers, per_tensor};

/// Whether a tap of a window meets the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// At every position of the window.
    Always,
    /// At some; elsewhere it meets the padding, which counts as the zero point.
    Sometimes,
    /// At none.
    Never,
}

/// A layer.
#[derive(Debug, Clone)]
pub(super) struct Products {
    pub(super) x: TensorId,
    pub(super) w: TensorId,
    pub(super) y: TensorId,
    weights: Arc<[u8]>,
    /// One for each output channel.
    pub(super) bias: Vec<i32>,
    /// One for each tap of the window.
    pub(super) taps: Vec<Reach>,
    /// Input channels of one output channel.
    pub(super) inputs: usize,
    /// Output channels of each input channel, where each output channel has one input channel alone.
    pub(super) depthwise: Option<usize>,
    pub(super) zero_in: i32,
    pub(super) zero_out: i32,
    pub(super) clamp: [i32; 2],
    multipliers: Vec<Multiplier>,
}

impl Products {
    /// The layer at `node`; `None` for any other operator, and for layers that the analysis does not know: with several groups, with weights that the
    /// network computes, or with numbers that lowering refuses.
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let (&[Some(x), Some(w), ..], &[y]) = (&node.inputs[..], &node.outputs[..]) else {
            return None;
        };
        let (tx, tw, ty) = (graph.tensor(x), graph.tensor(w), graph.tensor(y));
        let int8 = [tx, tw, ty].iter().all(|t| t.dtype == DType::I8);
        let no_residual = node.inputs.get(3).copied().flatten().is_none();
        let TensorKind::Const(Data::Bytes(weights)) = &tw.kind else {
            return None;
        };
        if !int8 || !no_residual || tx.is_const() {
            return None;
        }
        let (qx, qy) = (per_tensor(tx).ok()?, per_tensor(ty).ok()?);
        let outputs = *tw.shape.first()?;
        let (taps, inputs, depthwise, activation, multipliers) = match &node.op {
            Op::Conv2d(attrs) => {
                let channels = *tx.shape.last()?;
                let depthwise = (attrs.groups > 1 && attrs.groups == channels).then(|| outputs / channels);
                if attrs.groups != 1 && depthwise.is_none() {
                    return None;
                }
                let multipliers = multipliers(tw, outputs, f64::from(qx.0), f64::from(qy.0)).ok()?;
                let taps = reach(attrs, &tx.shape, &ty.shape, &tw.shape)?;
                (taps, *tw.shape.last()?, depthwise, attrs.activation, multipliers)
            }
            Op::Linear { activation } => {
                let multipliers = linear_multipliers(tw, outputs, qx.0, qy.0).ok()?;
                (vec![Reach::Always], *tw.shape.get(1)?, None, *activation, multipliers)
            }
            _ => return None,
        };
        Some(Self {
            x,
            w,
            y,
            bias: bias(graph, node, outputs)?,
            taps,
            inputs,
            depthwise,
            zero_in: qx.1,
            zero_out: qy.1,
            clamp: clamp_of(activation, qy)?,
            multipliers,
            weights: Arc::clone(weights),
        })
    }

    /// Output channels.
    pub(super) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// The weight of input channel `c` (of those that the output channel has) at a tap.
    pub(super) fn weight(&self, output: usize, tap: usize, c: usize) -> i32 {
        let at = (output * self.taps.len() + tap) * self.inputs + c;
        self.weights.get(at).map_or(0, |&byte| i32::from(byte as i8))
    }

    /// The input's channel that is the `c`th of an output channel.
    pub(super) fn input(&self, output: usize, c: usize) -> usize {
        self.depthwise.map_or(c, |multiplier| output / multiplier.max(1))
    }

    /// The stored result of a sum, before the clamp; `None` where the device's 32 bits do not hold what is computed on the way.
    pub(super) fn scaled(&self, output: usize, sum: i64) -> Option<i64> {
        let multiplier = *self.multipliers.get(output)?;
        let sum = i32::try_from(sum).ok()?;
        i32::try_from(i64::from(sum) << multiplier.shift.max(0)).ok()?;
        let stored = i64::from(multiplier.apply(sum)) + i64::from(self.zero_out);
        i32::try_from(stored).ok().map(i64::from)
    }
}

fn clamp_of(activation: Activation, affine: (f32, i32)) -> Option<[i32; 2]> {
    Some(clamp_s8(activation, affine).ok()?.map(i32::from))
}

/// The int32 biases; zeros where there are none.
fn bias(graph: &Graph, node: &Node, outputs: usize) -> Option<Vec<i32>> {
    let Some(id) = node.inputs.get(2).copied().flatten() else {
        return Some(vec![0; outputs]);
    };
    let tensor = graph.tensor(id);
    let TensorKind::Const(Data::Bytes(bytes)) = &tensor.kind else {
        return None;
    };
    let values: Vec<i32> = (bytes.as_chunks::<4>().0.iter())
        .map(|word| i32::from_le_bytes(*word))
        .collect();
    (tensor.dtype == DType::I32 && values.len() == outputs).then_some(values)
}

/// How the taps of a convolution's window meet the input; `None` in an order of axes that lowering refuses.
fn reach(attrs: &Conv2dAttrs, input: &[usize], output: &[usize], weights: &[usize]) -> Option<Vec<Reach>> {
    let (Layout::Nhwc, &[_, h, w, _], &[_, oh, ow, _], &[_, kh, kw, _]) = (attrs.layout, input, output, weights) else {
        return None;
    };
    let rows = along(kh, attrs.stride[0], attrs.dilation[0], attrs.padding.top, h, oh);
    let columns = along(kw, attrs.stride[1], attrs.dilation[1], attrs.padding.left, w, ow);
    let both = |row: Reach, column: Reach| match (row, column) {
        (Reach::Never, _) | (_, Reach::Never) => Reach::Never,
        (Reach::Always, Reach::Always) => Reach::Always,
        _ => Reach::Sometimes,
    };
    let each = rows
        .iter()
        .flat_map(|&row| columns.iter().map(move |&column| both(row, column)));
    Some(each.collect())
}

/// Along one axis.
fn along(kernel: usize, stride: usize, dilation: usize, before: usize, extent: usize, outputs: usize) -> Vec<Reach> {
    let at = |tap: usize| {
        let meets = |&output: &usize| {
            (output * stride + tap * dilation)
                .checked_sub(before)
                .is_some_and(|i| i < extent)
        };
        match (0..outputs).filter(meets).count() {
            0 => Reach::Never,
            n if n == outputs => Reach::Always,
            _ => Reach::Sometimes,
        }
    };
    (0..kernel).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::{Reach, along};

    #[test]
    fn taps_meet_the_input_always_sometimes_or_never() {
        use Reach::{Always, Never, Sometimes};
        // Five columns, one before and one behind them.
        assert_eq!(along(3, 1, 1, 1, 5, 5), [Sometimes, Always, Sometimes]);
        // Two by two from the padding on: the last window ends with the last column.
        assert_eq!(along(3, 2, 1, 1, 6, 3), [Sometimes, Always, Always]);
        // A column alone: the taps beside it never see it.
        assert_eq!(along(3, 1, 1, 1, 1, 1), [Never, Always, Never]);
        assert_eq!(along(2, 1, 3, 0, 7, 4), [Always, Always]);
    }
}
