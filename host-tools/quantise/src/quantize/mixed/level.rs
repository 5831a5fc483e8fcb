//! Number format of a layer, where that is chosen layer by layer.

use super::super::activations::Activations;

/// From the coarsest to the finest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// int8 activations, weights of four bits.
    Int4,
    /// int8 activations and weights.
    Int8,
    /// int16 activations, int8 weights.
    Int16,
    /// Nothing is rounded.
    F32,
}

impl Level {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Int4, Self::Int8, Self::Int16, Self::F32];

    /// As summaries and options call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Int4 => "int4",
            Self::Int8 => "int8",
            Self::Int16 => "int16x8",
            Self::F32 => "f32",
        }
    }

    /// The integers that activations are; none: they are f32.
    pub(super) const fn activations(self) -> Option<Activations> {
        match self {
            Self::Int4 | Self::Int8 => Some(Activations::Int8),
            Self::Int16 => Some(Activations::Int16),
            Self::F32 => None,
        }
    }

    /// How finely activations are stored: the greater the finer.
    pub(super) const fn fineness(self) -> usize {
        match self {
            Self::Int4 | Self::Int8 => 0,
            Self::Int16 => 1,
            Self::F32 => 2,
        }
    }

    /// Bytes of an activation's element.
    pub(super) const fn element_bytes(self) -> u64 {
        match self {
            Self::Int4 | Self::Int8 => 1,
            Self::Int16 => 2,
            Self::F32 => 4,
        }
    }
}
