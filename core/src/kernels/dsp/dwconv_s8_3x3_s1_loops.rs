//! The inner loop of [`super::dwconv_s8_3x3_s1`]: a line of four channels, two outputs at a time.

use super::channel_record;

/// Words of a channel in the table: five times two of weights, bias, record.
pub(super) const CHANNEL: usize = 15;

/// Words of the table.
pub(super) const TABLE: usize = 4 * CHANNEL;

/// A line of outputs of four channels. The assembly reads the fields by offset_of!.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Dwconv3x3S1Args {
    /// The first channel's pairs, three lines side by side; the others follow.
    pub x: *const u32,
    /// The first channel's weights, in the order of the three; the others [`CHANNEL`] words on.
    pub weights: *const u32,
    /// The first channel's bias and record; the others likewise.
    pub records: *const u32,
    /// The first channel's first output; the others follow.
    pub out: *mut i8,
    /// Bytes from an output to the next one.
    pub step: usize,
    /// Bytes of the pairs of whole twos of outputs.
    pub bytes: usize,
    /// 12 where one is left over, else 0.
    pub odd: usize,
    /// [`crate::ops::packed_conv2d::Form`].
    pub form: usize,
}

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::{multiply, widen};
#[cfg(not(kernel_isa = "dsp"))]
pub(super) use portable::{multiply, widen};

