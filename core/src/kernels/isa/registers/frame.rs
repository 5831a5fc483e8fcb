//! The registers of a function's caller beside the stack, and what the function left of them.

use core::cell::UnsafeCell;

/// Bits of the registers in the order of a frame: r8 to r11, r4 to r7, the stack pointer.
#[cfg(all(target_arch = "arm", not(kernel_isa = "fpu")))]
const REGISTERS: [u8; 9] = [8, 9, 10, 11, 4, 5, 6, 7, SP];
/// Bits of the registers in the order of a frame: those, then s16 to s31.
#[cfg(all(target_arch = "arm", kernel_isa = "fpu"))]
const REGISTERS: [u8; 25] = [
    8, 9, 10, 11, 4, 5, 6, 7, SP, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
];
#[cfg(target_arch = "arm")]
const SP: u8 = 13;

/// Bits of the registers in the order of a frame: s0 to s11, the stack pointer.
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
const REGISTERS: [u8; 13] = [8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, SP];
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
const SP: u8 = 2;

/// Bits of the registers in the order of a frame: x19 to x29, the stack pointer, d8 to d15.
#[cfg(target_arch = "aarch64")]
const REGISTERS: [u8; 20] = [
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, SP, 8, 9, 10, 11, 12, 13, 14, 15,
];
#[cfg(target_arch = "aarch64")]
const SP: u8 = 31;

/// The first function since the last call that did not restore a register: a bit for each register, and an address in the function.
pub(super) fn take() -> Option<(u32, usize)> {
    // SAFETY: no naked function is under way, and nothing else writes to it.
    unsafe { (*FOUND.0.get()).take() }
}

/// Naked functions under way at a time: one that calls Rust may have another one called.
const DEPTH: usize = 8;

/// Registers of a frame.
const SAVED: usize = REGISTERS.len();

/// A function that is under way. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[repr(C)]
pub(super) struct Frame {
    /// The caller's registers, in the order of [`REGISTERS`].
    pub(super) own: [usize; SAVED],
    /// The function's return address.
    pub(super) back: usize,
    /// The address behind the function's call of [`enter`].
    pub(super) function: usize,
    /// The registers at the function's end, in the same order.
    pub(super) left: [usize; SAVED],
}

/// Memory of one core.
#[repr(transparent)]
pub(super) struct Shared<T>(UnsafeCell<T>);
// SAFETY: the test kit runs kernels on one core, and none in an interrupt.
unsafe impl<T> Sync for Shared<T> {}

static FOUND: Shared<Option<(u32, usize)>> = Shared(UnsafeCell::new(None));
static FRAMES: Shared<[Frame; DEPTH]> = Shared(UnsafeCell::new(
    [const {
        Frame {
            own: [0; SAVED],
            back: 0,
            function: 0,
            left: [0; SAVED],
        }
    }; DEPTH],
));
/// The next function's frame.
pub(super) static NEXT: Shared<*mut Frame> = Shared(UnsafeCell::new(FRAMES.0.get().cast()));

/// Values of the registers while a function runs; that of the stack pointer is not used.
pub(super) static PATTERNS: [usize; SAVED] = {
    let mut patterns = [0; SAVED];
    let mut at = 0;
    while at < SAVED {
        patterns[at] = 0x5A3C_0F00 + at;
        at += 1;
    }
    patterns
};

/// Notes what differs at a function's end, unless an earlier function's is noted.
///
/// # Safety
/// `frame` is that of the function, with what it left.
pub(super) unsafe extern "C" fn compare(frame: *const Frame) {
    // SAFETY: a frame of this module (fn docs), and memory of one core.
    let (frame, found) = unsafe { (&*frame, &mut *FOUND.0.get()) };
    let mut registers = 0;
    for (bit, ((own, left), pattern)) in REGISTERS.iter().zip(frame.own.iter().zip(&frame.left).zip(&PATTERNS)) {
        let expected = if *bit == SP { own } else { pattern };
        if left != expected {
            registers |= 1 << bit;
        }
    }
    if registers != 0 {
        found.get_or_insert((registers, frame.function));
    }
}
