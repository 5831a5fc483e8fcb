//! The kernels: one folder a backend. The only place where `unsafe` is allowed.
//!
//! [`api`] says what a kernel is, [`primitives`] has the loops that kernels share, `isa` the macros of assembly, `reference` the oracle of all kernels.
//! No product links the oracle. The kernels of [`Backend::Scalar`] are in [`portable`], those of [`Backend::Int`] in [`packed`]; the other folders bear
//! their backend's name.
//!
//! A step names its kernel, so nothing is chosen here at run time; [`Backend::available`] says which backends this build has. A backend is its folder, its
//! line among the modules and its row in the table of backends, and its kernels' rows in [`table`]; everything else is derived.
#![allow(unsafe_code)]
// Packing functions have no caller on a device; builds with `pack` do find unused items.
#![cfg_attr(not(any(test, packing)), allow(dead_code))]

#[macro_use]
pub(crate) mod isa;

pub mod api;
pub mod primitives;
#[cfg(feature = "testkit")]
pub(crate) mod reference;
pub mod table;

pub mod compact;
pub mod dotprod;
pub mod dsp;
pub mod ethos_u;
pub mod fpu;
pub mod i8mm;
pub mod mve;
pub mod neon;
pub mod packed;
pub mod portable;
pub mod rvv;
pub mod sme;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(test)]
mod tests;

#[cfg(any(test, packing, feature = "accelerators"))]
use crate::target::Target;

macro_rules! backends {
    ($(
        $(#[$about:meta])+
        $variant:ident = $number:literal, $name:literal;
        built: $available:expr;
        tried: $tried:expr;
    )*) => {
        /// A family of kernels.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(u8)]
        pub enum Backend {
            $($(#[$about])+ $variant = $number,)*
        }

        impl Backend {
            /// All backends, in the order in which packing tries those that are for a target.
            pub const ALL: &'static [Backend] = &[$(Backend::$variant),*];

            /// Whether this build of the runtime has it.
            pub const fn available(self) -> bool {
                match self { $(Backend::$variant => $available),* }
            }

            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Backend::$variant => $name),* }
            }

            #[cfg(any(test, packing, feature = "accelerators"))]
            const fn tried(self) -> Tried {
                match self { $(Backend::$variant => $tried),* }
            }
        }
    };
}

// In the order of preference. A number is kept for ever; `tried` says for which targets packing looks among the backend's kernels.
backends! {
    /// Little code for `pack --size`; portable.
    Compact = 5, "compact";
    built: true;
    tried: Tried::for_size(&[]);

    /// Helium, on Cortex-M55 and later: builds with the feature `mve`. Hosts have the same kernels in portable Rust.
    Mve = 3, "mve";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "mve"));
    tried: Tried::on(&[Target::CortexM55]);

    /// The outer products of bytes of AArch64: builds with the feature `sme`. Hosts have the same kernels in portable Rust.
    Sme = 10, "sme";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "sme"));
    tried: Tried::on(&[Target::Aarch64Sme]);

    /// The products of matrices of bytes of AArch64: builds for cores that have them. Hosts have the same kernels in portable Rust.
    I8mm = 8, "i8mm";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "i8mm"));
    tried: Tried::on(&[Target::Aarch64I8mm, Target::Aarch64Sme]);

    /// The dot product instructions of AArch64: builds for cores that have them. Hosts have the same kernels in portable Rust, x86-64 ones by AVX2 and VNNI.
    Dotprod = 6, "dotprod";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "dotprod"));
    tried: Tried::on(&[Target::Aarch64Dotprod, Target::Aarch64I8mm, Target::Aarch64Sme, Target::X8664]);

    /// The DSP extension of Cortex-M4, M7 and M33: builds with the feature `dsp`. Hosts have the same kernels in portable Rust.
    Dsp = 2, "dsp";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "dsp"));
    // Cores with Helium have the DSP extension too.
    tried: Tried::on(&[Target::CortexM4, Target::CortexM7, Target::CortexM33, Target::CortexM55]);

    /// The vectors that every AArch64 core has. Hosts have the same kernels in portable Rust, x86-64 ones by AVX2.
    Neon = 7, "neon";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "neon"));
    tried: Tried::on(&[
        Target::Aarch64,
        Target::Aarch64Dotprod,
        Target::Aarch64I8mm,
        Target::Aarch64Sme,
        Target::X8664,
    ]);

    /// The vector extension of RISC-V: builds with the feature `rvv`. Hosts have the same kernels in portable Rust.
    Rvv = 9, "rvv";
    built: cfg!(any(not(target_os = "none"), kernel_isa = "rvv"));
    tried: Tried::on(&[Target::Riscv64gcv, Target::Riscv32imacv]);

    /// Floating point blocked for a core's registers; portable.
    // On AArch64 for what NEON has no kernel for, dilated windows and depthwise ones of one to three channels.
    Fpu = 4, "fpu";
    built: true;
    tried: Tried::on(&[
        Target::CortexM4,
        Target::CortexM7,
        Target::CortexM33,
        Target::Aarch64,
        Target::Aarch64Dotprod,
        Target::Aarch64I8mm,
        Target::Aarch64Sme,
        Target::X8664,
    ]);

    /// For cores without SIMD; portable Rust on all others.
    // Its sums take less code than the scalar kernel of all integer operators. Cores with SIMD come to it for what they have no kernel of their own for.
    Int = 1, "int";
    built: true;
    tried: Tried::for_size(&[
        Target::CortexM0,
        Target::CortexM3,
        Target::CortexM4,
        Target::CortexM7,
        Target::CortexM33,
        Target::CortexM55,
        Target::Riscv32imac,
        Target::Riscv64gc,
        Target::Riscv64gcv,
        Target::Riscv32imacv,
        Target::Aarch64,
        Target::Aarch64Dotprod,
        Target::Aarch64I8mm,
        Target::Aarch64Sme,
        Target::X8664,
    ]);

    /// Commands for an NPU beside the core: builds with the feature `ethos-u`. Packing takes them from a compiled network, and never chooses them.
    EthosU = 11, "ethos-u";
    built: cfg!(feature = "ethos-u");
    tried: Tried::on(&[]);

    /// Portable, safe, always there: the fallback.
    Scalar = 0, "scalar";
    built: true;
    tried: Tried::for_size(&Target::ALL);
}

/// When packing tries a backend.
#[cfg(any(test, packing, feature = "accelerators"))]
struct Tried {
    targets: &'static [Target],
    size: bool,
}

#[cfg(any(test, packing, feature = "accelerators"))]
impl Tried {
    /// For these targets where speed is preferred.
    const fn on(targets: &'static [Target]) -> Self {
        Self { targets, size: false }
    }

    /// As [`Tried::on`], and for any target where small code is preferred.
    const fn for_size(targets: &'static [Target]) -> Self {
        Self { targets, size: true }
    }
}

#[cfg(any(test, packing, feature = "accelerators"))]
impl Backend {
    /// The backends whose kernels packing tries for a target, best first; `size`: where small code is preferred over speed.
    pub fn order(target: Target, size: bool) -> impl Iterator<Item = Backend> {
        let tried = move |backend: Backend| {
            if size {
                backend.tried().size
            } else {
                backend.tried().targets.contains(&target)
            }
        };
        Backend::ALL.iter().copied().filter(move |&backend| tried(backend))
    }
}
