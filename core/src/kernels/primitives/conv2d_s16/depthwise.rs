//! Depthwise int16 convolutions: all channels of an output pixel at a time, whose places are checked once, where 32 bits hold every sum.

use super::Channels;
use crate::cells::{Dst, Src};
use crate::kernels::primitives::dot_s16::Taps;

/// Channels whose sums are in registers at a time.
const BLOCK: usize = if cfg!(kernel_isa = "armv6m") { 2 } else { 4 };

/// Neighbouring output pixels with the same taps, `multiplier` output channels of each input channel. The first one's first input and weight are `start` and
/// `first`, each pixel's input begins `step` elements behind the last one's. For sums of [`Channels::are_short`]. `None` where something is out of range.
#[inline(never)]
pub(crate) fn run(
    x: Src<'_, i16>,
    [start, step]: [usize; 2],
    channels: &Channels<'_>,
    multiplier: usize,
    first: usize,
    taps: &Taps,
    y: Dst<'_, i16>,
) -> Option<()> {
    let ([rows, columns], count) = (taps.count, channels.bias.len());
    let inputs = count.checked_div(multiplier)?;
    let ([row, column], [weights_row, filter]) = (taps.steps, taps.weights_steps);
    let pixels = y.cells().len().checked_div(count)?;
    let reach = |count: usize, step: usize| count.saturating_sub(1).checked_mul(step);
    let last = start
        .checked_add(reach(pixels, step)?)?
        .checked_add(reach(rows, row)?)?
        .checked_add(reach(columns, column)?)?;
    let last_weight = first.checked_add(reach(rows, weights_row)?)?.checked_add(columns)?;
    if last.checked_add(inputs)? > x.len()
        || !count.is_multiple_of(multiplier)
        || last_weight.checked_add(reach(count, filter)?)? > channels.weights.len()
        || count > channels.records.len()
    {
        return None;
    }
    let mut from = x.as_ptr().wrapping_add(start);
    let weights = channels.weights.as_ptr().wrapping_add(first);
    #[cfg(kernel_isa = "mve")]
    if count >= helium::LANES
        && multiplier <= helium::MOST
        && filter <= helium::LARGEST
        && rows > 0
        && columns > 0
        && pixels > 0
    {
        let [low, high] = channels.clamp;
        let args = helium::DepthwiseS16Args {
            x: from,
            weights,
            y: y.as_mut_ptr(),
            count,
            rows,
            columns,
            column: column.wrapping_mul(2),
            skip: row.wrapping_sub(columns.wrapping_mul(column)).wrapping_mul(2),
            weights_skip: weights_row.wrapping_sub(columns),
            filter,
            records: channels.records.as_ptr(),
            bias: channels.bias.as_ptr(),
            low: low.into(),
            high: high.into(),
            pixels,
            step: step.wrapping_mul(2),
            multiplier,
            reciprocal: 0x1_0000_usize.div_ceil(multiplier),
        };
        // SAFETY: all taps of all channels lie inside, and there are constants and an output for each, as just checked.
        unsafe { helium::run(&args) };
        return Some(());
    }
    let under = Under {
        rows,
        columns,
        column: column.wrapping_mul(2),
        skip: row.wrapping_sub(columns.wrapping_mul(column)).wrapping_mul(2),
        weights_skip: weights_row.wrapping_sub(columns),
        filter: filter.wrapping_mul(multiplier),
    };
    let mut y = y.as_mut_ptr();
    for _ in 0..pixels {
        // SAFETY: taps, weights, records and outputs of all channels of all pixels lie inside, as just checked. The constant step of 1 is for the compiler.
        unsafe {
            if multiplier == 1 {
                plain(from, weights, channels, [0, 1], &under, y);
            } else {
                depth_multiplier(from, weights, channels, multiplier, &under, y);
            }
        }
        from = from.wrapping_add(step);
        y = y.wrapping_add(count);
    }
    Some(())
}

/// The taps under a pixel's window.
#[repr(C)]
struct Under {
    rows: usize,
    columns: usize,
    /// Bytes from a column to the next in the input.
    column: usize,
    /// Bytes from the end of a row to the next in the input.
    skip: usize,
    /// The same in the weights.
    weights_skip: usize,
    /// From a channel's weights to those of the next one that is looked at.
    filter: usize,
}

