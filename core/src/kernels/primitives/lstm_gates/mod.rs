//! The gates of a quantised LSTM, and what follows from them: new states and outputs, a block of cells at a time.
//!
//! A gate is the scaled sum over the inputs, with its bias, and the scaled sum over the hidden state, each rounded and saturated to int16 before they are
//! added. Sums whose magnitude is known to leave room are scaled without a look at each; `None` of [`Activation::scale`] says that it is not.

#[cfg(kernel_isa = "armv7m_gpr")]
pub(in crate::kernels) mod armv7m;
#[cfg(kernel_isa = "mve")]
pub(in crate::kernels) mod mve;

mod block;

pub(crate) use block::BLOCK;

use super::dot_s8::block_s8;
use super::dot_s16;
use super::requantize::bounded::{Either, Rescale, RescaleS64};
use crate::cells::{Dst, Element, Src};
use crate::ops::lstm::LstmInt;
use crate::quant::{Multiplier, SigmoidI16};
#[cfg(kernel_isa = "armv7m_gpr")]
use armv7m as loops;
#[cfg(kernel_isa = "mve")]
use mve as loops;

/// Sums of a gate for a block of cells.
pub(crate) type Sums = [i32; BLOCK];

/// The gates of a block of cells: input, forget, cell, output.
pub(crate) type Gates = [[i16; BLOCK]; 4];

/// An activation.
pub(crate) trait Activation: Element {
    /// An element of the biases.
    type Bias: Element;
    /// Bias of the sums over the hidden state.
    const NO_BIAS: Self::Bias;
    /// Scaling of a gate's sums that is valid for every sum in range.
    type Scale: Copy;

    /// For sums of `len` products and a bias of at most so much; `None` where they might leave their range.
    fn scale(multiplier: Multiplier, len: usize, largest_bias: u64) -> Option<Self::Scale>;

    /// The magnitude of a bias.
    fn magnitude(bias: Self::Bias) -> u64;

