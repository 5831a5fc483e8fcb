//! Slots in a flash that the core does not see as memory. Feature `slots`.

use arenite::slots::MappedFlash;
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

/// A flash with a copy in memory of the range where the slots lie: models are loaded and run in the copy. After each write and erase it is read again, so that
/// it is the flash's content that is checked and tested, and never what was to be written.
#[derive(Debug)]
pub struct Shadow<'m, F> {
    flash: F,
    start: u32,
    copy: &'m mut [u8],
}

impl<'m, F: NorFlash> Shadow<'m, F> {
    /// Reads as many bytes as `copy` has, from `start` on: both slots, whose first bytes have to come to lie at multiples of 16. The journal needs no copy.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn open(mut flash: F, start: u32, copy: &'m mut [u8]) -> Result<Self, F::Error> {
        flash.read(start, copy)?;
        Ok(Self { flash, start, copy })
    }

    /// The flash.
    pub fn flash(&mut self) -> &mut F {
        &mut self.flash
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.flash
    }

    /// Reads again what the copy has of these bytes.
    fn refresh(&mut self, from: u32, to: u32) -> Result<(), F::Error> {
        let from = from.max(self.start);
        let place = |offset: u32| offset.saturating_sub(self.start) as usize;
        let (first, end) = (place(from), place(to).min(self.copy.len()));
        match self.copy.get_mut(first..end) {
            Some(copy) if !copy.is_empty() => self.flash.read(from, copy),
            _ => Ok(()),
        }
    }
}

impl<F: NorFlash> ErrorType for Shadow<'_, F> {
    type Error = F::Error;
}

impl<F: NorFlash> ReadNorFlash for Shadow<'_, F> {
    const READ_SIZE: usize = F::READ_SIZE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), F::Error> {
        self.flash.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.flash.capacity()
    }
}

/// Bytes that slots write at once: a command for each byte would take many times as long.
const PAGE: usize = 256;

impl<F: NorFlash> NorFlash for Shadow<'_, F> {
    const WRITE_SIZE: usize = if PAGE.is_multiple_of(F::WRITE_SIZE) {
        PAGE
    } else {
        F::WRITE_SIZE
    };
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), F::Error> {
        let done = self.flash.erase(from, to);
        // Where it fails, a part may be done.
        let read = self.refresh(from, to);
        done.and(read)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), F::Error> {
        let done = self.flash.write(offset, bytes);
        let read = self.refresh(offset, offset.saturating_add(bytes.len() as u32));
        done.and(read)
    }
}

impl<F: NorFlash> MappedFlash for Shadow<'_, F> {
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]> {
        let first = offset.checked_sub(self.start)?;
        self.copy.get(first as usize..)?.get(..bytes as usize)
    }
}
