//! Four windows inside the image at once: bytes to pairs of 16 bits, as the loops of [`super::conv2d_s8`] take them.

/// The windows of four pixels, all inside the image. The assembly reads the fields by offset_of!.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Im2col4Args {
    /// Destination of the pairs of whole words, four pixels side by side.
    pub to: *mut u32,
    /// Bytes from a pixel to the next one.
    pub step: usize,
    /// Whole words of a run.
    pub words: usize,
    /// Runs; at least one.
    pub runs: usize,
    /// Bytes from a run's end to the next one's start.
    pub gap: isize,
    /// Bytes left over at a run's end.
    pub tail: usize,
    /// Destination of the bytes left over: pairs as those of words, the first half of the first one.
    pub tails: *mut i16,
}

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::widen_4;
#[cfg(not(kernel_isa = "dsp"))]
pub(super) use portable::widen_4;

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::Im2col4Args;

    consecutive!(Im2col4Args: to, step, words, runs, gap, tail, tails);

    frame!(
        /// The frame: what is left of [`Im2col4Args`], the runs and the places of tails as they go on.
        Frame { step, words, runs, gap, tail, tails }
    );
    consecutive!(Frame: words, runs, gap, tail);

    /// Widens the windows of four pixels, the first of them at `src`: 16 instructions for 16 activations of whole words.
    ///
    /// # Safety
    /// The windows of four pixels at `src` are readable, and `windows.to` and `windows.tails` take their pairs.
    #[unsafe(naked)]
    pub(in super::super) unsafe extern "C" fn widen_4(windows: &Im2col4Args, src: *const i8) {
        naked!(Frame { words, runs, gap, tails } =>
            ".cpu cortex-m33",
            "push.w {{r4-r11, lr}}",
            "ldm    r0, {{r2-r8}}",
            "push.w {{r3-r8}}",
            "mov    r12, r2",
            "mov    lr, r4",
            "mov    r4, r1",
            "add.w  r5, r4, r3",
            "add.w  r6, r5, r3",
            "add.w  r7, r6, r3",
            "cmp.w  lr, #0",
            "beq    29f",
            "10:",
            "ldr.w  r8, [r4], #4",
            "ldr.w  r9, [r5], #4",
            "ldr.w  r10, [r6], #4",
            "ldr.w  r11, [r7], #4",
            "sxtb16 r0, r8",
            "sxtb16 r1, r9",
            "sxtb16 r2, r10",
            "sxtb16 r3, r11",
            "stm.w  r12!, {{r0-r3}}",
            "sxtb16 r8, r8, ror #8",
            "sxtb16 r9, r9, ror #8",
            "sxtb16 r10, r10, ror #8",
            "sxtb16 r11, r11, ror #8",
            "subs.w lr, lr, #1",
            "stm.w  r12!, {{r8-r11}}",
            "bne    10b",
            "29:",
            "ldrd   lr, r0, [sp, #{words}]", // runs
            "ldrd   r1, r3, [sp, #{gap}]", // tail
            "cbnz   r3, 30f",
            "21:",
            "subs   r0, #1",
            "beq    22f",
            "str    r0, [sp, #{runs}]",
            "add    r4, r1",
            "add    r5, r1",
            "add    r6, r1",
            "add    r7, r1",
            "cmp.w  lr, #0",
            "bne    10b",
            "b      29b",
            "22:",
            "add    sp, #24",
            "pop.w  {{r4-r11, pc}}",
            // The bytes left over, each of four pixels; where a half of a pair goes, its address says.
            "30:",
            "ldr    r2, [sp, #{tails}]",
            "31:",
            "ldrsb  r8, [r4], #1",
            "ldrsb  r9, [r5], #1",
            "ldrsb  r10, [r6], #1",
            "ldrsb  r11, [r7], #1",
            "strh.w r8, [r2]",
            "strh.w r9, [r2, #{second}]",
            "strh.w r10, [r2, #{third}]",
            "strh.w r11, [r2, #{fourth}]",
            "tst.w  r2, #2",
            "ite    eq",
            "addeq  r2, #2",
            "addne  r2, #14",
            "subs   r3, #1",
            "bne    31b",
            "str    r2, [sp, #{tails}]",
            "b      21b";
            // Pixels, whose pairs lie side by side.
            second = const 4, third = const 8, fourth = const 12,
        )
    }
}

/// The same in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::Im2col4Args;
    use crate::kernels::isa::dsp::{sxtb16, sxtb16_ror8};

    /// Widens the windows of four pixels, the first of them at `src`.
    ///
    /// # Safety
    /// The windows of four pixels at `src` are readable, and `windows.to` and `windows.tails` take their pairs.
    pub(in super::super) unsafe fn widen_4(windows: &Im2col4Args, src: *const i8) {
        let run_bytes = (windows.words * 4 + windows.tail) as isize;
        for pixel in 0..4 {
            let src = src.wrapping_add(pixel * windows.step);
            let mut tails = windows.tails.wrapping_add(2 * pixel);
            for run in 0..windows.runs {
                let src = src.wrapping_offset(run as isize * (run_bytes + windows.gap));
                // SAFETY: run `run` of pixel `pixel` is `run_bytes` readable bytes at `src`; the places of its pairs are writable (fn docs).
                unsafe {
                    for word in 0..windows.words {
                        let x = src.add(4 * word).cast::<u32>().read_unaligned();
                        let to = windows.to.add((run * windows.words + word) * 8 + pixel);
                        (*to, *to.add(4)) = (sxtb16(x), sxtb16_ror8(x));
                    }
                    for byte in 0..windows.tail {
                        *tails = i16::from(*src.add(4 * windows.words + byte));
                        tails = tails.wrapping_add(if tails.addr() & 2 == 0 { 1 } else { 7 });
                    }
                }
            }
        }
    }
}
