//! Problems and answers of the planner.

use std::ops::Range;

/// A rectangle of a buffer: bytes `offset..offset + size` (from the buffer's own offset) in use at steps `lower..upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First step at which the bytes are in use.
    pub lower: u64,
    /// One past the last step at which the bytes are in use.
    pub upper: u64,
    /// Distance of the first byte from the buffer's offset, in bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Something to place: a rigid body of rectangles.
///
/// Most tensors are one part with offset 0. Several parts describe bytes whose lifetimes differ: inputs of a concatenation
/// placed inside its output, or rows that are produced and consumed one after the other. Parts of one buffer may overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// For messages only; need not be unique.
    pub name: String,
    /// The buffer's offset is a multiple of this; at least 1, any number.
    pub align: u64,
    /// Empty for a buffer that needs no byte; it is then placed at 0, or where it is fixed.
    pub parts: Vec<Part>,
    /// The offset, where it is given; a multiple of `align`.
    pub fixed: Option<u64>,
}

impl Buffer {
    /// A buffer of `size` bytes in use at steps `lower..upper`, anywhere.
    pub fn new(name: impl Into<String>, lower: u64, upper: u64, size: u64) -> Self {
        let parts = vec![Part {
            lower,
            upper,
            offset: 0,
            size,
        }];
        Buffer {
            name: name.into(),
            align: 1,
            parts,
            fixed: None,
        }
    }

    /// Bytes from its offset to the end of its last part.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.offset + p.size).max().unwrap_or(0)
    }

    /// The steps during which any part is in use.
    pub fn life(&self) -> Range<u64> {
        let lower = self.parts.iter().map(|p| p.lower).min().unwrap_or(0);
        lower..self.parts.iter().map(|p| p.upper).max().unwrap_or(0)
    }

    /// The same with this alignment.
    pub fn aligned(self, align: u64) -> Self {
        Buffer { align, ..self }
    }
}

/// Leave for two buffers to share bytes although both are in use: allowed if `offset[below] + distance <= offset[above]`.
///
/// It widens what is allowed: where the two do not touch in the usual sense, they are fine as well. An elementwise operator that may
/// write its output over its input has distance 0 both ways; a convolution whose output may trail over the input rows
/// that it has consumed is `below` with the distance that it must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Index of the lower buffer.
    pub below: usize,
    /// Index of the upper buffer.
    pub above: usize,
    /// Least difference of their offsets, in bytes; may be negative.
    pub distance: i64,
}

/// Buffers to place, and pairs of them that may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// In the caller's order; a plan's offsets follow it.
    pub buffers: Vec<Buffer>,
    /// Pairs that may overlap.
    pub relations: Vec<Relation>,
}

/// How far [`solve`](super::solve()) goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Stop at the first plan of at most this height, in bytes; `None`: minimise.
    pub capacity: Option<u64>,
    /// Budget of the exact search, in nodes: attempts to place one buffer, each of which counts several times where it has hundreds
    /// of neighbours. 0: greedy only.
    pub nodes: u64,
}

impl Options {
    /// The budget if none is stated.
    pub const DEFAULT_NODES: u64 = 2_000_000;
}

impl Default for Options {
    fn default() -> Self {
        Options {
            capacity: None,
            nodes: Self::DEFAULT_NODES,
        }
    }
}

/// Why a plan is known to be optimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its height equals a lower bound that holds for every plan.
    BoundMet,
    /// The search exhausted all plans that are lower.
    Exhausted,
    /// It is not known to be optimal.
    None,
}

/// Where every buffer lies, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Offset of every buffer in bytes, in the problem's order.
    pub offsets: Vec<u64>,
    /// One past the highest byte in use at any step. With [`Options::capacity`], above it if no plan that fits was found.
    pub height: u64,
    /// No plan is lower than this, in bytes.
    pub lower_bound: u64,
    /// Whether `height` equals `lower_bound`.
    pub proven_optimal: bool,
    /// Proof of the lower bound.
    pub proof: Proof,
    /// Nodes of the exact search that were used.
    pub nodes: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The problem contradicts itself.
    #[error("the planner cannot place buffer {buffer:?}: {reason}")]
    Invalid {
        /// Name of the buffer, empty where it concerns the whole problem.
        buffer: String,
        /// The expectation that was not met.
        reason: String,
    },
    /// Two fixed offsets overlap.
    #[error("buffers {first:?} and {second:?} are both in use at one step, and the offsets fixed for them overlap")]
    FixedOverlap {
        /// Name of one buffer.
        first: String,
        /// Name of the other.
        second: String,
    },
}
