//! SiFive's SPI controller (FU540-C000 manual, chapter 19) with the chip at its first select line, as `embedded-hal` has it: bytes through its FIFOs, no
//! interrupts.

use core::ptr;

use embedded_hal::spi::{Error, ErrorKind, ErrorType, Operation, SpiDevice};

use crate::board::row;
use crate::counter;

/// Its registers.
const CLOCK_DIVISOR: usize = 0x00;
const SELECTED: usize = 0x10;
const SELECT_MODE: usize = 0x18;
const FORMAT: usize = 0x40;
const SEND: usize = 0x48;
const RECEIVE: usize = 0x4c;
const MAPPED: usize = 0x60;

/// Modes of the select line: up behind each frame, or down until told otherwise.
const UP: u32 = 0;
const HELD: u32 = 2;
/// One line, the highest bit first, eight of them.
const BYTES: u32 = 8 << 16;
/// Of what is received: nothing came yet.
const EMPTY: u32 = 1 << 31;
/// Bytes that each FIFO holds.
const FIFO: usize = 8;
/// How often a byte is asked for, at most.
const POLLS: u32 = 1 << 20;

/// The chip at the controller.
#[derive(Debug)]
pub struct Spi {
    bytes: u64,
}

/// A byte did not come: the controller has no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silent;

impl Error for Silent {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

impl Spi {
    /// Takes the controller out of the mode in which it shows the flash as memory.
    ///
    /// # Safety
    /// Once a program: its registers are one device's.
    pub unsafe fn start() -> Self {
        let spi = Self { bytes: 0 };
        spi.set(MAPPED, 0);
        spi.set(CLOCK_DIVISOR, 3);
        spi.set(FORMAT, BYTES);
        spi.set(SELECTED, 0);
        spi.set(SELECT_MODE, UP);
        spi
    }

    /// Bytes that went over the bus so far, commands and addresses among them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn set(&self, register: usize, value: u32) {
        // SAFETY: a register of the controller, which is this device's alone.
        unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(row::SPI + register), value) }
    }

    fn received(&self) -> Result<u8, Silent> {
        for _ in 0..POLLS {
            // SAFETY: a register of the controller, which is this device's alone.
            let found: u32 = unsafe { ptr::read_volatile(ptr::with_exposed_provenance(row::SPI + RECEIVE)) };
            if found & EMPTY == 0 {
                return Ok(found as u8);
            }
        }
        Err(Silent)
    }

    /// Bytes out, and as many in, a FIFO at a time: what is `sent` for each index, and what becomes of each that came.
    fn exchange(
        &mut self,
        count: usize,
        sent: impl Fn(usize) -> u8,
        mut came: impl FnMut(usize, u8),
    ) -> Result<(), Silent> {
        for start in (0..count).step_by(FIFO) {
            let end = count.min(start + FIFO);
            (start..end).for_each(|at| self.set(SEND, sent(at).into()));
            for at in start..end {
                came(at, self.received()?);
            }
        }
        self.bytes += count as u64;
        Ok(())
    }

    fn operate(&mut self, operation: &mut Operation<'_, u8>) -> Result<(), Silent> {
        let byte = |bytes: &[u8], at| bytes.get(at).copied().unwrap_or(0);
        let put = |bytes: &mut [u8], at, byte| {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        };
        match operation {
            Operation::Read(bytes) => self.exchange(bytes.len(), |_| 0, |at, came| put(bytes, at, came)),
            Operation::Write(bytes) => self.exchange(bytes.len(), |at| byte(bytes, at), |_, _| ()),
            Operation::Transfer(into, from) => {
                let count = into.len().max(from.len());
                self.exchange(count, |at| byte(from, at), |at, came| put(into, at, came))
            }
            Operation::TransferInPlace(bytes) => {
                for part in bytes.chunks_mut(FIFO) {
                    let mut sent = [0; FIFO];
                    sent.iter_mut().zip(part.iter()).for_each(|(to, from)| *to = *from);
                    self.exchange(part.len(), |at| byte(&sent, at), |at, came| put(part, at, came))?;
                }
                Ok(())
            }
            // An instruction takes a nanosecond or more.
            Operation::DelayNs(ns) => {
                counter::spin((*ns).max(1));
                Ok(())
            }
        }
    }
}

impl ErrorType for Spi {
    type Error = Silent;
}

impl SpiDevice for Spi {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), Silent> {
        self.set(SELECT_MODE, HELD);
        let result = operations.iter_mut().try_for_each(|operation| self.operate(operation));
        self.set(SELECT_MODE, UP);
        result
    }
}
