//! Alignments of the caller's memory.

/// Alignment of a model in memory, in bytes. Weights lie at multiples of it from the model's start.
pub const MODEL_ALIGN: usize = 16;

/// Alignment of arenas and of the state slice, in bytes.
pub const ARENA_ALIGN: usize = 16;
