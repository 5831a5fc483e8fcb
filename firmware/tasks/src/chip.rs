//! An ADXL345 as its datasheet has it (Analog Devices, revision G), as far as a driver asks it, on an I2C and on an SPI bus. It is made of motion that is
//! given to it: whenever it is asked how many readings there are, time has passed for one more.

use core::convert::Infallible;
use core::slice::Iter;

use embedded_hal::i2c::{self, I2c};
use embedded_hal::spi::{self, SpiDevice};

const DEVID: u8 = 0x00;
const POWER_CTL: u8 = 0x2d;
const INT_SOURCE: u8 = 0x30;
const DATAX0: u8 = 0x32;
const FIFO_STATUS: u8 = 0x39;

const MEASURE: u8 = 1 << 3;
const READ: u8 = 1 << 7;
const FIFO: usize = 32;

/// The chip, and what it still has to measure in steps of 1/256 g.
#[derive(Debug)]
pub struct Chip<'a> {
    registers: [u8; 64],
    motion: Iter<'a, [i16; 3]>,
    fifo: [[i16; 3]; FIFO],
    entries: usize,
    overrun: u8,
    pointer: u8,
}

impl<'a> Chip<'a> {
    /// As after power-on.
    pub fn new(motion: &'a [[i16; 3]]) -> Self {
        let mut registers = [0; 64];
        registers[usize::from(DEVID)] = 0xe5;
        Self {
            registers,
            motion: motion.iter(),
            fifo: [[0; 3]; FIFO],
            entries: 0,
            overrun: 0,
            pointer: 0,
        }
    }

    fn measure(&mut self) {
        if self.registers[usize::from(POWER_CTL)] & MEASURE == 0 {
            return;
        }
        let Some(reading) = self.motion.next() else { return };
        if self.entries == FIFO {
            self.take();
        }
        self.fifo[self.entries] = *reading;
        self.entries += 1;
        self.overrun = u8::from(self.entries == FIFO);
    }

    /// The oldest reading goes.
    fn take(&mut self) {
        self.fifo.rotate_left(1);
        self.entries = self.entries.saturating_sub(1);
        self.overrun = 0;
    }

    fn read(&mut self, from: u8, values: &mut [u8]) {
        if from == DATAX0 {
            let bytes = self.fifo[0].map(i16::to_le_bytes);
            values
                .iter_mut()
                .zip(bytes.as_flattened())
                .for_each(|(to, byte)| *to = *byte);
            return self.take();
        }
        if from == FIFO_STATUS {
            self.measure();
        }
        for (value, at) in values.iter_mut().zip(from..) {
            *value = match at {
                INT_SOURCE => self.overrun,
                FIFO_STATUS => self.entries as u8,
                _ => self.registers[usize::from(at % 64)],
            };
        }
    }

    fn write(&mut self, at: u8, values: &[u8]) {
        for (value, at) in values.iter().zip(at..) {
            self.registers[usize::from(at % 64)] = *value;
        }
    }
}

impl i2c::ErrorType for Chip<'_> {
    type Error = Infallible;
}

impl I2c for Chip<'_> {
    fn transaction(&mut self, _: u8, operations: &mut [i2c::Operation<'_>]) -> Result<(), Infallible> {
        for operation in operations {
            match operation {
                i2c::Operation::Write([register, values @ ..]) => {
                    self.pointer = *register;
                    self.write(*register, values);
                }
                i2c::Operation::Write([]) => {}
                i2c::Operation::Read(values) => self.read(self.pointer, values),
            }
        }
        Ok(())
    }
}

impl spi::ErrorType for Chip<'_> {
    type Error = Infallible;
}

impl SpiDevice for Chip<'_> {
    fn transaction(&mut self, operations: &mut [spi::Operation<'_, u8>]) -> Result<(), Infallible> {
        match operations {
            [spi::Operation::Write([command, values @ ..])] if command & READ == 0 => {
                self.write(command & 0x3f, values)
            }
            [spi::Operation::Write([command]), spi::Operation::Read(values)] if command & READ != 0 => {
                self.read(command & 0x3f, values);
            }
            _ => {}
        }
        Ok(())
    }
}