/// A pixel with `multiplier` output channels of each input channel: every `multiplier`-th one is of the next input channel.
///
/// # Safety
/// As for [`plain`], for all channels.
#[inline(never)]
unsafe fn depth_multiplier(
    x: *const i16,
    weights: *const i8,
    channels: &Channels<'_>,
    multiplier: usize,
    under: &Under,
    y: *mut i16,
) {
    let filter = under.filter.wrapping_div(multiplier);
    for first in 0..multiplier {
        let weights = weights.wrapping_add(filter.wrapping_mul(first));
        // SAFETY: `first < multiplier`, and the contract guarantees taps, records and outputs of all channels, those `multiplier` apart among them.
        unsafe { plain(x, weights, channels, [first, multiplier], under, y) };
    }
}

/// The channels from `first` on, `step` apart.
///
/// # Safety
/// The taps of these channels lie in the memory at `x` and `weights`; there is a record and an output of each channel.
#[inline(always)]
unsafe fn plain(
    x: *const i16,
    weights: *const i8,
    channels: &Channels<'_>,
    [first, step]: [usize; 2],
    under: &Under,
    y: *mut i16,
) {
    let (mut x, mut w, mut y) = (x, weights, y.wrapping_add(first));
    let mut bias = channels.bias.as_ptr().wrapping_add(first);
    let mut records = channels.records.as_ptr().wrapping_add(first);
    let mut left = channels.bias.len().wrapping_div(step);
    // SAFETY: `left` channels, `step` apart, remain; each has its taps, record and output (fn docs), and its bias in the slice `channels.bias`.
    unsafe {
        let mut finish = |sum: i32| {
            y.write(channels.short(sum, records.read()));
            (y, records) = (y.wrapping_add(step), records.wrapping_add(step));
        };
        let mut next_bias = || {
            let found = bias.read() as i32;
            bias = bias.wrapping_add(step);
            found
        };
        while left >= BLOCK {
            let mut sums = [0; BLOCK].map(|_| next_bias());
            block_of_many(x, w, under, &mut sums);
            for sum in sums {
                finish(sum);
            }
            x = x.wrapping_add(BLOCK);
            w = w.wrapping_add(under.filter.wrapping_mul(BLOCK));
            left -= BLOCK;
        }
        while left > 0 {
            finish(one(x, w, under).wrapping_add(next_bias()));
            x = x.wrapping_add(1);
            w = w.wrapping_add(under.filter);
            left -= 1;
        }
    }
}

/// The sum of one channel.
///
/// # Safety
/// The taps of the channel lie in the memory at `x` and `weights`.
#[inline(never)]
unsafe fn one(x: *const i16, weights: *const i8, under: &Under) -> i32 {
    let mut sum = [0];
    // SAFETY: the block is the one channel whose taps this function's contract guarantees.
    unsafe { block(x, weights, under, &mut sum) };
    let [sum] = sum;
    sum
}

/// Adds the products of neighbouring channels to their sums.
///
/// # Safety
/// The taps of `N` channels lie in the memory at `x` and `weights`.
#[inline(always)]
unsafe fn block<const N: usize>(x: *const i16, weights: *const i8, under: &Under, sums: &mut [i32; N]) {
    let (mut x, mut w, mut found) = (x, weights, *sums);
    for _ in 0..under.rows {
        let end = w.wrapping_add(under.columns);
        while w < end {
            for (channel, sum) in found.iter_mut().enumerate() {
                // SAFETY: tap `w` of channel `channel < N`, and its input; this function's contract guarantees the taps of `N` channels.
                let (x, w) = unsafe {
                    (
                        x.add(channel).read(),
                        w.wrapping_add(channel.wrapping_mul(under.filter)).read(),
                    )
                };
                *sum = sum.wrapping_add(i32::from(x).wrapping_mul(i32::from(w)));
            }
            w = w.wrapping_add(1);
            x = x.wrapping_byte_add(under.column);
        }
        x = x.wrapping_byte_add(under.skip);
        w = w.wrapping_add(under.weights_skip);
    }
    *sums = found;
}

