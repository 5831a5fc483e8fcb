//! Constants that the build takes from the board's row.

include!(concat!(env!("OUT_DIR"), "/row.rs"));
