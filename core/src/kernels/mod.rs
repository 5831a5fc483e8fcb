//! The kernels: one folder a backend. The only place where `unsafe` is allowed.
//!
//! A step names its kernel, so nothing is chosen here at run time; [`Backend::available`] says which backends this build has.
#![allow(unsafe_code)]

pub mod compact;
pub mod dsp;
pub mod fpu;
pub mod int;
pub mod kernel;
pub mod mve;
mod overlap;
#[cfg(test)]
mod pool_tests;
pub mod scalar;
pub mod table;

/// A family of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Backend {
    /// Portable, safe, always there: oracle and fallback.
    Scalar = 0,
    /// For cores without SIMD; portable Rust on all others.
    Int = 1,
    /// The DSP extension of Cortex-M4, M7 and M33: builds with the feature `dsp`. Hosts have the same kernels in portable Rust.
    Dsp = 2,
    /// Helium, on Cortex-M55 and later: builds with the feature `mve`. Hosts have the same kernels in portable Rust.
    Mve = 3,
    /// Floating point blocked for a core's registers; portable.
    Fpu = 4,
    /// Little code for `pack --size`; portable.
    Compact = 5,
}

impl Backend {
    /// All backends.
    pub const ALL: &'static [Backend] = &[
        Backend::Scalar,
        Backend::Int,
        Backend::Dsp,
        Backend::Mve,
        Backend::Fpu,
        Backend::Compact,
    ];

    /// Whether this build of the runtime has it.
    pub const fn available(self) -> bool {
        match self {
            Backend::Scalar | Backend::Int | Backend::Fpu | Backend::Compact => true,
            Backend::Dsp => cfg!(any(not(target_os = "none"), all(cortex_m = "dsp", feature = "dsp"))),
            Backend::Mve => cfg!(any(not(target_os = "none"), all(cortex_m = "mve", feature = "mve"))),
        }
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Scalar => "scalar",
            Backend::Fpu => "fpu",
            Backend::Int => "int",
            Backend::Dsp => "dsp",
            Backend::Mve => "mve",
            Backend::Compact => "compact",
        }
    }
}
