//! Signal operators of one frame: [`crate::ops::signal`].

use super::{at, constant, read, written};
use crate::arena::Mem;
use crate::ops::signal::{
    GAIN_TABLE, LOG_TABLE, SignalAutoScale, SignalEnergy, SignalFilterBank, SignalLog, SignalPcan, SignalSquareRoot,
    SignalSubtraction, SignalWindow,
};

pub(crate) fn window(op: &SignalWindow, mem: &Mem<'_>) -> Option<()> {
    let (count, size) = (op.count as usize, op.size as usize);
    let (input, output) = (
        read::<i16>(mem, op.input, count)?,
        written::<i16>(mem, op.output, count)?,
    );
    let window = read::<i16>(mem, op.window, size)?;
    for i in 0..count {
        let product = i64::from(input.get(i)?) * i64::from(window.get(i.checked_rem(size)?)?);
        output.set(i, (product >> op.shift).clamp(-32768, 32767) as i16)?;
    }
    Some(())
}

pub(crate) fn auto_scale(op: &SignalAutoScale, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<i16>(mem, op.input, count)?,
        written::<i16>(mem, op.output, count)?,
    );
    // The magnitude of -32768 wraps: whatever comes behind it is the largest again.
    let mut largest = 0_i16;
    for i in 0..count {
        let magnitude = i32::from(input.get(i)?).abs();
        if magnitude > i32::from(largest) {
            largest = magnitude as i16;
        }
    }
    let mut bits = 0;
    while largest > 0 && i32::from(largest) << (bits + 1) <= 32767 {
        bits += 1;
    }
    for i in 0..count {
        output.set(i, (i32::from(input.get(i)?) << bits) as i16)?;
    }
    written::<i32>(mem, op.bits, 1)?.set(0, bits)
}

pub(crate) fn energy(op: &SignalEnergy, mem: &Mem<'_>) -> Option<()> {
    let bins = op.bins as usize;
    let (input, output) = (
        read::<i16>(mem, op.input, bins * 2)?,
        written::<u32>(mem, op.output, bins)?,
    );
    for bin in 0..bins {
        let [re, im] = [input.get(at([bins, 2], [bin, 0]))?, input.get(at([bins, 2], [bin, 1]))?].map(i64::from);
        let is_wanted = op.start as usize <= bin && bin < op.end as usize;
        output.set(bin, if is_wanted { (re * re + im * im) as u32 } else { 0 })?;
    }
    Some(())
}

pub(crate) fn filter_bank(op: &SignalFilterBank, mem: &Mem<'_>) -> Option<()> {
    let (bins, channels) = (op.bins as usize, op.channels as usize);
    let (input, output) = (
        read::<u32>(mem, op.input, bins)?,
        written::<i64>(mem, op.output, channels)?,
    );
    let bands = constant::<u16>(mem, op.bands, (channels + 1) * 2)?;
    let weights = constant::<i16>(mem, op.weights, op.taps as usize * 2)?;
    let band = |number: usize, field: usize| bands.get(at([channels + 1, 2], [number, field])).copied();
    // The sum of band `number` with each bin's first or second weight.
    let sum = |number: usize, of: usize| {
        let mut tap = 0;
        for before in 0..number {
            tap += usize::from(band(before, 1)?);
        }
        let mut sum = 0_u64;
        for bin in 0..usize::from(band(number, 1)?) {
            let x = u64::from(input.get(usize::from(band(number, 0)?) + bin)?);
            let weight = i64::from(*weights.get(at([op.taps as usize, 2], [tap + bin, of]))?);
            sum = sum.wrapping_add(x.wrapping_mul(weight as u64));
        }
        Some(sum)
    };
    for channel in 0..channels {
        output.set(channel, sum(channel, 1)?.wrapping_add(sum(channel + 1, 0)?) as i64)?;
    }
    Some(())
}

pub(crate) fn square_root(op: &SignalSquareRoot, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<i64>(mem, op.input, count)?,
        written::<u32>(mem, op.output, count)?,
    );
    let bits = read::<i32>(mem, op.bits, 1)?.get(0)? as u32 % 32;
    for i in 0..count {
        let x = input.get(i)? as u64;
        // The largest whole number whose square is not above x, bit by bit.
        let mut root = 0_u64;
        for bit in (0..32).rev() {
            let next = root | 1 << bit;
            if next * next <= x {
                root = next;
            }
        }
        let most = if x <= u32::MAX.into() {
            0xffff
        } else {
            u64::from(u32::MAX)
        };
        if x - root * root > root {
            root = (root + 1).min(most);
        }
        output.set(i, root as u32 >> bits)?;
    }
    Some(())
}

