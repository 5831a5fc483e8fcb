//! Functions behind the fuzz targets.
//!
//! One dialect's importer on arbitrary bytes: it must return; a network that it returns must be consistent, and pruning must leave it so.
//! The runtime on an arbitrary model file or bundle: it refuses it, or runs it. The planner on an arbitrary instance: it refuses it, or its plan
//! passes the independent check.

use std::path::Path;

use arenite::{Bundle, CrcUnit, MAX_REGIONS, Model, Progress, Receipt, RunError, Session, Stated};
use arenite_host::graph::{check::check, facts};
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::memory::{lifetimes, plan};
use arenite_host::model::Aligned;
use arenite_host::passes::prune;

use crate::writers;

/// A target by its name, which is that of its folder in the corpus as well.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 14] = [
    ("native", |data| import("native", data)),
    ("chainer", |data| import("chainer", data)),
    ("megengine", |data| import("megengine", data)),
    ("tf_shapes", |data| import("tf-shapes", data)),
    ("keras_order", |data| import("keras-order", data)),
    ("rects", |data| import("rects", data)),
    ("tflite", |data| import("tflite", data)),
    ("onnx", |data| import("onnx", data)),
    ("pt2", saved),
    ("llama2c", |data| import("llama2c", data)),
    ("gguf", |data| import("gguf", data)),
    ("blob", blob),
    ("bundle", bundle),
    ("plan", instance),
];

/// Runs the target of this name.
///
/// # Panics
/// For a name that no target has; and for a finding.
pub fn target(name: &str, data: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    run(data);
}

/// Imports `data` as `dialect`.
///
/// # Panics
/// For a dialect that there is not; where the importer panics, or returns an inconsistent network: a finding.
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

/// Imports `data` as a program of torch.export: an archive, or the document of one.
///
/// # Panics
/// As [`import`].
pub fn saved(data: &[u8]) {
    if data.starts_with(b"PK") {
        return import("pt2", data);
    }
    import(
        "pt2",
        &writers::pt2::zip(&writers::pt2::entries(&String::from_utf8_lossy(data))),
    );
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
    // Whoever changes a file need not change its header: a receipt of before says nothing of the rest.
    let receipted = Model::load_with_receipt(bytes, &stated(bytes)).map(run_twice).is_ok();
    let lied = Model::load_with_crc(bytes, &mut Lying(stated(bytes).crc)).is_ok();
    if data.len() >= 24 {
        let crc = arenite::checksum(bytes);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    }
    let loaded = Model::load(bytes).is_ok();
    assert_eq!(
        [receipted, lied],
        [loaded; 2],
        "a load without the checksum makes the same other checks"
    );
}

/// Returns the receipt that a file's header states, believed.
fn stated(bytes: &[u8]) -> Receipt {
    Stated::of(bytes).map_or_else(
        || Receipt {
            length: 0,
            crc: 0,
            version: 0,
        },
        |stated| Receipt {
            length: stated.total,
            crc: stated.crc,
            version: stated.version,
        },
    )
}

/// A unit that always finds this.
struct Lying(u32);

impl CrcUnit for Lying {
    fn crc32(&mut self, _: [&[u8]; 2]) -> u32 {
        self.0
    }
}

/// Opens `data` as a bundle and runs each of its models that loads.
///
/// # Panics
/// As [`blob`].
pub fn bundle(data: &[u8]) {
    let mut memory = Aligned::new(data.len());
    memory.bytes().copy_from_slice(data);
    let Ok(bundle) = Bundle::open(memory.bytes()) else {
        return;
    };
    for index in 0..bundle.len() {
        if let Ok(model) = bundle.load(index) {
            run_twice(model);
        }
    }
}

/// Nodes for the search of a plan.
const NODES: u64 = 200;

/// Largest instance that is planned: more is work and no more of a test.
const BUFFERS: usize = 200;

/// Reads `data` as the planner's CSV and plans it.
///
/// # Panics
/// Where the planner panics, or its plan fails the check: a finding.
pub fn instance(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(problem) = plan::csv::read(text) else { return };
    if problem.buffers.len() > BUFFERS {
        return;
    }
    let options = plan::Options {
        nodes: NODES,
        ..Default::default()
    };
    if let Ok(found) = plan::solve(&problem, &options) {
        plan::check(&problem, &found).expect("a plan that holds");
    }
}

fn run_twice(model: Model<'_>) {
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
                // Inputs filled with these bytes are no indices of a small table.
                Err(RunError::OutOfRange { .. }) => break,
                Err(error) => panic!("a loaded model does not run: {error}"),
            }
        }
    }
}
