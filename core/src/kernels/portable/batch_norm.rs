//! Batch norm of f32, its statistics and its gradients, from the formulas of [`crate::ops::batch_norm`].
//!
//! Sums have one order on every core, and are rounded after every product; long ones are sums of sums of 32 terms.

use super::row;
use crate::arena::Mem;
use crate::cells::Src;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::tiles_f32::LANES;
use crate::ops::batch_norm::{BatchNormF32, BatchNormGradF32, BatchStatisticsF32};
use crate::ops::operator::Needs;
use crate::ops::size::product;

/// f32.
#[derive(Debug)]
pub struct F32;

/// Mean and variance of a batch, f32.
#[derive(Debug)]
pub struct Statistics;

/// The gradients of input, gain and shift, f32.
#[derive(Debug)]
pub struct Grad;

impl Kernel for F32 {
    type Op = BatchNormF32;

    fn needs(op: &BatchNormF32) -> Needs {
        Needs {
            scratch: op.channels.saturating_mul(4),
            weights: 0,
        }
    }

    /// Element by element.
    fn distance(_: &BatchNormF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &BatchNormF32, mem: &Mem<'_>) -> Option<()> {
        let all = product(op.rows, op.channels)?;
        let output = mem.dst::<f32>(op.output, all)?;
        let input = mem.src::<f32>(op.input, all)?;
        let [gain, shift, mean, variance] = [op.gain, op.shift, op.mean, op.variance];
        let gain = mem.src::<f32>(gain, op.channels)?;
        let shift = mem.src::<f32>(shift, op.channels)?;
        let mean = mem.src::<f32>(mean, op.channels)?;
        let variance = mem.src::<f32>(variance, op.channels)?;
        let factors = mem.dst::<f32>(op.scratch, op.channels)?;
        for ((factor, gain), variance) in factors.cells().iter().zip(gain.iter()).zip(variance.iter()) {
            factor.set(gain / libm::sqrtf(variance + op.epsilon));
        }
        let channels = op.channels as usize;
        for r in 0..op.rows as usize {
            let x = row(input, r, channels)?;
            let y = output.slice(r.wrapping_mul(channels), channels)?;
            let parameters = factors.cells().iter().zip(mean.iter()).zip(shift.iter());
            for ((y, x), ((factor, mean), shift)) in y.cells().iter().zip(x.iter()).zip(parameters) {
                y.set((x - mean) * factor.get() + shift);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

impl Kernel for Statistics {
    type Op = BatchStatisticsF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &BatchStatisticsF32, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<f32>(op.input, product(op.rows, op.channels)?)?;
        let means = mem.dst::<f32>(op.mean, op.channels)?;
        let variances = mem.dst::<f32>(op.variance, op.channels)?;
        let moving_means = mem.dst::<f32>(op.moving_mean, op.channels)?;
        let moving_variances = mem.dst::<f32>(op.moving_variance, op.channels)?;
        let (channels, share) = (op.channels as usize, 1.0 / op.rows.max(1) as f32);
        let unbiased = op.rows.max(1) as f32 / op.rows.saturating_sub(1).max(1) as f32;
        let fresh = 1.0 - op.momentum;
        let mut c = 0usize;
        while c < channels {
            let count = if channels.wrapping_sub(c) >= LANES { LANES } else { 1 };
            let (mut mean, mut variance) = ([0.0; LANES], [0.0; LANES]);
            if count == LANES {
                batch::<LANES>(input.tail(c)?, channels, share, &mut mean, &mut variance)?;
            } else {
                batch::<1>(input.tail(c)?, channels, share, &mut mean, &mut variance)?;
            }
            for (at, (mean, variance)) in (c..).zip(mean.into_iter().zip(variance)).take(count) {
                means.set(at, mean)?;
                variances.set(at, variance)?;
                let moving = moving_means.cells().get(at)?;
                moving.set(op.momentum * moving.get() + fresh * mean);
                let moving = moving_variances.cells().get(at)?;
                moving.set(op.momentum * moving.get() + fresh * (variance * unbiased));
            }
            c = c.wrapping_add(count);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Statistics {}

impl Kernel for Grad {
    type Op = BatchNormGradF32;

    fn needs(op: &BatchNormGradF32) -> Needs {
        Needs {
            scratch: op.channels.saturating_mul(12),
            weights: 0,
        }
    }

    /// All sums come first; then each element of the gradient is read before it is written.
    fn distance(_: &BatchNormGradF32, index: usize) -> Option<i64> {
        (index == 3).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &BatchNormGradF32, mem: &Mem<'_>) -> Option<()> {
        let all = product(op.rows, op.channels)?;
        let output = mem.dst::<f32>(op.output, all)?;
        let gradient = mem.src::<f32>(op.gradient, all)?;
        let input = mem.src::<f32>(op.input, all)?;
        let gain = mem.src::<f32>(op.gain, op.channels)?;
        let mean = mem.src::<f32>(op.mean, op.channels)?;
        let variance = mem.src::<f32>(op.variance, op.channels)?;
        let dgain = mem.dst::<f32>(op.gain_gradient, op.channels)?;
        let dshift = mem.dst::<f32>(op.shift_gradient, op.channels)?;
        // Of each channel: the factor of all, the mean of the gradient, and the factor of what the input is beside its mean.
        let terms = mem.dst::<f32>(op.scratch, product(op.channels, 3)?)?;
        let (channels, share) = (op.channels as usize, 1.0 / op.rows.max(1) as f32);
        let mut c = 0usize;
        while c < channels {
            let count = if channels.wrapping_sub(c) >= LANES { LANES } else { 1 };
            let (mut sums, mut products) = ([0.0; LANES], [0.0; LANES]);
            let (dy, x, mean) = (gradient.tail(c)?, input.tail(c)?, mean.tail(c)?);
            if count == LANES {
                back::<LANES>([dy, x], channels, mean, &mut sums, &mut products)?;
            } else {
                back::<1>([dy, x], channels, mean, &mut sums, &mut products)?;
            }
            for (at, (sum, product)) in (c..).zip(sums.into_iter().zip(products)).take(count) {
                let inverse = 1.0 / libm::sqrtf(variance.get(at)? + op.epsilon);
                let of_gain = product * inverse;
                dshift.set(at, sum)?;
                dgain.set(at, of_gain)?;
                let own = terms.slice(at.wrapping_mul(3), 3)?;
                own.set(0, gain.get(at)? * inverse)?;
                own.set(1, sum * share)?;
                own.set(2, of_gain * share * inverse)?;
            }
            c = c.wrapping_add(count);
        }
        for r in 0..op.rows as usize {
            let (x, dy) = (row(input, r, channels)?, row(gradient, r, channels)?);
            let dx = output.slice(r.wrapping_mul(channels), channels)?;
            let parameters = mean.iter().zip(terms.cells().chunks_exact(3));
            let elements = dx.cells().iter().zip(dy.iter()).zip(x.iter());
            for (((dx, dy), x), (mean, terms)) in elements.zip(parameters) {
                let [factor, level, slope] = terms else { return None };
                dx.set(factor.get() * (dy - level.get() - (x - mean) * slope.get()));
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Grad {}

/// Terms of a sum that is a term itself.
const ROW: usize = 32;

/// Mean and variance of `N` neighbouring channels.
#[inline(always)]
fn batch<const N: usize>(
    input: Src<'_, f32>,
    stride: usize,
    share: f32,
    means: &mut [f32; LANES],
    variances: &mut [f32; LANES],
) -> Option<()> {
    let mean = sums::<N>(input, stride, |_, x| x)?.map(|sum| sum * share);
    let squares = sums::<N>(input, stride, |lane, x| {
        let beside = x - mean.get(lane).copied().unwrap_or(0.0);
        beside * beside
    })?;
    means.iter_mut().zip(mean).for_each(|(to, mean)| *to = mean);
    variances
        .iter_mut()
        .zip(squares)
        .for_each(|(to, sum)| *to = sum * share);
    Some(())
}

/// Sums of the gradient, and of its products with what the input is beside its mean, of `N` neighbouring channels.
#[inline(always)]
fn back<const N: usize>(
    [gradient, input]: [Src<'_, f32>; 2],
    stride: usize,
    mean: Src<'_, f32>,
    of_gradient: &mut [f32; LANES],
    of_products: &mut [f32; LANES],
) -> Option<()> {
    let mut from = 0usize;
    let rows = gradient.len().div_ceil(stride);
    while from < rows {
        let end = rows.min(from.wrapping_add(ROW));
        let (mut part, mut part_of_products) = ([0.0f32; N], [0.0f32; N]);
        for r in from..end {
            let at = r.wrapping_mul(stride);
            let (dy, x) = (gradient.slice(at, N)?, input.slice(at, N)?);
            let lanes = part.iter_mut().zip(&mut part_of_products);
            for (((sum, product), (dy, x)), mean) in lanes.zip(dy.iter().zip(x.iter())).zip(mean.iter()) {
                *sum += dy;
                *product += dy * (x - mean);
            }
        }
        of_gradient.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        of_products
            .iter_mut()
            .zip(part_of_products)
            .for_each(|(sum, part)| *sum += part);
        from = end;
    }
    Some(())
}

/// Sums over the rows of `N` neighbouring channels.
#[inline(always)]
fn sums<const N: usize>(input: Src<'_, f32>, stride: usize, term: impl Fn(usize, f32) -> f32) -> Option<[f32; N]> {
    let (mut sums, mut from) = ([0.0f32; N], 0usize);
    let rows = input.len().div_ceil(stride);
    while from < rows {
        let end = rows.min(from.wrapping_add(ROW));
        let mut part = [0.0f32; N];
        for r in from..end {
            let x = input.slice(r.wrapping_mul(stride), N)?;
            part.iter_mut()
                .zip(x.iter())
                .enumerate()
                .for_each(|(lane, (sum, x))| *sum += term(lane, x));
        }
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        from = end;
    }
    Some(sums)
}
