//! What the fuzz targets share: one dialect's importer on arbitrary bytes. It must return; a network that it returns must be
//! consistent, and pruning must leave it so.

use std::path::Path;

use arenite_host::graph::{check::check, facts, liveness};
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::passes::prune;

/// Imports `data` as `dialect`.
///
/// # Panics
/// Where the importer panics, or returns an inconsistent network: a finding.
pub fn import(dialect: &str, data: &[u8]) {
    for other in DIALECTS {
        let _ = (other.recognises)(data);
    }
    let found = DIALECTS.iter().find(|d| d.name == dialect).expect("a dialect");
    if let Ok(imported) = (found.import)(Path::new("fuzz.trace"), data, &ImportOptions::default()) {
        let mut graph = imported.graph;
        check(&graph).expect("an importer returned an inconsistent network");
        let _ = (
            facts::params(&graph),
            facts::macs_per_element(&graph),
            liveness::max_live(&graph),
        );
        prune::run(&mut graph).expect("pruning");
        check(&graph).expect("pruning made the network inconsistent");
    }
}
