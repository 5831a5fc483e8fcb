//! The stages of packing.

/// A stage, in the order in which a network passes them; `--dump-after` prints what there is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Stage {
    /// The input is read, and what does not serve inference is dropped.
    Import,
    /// Constants, batch norms and paddings are folded.
    Fold,
    /// Neighbours are fused and layouts chosen.
    Fuse,
    /// Element types are chosen.
    Quantize,
    /// Operators are steps, in their order.
    Schedule,
    /// Everything has its place in memory.
    Plan,
}
