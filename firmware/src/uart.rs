//! The board's first serial port, polled. qemu's ports have no speed and lose nothing.

use core::convert::Infallible;
use core::ptr;

use embedded_io::{ErrorType, Read, Write};

use crate::board::row::UART;

/// The port.
pub struct Uart(());

impl Uart {
    /// Switches it on.
    pub fn start() -> Self {
        registers::start();
        Self(())
    }
}

impl ErrorType for Uart {
    type Error = Infallible;
}

impl Read for Uart {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        let Some(byte) = bytes.first_mut() else {
            return Ok(0);
        };
        while !registers::has_byte() {}
        *byte = registers::byte();
        Ok(1)
    }
}

impl Write for Uart {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        for &byte in bytes {
            while !registers::has_room() {}
            registers::send(byte);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn read<T>(offset: usize) -> T {
    // SAFETY: an aligned register of the board's port, which is always readable.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance(UART + offset)) }
}

fn write<T>(offset: usize, value: T) {
    // SAFETY: an aligned register of the board's port, which this file alone writes.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(UART + offset), value) }
}

/// Arm's APB UART: data, state (bit 0: full, bit 1: a byte is there), control, divider.
#[cfg(uart = "cmsdk")]
mod registers {
    use super::{read, write};

    pub(super) fn start() {
        write::<u32>(0x10, 16);
        write::<u32>(0x08, 0b11);
    }

    pub(super) fn has_byte() -> bool {
        read::<u32>(0x04) & 0b10 != 0
    }

    pub(super) fn byte() -> u8 {
        read::<u32>(0x00) as u8
    }

    pub(super) fn has_room() -> bool {
        read::<u32>(0x04) & 0b01 == 0
    }

    pub(super) fn send(byte: u8) {
        write(0x00, u32::from(byte));
    }
}

/// A 16550: data, and the line's state (bit 0: a byte is there, bit 5: room).
#[cfg(uart = "ns16550")]
mod registers {
    use super::{read, write};

    pub(super) fn start() {}

    pub(super) fn has_byte() -> bool {
        read::<u8>(5) & 1 != 0
    }

    pub(super) fn byte() -> u8 {
        read(0)
    }

    pub(super) fn has_room() -> bool {
        read::<u8>(5) & 1 << 5 != 0
    }

    pub(super) fn send(byte: u8) {
        write(0, byte);
    }
}

/// That of the nRF51, whose events are cleared by hand: the pins and the speed of the micro:bit's USB bridge.
#[cfg(uart = "nrf51")]
mod registers {
    use super::{read, write};

    const RECEIVED: usize = 0x108;
    const SENT: usize = 0x11c;

    pub(super) fn start() {
        let (pin_out, pin_in, baud_115200, enabled) = (24_u32, 25_u32, 0x01d7_e000_u32, 4_u32);
        for (register, value) in [
            (0x50c, pin_out),
            (0x514, pin_in),
            (0x524, baud_115200),
            (0x500, enabled),
        ] {
            write(register, value);
        }
        // Receiver and transmitter.
        write(0x000, 1_u32);
        write(0x008, 1_u32);
    }

    pub(super) fn has_byte() -> bool {
        read::<u32>(RECEIVED) != 0
    }

    pub(super) fn byte() -> u8 {
        write(RECEIVED, 0_u32);
        read::<u32>(0x518) as u8
    }

    /// Sending waits until its byte is gone.
    pub(super) fn has_room() -> bool {
        true
    }

    pub(super) fn send(byte: u8) {
        write(SENT, 0_u32);
        write(0x51c, u32::from(byte));
        while read::<u32>(SENT) == 0 {}
    }
}

/// Arm's PL011: data, flags (bit 4: empty, bit 5: full), control.
#[cfg(uart = "pl011")]
mod registers {
    use super::{read, write};

    pub(super) fn start() {
        // The port, its transmitter, its receiver.
        write::<u32>(0x30, 1 | 1 << 8 | 1 << 9);
    }

    pub(super) fn has_byte() -> bool {
        read::<u32>(0x18) & 1 << 4 == 0
    }

    pub(super) fn byte() -> u8 {
        read::<u32>(0x00) as u8
    }

    pub(super) fn has_room() -> bool {
        read::<u32>(0x18) & 1 << 5 == 0
    }

    pub(super) fn send(byte: u8) {
        write(0x00, u32::from(byte));
    }
}
