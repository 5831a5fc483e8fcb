//! Upper bounds of a model's cost, known before it runs: from tables that are measured and tracked.

pub mod code_bytes;
mod counts;
pub mod cycles;
pub mod instructions;
mod loops;
mod loops_dsp;
mod loops_mve;
mod loops_neon;
mod loops_rvv;
mod loops_sequence;
mod loops_single;
mod loops_sme;
mod loops_training;
pub mod stack;
