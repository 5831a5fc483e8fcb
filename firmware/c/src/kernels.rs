//! The kernels that the library has: `build.rs`.

/// Those of `ARENITE_MODELS`, or all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linked;

impl arenite::Kernels for Linked {
    const SET: arenite::KernelSet = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
