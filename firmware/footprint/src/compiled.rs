//! The smallest program with a compiled model: as `main.rs`, which loads it. `ARENITE_MODEL` names the model file when it is built.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::MaybeUninit;

use cortex_m_rt::entry;

arenite::include_model!(mod model = env!("ARENITE_MODEL"));

/// Inputs that only `main` reads: zeros in memory that takes no flash.
struct Inputs(UnsafeCell<MaybeUninit<model::Input>>);
// SAFETY: one thread of execution.
unsafe impl Sync for Inputs {}

static INPUTS: Inputs = Inputs(UnsafeCell::new(MaybeUninit::zeroed()));

#[entry]
fn main() -> ! {
    if let Some(mut session) = model::session() {
        // SAFETY: numbers, for which zero bytes are valid; nothing writes them. Opaque, so that they are not known.
        let inputs: &model::Input = black_box(unsafe { (*INPUTS.0.get()).assume_init_ref() });
        black_box(model::run(&mut session, inputs));
    }
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