/// [`block`], a function by itself: otherwise the loop would have no registers left.
///
/// # Safety
/// As for [`block`].
#[cfg(not(kernel_isa = "armv7m"))]
#[inline(never)]
unsafe fn block_of_many(x: *const i16, weights: *const i8, under: &Under, sums: &mut [i32; BLOCK]) {
    // SAFETY: this function's contract guarantees the taps of `BLOCK` channels, as `block` requires.
    unsafe { block(x, weights, under, sums) };
}

/// The same: compilers keep few of the sums in registers.
///
/// # Safety
/// As for [`block`].
#[cfg(kernel_isa = "armv7m")]
#[inline(always)]
unsafe fn block_of_many(x: *const i16, weights: *const i8, under: &Under, sums: &mut [i32; BLOCK]) {
    if under.rows > 0 && under.columns > 0 {
        // SAFETY: rows and columns are not 0, and this function's contract guarantees the taps of `BLOCK` channels.
        unsafe { mainline::four(x, weights, under, sums) };
    }
}

#[cfg(kernel_isa = "armv7m")]
mod mainline {
    use super::Under;

    // The last two are loaded at once.
    consecutive!(Under: skip, weights_skip);

    frame! {
        /// The top of the stack: where the sums go.
        Pushed { to }
    }

    /// Defines the sums of four neighbouring channels; `x`: how the inputs of the last two and the first two are loaded, `mla`: how those with an even and an
    /// odd place multiply and add.
    macro_rules! four {
        ($cpu:literal, $third:literal, $fourth:literal, $first:literal, $second:literal, $even:literal, $odd:literal; $($operand:tt)*) => {
            /// Thirteen instructions a tap with the DSP extension, else fifteen. There is a tap.
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn four(x: *const i16, weights: *const i8, under: &Under, sums: &mut [i32; 4]) {
                naked!(Under { rows, columns, column, skip, filter }, Pushed { to } => concat!(
                    ".cpu ", $cpu, "\n push {{r3-r11, lr}}\n ldr r12, [r2, #{rows}]\n ldr r6, [r2, #{column}]\n ldr r4, [r2, #{filter}]\n",
                    "add r5, r4, r4, lsl #1\n ldm r3, {{r8-r11}}\n",
                    "1: ldr r7, [r2, #{columns}]\n",
                    "2: ", $third, " r3, [r0, #{third}]\n ldrsb lr, [r1, r4, lsl #1]\n ", $even, " r10, r3, lr, r10\n",
                    $fourth, "ldrsb lr, [r1, r5]\n ", $odd, " r11, r3, lr, r11\n",
                    $second, "ldrsb lr, [r1, r4]\n ", $odd, " r9, r3, lr, r9\n",
                    $first, "ldrsb lr, [r1], #1\n ", $even, " r8, r3, lr, r8\n",
                    "add r0, r6\n subs r7, #1\n bne 2b\n",
                    "ldrd r3, lr, [r2, #{skip}]\n add r0, r3\n add r1, lr\n subs r12, #1\n bne 1b\n",
                    "ldr r3, [sp, #{to}]\n stm r3, {{r8-r11}}\n pop {{r3-r11, pc}}\n",
                );
                third = const size_of::<[i16; 2]>(), $($operand)*)
            }
        };
    }

    #[cfg(kernel_isa = "dsp")]
    four!("cortex-m33", "ldr", "", "", "ldr r3, [r0]\n", "smlabb", "smlatb";);
    #[cfg(not(kernel_isa = "dsp"))]
    four!(
        "cortex-m3", "ldrsh", "ldrsh r3, [r0, #{fourth}]\n", "ldrsh r3, [r0]\n", "ldrsh r3, [r0, #{second}]\n", "mla", "mla";
        second = const size_of::<i16>(), fourth = const size_of::<[i16; 3]>(),
    );
}

#[cfg(kernel_isa = "mve")]
mod helium {
    /// Channels at a time.
    pub(super) const LANES: usize = 8;

    /// Weights of a channel: seven times as many are an offset of 16 bits.
    pub(super) const LARGEST: usize = 9000;

