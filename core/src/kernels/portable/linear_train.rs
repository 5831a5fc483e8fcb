//! Training of fully connected layers and of biases, from the formulas of [`crate::ops::linear_train`].
//!
//! Sums have one order on every core, and are rounded after every product; long ones are sums of sums of [`ROW`] terms.

use super::conv2d_train::{add, add_products};
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::linear_train::{BiasSgdF32, LinearInputGradF32, LinearWeightSgdF32};
use crate::ops::size::product;

/// The gradient of the input, f32.
#[derive(Debug)]
pub struct InputGrad;

/// Gradient descent on the weights, f32.
#[derive(Debug)]
pub struct WeightSgd;

/// Gradient descent on a bias, f32.
#[derive(Debug)]
pub struct BiasSgd;

impl Kernel for InputGrad {
    type Op = LinearInputGradF32;

    fn run(op: &LinearInputGradF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, product(op.rows, op.inputs)?)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.outputs)?)?;
        let weights = mem.src::<f32>(op.weights, product(op.outputs, op.inputs)?)?;
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
        for r in 0..rows {
            let dy = gradient.slice(r.wrapping_mul(outputs), outputs)?;
            let dx = output.slice(r.wrapping_mul(inputs), inputs)?;
            each_block(inputs, &mut |i, lanes| {
                let terms = Terms {
                    factors: dy,
                    apart: 1,
                    of: weights,
                    first: i,
                    stride: inputs,
                    count: outputs,
                };
                let put = |dx: &mut f32, sum: f32| *dx = sum;
                match lanes {
                    LANES => terms.sums::<LANES>(dx.tail(i)?, put),
                    _ => terms.sums::<1>(dx.tail(i)?, put),
                }
            })?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for InputGrad {}

impl Kernel for WeightSgd {
    type Op = LinearWeightSgdF32;

    fn run(op: &LinearWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
        let weights = mem.dst::<f32>(op.weights, product(op.outputs, op.inputs)?)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.outputs)?)?;
        let input = mem.src::<f32>(op.input, product(op.rows, op.inputs)?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
        for o in 0..outputs {
            let w = weights.slice(o.wrapping_mul(inputs), inputs)?;
            let dy = gradient.slice(o, gradient.len().checked_sub(o)?)?;
            each_block(inputs, &mut |i, lanes| {
                let terms = Terms {
                    factors: dy,
                    apart: outputs,
                    of: input,
                    first: i,
                    stride: inputs,
                    count: rows,
                };
                let descend = |w: &mut f32, sum: f32| *w -= rate * sum;
                match lanes {
                    LANES => terms.sums::<LANES>(w.tail(i)?, descend),
                    _ => terms.sums::<1>(w.tail(i)?, descend),
                }
            })?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for WeightSgd {}

impl Kernel for BiasSgd {
    type Op = BiasSgdF32;

    fn run(op: &BiasSgdF32, mem: &Mem<'_>) -> Option<()> {
        let bias = mem.dst::<f32>(op.bias, op.channels)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.channels)?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let (rows, channels) = (op.rows as usize, op.channels as usize);
        for c in 0..channels {
            let (mut sum, mut row, mut at) = (0.0f32, 0.0f32, c);
            for r in 0..rows {
                row += gradient.get(at)?;
                at = at.wrapping_add(channels);
                if r % ROW == ROW - 1 {
                    sum += row;
                    row = 0.0;
                }
            }
            let cell = bias.cells().get(c)?;
            cell.set(cell.get() - rate * (sum + row));
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for BiasSgd {}

/// Neighbours that are summed at a time.
const LANES: usize = 8;

/// Terms of a sum that is a term itself.
const ROW: usize = 32;

/// Blocks of [`LANES`], then of one.
#[inline(always)]
fn each_block(len: usize, block: &mut dyn FnMut(usize, usize) -> Option<()>) -> Option<()> {
    let mut at = 0usize;
    while at < len {
        let lanes = if len - at >= LANES { LANES } else { 1 };
        block(at, lanes)?;
        at = at.wrapping_add(lanes);
    }
    Some(())
}

/// Sums of `count` products: of the factors, `apart` from one another, and of rows `stride` apart.
struct Terms<'a> {
    factors: Src<'a, f32>,
    apart: usize,
    of: Src<'a, f32>,
    first: usize,
    stride: usize,
    count: usize,
}

impl Terms<'_> {
    /// `N` neighbouring sums, each put where it belongs.
    #[inline(always)]
    fn sums<const N: usize>(&self, to: Dst<'_, f32>, put: impl Fn(&mut f32, f32)) -> Option<()> {
        let (mut sums, mut row) = ([0.0f32; N], [0.0f32; N]);
        let (mut factor, mut at) = (0usize, self.first);
        for term in 0..self.count {
            add_products(&mut row, self.factors.get(factor)?, self.of.slice(at, N)?);
            factor = factor.wrapping_add(self.apart);
            at = at.wrapping_add(self.stride);
            if term % ROW == ROW - 1 {
                add(&mut sums, row);
                row = [0.0; N];
            }
        }
        add(&mut sums, row);
        for (cell, sum) in to.slice(0, N)?.cells().iter().zip(sums) {
            let mut value = cell.get();
            put(&mut value, sum);
            cell.set(value);
        }
        Some(())
    }
}
