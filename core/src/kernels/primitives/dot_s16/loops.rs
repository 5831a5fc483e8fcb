//! The inner loops of [`dot_s16`](crate::kernels::primitives::dot_s16) on the cores without vectors that have some of their own.

/// Lines of neighbours.
#[cfg(not(kernel_isa = "armv6m"))]
#[repr(C)]
pub(in crate::kernels) struct Dot4RowsArgs {
    /// Not 0.
    pub(in crate::kernels) lines: usize,
    /// Of a line's whole fours of inputs.
    pub(in crate::kernels) bytes: usize,
    /// Bytes from the end of a line to the next one in the input.
    pub(in crate::kernels) skip: usize,
    /// The same in the weights.
    pub(in crate::kernels) weights_skip: usize,
    /// Elements of a line behind its fours.
    pub(in crate::kernels) rest: usize,
}

#[cfg(not(kernel_isa = "armv6m"))]
consecutive!(Dot4RowsArgs: skip, weights_skip);

#[cfg(not(kernel_isa = "armv6m"))]
frame! {
    /// Stack frame of [`fours`]: the lines left, the arguments, the address of the sums.
    Dot4RowsFrame { lines_left, args, to }
}
#[cfg(not(kernel_isa = "armv6m"))]
consecutive!(Dot4RowsFrame: lines_left, args);

/// An element of the input, from r0, with that of each row, from r1 to r4: sums r5 to r8.
#[cfg(not(kernel_isa = "armv6m"))]
macro_rules! element {
    () => {
        concat!(
            "ldrsh r9, [r0], #2\n",
            "ldrsb r10, [r1], #1\n",
            "ldrsb r11, [r2], #1\n",
            "mla r5, r9, r10, r5\n",
            "ldrsb r10, [r3], #1\n",
            "mla r6, r9, r11, r6\n",
            "ldrsb r11, [r4], #1\n",
            "mla r7, r9, r10, r7\n",
            "mla r8, r9, r11, r8\n"
        )
    };
}

/// Four of them.
#[cfg(all(kernel_isa = "armv7m", not(kernel_isa = "dsp")))]
macro_rules! four {
    () => {
        concat!(element!(), element!(), element!(), element!())
    };
}

/// The same in pairs: elements 0 and 2, 1 and 3, as the weights are widened.
#[cfg(kernel_isa = "dsp")]
macro_rules! four {
    () => {
        concat!(
            "ldr r10, [r0], #4\n",
            "ldr r11, [r0], #4\n",
            "pkhbt r9, r10, r11, lsl #16\n",
            "pkhtb r10, r11, r10, asr #16\n",
            four!(all)
        )
    };
    (all) => {
        concat!(four!("r1" "r5"), four!("r2" "r6"), four!("r3" "r7"), four!("r4" "r8"))
    };
    ($row:literal $sum:literal) => {
        concat!(
            "ldr r11, [", $row, "], #4\n",
            "sxtb16 lr, r11\n",
            "smlad ", $sum, ", r9, lr, ", $sum, "\n",
            "sxtb16 r11, r11, ror #8\n",
            "smlad ", $sum, ", r10, r11, ", $sum, "\n"
        )
    };
}

