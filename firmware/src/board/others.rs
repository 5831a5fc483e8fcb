//! Where the cores behind the first one begin, for the start-up code.

use core::sync::atomic::{AtomicUsize, Ordering};

use arenite::MAX_CORES;

/// The function that they call with their index, then the top of each core's stack, as the start-up code reads them.
pub(super) static BEGIN: [AtomicUsize; 1 + MAX_CORES] = [const { AtomicUsize::new(0) }; 1 + MAX_CORES];

/// Says so, before any of them is woken.
pub(super) fn begin(work: extern "C" fn(usize) -> !, tops: [usize; MAX_CORES]) {
    for (word, value) in BEGIN.iter().zip([work as usize].into_iter().chain(tops)) {
        word.store(value, Ordering::Release);
    }
}
