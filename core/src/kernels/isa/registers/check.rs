//! A check of the calling convention (feature `testkit-registers`): every naked function leaves the registers that belong to its caller, and
//! the stack pointer, as they were.
//!
//! `naked!` begins each function with a call of [`enter`]. This keeps the caller's registers in a frame beside the stack, gives each register a value of its
//! own, and lets the function return to `leave`, which compares them, notes those that changed, and restores the caller's. Arguments and results are
//! untouched, those on the stack as well.

use core::cell::UnsafeCell;

use super::Unsaved;

#[cfg(target_arch = "aarch64")]
#[macro_use]
mod aarch64;
#[cfg(target_arch = "arm")]
#[macro_use]
mod cortex_m;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
#[macro_use]
mod riscv;

#[cfg(target_arch = "aarch64")]
use aarch64::{REGISTERS, SP};
#[cfg(target_arch = "arm")]
use cortex_m::{REGISTERS, SP};
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
use riscv::{REGISTERS, SP};

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::enter;
#[cfg(target_arch = "arm")]
pub(crate) use cortex_m::enter;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
pub(crate) use riscv::enter;

/// The first function since the last call that did not restore a register.
pub(super) fn take() -> Option<Unsaved> {
    // SAFETY: no naked function is under way, and nothing else writes to it.
    unsafe { (*FOUND.0.get()).take() }
}

/// Naked functions under way at a time: one that calls Rust may have another one called.
const DEPTH: usize = 8;

/// Registers of a frame.
const SAVED: usize = REGISTERS.len();

/// A function that is under way. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[repr(C)]
struct Frame {
    /// The caller's registers, in the order of [`REGISTERS`].
    own: [usize; SAVED],
    /// The function's return address.
    back: usize,
    /// The address behind the function's call of [`enter`].
    function: usize,
    /// The registers at the function's end, in the same order.
    left: [usize; SAVED],
}

/// Memory of one core.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);
// SAFETY: the test kit runs kernels on one core, and none in an interrupt.
unsafe impl<T> Sync for Shared<T> {}

static FOUND: Shared<Option<Unsaved>> = Shared(UnsafeCell::new(None));
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
static NEXT: Shared<*mut Frame> = Shared(UnsafeCell::new(FRAMES.0.get().cast()));

/// Values of the registers while a function runs; that of the stack pointer is not used.
static PATTERNS: [usize; SAVED] = {
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
unsafe extern "C" fn compare(frame: *const Frame) {
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
        found.get_or_insert(Unsaved {
            registers,
            function: frame.function,
        });
    }
}
