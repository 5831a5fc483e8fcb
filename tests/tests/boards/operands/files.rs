//! Files in which something leaves its operands, as they were found.

use arenite::{Fault, LoadError, Model};
use arenite_host::migrate::{UPGRADES, migrate};
use arenite_tests::{shared, skip};

use super::networks::aligned;

/// A convolution whose records name one channel twice, so that an output keeps what the arena held.
#[test]
fn records_that_leave_an_output_unwritten_are_refused() {
    let Some(folder) = shared() else {
        skip("records_that_leave_an_output_unwritten_are_refused", "no shared data");
        return;
    };
    let path = folder.join("data/defects/int-conv-places-unwritten.bin");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let migrated = migrate(&bytes, UPGRADES).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut memory = aligned(&migrated.bytes);
    let loaded = Model::load(memory.bytes()).map(|_| ());
    assert!(
        matches!(
            loaded,
            Err(LoadError::Step {
                fault: Fault::Weights,
                ..
            })
        ),
        "{loaded:?}"
    );
}
