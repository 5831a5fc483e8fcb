//! What a model takes at the worst, known before it runs: from tables that are measured and tracked.

pub mod stack;
