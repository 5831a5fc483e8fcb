//! The smallest program with two compiled models, which share kernels. `ARENITE_MODEL` names the file of one when it is built; that of the other lies beside
//! it, with `.second` behind its name.
#![no_std]
#![no_main]

mod entry;

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::MaybeUninit;

arenite::include_model!(mod first = env!("ARENITE_MODEL"));
arenite::include_model!(mod second = concat!(env!("ARENITE_MODEL"), ".second"));

/// Memory that only `main` uses.
struct StaticCell<T>(UnsafeCell<T>);
// SAFETY: one thread of execution, and `main` borrows each once.
unsafe impl<T> Sync for StaticCell<T> {}

/// Runs a model once.
macro_rules! run {
    ($model:ident) => {{
        /// Not `session()`, which wants compare-and-swap.
        static MEMORY: StaticCell<$model::Memory> = StaticCell(UnsafeCell::new($model::Memory::new()));
        /// Zeros that take no flash.
        static INPUTS: StaticCell<MaybeUninit<$model::Input>> = StaticCell(UnsafeCell::new(MaybeUninit::zeroed()));
        // SAFETY: `main` runs once, and this is the only reference to `MEMORY`.
        let mut session = $model::open(unsafe { &mut *MEMORY.0.get() });
        // SAFETY: numbers, for which zero bytes are valid; nothing writes them. Opaque, so that neither inputs nor outputs are known.
        let inputs: &$model::Input = black_box(unsafe { (*INPUTS.0.get()).assume_init_ref() });
        black_box($model::run(&mut session, inputs));
    }};
}

entry::entry!(main);

fn main() -> ! {
    run!(first);
    run!(second);
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
