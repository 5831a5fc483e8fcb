//! The STM32F100: its clock and its UART.

use core::fmt::Write;

use stm32f1xx_hal::{pac, prelude::*, rcc};

/// Sets the clock to 24 MHz, and USART1 (PA9) to 115,200 baud. Starts the counter of cycles.
pub fn start() -> impl Write {
    let device = pac::Peripherals::take().unwrap();
    let core = cortex_m::Peripherals::take().unwrap();
    let mut rcc = device.RCC.constrain();
    // The emulator's PLL never says that it is ready.
    if !cfg!(feature = "emulated") {
        let clock = rcc::Config::hsi().sysclk(24.MHz());
        rcc = rcc.freeze(clock, &mut device.FLASH.constrain().acr);
    }
    crate::cycles::start(core.SYST);
    let mut pins = device.GPIOA.split(&mut rcc);
    let pin = pins.pa9.into_alternate_push_pull(&mut pins.crh);
    device.USART1.tx(pin, 115_200.bps(), &mut rcc)
}
