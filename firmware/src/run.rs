//! A program from its start to its exit status, a panic or a fault.

use arenite_protocol::{self as protocol, TEXT_MAX, Text, cut};
use defmt_semihosting as _;

use crate::board::row;
use crate::exchange::{self, Exchange};
use crate::{memory, stack, subject};

unsafe extern "Rust" {
    fn arenite_firmware_main(exchange: &mut Exchange) -> i32;
}

/// Runs the program; every board's start-up ends in this.
pub(crate) fn run_program() -> ! {
    let Some(mut exchange) = Exchange::open() else {
        semihosting::process::exit(protocol::exit::IO)
    };
    exchange.record(&protocol::Record::Boot {
        version: protocol::PROTOCOL_VERSION,
        board: row::NAME,
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
    let text = Text::of(info.message());
    let (file, line) = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    exchange::last_record(&protocol::Record::Panicked {
        file: cut(file, TEXT_MAX),
        line,
        text: text.as_str(),
    });
    semihosting::process::exit(protocol::exit::PANIC)
}

/// Reports the registers of a fault, as its handler knows them, and ends the program.
pub(crate) fn fault(pc: u64, lr: u64, sp: u64, cause: u64, address: u64) -> ! {
    if let Some(outside) = subject::under_way() {
        exchange::last_record(&outside);
    }
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
