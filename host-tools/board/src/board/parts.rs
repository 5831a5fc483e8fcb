//! Meaning of the parts of a row of the table for the firmware.

use super::table::{AddressRange, Timer, Uart};

impl Timer {
    /// The name in the firmware's `cfg(timer = "…")`.
    pub fn name(self) -> &'static str {
        match self {
            Timer::Cmsdk { .. } => "cmsdk",
            Timer::SystemCounter => "system_counter",
            Timer::Nrf => "nrf",
            Timer::Core => "core",
        }
    }
}

impl Uart {
    /// The name in the firmware's `cfg(uart = "…")`, and the address.
    pub fn row(self) -> (&'static str, u64) {
        match self {
            Uart::Cmsdk(start) => ("cmsdk", start),
            Uart::Ns16550(start) => ("ns16550", start),
            Uart::Pl011(start) => ("pl011", start),
            Uart::Nrf51(start) => ("nrf51", start),
        }
    }
}

impl AddressRange {
    /// First address behind the range.
    pub fn end(self) -> u64 {
        self.start + self.size
    }
}
