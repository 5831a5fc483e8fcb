//! As `main.rs`, with a panic handler that prints: what errors bring along where their text may be wanted. With the feature `unwrap` each result is unwrapped,
//! which prints an error's `Debug`; without it the program panics by itself. `ARENITE_MODEL` names the model file when it is built.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::fmt::{self, Write as _};
use core::hint::black_box;
use core::panic::PanicInfo;

use arenite::{Error, Session};
use cortex_m_rt::entry;

arenite::include_model!(mod model = env!("ARENITE_MODEL"), loaded);

/// Memory that only `main` uses.
#[repr(C, align(16))]
struct StaticCell<T>(UnsafeCell<T>);
// SAFETY: one thread of execution, and `main` borrows each once.
unsafe impl<T> Sync for StaticCell<T> {}

static ARENA: StaticCell<[u8; model::ARENA_BYTES]> = StaticCell(UnsafeCell::new([0; model::ARENA_BYTES]));
static STATE: StaticCell<[u8; model::STATE_BYTES]> = StaticCell(UnsafeCell::new([0; model::STATE_BYTES]));

#[entry]
fn main() -> ! {
    // SAFETY: `main` runs once, and these are the only references to both.
    let (arena, state) = unsafe { (&mut *ARENA.0.get(), &mut *STATE.0.get()) };
    let result = run(arena, state);
    #[cfg(feature = "unwrap")]
    result.unwrap();
    #[cfg(not(feature = "unwrap"))]
    if let Err(error) = black_box(result) {
        black_box(error.code());
        panic!("stopped");
    }
    loop {
        black_box(());
    }
}

fn run(arena: &mut [u8], state: &mut [u8]) -> Result<(), Error> {
    let model = model::load()?;
    let (inputs, outputs) = (model.header().inputs, model.header().outputs);
    let mut session = Session::new(model, arena, state)?;
    for index in 0..usize::from(inputs) {
        black_box(session.input_mut(index)?);
    }
    session.run()?;
    for index in 0..usize::from(outputs) {
        black_box(session.output(index)?);
    }
    Ok(())
}

/// A port that takes whatever is printed.
struct Port;

impl fmt::Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            black_box(byte);
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    _ = writeln!(Port, "{info}");
    loop {}
}