    /// `sum of (x[i] - zero) * row[i]`, modulo 2^32, of the first `count` rows of weights, at most [`BLOCK`] and at least one.
    fn sums(x: Src<'_, Self>, zero: i32, weights: &[i8], count: usize, sums: &mut Sums) -> Option<()>;

    /// Gates from both sums, as many as there are biases.
    fn gate(sums: [&Sums; 2], bias: &[Self::Bias], scales: &[Self::Scale; 2], gate: &mut [i16; BLOCK]);

    /// One of the two terms of a gate, of sums of any size.
    fn term(x: Src<'_, Self>, zero: i32, row: &[i8], bias: Self::Bias, multiplier: Multiplier) -> i16;

    /// Saturated to the activation.
    fn narrow(value: i32) -> Self;
}

impl Activation for i8 {
    type Bias = i32;
    const NO_BIAS: i32 = 0;
    type Scale = Either;

    fn scale(multiplier: Multiplier, len: usize, largest_bias: u64) -> Option<Either> {
        // 255 times 128 at most for each.
        let magnitude = (len as u64).saturating_mul(1 << 15).saturating_add(largest_bias);
        Either::new(multiplier, i64::try_from(magnitude).ok()?)
    }

    fn magnitude(bias: i32) -> u64 {
        bias.unsigned_abs().into()
    }

    #[inline(always)]
    fn sums(x: Src<'_, i8>, zero: i32, weights: &[i8], count: usize, sums: &mut Sums) -> Option<()> {
        block_s8(x, zero, weights, count, sums)
    }

    // A function by itself: in one with all gates the loop would have no registers.
    #[inline(never)]
    fn gate([of_input, of_hidden]: [&Sums; 2], bias: &[i32], scales: &[Either; 2], gate: &mut [i16; BLOCK]) {
        #[cfg(kernel_isa = "armv7m")]
        if !bias.is_empty() && bias.len() <= BLOCK {
            let sums = [of_input, of_hidden].map(|sums| sums.as_ptr());
            // SAFETY: `1..=BLOCK` biases, as just checked; `of_input`, `of_hidden` and `gate` have `BLOCK` elements each.
            unsafe { loops::gate_s8(sums, bias, scales, gate.as_mut_ptr()) };
            return;
        }
        let &[from_input, from_hidden] = scales;
        // One after the other: both have too many numbers for the registers.
        for ((gate, bias), sum) in gate.iter_mut().zip(bias).zip(of_input) {
            *gate = saturate(from_input.apply(sum.wrapping_add(*bias)));
        }
        for ((gate, _), &sum) in gate.iter_mut().zip(bias).zip(of_hidden) {
            *gate = gate.saturating_add(saturate(from_hidden.apply(sum)));
        }
    }

    fn term(x: Src<'_, i8>, zero: i32, row: &[i8], bias: i32, multiplier: Multiplier) -> i16 {
        let sum = x.iter().zip(row).fold(bias, |sum, (x, &w)| {
            sum.wrapping_add(i32::from(x).wrapping_sub(zero).wrapping_mul(w.into()))
        });
        saturate(multiplier.apply(sum))
    }

    #[inline(always)]
    fn narrow(value: i32) -> i8 {
        value.clamp(-128, 127) as i8
    }
}

impl Activation for i16 {
    type Bias = i64;
    const NO_BIAS: i64 = 0;
    type Scale = RescaleS64;

    fn scale(multiplier: Multiplier, len: usize, largest_bias: u64) -> Option<RescaleS64> {
        let products = (len as u64) << 22;
        let fits = (1..=dot_s16::LONGEST).contains(&len) && largest_bias < (1 << 31) - products;
        RescaleS64::new(multiplier).filter(|_| fits)
    }

    fn magnitude(bias: i64) -> u64 {
        bias.unsigned_abs()
    }

    #[inline(always)]
    fn sums(x: Src<'_, i16>, _: i32, weights: &[i8], count: usize, sums: &mut Sums) -> Option<()> {
        dot_s16::block(x, weights, count, sums)
    }

    #[inline(never)]
    fn gate([of_input, of_hidden]: [&Sums; 2], bias: &[i64], scales: &[RescaleS64; 2], gate: &mut [i16; BLOCK]) {
        #[cfg(kernel_isa = "mve")]
        if !bias.is_empty() && bias.len() <= BLOCK {
            let sums = [of_input, of_hidden].map(|sums| sums.as_ptr());
            // SAFETY: `1..=BLOCK` biases, as just checked; `of_input`, `of_hidden` and `gate` have `BLOCK` elements each.
            unsafe { loops::gate_s16(sums, bias, scales, gate.as_mut_ptr()) };
            return;
        }
        let &[from_input, from_hidden] = scales;
        for ((gate, bias), sum) in gate.iter_mut().zip(bias).zip(of_input) {
            // The bias has 32 bits, as the sum with it.
            *gate = saturate(from_input.apply(sum.wrapping_add(*bias as i32)));
        }
        for ((gate, _), &sum) in gate.iter_mut().zip(bias).zip(of_hidden) {
            *gate = gate.saturating_add(saturate(from_hidden.apply(sum)));
        }
    }

    fn term(x: Src<'_, i16>, _: i32, row: &[i8], bias: i64, multiplier: Multiplier) -> i16 {
        let sum = x.iter().zip(row).fold(bias, |sum, (x, &w)| {
            sum.wrapping_add(i64::from(i32::from(x) * i32::from(w)))
        });
        saturate(multiplier.apply_wide(sum))
    }

    #[inline(always)]
    fn narrow(value: i32) -> i16 {
        saturate(value)
    }
}

/// Scalings of f * c, i * g and o * tanh(c); `None` at multipliers that an operator may not have.
pub(crate) fn products(op: &LstmInt) -> Option<[Rescale; 3]> {
    let [keep, add, show] = op.products;
    // Of both factors' magnitudes, 2^15 - 1 and 2^15.
    let of = |multiplier| Rescale::new(multiplier, 1 << 30, 0);
    Some([of(keep)?, of(add)?, of(show)?])
}

/// New states and outputs of as many cells as there are of both, at most [`BLOCK`].
// A function by itself: in one with the gates the loop would have no registers.
#[inline(never)]
pub(crate) fn finish<A: Activation>(
    op: &LstmInt,
    products: &[Rescale; 3],
    gates: &Gates,
    states: Dst<'_, i16>,
    y: Dst<'_, A>,
) -> Option<()> {
    let count = states.cells().len();
    if !(1..=BLOCK).contains(&count) || y.cells().len() != count {
        return None;
    }
    #[cfg(kernel_isa = "armv7m")]
    // SAFETY: `states` and `y` have `count` elements, which is 1 to `BLOCK`, as just checked; each of `gates` has `BLOCK`.
    unsafe {
        loops::cells(
            op,
            products,
            gates.as_ptr().cast(),
            states.as_mut_ptr(),
            y.as_mut_ptr().cast(),
            count,
        );
    }
    #[cfg(not(kernel_isa = "armv7m"))]
    cells(op, products, gates, states, y);
    Some(())
}

/// The same where there are as many outputs as states.
#[cfg_attr(kernel_isa = "armv7m", allow(dead_code))]
#[inline(always)]
fn cells<A: Activation>(op: &LstmInt, products: &[Rescale; 3], gates: &Gates, states: Dst<'_, i16>, y: Dst<'_, A>) {
    // Gates have scale 2^-12, which the table takes as it is.
    const GATE: SigmoidI16 = SigmoidI16::power_of_two(0);
    let (limit, least) = if op.clip > 0 {
        (op.clip, op.clip.wrapping_neg())
    } else {
        (i16::MAX, i16::MIN)
    };
    let [keep, add, show] = products;
    let product = |a: i16, b: i16| i32::from(a) * i32::from(b);
    let [input, forget, cell, output] = gates;
    // Two loops: one has too many numbers for the registers.
    let of_gates = forget.iter().zip(input.iter().zip(cell));
    for (state, (&forget, (&input, &cell))) in states.cells().iter().zip(of_gates) {
        let kept = saturate(keep.apply(product(GATE.logistic(forget), state.get())));
        let added = saturate(add.apply(product(GATE.logistic(input), GATE.tanh(cell))));
        state.set(kept.saturating_add(added).min(limit).max(least));
    }
    for ((state, y), &output) in states.cells().iter().zip(y.cells()).zip(output) {
        let shown = show.apply(product(op.tanh.tanh(state.get()), GATE.logistic(output)));
        y.set(A::narrow(shown.wrapping_add(op.zero[1])));
    }
}

fn saturate(x: i32) -> i16 {
    x.max(i16::MIN.into()).min(i16::MAX.into()) as i16
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::arena::Slot;
    use crate::ops::lstm::LstmShape;
    use crate::tensor::DType;

    /// Gates of `count` cells from what [`Activation::sums`] and [`Activation::gate`] make, and from one term after the other.
    fn both<A: Activation>(
        x: &[A],
        zero: i32,
        weights: &[i8],
        bias: &[A::Bias],
        multipliers: [Multiplier; 2],
    ) -> Option<[Vec<i16>; 2]> {
        let (x, count) = (Src::from_slice(x), bias.len());
        let largest = bias.iter().map(|&bias| A::magnitude(bias)).max()?;
        let [of_input, of_hidden] = multipliers;
        let scales = [A::scale(of_input, x.len(), largest)?, A::scale(of_hidden, x.len(), 0)?];
        let (mut sums, mut gate) = ([-1; BLOCK], [77; BLOCK]);
        A::sums(x, zero, weights, count, &mut sums)?;
        A::gate([&sums, &sums], bias, &scales, &mut gate);
        assert_eq!(gate[count..], [77; BLOCK][count..], "behind the last cell");
        let one = |(row, &bias): (&[i8], &A::Bias)| {
            let first = A::term(x, zero, row, bias, of_input);
            first.saturating_add(A::term(x, zero, row, A::NO_BIAS, of_hidden))
        };
        Some([
            gate[..count].to_vec(),
            weights.chunks(x.len()).zip(bias).map(one).collect(),
        ])
    }

    fn op(products: [Multiplier; 3], tanh: SigmoidI16, clip: i16, zero: i32) -> LstmInt {
        let (output, input, hidden, cell) = (Slot::default(), Slot::default(), Slot::default(), Slot::default());
        LstmInt {
            shape: LstmShape {
                output,
                input,
                hidden,
                cell,
                batch: 1,
                time: 1,
                features: 1,
                cells: 1,
                time_major: false,
                gates: Default::default(),
            },
            dtype: DType::I8,
            zero: [0, zero],
            gates: [[Multiplier::ONE; 2]; 4],
            products,
            tanh,
            clip,
        }
    }

    proptest! {
        #[test]
        fn int8_gates_are_their_terms(
            len in 1..12_usize, count in 1..=BLOCK, zero in -128..=127_i32, seed: [u8; 64], bits in 0..31_u32,
            bias: i32, mantissas in prop::array::uniform2(1 << 30..=i32::MAX), shifts in prop::array::uniform2(-12..4_i8),
        ) {
            let byte = |i: usize| seed[i % 64].wrapping_mul(1 + (i / 64) as u8) as i8;
            let (x, weights): (Vec<i8>, Vec<i8>) = ((0..len).map(byte).collect(), (0..len * count).map(|i| byte(i + 31)).collect());
            let bias: i32 = bias.wrapping_shr(bits);
            let bias: Vec<i32> = (0..count).map(|i| bias.wrapping_mul(1 - (i as i32 % 3))).collect();
            let multipliers = [0, 1].map(|i| Multiplier { mantissa: mantissas[i], shift: shifts[i] });
            if let Some([found, expected]) = both(&x, zero, &weights, &bias, multipliers) {
                prop_assert_eq!(found, expected);
            } else {
                prop_assert!(bits < 4);
            }
        }

        #[test]
        fn int16_gates_are_their_terms(
            len in 1..12_usize, count in 1..=BLOCK, seed: [u8; 64], bits in 0..63_u32,
            bias: i64, mantissas in prop::array::uniform2(1 << 30..=i32::MAX), shifts in prop::array::uniform2(-16..8_i8),
        ) {
            let byte = |i: usize| seed[i % 64].wrapping_mul(1 + (i / 64) as u8) as i8;
            let x: Vec<i16> = (0..len).map(|i| i16::from_le_bytes([byte(i) as u8, byte(i + 5) as u8])).collect();
            let weights: Vec<i8> = (0..len * count).map(|i| byte(i + 31)).collect();
            let bias: i64 = bias.wrapping_shr(bits);
            let bias: Vec<i64> = (0..count).map(|i| bias.wrapping_mul(1 - (i as i64 % 3))).collect();
            let multipliers = [0, 1].map(|i| Multiplier { mantissa: mantissas[i], shift: shifts[i] });
            if let Some([found, expected]) = both(&x, 0, &weights, &bias, multipliers) {
                prop_assert_eq!(found, expected);
            } else {
                prop_assert!(bits < 33);
            }
        }

        #[test]
        fn cells_are_the_formula(
            gates: [[i16; 4]; 4], states: [i16; 4], mantissas in prop::array::uniform3(1 << 30..=i32::MAX), shifts in prop::array::uniform3(-24..-13_i8),
            shift in 0..12_u8, below: bool, clip in 0..20_000_i16, zero in -128..=127_i32,
        ) {
            let products = [0, 1, 2].map(|i| Multiplier { mantissa: mantissas[i], shift: shifts[i] });
            let tanh = if below { SigmoidI16::below_table(shift) } else { SigmoidI16::power_of_two(shift) };
            let op = op(products, tanh, clip, zero);
            let mut block = [[0; BLOCK]; 4];
            for (block, gate) in block.iter_mut().zip(gates) {
                block[..4].copy_from_slice(&gate);
            }
            let cells: [core::cell::Cell<u8>; 8] = core::array::from_fn(|i| core::cell::Cell::new(states[i / 2].to_le_bytes()[i % 2]));
            let outputs: [core::cell::Cell<u8>; 8] = core::array::from_fn(|_| core::cell::Cell::new(0));
            let (state, y) = (Dst::from_cells(&cells).unwrap(), Dst::<i8>::from_cells(&outputs[..4]).unwrap());
            let scales = super::products(&op).unwrap();
            finish(&op, &scales, &block, state, y).unwrap();
            for i in 0..4 {
                let [input, forget, cell, output] = gates.map(|gate| gate[i]);
                let gate = SigmoidI16::power_of_two(0);
                let of = |product: Multiplier, a: i16, b: i16| product.apply(i32::from(a) * i32::from(b));
                let kept = of(products[0], gate.logistic(forget), states[i]).clamp(-32768, 32767) as i16;
                let added = of(products[1], gate.logistic(input), gate.tanh(cell)).clamp(-32768, 32767) as i16;
                let mut new = kept.saturating_add(added);
                if clip > 0 {
                    new = new.clamp(-clip, clip);
                }
                prop_assert_eq!(state.as_src().get(i), Some(new));
                let shown = of(products[2], tanh.tanh(new), gate.logistic(output)) + zero;
                prop_assert_eq!(y.as_src().get(i), Some(shown.clamp(-128, 127) as i8));
            }
            prop_assert_eq!(finish(&op, &scales, &block, state, Dst::<i8>::from_cells(&outputs[..3]).unwrap()), None);
        }
    }
}
