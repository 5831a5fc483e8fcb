//! The inner loop of [`super::dwconv_s8`]: all channels of a run of pixels, four channels at a time.
//!
//! In assembly on Arm for the same reason as [`super::conv2d_s8_loops`]: 4 sums, 7 temporaries and 3 pointers leave no register to spare.

/// Pixels next to each other, and where the taps of the first one are. The assembly reads the fields by offset_of!.
#[repr(C)]
#[derive(Debug)]
pub(super) struct DwconvRunArgs {
    /// The first pixel's first output.
    pub out: *mut i8,
    /// The packed stream.
    pub weights: *const u32,
    /// Past it.
    pub weights_end: *const u32,
    /// Pixels of the run.
    pub pixels: usize,
    /// Bytes between a pixel's end and the next pixel's start in the input.
    pub extra: usize,
    /// [`crate::ops::packed_conv2d::Form`].
    pub form: usize,
    /// Taps of a window.
    pub taps: usize,
    /// [`tap`]s, one for each tap.
    pub entries: *const u32,
    /// Base address of the entries' offsets, for hosts.
    pub image: *const i8,
    /// A pixel of zero points, for hosts.
    pub outside: *const i8,
}

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::{run, tap};
#[cfg(not(kernel_isa = "dsp"))]
pub(super) use portable::{run, tap};

