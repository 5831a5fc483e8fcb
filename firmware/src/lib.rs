//! Board support for the programs that run Arenite on qemu's boards.
//!
//! Layers, lowest first: [`stack`] and [`memory`] measure and hand out memory; [`exchange`] talks to the host, and [`answers`] says
//! why a program ends early; [`subject`] knows what runs between forbidden bytes; `run` is what every board runs from start to end,
//! faults and panics among it; `board` starts a core family and catches its faults; [`guards`] forbids bytes around memory; `cores`
//! wakes the other cores of a board that has several; `second` and `sme` are what takes over steps; [`counter`] counts instructions
//! with whatever timer the board has.
//! A program is an ordinary function named by [`entry!`]:
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! arenite_firmware::entry!(main);
//!
//! fn main(exchange: &mut Exchange) -> i32 { exit::DONE }
//! ```
//!
//! No interrupt is ever enabled: one thread of execution, so counts repeat to the instruction.
#![no_std]
#![warn(missing_docs)]

pub mod answers;
mod board;
#[cfg(smp)]
pub mod cores;
pub mod counter;
pub mod exchange;
pub mod guards;
#[cfg(feature = "verify")]
pub mod key;
pub mod linked;
pub mod memory;
mod run;
#[cfg(feature = "second")]
pub mod second;
#[cfg(feature = "sme")]
pub mod sme;
#[cfg(spi)]
pub mod spi;
pub mod stack;
pub mod subject;
#[cfg(uart)]
pub mod uart;

pub use arenite_protocol as protocol;
#[cfg(board)]
pub use board::row::NAME;
#[cfg(spi)]
pub use board::row::{SPI_FLASH_BYTES, SPI_FLASH_ID};
pub use exchange::Exchange;

#[cfg(not(board))]
compile_error!("choose a board with --features, for example --features mps2-an386 --target thumbv7em-none-eabihf");

/// Names the function that a program consists of: `fn(&mut Exchange) -> i32`, whose result is the exit status.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        extern "Rust" fn arenite_firmware_main(exchange: &mut $crate::Exchange) -> i32 {
            let main: fn(&mut $crate::Exchange) -> i32 = $main;
            main(exchange)
        }
    };
}
