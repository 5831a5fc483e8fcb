//! SPI NOR flashes, by the commands that they all have: JESD216's read of the id, of the state, and of the memory at one bit a clock. Writing is in `write.rs`.

use core::error::Error;
use core::fmt;

use embedded_hal::spi::{Operation, SpiDevice};

use crate::source::Source;

const READ_ID: u8 = 0x9f;
const READ_STATE: u8 = 0x05;
const READ: u8 = 0x03;
/// With an address of four bytes.
const READ_FAR: u8 = 0x13;
/// In the state: a write or an erase is under way.
const BUSY: u8 = 1;
/// Bytes that three bytes of an address reach.
const NEAR: u32 = 1 << 24;

/// Identification of the chip, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// Maker, type and capacity, as the chip answers.
    pub id: [u8; 3],
    /// Bytes of memory.
    pub bytes: u32,
    /// How often it is asked whether it is busy, at most. That takes 16 clocks of the bus; an erase may take half a second.
    pub polls: u32,
}

/// A flash on an SPI bus.
#[derive(Debug)]
pub struct NorFlash<S> {
    device: S,
    chip: Chip,
}

/// Why it is not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NorError<E> {
    /// The bus.
    Bus(E),
    /// Another chip answers, or none: a line that nobody holds reads as zeros or ones.
    WrongChip {
        /// Identification that the chip answers.
        found: [u8; 3],
    },
    /// It is busy, and stays so: a write or an erase that does not end.
    Busy,
    /// Beyond its memory.
    Beyond {
        /// The first byte.
        offset: u32,
        /// The memory.
        bytes: u32,
    },
    /// An erase that does not begin or end at a sector.
    Unaligned {
        /// Where it does not.
        offset: u32,
    },
    /// It does not let itself be written: its pin or its settings protect it, or there is none.
    Locked,
    /// It holds something else than what was written or erased: this part is protected or worn out, or was not erased before.
    NotWritten {
        /// The first byte.
        offset: u32,
    },
}

impl<S: SpiDevice> NorFlash<S> {
    /// Looks whether it is the chip, and waits until it is not busy.
    ///
    /// # Errors
    /// [`NorError`].
    pub fn open(device: S, chip: Chip) -> Result<Self, NorError<S::Error>> {
        let mut flash = Self { device, chip };
        flash.ready()?;
        let mut found = [0; 3];
        flash.command(&[READ_ID], &mut found)?;
        if found == chip.id {
            Ok(flash)
        } else {
            Err(NorError::WrongChip { found })
        }
    }

    /// Returns the identification of the chip, and its size.
    pub fn chip(&self) -> Chip {
        self.chip
    }

    /// The device, to look at.
    pub fn device(&self) -> &S {
        &self.device
    }

    /// The device again.
    pub fn release(self) -> S {
        self.device
    }

    /// Waits until it is not busy. A line that nobody holds is busy for ever, or wrong afterwards.
    pub(crate) fn ready(&mut self) -> Result<(), NorError<S::Error>> {
        for _ in 0..self.chip.polls.max(1) {
            if self.state()? & BUSY == 0 {
                return Ok(());
            }
        }
        Err(NorError::Busy)
    }

    /// Returns the status register of the chip.
    pub(crate) fn state(&mut self) -> Result<u8, NorError<S::Error>> {
        let mut state = [0];
        self.command(&[READ_STATE], &mut state)?;
        let [state] = state;
        Ok(state)
    }

    /// Whether these bytes are all of its memory.
    pub(crate) fn within(&self, offset: u32, count: usize) -> Result<(), NorError<S::Error>> {
        let bytes = self.chip.bytes;
        let end = u32::try_from(count).ok().and_then(|count| offset.checked_add(count));
        match end {
            Some(end) if end <= bytes => Ok(()),
            _ => Err(NorError::Beyond { offset, bytes }),
        }
    }

    /// A command and an address behind it: of four bytes, by the command `far`, where three do not reach all of the memory.
    pub(crate) fn addressed(&self, near: u8, far: u8, offset: u32) -> Addressed {
        let [first, second, third, fourth] = offset.to_be_bytes();
        if self.chip.bytes > NEAR {
            Addressed::Far([far, first, second, third, fourth])
        } else {
            Addressed::Near([near, second, third, fourth])
        }
    }

    pub(crate) fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), NorError<S::Error>> {
        self.device.transaction(operations).map_err(NorError::Bus)
    }

    fn command(&mut self, command: &[u8], answer: &mut [u8]) -> Result<(), NorError<S::Error>> {
        self.transaction(&mut [Operation::Write(command), Operation::Read(answer)])
    }
}

/// A command with its address.
pub(crate) enum Addressed {
    /// Of three bytes.
    Near([u8; 4]),
    /// Of four.
    Far([u8; 5]),
}

impl Addressed {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Near(bytes) => bytes,
            Self::Far(bytes) => bytes,
        }
    }
}

impl<S: SpiDevice> Source for NorFlash<S> {
    type Error = NorError<S::Error>;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.within(offset, bytes.len())?;
        self.ready()?;
        let command = self.addressed(READ, READ_FAR, offset);
        self.command(command.bytes(), bytes)
    }
}

impl<E: fmt::Debug> fmt::Display for NorError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bus(error) => write!(f, "the bus to the flash: {error:?}"),
            Self::WrongChip { found } => write!(f, "a flash that calls itself {found:02x?}"),
            Self::Busy => f.write_str("the flash stays busy"),
            Self::Beyond { offset, bytes } => write!(f, "byte {offset} of a flash of {bytes}, or behind it"),
            Self::Unaligned { offset } => write!(f, "an erase at byte {offset}, where no sector begins or ends"),
            Self::Locked => f.write_str("the flash does not let itself be written"),
            Self::NotWritten { offset } => write!(f, "byte {offset} of the flash is not what was written there"),
        }
    }
}

impl<E: fmt::Debug> Error for NorError<E> {}
