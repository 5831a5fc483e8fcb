//! Rows of f32 times rows of weights as they are; see [`crate::kernels::mve::linear_f32`]. Sums are fused, and of four lanes: results differ from the scalar
//! kernel's in the last bits.

use super::super::args::LinearF32;

consecutive!(LinearF32: x, weights, stride, inputs, bias, out, groups);

/// One row by four outputs at a time: 10 instructions for 16 products, 31 besides for four outputs.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn row_f32(args: *const LinearF32) {
    naked!(LinearF32 { x, limits, limited } =>
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "vpush {{d8-d11}}",
        "sub sp, #68",
        "mov r12, r0",
        // r5: the four's first row of weights, and r6 bytes to the next; r7: inputs; r8: biases; r9: outputs; r10: fours.
        "ldm r0, {{r4-r10}}",
        "2: ldr r0, [r12, #{x}]",
        "mov r1, r5",
        "add r2, r1, r6",
        "add r3, r2, r6",
        "add r4, r3, r6",
        "add r5, r4, r6",
        "vmov.i32 q0, #0",
        "vmov.i32 q1, #0",
        "vmov.i32 q2, #0",
        "vmov.i32 q3, #0",
        "wlstp.32 lr, r7, 4f",
        "3: vldrw.u32 q4, [r0], #16",
        "vldrw.u32 q5, [r1], #16",
        "vfma.f32 q0, q4, q5",
        "vldrw.u32 q5, [r2], #16",
        "vfma.f32 q1, q4, q5",
        "vldrw.u32 q5, [r3], #16",
        "vfma.f32 q2, q4, q5",
        "vldrw.u32 q5, [r4], #16",
        "vfma.f32 q3, q4, q5",
        "letp lr, 3b",
        // Lanes of a sum become neighbours of the other sums' lanes.
        "4: mov r0, sp",
        "vst40.32 {{q0, q1, q2, q3}}, [r0]",
        "vst41.32 {{q0, q1, q2, q3}}, [r0]",
        "vst42.32 {{q0, q1, q2, q3}}, [r0]",
        "vst43.32 {{q0, q1, q2, q3}}, [r0]",
        "vldrw.u32 q0, [r0]",
        "vldrw.u32 q1, [r0, #{second}]",
        "vldrw.u32 q2, [r0, #{third}]",
        "vldrw.u32 q3, [r0, #{fourth}]",
        "vadd.f32 q0, q0, q1",
        "vadd.f32 q2, q2, q3",
        "vldrw.u32 q1, [r8], #16",
        "vadd.f32 q0, q0, q2",
        "vadd.f32 q0, q0, q1",
        "ldr r0, [r12, #{limited}]",
        "cbz r0, 5f",
        "ldrd r0, r1, [r12, #{limits}]",
        "vdup.32 q1, r0",
        "vdup.32 q2, r1",
        // A lane that is no number is not equal to itself, and stays.
        "vptt.f32 eq, q0, q0",
        "vmaxnmt.f32 q0, q0, q1",
        "vminnmt.f32 q0, q0, q2",
        "5: vstrw.32 q0, [r9], #16",
        "subs r10, #1",
        "bne 2b",
        "add sp, #68",
        "vpop {{d8-d11}}",
        "pop {{r4-r11, pc}}";
        second = const 16, third = const 32, fourth = const 48,
    )
}
