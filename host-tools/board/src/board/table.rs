//! The boards, each described once: how to build for it, how qemu starts it, what memory it has, what it can run.
//!
//! The firmware takes its linker layout ([`Board::memory_x`]) and its timer from here as well: `firmware/build.rs` compiles this file, which therefore
//! uses nothing else of the crate.

#[path = "layout.rs"]
mod layout;

/// A board that qemu emulates, in one build configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// Name as users write it after `qemu:`.
    pub name: &'static str,
    /// The core, for people.
    pub core: &'static str,
    /// The core whose published timings give the cycle estimate.
    pub timings: Core,
    /// Rust target triple.
    pub triple: &'static str,
    /// Compiler flags beside the triple.
    pub rustflags: &'static [&'static str],
    /// Cargo feature of the firmware.
    pub feature: &'static str,
    /// Features of the runtime that the feature turns on.
    pub runtime: &'static [&'static str],
    /// Other features of the firmware that it turns on.
    pub firmware: &'static [&'static str],
    /// Timer that counts its instructions.
    pub timer: Timer,
    /// Its first serial port, where the firmware has a file for it.
    pub uart: Option<Uart>,
    /// qemu's program.
    pub qemu: &'static str,
    /// qemu's machine with what selects core and memory.
    pub machine: &'static [&'static str],
    /// Exponent of `-icount shift=`: an instruction takes 2^shift ns of the board's time.
    pub icount_shift: u32,
    /// Code and constants; the same as `ram` where the board runs from RAM.
    pub flash: AddressRange,
    /// Data and stack.
    pub ram: AddressRange,
    /// Further memory for blob, arenas and state.
    pub extra: Option<AddressRange>,
    /// Bytes of `ram` kept for the stack.
    pub stack: u64,
    /// Values of `pack --target` that the board's firmware runs.
    pub targets: &'static [&'static str],
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
}

/// A timer that the firmware has a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// Those of the MPS2 boards: first address of the peripherals, and a tick in quarters of a nanosecond.
    Cmsdk {
        /// First address.
        start: u64,
        /// A tick.
        quarter_ns: u64,
    },
    /// The MPS3 boards' 64-bit counter.
    SystemCounter,
    /// TIMER0 of the nRF51.
    Nrf,
    /// The core's own count of instructions or cycles.
    Core,
}

/// A serial port that the firmware has a file for, with the first address of its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uart {
    /// Arm's APB UART of the MPS boards.
    Cmsdk(u64),
    /// A 16550 with registers of a byte.
    Ns16550(u64),
    /// Arm's PL011.
    Pl011(u64),
    /// That of the nRF51.
    Nrf51(u64),
}

/// A flash at a serial bus, with the controller that the firmware has a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpiFlash {
    /// First address of the registers of SiFive's controller.
    pub controller: u64,
    /// Maker, type and capacity, as the chip answers.
    pub id: [u8; 3],
    /// Bytes.
    pub size: u64,
}

/// Cores with timings in `cycles.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// Cortex-M0 with the one-cycle multiplier.
    M0,
    /// Cortex-M0+ with the one-cycle multiplier.
    M0Plus,
    /// Cortex-M3.
    M3,
    /// Cortex-M4 with FPU.
    M4,
    /// Cortex-M7.
    M7,
    /// Cortex-M33.
    M33,
    /// Cortex-M55 with Helium.
    M55,
    /// A five-stage in-order RV32IMAC.
    Rv32,
    /// A five-stage in-order RV64GC.
    Rv64,
    /// AArch64; no estimate, its cores are out of order.
    A64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn memory(start: u64, size: u64) -> AddressRange {
    AddressRange { start, size }
}

/// 25 MHz are 160 quarters of a nanosecond, 20 MHz are 200.
const fn cmsdk(start: u64, quarter_ns: u64) -> Timer {
    Timer::Cmsdk { start, quarter_ns }
}

/// qemu's machine of RISC-V with vectors, and its memory.
macro_rules! vectors {
    ($core:literal, $memory:literal) => {
        &["-M", "virt", "-cpu", $core, "-m", $memory, "-bios", "none"]
    };
}

/// The same board with several cores: one program for any number of them.
macro_rules! several {
    ($board:ident, $name:literal, $core:literal, $cores:literal, $machine:literal, $processor:literal, $($more:literal),*) => {
        Board {
            name: concat!($name, ":smp", $cores),
            core: concat!($cores, " cores: ", $core),
            feature: concat!($name, "-smp"),
            runtime: &["cores"],
            machine: &["-M", $machine, "-cpu", $processor, "-smp", $cores, "-m", "4G", $($more),*],
            ..$board
        }
    };
}

