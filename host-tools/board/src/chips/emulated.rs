//! Chips that qemu emulates: their programs print over a UART, on silicon and in qemu.

use super::chip::{Chip, Emulation, KIB, MIB, Runner, Support, memory};

/// A Cortex-M of these crates, whose program is the one of [`Emulation`].
const fn uart(dependencies: &'static str, sections: Option<&'static str>) -> Support {
    Support {
        dependencies,
        head: "",
        entry: "cortex_m_rt::entry",
        start: "",
        print: "",
        end: "",
        sections,
        link: &["-Tlink.x", "--nmagic"],
        runner: Runner::Probe,
    }
}

/// Lines of `[dependencies]` beside those of the chip's own crates.
macro_rules! with_core {
    ($own:literal) => {
        concat!(
            $own,
            "\ncortex-m = { version = \"0.7\", features = [\"critical-section-single-core\"] }\ncortex-m-rt = \"0.7\"\npanic-halt = \"1\"\n",
            "semihosting = { version = \"0.1\", features = [\"stdio\", \"panic-handler\"], optional = true }"
        )
    };
}

const SYSTICK: &str = include_str!("program/systick.rs");

/// Chips that qemu emulates.
pub(super) static EMULATED: [Chip; 5] = [
    Chip {
        name: "stm32f405",
        core: "Cortex-M4F",
        triple: "thumbv7em-none-eabihf",
        features: &["dsp"],
        target: "cortex-m4",
        mhz: Some(168),
        // Of an STM32F405RG.
        flash: memory(0x0800_0000, MIB),
        ram: memory(0x2000_0000, 128 * KIB),
        source: "ST DS8626",
        probe: Some("STM32F405RGTx"),
        support: uart(
            with_core!("stm32f4xx-hal = { version = \"0.23\", features = [\"stm32f405\"] }"),
            Some(""),
        ),
        emulation: Some(Emulation {
            machine: "netduinoplus2",
            icount_shift: 3,
            uart: "USART1 (PA9)",
            counter: "SysTick",
            chip: include_str!("program/stm32f405.rs"),
            cycles: SYSTICK,
            crates: "`stm32f4xx-hal`",
            lacks: "the clocks: RCC, FLASH and GPIO read 0, no PLL is ever ready, and the core always has 168 MHz",
        }),
    },
    Chip {
        name: "stm32f100",
        core: "Cortex-M3",
        triple: "thumbv7m-none-eabi",
        features: &[],
        target: "cortex-m3",
        mhz: Some(24),
        // Of an STM32F100RB.
        flash: memory(0x0800_0000, 128 * KIB),
        ram: memory(0x2000_0000, 8 * KIB),
        source: "ST STM32F100x4/6/8/B data sheet",
        probe: Some("STM32F100RB"),
        support: uart(
            with_core!("stm32f1xx-hal = { version = \"0.11\", features = [\"stm32f100\", \"medium\"] }"),
            Some(""),
        ),
        emulation: Some(Emulation {
            machine: "stm32vldiscovery",
            icount_shift: 5,
            uart: "USART1 (PA9)",
            counter: "SysTick",
            chip: include_str!("program/stm32f100.rs"),
            cycles: SYSTICK,
            crates: "`stm32f1xx-hal`",
            lacks: "the clocks: RCC, FLASH and GPIO read 0, no PLL is ever ready, and the core always has 24 MHz",
        }),
    },
    Chip {
        name: "stm32f205",
        core: "Cortex-M3",
        triple: "thumbv7m-none-eabi",
        features: &[],
        target: "cortex-m3",
        mhz: Some(120),
        // Of an STM32F205RG: SRAM1 and SRAM2.
        flash: memory(0x0800_0000, MIB),
        ram: memory(0x2000_0000, 128 * KIB),
        source: "ST STM32F205xx data sheet",
        probe: Some("STM32F205RGTx"),
        support: uart(
            with_core!("stm32f2 = { version = \"0.16\", features = [\"stm32f215\"] }"),
            Some(""),
        ),
        emulation: Some(Emulation {
            machine: "netduino2",
            icount_shift: 3,
            uart: "USART1 (PA9)",
            counter: "SysTick",
            chip: include_str!("program/stm32f205.rs"),
            cycles: SYSTICK,
            crates: "`stm32f2`, registers alone",
            lacks: "the clocks: RCC, FLASH and GPIO read 0, no PLL is ever ready, and the core always has 120 MHz",
        }),
    },
    Chip {
        name: "nrf51822",
        core: "Cortex-M0",
        triple: "thumbv6m-none-eabi",
        features: &["critical-section"],
        target: "cortex-m0",
        mhz: Some(16),
        // Of an nRF51822-xxAA, as on a micro:bit.
        flash: memory(0, 256 * KIB),
        ram: memory(0x2000_0000, 16 * KIB),
        source: "Nordic nRF51822 PS",
        probe: Some("nRF51822_xxAA"),
        support: uart(with_core!("nrf51-hal = \"0.19\""), Some("")),
        emulation: Some(Emulation {
            machine: "microbit",
            icount_shift: 6,
            uart: "the UART (P0.24)",
            counter: "TIMER0",
            chip: include_str!("program/nrf51822.rs"),
            cycles: include_str!("program/timer0.rs"),
            crates: "`nrf51-hal`",
            lacks: "the byte that the driver sends before it enables the UART, and waits for; oscillators start at once",
        }),
    },
    Chip {
        name: "lm3s6965",
        core: "Cortex-M3",
        triple: "thumbv7m-none-eabi",
        features: &[],
        target: "cortex-m3",
        mhz: Some(50),
        flash: memory(0, 256 * KIB),
        ram: memory(0x2000_0000, 64 * KIB),
        source: "TI LM3S6965 data sheet",
        probe: Some("LM3S6965"),
        // The crate writes `memory.x`.
        support: uart(with_core!("lm3s6965 = \"0.2\""), None),
        emulation: Some(Emulation {
            machine: "lm3s6965evb",
            icount_shift: 4,
            uart: "UART0 (PA1)",
            counter: "SysTick",
            chip: include_str!("program/lm3s6965.rs"),
            cycles: SYSTICK,
            crates: "`lm3s6965`, which has interrupts and no registers: those of the program are in the program",
            lacks: "nothing that the program uses: the clock is set in qemu as well, and the PLL is ready at once",
        }),
    },
];
