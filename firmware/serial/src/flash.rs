//! A flash in memory.

use arenite::slots::MappedFlash;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};

/// Memory that behaves like a flash of sectors of 4 KiB that is written by words: for boards that have none, and tests.
#[derive(Debug)]
pub struct MemoryFlash<'m>(&'m mut [u8]);

impl<'m> MemoryFlash<'m> {
    /// Bytes that are erased at once.
    pub const SECTOR: u32 = 4096;

    /// A flash of nothing but erased bytes.
    pub fn erased(memory: &'m mut [u8]) -> Self {
        memory.fill(ERASED);
        Self(memory)
    }

    fn range(&mut self, from: u32, to: u32) -> Result<&mut [u8], Outside> {
        let range = self.0.get_mut(from as usize..to as usize);
        range.ok_or(Outside(NorFlashErrorKind::OutOfBounds))
    }
}

const ERASED: u8 = 0xFF;

/// Error of a [`MemoryFlash`] for a range that is not there, or not whole sectors or words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside(NorFlashErrorKind);

impl NorFlashError for Outside {
    fn kind(&self) -> NorFlashErrorKind {
        self.0
    }
}

impl ErrorType for MemoryFlash<'_> {
    type Error = Outside;
}

impl ReadNorFlash for MemoryFlash<'_> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Outside> {
        check_read(self, offset, bytes.len()).map_err(Outside)?;
        let from = self.range(offset, offset + bytes.len() as u32)?;
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for MemoryFlash<'_> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = Self::SECTOR as usize;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Outside> {
        check_erase(self, from, to).map_err(Outside)?;
        self.range(from, to)?.fill(ERASED);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Outside> {
        check_write(self, offset, bytes.len()).map_err(Outside)?;
        let to = self.range(offset, offset + bytes.len() as u32)?;
        // Writing takes bits away.
        to.iter_mut().zip(bytes).for_each(|(to, &byte)| *to &= byte);
        Ok(())
    }
}

impl MappedFlash for MemoryFlash<'_> {
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]> {
        self.0.get(offset as usize..)?.get(..bytes as usize)
    }
}
