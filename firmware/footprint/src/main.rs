//! The smallest program that loads and runs one model: no logging, no file exchange, no formatting. Its code is the runtime's
//! own. `ARENITE_MODEL` names the model file when it is built.
#![no_std]
#![no_main]

mod entry;

use core::cell::UnsafeCell;
use core::hint::black_box;

use arenite::{LoadError, RunError, Session, SessionError};

arenite::include_model!(mod model = env!("ARENITE_MODEL"), loaded);

/// Memory that only `main` uses.
#[repr(C, align(16))]
struct StaticCell<T>(UnsafeCell<T>);
// SAFETY: one thread of execution, and `main` borrows each once.
unsafe impl<T> Sync for StaticCell<T> {}

static ARENA: StaticCell<[u8; model::ARENA_BYTES]> = StaticCell(UnsafeCell::new([0; model::ARENA_BYTES]));
static STATE: StaticCell<[u8; model::STATE_BYTES]> = StaticCell(UnsafeCell::new([0; model::STATE_BYTES]));

enum Stop {
    Load(LoadError),
    Session(SessionError),
    Run(RunError),
}

entry::entry!(main);

fn main() -> ! {
    // SAFETY: `main` runs once, and these are the only references to both.
    let (arena, state) = unsafe { (&mut *ARENA.0.get(), &mut *STATE.0.get()) };
    let result = run(arena, state);
    // Opaque, so that neither errors nor outputs are optimised away.
    match &result {
        Ok(()) => {}
        Err(Stop::Load(error)) => _ = black_box(error),
        Err(Stop::Session(error)) => _ = black_box(error),
        Err(Stop::Run(error)) => _ = black_box(error),
    }
    loop {
        black_box(&result);
    }
}

fn run(arena: &mut [u8], state: &mut [u8]) -> Result<(), Stop> {
    let model = model::load().map_err(Stop::Load)?;
    let (inputs, outputs) = (model.header().inputs, model.header().outputs);
    let mut session = Session::new(model, arena, state).map_err(Stop::Session)?;
    for index in 0..usize::from(inputs) {
        black_box(session.input_mut(index).map_err(Stop::Run)?);
    }
    session.run().map_err(Stop::Run)?;
    for index in 0..usize::from(outputs) {
        black_box(session.output(index).map_err(Stop::Run)?);
    }
    Ok(())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
