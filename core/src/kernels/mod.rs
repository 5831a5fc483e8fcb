//! The kernels: one folder a backend. The only place where `unsafe` is allowed.
//!
//! A step names its kernel, so nothing is chosen here at run time; [`Backend::available`] says which backends this build has.
#![allow(unsafe_code)]

pub mod cells;
pub mod scalar;

/// A family of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Backend {
    /// Portable, safe, always there: oracle and fallback.
    Scalar = 0,
}

impl Backend {
    /// All backends.
    pub const ALL: &'static [Backend] = &[Backend::Scalar];

    /// Whether this build of the runtime has it.
    pub const fn available(self) -> bool {
        match self {
            Backend::Scalar => true,
        }
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Scalar => "scalar",
        }
    }
}
