//! The accelerometer ADXL345. Names and numbers are those of Analog Devices' datasheet, revision G: register map, FIFO, I2C and SPI.

use core::error::Error;
use core::fmt;

use crate::registers::Registers;
use crate::samples::{Samples, SamplesError};

/// The I2C address with the pin ALT ADDRESS low.
pub const ADDRESS: u8 = 0x53;
/// The I2C address with that pin high.
pub const ALTERNATIVE_ADDRESS: u8 = 0x1d;

const DEVID: u8 = 0x00;
const BW_RATE: u8 = 0x2c;
const POWER_CTL: u8 = 0x2d;
const INT_SOURCE: u8 = 0x30;
const DATA_FORMAT: u8 = 0x31;
const DATAX0: u8 = 0x32;
const FIFO_CTL: u8 = 0x38;
const FIFO_STATUS: u8 = 0x39;

/// Value of `DEVID`.
const DEVICE: u8 = 0xe5;
const MEASURE: u8 = 1 << 3;
const FULL_RES: u8 = 1 << 3;
/// The newest 32 readings are kept, older ones give way.
const STREAM: u8 = 0b10 << 6;
const BYPASS: u8 = 0;
/// In these modes: the FIFO was full, so that readings may have given way.
const OVERRUN: u8 = 1;
const ENTRIES: u8 = 0x3f;

/// Readings that the FIFO holds.
const FIFO: usize = 32;
const AXES: usize = 3;

/// Readings a second, by the code in `BW_RATE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "numbers")]
pub enum Rate {
    Hz25 = 0x8,
    Hz50 = 0x9,
    Hz100 = 0xa,
    Hz200 = 0xb,
    Hz400 = 0xc,
}

/// Largest measured acceleration, by the code in `DATA_FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "numbers")]
pub enum Range {
    G2 = 0,
    G4 = 1,
    G8 = 2,
    G16 = 3,
}

/// How the sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Readings a second.
    pub rate: Rate,
    /// Largest measured acceleration; a step is 1/256 g in each.
    pub range: Range,
}

/// The sensor, measuring into its FIFO. Its blocks are readings of three samples, x, y and z, in steps of 1/256 g; at most 32 readings.
#[derive(Debug)]
pub struct Adxl345<R> {
    registers: R,
}

/// Why the sensor does not measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adxl345Error<E> {
    /// The bus.
    Bus(E),
    /// Another chip answers, or none on a bus that does not tell.
    WrongChip {
        /// Identification of the chip; an ADXL345 is 0xE5.
        found: u8,
    },
}

impl<R: Registers> Adxl345<R> {
    /// Starts measuring.
    ///
    /// # Errors
    /// [`Adxl345Error`].
    pub fn start(registers: R, config: Config) -> Result<Self, Adxl345Error<R::Error>> {
        let mut sensor = Self { registers };
        let found = sensor.register(DEVID)?;
        if found != DEVICE {
            return Err(Adxl345Error::WrongChip { found });
        }
        // Standby while it is set up, and what an earlier program left in the FIFO is gone.
        for (register, value) in [
            (POWER_CTL, 0),
            (BW_RATE, config.rate as u8),
            (DATA_FORMAT, FULL_RES | config.range as u8),
            (FIFO_CTL, BYPASS),
            (FIFO_CTL, STREAM),
            (POWER_CTL, MEASURE),
        ] {
            sensor.registers.write(register, value).map_err(Adxl345Error::Bus)?;
        }
        Ok(sensor)
    }

    /// Ends measuring, and gives the bus back.
    ///
    /// # Errors
    /// [`Adxl345Error::Bus`].
    pub fn stop(mut self) -> Result<R, Adxl345Error<R::Error>> {
        self.registers.write(POWER_CTL, 0).map_err(Adxl345Error::Bus)?;
        Ok(self.registers)
    }

    fn register(&mut self, register: u8) -> Result<u8, Adxl345Error<R::Error>> {
        let mut value = [0];
        self.registers.read(register, &mut value).map_err(Adxl345Error::Bus)?;
        let [value] = value;
        Ok(value)
    }

    /// Readings in the FIFO, and whether it was full.
    fn state(&mut self) -> Result<(usize, bool), Adxl345Error<R::Error>> {
        let entries = self.register(FIFO_STATUS)? & ENTRIES;
        let overrun = self.register(INT_SOURCE)? & OVERRUN != 0;
        Ok((entries.into(), overrun))
    }

    /// Empties the FIFO.
    fn restart(&mut self) -> Result<(), Adxl345Error<R::Error>> {
        for mode in [BYPASS, STREAM] {
            self.registers.write(FIFO_CTL, mode).map_err(Adxl345Error::Bus)?;
        }
        Ok(())
    }
}

/// Returns the acceleration of a sample, in g.
pub fn g(sample: i16) -> f32 {
    f32::from(sample) / 256.0
}

impl<R: Registers> Samples for Adxl345<R> {
    type Error = Adxl345Error<R::Error>;

    /// A block is a number of whole readings of which the FIFO holds as many: others are short. A FIFO that was full is emptied, and that is late.
    fn poll(&mut self, block: &mut [i16]) -> Result<bool, SamplesError<Self::Error>> {
        let expected = block.len();
        let (readings, rest) = block.as_chunks_mut::<AXES>();
        // A FIFO of 32 is full before anyone can take as many.
        let most = FIFO - 1;
        if !rest.is_empty() || readings.len() > most {
            let got = AXES * readings.len().min(most);
            return Err(SamplesError::Short { got, expected });
        }
        let (entries, overrun) = self.state().map_err(SamplesError::Device)?;
        if overrun {
            self.restart().map_err(SamplesError::Device)?;
            let lost = u32::try_from(AXES * entries).unwrap_or(u32::MAX);
            return Err(SamplesError::Late { lost });
        }
        if entries < readings.len() {
            return Ok(false);
        }
        for reading in readings {
            // All six at once: a read of them takes an entry from the FIFO.
            let mut bytes = [0; 2 * AXES];
            let read = self.registers.read(DATAX0, &mut bytes);
            read.map_err(|error| SamplesError::Device(Adxl345Error::Bus(error)))?;
            let (pairs, _) = bytes.as_chunks::<2>();
            reading
                .iter_mut()
                .zip(pairs)
                .for_each(|(to, pair)| *to = i16::from_le_bytes(*pair));
        }
        Ok(true)
    }
}

impl<E: fmt::Debug> fmt::Display for Adxl345Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bus(error) => write!(f, "the bus to the accelerometer: {error:?}"),
            Self::WrongChip { found } => write!(
                f,
                "a chip that calls itself {found:#04x}, expected an ADXL345, {DEVICE:#04x}"
            ),
        }
    }
}

impl<E: fmt::Debug> Error for Adxl345Error<E> {}
