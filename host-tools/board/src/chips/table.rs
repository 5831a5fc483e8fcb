//! The chips, each described once.

use super::chip::{Chip, KIB, LINK, MIB, Runner, Support, memory};
use super::emulated::EMULATED;
use crate::board::{BOARDS, Board};

/// A Cortex-M with a HAL of its own and the log over RTT.
const fn cortex_m(dependencies: &'static str, head: &'static str, entry: &'static str) -> Support {
    Support {
        dependencies,
        head,
        entry,
        start: "",
        print: "defmt::info!",
        end: "loop {\n        cortex_m::asm::wfi();\n    }",
        sections: Some(""),
        link: LINK,
        runner: Runner::Probe,
    }
}

/// Chips; those that qemu emulates and the emulated boards of [`all`] come on top.
static CHIPS: [Chip; 6] = [
    Chip {
        name: "stm32f407vg",
        core: "Cortex-M4F",
        triple: "thumbv7em-none-eabihf",
        features: &["dsp"],
        target: "cortex-m4",
        mhz: Some(168),
        flash: memory(0x0800_0000, MIB),
        // SRAM1 and SRAM2; 64 KiB of CCM lie elsewhere.
        ram: memory(0x2000_0000, 128 * KIB),
        source: "ST DS8626",
        probe: Some("STM32F407VGTx"),
        support: cortex_m(
            "stm32f4xx-hal = { version = \"0.23\", features = [\"stm32f407\"] }\n\
             cortex-m = { version = \"0.7\", features = [\"critical-section-single-core\"] }\n\
             cortex-m-rt = \"0.7\"\ndefmt = \"1\"\ndefmt-rtt = \"1\"\npanic-probe = { version = \"1\", features = [\"print-defmt\"] }",
            "use stm32f4xx_hal as _;",
            "cortex_m_rt::entry",
        ),
        emulation: None,
    },
    Chip {
        name: "stm32h743zi",
        core: "Cortex-M7",
        triple: "thumbv7em-none-eabihf",
        features: &["dsp"],
        target: "cortex-m7",
        mhz: Some(480),
        flash: memory(0x0800_0000, 2 * MIB),
        // AXI SRAM, which DMA reaches; DTCM is faster and has 128 KiB at 0x20000000.
        ram: memory(0x2400_0000, 512 * KIB),
        source: "ST DS12110",
        probe: Some("STM32H743ZITx"),
        support: cortex_m(
            "stm32h7xx-hal = { version = \"0.16\", features = [\"stm32h743v\", \"rt\"] }\n\
             cortex-m = { version = \"0.7\", features = [\"critical-section-single-core\"] }\n\
             cortex-m-rt = \"0.7\"\ndefmt = \"1\"\ndefmt-rtt = \"1\"\npanic-probe = { version = \"1\", features = [\"print-defmt\"] }",
            "use stm32h7xx_hal as _;",
            "cortex_m_rt::entry",
        ),
        emulation: None,
    },
    Chip {
        name: "nrf52840",
        core: "Cortex-M4F",
        triple: "thumbv7em-none-eabihf",
        features: &["dsp"],
        target: "cortex-m4",
        mhz: Some(64),
        flash: memory(0, MIB),
        ram: memory(0x2000_0000, 256 * KIB),
        source: "Nordic nRF52840 PS v1.11",
        probe: Some("nRF52840_xxAA"),
        support: cortex_m(
            "nrf52840-hal = \"0.19\"\n\
             cortex-m = { version = \"0.7\", features = [\"critical-section-single-core\"] }\n\
             cortex-m-rt = \"0.7\"\ndefmt = \"1\"\ndefmt-rtt = \"1\"\npanic-probe = { version = \"1\", features = [\"print-defmt\"] }",
            "use nrf52840_hal as _;",
            "cortex_m_rt::entry",
        ),
        emulation: None,
    },
    Chip {
        name: "rp2040",
        core: "Cortex-M0+",
        triple: "thumbv6m-none-eabi",
        features: &["critical-section"],
        target: "cortex-m0",
        mhz: Some(133),
        // Of a Pico.
        flash: memory(0x1000_0000, 2 * MIB),
        ram: memory(0x2000_0000, 256 * KIB),
        source: "Raspberry Pi RP2040 and Pico datasheets",
        probe: Some("RP2040"),
        support: Support {
            sections: Some(
                "\nSECTIONS {\n  .boot2 ORIGIN(BOOT2) : { KEEP(*(.boot2)); } > BOOT2\n} INSERT BEFORE .text;\n",
            ),
            ..cortex_m(
                "rp2040-hal = { version = \"0.12\", features = [\"rt\", \"critical-section-impl\"] }\nrp2040-boot2 = \"0.3\"\n\
                 cortex-m = \"0.7\"\ncortex-m-rt = \"0.7\"\ndefmt = \"1\"\ndefmt-rtt = \"1\"\npanic-probe = { version = \"1\", features = [\"print-defmt\"] }",
                "/// What the ROM starts: it sets the flash up.\n#[unsafe(link_section = \".boot2\")]\n#[used]\n\
                 static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_GENERIC_03H;",
                "rp2040_hal::entry",
            )
        },
        emulation: None,
    },
    Chip {
        name: "rp2350",
        core: "Cortex-M33",
        triple: "thumbv8m.main-none-eabihf",
        features: &["dsp"],
        target: "cortex-m33",
        mhz: Some(150),
        // Of a Pico 2.
        flash: memory(0x1000_0000, 4 * MIB),
        ram: memory(0x2000_0000, 512 * KIB),
        source: "Raspberry Pi RP2350 and Pico 2 datasheets",
        probe: Some("RP235x"),
        support: Support {
            sections: Some(
                "\nSECTIONS {\n  .start_block : ALIGN(4) { __start_block_addr = .; KEEP(*(.start_block)); } > FLASH\n} INSERT AFTER .vector_table;\n\
                 _stext = ADDR(.start_block) + SIZEOF(.start_block);\n",
            ),
            ..cortex_m(
                "rp235x-hal = { version = \"0.4\", features = [\"rt\", \"critical-section-impl\"] }\n\
                 cortex-m = \"0.7\"\ncortex-m-rt = \"0.7\"\ndefmt = \"1\"\ndefmt-rtt = \"1\"\npanic-probe = { version = \"1\", features = [\"print-defmt\"] }",
                "/// Tells the ROM what this image is.\n#[unsafe(link_section = \".start_block\")]\n#[used]\n\
                 static IMAGE_DEF: rp235x_hal::block::ImageDef = rp235x_hal::block::ImageDef::secure_exe();",
                "rp235x_hal::entry",
            )
        },
        emulation: None,
    },
    Chip {
        name: "esp32c3",
        core: "RV32IMC",
        triple: "riscv32imc-unknown-none-elf",
        features: &["critical-section"],
        target: "riscv32imac",
        mhz: Some(160),
        // Mapped by the boot loader; of the usual module.
        flash: memory(0x4200_0000, 4 * MIB),
        // Of 400 KiB; the cache and the ROM have the rest.
        ram: memory(0x3FC8_0000, 320 * KIB),
        source: "Espressif ESP32-C3 datasheet and technical reference",
        probe: Some("esp32c3"),
        support: Support {
            dependencies: "esp-hal = { version = \"1\", features = [\"esp32c3\"] }\n\
                           esp-bootloader-esp-idf = { version = \"0.6\", features = [\"esp32c3\"] }\n\
                           esp-println = { version = \"0.18\", features = [\"esp32c3\"] }\n\
                           esp-backtrace = { version = \"0.20\", features = [\"esp32c3\", \"panic-handler\", \"println\"] }",
            head: "use esp_backtrace as _;\n\nesp_bootloader_esp_idf::esp_app_desc!();",
            entry: "esp_hal::main",
            start: "    esp_hal::init(esp_hal::Config::default());\n",
            print: "esp_println::println!",
            end: "loop {}",
            sections: None,
            link: &["-Tlinkall.x"],
            runner: Runner::Probe,
        },
        emulation: None,
    },
];

