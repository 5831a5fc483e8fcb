//! int8 SVDF for cores without SIMD: the features as rows of bytes, for two filters in a word would take twice the flash of all that the model has.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_s8::rows_s8;
use crate::kernels::primitives::requantize::bounded::Rescale;
use crate::kernels::primitives::svdf::{Dense, Over};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::Form;
use crate::quant::Multiplier;

/// int8.
pub type S8 = Over<Rows>;

/// Bytes of mantissa and shift, in front of the rows.
const FACTOR: u32 = 8;

/// A fully connected layer without biases around 0, whose channels are requantised alike.
#[derive(Debug)]
pub struct Rows;

impl Kernel for Rows {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.is_one_pixel() && op.groups == 1 && op.output_zero_point == 0 && op.clamp == [-128, 127]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let weights = op.weights_len().and_then(|len| len.checked_add(FACTOR));
        Needs {
            scratch: 0,
            weights: weights.unwrap_or(u32::MAX),
        }
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        factor(op, &Mem::of_weights(weights)).is_some()
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(usize::from);
        let into_output = factor(op, mem)?;
        let weights = mem.weights::<i8>(op.weights.checked_add(FACTOR)?, op.weights_len()?)?;
        for row in 0..usize::from(op.window.batch) {
            let x = input.slice(row * inputs, inputs)?;
            let mut first = row * outputs;
            rows_s8(x, op.input_zero_point.into(), weights, outputs, |sums| {
                let y = output.slice(first, sums.len())?;
                for (y, &mut sum) in y.cells().iter().zip(sums) {
                    y.set(into_output.apply(sum).clamp(-128, 127) as i8);
                }
                first += y.cells().len();
                Some(())
            })?;
        }
        Some(())
    }
}

/// Into the output; `None` where it has no form for the layer's sums.
fn factor(op: &Conv2dS8, mem: &Mem<'_>) -> Option<Rescale> {
    let &[mantissa, shift] = mem.weights::<i32>(op.weights, FACTOR / 4)?.first_chunk()?;
    let shift = i8::try_from(shift).ok()?;
    // 255 times 128 at most for each.
    let magnitude = i64::from(op.window.input[2]) << 15;
    Rescale::new(Multiplier { mantissa, shift }, magnitude, 0)
}

#[cfg(any(test, packing))]
impl Candidate for Rows {
    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        let first = plain.channels.first()?;
        (first[0] == 0 && plain.channels.iter().all(|channel| channel == first)).then_some(op)
    }

    fn pack(job: &Job<'_>, op: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (_, plain) = job.conv2d_s8()?;
        let &[_, mantissa, shift] = plain.channels.first()?;
        let factor = [mantissa, shift].into_iter().flat_map(i32::to_le_bytes);
        let bytes = factor.chain(plain.weights.iter().map(|&weight| weight as u8));
        if packed.len() != FACTOR as usize + plain.weights.len() {
            return None;
        }
        packed.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        let magnitude = i64::from(op.window.input[2]) << 15;
        let multiplier = Multiplier {
            mantissa,
            shift: i8::try_from(shift).ok()?,
        };
        Rescale::new(multiplier, magnitude, 0).map(|_| ())
    }
}

impl Dense for Rows {
    fn of(layer: &Conv2dS8, _: Form) -> Conv2dS8 {
        *layer
    }
}
