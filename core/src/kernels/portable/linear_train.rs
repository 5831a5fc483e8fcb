//! Training of fully connected layers and of biases, from the formulas of [`crate::ops::linear_train`].
//!
//! Sums have one order on every core, and are rounded after every product; long ones are sums of sums of 32 terms.

use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::tiles_f32::{LANES, Pixels, Rows, TILE};
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

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LinearInputGradF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, product(op.rows, op.inputs)?)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.outputs)?)?;
        let weights = mem.src::<f32>(op.weights, product(op.outputs, op.inputs)?)?;
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
        for r in 0..rows {
            let dy = gradient.slice(r.wrapping_mul(outputs), outputs)?;
            let dx = output.slice(r.wrapping_mul(inputs), inputs)?;
            let mut i = 0usize;
            while i < inputs {
                let rows = weights.tail(i)?;
                i = i.wrapping_add(if inputs.wrapping_sub(i) >= LANES {
                    back::<LANES>(dy, rows, inputs, dx.tail(i)?)?
                } else {
                    back::<1>(dy, rows, inputs, dx.tail(i)?)?
                });
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for InputGrad {}

impl Kernel for WeightSgd {
    type Op = LinearWeightSgdF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LinearWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
        let weights = mem.dst::<f32>(op.weights, product(op.outputs, op.inputs)?)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.outputs)?)?;
        let input = mem.src::<f32>(op.input, product(op.rows, op.inputs)?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
        let layer = Layer {
            gradient,
            input,
            rate,
            weights,
            rows,
            inputs,
            outputs,
        };
        if rows == 1 {
            layer.descend_by_one()
        } else {
            layer.descend_by_all()
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for WeightSgd {}

impl Kernel for BiasSgd {
    type Op = BiasSgdF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &BiasSgdF32, mem: &Mem<'_>) -> Option<()> {
        let bias = mem.dst::<f32>(op.bias, op.channels)?;
        let gradient = mem.src::<f32>(op.gradient, product(op.rows, op.channels)?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let (rows, channels) = (op.rows as usize, op.channels as usize);
        let mut c = 0usize;
        while c < channels {
            let (gradient, bias) = (gradient.tail(c)?, bias.tail(c)?);
            c = c.wrapping_add(if channels.wrapping_sub(c) >= LANES {
                descend_bias::<LANES>(gradient, [rows, channels], rate, bias)?
            } else {
                descend_bias::<1>(gradient, [rows, channels], rate, bias)?
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for BiasSgd {}

/// Terms of a sum that is a term itself.
const ROW: usize = 32;

/// Gradients of `N` neighbouring inputs of a row: how many.
#[inline(always)]
fn back<const N: usize>(dy: Src<'_, f32>, weights: Src<'_, f32>, stride: usize, dx: Dst<'_, f32>) -> Option<usize> {
    let mut sums = [0.0f32; N];
    let mut from = 0usize;
    while from < dy.len() {
        let count = ROW.min(dy.len().wrapping_sub(from));
        Rows {
            factors: dy.slice(from, count)?,
            rows: weights.tail(from.wrapping_mul(stride))?,
            stride,
        }
        .add(&mut sums)?;
        from = from.wrapping_add(count);
    }
    let place = dx.slice(0, N)?;
    place.cells().iter().zip(sums).for_each(|(dx, sum)| dx.set(sum));
    Some(N)
}

/// Operands of gradient descent on weights.
struct Layer<'a> {
    gradient: Src<'a, f32>,
    input: Src<'a, f32>,
    rate: f32,
    weights: Dst<'a, f32>,
    rows: usize,
    inputs: usize,
    outputs: usize,
}

impl Layer<'_> {
    /// Of a single row: no sums.
    fn descend_by_one(&self) -> Option<()> {
        for o in 0..self.outputs {
            let w = self.weights.slice(o.wrapping_mul(self.inputs), self.inputs)?;
            let (dy, x) = (self.gradient.get(o)?, self.input.slice(0, self.inputs)?);
            for (w, x) in w.cells().iter().zip(x.iter()) {
                w.set(w.get() - self.rate * (dy * x));
            }
        }
        Some(())
    }

    /// Of several rows, by tiles.
    fn descend_by_all(&self) -> Option<()> {
        let mut o = 0usize;
        while o < self.outputs {
            o = o.wrapping_add(if self.outputs.wrapping_sub(o) >= TILE {
                self.descend_outputs::<TILE>(o)?
            } else {
                self.descend_outputs::<1>(o)?
            });
        }
        Some(())
    }

    /// The weights of `N` outputs: how many.
    fn descend_outputs<const N: usize>(&self, o: usize) -> Option<usize> {
        let mut i = 0usize;
        while i < self.inputs {
            i = i.wrapping_add(if self.inputs.wrapping_sub(i) >= TILE {
                self.descend::<N, TILE>(o, i)?
            } else {
                self.descend::<N, 1>(o, i)?
            });
        }
        Some(N)
    }

    /// The same of `C` inputs.
    #[inline(always)]
    fn descend<const N: usize, const C: usize>(&self, o: usize, i: usize) -> Option<usize> {
        let mut sums = [[0.0f32; C]; N];
        let mut from = 0usize;
        while from < self.rows {
            let columns = ROW.min(self.rows.wrapping_sub(from));
            let at = |stride: usize, first: usize| from.wrapping_mul(stride).wrapping_add(first);
            Pixels {
                dy: self.gradient.tail(at(self.outputs, o))?,
                x: self.input.tail(at(self.inputs, i))?,
                rows: 1,
                columns,
                dy_stride: [0, self.outputs],
                x_stride: [0, self.inputs],
            }
            .add(&mut sums)?;
            from = from.wrapping_add(columns);
        }
        for (k, sums) in sums.into_iter().enumerate() {
            let at = o.wrapping_add(k).wrapping_mul(self.inputs).wrapping_add(i);
            for (w, sum) in self.weights.slice(at, C)?.cells().iter().zip(sums) {
                w.set(w.get() - self.rate * sum);
            }
        }
        Some(C)
    }
}

/// A step of gradient descent on `N` neighbours of a bias: how many.
#[inline(always)]
fn descend_bias<const N: usize>(
    gradient: Src<'_, f32>,
    [rows, channels]: [usize; 2],
    rate: f32,
    bias: Dst<'_, f32>,
) -> Option<usize> {
    let (mut sums, mut from) = ([0.0f32; N], 0usize);
    while from < rows {
        let end = rows.min(from.wrapping_add(ROW));
        let mut row = [0.0f32; N];
        for r in from..end {
            let gradient = gradient.slice(r.wrapping_mul(channels), N)?;
            row.iter_mut().zip(gradient.iter()).for_each(|(sum, dy)| *sum += dy);
        }
        sums.iter_mut().zip(row).for_each(|(sum, row)| *sum += row);
        from = end;
    }
    for (bias, sum) in bias.slice(0, N)?.cells().iter().zip(sums) {
        bias.set(bias.get() - rate * sum);
    }
    Some(N)
}
