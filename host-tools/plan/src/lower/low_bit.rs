//! Weights of 16, 8 or 4 bits under f32 activations, and of 4 under int8 ones: rounded and laid out for the kernels that widen them.

use arenite::Step;
use arenite::kernels::api::candidate::{GroupsS8, Job, PlainS8};
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::low_bit::{Conv2dS8W4, MOST_FACTOR, WeightOnlyF32, filter_bytes};
use arenite::ops::window::Window2d;

use super::context::{Lower, fit, input, optional, output};
use super::numbers::zero_point_s8;
use super::s8::S8;
use super::select::{self, Choice, Constants};
use crate::error::{Error, Result};
use crate::graph::{Activation, LowBits, Node};
use crate::half;
use crate::program::Place;

/// Scales that a part's weights are tried with: those of the largest one, and narrower ones that clip it.
const TRIED: u32 = 32;
/// The narrowest of them, in parts of the widest.
const NARROWEST: f64 = 0.5;

/// Weights as whole numbers and scales.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounded {
    /// By output, by part.
    pub(crate) scales: Vec<f32>,
    /// As many as there are weights.
    pub(crate) numbers: Vec<i8>,
    /// Squares of the weights, and of what rounding changed.
    pub squares: [f64; 2],
}

/// The halves nearest to the weights of a layer; `None` where one has no finite half.
pub fn halves(weights: &[f32]) -> Option<Vec<u16>> {
    weights.iter().map(|&weight| half::to_bits(weight)).collect()
}

/// Squares of the weights of a layer, `filter` of each output, and of what storing them in `bits` changes.
pub fn squares(weights: &[f32], filter: usize, bits: LowBits) -> [f64; 2] {
    if bits.bits != 16 {
        return rounded(weights, filter, bits).squares;
    }
    let square = |x: f64| x * x;
    let lost = |&w: &f32| square(f64::from(w) - f64::from(half::rounded_to_f16(w)));
    [
        weights.iter().map(|&w| square(w.into())).sum(),
        weights.iter().map(lost).sum(),
    ]
}

/// The largest number of so many bits; the smallest is as far from zero.
pub fn largest(bits: u8) -> i8 {
    if bits == 4 { 7 } else { 127 }
}

/// Rounds the weights of a layer, `filter` of each output: each part of them by a scale of its own. Of eight bits the largest weight decides, of four what
/// changes the weights least.
pub fn rounded(weights: &[f32], filter: usize, bits: LowBits) -> Rounded {
    let mut all = Rounded {
        scales: Vec::new(),
        numbers: Vec::with_capacity(weights.len()),
        squares: [0.0; 2],
    };
    let share = bits.share(filter);
    for part in weights.chunks(filter.max(1)).flat_map(|filter| filter.chunks(share)) {
        let (scale, (numbers, error)) = match exact(part, bits.bits) {
            Some((scale, numbers)) => (scale, (numbers, 0.0)),
            None => {
                let scale = scale(part, bits.bits);
                (scale, at_scale(part, scale, largest(bits.bits)))
            }
        };
        all.scales.push(scale);
        all.numbers.extend(numbers);
        all.squares[0] += part.iter().map(|&w| f64::from(w) * f64::from(w)).sum::<f64>();
        all.squares[1] += error;
    }
    all
}

/// The scale and the numbers of 8 or 4 bits whose products the weights of a part are, bit for bit: of those that were such numbers before.
pub fn exact(part: &[f32], bits: u8) -> Option<(f32, Vec<i8>)> {
    let least = if bits == 4 { -8 } else { i8::MIN };
    let most = part.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
    if most == 0.0 {
        return Some((1.0, vec![0; part.len()]));
    }
    (1..=least.unsigned_abs()).find_map(|largest| {
        let near = most / f32::from(largest);
        [near, near.next_up(), near.next_down()].into_iter().find_map(|scale| {
            let number = |&weight: &f32| {
                let number = (weight / scale).round();
                let held = (f32::from(least)..=f32::from(!least)).contains(&number)
                    && number * scale == weight
                    && scale.is_normal();
                held.then_some(number as i8)
            };
            let numbers: Option<Vec<i8>> = part.iter().map(number).collect();
            numbers.map(|numbers| (scale, numbers))
        })
    })
}

