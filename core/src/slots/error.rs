//! Errors of an update.

#[cfg(feature = "error-text")]
use core::fmt;

use embedded_storage::nor_flash::{NorFlashError, NorFlashErrorKind};

use crate::error::LoadError;
use crate::self_test::SelfTestError;
#[cfg(feature = "verify")]
use crate::verify::VerifyError;

/// Why slots, or an update of them, are refused.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SlotError {
    /// The layout is not one of this flash: ranges that overlap, are not of whole sectors or lie outside, a journal of an odd number of sectors, or no
    /// trials.
    Layout,
    /// The flash refused to read, write or erase.
    Flash(NorFlashErrorKind),
    /// Neither slot holds a model that loads.
    Empty,
    /// The model that is in use is on trial: the other slot holds the one to go back to.
    OnTrial,
    /// The file is larger than a slot.
    TooLarge {
        /// Its length.
        length: u32,
        /// The slot's.
        slot: u32,
    },
    /// Other than the stated number of bytes were written.
    Length {
        /// As stated.
        stated: u32,
        /// As written.
        written: u32,
    },
    /// Another update, or a start, came in between, or the flash failed at a piece.
    Stale,
    /// The written file does not load.
    Load(LoadError),
    /// The written file does not pass its self-test.
    SelfTest(SelfTestError),
    /// The written file fails the verification of its signature.
    #[cfg(feature = "verify")]
    Verify(VerifyError),
}

impl SlotError {
    /// Error of a flash driver.
    pub(super) fn of(error: impl NorFlashError) -> Self {
        Self::Flash(error.kind())
    }
}

impl From<LoadError> for SlotError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

#[cfg(feature = "error-text")]
impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotError::Layout => write!(
                f,
                "the layout does not fit the flash: slots and journal are whole sectors of it, apart from each other, the journal an even number of them, \
                 and a model has 1 to 254 trials"
            ),
            SlotError::Flash(kind) => write!(f, "the flash: {kind}"),
            SlotError::Empty => write!(f, "neither slot holds a model that loads"),
            SlotError::OnTrial => write!(f, "the model is on trial: confirm it or roll it back first"),
            SlotError::TooLarge { length, slot } => write!(f, "the file has {length} bytes, a slot {slot}"),
            SlotError::Length { stated, written } => {
                write!(f, "{written} bytes were written of a file of {stated}")
            }
            SlotError::Stale => write!(
                f,
                "another update or a start came in between, or the flash failed: begin anew"
            ),
            SlotError::Load(error) => write!(f, "the file in the slot: {error}"),
            SlotError::SelfTest(error) => write!(f, "the self-test of the file in the slot: {error}"),
            #[cfg(feature = "verify")]
            SlotError::Verify(error) => write!(f, "the file in the slot: {error}"),
        }
    }
}

impl core::error::Error for SlotError {}
