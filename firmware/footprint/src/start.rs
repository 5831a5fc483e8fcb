//! Start-up alone: what the other programs have beside the runtime.
#![no_std]
#![no_main]

mod entry;

use core::hint::black_box;

entry::entry!(main);

fn main() -> ! {
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