pub(crate) fn subtraction(op: &SignalSubtraction, mem: &Mem<'_>) -> Option<()> {
    let (count, constants) = (op.count as usize, &op.constants);
    let (input, output) = (
        read::<u32>(mem, op.input, count)?,
        written::<u32>(mem, op.output, count)?,
    );
    let (noise, state) = (
        written::<u32>(mem, op.noise, count)?,
        written::<u32>(mem, op.state, count)?,
    );
    for i in 0..count {
        let x = input.get(i)?;
        let scaled = x.wrapping_shl(constants.smoothing_bits.into());
        let [of_new, of_old] =
            [constants.smoothing, constants.rest].map(|[even, odd]| u64::from(if i % 2 == 0 { even } else { odd }));
        let sum = (u64::from(scaled).wrapping_mul(of_new))
            .wrapping_add(u64::from(state.as_src().get(i)?).wrapping_mul(of_old));
        let estimate = (sum >> constants.bits) as u32;
        let kept = if constants.clamping {
            estimate.min(scaled)
        } else {
            estimate
        };
        state.set(i, kept)?;
        noise.set(i, kept)?;
        let rest = (scaled - estimate.min(scaled)) >> constants.smoothing_bits;
        let floor = (u64::from(x).wrapping_mul(constants.floor.into()) >> constants.bits) as u32;
        output.set(i, rest.max(floor))?;
    }
    Some(())
}

pub(crate) fn pcan(op: &SignalPcan, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<u32>(mem, op.input, count)?,
        written::<u32>(mem, op.output, count)?,
    );
    let noise = read::<u32>(mem, op.noise, count)?;
    let table = constant::<i16>(mem, op.table, GAIN_TABLE as usize)?;
    for i in 0..count {
        let noise = noise.get(i)?;
        let gain = match noise {
            0..=2 => *table.get(noise as usize)?,
            _ => {
                // Three coefficients for each number of bits from 2 on, of four words each; those behind the first bit, ten of them, are the argument.
                let bits = 32 - noise.leading_zeros() as usize;
                let part = ((u64::from(noise) << 10 >> (bits - 1)) & 0x3ff) as i32;
                let of = |field: usize| table.get(3 + (bits - 2) * 4 - 1 + field).copied().map(i32::from);
                let slope = (of(2)?.wrapping_mul(part) >> 5).wrapping_add(of(1)? << 5);
                let rise = slope.wrapping_mul(part).wrapping_add(1 << 14) >> 15;
                rise.wrapping_add(of(0)?) as i16
            }
        };
        let gain = i64::from(gain) as u32;
        let ratio = (u64::from(input.get(i)?).wrapping_mul(gain.into()) >> op.shift) as u32;
        // Of 12 fractional bits into 6: x^2 / 4 below 2, x - 1 beyond.
        output.set(
            i,
            if ratio < 2 << 12 {
                ((u64::from(ratio) * u64::from(ratio)) >> 20) as u32
            } else {
                (ratio >> 6) - (1 << 6)
            },
        )?;
    }
    Some(())
}

pub(crate) fn log(op: &SignalLog, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<u32>(mem, op.input, count)?,
        written::<i16>(mem, op.output, count)?,
    );
    let table = constant::<u16>(mem, op.table, LOG_TABLE as usize)?;
    for i in 0..count {
        let x = input.get(i)?.wrapping_shl(op.correction.into());
        if x < 2 {
            output.set(i, 0)?;
            continue;
        }
        let whole = 31 - x.leading_zeros();
        // 16 bits behind the first: seven choose a segment, nine lie in it.
        let part = ((u64::from(x) << 16) >> whole) & 0xffff;
        let of = |segment: u64| table.get(segment as usize).copied().map(i64::from);
        let (from, to) = (of(part >> 9)?, of((part >> 9) + 1)?);
        // By 2^16 where a segment has 2^9: so it is in TensorFlow Lite Micro.
        let between = ((to - from) as i32).wrapping_mul((part & 0x1ff) as i32) >> 16;
        let log2 = (u64::from(whole) << 16).wrapping_add((part as i64 + from + i64::from(between)) as u64) as u32;
        // ln 2 with 16 fractional bits.
        let natural = ((45_426 * u64::from(log2) + 0x8000) >> 16) as u32;
        let scaled = op.scale.wrapping_mul(natural).wrapping_add(0x8000) >> 16;
        output.set(i, scaled.min(32767) as i16)?;
    }
    Some(())
}
