//! Locally connected layers: accumulates whole output rows, so that input, weights and output are all read along rows.

use super::clamp;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::locally_connected::LocallyConnectedF32;

/// f32; weights `[out, in, kh, kw, oh, ow]`.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LocallyConnectedF32;

    fn run(op: &LocallyConnectedF32, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<f32>(op.input, op.input_len()?)?;
        let output = mem.dst::<f32>(op.output, op.output_len()?)?;
        let weights = mem.weights::<f32>(op.weights, op.weights_len()?)?;
        let bias = mem.weights::<f32>(op.bias, op.bias_len()?)?;
        let [c, h, w] = op.input_shape.map(usize::from);
        let [o, oh, ow] = op.output_shape().map(usize::from);
        let [kh, kw] = op.kernel.map(usize::from);
        for image in 0..usize::from(op.batch) {
            for channel in 0..o {
                for y in 0..oh {
                    let row = output.slice(((image * o + channel) * oh + y) * ow, ow)?;
                    row.cells().iter().for_each(|y| y.set(0.0));
                    for (cin, ky, kx) in (0..c).flat_map(|c| (0..kh).flat_map(move |y| (0..kw).map(move |x| (c, y, x))))
                    {
                        let x = input.slice(((image * c + cin) * h + y + ky) * w + kx, ow)?;
                        let at = ((((channel * c + cin) * kh + ky) * kw + kx) * oh + y) * ow;
                        let k = weights.get(at..)?.get(..ow)?;
                        for ((sum, x), k) in row.cells().iter().zip(x.iter()).zip(k) {
                            sum.set(sum.get() + x * k);
                        }
                    }
                    let bias = bias.get((channel * oh + y) * ow..)?;
                    for (sum, b) in row.cells().iter().zip(bias) {
                        sum.set(clamp(sum.get() * op.gain + b, op.clamp));
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}
