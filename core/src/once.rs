//! Memory that is handed out once: a static of the user's crate becomes exclusive memory without `unsafe` in that crate.
//!
//! Taking it must win a race against interrupts and other cores, so a core without compare-and-swap (Cortex-M0, RISC-V without the A extension) needs one of
//! the features `critical-section` and `portable-atomic`.
// With `cells` and the kernels the only place with `unsafe`.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;

/// A value in a static that can be taken once.
///
/// ```
/// static BUFFER: arenite::Once<[u8; 64]> = arenite::Once::new([0; 64]);
///
/// let buffer: &'static mut [u8; 64] = BUFFER.take().expect("nobody took it");
/// buffer[0] = 1;
/// assert!(BUFFER.take().is_none());
/// ```
#[derive(Debug)]
pub struct Once<T> {
    value: UnsafeCell<T>,
    taken: Flag,
}

// SAFETY: the value is reached only by the one who takes it, who may be in another context than the static's maker: hence `Send`.
unsafe impl<T: Send> Sync for Once<T> {}

impl<T> Once<T> {
    /// A value that nobody has taken.
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            taken: Flag::new(),
        }
    }

    /// The value; `None` for all but the first who ask.
    #[expect(clippy::mut_from_ref, reason = "it is given once")]
    pub fn take(&'static self) -> Option<&'static mut T>
    where
        for<'a> ThisCore: TakesOnce<'a>,
    {
        if self.taken.set() {
            return None;
        }
        // SAFETY: `set` gives false once, so this is the only reference, now and later.
        Some(unsafe { &mut *self.value.get() })
    }
}

/// The core that the program is built for.
#[derive(Debug)]
pub struct ThisCore;

/// Marker of builds that can hand something out once. The lifetime says nothing: it lets a program that never asks compile for a core that cannot.
#[diagnostic::on_unimplemented(
    message = "this core has no compare-and-swap, so memory cannot be taken once without help",
    label = "takes the module's own static memory",
    note = "turn on arenite's feature `critical-section` (where a HAL or `cortex-m` provides one) or `portable-atomic`: see docs/features.md",
    note = "or pass memory of your own: `open(&mut memory)`"
)]
pub trait TakesOnce<'a> {}

#[cfg(any(target_has_atomic = "8", feature = "portable-atomic", feature = "critical-section"))]
impl TakesOnce<'_> for ThisCore {}

#[cfg(any(target_has_atomic = "8", feature = "portable-atomic"))]
mod flag {
    use core::sync::atomic::Ordering;

    #[cfg(target_has_atomic = "8")]
    use core::sync::atomic::AtomicBool;
    #[cfg(not(target_has_atomic = "8"))]
    use portable_atomic::AtomicBool;

    /// Is set once.
    #[derive(Debug)]
    pub(super) struct Flag(AtomicBool);

    impl Flag {
        pub(super) const fn new() -> Self {
            Self(AtomicBool::new(false))
        }

        /// Sets it; whether it was set before.
        pub(super) fn set(&self) -> bool {
            self.0.swap(true, Ordering::AcqRel)
        }
    }
}

#[cfg(not(any(target_has_atomic = "8", feature = "portable-atomic")))]
mod flag {
    use core::cell::UnsafeCell;

    /// Is set once.
    #[derive(Debug)]
    pub(super) struct Flag(UnsafeCell<bool>);

    impl Flag {
        pub(super) const fn new() -> Self {
            Self(UnsafeCell::new(false))
        }

        /// Sets it; whether it was set before.
        #[cfg(feature = "critical-section")]
        pub(super) fn set(&self) -> bool {
            // SAFETY: nothing else runs in a critical section, and nothing reaches the flag outside of one.
            critical_section::with(|_| unsafe { self.0.get().replace(true) })
        }

        /// Without help there is no way; `TakesOnce` keeps programs from asking.
        #[cfg(not(feature = "critical-section"))]
        pub(super) fn set(&self) -> bool {
            let _ = &self.0;
            true
        }
    }
}

use flag::Flag;

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn one_of_many_threads_takes_it() {
        for _ in 0..50 {
            let once: &'static Once<u32> = std::boxed::Box::leak(std::boxed::Box::new(Once::new(7)));
            let threads = [(); 8].map(|()| std::thread::spawn(move || once.take().map(|value| *value)));
            let taken = threads.map(|thread| thread.join().expect("no panic"));
            assert_eq!(taken.iter().flatten().collect::<std::vec::Vec<_>>(), [&7]);
        }
    }
}