    /// Output channels of an input channel: numbers below `MOST + 8` are divided exactly by a factor of 16 bits.
    pub(super) const MOST: usize = 200;

    #[repr(C)]
    pub(super) struct DepthwiseS16Args {
        pub(super) x: *const i16,
        pub(super) weights: *const i8,
        pub(super) y: *mut i16,
        /// Channels, at least [`LANES`].
        pub(super) count: usize,
        /// Of taps, not 0.
        pub(super) rows: usize,
        /// Of taps, not 0.
        pub(super) columns: usize,
        /// Bytes from a column to the next.
        pub(super) column: usize,
        /// Bytes from the end of a row to the next.
        pub(super) skip: usize,
        /// The same in the weights.
        pub(super) weights_skip: usize,
        /// Weights of a channel.
        pub(super) filter: usize,
        pub(super) records: *const [i32; 2],
        pub(super) bias: *const i64,
        pub(super) low: i32,
        pub(super) high: i32,
        /// Not 0.
        pub(super) pixels: usize,
        /// Bytes from a pixel's input to the next one's.
        pub(super) step: usize,
        /// Output channels of an input channel, not 0.
        pub(super) multiplier: usize,
        /// 2^16 divided by it, rounded up.
        pub(super) reciprocal: usize,
    }

    // Loaded at once.
    consecutive!(DepthwiseS16Args: columns, column, skip, weights_skip);
    consecutive!(DepthwiseS16Args: records, bias, low, high);

    /// The stack: where a pixel's input begins, the pixels left, registers, and the arguments.
    #[allow(dead_code, reason = "the assembly names its words")]
    #[repr(C)]
    struct Frame {
        from: *const i16,
        left: usize,
        vectors: [u64; 8],
        args: *const DepthwiseS16Args,
    }
    consecutive!(Frame: from, left);

    /// The taps of a block, of which `$load` has the inputs; `$odd`: where the products of odd places go.
    macro_rules! taps {
        ($load:literal, $odd:literal, $row:literal, $tap:literal) => {
            concat!(
                $row,
                ": dls lr, r7\n",
                $tap,
                ": vldrh.u16 q0, [r0",
                $load,
                "]\n add r0, r8\n vldrb.s16 q1, [r1, q7]\n adds r1, #1\n",
                "vmullb.s16 q2, q0, q1\n vadd.i32 q4, q4, q2\n vmullt.s16 ",
                $odd,
                ", q0, q1\n vadd.i32 q5, q5, ",
                $odd,
                "\n le lr, ",
                $tap,
                "b\n",
                "add r0, r9\n add r1, r10\n subs r6, #1\n bne ",
                $row,
                "b\n",
            )
        };
    }

