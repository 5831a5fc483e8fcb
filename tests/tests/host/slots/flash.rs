//! A NOR flash that loses power when a test says so.

use arenite::MODEL_ALIGN;
use arenite::slots::MappedFlash;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};

/// Bytes that start at a model's alignment.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
}

impl Memory {
    fn of(content: &[u8]) -> Self {
        let mut bytes = vec![0; content.len() + MODEL_ALIGN];
        let start = bytes.as_ptr().addr().wrapping_neg() % MODEL_ALIGN;
        bytes[start..start + content.len()].copy_from_slice(content);
        Self { bytes, start }
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.start..self.bytes.len() - MODEL_ALIGN + self.start]
    }

    fn content_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - MODEL_ALIGN + self.start;
        &mut self.bytes[self.start..end]
    }
}

/// State of an operation that the cut comes upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing of it is done.
    Before,
    /// Some of its bits are done, and others are not.
    Within(u64),
}

/// A flash that writes `WRITE` bytes at once and erases sectors of `ERASE`. Each of these is an operation.
pub(crate) struct Mock<const WRITE: usize, const ERASE: usize> {
    memory: Memory,
    /// Operations done since the power came.
    pub(crate) operations: u32,
    /// After how many operations it goes.
    cut: Option<(u32, Cut)>,
    dead: bool,
}

impl<const WRITE: usize, const ERASE: usize> Clone for Mock<WRITE, ERASE> {
    fn clone(&self) -> Self {
        let memory = Memory::of(self.memory.content());
        Self { memory, ..*self }
    }
}

impl<const WRITE: usize, const ERASE: usize> Mock<WRITE, ERASE> {
    /// An erased flash.
    pub(crate) fn erased(bytes: usize) -> Self {
        Self {
            memory: Memory::of(&vec![0xFF; bytes]),
            operations: 0,
            cut: None,
            dead: false,
        }
    }

    /// Writes bytes as a programmer does, before the chip is used.
    pub(crate) fn program(&mut self, offset: usize, bytes: &[u8]) {
        self.memory.content_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Power comes, and goes at an operation or stays.
    pub(crate) fn power(&mut self, cut: Option<(u32, Cut)>) {
        (self.operations, self.cut, self.dead) = (0, cut, false);
    }

    /// Whether the power is gone.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns the part of an operation that is done: all, with `Ok`; some bits, or nothing.
    fn operate(&mut self) -> Result<(), Option<Bits>> {
        if self.dead {
            return Err(None);
        }
        match self.cut {
            Some((at, cut)) if at == self.operations => {
                self.dead = true;
                Err(match cut {
                    Cut::Before => None,
                    Cut::Within(seed) => Some(Bits(seed ^ u64::from(at) << 32 | 1)),
                })
            }
            _ => {
                self.operations += 1;
                Ok(())
            }
        }
    }
}

/// Bits of no pattern.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u8 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u8
    }
}

impl<const WRITE: usize, const ERASE: usize> ErrorType for Mock<WRITE, ERASE> {
    type Error = NorFlashErrorKind;
}

impl<const WRITE: usize, const ERASE: usize> ReadNorFlash for Mock<WRITE, ERASE> {
    const READ_SIZE: usize = 4;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        check_read(self, offset, bytes.len())?;
        if self.dead {
            return Err(NorFlashErrorKind::Other);
        }
        let from = offset as usize;
        bytes.copy_from_slice(&self.memory.content()[from..from + bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.memory.content().len()
    }
}

impl<const WRITE: usize, const ERASE: usize> NorFlash for Mock<WRITE, ERASE> {
    const WRITE_SIZE: usize = WRITE;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        check_erase(self, from, to)?;
        for sector in (from as usize..to as usize).step_by(ERASE) {
            let done = self.operate();
            let bytes = &mut self.memory.content_mut()[sector..sector + ERASE];
            match done {
                Ok(()) => bytes.fill(0xFF),
                Err(bits) => {
                    if let Some(mut bits) = bits {
                        bytes.iter_mut().for_each(|byte| *byte |= bits.next());
                    }
                    return Err(NorFlashErrorKind::Other);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        check_write(self, offset, bytes.len())?;
        for (at, unit) in bytes.chunks(WRITE).enumerate() {
            let done = self.operate();
            let from = offset as usize + at * WRITE;
            let place = &mut self.memory.content_mut()[from..from + WRITE];
            let mut bits = match done {
                Ok(()) => None,
                Err(None) => return Err(NorFlashErrorKind::Other),
                Err(Some(bits)) => Some(bits),
            };
            assert!(place.iter().all(|&byte| byte == 0xFF), "{from:#x} is written twice");
            for (to, from) in place.iter_mut().zip(unit) {
                *to = from | bits.as_mut().map_or(0, Bits::next);
            }
            if bits.is_some() {
                return Err(NorFlashErrorKind::Other);
            }
        }
        Ok(())
    }
}

impl<const WRITE: usize, const ERASE: usize> MappedFlash for Mock<WRITE, ERASE> {
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]> {
        self.memory.content().get(offset as usize..)?.get(..bytes as usize)
    }
}
