//! The cores that the library for C is built for, each described once: CMake, Zephyr, ESP-IDF and Arduino choose the library by this table.

use std::fmt::Write as _;

/// A core, with what tells it from others in each place.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// Name of the library's folder.
    pub name: &'static str,
    /// Rust target triple.
    pub triple: &'static str,
    /// Features of the library.
    pub features: &'static [&'static str],
    /// `pack --target`.
    pub target: &'static str,
    /// Options of GCC and Clang with the same calling convention.
    pub options: &'static [&'static str],
    /// Macros that a compiler for this core defines, as regular expressions; with `!` one that it does not. The first row that agrees is taken.
    pub macros: &'static [&'static str],
    /// The condition in Kconfig, by Zephyr's symbols.
    pub zephyr: &'static str,
    /// Chips of ESP-IDF.
    pub esp_idf: &'static [&'static str],
    /// Folders of an Arduino library: `build.mcu`, and options of the FPU where the board has any.
    pub arduino: &'static [&'static str],
}

const ARMV8M: &str = "__ARM_ARCH_8M_MAIN__|__ARM_ARCH_8_1M_MAIN__";
const THUMB_V8: &str = "thumbv8m.main-none-eabi";
const THUMB_V8_HARD: &str = "thumbv8m.main-none-eabihf";