    /// Eight channels at a time, nine instructions a tap; the last eight again where there are no eight left. Sums of channels with an even place are in q4,
    /// the others in q5: so are their constants, gathered.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn run(args: *const DepthwiseS16Args) {
        naked!(
            DepthwiseS16Args { x, weights, y, count, rows, columns, filter, records, low, pixels, step, multiplier, reciprocal },
            Frame { from, args } =>
            ".cpu cortex-m55",
            "push {{r0, r4-r11, lr}}",
            "vpush {{d8-d15}}",
            "add r12, r0, #{columns}",
            "ldm r12, {{r7-r10}}",
            // From records to biases.
            "ldrd r1, r12, [r0, #{records}]", // and bias
            "sub r12, r1",
            // r4: x, r5: weights, r3: y, r2: channels left; r11: rows, r7: columns, r8: column, r9 and r10: skips.
            "ldr r1, [r0, #{pixels}]",
            "ldr r3, [r0, #{y}]",
            "ldr r4, [r0, #{filter}]",
            "movs r6, #0",
            // q7: offsets of the channels' weights.
            "vidup.u16 q7, r6, #1",
            "vmul.i16 q7, q7, r4",
            "ldr r4, [r0, #{x}]",
            "ldr r11, [r0, #{rows}]",
            "sub sp, #8",
            "strd r4, r1, [sp, #{from}]", // and left
            "0: ldr r5, [r0, #{weights}]",
            "ldr r2, [r0, #{count}]",
            // q6: records of the even places.
            "ldr r0, [r0, #{records}]",
            "movs r6, #0",
            "vidup.u32 q6, r6, #8",
            "vadd.i32 q6, q6, q6",
            "vadd.i32 q6, q6, r0",
            // The block's first input channel and the number of its outputs that lie before the block; q3: the channels' inputs from there on.
            "1: ldr r6, [sp, #{args}]",
            "ldr r0, [r6, #{count}]",
            "ldr r1, [r6, #{multiplier}]",
            "sub r0, r2",
            "udiv lr, r0, r1",
            "vmov.i32 q4, #0",
            "vmov.i32 q5, #0",
            "cmp r1, #1",
            "beq 2f",
            "mls r0, lr, r1, r0",
            "ldr r6, [r6, #{reciprocal}]",
            "vidup.u16 q3, r0, #1",
            "vdup.16 q2, r6",
            "add r0, r4, lr, lsl #1",
            "mov r6, r11",
            "mov r1, r5",
            "vmulh.u16 q3, q3, q2",
            taps!(", q3, uxtw #1", "q2", "6", "7"),
            "b 8f",
            "2: add r0, r4, lr, lsl #1",
            "mov r6, r11",
            "mov r1, r5",
            taps!("", "q3", "3", "9"),
            "8:",
            "vadd.i32 q0, q6, r12",
            "ldr r6, [sp, #{args}]",
            "vldrw.u32 q1, [q0]",
            "movs r0, #17",
            "vldrw.u32 q2, [q0, #{next_bias}]",
            "vadd.i32 q4, q4, q1",
            "vldrw.u32 q0, [q6]",
            "vadd.i32 q5, q5, q2",
            "vldrw.u32 q1, [q6, #{shift}]",
            // The mantissa's high half, rounded and saturated; its factor for a product's high word.
            "vqrshrnb.s32 q0, q0, #16",
            "vldrw.u32 q2, [q6, #{next}]",
            "vadd.i32 q1, q1, r0",
            "vqrshrnt.s32 q0, q2, #16",
            "vldrw.u32 q3, [q6, #{next_shift}]",
            "vmovlb.s16 q2, q0",
            "vadd.i32 q3, q3, r0",
            "vmovlt.s16 q0, q0",
            "vshl.s32 q2, q2, q1",
            "ldrd r0, r1, [r6, #{low}]", // and high
            "vshl.s32 q0, q0, q3",
            "vrmulh.s32 q4, q4, q2",
            "vdup.16 q1, r0",
            "vrmulh.s32 q5, q5, q0",
            "vqmovnb.s32 q4, q4",
            "vdup.16 q2, r1",
            "vqmovnt.s32 q4, q5",
            "ldr r1, [r6, #{filter}]",
            "vmax.s16 q4, q4, q1",
            "subs r2, #8",
            "vmin.s16 q4, q4, q2",
            "vstrh.16 q4, [r3], #16",
            "beq 4f",
            "cmp r2, #8",
            "blo 5f",
            "add r5, r5, r1, lsl #3",
            "movs r0, #64",
            "vadd.i32 q6, q6, r0",
            "b 1b",
            // As many channels back as there are fewer than eight.
            "5: add r3, r3, r2, lsl #1",
            "subs r3, #16",
            "mla r5, r2, r1, r5",
            "lsls r0, r2, #3",
            "vadd.i32 q6, q6, r0",
            "movs r2, #8",
            "b 1b",
            "4: ldrd r4, r1, [sp, #{from}]", // and left
            "ldr r0, [sp, #{args}]",
            "ldr r2, [r0, #{step}]",
            "add r4, r2",
            "subs r1, #1",
            "strd r4, r1, [sp, #{from}]", // and left
            "bne 0b",
            "add sp, #8",
            "vpop {{d8-d15}}",
            "pop {{r0, r4-r11, pc}}";
            // A record is a mantissa and a shift.
            shift = const size_of::<i32>(),
            next = const size_of::<[i32; 2]>(),
            next_shift = const size_of::<[i32; 3]>(),
            next_bias = const size_of::<i64>(),
        )
    }
}
