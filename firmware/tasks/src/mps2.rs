//! Interrupts and timer of the AN386 image, as in a peripheral access crate, for as much as these programs use (interrupts: Arm's application note 386).

use core::ptr;

use cortex_m::interrupt::InterruptNumber;
pub use cortex_m_rt::interrupt;

/// Bits of an interrupt's priority.
pub const NVIC_PRIO_BITS: u8 = 3;

/// Interrupts.
#[derive(Clone, Copy, Debug)]
#[repr(u16)]
#[allow(missing_docs, reason = "their names in the manual")]
pub enum Interrupt {
    TIMER0 = 8,
    GPIO2 = 16,
    GPIO3 = 17,
}

pub use Interrupt as interrupt;

// SAFETY: each number is that of its interrupt in the application note, below the highest of the controller.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

unsafe extern "C" {
    fn TIMER0();
    fn GPIO2();
    fn GPIO3();
    fn DefaultHandler();
}

const VECTORS: usize = 32;

/// The vectors behind the core's own, which cortex-m-rt's link.x puts into their place.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "a name that the linker script wants")]
pub static __INTERRUPTS: [unsafe extern "C" fn(); VECTORS] = {
    let mut vectors: [unsafe extern "C" fn(); VECTORS] = [DefaultHandler; VECTORS];
    vectors[Interrupt::TIMER0 as usize] = TIMER0;
    vectors[Interrupt::GPIO2 as usize] = GPIO2;
    vectors[Interrupt::GPIO3 as usize] = GPIO3;
    vectors
};

/// The board's clock.
const HERTZ: u32 = 25_000_000;

/// The CMSDK timer: control (bit 0: on, bit 3: interrupts), value, reload, interrupt.
const TIMER0_START: usize = 0x4000_0000;

/// Interrupts so many times a second.
pub fn start_timer(per_second: u32) {
    let ticks = HERTZ / per_second.max(1);
    write(0x4, ticks);
    write(0x8, ticks);
    write(0x0, 1 << 3 | 1);
}

/// Ends the interrupt.
pub fn clear_timer() {
    write(0xc, 1);
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the timer, which this file alone uses; each write is one store.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(TIMER0_START + register), value) }
}
