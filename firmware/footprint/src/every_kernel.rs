//! Every kernel of a board's build, each of its pieces by itself: a program whose parts are measured, and which is never run.
//!
//! `ARENITE_MODEL` names the text of the functions when this is built.
#![no_std]
#![no_main]
// Compiled as the runtime's own functions of these kernels are, for speed.
#![feature(optimize_attribute)]

mod entry;

use core::hint::black_box;

use arenite::compiled as rt;

include!(env!("ARENITE_MODEL"));

entry::entry!(main);

fn main() -> ! {
    black_box(ALL);
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
