//! Sources of samples.

use core::error::Error;
use core::fmt;

/// A source of samples in blocks.
pub trait Samples {
    /// Error of the device.
    type Error;

    /// Fills `block` with the next samples once there are as many; `false` where there are not yet. It does not wait.
    ///
    /// # Errors
    /// [`SamplesError`]. `block` then holds nothing of use, and the next call goes on with what comes later: between the two there is a gap.
    fn poll(&mut self, block: &mut [i16]) -> Result<bool, SamplesError<Self::Error>>;
}

/// Why there is no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplesError<E> {
    /// The program came too late: at least so many samples are lost.
    Late {
        /// Samples that nobody will see.
        lost: u32,
    },
    /// The source gave fewer samples than the block wants.
    Short {
        /// Samples of the source.
        got: usize,
        /// Samples of the block.
        expected: usize,
    },
    /// The device, or the way to it.
    Device(E),
}

impl<E: fmt::Display> fmt::Display for SamplesError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { lost } => write!(
                f,
                "{lost} samples or more were lost: take blocks more often, or longer ones"
            ),
            Self::Short { got, expected } => write!(f, "a block of {got} samples, expected {expected}"),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for SamplesError<E> {}
