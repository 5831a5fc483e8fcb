//! The laboratory: what the models of the benchmarks cost on every board, tracked in `tests/results`, and the documents' tables of it.
//!
//! [`results`] measures and compares, [`peer`] counts another runtime beside ours, [`quantise`]
//! and [`quantisers`] judge int8 networks that are made here and elsewhere, [`tables`] writes all of it into the documents; [`dist`] makes the archive
//! that is installed from and, with [`places`], those for other build systems, [`playground`] the page that packs in a browser; [`suites`] finds files
//! of tests, [`require`] says what tests may not lack, [`turns`] which boards a run takes, [`tiers`] and [`long_tier`] when they last passed.
//! The commands (`cargo xtask`) are the package's program.

pub mod blob;
pub mod choices;
pub mod cliffs;
pub mod code_bytes;
pub mod dist;
pub mod long_tier;
pub mod most;
pub mod peer;
pub mod places;
pub mod playground;
pub mod quantise;
pub mod quantisers;
pub mod require;
pub mod results;
pub mod stacks;
pub mod suites;
pub mod tables;
pub mod tiers;
pub mod turns;

// Wanted for their features alone, which are those of the tests: with others all of the host tools would be compiled twice.
use arenite_stream as _;
#[cfg(unix)]
use rustix as _;
