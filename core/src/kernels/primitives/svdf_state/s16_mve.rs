//! [`super::s16`] on Helium: sums of all units of a block first, then their outputs by fours.

use core::mem::MaybeUninit;

use super::s16_args::{BLOCK, SvdfS16Args};

consecutive!(SvdfS16Args: state, weights, newest, bias, y, end, mantissa, places, zero, memory, rank);

/// Elements of a vector.
const LANES: usize = 8;

/// Whether the loops take memories of so many elements.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// # Safety
/// 1. `args` gives outputs and biases for each unit, a newest value for each filter, and `memory` elements of state and weights for each filter.
/// 2. There are at most [`BLOCK`] filters.
#[inline(always)]
pub(super) unsafe fn times(args: &SvdfS16Args) {
    let mut sums = MaybeUninit::<[i32; BLOCK]>::uninit();
    let sums = sums.as_mut_ptr().cast();
    // SAFETY: the contract guarantees the arrays that `args` gives, of at most `BLOCK` filters: `sums` has room for each, and is written before it is read.
    unsafe {
        if (args.rank, args.memory) == (1, LANES) {
            eights(args, sums);
        } else if args.memory.is_multiple_of(LANES) {
            vectors(args, sums, args.memory / LANES - 1);
        } else {
            any(args, sums);
        }
        outputs(args, sums);
    }
}

/// The last vector of a memory, whose last element is from r3: that in its place is the next filter's, or no one's, and not read. State r0, weights r2, sum
/// r4; the predicate leaves out the last element.
macro_rules! last {
    () => {
        concat!(
            "ldrh r6, [r3], #2\n",
            "vpst\n",
            "vldrht.u16 q0, [r0, #{next}]\n",
            "vldrh.u16 q1, [r2], #16\n",
            "vmov.16 q0[7], r6\n",
            "vmladava.s16 r4, q0, q1\n",
            "vstrh.16 q0, [r0], #16\n"
        )
    };
}

/// The sums of memories of a vector, a filter for each unit.
///
/// # Safety
/// `args` gives a filter of eight elements, its weights and its newest value for each output, of which there is one at least; `sums` takes as many.
#[unsafe(naked)]
unsafe extern "C" fn eights(args: &SvdfS16Args, sums: *mut i32) {
    naked!(SvdfS16Args { state, newest, y } =>
        ".cpu cortex-m55",
        "push {{r4-r8, lr}}",
        // State r0, sums r1, weights r2, newest r3, biases r8.
        "ldrd r6, r7, [r0, #{y}]", // end
        "subs r7, r7, r6",
        "ldrd r3, r8, [r0, #{newest}]", // bias
        "ldrd r0, r2, [r0, #{state}]", // weights
        "movs r5, #7",
        "vctp.16 r5",
        "dls lr, r7",
        "2: ldr r4, [r8], #4",
        last!(),
        "str r4, [r1], #4",
        "le lr, 2b",
        "pop {{r4-r8, pc}}";
        next = const 2,
    )
}

/// The same of whole vectors and any filters; `before` is how many there are of a memory before the last.
///
/// # Safety
/// `args` gives biases, newest values and memories for its outputs and filters, of which there is one at least; `sums` takes one for each output.
#[unsafe(naked)]
unsafe extern "C" fn vectors(args: &SvdfS16Args, sums: *mut i32, before: usize) {
    naked!(SvdfS16Args { state, newest, y, rank } =>
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        // As below; vectors before the last r5, the sums' end r10.
        "mov r5, r2",
        "ldrd r6, r7, [r0, #{y}]", // end
        "subs r7, r7, r6",
        "add r10, r1, r7, lsl #2",
        "ldr r11, [r0, #{rank}]",
        "ldrd r3, r8, [r0, #{newest}]", // bias
        "ldrd r0, r2, [r0, #{state}]", // weights
        "movs r6, #7",
        "vctp.16 r6",
        "1: ldr r4, [r8], #4",
        "mov r7, r11",
        "2: wls lr, r5, 4f",
        "3: vldrh.u16 q0, [r0, #{next}]",
        "vldrh.u16 q1, [r2], #16",
        "vstrh.16 q0, [r0], #16",
        "vmladava.s16 r4, q0, q1",
        "le lr, 3b",
        "4:",
        last!(),
        "subs r7, #1",
        "bne 2b",
        "str r4, [r1], #4",
        "cmp r1, r10",
        "bne 1b",
        "pop {{r4-r11, pc}}";
        next = const 2,
    )
}