/// The scale of a part; 1 where there is nothing but zeros.
pub fn scale(part: &[f32], bits: u8) -> f32 {
    let most = part.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
    let widest = (most / f32::from(largest(bits))).max(f32::MIN_POSITIVE);
    if most == 0.0 {
        return 1.0;
    }
    if bits != 4 {
        return widest;
    }
    let (mut best, mut least) = (widest, at_scale(part, widest, largest(bits)).1);
    for step in 0..TRIED {
        let narrower = 1.0 - (1.0 - NARROWEST) * f64::from(step) / f64::from(TRIED);
        let tried = (f64::from(widest) * narrower) as f32;
        // For these numbers the scale with the least squares.
        let (numbers, _) = at_scale(part, tried, largest(bits));
        let [meets, squares] = part.iter().zip(&numbers).fold([0.0; 2], |[meets, squares], (&w, &q)| {
            let q = f64::from(q);
            [meets + f64::from(w) * q, squares + q * q]
        });
        let fitted = (meets / squares) as f32;
        for scale in [tried, fitted] {
            if scale.is_normal() && scale > 0.0 {
                let error = at_scale(part, scale, largest(bits)).1;
                if error < least {
                    (best, least) = (scale, error);
                }
            }
        }
    }
    best
}

/// The nearest numbers, and the sum of the squared differences.
pub fn at_scale(part: &[f32], scale: f32, largest: i8) -> (Vec<i8>, f64) {
    let (largest, mut error) = (f32::from(largest), 0.0);
    let numbers = part.iter().map(|&weight| {
        let number = (weight / scale).round().clamp(-largest, largest);
        let lost = f64::from(weight) - f64::from(number) * f64::from(scale);
        error += lost * lost;
        number as i8
    });
    (numbers.collect(), error)
}

/// As a kernel reads them: each output's from a byte of its own on, of four bits two in a byte, the first in its low half.
pub(crate) fn packed(numbers: &[i8], filter: usize, bits: u8) -> Vec<u8> {
    if bits != 4 {
        return numbers.iter().map(|&number| number as u8).collect();
    }
    let half = |number: Option<&i8>| number.map_or(0, |&number| number as u8 & 0x0F);
    let filters = numbers.chunks(filter.max(1));
    let pairs = filters.flat_map(|filter| filter.chunks(2));
    pairs.map(|pair| half(pair.first()) | half(pair.get(1)) << 4).collect()
}

/// Bytes that a layer's weights take in this form, scales included.
pub fn bytes(outputs: usize, filter: usize, bits: LowBits) -> usize {
    let parts = filter.div_ceil(bits.share(filter));
    outputs * (filter_bytes(filter as u32, bits.bits.into()) as usize + 4 * parts)
}

