//! Copies: segments, and windows of an image as rows of a matrix.

use super::super::args::{Copy, Windows};

/// `bytes` times `value`, none allowed.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn fill(dst: *mut i8, value: i32, bytes: usize) {
    naked!(
        ".arch armv8-a",
        "dup     v0.16b, w1",
        "cmp     x2, #16",
        "b.lo    5f",
        "mov     v1.16b, v0.16b",
        "mov     v2.16b, v0.16b",
        "mov     v3.16b, v0.16b",
        "add     x3, x0, x2",
        "sub     x3, x3, #16",
        "lsr     x4, x2, #6",
        "cbz     x4, 3f",
        "2: st1  {{v0.16b-v3.16b}}, [x0], #64",
        "subs    x4, x4, #1",
        "b.ne    2b",
        "3: ubfx x4, x2, #4, #2",
        "cbz     x4, 5f",
        "4: st1  {{v0.16b}}, [x0], #16",
        "subs    x4, x4, #1",
        "b.ne    4b",
        // The last 16 bytes, over those before.
        "st1     {{v0.16b}}, [x3]",
        "ret",
        // At most 15 bytes, or whole blocks of 64 and less than 16 more.
        "5: ands x2, x2, #15",
        "b.eq    7f",
        "6: strb w1, [x0], #1",
        "subs    x2, x2, #1",
        "b.ne    6b",
        "7: ret",
    )
}

/// Copies segments, byte for byte: for a segment of 16 bytes or more 7, 4 for each 16, and 2; else 5 a byte.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn copy(args: *const Copy) {
    naked!(
        Copy { src, dst, bytes } =>
        ".arch armv8-a",
        // x1 source, x2 its step, x3 destination, x4 its step, x5 bytes, x6 segments.
        "ldp     x1, x2, [x0, #{src}]", // and src_step
        "ldp     x3, x4, [x0, #{dst}]", // and dst_step
        "ldp     x5, x6, [x0, #{bytes}]", // and count
        "cmp     x5, #16",
        "b.lo    5f",
        "sub     x7, x5, #16",
        "2: lsr  x8, x5, #4",
        "mov     x9, x1",
        "mov     x10, x3",
        "3: ld1  {{v0.16b}}, [x9], #16",
        "subs    x8, x8, #1",
        "st1     {{v0.16b}}, [x10], #16",
        "b.ne    3b",
        // The last 16 bytes, over those before.
        "add     x9, x1, x7",
        "add     x10, x3, x7",
        "ld1     {{v0.16b}}, [x9]",
        "st1     {{v0.16b}}, [x10]",
        "add     x1, x1, x2",
        "add     x3, x3, x4",
        "subs    x6, x6, #1",
        "b.ne    2b",
        "ret",
        "5: mov  x8, #0",
        "6: ldrb w9, [x1, x8]",
        "strb    w9, [x3, x8]",
        "add     x8, x8, #1",
        "cmp     x8, x5",
        "b.ne    6b",
        "add     x1, x1, x2",
        "add     x3, x3, x4",
        "subs    x6, x6, #1",
        "b.ne    5b",
        "ret",
    )
}

/// Copies windows: for rows of at most 16 bytes 4 a row and 7 a window; else for each row 9, 4 for each 64 bytes and 4 for each 16 of the rest.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn windows(args: *const Windows) {
    naked!(
        Windows { src, step, run, rows } =>
        ".arch armv8-a",
        // x1 source, x2 from row to row, x3 from window to window, x4 destination, x5 bytes of a row, x6 from copy to copy, x7 rows, x8 windows.
        "ldp     x1, x2, [x0, #{src}]", // and row
        "ldp     x3, x4, [x0, #{step}]", // and dst
        "ldp     x5, x6, [x0, #{run}]", // and stride
        "ldp     x7, x8, [x0, #{rows}]", // and count
        "cmp     x5, #16",
        "b.ls    7f",
        "lsr     x9, x5, #6",
        "and     x10, x5, #63",
        "add     x10, x10, #15",
        "lsr     x10, x10, #4",
        "2: mov  x11, x1",
        "mov     x12, x4",
        "mov     x13, x7",
        "3: mov  x14, x11",
        "mov     x15, x12",
        "mov     x16, x9",
        "cbz     x16, 5f",
        "4: ld1  {{v0.16b-v3.16b}}, [x14], #64",
        "subs    x16, x16, #1",
        "st1     {{v0.16b-v3.16b}}, [x15], #64",
        "b.ne    4b",
        "cbz     x10, 6f",
        "5: mov  x16, x10",
        "51: ld1 {{v0.16b}}, [x14], #16",
        "subs    x16, x16, #1",
        "st1     {{v0.16b}}, [x15], #16",
        "b.ne    51b",
        "6: add  x11, x11, x2",
        "add     x12, x12, x5",
        "subs    x13, x13, #1",
        "b.ne    3b",
        "add     x1, x1, x3",
        "add     x4, x4, x6",
        "subs    x8, x8, #1",
        "b.ne    2b",
        "ret",
        "7: mov  x11, x1",
        "mov     x12, x4",
        "mov     x13, x7",
        "8: ld1  {{v0.16b}}, [x11], x2",
        "subs    x13, x13, #1",
        "st1     {{v0.16b}}, [x12], x5",
        "b.ne    8b",
        "add     x1, x1, x3",
        "add     x4, x4, x6",
        "subs    x8, x8, #1",
        "b.ne    7b",
        "ret",
    )
}
