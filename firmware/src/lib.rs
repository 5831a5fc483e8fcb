//! Board support for the programs that run Arenite on qemu's boards.
//!
//! Layers, lowest first: `board` starts a core family and catches its faults; [`counter`] counts instructions with
//! whatever timer the board has; [`stack`] and [`memory`] measure and hand out memory; [`exchange`] talks to the host.
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

use defmt_semihosting as _;

mod board;
pub mod counter;
pub mod exchange;
pub mod memory;
pub mod stack;

pub use arenite_protocol as protocol;
#[cfg(board)]
pub use board::NAME;
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

unsafe extern "Rust" {
    fn arenite_firmware_main(exchange: &mut Exchange) -> i32;
}

/// What every board's start-up ends in.
fn run_program() -> ! {
    let Some(mut exchange) = Exchange::open() else {
        semihosting::process::exit(protocol::exit::IO)
    };
    exchange.record(&protocol::Record::Boot {
        version: protocol::PROTOCOL_VERSION,
        board: NAME,
        memory: memory::total(),
        stack: stack::size(),
    });
    stack::arm_guard();
    let flash = memory::flash_sum();

    // SAFETY: `entry!` defines the function with this signature; without it the program does not link.
    let mut status = unsafe { arenite_firmware_main(&mut exchange) };

    // On most of these boards flash is plain memory that a stray write changes in silence.
    if memory::flash_sum() != flash {
        exchange.record(&protocol::Record::Corrupted {
            what: protocol::Guarded::Flash,
        });
        status = protocol::exit::CORRUPTED;
    }
    if !stack::guard_intact() {
        exchange.record(&protocol::Record::Corrupted {
            what: protocol::Guarded::Stack,
        });
        status = protocol::exit::CORRUPTED;
    }
    semihosting::process::exit(status)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    use core::fmt::Write;
    let mut text = exchange::Text::new();
    // A cut message is still a message.
    let _ = write!(text, "{}", info.message());
    let (file, line) = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    exchange::last_record(&protocol::Record::Panicked {
        file: exchange::cut(file),
        line,
        text: text.as_str(),
    });
    semihosting::process::exit(protocol::exit::PANIC)
}

/// What a fault handler knows; reports it and ends the program.
fn fault(pc: u64, lr: u64, sp: u64, cause: u64, address: u64) -> ! {
    exchange::last_record(&protocol::Record::Fault {
        pc,
        lr,
        sp,
        cause,
        address,
    });
    semihosting::process::exit(protocol::exit::FAULT)
}

struct SingleThread;
critical_section::set_impl!(SingleThread);

// SAFETY: one core, and no interrupt is ever enabled, so every section is critical already.
unsafe impl critical_section::Impl for SingleThread {
    unsafe fn acquire() {}
    unsafe fn release(_: ()) {}
}