/// [`channel_record::general`] for the assembly.
///
/// # Safety
/// Four words are readable at `record`.
#[cfg(kernel_isa = "dsp")]
unsafe extern "C" fn general(record: *const u32, sum: i32) -> i32 {
    // SAFETY: four words are readable at `record` (fn docs).
    unsafe { channel_record::general(record, sum) }.into()
}

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::{Dwconv3x3S1Args, general};

    consecutive!(Dwconv3x3S1Args: x, weights, records, out, step, bytes, odd, form);

    frame!(
        /// The frame: a channel's record; the end of its pairs and bytes between its outputs, 0 at an odd last one; where sums go on and where they are
        /// requantised; then what is left of [`Dwconv3x3S1Args`], and channels.
        Frame { m, c, end, apart, k, d, entry, epilogue, weights, records, out, step, bytes, odd, channels, unused }
    );
    consecutive!(Frame: m, c, end, apart, k, d);
    consecutive!(Frame: weights, records, out, step);

    /// The frame below two sums and two registers.
    #[repr(C)]
    #[allow(dead_code, reason = "the assembly names its words")]
    struct BelowSums {
        sum: i32,
        second_sum: i32,
        registers: [usize; 2],
        frame: Frame,
    }

    frame!(
        /// A channel's words at `records`.
        Channel { bias, multiplier, addend, left, correction }
    );
    consecutive!(Channel: multiplier, addend, left, correction);

    /// Widens pairs of neighbours, `step` bytes from one to the next from `x` on, into every third word from `to` to `end` and as many `plane` bytes on for
    /// each other channel: 16 instructions for a pair of four channels.
    ///
    /// # Safety
    /// `to` is not `end`; four bytes at each neighbour are readable, the words writable.
    #[unsafe(naked)]
    pub(in super::super) unsafe extern "C" fn widen(
        x: *const i8,
        step: usize,
        to: *mut u32,
        end: *mut u32,
        plane: usize,
    ) {
        naked!(
            ".cpu cortex-m33",
            "push.w {{r4-r10, lr}}",
            "ldr    r8, [sp, #{plane}]",
            "add.w  r9, r8, r8, lsl #1",
            "10:",
            "ldr    r4, [r0]",
            "ldr    r5, [r0, r1]",
            "add.w  r0, r0, r1, lsl #1",
            "pkhbt  r6, r4, r5, lsl #16",
            "pkhtb  r7, r5, r4, asr #16",
            "sxtb16 r10, r6",
            "sxtb16 r6, r6, ror #8",
            "sxtb16 r12, r7",
            "sxtb16 r7, r7, ror #8",
            "str.w  r10, [r2]",
            "str.w  r6, [r2, r8]",
            "str.w  r12, [r2, r8, lsl #1]",
            "str.w  r7, [r2, r9]",
            "adds   r2, #12",
            "cmp    r2, r3",
            "bne    10b",
            "pop.w  {{r4-r10, pc}}";
            // Behind eight registers.
            plane = const 8 * 4,
        )
    }

    /// The products of two outputs of a channel: 14 instructions.
    macro_rules! products {
        () => {
            "
            ldm.w   r12!, {{r0-r2}}
            smlad   r3, r0, r5, r11
            smlatb  r4, r0, r5, r11
            smlad   r3, r1, r7, r3
            smlatb  r4, r1, r7, r4
            smlad   r3, r2, r9, r3
            smlatb  r4, r2, r9, r4
            ldm.w   r12, {{r0-r2}}
            smlabt  r3, r0, r6, r3
            smlad   r4, r0, r6, r4
            smlabt  r3, r1, r8, r3
            smlad   r4, r1, r8, r4
            smlabt  r3, r2, r10, r3
            smlad   r4, r2, r10, r4
            "
        };
    }

    /// Stores two outputs, and goes back to the loop at `$loop` for more of the line. The second one first: an odd last output is written over what lies
    /// beyond it.
    macro_rules! store {
        ($loop:literal) => {
            concat!(
                "
            ldrd    r2, r0, [sp, #{end}]
            strb    r4, [lr, r0]
            strb    r3, [lr]
            add.w   lr, lr, r0, lsl #1
            cmp     r12, r2
            bne.w   ",
                $loop
            )
        };
    }

    /// The line's outputs.
    ///
    /// # Safety
    /// The inputs, weights and records of `line` are readable, and its outputs writable.
    pub(in super::super) unsafe fn multiply(line: &Dwconv3x3S1Args) {
        // SAFETY: the assembly reads the inputs, weights and records of `line`, writes its outputs (fn docs), and keeps to the calling convention.
        unsafe { multiply_asm(line) }
    }

    // Activations r0 to r2, sums r3 r4, weights r5 to r10, bias r11, pairs r12, output lr: 25 instructions for two outputs in the folded form, which has
    // a loop without a jump through memory.
    #[unsafe(naked)]
    unsafe extern "C" fn multiply_asm(line: *const Dwconv3x3S1Args) {
        naked!(Frame { m, end, apart, k, d, entry, epilogue, weights, out, bytes, odd, channels },
            Channel { bias, multiplier, left }, BelowSums { sum, second_sum } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldm    r0, {{r1-r8}}",
            "mov    r12, r1",
            "adr.w  r0, 20f",
            "adr.w  r1, 40f",
            "cmp    r8, #0",
            "it     ne",
            "addne.w r0, r0, #(30f - 20f)",
            "cmp    r8, #2",
            "it     eq",
            "addeq.w r1, r1, #(45f - 40f)",
            "it     hi",
            "addhi.w r1, r1, #(50f - 40f)",
            "orr    r0, r0, #1",
            "orr    r1, r1, #1",
            "movs   r8, #4",
            "push.w {{r0-r9}}",
            "sub    sp, #24",
            "10:",
            "ldrd   r0, r1, [sp, #{weights}]", // records
            "ldm.w  r0, {{r5-r10}}",
            "ldrd   r2, r3, [r1, #{multiplier}]", // addend
            "strd   r2, r3, [sp, #{m}]", // c
            "ldrd   r2, r3, [r1, #{left}]", // correction
            "strd   r2, r3, [sp, #{k}]", // d
            "ldr.w  r11, [r1, #{bias}]",
            "adds   r0, #60",
            "adds   r1, #60",
            "strd   r0, r1, [sp, #{weights}]", // records
            "ldrd   lr, r3, [sp, #{out}]", // step
            "add    r0, lr, #1",
            "str    r0, [sp, #{out}]",
            "ldr    r2, [sp, #{bytes}]",
            "add    r2, r12",
            "strd   r2, r3, [sp, #{end}]", // apart
            "cmp    r2, r12",
            "beq    25f",
            "ldr.w  pc, [sp, #{entry}]",
            ".p2align 2",
            "20:",
            products!(),
            "ldrd   r0, r1, [sp, #{m}]", // c
            "smmla  r3, r3, r0, r1",
            "smmla  r4, r4, r0, r1",
            "ssat   r3, #8, r3, asr #10",
            "ssat   r4, #8, r4, asr #10",
            store!("20b"),
            "25:",
            "ldr    r0, [sp, #{odd}]",
            "ldr    r1, [sp, #{apart}]",
            "cmp    r0, #0",
            "it     ne",
            "cmpne  r1, #0",
            "beq    26f",
            "movs   r1, #0",
            "add.w  r0, r0, r12",
            "strd   r0, r1, [sp, #{end}]", // apart
            "ldr.w  pc, [sp, #{entry}]",
            "26:",
            "add.w  r12, r12, #12",
            "ldr    r0, [sp, #{channels}]",
            "subs   r0, #1",
            "str    r0, [sp, #{channels}]",
            "bne.w  10b",
            "add    sp, #64",
            "pop.w  {{r3-r11, pc}}",
            ".p2align 2",
            "30:",
            products!(),
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            "40:",
            "ldr    r2, [sp, #{k}]",
            "ldrd   r0, r1, [sp, #{m}]", // c
            "lsls   r3, r2",
            "lsls   r4, r2",
            "smmla  r3, r3, r0, r1",
            "smmla  r4, r4, r0, r1",
            "42:",
            "ssat   r3, #8, r3, asr #14",
            "ssat   r4, #8, r4, asr #14",
            "43:",
            store!("30b"),
            "b      25b",
            ".p2align 2",
            "45:",
            "ldrd   r0, r2, [sp, #{k}]", // d
            "lsls   r3, r0",
            "lsls   r4, r0",
            "ldrd   r0, r1, [sp, #{m}]", // c
            "and.w  r2, r2, r3, asr #31",
            "subs   r2, r1, r2",
            "smmla  r3, r3, r0, r2",
            "ldr    r2, [sp, #{d}]",
            "and.w  r2, r2, r4, asr #31",
            "subs   r1, r1, r2",
            "smmla  r4, r4, r0, r1",
            "b      42b",
            ".p2align 2",
            "50:",
            "push.w {{r3, r4, r12, lr}}",
            "mov    r1, r3",
            "ldr    r0, [sp, #{records_below}]",
            "subs   r0, #56",
            "bl     {general}",
            "ldr    r1, [sp, #{second_sum}]",
            "str    r0, [sp, #{sum}]",
            "ldr    r0, [sp, #{records_below}]",
            "subs   r0, #56",
            "bl     {general}",
            "str    r0, [sp, #{second_sum}]",
            "pop.w  {{r3, r4, r12, lr}}",
            "b      43b";
            records_below = const core::mem::offset_of!(BelowSums, frame.records),
            general = sym general,
        )
    }
}