/// Boards from which others differ in a little.
const RISCV32: Board = Board {
    name: "riscv32-virt",
    core: "RV32IMAC",
    timings: Core::Rv32,
    triple: "riscv32imac-unknown-none-elf",
    rustflags: &[],
    feature: "riscv32-virt",
    runtime: &[],
    firmware: &[],
    timer: Timer::Core,
    uart: Some(Uart::Ns16550(0x1000_0000)),
    qemu: "qemu-system-riscv32",
    machine: &["-M", "virt", "-m", "1G", "-bios", "none"],
    icount_shift: 0,
    flash: memory(0x8000_0000, 16 * MIB),
    ram: memory(0x8000_0000, 16 * MIB),
    extra: Some(memory(0x8100_0000, GIB - 32 * MIB)),
    stack: 256 * KIB,
    targets: &["portable", "riscv32imac"],
};

const RISCV64: Board = Board {
    name: "riscv64-virt",
    core: "RV64GC",
    timings: Core::Rv64,
    triple: "riscv64gc-unknown-none-elf",
    rustflags: &[],
    feature: "riscv64-virt",
    runtime: &[],
    firmware: &[],
    timer: Timer::Core,
    uart: Some(Uart::Ns16550(0x1000_0000)),
    qemu: "qemu-system-riscv64",
    machine: &["-M", "virt", "-m", "4G", "-bios", "none"],
    icount_shift: 0,
    // defmt's tags are small absolute addresses, which code in RAM at 2 GiB cannot reach on a 64-bit core.
    flash: memory(0x2000_0000, 32 * MIB),
    ram: memory(0x8000_0000, 16 * MIB),
    extra: Some(memory(0x8100_0000, 4 * GIB - 32 * MIB)),
    stack: 256 * KIB,
    targets: &["portable", "riscv64gc"],
};

const AN385: Board = Board {
    name: "mps2-an385",
    core: "Cortex-M3",
    timings: Core::M3,
    triple: "thumbv7m-none-eabi",
    rustflags: &[],
    feature: "mps2-an385",
    runtime: &[],
    firmware: &[],
    timer: cmsdk(0x4000_0000, 160),
    uart: Some(Uart::Cmsdk(0x4000_4000)),
    qemu: "qemu-system-arm",
    machine: &["-M", "mps2-an385"],
    icount_shift: 7,
    flash: memory(0, 4 * MIB),
    ram: memory(0x2000_0000, 4 * MIB),
    extra: Some(memory(0x2100_0000, 16 * MIB)),
    stack: 64 * KIB,
    targets: &["portable", "cortex-m0", "cortex-m3"],
};

const AN386: Board = Board {
    name: "mps2-an386",
    core: "Cortex-M4F",
    timings: Core::M4,
    triple: "thumbv7em-none-eabihf",
    rustflags: &[],
    feature: "mps2-an386",
    runtime: &["dsp"],
    firmware: &[],
    timer: cmsdk(0x4000_0000, 160),
    uart: Some(Uart::Cmsdk(0x4000_4000)),
    qemu: "qemu-system-arm",
    machine: &["-M", "mps2-an386"],
    icount_shift: 7,
    flash: memory(0, 4 * MIB),
    ram: memory(0x2000_0000, 4 * MIB),
    extra: Some(memory(0x2100_0000, 16 * MIB)),
    stack: 64 * KIB,
    targets: &["portable", "cortex-m0", "cortex-m3", "cortex-m4"],
};

const AARCH64: Board = Board {
    name: "aarch64-virt",
    core: "AArch64 (Cortex-A76)",
    timings: Core::A64,
    triple: "aarch64-unknown-none",
    rustflags: &[],
    feature: "aarch64-virt",
    runtime: &[],
    firmware: &[],
    timer: Timer::Core,
    uart: Some(Uart::Pl011(0x0900_0000)),
    qemu: "qemu-system-aarch64",
    machine: &["-M", "virt", "-cpu", "cortex-a76", "-m", "4G", "-nic", "none"],
    icount_shift: 0,
    flash: memory(0x4010_0000, 15 * MIB),
    ram: memory(0x4010_0000, 15 * MIB),
    extra: Some(memory(0x4100_0000, 4 * GIB - 32 * MIB)),
    stack: 256 * KIB,
    targets: &["portable", "aarch64"],
};

/// With vectors in streaming mode of one length.
const AARCH64_MAX: Board = Board {
    rustflags: &["-C", "target-feature=+dotprod,+i8mm"],
    feature: "aarch64-virt-max",
    runtime: &["accelerators", "sme"],
    firmware: &["sme"],
    targets: &["portable", "aarch64", "aarch64-dotprod", "aarch64-i8mm", "aarch64-sme"],
    ..AARCH64
};

