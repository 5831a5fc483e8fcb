//! Proves a board before anything is measured on it: it boots, counts a loop of known length, and reports each kind of
//! failure as that kind.
#![no_std]
#![no_main]

use core::arch::asm;
use core::ptr;

use arenite_firmware::memory::Areas;
use arenite_firmware::protocol::{Command, Failure, PROTOCOL_VERSION, Purpose, Record, Request, exit};
use arenite_firmware::{
    Exchange,
    counter::{Counter, spin},
    stack,
};

arenite_firmware::entry!(main);

/// A constant that [`Failure::WriteFlash`] overwrites.
static CONSTANT: u32 = 0x600d_f1a5;

fn main(exchange: &mut Exchange) -> i32 {
    let request = match exchange.request() {
        Ok(request) => request,
        Err(error) => {
            defmt::error!("request: {}", error);
            return exit::IO;
        }
    };
    match request {
        Request {
            version: PROTOCOL_VERSION,
            command: Command::CountLoop { rounds },
        } => {
            defmt::info!("counting {} rounds on {=str}", rounds, arenite_firmware::NAME);
            let instructions = Counter::start().count(&mut || spin(rounds));
            exchange.record(&Record::Counted { rounds, instructions });
            exit::DONE
        }
        Request {
            version: PROTOCOL_VERSION,
            command: Command::Fail(failure),
        } => {
            defmt::warn!("failing on purpose");
            fail(exchange, failure)
        }
        _ => {
            exchange.record(&Record::BadRequest {
                version: PROTOCOL_VERSION,
            });
            exit::REFUSED
        }
    }
}

fn fail(exchange: &mut Exchange, failure: Failure) -> i32 {
    match failure {
        Failure::Fault => {
            // SAFETY: an undefined instruction, which is the point.
            unsafe {
                #[cfg(target_arch = "arm")]
                asm!("udf #0");
                #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
                asm!("unimp");
                #[cfg(target_arch = "aarch64")]
                asm!("udf #0");
            }
            exit::DONE
        }
        Failure::Panic => panic!("asked to panic"),
        Failure::Hang => loop {
            core::hint::spin_loop();
        },
        Failure::OverrunStack => {
            for word in stack::guard() {
                // SAFETY: words of the stack's guard, which nothing else uses.
                unsafe { ptr::write_volatile(word, 0) };
            }
            exit::DONE
        }
        Failure::WriteFlash => {
            // SAFETY: none: this is the stray write that the check at the end of a program must find.
            unsafe { ptr::write_volatile((&raw const CONSTANT).cast_mut(), 0xbad) };
            exit::DONE
        }
        Failure::WriteBeside { purpose, offset } => write_beside(exchange, purpose, offset),
    }
}

/// Hands out an arena and a state, writes one byte beside one of them, and asks both whether they are intact.
fn write_beside(exchange: &mut Exchange, purpose: Purpose, offset: i8) -> i32 {
    const BYTES: usize = 100;
    // SAFETY: called once a program; there is no blob.
    let mut areas = unsafe { Areas::new((0, 0)) };
    let (Ok(arena), Ok(state)) = (areas.take(BYTES, Purpose::Arena), areas.take(BYTES, Purpose::State)) else {
        return exit::REFUSED;
    };
    let piece = match purpose {
        Purpose::Arena => &arena,
        Purpose::State => &state,
    };
    // SAFETY: the piece was just taken, and gives its bytes once.
    let start = unsafe { piece.bytes() }.as_mut_ptr().expose_provenance();
    let from = if offset < 0 { start } else { start + BYTES };
    let at = from.wrapping_add_signed(offset.into());
    // SAFETY: none: this is the stray write that the canaries must show. It lies in memory that nothing else uses.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut::<u8>(at), 0) };
    match [arena, state].iter().find_map(|piece| piece.intact().err()) {
        None => exit::DONE,
        Some(what) => {
            exchange.record(&Record::Corrupted { what });
            exit::CORRUPTED
        }
    }
}