/// An emulated Cortex-M board, which prints over semihosting.
fn emulated(board: &'static Board) -> Option<Chip> {
    let [.., target] = board.targets else { return None };
    let usual = board.triple.starts_with("thumb") && !board.name.contains(':');
    usual.then(|| Chip {
        name: board.name,
        core: board.core,
        triple: board.triple,
        features: if board.triple.starts_with("thumbv6m") {
            &["critical-section"]
        } else {
            board.runtime
        },
        target,
        mhz: None,
        flash: board.flash,
        ram: board.ram,
        source: "qemu",
        probe: None,
        support: Support {
            dependencies: "cortex-m = { version = \"0.7\", features = [\"critical-section-single-core\"] }\ncortex-m-rt = \"0.7\"\n\
                           semihosting = { version = \"0.1\", features = [\"stdio\", \"panic-handler\"] }",
            head: "use cortex_m as _;",
            entry: "cortex_m_rt::entry",
            start: "",
            print: "semihosting::println!",
            end: "semihosting::process::exit(0)",
            sections: Some(""),
            link: &["-Tlink.x", "--nmagic"],
            runner: Runner::Qemu(board),
        },
        emulation: None,
    })
}

/// A name without what does not matter in it.
pub(super) fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "")
}

/// All chips and emulated boards.
pub fn all() -> Vec<Chip> {
    CHIPS
        .iter()
        .chain(&EMULATED)
        .cloned()
        .chain(BOARDS.iter().filter_map(emulated))
        .collect()
}

