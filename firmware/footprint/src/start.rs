//! Start-up alone: what the other programs have beside the runtime.
#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;

#[entry]
fn main() -> ! {
    loop {
        black_box(());
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
