//! The stages of packing, and what long work tells of itself.

/// Told how far long work has come: its stage, and how much of how much of it is done; of nothing where that is not known.
pub type Progress<'a> = dyn FnMut(&str, u64, u64) + 'a;

/// For work that nobody watches.
pub fn unwatched(_: &str, _: u64, _: u64) {}

/// A stage, in the order in which a network passes them; `--dump-after` prints what there is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "tools", derive(clap::ValueEnum))]
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
