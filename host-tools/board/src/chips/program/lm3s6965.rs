//! The LM3S6965: its clock and its UART.

use core::fmt::{self, Write};
use core::ptr::{read_volatile, write_volatile};

// The crate has the chip's interrupts and memories. No crate has its registers: those below are of the data sheet.
use lm3s6965 as _;

const RIS: usize = 0x400F_E050;
const RCC: usize = 0x400F_E060;
const RCGC1: usize = 0x400F_E104;
const RCGC2: usize = 0x400F_E108;
const PORT_A_AFSEL: usize = 0x4000_4420;
const PORT_A_DEN: usize = 0x4000_451C;
const UART_DR: usize = 0x4000_C000;
const UART_FR: usize = 0x4000_C018;
const UART_IBRD: usize = 0x4000_C024;
const UART_FBRD: usize = 0x4000_C028;
const UART_LCRH: usize = 0x4000_C02C;
const UART_CTL: usize = 0x4000_C030;

fn read(register: usize) -> u32 {
    // SAFETY: the callers pass registers of this list, which reading does not change.
    unsafe { read_volatile(register as *const u32) }
}

fn write(register: usize, value: u32) {
    // SAFETY: the callers pass registers of this list; none of them changes memory.
    unsafe { write_volatile(register as *mut u32, value) }
}

/// UART0, which sends.
struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const FULL: u32 = 1 << 5;
        for byte in text.bytes() {
            while read(UART_FR) & FULL != 0 {}
            write(UART_DR, u32::from(byte));
        }
        Ok(())
    }
}

/// Sets the clock to 50 MHz: a quarter of the PLL's 200 MHz, which a crystal of 8 MHz feeds.
fn set_clock() {
    const CRYSTAL: u32 = 0xE << 6;
    const BYPASS: u32 = 1 << 11;
    const PLL_OFF: u32 = 1 << 13;
    const QUARTER: u32 = (3 << 23) | (1 << 22);
    const LOCKED: u32 = 1 << 6;
    write(RCC, CRYSTAL | BYPASS | PLL_OFF);
    write(RCC, CRYSTAL | BYPASS | QUARTER);
    while read(RIS) & LOCKED == 0 {}
    write(RCC, CRYSTAL | QUARTER);
}

/// Sets the clock, and UART0 (PA1) to 115,200 baud. Starts the counter of cycles.
pub fn start() -> impl Write {
    const PINS: u32 = 0b11;
    let core = cortex_m::Peripherals::take().unwrap();
    set_clock();
    crate::cycles::start(core.SYST);
    write(RCGC1, read(RCGC1) | 1);
    write(RCGC2, read(RCGC2) | 1);
    // A peripheral answers three cycles after it has its clock.
    cortex_m::asm::delay(3);
    write(PORT_A_AFSEL, read(PORT_A_AFSEL) | PINS);
    write(PORT_A_DEN, read(PORT_A_DEN) | PINS);
    // 50 MHz / 16 / 115,200 = 27 + 8 / 64; bytes of eight bits, through the FIFO; on, and sending.
    write(UART_IBRD, 27);
    write(UART_FBRD, 8);
    write(UART_LCRH, 0x70);
    write(UART_CTL, 0x101);
    Uart
}
