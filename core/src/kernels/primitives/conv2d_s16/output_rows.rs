//! int16 convolutions where 32 bits hold every sum: all channels of neighbouring output pixels at a time, whose places are checked once.

#[cfg(kernel_isa = "armv7m_gpr")]
use super::gathered;
use super::{Channels, WindowLines};
use crate::cells::{Dst, Src};
#[cfg(not(kernel_isa = "mve"))]
use crate::kernels::primitives::dot_s16;
#[cfg(kernel_isa = "armv7m_gpr")]
use crate::kernels::primitives::dot_s16::loops;

/// Channels that there are at least: Helium takes four at a time.
pub(crate) const LANES: usize = if cfg!(kernel_isa = "mve") { 4 } else { 1 };

/// Output pixels with the same lines, all in `y`, whose pixels have `pitch` elements. The first one's first input and weight are `start` and `first`, each
/// pixel's input begins `step` elements behind the last one's. For at least [`LANES`] channels, and sums of [`Channels::are_short`]. `None` where something
/// is out of range.
#[inline(never)]
pub(crate) fn run(
    x: Src<'_, i16>,
    [start, step]: [usize; 2],
    channels: &Channels<'_>,
    first: usize,
    lines: &WindowLines,
    y: Dst<'_, i16>,
    pitch: usize,
) -> Option<()> {
    let count = channels.bias.len();
    let len = y.cells().len();
    if count < LANES || count > channels.records.len() || len < count {
        return None;
    }
    let pixels = len.checked_sub(count)?.checked_div(pitch)?.checked_add(1)?;
    let filter = channels.weights.len().checked_div(count)?;
    let last = start.checked_add((pixels - 1).checked_mul(step)?)?;
    // Channels have `filter` weights each, so that a place in the first one's is one in all of them.
    let end = last.checked_add(lines.reach(lines.steps)?)?;
    let inside = end <= x.len() && first.checked_add(lines.reach(lines.weights_steps)?)? <= filter;
    if !inside || pitch < count {
        return None;
    }
    let ([rows, many], [row, line]) = (lines.count, lines.steps);
    let [weights_row, weights_line] = lines.weights_steps;
    #[cfg(kernel_isa = "armv7m_gpr")]
    if filter <= gathered::MOST {
        let records = channels.records.as_ptr();
        let [low, high] = channels.clamp.map(i32::from);
        let window = loops::GatheredWindowArgs {
            x: x.as_ptr(),
            bytes: 0,
            rest: 0,
            weights: channels.weights.as_ptr(),
            filter,
            records,
            to_bias: (channels.bias.as_ptr() as usize).wrapping_sub(records as usize),
            y: y.as_mut_ptr(),
            count,
            low,
            high,
        };
        // SAFETY: all lines of all channels lie inside, and there are constants and an output for each, as just checked.
        unsafe {
            gathered::run(
                x.as_ptr().wrapping_add(start),
                lines,
                first,
                pixels,
                [step, pitch],
                window,
            )
        };
        return Some(());
    }
    // A line's loads go on by whole vectors.
    let loaded = lines.len.next_multiple_of(8);
    let records = channels.records.as_ptr();
    let [low, high] = channels.clamp;
    let mut args = Conv2dS16Args {
        x: x.as_ptr().wrapping_add(start),
        filter,
        skip: line.wrapping_sub(loaded).wrapping_mul(2),
        weights_skip: weights_line.wrapping_sub(loaded),
        len: lines.len,
        lines: many,
        rows,
        row_skip: row.wrapping_sub(many.wrapping_mul(line)).wrapping_mul(2),
        weights_row_skip: weights_row.wrapping_sub(many.wrapping_mul(weights_line)),
        y: y.as_mut_ptr(),
        pixels,
        step: step.wrapping_mul(2),
        pitch: pitch.wrapping_mul(2),
        weights: channels.weights.as_ptr().wrapping_add(first),
        records,
        to_bias: (channels.bias.as_ptr() as usize).wrapping_sub(records as usize),
        count,
        low: low.into(),
        high: high.into(),
    };
    // Of two pixels, the second one's first outputs are written before all of the first one's input is read: an output in place of input that is consumed
    // may lie there.
    let (outputs, inputs) = (
        y.cells().as_ptr_range(),
        [start, end].map(|at| x.as_ptr().wrapping_add(at)),
    );
    let apart = outputs.end.addr() <= inputs[0].addr() || inputs[1].addr() <= outputs.start.addr();
    if !apart {
        args.pixels = 1;
    }
    for _ in (0..pixels).step_by(args.pixels.max(1)) {
        // SAFETY: all lines of all channels lie inside, and there are constants and an output for each, as just checked.
        unsafe { pixels_of(&args) };
        args.x = args.x.wrapping_byte_add(args.step);
        args.y = args.y.wrapping_byte_add(args.pitch);
    }
    Some(())
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Conv2dS16Args {
    x: *const i16,
    /// Weights of a channel.
    filter: usize,
    /// Bytes from behind a line's last vector to the next line in the input.
    skip: usize,
    /// The same in the weights.
    weights_skip: usize,
    len: usize,
    /// Of a row, not 0.
    lines: usize,
    /// Not 0.
    rows: usize,
    /// Bytes from behind a row's last line to the next row in the input.
    row_skip: usize,
    /// The same in the weights.
    weights_row_skip: usize,
    y: *mut i16,
    /// Not 0.
    pixels: usize,
    /// Bytes from a pixel's input to the next one's.
    step: usize,
    /// The same of its outputs.
    pitch: usize,
    weights: *const i8,
    records: *const [i32; 2],
    /// Bytes from the records to the biases, which are as large.
    to_bias: usize,
    /// Channels, at least [`LANES`].
    count: usize,
    low: i32,
    high: i32,
}

/// The stack: the arguments from its start on, and what is left of the block at work.
#[cfg(kernel_isa = "mve")]
#[allow(dead_code, reason = "the assembly names its words")]
#[repr(C)]
struct Frame {
    args: Conv2dS16Args,
    /// The block's weights.
    block: *const i8,
    /// Its first record.
    record: *const [i32; 2],
    /// Channels from there on.
    left: usize,
    rows_left: usize,
    /// The stack pointer stays at a multiple of eight.
    unused: usize,
}

#[cfg(kernel_isa = "mve")]
const _: () = assert!(core::mem::offset_of!(Frame, args) == 0 && size_of::<Frame>() == 96);
// Loaded and stored in pairs.
#[cfg(kernel_isa = "mve")]
consecutive!(Conv2dS16Args: x, filter, skip, weights_skip, len, lines);
#[cfg(kernel_isa = "mve")]
consecutive!(Conv2dS16Args: row_skip, weights_row_skip, y, pixels, step, pitch, weights, records);
#[cfg(kernel_isa = "mve")]
consecutive!(Conv2dS16Args: low, high);
#[cfg(kernel_isa = "mve")]
consecutive!(Frame: block, record);

/// Products of two channels and two pixels, eight elements in nine instructions, to lanes of q6 and q7. `$weights`: from r1, the block's first, and r3, a
/// channel's number of weights, to the two channels' in r1 and r3; `$bias`: where the block has their biases.
#[cfg(kernel_isa = "mve")]
macro_rules! two_by_two {
    ($weights:literal, $bias:literal, $low:literal, $high:literal, $again:literal) => {
        concat!(
            "ldrd r1, r0, [sp, #{block}]\n ldr r2, [sp, #{to_bias}]\n ldrd r9, r3, [sp, #{x}]\n ldr r11, [sp, #{step}]\n add r0, r2\n",
            $weights,
            "ldr r4, [r0, #",
            $bias,
            "]\n ldr r6, [r0, #{third_bias}+",
            $bias,
            "]\n mov r8, r4\n mov r10, r6\n add r11, r9\n",
            "ldrd r0, r2, [sp, #{skip}]\n ldrd r5, r7, [sp, #{len}]\n ldr r12, [sp, #{rows}]\n",
            $again,
            ": wlstp.16 lr, r5, 4f\n",
            "3: vldrh.u16 q0, [r9], #16\n vldrb.s16 q2, [r1], #8\n vmladava.s16 r4, q0, q2\n vldrh.u16 q1, [r11], #16\n vmladava.s16 r8, q1, q2\n",
            "vldrb.s16 q3, [r3], #8\n vmladava.s16 r6, q0, q3\n vmladava.s16 r10, q1, q3\n letp lr, 3b\n",
            "4: add r9, r0\n add r11, r0\n add r1, r2\n add r3, r2\n subs r7, #1\n bne ",
            $again,
            "b\n subs r12, #1\n beq 5f\n",
            "ldrd r0, r2, [sp, #{row_skip}]\n add r9, r0\n add r11, r0\n add r1, r2\n add r3, r2\n",
            "ldrd r0, r2, [sp, #{skip}]\n ldr r7, [sp, #{lines}]\n b ",
            $again,
            "b\n",
            "5: vmov q6[",
            $high,
            "], q6[",
            $low,
            "], r4, r6\n vmov q7[",
            $high,
            "], q7[",
            $low,
            "], r8, r10\n",
        )
    };
}

/// Four channels at a time of two pixels, or of the last one, eight elements in ten instructions; the last four again where there are no four left.
///
/// # Safety
/// Every address that the arguments give lies inside a slice.
#[cfg(kernel_isa = "mve")]
#[unsafe(naked)]
unsafe extern "C" fn pixels_of(args: *const Conv2dS16Args) {
    naked!(
        Conv2dS16Args {
            x, filter, skip, len, lines, rows, row_skip, y, pixels, step, pitch, weights, to_bias, count,
        },
        Frame { block, record, left, rows_left } =>
        ".cpu cortex-m55",
        "push {{r3-r11, lr}}",
        "vpush {{d8-d15}}",
        "sub sp, #96",
        "ldm r0!, {{r1-r12}}",
        "stm sp, {{r1-r12}}",
        "ldm r0, {{r1-r7}}",
        "add r0, sp, #{pitch}",
        "stm r0, {{r1-r7}}",
        "vdup.32 q4, r6",
        "vdup.32 q5, r7",
        "0: ldrd r0, r1, [sp, #{weights}]", // and records
        "ldr r2, [sp, #{count}]",
        "strd r0, r1, [sp, #{block}]", // and record
        "str r2, [sp, #{left}]",
        // Loads that widen take their address from r0 to r7, and sums, which begin with the biases, have even registers. r9: x, r11: the next pixel's.
        "1: ldr r2, [sp, #{pixels}]",
        "cmp r2, #1",
        "beq.w 12f",
        two_by_two!("add r3, r1, r3, lsl #1\n", "0", "0", "2", "10"),
        two_by_two!("add r1, r3\n add r3, r1, r3, lsl #1\n", "8", "1", "3", "14"),
        "b 13f",
        "12: ldrd r1, r0, [sp, #{block}]", // and record
        "ldr r2, [sp, #{to_bias}]",
        "ldrd r9, r4, [sp, #{x}]", // and filter
        "add r0, r2",
        "ldr r6, [r0]",
        "ldr r8, [r0, #{second_bias}]",
        "ldr r10, [r0, #{third_bias}]",
        "ldr r12, [r0, #{fourth_bias}]",
        "add r3, r1, r4",
        "add r5, r3, r4",
        "add r7, r5, r4",
        "ldrd r0, r2, [sp, #{skip}]", // and weights_skip
        "ldrd r4, r11, [sp, #{len}]", // and lines
        "ldr lr, [sp, #{rows}]",
        "str lr, [sp, #{rows_left}]",
        "2: wlstp.16 lr, r4, 4f",
        "3: vldrh.u16 q0, [r9], #16",
        "vldrb.s16 q1, [r1], #8",
        "vmladava.s16 r6, q0, q1",
        "vldrb.s16 q2, [r3], #8",
        "vmladava.s16 r8, q0, q2",
        "vldrb.s16 q3, [r5], #8",
        "vmladava.s16 r10, q0, q3",
        "vldrb.s16 q1, [r7], #8",
        "vmladava.s16 r12, q0, q1",
        "letp lr, 3b",
        "4: add r9, r0",
        "add r1, r2",
        "add r3, r2",
        "add r5, r2",
        "add r7, r2",
        "subs r11, #1",
        "bne 2b",
        "ldr r11, [sp, #{rows_left}]",
        "subs r11, #1",
        "beq 5f",
        "str r11, [sp, #{rows_left}]",
        "ldrd r0, r2, [sp, #{row_skip}]", // and weights_row_skip
        "add r9, r0",
        "add r1, r2",
        "add r3, r2",
        "add r5, r2",
        "add r7, r2",
        "ldrd r0, r2, [sp, #{skip}]", // and weights_skip
        "ldr r11, [sp, #{lines}]",
        "b 2b",
        "5: vmov q6[2], q6[0], r6, r10",
        "vmov q6[3], q6[1], r8, r12",
        // The mantissa's high half, rounded and saturated; its factor for a product's high word.
        "13: ldr r0, [sp, #{record}]",
        "movs r1, #17",
        "vld20.32 {{q2, q3}}, [r0]",
        "vld21.32 {{q2, q3}}, [r0]!",
        "vqrshrnb.s32 q2, q2, #16",
        "vadd.i32 q3, q3, r1",
        "vmovlb.s16 q2, q2",
        "ldr r2, [sp, #{y}]",
        "vshl.s32 q2, q2, q3",
        "ldr r1, [sp, #{block}]",
        "vrmulh.s32 q0, q6, q2",
        "ldrd r4, r5, [sp, #{pixels}]", // and step
        "vmax.s32 q0, q0, q4",
        "ldr r6, [sp, #{pitch}]",
        "vmin.s32 q0, q0, q5",
        "cmp r4, #1",
        "beq 6f",
        "vrmulh.s32 q1, q7, q2",
        "add r7, r2, r6",
        "vmax.s32 q1, q1, q4",
        "vmin.s32 q1, q1, q5",
        "vstrh.32 q1, [r7]",
        "6: ldr r3, [sp, #{left}]",
        "vstrh.32 q0, [r2], #8",
        "subs r3, #4",
        "beq 8f",
        "ldr r7, [sp, #{filter}]",
        "cmp r3, #4",
        "blo 7f",
        "add r1, r1, r7, lsl #2",
        "strd r1, r0, [sp, #{block}]", // and record
        "str r2, [sp, #{y}]",
        "str r3, [sp, #{left}]",
        "b.w 1b",
        // As many channels back as there are fewer than four.
        "7: mla r1, r3, r7, r1",
        "rsb r3, r3, #4",
        "sub r0, r0, r3, lsl #3",
        "sub r2, r2, r3, lsl #1",
        "movs r3, #4",
        "strd r1, r0, [sp, #{block}]", // and record
        "str r2, [sp, #{y}]",
        "str r3, [sp, #{left}]",
        "b.w 1b",
        // Outputs: back to the pixel's first, and on to the next pixel's.
        "8: ldr r0, [sp, #{count}]",
        "ldr r1, [sp, #{x}]",
        "sub r2, r2, r0, lsl #1",
        "9: add r1, r5",
        "add r2, r6",
        "subs r4, #1",
        "beq 11f",
        "cmp r0, #0",
        "mov r0, #0",
        "bne 9b",
        "str r1, [sp, #{x}]",
        "strd r2, r4, [sp, #{y}]", // and pixels
        "b.w 0b",
        "11: add sp, #96",
        "vpop {{d8-d15}}",
        "pop {{r3-r11, pc}}";
        second_bias = const size_of::<i64>(),
        third_bias = const size_of::<[i64; 2]>(),
        fourth_bias = const size_of::<[i64; 3]>(),
    )
}

/// The same on other cores: pixel by pixel, four channels at a time.
///
/// # Safety
/// Every address that the arguments give lies inside a slice.
#[cfg(not(kernel_isa = "mve"))]
unsafe fn pixels_of(args: &Conv2dS16Args) {
    let halved = |bytes: usize| (bytes.cast_signed() >> 1).cast_unsigned();
    let loaded = args.len.next_multiple_of(8);
    let line = [
        loaded.wrapping_add(halved(args.skip)),
        loaded.wrapping_add(args.weights_skip),
    ];
    let [step, weights_step] = line.map(|step| step.wrapping_mul(args.lines));
    let row = [
        step.wrapping_add(halved(args.row_skip)),
        weights_step.wrapping_add(args.weights_row_skip),
    ];
    // Rows of a line each are lines.
    let (rows, count, [step, weights_step]) = if args.lines == 1 {
        (1, args.rows, row)
    } else {
        (args.rows, args.lines, line)
    };
    let under = dot_s16::StridedLines {
        count,
        len: args.len,
        step,
        weights_step,
    };
    let (mut x, mut y) = (args.x, args.y);
    for _ in 0..args.pixels {
        // SAFETY: the pixel is one of `args.pixels`, whose inputs, weights, records and outputs lie inside slices (fn docs).
        unsafe { pixel(x, y, args, rows, row, &under) };
        (x, y) = (x.wrapping_byte_add(args.step), y.wrapping_byte_add(args.pitch));
    }
}

/// One pixel, whose rows of lines are `row` elements apart in the input and in the weights.
///
/// # Safety
/// Inputs at `x`, outputs at `y`, and the weights and records of `args` lie inside slices.
#[cfg(not(kernel_isa = "mve"))]
#[inline(always)]
unsafe fn pixel(
    x: *const i16,
    y: *mut i16,
    args: &Conv2dS16Args,
    rows: usize,
    row: [usize; 2],
    lines: &dot_s16::StridedLines,
) {
    let channels = Channels {
        weights: &[],
        bias: &[],
        records: &[],
        clamp: [args.low as i16, args.high as i16],
    };
    let (mut w, mut y, mut record, mut left) = (args.weights, y, args.records, args.count);
    while left > 0 {
        // Of fewer than four the last channel several times.
        let step = |i: usize| if left > i { args.filter } else { 0 };
        let second = w.wrapping_add(step(1));
        let third = second.wrapping_add(step(2));
        let of = [w, second, third, third.wrapping_add(step(3))];
        let mut sums = [0; 4];
        // SAFETY: `left > 0` channels remain, missing ones repeat the last: each of `of` has its rows of lines, and there are an output and constants of each
        // (fn docs).
        unsafe {
            if lines.len > 0 {
                sums = dot_s16::sums(x, of, lines);
                for r in 1..rows {
                    let x = x.wrapping_add(row[0].wrapping_mul(r));
                    let of = of.map(|w| w.wrapping_add(row[1].wrapping_mul(r)));
                    for (sum, more) in sums.iter_mut().zip(dot_s16::sums(x, of, lines)) {
                        *sum = sum.wrapping_add(more);
                    }
                }
            }
            for sum in sums.into_iter().take(left) {
                let bias = record.wrapping_byte_add(args.to_bias).cast::<i64>().read() as i32;
                y.write(channels.short(sum.wrapping_add(bias), record.read()));
                (y, record) = (y.wrapping_add(1), record.wrapping_add(1));
            }
        }
        w = third.wrapping_add(step(3)).wrapping_add(args.filter);
        left = left.saturating_sub(4);
    }
}