impl Chip {
    /// The chip of this name, or of this part number, which says the package and grade behind the name; hyphens and case do not matter.
    pub fn find(name: &str) -> Option<Self> {
        let (wanted, chips) = (plain(name), all());
        let exact = chips.iter().find(|chip| plain(chip.name) == wanted);
        let part = || {
            // Another digit behind one makes it another chip's name.
            let is_digit = |letter: char| letter.is_ascii_digit();
            let is_of = |name: &str| {
                let rest = wanted.strip_prefix(&plain(name));
                rest.is_some_and(|rest| !(name.ends_with(is_digit) && rest.starts_with(is_digit)))
            };
            let chip = |chip: &&Chip| chip.probe.is_some() && is_of(chip.name);
            chips.iter().find(chip)
        };
        exact.or_else(part).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_found_by_name_or_part_number() {
        for (name, found) in [
            ("nrf52840", Some("nrf52840")),
            ("nrf52840_xxAA", Some("nrf52840")),
            ("STM32F407VGT6", Some("stm32f407vg")),
            ("rp20401", None),
            ("STM32F4", None),
            ("esp32", None),
            ("nrf52", None),
            ("ESP32-C3", Some("esp32c3")),
            ("mps2-an386", Some("mps2-an386")),
            ("mps2", None),
            ("", None),
            ("z80", None),
        ] {
            assert_eq!(Chip::find(name).map(|chip| chip.name), found, "{name}");
        }
    }

    #[test]
    fn rows_agree_with_their_triples() {
        for chip in all() {
            let has = |feature| chip.features.contains(&feature);
            let dsp = ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"].contains(&chip.target);
            assert_eq!(has("dsp"), dsp, "{}", chip.name);
            let lacks_swap = chip.triple.starts_with("thumbv6m") || chip.triple.starts_with("riscv32imc-");
            assert_eq!(has("critical-section"), lacks_swap, "{}", chip.name);
            assert!(
                arenite::Target::ALL.iter().any(|target| target.name() == chip.target),
                "{}",
                chip.name
            );
        }
    }
}
