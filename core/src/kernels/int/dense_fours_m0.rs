//! Groups of four outputs of a fully connected layer for ARMv6-M, one behind the other: their sums stay in registers until they are outputs.

use super::dense_sums::{DOUBLED_AT, m0};
use super::record::{BLOCK, CONSTANT, GENERAL, Record, SINGLE};

/// Groups of one block. The loop reads the fields in this order, and counts on.
#[repr(C)]
pub(super) struct Groups {
    pub(super) words: *const i32,
    /// Past the inputs, and how many there are, with the sign changed.
    pub(super) end: *const i8,
    pub(super) minus_inputs: i32,
    pub(super) records: *const Record,
    pub(super) y: *mut i8,
    /// Not 0.
    pub(super) left: usize,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// What of a group's codes must be as expected.
    pub(super) mask: i32,
    pub(super) expected: i32,
    /// Where totals begin: a block's sum starts at 2^15, which is as often taken off.
    pub(super) start: i32,
}

impl Groups {
    /// For `inputs` from `x` on, and `left` groups of the block of this number, which has a loop here.
    #[inline(always)]
    pub(super) fn new(
        (words, x, inputs): (*const i32, *const i8, usize),
        (records, y, left): (*const Record, *mut i8, usize),
        twice: i32,
        number: u32,
    ) -> Self {
        // 15 less the block's power of two.
        let shift = match number {
            0 => 13,
            1 => 14,
            _ => 12,
        };
        let inputs = inputs as i32;
        Self {
            words,
            end: x.wrapping_add(inputs as usize),
            minus_inputs: inputs.wrapping_neg(),
            records,
            y,
            left,
            twice,
            mask: BLOCK | -1 << DOUBLED_AT | SINGLE | GENERAL | CONSTANT,
            expected: (number as i32) << 8,
            start: (inputs << shift).wrapping_neg(),
        }
    }

    /// Whether there is a loop for blocks of this number.
    #[inline(always)]
    pub(super) const fn takes(number: u32) -> bool {
        matches!(number, 0 | 1 | 3)
    }
}

/// As [`super::four`], of the sum in a register: r0 records, r7 output, r12 2^14, lr `twice`.
macro_rules! one {
    ($($i:literal $sum:literal)*) => {
        concat!($(
            "ldr r4, [r0, #12*", $i, "]\n", // bias
            "ldrh r5, [r0, #12*", $i, "+4]\n",
            "ldrh r2, [r0, #12*", $i, "+6]\n", // multiplier
            "ldr r6, [r0, #12*", $i, "+8]\n", // code
            "add r4, ", $sum, "\n",
            "sxth r3, r4\n",
            "subs r4, r4, r3\n",
            "asrs r4, r4, #16\n",
            "mov r1, r3\n",
            "muls r1, r5, r1\n",
            "asrs r1, r1, #16\n",
            "muls r3, r2, r3\n",
            "adds r1, r1, r3\n",
            "muls r5, r4, r5\n",
            "adds r1, r1, r5\n",
            "add r1, r12\n",
            "asrs r1, r1, #15\n",
            "muls r4, r2, r4\n",
            "lsls r4, r4, #1\n",
            "adds r1, r1, r4\n",
            "asrs r3, r1, #31\n",
            "adds r1, r1, r3\n",
            "mov r4, lr\n",
            "subs r5, r6, #1\n",
            "lsls r4, r5\n", // addend
            "adds r1, r1, r4\n",
            "asrs r1, r6\n",
            "sxtb r3, r1\n",
            "cmp r3, r1\n",
            "beq 8f\n",
            "asrs r3, r1, #31\n",
            "mvns r3, r3\n",
            "movs r1, #128\n",
            "eors r3, r1\n",
            "8: strb r3, [r7, #", $i, "]\n"
        ),*)
    };
}

/// Until none are left, or the codes of one are not as expected. Sums as in [`super::dense_sums`]; blocks of 2, 4, or 8 by the expected code.
///
/// # Safety
/// As many of each as there are groups, and of the inputs, which are not 0 and whole blocks.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn fours(groups: &mut Groups) {
    core::arch::naked_asm!(
        ".cpu cortex-m0",
        "push {{r4-r7, lr}}",
        "mov r4, r8",
        "mov r5, r9",
        "mov r6, r10",
        "mov r7, r11",
        "push {{r0, r4-r7}}",
        "ldr r4, [r0, #24]",
        "mov lr, r4",
        "1: ldr r7, [sp]",
        "ldr r0, [r7, #12]",
        "ldr r1, [r0, #8]",
        "ldr r2, [r0, #20]",
        "orrs r1, r2",
        "ldr r2, [r0, #32]",
        "orrs r1, r2",
        "ldr r2, [r0, #44]",
        "orrs r1, r2",
        "ldr r2, [r7, #28]",
        "ands r1, r2",
        "ldr r3, [r7, #32]",
        "cmp r1, r3",
        "beq 2f",
        "b 9f",
        "2: ldr r4, [r7, #36]",
        "mov r8, r4",
        "mov r10, r4",
        "movs r4, #0",
        "mov r9, r4",
        "mov r11, r4",
        "movs r4, #1",
        "lsls r4, r4, #15",
        "mov r12, r4",
        "ldr r0, [r7]",
        "ldr r2, [r7, #4]",
        "ldr r1, [r7, #8]",
        // 0 stands for blocks of 4, 0x100 for those of 2, 0x300 of 8.
        "cmp r3, #0",
        "beq 4f",
        "lsrs r3, r3, #9",
        "beq 3f",
        "5:",
        m0!(8),
        "cmp r1, #0",
        "bne 5b",
        "b 7f",
        "3:",
        m0!(2),
        "cmp r1, #0",
        "bne 3b",
        "b 7f",
        "4:",
        m0!(4),
        "cmp r1, #0",
        "bne 4b",
        "7: mov r1, r9",
        "lsls r1, r1, #16",
        "mov r4, r8",
        "subs r4, r4, r1",
        "mov r8, r4",
        "mov r1, r11",
        "lsls r1, r1, #16",
        "mov r4, r10",
        "subs r4, r4, r1",
        "mov r10, r4",
        "movs r1, #1",
        "lsls r1, r1, #14",
        "mov r12, r1",
        "ldr r7, [sp]",
        "str r0, [r7]",
        "ldr r0, [r7, #12]",
        "ldr r7, [r7, #16]",
        one!("0" "r8" "1" "r9" "2" "r10" "3" "r11"),
        "ldr r1, [sp]",
        "adds r0, #48",
        "adds r7, #4",
        "str r0, [r1, #12]",
        "str r7, [r1, #16]",
        "ldr r2, [r1, #20]",
        "subs r2, #1",
        "str r2, [r1, #20]",
        "beq 9f",
        "b 1b",
        "9: pop {{r0, r4-r7}}",
        "mov r8, r4",
        "mov r9, r5",
        "mov r10, r6",
        "mov r11, r7",
        "pop {{r4-r7, pc}}",
    )
}
