//! Copies: segments, and windows of an image as rows of a matrix.

use super::super::args::{Clipped, Copy, Windows};

consecutive!(Copy: src, src_step, dst, dst_step, bytes, count, rows, src_row, dst_row);
consecutive!(Windows: src, row, step, dst, run, stride, rows, count);
consecutive!(Clipped: src, row, dst, run, above, rows, below, mask, padding, step, stride, count);

/// `bytes` times `value`, none allowed.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn fill(dst: *mut i8, value: i32, bytes: usize) {
    naked!(
        ".cpu cortex-m55",
        "push {{r7, lr}}",
        "vdup.8 q0, r1",
        "wlstp.8 lr, r2, 3f",
        "2: vstrb.8 q0, [r0], #16",
        "letp lr, 2b",
        "3: pop {{r7, pc}}",
    )
}

/// Copies segments, byte for byte: 6 instructions for a segment of at most 16 bytes, else 7 and 3 for each 16. At least one row of one
/// segment of one byte.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn copy(args: *const Copy) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        // r1 source, r2 its step, r3 destination, r4 its step, r5 bytes, r6 count, r7 rows, r8 and r9 from row to row.
        "ldm r0, {{r1-r9}}",
        "cmp r5, #16",
        "bhi 4f",
        "vctp.8 r5",
        "2: mov r10, r1",
        "mov r11, r3",
        "dls lr, r6",
        "3: vpstt",
        "vldrbt.u8 q0, [r10]",
        "vstrbt.8 q0, [r11]",
        "add r10, r2",
        "add r11, r4",
        "le lr, 3b",
        "add r1, r8",
        "add r3, r9",
        "subs r7, #1",
        "bne 2b",
        "pop {{r4-r11, pc}}",
        // The pointers have come `count` steps when a row is done.
        "4: mls r8, r6, r2, r8",
        "mls r9, r6, r4, r9",
        "5: mov r12, r6",
        "6: mov r10, r1",
        "mov r11, r3",
        "dlstp.8 lr, r5",
        "7: vldrb.u8 q0, [r10], #16",
        "vstrb.8 q0, [r11], #16",
        "letp lr, 7b",
        "add r1, r2",
        "add r3, r4",
        "subs r12, #1",
        "bne 6b",
        "add r1, r8",
        "add r3, r9",
        "subs r7, #1",
        "bne 5b",
        "pop {{r4-r11, pc}}",
    )
}

/// Windows of three rows of at most 16 bytes: 13 a window.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn windows_of_three_short_rows(args: *const Windows) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "ldm r0, {{r1-r8}}",
        "add r9, r1, r2",
        "add r10, r9, r2",
        "add r11, r4, r5",
        "add r12, r11, r5",
        "dls lr, r8",
        // A row's surplus bytes are overwritten by the next row, so the stores keep their order.
        "2: vldrb.u8 q0, [r1]",
        "add r1, r3",
        "vldrb.u8 q1, [r9]",
        "add r9, r3",
        "vldrb.u8 q2, [r10]",
        "add r10, r3",
        "vstrb.8 q0, [r4]",
        "add r4, r6",
        "vstrb.8 q1, [r11]",
        "add r11, r6",
        "vstrb.8 q2, [r12]",
        "add r12, r6",
        "le lr, 2b",
        "pop {{r4-r11, pc}}",
    )
}

/// Windows of any number of rows of at most 16 bytes: 5 a row and 7 a window.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn windows_of_short_rows(args: *const Windows) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "ldm r0, {{r1-r8}}",
        "2: mov r0, r1",
        "mov r9, r4",
        "dls lr, r7",
        "3: vldrb.u8 q0, [r0]",
        "add r0, r2",
        "vstrb.8 q0, [r9]",
        "add r9, r5",
        "le lr, 3b",
        "add r1, r3",
        "add r4, r6",
        "subs r8, #1",
        "bne 2b",
        "pop {{r4-r11, pc}}",
    )
}

/// Windows that reach beyond the image: 7 a row of it, 3 a row of padding, 9 a window.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn clipped_windows(args: *const Clipped) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "ldm r0, {{r1-r12}}",
        "vdup.8 q1, r9",
        "vmsr p0, r8",
        "2: mov r0, r1",
        "mov r9, r3",
        "wls lr, r5, 4f",
        "3: vstrb.8 q1, [r9]",
        "add r9, r4",
        "le lr, 3b",
        "4: wls lr, r6, 6f",
        // Masked bytes are not read.
        "5: vpst",
        "vldrbt.u8 q0, [r0]",
        "vpsel q0, q0, q1",
        "vstrb.8 q0, [r9]",
        "add r0, r2",
        "add r9, r4",
        "le lr, 5b",
        "6: wls lr, r7, 8f",
        "7: vstrb.8 q1, [r9]",
        "add r9, r4",
        "le lr, 7b",
        "8: add r1, r10",
        "add r3, r11",
        "subs r12, #1",
        "bne 2b",
        "pop {{r4-r11, pc}}",
    )
}

/// Windows of any rows: 3 for 16 bytes, 6 a row, 7 a window.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn windows_of_rows(args: *const Windows) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "ldm r0, {{r1-r8}}",
        "add r9, r5, #15",
        "lsr r9, r9, #4",
        "sub r2, r2, r9, lsl #4",
        "sub r10, r5, r9, lsl #4",
        "2: mov r0, r1",
        "mov r12, r4",
        "mov r11, r7",
        "3: dls lr, r9",
        "4: vldrb.u8 q0, [r0], #16",
        "vstrb.8 q0, [r12], #16",
        "le lr, 4b",
        "add r0, r2",
        "add r12, r10",
        "subs r11, #1",
        "bne 3b",
        "add r1, r3",
        "add r4, r6",
        "subs r8, #1",
        "bne 2b",
        "pop {{r4-r11, pc}}",
    )
}