/// Appends the step of an f32 convolution or linear layer whose weights are stored in `bits`. Operands: activations, weights (OHWI when read in order),
/// bias, residual.
pub(super) fn push_f32(
    lower: &mut Lower<'_>,
    node: &Node,
    (window, groups): (Window2d, usize),
    bits: LowBits,
    activation: Activation,
    (kind, macs): (&'static str, u64),
) -> Result<()> {
    let w = input(node, 1)?;
    let weights = lower.values(w)?;
    let filter = weights.len() / usize::from(window.output[2]).max(1);
    let (stored, scales) = if bits.bits == 16 {
        let halves =
            halves(&weights).ok_or_else(|| Error::internal(format!("`{}` has weights without halves", node.name)))?;
        let bytes = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        (bytes, vec![1.0; usize::from(window.output[2])])
    } else {
        let found = rounded(&weights, filter, bits);
        (packed(&found.numbers, filter, bits.bits), found.scales)
    };
    let bias = optional(node, 2).map(|bias| lower.constant(bias)).transpose()?;
    let residual = optional(node, 3).map(|id| lower.place(id)).transpose()?;
    let op = WeightOnlyF32 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        residual,
        weights: lower.program.weights.add_bytes(stored)?,
        scales: lower.program.weights.add_f32(&scales)?,
        bias,
        window,
        groups: fit(groups, "the number of groups")?,
        share: fit(bits.share(filter), "the number of weights that share a scale")?,
        clamp: activation.bounds(),
    };
    let step = match bits.bits {
        16 => Step::W16Conv2dF32(op),
        8 => Step::W8Conv2dF32(op),
        4 => Step::W4Conv2dF32(op),
        other => return Err(Error::internal(format!("weights of {other} bits"))),
    };
    lower.push(node, kind, step, macs);
    Ok(())
}

/// Appends the step of an int8 convolution or fully connected layer whose weights are products of a number of four bits and the factor of its part.
pub(super) fn push_s8(
    lower: &mut Lower<'_>,
    node: &Node,
    conv: &S8,
    plain: PlainS8<'_>,
    bits: LowBits,
    (kind, macs): (&'static str, u64),
) -> Result<()> {
    let filter = plain.weights.len() / plain.channels.len().max(1);
    let share = bits.share(filter);
    let op = plain_form(lower, node, conv)?;
    if share == filter
        && let Some(choice) = select::low_bits_s8(&lower.program, &Job::Conv2dS8W4(op, plain))
    {
        return push_packed(lower, node, choice, (kind, macs));
    }
    let other = || Error::internal(format!("the weights of `{}` are no products of four bits", node.name));
    let (mut factors, mut numbers) = (Vec::new(), Vec::with_capacity(plain.weights.len()));
    for part in plain
        .weights
        .chunks(filter.max(1))
        .flat_map(|filter| filter.chunks(share))
    {
        let factor = factor(part).ok_or_else(other)?;
        numbers.extend(part.iter().map(|&product| product / factor as i8));
        factors.push(factor);
    }
    let share = fit(share, "the number of weights that share a factor")?;
    let groups = GroupsS8 {
        share,
        factors: &factors,
    };
    if let Some(choice) = select::low_bits_s8(&lower.program, &Job::Conv2dS8Groups(op, plain, groups)) {
        return push_packed(lower, node, choice, (kind, macs));
    }
    let op = Conv2dS8W4 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        weights: lower.program.weights.add_bytes(packed(&numbers, filter, 4))?,
        factors: lower.program.weights.add_bytes(factors)?,
        channels: lower.program.weights.add_i32(plain.channels.as_flattened())?,
        window: conv.window,
        groups: conv.groups,
        share,
        input_zero_point: zero_point_s8(conv.input_q.1)?,
        output_zero_point: zero_point_s8(conv.output_q.1)?,
        clamp: conv.clamp,
    };
    lower.push(node, kind, Step::W4Conv2dS8(op), macs);
    Ok(())
}

/// The int8 convolution of the same products.
fn plain_form(lower: &mut Lower<'_>, node: &Node, conv: &S8) -> Result<Conv2dS8<Place>> {
    Ok(Conv2dS8 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        scratch: Place::Scratch,
        weights: 0,
        channels: 0,
        window: conv.window,
        groups: conv.groups,
        input_zero_point: zero_point_s8(conv.input_q.1)?,
        output_zero_point: zero_point_s8(conv.output_q.1)?,
        clamp: conv.clamp,
        flags: 0,
    })
}