/// All boards, in the order in which they are listed to users.
pub static BOARDS: [Board; 21] = [
    AN385,
    Board {
        name: "mps2-an385:thumbv6m",
        core: "Cortex-M0+ (its build, counted on a Cortex-M3)",
        timings: Core::M0Plus,
        triple: "thumbv6m-none-eabi",
        targets: &["portable", "cortex-m0"],
        ..AN385
    },
    AN386,
    Board {
        name: "mps2-an500",
        core: "Cortex-M7",
        timings: Core::M7,
        feature: "mps2-an500",
        machine: &["-M", "mps2-an500"],
        extra: Some(memory(0x6000_0000, 16 * MIB)),
        targets: &["portable", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7"],
        ..AN386
    },
    Board {
        name: "mps2-an505",
        core: "Cortex-M33",
        timings: Core::M33,
        triple: "thumbv8m.main-none-eabihf",
        rustflags: &["-C", "target-cpu=cortex-m33"],
        feature: "mps2-an505",
        timer: cmsdk(0x5000_0000, 200),
        uart: Some(Uart::Cmsdk(0x5020_0000)),
        machine: &["-M", "mps2-an505"],
        flash: memory(0x1000_0000, 4 * MIB),
        ram: memory(0x3800_0000, 4 * MIB),
        extra: Some(memory(0x8000_0000, 16 * MIB)),
        targets: &["portable", "cortex-m0", "cortex-m3", "cortex-m33"],
        ..AN386
    },
    Board {
        name: "mps2-an521",
        core: "Cortex-M33 without DSP and FPU; an accelerator: a second one with both",
        timings: Core::M33,
        triple: "thumbv8m.main-none-eabi",
        rustflags: &[],
        feature: "mps2-an521",
        runtime: &["accelerators"],
        firmware: &["second"],
        timer: cmsdk(0x5000_0000, 200),
        uart: Some(Uart::Cmsdk(0x5020_0000)),
        machine: &["-M", "mps2-an521"],
        flash: memory(0x1000_0000, 4 * MIB),
        ram: memory(0x3800_0000, 4 * MIB),
        extra: Some(memory(0x8000_0000, 16 * MIB)),
        targets: &["portable", "cortex-m0", "cortex-m3"],
        ..AN386
    },
    Board {
        name: "mps3-an547",
        core: "Cortex-M55 with Helium",
        timings: Core::M55,
        triple: "thumbv8m.main-none-eabihf",
        rustflags: &["-C", "target-cpu=cortex-m55"],
        feature: "mps3-an547",
        runtime: &["dsp", "mve"],
        firmware: &[],
        timer: Timer::SystemCounter,
        uart: Some(Uart::Cmsdk(0x5930_3000)),
        qemu: "qemu-system-arm",
        machine: &["-M", "mps3-an547"],
        icount_shift: 7,
        flash: memory(0, 512 * KIB),
        ram: memory(0x2100_0000, 4 * MIB),
        extra: Some(memory(0x6000_0000, 2 * GIB)),
        stack: 64 * KIB,
        targets: &["portable", "cortex-m0", "cortex-m3", "cortex-m33", "cortex-m55"],
    },
    Board {
        name: "microbit",
        core: "Cortex-M0",
        timings: Core::M0,
        triple: "thumbv6m-none-eabi",
        // Every kernel together is larger than this flash at the speed that the other boards are built for.
        rustflags: &["-C", "opt-level=s"],
        feature: "microbit",
        runtime: &[],
        firmware: &["small-flash"],
        timer: Timer::Nrf,
        uart: Some(Uart::Nrf51(0x4000_2000)),
        qemu: "qemu-system-arm",
        machine: &["-M", "microbit"],
        icount_shift: 7,
        flash: memory(0, 256 * KIB),
        ram: memory(0x2000_0000, 16 * KIB),
        extra: None,
        stack: 4 * KIB,
        targets: &["portable", "cortex-m0"],
    },
    RISCV32,
    Board {
        name: "riscv32-virt:v128",
        core: "RV32IMAC with vectors of 128 bits",
        feature: "riscv32-virt-v",
        runtime: &["rvv"],
        // Whole vectors, for want of the embedded ones alone.
        machine: vectors!("rv32,v=true,vext_spec=v1.0,vlen=128", "1G"),
        targets: &["portable", "riscv32imac", "riscv32imacv"],
        ..RISCV32
    },
    RISCV64,
    Board {
        name: "riscv64-virt:v128",
        core: "RV64GC with vectors of 128 bits",
        feature: "riscv64-virt-v",
        runtime: &["rvv"],
        machine: vectors!("rv64,v=true,vext_spec=v1.0,vlen=128", "4G"),
        targets: &["portable", "riscv64gc", "riscv64gcv"],
        ..RISCV64
    },
    Board {
        name: "riscv64-virt:v256",
        core: "RV64GC with vectors of 256 bits",
        feature: "riscv64-virt-v",
        runtime: &["rvv"],
        machine: vectors!("rv64,v=true,vext_spec=v1.0,vlen=256", "4G"),
        targets: &["portable", "riscv64gc", "riscv64gcv"],
        ..RISCV64
    },
    Board {
        name: "sifive-u",
        core: "RV64GC (SiFive U54), a flash on SPI",
        feature: "sifive-u",
        uart: None,
        machine: &["-M", "sifive_u", "-smp", "2", "-m", "1G", "-bios", "none"],
        // The flash is memory that qemu has in the place of the chip's window into its own.
        extra: Some(memory(0x8100_0000, GIB - 32 * MIB)),
        ..RISCV64
    },
    several! { RISCV64, "riscv64-virt", "RV64GC", "2", "virt", "rv64", "-bios", "none" },
    several! { RISCV64, "riscv64-virt", "RV64GC", "4", "virt", "rv64", "-bios", "none" },
    AARCH64,
    Board {
        name: "aarch64-virt:max",
        core: "AArch64 with dot products, products of matrices of bytes and outer products of 128 bits",
        machine: &["-M", "virt", "-cpu", "max,sme128=on", "-m", "4G", "-nic", "none"],
        ..AARCH64_MAX
    },
    Board {
        name: "aarch64-virt:sme512",
        core: "AArch64 with dot products, products of matrices of bytes and outer products of 512 bits",
        machine: &["-M", "virt", "-cpu", "max,sme512=on", "-m", "4G", "-nic", "none"],
        ..AARCH64_MAX
    },
    several! { AARCH64, "aarch64-virt", "AArch64 (Cortex-A76)", "2", "virt", "cortex-a76", "-nic", "none" },
    several! { AARCH64, "aarch64-virt", "AArch64 (Cortex-A76)", "4", "virt", "cortex-a76", "-nic", "none" },
];

impl Board {
    /// The board of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        BOARDS.iter().find(|board| board.name == name)
    }

    /// The first board of the same build, whose instructions it counts: a step takes as many on one of several cores.
    pub fn counts_as(&self) -> &'static Self {
        let runtime = if self.runtime.contains(&"cores") {
            &[][..]
        } else {
            self.runtime
        };
        let same =
            |other: &&Self| (other.triple, other.rustflags, other.runtime) == (self.triple, self.rustflags, runtime);
        BOARDS.iter().find(same).unwrap_or(&BOARDS[0])
    }

    /// How many cores run a network, those among them to which steps are handed.
    pub fn cores(&self) -> usize {
        // Other accelerators are parts of the core.
        let second = usize::from(self.firmware.contains(&"second"));
        let after = self.machine.iter().skip_while(|argument| **argument != "-smp").nth(1);
        let cores = after.filter(|_| self.runtime.contains(&"cores"));
        cores.and_then(|cores| cores.parse().ok()).unwrap_or(1 + second)
    }

    /// The flash at its serial bus, which holds models in pieces.
    pub fn spi_flash(&self) -> Option<SpiFlash> {
        // ISSI's IS25WP256 at QSPI0, as on the HiFive Unleashed.
        let chip = SpiFlash {
            controller: 0x1004_0000,
            id: [0x9d, 0x70, 0x19],
            size: 32 * MIB,
        };
        (self.feature == "sifive-u").then_some(chip)
    }

    /// Whether code runs from RAM, for lack of flash.
    pub fn runs_from_ram(&self) -> bool {
        self.flash == self.ram
    }

    /// Bits of a register of vectors, where qemu is told how long they are.
    pub fn vector_bits(&self) -> u32 {
        let options = self.machine.iter().flat_map(|argument| argument.split(','));
        let length = |option: &'static str| {
            let matrices = || option.strip_prefix("sme")?.strip_suffix("=on");
            option.strip_prefix("vlen=").or_else(matrices)
        };
        let bits = options.filter_map(length);
        bits.filter_map(|bits| bits.parse().ok()).next().unwrap_or(0)
    }

    /// Name without characters that a file name or a cargo feature cannot have.
    pub fn slug(&self) -> String {
        self.name.replace(':', "-")
    }
}
