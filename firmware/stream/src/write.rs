//! Writing SPI NOR flashes, as `embedded-storage` has it: pages of 256 bytes and sectors of 4 KiB, which nearly all of them have.
//!
//! Each page and each sector is read again once the chip is done: what a chip says of a write that it did not do differs from maker to maker, and not all say
//! anything.

use core::fmt;

use embedded_hal::spi::{Operation, SpiDevice};
use embedded_storage::nor_flash::{self, ErrorType, NorFlashError, NorFlashErrorKind, ReadNorFlash};

use crate::nor::{Addressed, NorError, NorFlash};
use crate::source::Source;

const ENABLE: u8 = 0x06;
const WRITE: u8 = 0x02;
/// With an address of four bytes.
const WRITE_FAR: u8 = 0x12;
const ERASE: u8 = 0x20;
/// With an address of four bytes.
const ERASE_FAR: u8 = 0x21;
/// In the state: the next command may write or erase.
const ENABLED: u8 = 2;

/// Bytes that a write command reaches: behind its end it would go on at its start.
const PAGE: u32 = 256;
const SECTOR: u32 = 4096;
const ERASED: u8 = 0xff;

impl<S: SpiDevice> NorFlash<S> {
    /// Permits a command that changes the memory, does it, and waits for its end.
    fn change(&mut self, command: &Addressed, bytes: &[u8]) -> Result<(), NorError<S::Error>> {
        self.ready()?;
        self.transaction(&mut [Operation::Write(&[ENABLE])])?;
        if self.state()? & ENABLED == 0 {
            return Err(NorError::Locked);
        }
        self.transaction(&mut [Operation::Write(command.bytes()), Operation::Write(bytes)])?;
        self.ready()
    }

    /// Looks whether the memory holds these bytes.
    fn holds(&mut self, offset: u32, bytes: impl Iterator<Item = u8>) -> Result<(), NorError<S::Error>> {
        let (mut bytes, mut at) = (bytes.peekable(), offset);
        while bytes.peek().is_some() {
            let (mut found, mut count) = ([0; 64], 0);
            let mut expected = [0; 64];
            for (place, byte) in expected.iter_mut().zip(&mut bytes) {
                (*place, count) = (byte, count + 1);
            }
            let (found, expected) = (found.get_mut(..count), expected.get(..count));
            let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
            Source::read(self, at, found)?;
            for (found, expected) in found.iter().zip(expected) {
                if found != expected {
                    return Err(NorError::NotWritten { offset: at });
                }
                at += 1;
            }
        }
        Ok(())
    }
}

impl<S: SpiDevice> ErrorType for NorFlash<S> {
    type Error = NorError<S::Error>;
}

impl<S: SpiDevice> ReadNorFlash for NorFlash<S> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        Source::read(self, offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.chip().bytes as usize
    }
}

impl<S: SpiDevice> nor_flash::NorFlash for NorFlash<S> {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = SECTOR as usize;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        self.within(from, to.checked_sub(from).map_or(usize::MAX, |count| count as usize))?;
        if let Some(offset) = [from, to].into_iter().find(|at| !at.is_multiple_of(SECTOR)) {
            return Err(NorError::Unaligned { offset });
        }
        let mut at = from;
        while at < to {
            let command = self.addressed(ERASE, ERASE_FAR, at);
            self.change(&command, &[])?;
            self.holds(at, core::iter::repeat_n(ERASED, SECTOR as usize))?;
            at += SECTOR;
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.within(offset, bytes.len())?;
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (part, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            let command = self.addressed(WRITE, WRITE_FAR, at);
            self.change(&command, part)?;
            self.holds(at, part.iter().copied())?;
            // A range within the memory is of fewer bytes than a u32 counts.
            at += part.len() as u32;
            rest = behind;
        }
        Ok(())
    }
}

impl<E: fmt::Debug> NorFlashError for NorError<E> {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Beyond { .. } => NorFlashErrorKind::OutOfBounds,
            Self::Unaligned { .. } => NorFlashErrorKind::NotAligned,
            Self::Bus(_) | Self::WrongChip { .. } | Self::Busy | Self::Locked | Self::NotWritten { .. } => {
                NorFlashErrorKind::Other
            }
        }
    }
}
