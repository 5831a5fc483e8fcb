//! What the fuzz targets share.
//!
//! One dialect's importer on arbitrary bytes: it must return; a network that it returns must be consistent, and pruning must leave it so.
//! The runtime on an arbitrary model file: it refuses it, or runs it.

use std::path::Path;

use arenite::{MAX_REGIONS, Model, Progress, Session};
use arenite_host::graph::{check::check, facts};
use arenite_host::memory::lifetimes;
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::model::Aligned;
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
            lifetimes::max_live(&graph),
        );
        prune::run(&mut graph).expect("pruning");
        check(&graph).expect("pruning made the network inconsistent");
    }
}

/// Largest arena or state that a fuzzed model gets, bytes: enough for every operator, little enough to be quick.
const MEMORY: usize = 1 << 20;

/// Largest number of steps of a fuzzed model that are run.
const STEPS: u32 = 64;

/// Loads `data` as a model file, its length and checksum put right so that the checks behind them are reached, and runs what loads twice.
///
/// # Panics
/// Where the runtime panics, writes beyond its arena (the address sanitiser says so), or a loaded model fails for another reason than
/// its weights: a finding.
pub fn blob(data: &[u8]) {
    let mut memory = Aligned::new(data.len());
    let bytes = memory.bytes();
    bytes.copy_from_slice(data);
    if let Some(length) = bytes.get_mut(16..20) {
        length.copy_from_slice(&(data.len() as u32).to_le_bytes());
    }
    if data.len() >= 24 {
        let crc = arenite::checksum(bytes);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(model) = Model::load(bytes) else { return };
    let needed: [usize; MAX_REGIONS] = std::array::from_fn(|region| model.arena_bytes(region));
    if needed.iter().any(|&bytes| bytes > MEMORY) || model.state_bytes() > MEMORY {
        return;
    }
    let mut arenas = needed.map(Aligned::new);
    let mut state = Aligned::new(model.state_bytes());
    let mut session = Session::new(model, arenas.each_mut().map(Aligned::bytes), state.bytes()).expect("a session");
    for _ in 0..2 {
        for port in 0..usize::from(model.header().inputs) {
            session.input_mut(port).expect("an input").fill(0x35);
        }
        for _ in 0..STEPS {
            match session.step() {
                Ok(Progress::Step { .. }) => {}
                Ok(Progress::Done) => break,
                Err(error) => panic!("a loaded model does not run: {error}"),
            }
        }
    }
}
