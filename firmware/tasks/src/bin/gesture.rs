//! From an accelerometer's registers to a gesture on the core itself: generated motion that a chip measures, its driver over both buses, and the network.
#![no_std]
#![no_main]

use core::fmt::Debug;

use arenite_sensors::adxl345::{self, ADDRESS, Adxl345, Config, Range, Rate};
use arenite_sensors::{OverI2c, OverSpi, Registers, Samples};
use arenite_tasks::chip::Chip;
use semihosting::println;

#[cfg(target_arch = "riscv32")]
use riscv as _;

arenite::include_model!(mod gestures = env!("ARENITE_GESTURES"), loaded);

include!(concat!(env!("OUT_DIR"), "/windows.rs"));

const CONFIG: Config = Config {
    rate: Rate::Hz50,
    range: Range::G4,
};

/// Samples of a block: 16 readings of three axes.
const BLOCK: usize = 48;

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    semihosting::process::exit(i32::from(all().is_none()))
}

/// Says what went wrong.
fn told<T, E: Debug>(result: Result<T, E>) -> Option<T> {
    result.map_err(|error| println!("{error:?}")).ok()
}

fn all() -> Option<()> {
    let mut session = told(gestures::session())?;
    for window in &WINDOWS {
        for gesture in [
            tell(OverI2c::new(Chip::new(window), ADDRESS), &mut session)?,
            tell(OverSpi::new(Chip::new(window)), &mut session)?,
        ] {
            println!("{}", gestures::LABELS[gesture]);
        }
    }
    Some(())
}

/// The gesture that the accelerometer behind these registers measures.
fn tell<R: Registers<Error: Debug>>(registers: R, session: &mut gestures::Session<'_>) -> Option<usize> {
    let mut sensor = told(Adxl345::start(registers, CONFIG))?;
    let mut window = [0; 192];
    for block in window.as_chunks_mut::<BLOCK>().0 {
        while !told(sensor.poll(block))? {}
    }
    let scores = told(gestures::run(session, &window.map(adxl345::g)))?;
    let [(gesture, _)] = arenite::top(scores);
    Some(gesture)
}
