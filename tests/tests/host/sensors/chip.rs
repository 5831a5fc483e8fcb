//! An ADXL345 as its datasheet (Analog Devices, revision G) describes it, on an I2C and on an SPI bus that fail when they are told to.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use embedded_hal::i2c::{self, I2c, NoAcknowledgeSource};
use embedded_hal::spi::{self, SpiDevice};

const DATA: usize = 0x32;

/// The chip.
#[derive(Debug)]
pub(crate) struct Chip {
    registers: [u8; 64],
    fifo: VecDeque<[i16; 3]>,
    pointer: usize,
    /// Transfers so far, and which one fails.
    pub(crate) transfers: usize,
    pub(crate) fails: Option<usize>,
}

/// Two buses reach the same chip, and the test as well.
#[derive(Debug, Clone)]
pub(crate) struct Shared(pub(crate) Rc<RefCell<Chip>>);

impl Shared {
    pub(crate) fn new(id: u8) -> Self {
        let mut registers = [0; 64];
        // As after power-on.
        (registers[0x00], registers[0x2c]) = (id, 0x0a);
        Self(Rc::new(RefCell::new(Chip {
            registers,
            fifo: VecDeque::new(),
            pointer: 0,
            transfers: 0,
            fails: None,
        })))
    }

    /// The chip measures: `force` in steps of 1/256 g.
    pub(crate) fn measures(&self, force: [i16; 3]) {
        self.0.borrow_mut().measures(force);
    }

    pub(crate) fn rate(&self) -> u8 {
        self.0.borrow().registers[0x2c]
    }
}

impl Chip {
    fn measures(&mut self, force: [i16; 3]) {
        let [power, format, fifo] = [0x2d, 0x31, 0x38].map(|at: usize| self.registers[at]);
        if power & 8 == 0 {
            return;
        }
        // Ten bits for the range, or as many as make steps of 1/256 g.
        let (range, full) = (format & 3, format & 8 != 0);
        let limit = 512i16 << range;
        let scale = if full { 0 } else { range };
        let reading = force.map(|axis| axis.clamp(-limit, limit - 1) >> scale);
        let stream = fifo >> 6 == 2;
        if !stream {
            self.registers[0x30] |= u8::from(!self.fifo.is_empty());
            self.fifo.clear();
        } else if self.fifo.len() == 32 {
            self.fifo.pop_front();
        }
        self.fifo.push_back(reading);
        self.registers[0x30] |= u8::from(stream && self.fifo.len() == 32);
    }

    fn read(&mut self, from: usize, values: &mut [u8], several: bool) {
        for (offset, value) in values.iter_mut().enumerate() {
            let at = from + if several { offset } else { 0 };
            *value = match at {
                DATA..=0x37 => {
                    let reading = self.fifo.front().copied().unwrap_or_default();
                    reading[(at - DATA) / 2].to_le_bytes()[(at - DATA) % 2]
                }
                0x39 => self.fifo.len() as u8,
                _ => self.registers[at % 64],
            };
        }
        // A read of the data takes the entry, and ends the overrun.
        if several && from == DATA && values.len() >= 6 {
            self.fifo.pop_front();
            self.registers[0x30] = 0;
        }
    }

    fn write(&mut self, at: usize, value: u8) {
        self.registers[at % 64] = value;
        if at == 0x38 && value >> 6 == 0 {
            self.fifo.clear();
            self.registers[0x30] = 0;
        }
    }

    /// Whether this transfer fails.
    fn fails(&mut self) -> bool {
        self.transfers += 1;
        self.fails == Some(self.transfers - 1)
    }
}

/// The chip's I2C bus: it answers at 0x53.
#[derive(Debug)]
pub(crate) struct Wire(pub(crate) Shared);

impl i2c::ErrorType for Wire {
    type Error = i2c::ErrorKind;
}

impl I2c for Wire {
    fn transaction(&mut self, address: u8, operations: &mut [i2c::Operation<'_>]) -> Result<(), i2c::ErrorKind> {
        let mut chip = self.0.0.borrow_mut();
        if chip.fails() {
            return Err(i2c::ErrorKind::ArbitrationLoss);
        }
        if address != 0x53 {
            return Err(i2c::ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address));
        }
        for operation in operations {
            match operation {
                i2c::Operation::Write([register, values @ ..]) => {
                    chip.pointer = usize::from(*register);
                    for (offset, value) in values.iter().enumerate() {
                        chip.write(usize::from(*register) + offset, *value);
                    }
                }
                i2c::Operation::Write([]) => {}
                i2c::Operation::Read(values) => {
                    let from = chip.pointer;
                    chip.read(from, values, true);
                }
            }
        }
        Ok(())
    }
}

/// The chip's SPI bus; without a chip the line is high.
#[derive(Debug)]
pub(crate) struct Select(pub(crate) Shared, pub(crate) bool);

impl spi::ErrorType for Select {
    type Error = spi::ErrorKind;
}

impl SpiDevice for Select {
    fn transaction(&mut self, operations: &mut [spi::Operation<'_, u8>]) -> Result<(), spi::ErrorKind> {
        let mut chip = self.0.0.borrow_mut();
        if chip.fails() {
            return Err(spi::ErrorKind::ModeFault);
        }
        match operations {
            [spi::Operation::Write([command, values @ ..])] if command & 0x80 == 0 => {
                assert!(
                    values.len() == 1 || command & 0x40 != 0,
                    "several values without the bit"
                );
                for (offset, value) in values.iter().enumerate() {
                    chip.write(usize::from(command & 0x3f) + offset, *value);
                }
            }
            [spi::Operation::Write([command]), spi::Operation::Read(values)] if command & 0x80 != 0 => {
                if self.1 {
                    chip.read(usize::from(command & 0x3f), values, command & 0x40 != 0);
                } else {
                    values.fill(0xff);
                }
            }
            _ => panic!("no transfer of the datasheet's: {operations:?}"),
        }
        Ok(())
    }
}