/// The same of any memories and filters: all elements but the last by vectors, and that from the newest.
///
/// # Safety
/// `args` gives biases, newest values and memories for its outputs and filters, of which there is one at least; `sums` takes one for each output.
#[unsafe(naked)]
unsafe extern "C" fn any(args: &SvdfS16Args, sums: *mut i32) {
    naked!(SvdfS16Args { state, newest, y, memory } =>
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        // State r0, sums r1, weights r2, newest r3, elements but the last r5, filters left r7, biases r8, the sums' end r10, and r9 back from the
        // last vector to the next filter.
        "ldrd r6, r7, [r0, #{y}]", // end
        "subs r7, r7, r6",
        "add r10, r1, r7, lsl #2",
        "ldrd r5, r11, [r0, #{memory}]", // rank
        "subs r5, #1",
        "add r9, r5, #7",
        "bic r9, r9, #7",
        "sub r9, r5, r9",
        "lsl r9, r9, #1",
        "adds r9, #2",
        "ldrd r3, r8, [r0, #{newest}]", // bias
        "ldrd r0, r2, [r0, #{state}]", // weights
        "1: ldr r4, [r8], #4",
        "mov r7, r11",
        "2: wlstp.16 lr, r5, 4f",
        "3: vldrh.u16 q0, [r0, #{next}]",
        "vldrh.u16 q1, [r2], #16",
        "vstrh.16 q0, [r0], #16",
        "vmladava.s16 r4, q0, q1",
        "letp lr, 3b",
        "4: add r0, r9",
        "add r2, r9",
        "ldrsh r6, [r3], #2",
        "ldrsh r12, [r2, #{last}]",
        "strh r6, [r0, #{last}]",
        "mla r4, r6, r12, r4",
        "subs r7, #1",
        "bne 2b",
        "str r4, [r1], #4",
        "cmp r1, r10",
        "bne 1b",
        "pop {{r4-r11, pc}}";
        next = const 2, last = const -2,
    )
}

/// Outputs of sums of any size.
///
/// # Safety
/// `sums` has a sum for each output of `args`.
#[unsafe(naked)]
unsafe extern "C" fn outputs(args: &SvdfS16Args, sums: *const i32) {
    naked!(SvdfS16Args { y, mantissa, zero } =>
        ".cpu cortex-m55",
        "push {{r4-r6, lr}}",
        "ldrd r2, r3, [r0, #{y}]", // end
        "subs r3, r3, r2",
        "ldrd r4, r5, [r0, #{mantissa}]", // places
        "ldr r6, [r0, #{zero}]",
        // To the right by one more.
        "mvns r5, r5",
        "dlstp.32 lr, r3",
        "2: vldrw.u32 q0, [r1], #16",
        "vqrdmulh.s32 q0, q0, r4",
        // Ties away from zero: one less where negative.
        "vshr.s32 q1, q0, #31",
        "vadd.i32 q0, q0, q1",
        "vrshl.s32 q0, r5",
        "vadd.i32 q0, q0, r6",
        "vqmovnb.s32 q0, q0",
        "vqmovnb.s16 q0, q0",
        "vstrb.32 q0, [r2], #4",
        "letp lr, 2b",
        "pop {{r4-r6, pc}}",
    )
}
