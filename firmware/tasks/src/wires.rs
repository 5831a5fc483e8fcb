//! An I2C bus of two wires that the program moves itself: the MPS2 boards' controllers (Arm's SBCon, application note 386) are no more than that.

use core::ptr;

use cortex_m::asm;
use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation};

/// Cycles of half a bit: 100 kHz of the board's 25 MHz.
const HALF: u32 = 125;

/// A controller: reads of the first register see the data wire in bit 1; bits written there go up, bits written to the second go down.
const UP: usize = 0x0;
const DOWN: usize = 0x4;
const CLOCK: u32 = 1;
const DATA: u32 = 1 << 1;

/// The bus of the second shield connector, where qemu puts a chip that asks for `bus=i2c`.
pub const SHIELD: usize = 0x4002_a000;

/// A bus whose controller is at this address. There is one master, and no chip holds the clock: the controller could not see it.
#[derive(Debug)]
pub struct Wires(usize);

impl Wires {
    /// The bus, at rest.
    pub fn new(controller: usize) -> Self {
        let wires = Self(controller);
        wires.set(UP, CLOCK | DATA);
        wires
    }

    fn set(&self, register: usize, wires: u32) {
        // SAFETY: `register` is one of the board's controller at this address, an aligned word that one of these wires alone writes.
        unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(self.0 + register), wires) }
        asm::delay(HALF);
    }

    fn data(&self) -> bool {
        // SAFETY: a register of the board's controller at this address, an aligned word that is always readable.
        let wires: u32 = unsafe { ptr::read_volatile(ptr::with_exposed_provenance(self.0)) };
        wires & DATA != 0
    }

    /// The data wire falls while the clock is up: also in the midst of a transfer.
    fn start(&self) {
        self.set(UP, DATA);
        self.set(UP, CLOCK);
        self.set(DOWN, DATA);
        self.set(DOWN, CLOCK);
    }

    fn stop(&self) {
        self.set(DOWN, DATA);
        self.set(UP, CLOCK);
        self.set(UP, DATA);
    }

    /// A bit either way; a chip may pull an up one down.
    fn bit(&self, bit: bool) -> bool {
        self.set(if bit { UP } else { DOWN }, DATA);
        self.set(UP, CLOCK);
        let seen = self.data();
        self.set(DOWN, CLOCK);
        seen
    }

    /// Whether a chip acknowledges.
    fn send(&self, byte: u8) -> bool {
        (0..8).rev().for_each(|at| _ = self.bit(byte >> at & 1 != 0));
        !self.bit(true)
    }

    fn receive(&self, last: bool) -> u8 {
        let byte = (0..8).fold(0, |byte, _| byte << 1 | u8::from(self.bit(true)));
        self.bit(last);
        byte
    }

    fn operate(&self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), NoAcknowledgeSource> {
        let mut reading = None;
        let mut rest = operations.iter_mut().peekable();
        while let Some(operation) = rest.next() {
            let reads = matches!(operation, Operation::Read(_));
            if reading != Some(reads) {
                self.start();
                if !self.send(address << 1 | u8::from(reads)) {
                    return Err(NoAcknowledgeSource::Address);
                }
                reading = Some(reads);
            }
            match operation {
                Operation::Write(bytes) => {
                    if !bytes.iter().all(|byte| self.send(*byte)) {
                        return Err(NoAcknowledgeSource::Data);
                    }
                }
                Operation::Read(bytes) => {
                    let more = matches!(rest.peek(), Some(Operation::Read(_)));
                    let count = bytes.len();
                    for (at, byte) in bytes.iter_mut().enumerate() {
                        *byte = self.receive(!more && at + 1 == count);
                    }
                }
            }
        }
        Ok(())
    }
}

impl ErrorType for Wires {
    type Error = ErrorKind;
}

impl I2c for Wires {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), ErrorKind> {
        let result = self.operate(address, operations);
        self.stop();
        result.map_err(ErrorKind::NoAcknowledge)
    }
}
