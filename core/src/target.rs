//! The cores that a model can be packed for.

/// Target that a blob was packed for: it chooses kernels and weight layouts. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
#[expect(missing_docs, reason = "named by their core")]
pub enum Target {
    Portable = 0,
    CortexM0 = 1,
    CortexM3 = 2,
    CortexM4 = 3,
    CortexM7 = 4,
    CortexM33 = 5,
    CortexM55 = 6,
    Riscv32imac = 7,
    Riscv64gc = 8,
    Riscv64gcv = 9,
    Aarch64 = 10,
    Aarch64Dotprod = 11,
    Aarch64I8mm = 12,
    Riscv32imacv = 13,
    X8664 = 14,
    Aarch64Sme = 15,
}

impl Target {
    /// All targets, in the order of their numbers.
    pub const ALL: [Target; 16] = [
        Target::Portable,
        Target::CortexM0,
        Target::CortexM3,
        Target::CortexM4,
        Target::CortexM7,
        Target::CortexM33,
        Target::CortexM55,
        Target::Riscv32imac,
        Target::Riscv64gc,
        Target::Riscv64gcv,
        Target::Aarch64,
        Target::Aarch64Dotprod,
        Target::Aarch64I8mm,
        Target::Riscv32imacv,
        Target::X8664,
        Target::Aarch64Sme,
    ];

    /// The name that `pack --target` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Portable => "portable",
            Target::CortexM0 => "cortex-m0",
            Target::CortexM3 => "cortex-m3",
            Target::CortexM4 => "cortex-m4",
            Target::CortexM7 => "cortex-m7",
            Target::CortexM33 => "cortex-m33",
            Target::CortexM55 => "cortex-m55",
            Target::Riscv32imac => "riscv32imac",
            Target::Riscv64gc => "riscv64gc",
            Target::Riscv64gcv => "riscv64gcv",
            Target::Aarch64 => "aarch64",
            Target::Aarch64Dotprod => "aarch64-dotprod",
            Target::Aarch64I8mm => "aarch64-i8mm",
            Target::Riscv32imacv => "riscv32imacv",
            Target::X8664 => "x86-64",
            Target::Aarch64Sme => "aarch64-sme",
        }
    }
}
