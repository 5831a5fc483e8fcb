//! The nRF51822: its clock and its UART.

use core::fmt::Write;

use nrf51_hal::{Clocks, Uart, gpio, pac, uart};

/// Starts the crystal of 16 MHz, sets the UART (P0.24 sends, P0.25 receives: the pins of a micro:bit) to 115,200 baud, and starts the counter of cycles.
pub fn start() -> impl Write {
    let device = pac::Peripherals::take().unwrap();
    Clocks::new(device.CLOCK).enable_ext_hfosc();
    crate::cycles::start(device.TIMER0);
    let port = gpio::p0::Parts::new(device.GPIO);
    let pins = uart::Pins {
        txd: port.p0_24.into_push_pull_output(gpio::Level::High).degrade(),
        rxd: port.p0_25.into_floating_input().degrade(),
        cts: None,
        rts: None,
    };
    let uart = Uart::new(device.UART0, pins, uart::Parity::EXCLUDED, uart::Baudrate::BAUD115200);
    // The driver waits for a byte that it has sent before it enabled the UART. The emulator drops that one.
    if cfg!(feature = "emulated") {
        // SAFETY: the driver has the UART, and does not use it meanwhile.
        let registers = unsafe { &*pac::UART0::ptr() };
        // SAFETY: a byte of text.
        registers.txd.write(|w| unsafe { w.bits(u32::from(b'\r')) });
    }
    uart
}