/// Sums along lines for four rows of weights. With the DSP extension sixteen products in 26 instructions, else in 38; four of what is no four in eleven.
#[cfg(not(kernel_isa = "armv6m"))]
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn fours(
    x: *const i16,
    rows: *const *const i8,
    args: *const Dot4RowsArgs,
    sums: *mut i32,
) {
    naked!(
        Dot4RowsArgs { lines, bytes, skip, rest }, Dot4RowsFrame { lines_left, args, to } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "ldr r4, [r2, #{lines}]",
        "sub sp, #12",
        "strd r4, r2, [sp, #{lines_left}]", // and args
        "str r3, [sp, #{to}]",
        "ldm r1, {{r1-r4}}",
        "mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "1: ldr r11, [sp, #{args}]",
        "ldr r12, [r11, #{bytes}]",
        "cmp r12, #0",
        "beq 3f",
        "add r12, r0",
        "2:",
        four!(),
        "cmp r0, r12",
        "bne 2b",
        "ldr r11, [sp, #{args}]",
        "3: ldr r12, [r11, #{rest}]",
        "cmp r12, #0",
        "beq 5f",
        "4:",
        element!(),
        "subs r12, #1",
        "bne 4b",
        "5: ldr r12, [sp, #{lines_left}]",
        "subs r12, #1",
        "beq 6f",
        "str r12, [sp, #{lines_left}]",
        "ldr r11, [sp, #{args}]",
        "ldrd r9, r10, [r11, #{skip}]", // and weights_skip
        "add r0, r9",
        "add r1, r10",
        "add r2, r10",
        "add r3, r10",
        "add r4, r10",
        "b 1b",
        "6: ldr r3, [sp, #{to}]",
        "stm r3, {{r5-r8}}",
        "add sp, #12",
        "pop {{r4-r11, pc}}",
    )
}

/// A window as it was gathered, and the channels whose products with it are wanted.
#[cfg(kernel_isa = "armv7m_gpr")]
#[repr(C)]
pub(in crate::kernels) struct GatheredWindowArgs {
    /// Of which the whole fours are in the order of [`PAIRED`].
    pub(in crate::kernels) x: *const i16,
    /// Bytes of its whole fours.
    pub(in crate::kernels) bytes: usize,
    /// Elements behind them.
    pub(in crate::kernels) rest: usize,
    /// As many for each channel as the window has elements.
    pub(in crate::kernels) weights: *const i8,
    pub(in crate::kernels) filter: usize,
    pub(in crate::kernels) records: *const [i32; 2],
    /// Bytes from the records to the biases, which are as large.
    pub(in crate::kernels) to_bias: usize,
    pub(in crate::kernels) y: *mut i16,
    /// Channels, not 0.
    pub(in crate::kernels) count: usize,
    pub(in crate::kernels) low: i32,
    pub(in crate::kernels) high: i32,
}

#[cfg(kernel_isa = "armv7m_gpr")]
consecutive!(GatheredWindowArgs: low, high);
// The first two are loaded from the start.
#[cfg(kernel_isa = "armv7m_gpr")]
consecutive!(GatheredWindowArgs: x, bytes);
#[cfg(kernel_isa = "armv7m_gpr")]
const _: () = assert!(core::mem::offset_of!(GatheredWindowArgs, x) == 0);

#[cfg(kernel_isa = "armv7m_gpr")]
frame! {
    /// Stack frame of [`window`]: the arguments, the next output, its record, and the number of channels behind the next four.
    GatheredWindowFrame { args, output, record, left }
}
#[cfg(kernel_isa = "armv7m_gpr")]
consecutive!(GatheredWindowFrame: args, output, record);

/// Whether [`window`] takes elements 0, 2, 1, 3 of each four.
#[cfg(kernel_isa = "armv7m_gpr")]
pub(in crate::kernels) const PAIRED: bool = cfg!(kernel_isa = "dsp");

/// Four elements of a gathered window with four rows, and with the row in r1.
#[cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]
macro_rules! gathered {
    ($rows:tt) => {
        concat!("ldrd r9, r10, [r0], #8\n", four!($rows))
    };
    () => {
        concat!("ldrd r9, r10, [r0], #8\n", four!("r1" "r5"))
    };
}

#[cfg(all(kernel_isa = "armv7m", not(kernel_isa = "dsp")))]
macro_rules! gathered {
    (all) => {
        four!()
    };
    () => {
        concat!(one!(), one!(), one!(), one!())
    };
}

/// An element with the row in r1.
#[cfg(kernel_isa = "armv7m_gpr")]
macro_rules! one {
    () => {
        "ldrsh r9, [r0], #2\n ldrsb r10, [r1], #1\n mla r5, r9, r10, r5\n"
    };
}

/// The high word of a sum's product with r11, rounded.
#[cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]
macro_rules! scaled {
    ($sum:literal) => {
        concat!("smmulr ", $sum, ", ", $sum, ", r11\n")
    };
}

#[cfg(all(kernel_isa = "armv7m", not(kernel_isa = "dsp")))]
macro_rules! scaled {
    ($sum:literal) => {
        concat!(
            "smull r11, ",
            $sum,
            ", ",
            $sum,
            ", r11\n adds r11, #0x80000000\n adc ",
            $sum,
            ", #0\n"
        )
    };
}

/// A sum becomes an output at r0: r9 has the channel's record, r10 the bytes from there to its bias, r2 and r3 the limits.
#[cfg(kernel_isa = "armv7m_gpr")]
macro_rules! finish {
    ($sum:literal) => {
        concat!(
            "ldr r11, [r9, r10]\n",
            "add ",
            $sum,
            ", r11\n",
            "ldrd r11, r12, [r9], #8\n",
            // The mantissa's high half, rounded and saturated; its factor for a product's high word.
            "asr r11, #15\n",
            "add r11, #1\n",
            "ssat r11, #16, r11, asr #1\n",
            "add r12, #17\n",
            "lsl r11, r12\n",
            scaled!($sum),
            "cmp ",
            $sum,
            ", r2\n it lt\n movlt ",
            $sum,
            ", r2\n",
            "cmp ",
            $sum,
            ", r3\n it gt\n movgt ",
            $sum,
            ", r3\n",
            "strh ",
            $sum,
            ", [r0], #2\n"
        )
    };
}

/// The outputs of a window's channels, four at a time, then one by one. With the DSP extension sixteen products in 23 instructions, else in 38.
///
/// # Safety
/// Every address that the arguments give is readable, or writable for `y`: `x` for the window, `weights`, `records` and biases for `count` channels.
#[cfg(kernel_isa = "armv7m_gpr")]
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn window(args: *const GatheredWindowArgs) {
    naked!(
        GatheredWindowArgs { rest, weights, filter, records, to_bias, y, count, low }, GatheredWindowFrame { args, output, record, left } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "sub sp, #16",
        "ldr r1, [r0, #{weights}]",
        "ldr r2, [r0, #{y}]",
        "ldr r3, [r0, #{records}]",
        "ldr r4, [r0, #{count}]",
        "strd r0, r2, [sp, #{args}]", // and output
        "str r3, [sp, #{record}]",
        "subs r4, #4",
        "blo 5f",
        "1: str r4, [sp, #{left}]",
        "ldr r11, [sp, #{args}]",
        "ldr r10, [r11, #{filter}]",
        "ldm r11, {{r0, r12}}",
        "add r2, r1, r10",
        "add r3, r2, r10",
        "add r4, r3, r10",
        "mov r5, #0",
        "mov r6, #0",
        "mov r7, #0",
        "mov r8, #0",
        "adds r12, r0",
        "cmp r12, r0",
        "beq 3f",
        "2:",
        gathered!(all),
        "cmp r0, r12",
        "bne 2b",
        "ldr r11, [sp, #{args}]",
        "3: ldr r12, [r11, #{rest}]",
        "cmp r12, #0",
        "beq 4f",
        "30:",
        element!(),
        "subs r12, #1",
        "bne 30b",
        "ldr r11, [sp, #{args}]",
        // Behind the fourth row is the next block's first.
        "4: mov r1, r4",
        "ldrd r0, r9, [sp, #{output}]", // and record
        "ldr r10, [r11, #{to_bias}]",
        "ldrd r2, r3, [r11, #{low}]", // and high
        finish!("r5"),
        finish!("r6"),
        finish!("r7"),
        finish!("r8"),
        "strd r0, r9, [sp, #{output}]", // and record
        "ldr r4, [sp, #{left}]",
        "subs r4, #4",
        "bhs 1b",
        "5: adds r4, #4",
        "beq 9f",
        "str r4, [sp, #{left}]",
        "6: ldr r11, [sp, #{args}]",
        "ldm r11, {{r0, r12}}",
        "ldr r4, [r11, #{rest}]",
        "mov r5, #0",
        "adds r12, r0",
        "cmp r12, r0",
        "beq 8f",
        "7:",
        gathered!(),
        "cmp r0, r12",
        "bne 7b",
        "8: cbz r4, 80f",
        "81:",
        one!(),
        "subs r4, #1",
        "bne 81b",
        "80: ldrd r0, r9, [sp, #{output}]", // and record
        "ldr r11, [sp, #{args}]",
        "ldr r10, [r11, #{to_bias}]",
        "ldrd r2, r3, [r11, #{low}]", // and high
        finish!("r5"),
        "strd r0, r9, [sp, #{output}]", // and record
        "ldr r4, [sp, #{left}]",
        "subs r4, #1",
        "str r4, [sp, #{left}]",
        "bne 6b",
        "9: add sp, #16",
        "pop {{r4-r11, pc}}",
    )
}

/// Adds a line's products to four sums: four in seventeen instructions. `len` is not 0.
#[cfg(kernel_isa = "armv6m")]
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn line(x: *const i16, rows: *const *const i8, len: usize, sums: *mut i32) {
    naked!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r3-r7}}",
        "ldm r3!, {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        // The weights from their ends on, with an index from -len to 0.
        "rsbs r7, r2, #0",
        "mov r6, r2",
        "ldm r1!, {{r2-r5}}",
        "adds r1, r2, r6",
        "adds r2, r3, r6",
        "adds r3, r4, r6",
        "adds r4, r5, r6",
        "2: ldrh r6, [r0]",
        "sxth r6, r6",
        "adds r0, #2",
        "ldrsb r5, [r1, r7]",
        "muls r5, r6, r5",
        "add r8, r5",
        "ldrsb r5, [r2, r7]",
        "muls r5, r6, r5",
        "add r9, r5",
        "ldrsb r5, [r3, r7]",
        "muls r5, r6, r5",
        "add r10, r5",
        "ldrsb r5, [r4, r7]",
        "muls r5, r6, r5",
        "add r11, r5",
        "adds r7, #1",
        "bne 2b",
        "pop {{r3}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "stm r3!, {{r4-r7}}",
        "pop {{r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}
