//! `pack --dtype int8|int16x8 --calibrate`: float networks as int8 ones, judged by loops in f64, by PyTorch's answers, and by what must be refused.

mod attention;
mod choices;
mod digits;
mod folder;
mod four_bits;
mod instruction_sets;
mod int16;
mod mixed;
pub(crate) mod network;
mod norms;
mod operators;
mod preprocess;
mod record;
mod recurrent;
mod requests;
mod suspects;
mod traces;
mod weight_only;
