//! Random valid cases of every operator: a generator each, in a file for each family.

mod convolutions;
mod elementwise;
mod matrices;
mod moved;
mod recurrent;
mod rows;
mod sequences;
mod signals;
mod training;
mod transforms;

pub(super) use elementwise::binary_int;
