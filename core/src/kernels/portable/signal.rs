//! Signal operators of one frame, straight from the formulas.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::signal::{
    GAIN_TABLE, LOG_TABLE, SignalAutoScale, SignalEnergy, SignalFilterBank, SignalLog, SignalPcan, SignalSquareRoot,
    SignalSubtraction, SignalWindow,
};

/// int16 samples by an int16 window.
#[derive(Debug)]
pub struct Window;

/// int16 samples as large as they can be.
#[derive(Debug)]
pub struct AutoScale;

/// Squares of int16 pairs.
#[derive(Debug)]
pub struct Energy;

/// Sums of 64 bits.
#[derive(Debug)]
pub struct FilterBank;

/// Bit by bit.
#[derive(Debug)]
pub struct SquareRoot;

/// Noise by a low pass.
#[derive(Debug)]
pub struct SpectralSubtraction;

/// Gain by a table.
#[derive(Debug)]
pub struct Pcan;

/// By a table of segments.
#[derive(Debug)]
pub struct Log;

impl Kernel for Window {
    type Op = SignalWindow;

    fn distance(_: &SignalWindow, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalWindow, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (
            mem.src::<i16>(op.input, op.count)?,
            mem.dst::<i16>(op.output, op.count)?,
        );
        let window = mem.src::<i16>(op.window, op.size)?;
        let (size, shift) = (op.size as usize, u32::from(op.shift));
        for row in 0..op.count.checked_div(op.size)? as usize {
            let (x, y) = (input.slice(row * size, size)?, output.slice(row * size, size)?);
            for ((y, x), w) in y.cells().iter().zip(x.iter()).zip(window.iter()) {
                let product = (i32::from(x) * i32::from(w)).wrapping_shr(shift);
                y.set(product.clamp(-32768, 32767) as i16);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Window {}

impl Kernel for AutoScale {
    type Op = SignalAutoScale;

    fn distance(_: &SignalAutoScale, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalAutoScale, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (
            mem.src::<i16>(op.input, op.count)?,
            mem.dst::<i16>(op.output, op.count)?,
        );
        let bits = mem.dst::<i32>(op.bits, 1)?;
        // The magnitude of -32768 does not fit, and wraps: whatever comes behind it is the largest again, as in TensorFlow Lite Micro.
        let largest = input.iter().fold(0i16, |largest, x| {
            if x > largest {
                x
            } else if -i32::from(x) > i32::from(largest) {
                x.wrapping_neg()
            } else {
                largest
            }
        });
        let scale = match largest {
            1.. => largest.leading_zeros() - 1,
            _ => 0,
        };
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(x.wrapping_shl(scale));
        }
        bits.set(0, scale as i32)
    }
}

#[cfg(any(test, packing))]
impl Candidate for AutoScale {}

impl Kernel for Energy {
    type Op = SignalEnergy;

    fn distance(_: &SignalEnergy, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalEnergy, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<i16>(op.input, op.bins.checked_mul(2)?)?;
        let output = mem.dst::<u32>(op.output, op.bins)?;
        let (pairs, _) = input.chunks::<2>();
        let wanted = op.start as usize..op.end as usize;
        for (bin, y) in output.cells().iter().enumerate() {
            let [re, im] = pairs.get(bin)?.map(i32::from);
            let energy = (re * re).wrapping_add(im * im);
            y.set(if wanted.contains(&bin) { energy as u32 } else { 0 });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Energy {}

impl Kernel for FilterBank {
    type Op = SignalFilterBank;

    /// Bands say where to read.
    const TRUSTS: bool = true;

    fn trusts(op: &SignalFilterBank, weights: &[u8]) -> bool {
        let bands = Mem::of_weights(weights).weights::<u16>(op.bands, op.bands().saturating_mul(2));
        bands.is_some_and(|bands| {
            let (bands, _) = bands.as_chunks::<2>();
            let inside = |[first, bins]: &[u16; 2]| u32::from(*first) + u32::from(*bins) <= op.bins;
            let taps: u64 = bands.iter().map(|[_, bins]| u64::from(*bins)).sum();
            bands.iter().all(inside) && taps == u64::from(op.taps)
        })
    }

    fn run(op: &SignalFilterBank, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<u32>(op.input, op.bins)?;
        let output = mem.dst::<i64>(op.output, op.channels)?;
        let (bands, _) = mem
            .weights::<u16>(op.bands, op.bands().checked_mul(2)?)?
            .as_chunks::<2>();
        let (weights, _) = mem
            .weights::<i16>(op.weights, op.taps.checked_mul(2)?)?
            .as_chunks::<2>();
        let mut weights = weights.iter();
        let (mut sum, mut next) = (0u64, 0u64);
        let mut channels = output.cells().iter();
        for (band, [first, bins]) in bands.iter().enumerate() {
            let x = input.slice(usize::from(*first), usize::from(*bins))?;
            for x in x.iter() {
                let [own, other] = weights.next()?.map(|w| i64::from(w) as u64);
                sum = sum.wrapping_add(own.wrapping_mul(x.into()));
                next = next.wrapping_add(other.wrapping_mul(x.into()));
            }
            if band > 0 {
                channels.next()?.set(sum as i64);
            }
            (sum, next) = (next, 0);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for FilterBank {}

impl Kernel for SquareRoot {
    type Op = SignalSquareRoot;

    fn distance(_: &SignalSquareRoot, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalSquareRoot, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<i64>(op.input, op.count)?;
        let output = mem.dst::<u32>(op.output, op.count)?;
        let bits = mem.src::<i32>(op.bits, 1)?.get(0)? as u32;
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(square_root(x as u64).wrapping_shr(bits));
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for SquareRoot {}

/// The nearest root; below 2^32 at most 65535, beyond at most 2^32 - 1.
fn square_root(x: u64) -> u32 {
    let (root, left, most) = match u32::try_from(x) {
        // Half the words: a third of the time on cores of 32 bits.
        Ok(x) => {
            let (mut root, mut left) = (0u32, x);
            let mut bit = 1u32 << ((31 - (x | 1).leading_zeros()) / 2 * 2);
            while bit != 0 {
                let next = root.wrapping_add(bit);
                root >>= 1;
                if left >= next {
                    left = left.wrapping_sub(next);
                    root = root.wrapping_add(bit);
                }
                bit >>= 2;
            }
            (root, u64::from(left), 0xffff)
        }
        Err(_) => {
            let (mut root, mut left) = (0u64, x);
            let mut bit = 1u64 << ((63 - x.leading_zeros()) / 2 * 2);
            while bit != 0 {
                let next = root.wrapping_add(bit);
                root >>= 1;
                if left >= next {
                    left = left.wrapping_sub(next);
                    root = root.wrapping_add(bit);
                }
                bit >>= 2;
            }
            (root as u32, left, u32::MAX)
        }
    };
    if left > u64::from(root) && root != most {
        root.wrapping_add(1)
    } else {
        root
    }
}

impl Kernel for SpectralSubtraction {
    type Op = SignalSubtraction;

    fn distance(_: &SignalSubtraction, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalSubtraction, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (
            mem.src::<u32>(op.input, op.count)?,
            mem.dst::<u32>(op.output, op.count)?,
        );
        let (noise, state) = (mem.dst::<u32>(op.noise, op.count)?, mem.dst::<u32>(op.state, op.count)?);
        let constants = &op.constants;
        let (up, bits) = (u32::from(constants.smoothing_bits), u32::from(constants.bits));
        let [mut own, mut other] = [0, 1].map(|odd: usize| {
            let of = |factors: [u32; 2]| factors.get(odd).copied().map_or(0, u64::from);
            (of(constants.smoothing), of(constants.rest))
        });
        let cells = output.cells().iter().zip(noise.cells()).zip(state.cells());
        for (((y, noise), state), x) in cells.zip(input.iter()) {
            let scaled = x.wrapping_shl(up);
            let (smoothing, rest) = own;
            let sum =
                (u64::from(scaled).wrapping_mul(smoothing)).wrapping_add(u64::from(state.get()).wrapping_mul(rest));
            let estimate = sum.wrapping_shr(bits) as u32;
            let taken = estimate.min(scaled);
            let kept = if constants.clamping { taken } else { estimate };
            state.set(kept);
            noise.set(kept);
            let floor = u64::from(x).wrapping_mul(constants.floor.into()).wrapping_shr(bits) as u32;
            y.set(scaled.wrapping_sub(taken).wrapping_shr(up).max(floor));
            (own, other) = (other, own);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for SpectralSubtraction {}

/// Fractional bits of the ratio of signal and noise, and of the result.
const RATIO_BITS: u32 = 12;
const RESULT_BITS: u32 = 6;

impl Kernel for Pcan {
    type Op = SignalPcan;

    fn distance(_: &SignalPcan, index: usize) -> Option<i64> {
        matches!(index, 1 | 2).then_some(0)
    }

    fn run(op: &SignalPcan, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (
            mem.src::<u32>(op.input, op.count)?,
            mem.dst::<u32>(op.output, op.count)?,
        );
        let noise = mem.src::<u32>(op.noise, op.count)?;
        let table = mem.weights::<i16>(op.table, GAIN_TABLE)?;
        let shift = u32::from(op.shift);
        for ((y, x), noise) in output.cells().iter().zip(input.iter()).zip(noise.iter()) {
            let gain = i64::from(gain(noise, table)?) as u32;
            let ratio = u64::from(x).wrapping_mul(gain.into()).wrapping_shr(shift) as u32;
            // x^2 / 4 below 2, x - 1 beyond.
            y.set(if ratio < 2 << RATIO_BITS {
                ratio.wrapping_mul(ratio) >> (2 + 2 * RATIO_BITS - RESULT_BITS)
            } else {
                (ratio >> (RATIO_BITS - RESULT_BITS)).wrapping_sub(1 << RESULT_BITS)
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Pcan {}

/// The gain for a noise estimate: a parabola for each power of two.
fn gain(noise: u32, table: &[i16]) -> Option<i16> {
    if noise <= 2 {
        return table.get(noise as usize).copied();
    }
    let bits = 32 - noise.leading_zeros();
    let &[base, slope, bend, ..] = table.get((4 * bits).checked_sub(6)? as usize..)? else {
        return None;
    };
    // The ten bits behind the first.
    let aligned = if bits < 11 {
        noise << (11 - bits)
    } else {
        noise >> (bits - 11)
    };
    let part = (aligned & 0x3ff) as i32;
    let slope = (i32::from(bend).wrapping_mul(part) >> 5).wrapping_add(i32::from(slope) << 5);
    let rise = slope.wrapping_mul(part).wrapping_add(1 << 14) >> 15;
    Some(rise.wrapping_add(base.into()) as i16)
}

impl Kernel for Log {
    type Op = SignalLog;

    fn distance(_: &SignalLog, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SignalLog, mem: &Mem<'_>) -> Option<()> {
        let (input, output) = (
            mem.src::<u32>(op.input, op.count)?,
            mem.dst::<i16>(op.output, op.count)?,
        );
        let table = mem.weights::<u16>(op.table, LOG_TABLE)?;
        for (y, x) in output.cells().iter().zip(input.iter()) {
            let x = x.wrapping_shl(op.correction.into());
            let log = if x > 1 { logarithm(x, op.scale, table)? } else { 0 };
            y.set(log.min(32767) as i16);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Log {}

/// `ln(x) * scale` for x above 0, of a table of 128 segments.
fn logarithm(x: u32, scale: u32, table: &[u16]) -> Option<u32> {
    const LN_2: u64 = 45_426;
    let whole = 31 - x.leading_zeros();
    // 16 bits behind the first.
    let part = (if whole < 16 {
        x << (16 - whole)
    } else {
        x >> (whole - 16)
    }) & 0xffff;
    let segment = (part >> 9) as usize;
    let [from, to] = [segment, segment + 1].map(|at| table.get(at).copied().map(i32::from));
    // By 2^16 where a segment has 2^9: so it is in TensorFlow Lite Micro.
    let between = (to?.wrapping_sub(from?)).wrapping_mul((part & 0x1ff) as i32) >> 16;
    let fraction = part.wrapping_add_signed(from?).wrapping_add_signed(between);
    let log2 = (whole << 16).wrapping_add(fraction);
    let natural = ((LN_2 * u64::from(log2) + 0x8000) >> 16) as u32;
    Some(scale.wrapping_mul(natural).wrapping_add(0x8000) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_rounded_and_end_at_their_width() {
        for (x, root) in [
            (0, 0),
            (1, 1),
            (2, 1),
            (3, 2),
            (6, 2),
            (7, 3),
            (0xfffe_0001, 0xffff),
            (0xffff_ffff, 0xffff),
            (1 << 32, 0x1_0000),
            (u64::MAX, u32::MAX),
        ] {
            assert_eq!(square_root(x), root, "{x}");
        }
        let mut x = 3u64;
        while x < u64::MAX / 7 {
            let nearest = (x as f64).sqrt().round() as u64;
            let found = u64::from(square_root(x));
            // Quotients that f64 does not decide.
            assert!(
                found.abs_diff(nearest) <= 1 && (found.pow(2).abs_diff(x) <= found),
                "{x}: {found}"
            );
            x = x * 7 / 4 + 1;
        }
    }
}