/// The same loop in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::{CHANNEL, Dwconv3x3S1Args, channel_record};
    use crate::kernels::dsp::requantize::{FOLDED_SHIFT, SHIFT, Short};
    use crate::kernels::isa::dsp::{smlad, split, sxtb16, sxtb16_ror8};
    use crate::ops::packed_conv2d::Form;

    /// Widens pairs of neighbours, `step` bytes from one to the next from `x` on, into every third word from `to` to `end` and as many `plane` bytes on for
    /// each other channel.
    ///
    /// # Safety
    /// `to` is not `end`; four bytes at each neighbour are readable, the words writable.
    pub(in super::super) unsafe fn widen(x: *const i8, step: usize, to: *mut u32, end: *mut u32, plane: usize) {
        let (mut x, mut to) = (x, to);
        while to != end {
            // SAFETY: four bytes at both neighbours are readable, and `to`, before `end`, and its word of each channel are writable (fn docs).
            unsafe {
                let [first, second] = [x, x.wrapping_add(step)].map(|x| x.cast::<u32>().read_unaligned());
                let low = (first & 0xffff) | second << 16;
                let high = first >> 16 | (second & 0xffff_0000);
                let words = [sxtb16(low), sxtb16_ror8(low), sxtb16(high), sxtb16_ror8(high)];
                for (channel, word) in words.into_iter().enumerate() {
                    *to.wrapping_byte_add(channel * plane) = word;
                }
            }
            x = x.wrapping_add(2 * step);
            to = to.wrapping_add(3);
        }
    }

    /// The line's outputs.
    ///
    /// # Safety
    /// The inputs, weights and records of `line` are readable, and its outputs writable.
    pub(in super::super) unsafe fn multiply(line: &Dwconv3x3S1Args) {
        let mut x = line.x;
        for channel in 0..4 {
            let [weights, record] = [line.weights, line.records].map(|table| table.wrapping_add(channel * CHANNEL));
            // SAFETY: the channel's weights, record, inputs and outputs are those of `line`, which this function's contract guarantees.
            unsafe {
                let requantize = |sum: i32| match line.form {
                    form if form == Form::Folded as usize => {
                        let short = Short {
                            offset: 0,
                            k: 0,
                            m: *record.add(1) as i32,
                            c: *record.add(2) as i32,
                            d: 0,
                        };
                        short.apply(sum, FOLDED_SHIFT)
                    }
                    form if form == Form::General as usize => channel_record::general(record.add(1), sum),
                    _ => channel_record::short(record.add(1)).apply(sum, SHIFT),
                };
                let mut out = line.out.add(channel);
                let (twos, odd) = (line.bytes / 12, line.odd / 12);
                for two in 0..twos + odd {
                    let mut sums = [*record as i32; 2];
                    for third in 0..3 {
                        let [a, b] = [*weights.add(2 * third), *weights.add(2 * third + 1)];
                        let [near, far] = [*x.add(third), *x.add(3 + third)];
                        let [_, x1] = split(near);
                        let [x2, _] = split(far);
                        let ([w0, _], [_, w2]) = (split(a), split(b));
                        sums[0] = smlad(near, a, sums[0]).wrapping_add(x2 * w2);
                        sums[1] = smlad(far, b, sums[1].wrapping_add(x1 * w0));
                    }
                    let [first, second] = sums.map(requantize);
                    *out = first;
                    if two < twos {
                        *out.add(line.step) = second;
                    }
                    out = out.wrapping_add(2 * line.step);
                    x = x.add(3);
                }
                x = x.add(3);
            }
        }
    }
}
