//! Classifies three images of digits on the CORE, and counts the cycles of each.
#![no_std]
#![no_main]

mod chip;
mod cycles;

use core::fmt::Write as _;

use cortex_m_rt::{ExceptionFrame, entry, exception};
#[cfg(not(feature = "emulated"))]
use panic_halt as _;

arenite::include_model!(mod digits = concat!(env!("OUT_DIR"), "/digits.bin"));

/// Each eight rows of eight pixels.
#[rustfmt::skip]
static IMAGES: [digits::Input; 3] = [IMAGES_OF_DIGITS];

#[entry]
fn main() -> ! {
    let mut uart = chip::start();
    let mut session = digits::session().unwrap();
    for image in &IMAGES {
        let (logits, cycles) = cycles::count(|| digits::run(&mut session, image));
        let [(digit, _), (second, _)] = arenite::top(logits);
        writeln!(uart, "this is a {digit}, or else a {second}: {cycles} cycles\r").unwrap();
    }
    end()
}

/// Ends the emulator, with success.
#[cfg(feature = "emulated")]
fn end() -> ! {
    semihosting::process::exit(0)
}

/// Waits for interrupts, of which there are none.
#[cfg(not(feature = "emulated"))]
fn end() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

/// A fault panics. A panic ends the emulator with an error, and halts the chip.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("a fault at {:#010x}", frame.pc())
}