/// All cores; one that others contain stands behind them.
pub static CORES: [Core; 11] = [
    Core {
        name: "cortex-m55",
        triple: THUMB_V8_HARD,
        features: &["dsp", "mve"],
        target: "cortex-m55",
        options: &["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"],
        macros: &[ARMV8M, "__ARM_FEATURE_MVE 3", "__ARM_PCS_VFP"],
        zephyr: "ARMV8_1_M_MVEF && FP_HARDABI",
        esp_idf: &[],
        arduino: &[],
    },
    Core {
        name: "cortex-m33f",
        triple: THUMB_V8_HARD,
        features: &["dsp"],
        target: "cortex-m33",
        options: &["-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"],
        macros: &[ARMV8M, "__ARM_FEATURE_DSP", "__ARM_PCS_VFP"],
        zephyr: "ARMV8_M_MAINLINE && ARMV8_M_DSP && FP_HARDABI",
        esp_idf: &[],
        arduino: &["cortex-m33/fpv5-sp-d16-hard"],
    },
    Core {
        name: "cortex-m33",
        triple: THUMB_V8,
        features: &["dsp"],
        target: "cortex-m33",
        options: &["-mcpu=cortex-m33", "-mthumb"],
        macros: &[ARMV8M, "__ARM_FEATURE_DSP", "!__ARM_PCS_VFP"],
        zephyr: "ARMV8_M_MAINLINE && ARMV8_M_DSP && !FP_HARDABI",
        esp_idf: &[],
        arduino: &["cortex-m33", "cortex-m33/fpv5-sp-d16-softfp"],
    },
    Core {
        name: "cortex-m33-nodsp",
        triple: THUMB_V8,
        features: &[],
        target: "cortex-m3",
        options: &["-mcpu=cortex-m33+nodsp", "-mthumb"],
        macros: &[ARMV8M, "!__ARM_FEATURE_DSP", "!__ARM_PCS_VFP"],
        zephyr: "ARMV8_M_MAINLINE && !ARMV8_M_DSP && !FP_HARDABI",
        esp_idf: &[],
        arduino: &[],
    },
    Core {
        name: "cortex-m4f",
        triple: "thumbv7em-none-eabihf",
        features: &["dsp"],
        target: "cortex-m4",
        options: &["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
        macros: &["__ARM_ARCH_7EM__", "__ARM_PCS_VFP"],
        zephyr: "(CPU_CORTEX_M4 || CPU_CORTEX_M7) && FP_HARDABI",
        esp_idf: &[],
        arduino: &[
            "cortex-m4/fpv4-sp-d16-hard",
            "cortex-m7/fpv5-d16-hard",
            "cortex-m7/fpv5-sp-d16-hard",
        ],
    },
    Core {
        name: "cortex-m4",
        triple: "thumbv7em-none-eabi",
        features: &["dsp"],
        target: "cortex-m4",
        options: &["-mcpu=cortex-m4", "-mthumb"],
        macros: &["__ARM_ARCH_7EM__", "!__ARM_PCS_VFP"],
        zephyr: "(CPU_CORTEX_M4 || CPU_CORTEX_M7) && !FP_HARDABI",
        esp_idf: &[],
        arduino: &[
            "cortex-m4",
            "cortex-m4/fpv4-sp-d16-softfp",
            "cortex-m7",
            "cortex-m7/fpv5-d16-softfp",
        ],
    },
    Core {
        name: "cortex-m3",
        triple: "thumbv7m-none-eabi",
        features: &[],
        target: "cortex-m3",
        options: &["-mcpu=cortex-m3", "-mthumb"],
        macros: &["__ARM_ARCH_7M__"],
        zephyr: "CPU_CORTEX_M3",
        esp_idf: &[],
        arduino: &["cortex-m3"],
    },
    Core {
        name: "cortex-m0plus",
        triple: "thumbv6m-none-eabi",
        features: &[],
        target: "cortex-m0",
        options: &["-mcpu=cortex-m0plus", "-mthumb"],
        macros: &["__ARM_ARCH_6M__|__ARM_ARCH_8M_BASE__"],
        zephyr: "CPU_CORTEX_M0 || CPU_CORTEX_M0PLUS || CPU_CORTEX_M1 || CPU_CORTEX_M23",
        esp_idf: &[],
        arduino: &["cortex-m0plus"],
    },
    Core {
        name: "riscv64gc",
        triple: "riscv64gc-unknown-none-elf",
        features: &[],
        target: "riscv64gc",
        options: &["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany"],
        macros: &[
            "__riscv_xlen 64",
            "__riscv_float_abi_double",
            "__riscv_atomic",
            "__riscv_compressed",
        ],
        zephyr: "RISCV && 64BIT && FLOAT_HARD && RISCV_ISA_EXT_D && RISCV_ISA_EXT_A && RISCV_ISA_EXT_C",
        esp_idf: &[],
        arduino: &[],
    },
    Core {
        name: "riscv32imac",
        triple: "riscv32imac-unknown-none-elf",
        features: &[],
        target: "riscv32imac",
        options: &["-march=rv32imac", "-mabi=ilp32"],
        macros: &[
            "__riscv_xlen 32",
            "__riscv_float_abi_soft",
            "__riscv_mul",
            "__riscv_atomic",
            "__riscv_compressed",
            "!__riscv_32e",
        ],
        zephyr: "RISCV && !64BIT && !FLOAT_HARD && RISCV_ISA_EXT_M && RISCV_ISA_EXT_A && RISCV_ISA_EXT_C",
        esp_idf: &["esp32c5", "esp32c6", "esp32c61", "esp32h2"],
        arduino: &["esp32c5", "esp32c6", "esp32h2"],
    },
    Core {
        name: "riscv32imc",
        triple: "riscv32imc-unknown-none-elf",
        features: &[],
        target: "riscv32imac",
        options: &["-march=rv32imc", "-mabi=ilp32"],
        macros: &[
            "__riscv_xlen 32",
            "__riscv_float_abi_soft",
            "__riscv_mul",
            "__riscv_compressed",
            "!__riscv_32e",
        ],
        zephyr: "RISCV && !64BIT && !FLOAT_HARD && !RISCV_ISA_RV32E && RISCV_ISA_EXT_M && RISCV_ISA_EXT_C",
        esp_idf: &["esp32c2", "esp32c3"],
        arduino: &["esp32c2", "esp32c3"],
    },
];

impl Core {
    /// The core of that name.
    ///
    /// # Errors
    /// All names.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        CORES.iter().find(|core| core.name == name).ok_or_else(|| {
            let names: Vec<_> = CORES.iter().map(|core| core.name).collect();
            format!("no core is called `{name}`; known: {}", names.join(", "))
        })
    }
}

/// The table as `firmware/c/cmake/cores.cmake` has it.
pub fn cmake() -> String {
    let names: Vec<_> = CORES.iter().map(|core| core.name).collect();
    let mut text = format!(
        "# The cores of host-tools/xtask/src/places/cores.rs. Generated: ARENITE_BLESS=1 cargo test -p arenite-tests --test programs places::\n\
         set(ARENITE_CORES {})\n",
        names.join(" ")
    );
    for core in &CORES {
        let macros: Vec<_> = core.macros.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(
            text,
            "set(ARENITE_CORE_{0}_TRIPLE {1})\nset(ARENITE_CORE_{0}_FEATURES {2:?})\nset(ARENITE_CORE_{0}_MACROS {3})",
            core.name,
            core.triple,
            core.features.join(";"),
            macros.join(" ")
        );
    }
    text
}
