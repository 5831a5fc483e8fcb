//! What a model takes at the worst, known before it runs: from tables that are measured and tracked.

mod counts;
pub mod instructions;
mod loops;
mod loops_mve;
pub mod stack;
