//! Registers of a byte behind an address, over I2C or SPI.

use embedded_hal::i2c::{I2c, SevenBitAddress};
use embedded_hal::spi::{Operation, SpiDevice};

/// A chip's registers.
pub trait Registers {
    /// Error of the bus.
    type Error;

    /// Writes one.
    ///
    /// # Errors
    /// Those of the bus.
    fn write(&mut self, register: u8, value: u8) -> Result<(), Self::Error>;

    /// Reads some that follow each other.
    ///
    /// # Errors
    /// Those of the bus.
    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), Self::Error>;
}

/// Over I2C: the register's number is written, its value follows, or is read behind a repeated start.
#[derive(Debug)]
pub struct OverI2c<I> {
    bus: I,
    address: SevenBitAddress,
}

impl<I: I2c> OverI2c<I> {
    /// Of the chip at this address.
    pub const fn new(bus: I, address: SevenBitAddress) -> Self {
        Self { bus, address }
    }

    /// The bus again.
    pub fn release(self) -> I {
        self.bus
    }
}

impl<I: I2c> Registers for OverI2c<I> {
    type Error = I::Error;

    fn write(&mut self, register: u8, value: u8) -> Result<(), I::Error> {
        self.bus.write(self.address, &[register, value])
    }

    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), I::Error> {
        self.bus.write_read(self.address, &[register], values)
    }
}

/// Over SPI, with bit 7 of the number for reads and bit 6 for several registers, as Analog Devices' and ST's sensors have it.
#[derive(Debug)]
pub struct OverSpi<S> {
    device: S,
}

impl<S: SpiDevice> OverSpi<S> {
    const READ: u8 = 1 << 7;
    const SEVERAL: u8 = 1 << 6;

    /// Of this device: mode 3 for an ADXL345, and at most 1.6 MHz, as its datasheet has it for reads of the FIFO one behind the other.
    pub const fn new(device: S) -> Self {
        Self { device }
    }

    /// The device again.
    pub fn release(self) -> S {
        self.device
    }
}

impl<S: SpiDevice> Registers for OverSpi<S> {
    type Error = S::Error;

    fn write(&mut self, register: u8, value: u8) -> Result<(), S::Error> {
        self.device.write(&[register, value])
    }

    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), S::Error> {
        let several = if values.len() > 1 { Self::SEVERAL } else { 0 };
        let command = [register | Self::READ | several];
        self.device
            .transaction(&mut [Operation::Write(&command), Operation::Read(values)])
    }
}