/// Requantises four sums with four records in the reference's form.
///
/// # Safety
/// Four sums at `sums` and sixteen words at `records` are readable, four bytes at `out` writable.
unsafe extern "C" fn finish_general(sums: *const i32, records: *const u32, out: *mut i8) {
    for channel in 0..4 {
        // SAFETY: `channel < 4`: a sum, a record of four words and an output that this function's contract guarantees.
        unsafe { *out.add(channel) = super::channel_record::general(records.add(4 * channel), *sums.add(channel)) };
    }
}

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::{DwconvRunArgs, finish_general};

    consecutive!(DwconvRunArgs: out, weights, weights_end, pixels, extra, form, taps, entries);

    frame!(
        /// The frame: [`DwconvRunArgs`] with the epilogue in the form's place; `entries` may be the end of their pairs.
        Frame { out, weights, weights_end, pixels, extra, epilogue, taps, entries }
    );
    consecutive!(Frame: pixels, extra);

    /// The frame below four sums.
    #[repr(C)]
    #[allow(dead_code, reason = "the assembly names its words")]
    struct BelowSums {
        sums: [i32; 4],
        frame: Frame,
    }

    /// The entry of a tap at `offset` bytes from `image`, or of one outside the input: an address.
    #[inline(always)]
    pub(in super::super) fn tap(image: *const i8, outside: *const i8, offset: Option<isize>) -> u32 {
        match offset {
            Some(offset) => image.wrapping_offset(offset) as u32,
            None => outside as u32,
        }
    }

    /// Two taps of four channels, 8 MACs, from the words r6 and r7: `PKH` puts the same channel of both taps side by side.
    macro_rules! widen_and_multiply {
        ($load_low:literal, $load_high:literal, $w:literal) => {
            concat!(
                $load_low,
                "
            pkhbt   r8, r6, r7, lsl #16
            pkhtb   r7, r7, r6, asr #16
            sxtb16  r6, r8
            sxtb16  r8, r8, ror #8
            smlad   r0, r6, r9, r0
            smlad   r1, r8, r10, r1
            ",
                $load_high,
                "
            sxtb16  r6, r7
            sxtb16  r7, r7, ror #8
            smlad   r2, r6, ",
                $w,
                ", r2
            smlad   r3, r7, r12, r3
        "
            )
        };
    }

    /// 14 instructions for two taps.
    macro_rules! pair9 {
        ($entry:literal) => {
            concat!(
                "
            ldrd    r6, r7, [r5, #",
                $entry,
                "]
            ldr.w   r6, [r6, r4]
            ldr.w   r7, [r7, r4]
        ",
                widen_and_multiply!("ldm.w lr!, {{r9-r12}}", "", "r11")
            )
        };
    }

    /// The last tap of an odd number, at r6.
    macro_rules! single {
        () => {
            "
            ldr.w   r6, [r6, r4]
            ldrd    r9, r10, [lr], #8
            sxtb16  r7, r6
            sxtb16  r8, r6, ror #8
            smlabb  r0, r7, r9, r0
            smlatt  r2, r7, r9, r2
            smlabb  r1, r8, r10, r1
            smlatt  r3, r8, r10, r3
        "
        };
    }

    macro_rules! positive {
        ($($sum:literal)*) => { concat!($("
            ldm.w   lr!, {{r6-r9}}
            lsl.w   ", $sum, ", ", $sum, ", r8
            smmla   ", $sum, ", ", $sum, ", r6, r7
            ssat    ", $sum, ", #8, ", $sum, ", asr #14
        "),*) };
    }

    macro_rules! signed {
        ($($sum:literal)*) => { concat!($("
            ldm.w   lr!, {{r6-r9}}
            lsl.w   ", $sum, ", ", $sum, ", r8
            and.w   r9, r9, ", $sum, ", asr #31
            smmla   ", $sum, ", ", $sum, ", r6, r7
            sub.w   ", $sum, ", ", $sum, ", r9
            ssat    ", $sum, ", #8, ", $sum, ", asr #14
        "),*) };
    }

    // Leaves a [`Frame`].
    macro_rules! prologue {
        () => {
            "
            push.w  {{r3-r11, lr}}
            ldm.w   r0, {{r1-r8}}
            mov     r9, r6
            adr.w   r6, 30f
            cmp     r9, #1
            it      eq
            addeq.w r6, r6, #(31f - 30f)
            cmp     r9, #2
            it      eq
            addeq.w r6, r6, #(32f - 30f)
            it      hi
            addhi.w r6, r6, #(33f - 30f)
            orr     r6, r6, #1
            push.w  {{r1-r8}}
            mov     r5, r8
            movs    r4, #0
        "
        };
    }

    macro_rules! epilogues {
        () => { concat!("
            .p2align 2
        30:
            ldm.w   lr!, {{r6-r9}}
            smmla   r0, r0, r6, r7
            smmla   r1, r1, r8, r9
            ldm.w   lr!, {{r6-r9}}
            smmla   r2, r2, r6, r7
            smmla   r3, r3, r8, r9
            ssat    r0, #8, r0, asr #10
            ssat    r1, #8, r1, asr #10
            ssat    r2, #8, r2, asr #10
            ssat    r3, #8, r3, asr #10
        40:
            ldr.w   r6, [sp, #{out}]
            bfi     r0, r1, #8, #8
            bfi     r0, r2, #16, #8
            bfi     r0, r3, #24, #8
            str.w   r0, [r6, r4]
        41:
            ldr.w   r6, [sp, #{weights_end}]
            adds    r4, #4
            cmp     lr, r6
            bne.w   11b
            ldrd    r6, r7, [sp, #{pixels}]
            subs    r6, #1
            beq     50f
            str.w   r6, [sp, #{pixels}]
            cmp     r7, #0
            beq.w   10b
            ldr.w   r6, [sp, #{out}]
            add     r4, r7
            subs    r6, r6, r7
            str.w   r6, [sp, #{out}]
            b.w     10b
        50:
            add     sp, #32
            pop.w   {{r3-r11, pc}}
            .p2align 2
        31:", positive!("r0" "r1" "r2" "r3"), "
            b       40b
            .p2align 2
        32:", signed!("r0" "r1" "r2" "r3"), "
            b       40b
            .p2align 2
        33:
            push.w  {{r0-r3}}
            mov     r0, sp
            mov     r1, lr
            mov     r6, lr
            ldr.w   r2, [sp, #{out_below}]
            add     r2, r4
            bl      {finish}
            add     sp, #16
            add.w   lr, r6, #64
            b       41b
        ") };
    }

    /// All channels of the run's pixels.
    ///
    /// # Safety
    /// Every tap's address plus the run's length is readable, the stream and the outputs are as described.
    pub(in super::super) unsafe fn run(run: &DwconvRunArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `run` (fn docs), and keeps to the calling convention.
        unsafe { if run.taps == 9 { run_9(run) } else { run_any(run) } }
    }

    /// Nine taps, unrolled: 65 instructions for 36 MACs.
    #[unsafe(naked)]
    unsafe extern "C" fn run_9(run: &DwconvRunArgs) {
        naked!(Frame { out, weights, weights_end, pixels, epilogue } =>
            ".cpu cortex-m33",
            prologue!(),
            "10:",
            "ldr.w  lr, [sp, #{weights}]",
            "11:",
            "ldm.w  lr!, {{r0-r3}}",
            pair9!("0"), pair9!("8"), pair9!("16"), pair9!("24"),
            "ldr.w  r6, [r5, #{ninth}]",
            single!(),
            "ldr.w  pc, [sp, #{epilogue}]",
            epilogues!();
            ninth = const 8 * 4,
            out_below = const core::mem::offset_of!(BelowSums, frame.out),
            finish = sym finish_general,
        )
    }

    /// Any number of taps, two at a time: 18 instructions for 8 MACs.
    #[unsafe(naked)]
    unsafe extern "C" fn run_any(run: &DwconvRunArgs) {
        naked!(Frame { out, weights, weights_end, pixels, epilogue, taps, entries } =>
            ".cpu cortex-m33",
            prologue!(),
            "lsrs   r7, r7, #1",
            "add.w  r7, r5, r7, lsl #3",
            "str.w  r7, [sp, #{entries}]",
            "10:",
            "ldr.w  lr, [sp, #{weights}]",
            "11:",
            "ldm.w  lr!, {{r0-r3}}",
            "mov    r11, r5",
            "ldr.w  r6, [sp, #{entries}]",
            "cmp    r11, r6",
            "beq    13f",
            "12:",
            "ldrd   r6, r7, [r11], #8",
            "ldr.w  r6, [r6, r4]",
            "ldr.w  r7, [r7, r4]",
            widen_and_multiply!("ldrd r9, r10, [lr], #8", "ldrd r9, r12, [lr], #8", "r9"),
            "ldr.w  r6, [sp, #{entries}]",
            "cmp    r11, r6",
            "bne    12b",
            "13:",
            "ldr.w  r6, [sp, #{taps}]",
            "lsls   r6, r6, #31",
            "beq    14f",
            "ldr.w  r6, [r11]",
            single!(),
            "14:",
            "ldr.w  pc, [sp, #{epilogue}]",
            epilogues!();
            out_below = const core::mem::offset_of!(BelowSums, frame.out),
            finish = sym finish_general,
        )
    }
}

/// The same loop in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::{DwconvRunArgs, finish_general};
    use crate::kernels::dsp::channel_record;
    use crate::kernels::dsp::requantize::{FOLDED_SHIFT, SHIFT, Short};
    use crate::kernels::isa::dsp::split;
    use crate::ops::packed_conv2d::Form;

    const OUTSIDE: u32 = 1 << 31;

    /// The entry of a tap at `offset` bytes from the image, or of one outside the input.
    pub(in super::super) fn tap(_: *const i8, _: *const i8, offset: Option<isize>) -> u32 {
        offset.map_or(OUTSIDE, |offset| offset as u32)
    }

    /// All channels of the run's pixels.
    ///
    /// # Safety
    /// Every tap's address plus the run's length is readable, the stream and the outputs are as described.
    pub(in super::super) unsafe fn run(run: &DwconvRunArgs) {
        // SAFETY: each pixel takes the stream from its start to its end, and the next output bytes; the contract guarantees both and the taps of the run's
        // pixels.
        unsafe {
            let (mut at, mut out) = (0, run.out);
            for _ in 0..run.pixels {
                let mut stream = run.weights;
                while stream != run.weights_end {
                    out = quad(run, &mut stream, at, out);
                    at += 4;
                }
                at += run.extra;
            }
        }
    }

    /// Four channels of a pixel; returns where the next four go.
    ///
    /// # Safety
    /// `stream` has the words of four channels, their taps are readable from `at` on, and four bytes are writable at `out`.
    unsafe fn quad(run: &DwconvRunArgs, stream: &mut *const u32, at: usize, out: *mut i8) -> *mut i8 {
        // SAFETY: the stream's words of four channels, their taps from `at` on and four bytes at `out` are valid (fn docs).
        unsafe {
            let mut next = || {
                let word = **stream;
                *stream = stream.add(1);
                word
            };
            let mut sums = [next(), next(), next(), next()].map(|bias| bias as i32);
            let input = |tap: usize, channel: usize| {
                let tap = match *run.entries.add(tap) {
                    OUTSIDE => run.outside,
                    offset => run.image.offset(offset as i32 as isize),
                };
                i32::from(*tap.add(at + channel))
            };
            for pair in 0..run.taps / 2 {
                for (channel, sum) in sums.iter_mut().enumerate() {
                    let [w0, w1] = split(next());
                    *sum = sum.wrapping_add(input(2 * pair, channel) * w0);
                    *sum = sum.wrapping_add(input(2 * pair + 1, channel) * w1);
                }
            }
            if run.taps % 2 == 1 {
                let (w02, w13) = (split(next()), split(next()));
                let weights = [w02[0], w13[0], w02[1], w13[1]];
                for ((channel, sum), w) in sums.iter_mut().enumerate().zip(weights) {
                    *sum = sum.wrapping_add(input(run.taps - 1, channel) * w);
                }
            }
            if run.form == Form::General as usize {
                finish_general(sums.as_ptr(), *stream, out);
                *stream = stream.add(4 * channel_record::WORDS);
                return out.add(4);
            }
            for (channel, &sum) in sums.iter().enumerate() {
                let folded = run.form == Form::Folded as usize;
                let (short, shift) = if folded {
                    (
                        Short {
                            offset: 0,
                            k: 0,
                            m: **stream as i32,
                            c: *stream.add(1) as i32,
                            d: 0,
                        },
                        FOLDED_SHIFT,
                    )
                } else {
                    (channel_record::short(*stream), SHIFT)
                };
                *stream = stream.add(if folded { 2 } else { channel_record::WORDS });
                *out.add(channel) = short.apply(sum, shift);
            }
            out.add(4)
        }
    }
}
