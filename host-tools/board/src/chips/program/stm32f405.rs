//! The STM32F405: its clock and its UART.

use core::fmt::Write;

use stm32f4xx_hal::{pac, prelude::*, rcc};

/// Sets the clock to 168 MHz, and USART1 (PA9) to 115,200 baud. Starts the counter of cycles.
pub fn start() -> impl Write {
    let device = pac::Peripherals::take().unwrap();
    let core = cortex_m::Peripherals::take().unwrap();
    // The emulator's PLL never says that it is ready.
    let mut rcc = if cfg!(feature = "emulated") {
        device.RCC.constrain()
    } else {
        let clock = rcc::Config::hsi().sysclk(168.MHz());
        device.RCC.freeze(clock)
    };
    crate::cycles::start(core.SYST);
    let pins = device.GPIOA.split(&mut rcc);
    device.USART1.tx(pins.pa9, 115_200.bps(), &mut rcc).unwrap()
}
