//! A chip: what a project, a probe and `arenite size` need to know of it.

use crate::board::{AddressRange, Board};

/// A chip, or an emulated board.
#[derive(Debug, Clone)]
pub struct Chip {
    /// Name as users write it.
    pub name: &'static str,
    /// The core, for people.
    pub core: &'static str,
    /// Rust target triple.
    pub triple: &'static str,
    /// Features of the runtime.
    pub features: &'static [&'static str],
    /// `pack --target`.
    pub target: &'static str,
    /// The highest clock, in MHz; none of an emulated board.
    pub mhz: Option<u32>,
    /// Flash, or what the usual board of the chip has.
    pub flash: AddressRange,
    /// The largest RAM in one piece.
    pub ram: AddressRange,
    /// Where clock and memories are from.
    pub source: &'static str,
    /// Name of the chip in probe-rs; none of an emulated board.
    pub probe: Option<&'static str>,
    /// Crates and text that a program for it starts with.
    pub support: Support,
    /// A program that prints over a UART and runs in qemu as well, of chips that qemu emulates.
    pub emulation: Option<Emulation>,
}

/// Crates and text that a program for a chip starts with. The text is empty where [`Chip::emulation`] has a whole program.
#[derive(Debug, Clone)]
pub struct Support {
    /// Lines of `[dependencies]` beside `arenite`.
    pub dependencies: &'static str,
    /// Lines at the head of `main.rs`.
    pub head: &'static str,
    /// The attribute of `main`.
    pub entry: &'static str,
    /// The first lines of `main`.
    pub start: &'static str,
    /// The macro that prints.
    pub print: &'static str,
    /// The last line of `main`.
    pub end: &'static str,
    /// Sections of `memory.x` behind the memories; `None` where the HAL brings its own.
    pub sections: Option<&'static str>,
    /// Arguments of the linker.
    pub link: &'static [&'static str],
    /// Program that `cargo run` starts.
    pub runner: Runner,
}

/// Program that `cargo run` starts.
#[derive(Debug, Clone)]
pub enum Runner {
    /// probe-rs, by the chip's name there.
    Probe,
    /// qemu, with these arguments.
    Qemu(&'static Board),
}

/// A program for a chip that qemu emulates. It prints over a UART, classifies three digits, and counts the cycles of each.
#[derive(Debug, Clone)]
pub struct Emulation {
    /// qemu's machine.
    pub machine: &'static str,
    /// `-icount shift`: an emulated instruction takes 2^shift ns.
    pub icount_shift: u8,
    /// UART and pin, for people.
    pub uart: &'static str,
    /// The peripheral that counts cycles.
    pub counter: &'static str,
    /// `src/chip.rs`: sets the clock and the UART.
    pub chip: &'static str,
    /// `src/cycles.rs`: starts and reads the counter.
    pub cycles: &'static str,
    /// Crates of the chip's registers, for people.
    pub crates: &'static str,
    /// Differences of the machine from silicon that a program meets.
    pub lacks: &'static str,
}

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

pub(super) const fn memory(start: u64, size: u64) -> AddressRange {
    AddressRange { start, size }
}

pub(super) const LINK: &[&str] = &["-Tlink.x", "-Tdefmt.x", "--nmagic"];

const RTT: &str = "use {defmt_rtt as _, panic_probe as _};";

impl Chip {
    /// Whether its programs log over defmt.
    pub fn is_logged(&self) -> bool {
        self.support.print.starts_with("defmt")
    }

    /// Instructions in qemu count as so many cycles each, where it runs the chip's program.
    pub fn cycles_per_instruction(&self) -> Option<f64> {
        let (emulation, mhz) = (self.emulation.as_ref()?, self.mhz?);
        Some(f64::from(mhz) * f64::from(1_u32 << emulation.icount_shift) / 1e3)
    }

    /// Use of the log over RTT.
    pub(super) fn log(&self) -> &'static str {
        if self.is_logged() { RTT } else { "" }
    }

    /// Whether the core computes f32 itself.
    pub fn has_fpu(&self) -> bool {
        self.triple.ends_with("hf")
    }
}