/// Adds the stream of the step that [`select::low_bits_s8`] chose, and appends it.
fn push_packed(lower: &mut Lower<'_>, node: &Node, choice: Choice, (kind, macs): (&'static str, u64)) -> Result<()> {
    let Choice { mut step, constants } = choice;
    let Constants::Packed { weights, .. } = constants else {
        return Err(Error::internal("a kernel for weights of four bits with plain ones"));
    };
    let at = lower.program.weights.add_bytes(weights)?;
    step.set_constants(at, at);
    lower.push(node, kind, step, macs);
    Ok(())
}

/// The least factor that these products have in common with numbers of four bits.
fn factor(products: &[i8]) -> Option<u8> {
    let largest = i16::from(largest(4));
    (1..=MOST_FACTOR).find(|&factor| {
        let mut all = products.iter().map(|&product| i16::from(product));
        let factor = i16::from(factor);
        all.all(|product| product % factor == 0 && (product / factor).abs() <= largest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: LowBits = LowBits { bits: 4, group: None };

    #[test]
    fn every_part_has_a_scale_and_no_weight_is_further_off_than_half_of_it() {
        let weights: Vec<f32> = (0..60)
            .map(|i| (i as f32 * 0.7).sin() * (1.0 + (i / 10) as f32))
            .collect();
        for group in [None, Some(3), Some(4), Some(100)] {
            let bits = LowBits { bits: 8, group };
            let found = rounded(&weights, 10, bits);
            let share = bits.share(10);
            assert_eq!(found.scales.len(), 6 * 10_usize.div_ceil(share));
            for (at, (weight, number)) in weights.iter().zip(&found.numbers).enumerate() {
                let scale = found.scales[at / 10 * 10_usize.div_ceil(share) + at % 10 / share];
                assert!(
                    (weight - scale * f32::from(*number)).abs() <= scale * 0.5001,
                    "{group:?} {at}"
                );
            }
        }
    }

    #[test]
    fn four_bits_clip_where_that_changes_less() {
        // One weight far out, many near zero: clipped, the others are nearer.
        let mut weights = vec![0.1_f32, -0.13, 0.07, 0.11, -0.09, 0.12, -0.1];
        weights.extend([0.9]);
        let found = rounded(&weights, 8, FOUR);
        let widest = 0.9 / 7.0;
        assert!(found.squares[1] <= at_scale(&weights, widest, 7).1 && found.scales[0] > 0.0);
        // Multiples of a scale are stored as they are.
        let exact: Vec<f32> = (-7..=7).map(|q: i8| f32::from(q) * 0.25).collect();
        let found = rounded(&exact, 15, FOUR);
        assert_eq!((found.scales[0], found.squares[1]), (0.25, 0.0));
        let zeros = rounded(&[0.0; 6], 3, FOUR);
        assert_eq!((zeros.scales, zeros.numbers), (vec![1.0; 2], vec![0; 6]));
    }

    #[test]
    fn products_show_their_factor() {
        for (products, expected) in [
            (&[7_i8, -7, 0][..], Some(1)),
            (&[126, -126, 18], Some(18)),
            (&[0, 0], Some(1)),
            (&[10, -14, 4], Some(2)),
            (&[9, 14], None),
            (&[127, 1], None),
        ] {
            assert_eq!(factor(products), expected, "{products:?}");
        }
    }

    #[test]
    fn every_output_begins_at_a_byte() {
        assert_eq!(packed(&[1, -1, 7, -7, 2, 3], 3, 4), [0xF1, 0x07, 0x29, 0x03]);
        assert_eq!(packed(&[1, -1, 7, -7], 2, 4), [0xF1, 0x97]);
        assert_eq!(packed(&[1, -1], 1, 8), [1, 255]);
        assert_eq!(bytes(2, 3, FOUR), 2 * (2 + 4));
        assert_eq!(
            bytes(
                5,
                32,
                LowBits {
                    bits: 8,
                    group: Some(16)
                }
            ),
            5 * (32 + 8)
        );
    }
}
