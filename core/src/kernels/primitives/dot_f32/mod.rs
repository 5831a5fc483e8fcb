//! Products of f32 rows with rows of weights that have no layout of their own: constants in their plain form, or activations.
//!
//! Every sum has one order on every core, and is rounded after every product: eight sums of every eighth product each, which are added one behind the other;
//! then the sum of what is left over; then the bias.

#[cfg(kernel_isa = "fpu")]
mod fpu;

use crate::cells::{Dst, Src};
use crate::ops::pointwise::clamp;

/// Operands and limits of a product of matrices: `y[r, o] = clamp(x[r, :] . w[o, :] + bias[o])`.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Matrices<'a> {
    /// `[rows, inputs]`
    pub(in crate::kernels) x: Src<'a, f32>,
    /// `[outputs, inputs]`
    pub(in crate::kernels) w: Src<'a, f32>,
    /// `[outputs]`
    pub(in crate::kernels) bias: Src<'a, f32>,
    /// `[rows, outputs]`
    pub(in crate::kernels) y: Dst<'a, f32>,
    pub(in crate::kernels) rows: usize,
    pub(in crate::kernels) inputs: usize,
    pub(in crate::kernels) outputs: usize,
    pub(in crate::kernels) limits: [f32; 2],
}

impl Matrices<'_> {
    /// Computes the product. `None` where an operand is too short.
    #[inline(always)]
    pub(in crate::kernels) fn multiply(&self) -> Option<()> {
        #[cfg(kernel_isa = "fpu")]
        {
            self.by_pairs()
        }
        #[cfg(not(kernel_isa = "fpu"))]
        {
            self.one_by_one()
        }
    }

    /// The loop of cores without one of their own.
    #[cfg_attr(kernel_isa = "fpu", allow(dead_code))]
    #[inline(always)]
    fn one_by_one(&self) -> Option<()> {
        for r in 0..self.rows {
            let x = row(self.x, r, self.inputs)?;
            for o in 0..self.outputs {
                let sum = dot(x, row(self.w, o, self.inputs)?) + self.bias.get(o)?;
                self.y.set(r * self.outputs + o, clamp(sum, self.limits))?;
            }
        }
        Some(())
    }

    /// Two outputs of a row at a time; of an odd number the last one of two rows at a time.
    #[cfg(kernel_isa = "fpu")]
    #[inline(always)]
    fn by_pairs(&self) -> Option<()> {
        let Self {
            rows,
            inputs,
            outputs,
            limits,
            ..
        } = *self;
        let all = |rows: usize, columns: usize| rows.checked_mul(columns);
        if all(rows, inputs)? > self.x.len()
            || all(outputs, inputs)? > self.w.len()
            || all(rows, outputs)? > self.y.cells().len()
            || outputs > self.bias.len()
        {
            return None;
        }
        let limited = u32::from(limits != [f32::NEG_INFINITY, f32::INFINITY]);
        let (x, w, bias, y) = (
            self.x.as_ptr(),
            self.w.as_ptr(),
            self.bias.as_ptr(),
            self.y.as_mut_ptr(),
        );
        let mut dots = fpu::Dots {
            x,
            w,
            bias,
            y,
            len: inputs,
            pairs: outputs / 2,
            stride: inputs.wrapping_mul(size_of::<f32>()),
            limited,
            limits,
        };
        if dots.pairs > 0 {
            for _ in 0..rows {
                // SAFETY: a row of `x` and of `y`, and all pairs of rows of `w` with their biases: the operands have all of them, as just checked.
                unsafe { fpu::dots(&dots) };
                dots.x = dots.x.wrapping_add(inputs);
                dots.y = dots.y.wrapping_add(outputs);
            }
        }
        if outputs % 2 == 1 {
            let last = outputs.wrapping_sub(1);
            let both = [self.bias.get(last)?; 2];
            (dots.bias, dots.pairs) = (both.as_ptr(), 1);
            dots.x = w.wrapping_add(last.wrapping_mul(inputs));
            let mut r = 0;
            while r < rows {
                let mut found = [0.0; 2];
                (dots.w, dots.y) = (x.wrapping_add(r.wrapping_mul(inputs)), found.as_mut_ptr());
                if rows.wrapping_sub(r) == 1 {
                    dots.stride = 0;
                }
                // SAFETY: `dots.x` is the last row of `w`, `dots.w` row `r < rows` of `x` and the next one, or itself (stride 0); `found` has two.
                unsafe { fpu::dots(&dots) };
                for (i, found) in found.into_iter().enumerate().take(rows.wrapping_sub(r)) {
                    let at = r.wrapping_add(i).wrapping_mul(outputs).wrapping_add(last);
                    self.y.set(at, found)?;
                }
                r = r.wrapping_add(2);
            }
        }
        Some(())
    }
}

/// Row `row` of `len` elements.
fn row(x: Src<'_, f32>, row: usize, len: usize) -> Option<Src<'_, f32>> {
    x.slice(row.checked_mul(len)?, len)
}

/// Dot product with eight accumulators in a fixed order.
// A call for each output of a layer is a tenth of a short one's time.
#[inline(always)]
pub(in crate::kernels) fn dot(x: Src<'_, f32>, w: Src<'_, f32>) -> f32 {
    let mut sums = [0.0f32; 8];
    let blocks = w.len() / 8;
    for i in 0..blocks {
        if let (Some(x), Some(w)) = (x.slice(i * 8, 8), w.slice(i * 8, 8)) {
            for ((sum, x), w) in sums.iter_mut().zip(x.iter()).zip(w.iter()) {
                *sum += x * w;
            }
        }
    }
    let tail = x.iter().zip(w.iter()).skip(blocks * 8).map(|(x, w)| x * w).sum::<f32>();
    sums.iter().sum::<f32>() + tail
}
