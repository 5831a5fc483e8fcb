//! Layers of int16 state that some cores have loops for, and what these take.

use crate::cells::{Dst, Src};
use crate::kernels::primitives::requantize::bounded::Either;
use crate::ops::svdf::SvdfS8;

/// Weights of the features, of the times, and biases.
pub(crate) type Constants<'a, S> = (&'a [i8], &'a [S], &'a [i32]);

/// A row of inputs, its outputs, and the state of its filters.
pub(crate) type Row<'a, S> = (Src<'a, i8>, Dst<'a, i8>, Dst<'a, S>);

/// Filters of int16 state that the loops of some cores take at a time.
pub(crate) const BLOCK: usize = 32;
const _: () = assert!(BLOCK.is_power_of_two());

/// Scaling of each filter's newest value, for layers that such loops take: a block has whole units, and no sum over features leaves its range.
#[cfg_attr(
    not(any(packing, kernel_isa = "armv6m", kernel_isa = "armv7m", kernel_isa = "rv32im")),
    allow(dead_code)
)]
pub(crate) fn short(op: &SvdfS8) -> Option<Either> {
    let ([zero_in, zero_state, _], [into_state, into_output]) = (op.zero, op.multipliers);
    let (shape, zeros) = (op.shape, i8::try_from(zero_in).is_ok() && zero_state == 0);
    let whole = shape.memory > 0 && shape.rank.is_power_of_two() && shape.rank <= BLOCK as u32;
    // 255 times 128 at most for each.
    let scale = Either::new(into_state, i64::from(shape.features) << 15);
    scale.filter(|_| whole && zeros && into_output.narrows())
}

/// The newest value of a filter; where the loops make it themselves it has the place of the sum that it comes from.
#[cfg(kernel_isa = "armv7m")]
pub(super) type Newest = i16;
#[cfg(not(kernel_isa = "armv7m"))]
pub(super) type Newest = i32;

/// Arguments of the loops. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[cfg_attr(not(kernel_isa = "gpr32"), allow(dead_code))]
#[repr(C)]
pub(super) struct SvdfS16Args {
    pub(super) state: *mut i16,
    pub(super) weights: *const i16,
    pub(super) newest: *mut Newest,
    pub(super) bias: *const i32,
    pub(super) y: *mut i8,
    /// Past the last output, of which there is one.
    pub(super) end: *mut i8,
    pub(super) mantissa: i32,
    /// Shift to the right: one less than the multiplier has.
    pub(super) places: u32,
    pub(super) zero: i32,
    /// Of a filter, not 0.
    pub(super) memory: usize,
    pub(super) rank: usize,
}

/// Scaling of a sum to the newest value, for loops that scale themselves. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[cfg(kernel_isa = "strict_align")]
#[repr(C)]
pub(super) struct Scale {
    pub(super) mantissa: i32,
    pub(super) left: u32,
    pub(super) right: u32,
    /// Half of what it shifts to one, and -1; or both 0 where it does not shift.
    pub(super) half: i32,
    pub(super) sign: i32,
}

#[cfg(kernel_isa = "strict_align")]
impl Scale {
    #[inline(always)]
    pub(super) fn new(scale: &Either) -> Self {
        let (mantissa, left, right) = scale.parts();
        let (half, sign) = scale.rounding();
        Self {
            mantissa,
            left,
            right,
            half,
            sign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Slot;
    use crate::ops::svdf::SvdfShape;
    use crate::quant::Multiplier;
    use crate::tensor::DType;

    #[test]
    fn what_the_loops_do_not_take() {
        let (output, input, state) = (Slot::default(), Slot::default(), Slot::default());
        let of = |mantissa, shift| Multiplier { mantissa, shift };
        let taken = SvdfS8 {
            output,
            input,
            state,
            shape: SvdfShape {
                batch: 1,
                features: 96,
                units: 5,
                rank: 2,
                memory: 6,
            },
            state_type: DType::I16,
            weights: 0,
            time_weights: 0,
            bias: 0,
            zero: [-128, 0, 127],
            multipliers: [of(1 << 30, 8), of(1 << 30, -30)],
        };
        assert!(short(&taken).is_some());
        let changes: [fn(&mut SvdfS8); 10] = [
            |op| op.zero[0] = -129,
            |op| op.zero[0] = 128,
            |op| op.zero[1] = 1,
            |op| op.shape.memory = 0,
            |op| op.shape.rank = 0,
            |op| op.shape.rank = 3,
            |op| op.shape.rank = 64,
            // 2^15 of them, doubled eight times, are all that fits.
            |op| op.shape.features = 128,
            |op| op.multipliers[0].mantissa = -1,
            |op| op.multipliers[1].shift = 0,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut op = taken;
            change(&mut op);
            assert!(short(&op).is_none(), "change {index}");
        }
    }
}
