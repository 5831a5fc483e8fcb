//! A thermometer on an emulated I2C bus, read through the traits that the accelerometer is read through: TMP105 (Texas Instruments SBOS322) at 0x48.
//! It prints each change, and ends at the third.
#![no_std]
#![no_main]

use arenite_sensors::adxl345::{ADDRESS, Adxl345, Config, Range, Rate};
use arenite_sensors::{OverI2c, Registers};
use arenite_tasks::wires::{SHIELD, Wires};
use cortex_m_rt::entry;
use embedded_hal::i2c::{ErrorKind, I2c};
use semihosting::println;

const THERMOMETER: u8 = 0x48;
const TEMPERATURE: u8 = 0;
const CONFIGURATION: u8 = 1;
const HIGH_LIMIT: u8 = 3;
/// Sixteenths of a degree instead of halves.
const TWELVE_BITS: u8 = 0b11 << 5;

const CHANGES: usize = 3;

#[entry]
fn main() -> ! {
    let status = match measure() {
        Ok(()) => 0,
        Err(error) => {
            println!("{error:?}");
            1
        }
    };
    semihosting::process::exit(status)
}

fn measure() -> Result<(), ErrorKind> {
    let mut wires = Wires::new(SHIELD);
    let accelerometer = Config {
        rate: Rate::Hz50,
        range: Range::G4,
    };
    // No chip at the accelerometer's address, and another one at the thermometer's: both are told.
    for address in [ADDRESS, THERMOMETER] {
        match Adxl345::start(OverI2c::new(&mut wires, address), accelerometer) {
            Ok(_) => println!("{address:#04x}: an accelerometer"),
            Err(error) => println!("{address:#04x}: {error}"),
        }
    }

    // A limit of 75.5 degrees is what a read gives back.
    wires.write(THERMOMETER, &[HIGH_LIMIT, 75, 0x80])?;
    let mut chip = OverI2c::new(wires, THERMOMETER);
    println!("limit {}", register(&mut chip, HIGH_LIMIT)?);
    println!("halves {}", register(&mut chip, TEMPERATURE)?);
    chip.write(CONFIGURATION, TWELVE_BITS)?;
    let mut before = register(&mut chip, TEMPERATURE)?;
    println!("sixteenths {before}");
    for _ in 0..CHANGES {
        let mut now = before;
        while now == before {
            now = register(&mut chip, TEMPERATURE)?;
        }
        println!("now {now}");
        before = now;
    }
    Ok(())
}

/// In thousandths of a degree.
fn register<R: Registers>(chip: &mut R, register: u8) -> Result<i32, R::Error> {
    let mut bytes = [0; 2];
    chip.read(register, &mut bytes)?;
    Ok(i32::from(i16::from_be_bytes(bytes)) * 1000 / 256)
}
