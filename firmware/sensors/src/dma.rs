//! A DMA that fills one half of a buffer while the program takes the other.

use core::convert::Infallible;
use core::sync::atomic::{AtomicI16, AtomicU32, Ordering, fence};

use crate::samples::{Samples, SamplesError};

/// Two halves of `N` samples that a DMA fills in a circle, in a static. Its interrupt handler says when a half is full, and a [`Reader`] takes it.
///
/// All of it is loads and stores: cores without compare-and-swap have them. With a data cache (Cortex-M7) the static lies in memory that is not cached.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct DoubleBuffer<const N: usize> {
    halves: [[AtomicI16; N]; 2],
    /// Samples that each was given.
    lengths: [AtomicU32; 2],
    /// Halves that were filled since the start; it wraps.
    done: AtomicU32,
}

impl<const N: usize> DoubleBuffer<N> {
    /// Of zeros.
    pub const fn new() -> Self {
        Self {
            halves: [const { [const { AtomicI16::new(0) }; N] }; 2],
            lengths: [const { AtomicU32::new(0) }; 2],
            done: AtomicU32::new(0),
        }
    }

    /// Where the DMA writes `2 * N` samples in a circle, from the first half's first.
    pub const fn address(&'static self) -> *mut i16 {
        // Atomics may be written through a shared borrow.
        (&raw const self.halves).cast::<i16>().cast_mut()
    }

    /// For the interrupt handler, and nothing else: the next half is done, with this many samples. Fewer than `N` where the transfer ended early.
    ///
    /// It comes before the DMA has the next sample: by then a [`Reader`] must know that the half which it may be copying is no longer its own.
    pub fn half_done(&self, samples: usize) {
        let done = self.done.load(Ordering::Relaxed);
        let [first, second] = &self.lengths;
        let length = if done.is_multiple_of(2) { first } else { second };
        length.store(u32::try_from(samples).unwrap_or(u32::MAX), Ordering::Relaxed);
        // Written by one context alone, so no exchange is needed.
        self.done.store(done.wrapping_add(1), Ordering::Release);
        // Who sees a sample of what follows sees this count as well.
        fence(Ordering::Release);
    }

    /// Writes samples into the half that is next, and says that it is done: for an interrupt handler that is the DMA itself.
    pub fn fill(&self, samples: &[i16]) {
        let [first, second] = &self.halves;
        let half = if self.done.load(Ordering::Relaxed).is_multiple_of(2) {
            first
        } else {
            second
        };
        half.iter()
            .zip(samples)
            .for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        self.half_done(samples.len());
    }

    /// Takes blocks from now on.
    pub fn reader(&self) -> Reader<'_, N> {
        Reader {
            buffer: self,
            taken: self.done.load(Ordering::Acquire),
        }
    }

    /// Takes blocks from the DMA's start on.
    pub const fn reader_from_start(&self) -> Reader<'_, N> {
        Reader { buffer: self, taken: 0 }
    }
}

impl<const N: usize> Default for DoubleBuffer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes blocks of `N` samples from a [`DoubleBuffer`].
#[derive(Debug)]
pub struct Reader<'b, const N: usize> {
    buffer: &'b DoubleBuffer<N>,
    taken: u32,
}

impl<const N: usize> Reader<'_, N> {
    /// Halves that are done and not taken.
    fn waiting(&self) -> u32 {
        self.buffer.done.load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    /// Goes on with the half that was done last, if others were before it.
    fn late(&mut self, waiting: u32) -> Result<bool, SamplesError<Infallible>> {
        let halves = waiting.saturating_sub(1);
        self.taken = self.taken.wrapping_add(halves);
        let lost = halves.saturating_mul(u32::try_from(N).unwrap_or(u32::MAX));
        Err(SamplesError::Late { lost })
    }
}

impl<const N: usize> Samples for Reader<'_, N> {
    type Error = Infallible;

    /// The half that was filled last. While it is copied the DMA fills the other one; where that took so long that the DMA is back, the block is late.
    fn poll(&mut self, block: &mut [i16]) -> Result<bool, SamplesError<Infallible>> {
        match self.waiting() {
            0 => return Ok(false),
            1 => {}
            // The DMA is writing to the half that is next.
            waiting => return self.late(waiting),
        }
        let [first, second] = &self.buffer.halves;
        let [first_length, second_length] = &self.buffer.lengths;
        let (half, length) = if self.taken.is_multiple_of(2) {
            (first, first_length)
        } else {
            (second, second_length)
        };
        let got = usize::try_from(length.load(Ordering::Relaxed))
            .unwrap_or(usize::MAX)
            .min(N);
        let expected = block.len();
        if got < N || expected != N {
            self.taken = self.taken.wrapping_add(1);
            return Err(SamplesError::Short { got, expected });
        }
        block
            .iter_mut()
            .zip(half)
            .for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        match self.waiting() {
            1 => {
                self.taken = self.taken.wrapping_add(1);
                Ok(true)
            }
            waiting => self.late(waiting),
        }
    }
}
