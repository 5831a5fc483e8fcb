//! The STM32F205: its clock and its UART.

use core::fmt::{self, Write};

// The registers of this program are the same in both.
use stm32f2::stm32f215 as pac;

/// USART1, which sends.
struct Uart(pac::USART1);

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while self.0.sr().read().txe().bit_is_clear() {}
            // SAFETY: a byte to send.
            self.0.dr().write(|w| unsafe { w.bits(u16::from(byte)) });
        }
        Ok(())
    }
}

/// Sets the clock to 120 MHz by the PLL: 16 MHz / 16 * 240 / 2. The buses have 30 and 60 MHz.
fn set_clock(rcc: &pac::RCC, flash: &pac::FLASH) {
    flash
        .acr()
        .write(|w| w.latency().ws3().prften().enabled().icen().enabled().dcen().enabled());
    // SAFETY: factors within the limits of the reference manual, RM0033; 48 MHz for USB.
    rcc.pllcfgr()
        .write(|w| unsafe { w.pllm().bits(16).plln().bits(240).pllp().div2().pllq().bits(5) });
    rcc.cr().modify(|_, w| w.pllon().on());
    while rcc.cr().read().pllrdy().bit_is_clear() {}
    rcc.cfgr().modify(|_, w| w.ppre1().div4().ppre2().div2().sw().pll());
    while !rcc.cfgr().read().sws().is_pll() {}
}

/// Sets the clock, and USART1 (PA9) to 115,200 baud. Starts the counter of cycles.
pub fn start() -> impl Write {
    let device = pac::Peripherals::take().unwrap();
    let core = cortex_m::Peripherals::take().unwrap();
    let (rcc, port, uart) = (device.RCC, device.GPIOA, device.USART1);
    // The emulator's PLL never says that it is ready.
    if !cfg!(feature = "emulated") {
        set_clock(&rcc, &device.FLASH);
    }
    crate::cycles::start(core.SYST);
    rcc.ahb1enr().modify(|_, w| w.gpioaen().enabled());
    rcc.apb2enr().modify(|_, w| w.usart1en().enabled());
    port.afrh().modify(|_, w| w.afrh9().af7());
    port.moder().modify(|_, w| w.moder9().alternate());
    // SAFETY: 60 MHz / 115,200, in sixteenths.
    uart.brr().write(|w| unsafe { w.bits(521) });
    uart.cr1().write(|w| w.ue().enabled().te().enabled());
    Uart(uart)
}
