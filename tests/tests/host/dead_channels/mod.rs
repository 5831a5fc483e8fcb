//! Networks without their dead channels compute what they did, bit for bit, in every tensor that is left; and the channels that must stay stay.

mod cases;
mod network;
mod random;

use std::cell::Cell;
use std::collections::BTreeMap;

use arenite_host::channels::{Removed, remove};
use arenite_host::graph::{Graph, Node, Op, check::check};
use arenite_host::metadata::{Channel, Channels, Restored};
use arenite_host::model::run;
use arenite_host::pack::portable;
use arenite_host::weights::Weights;
use arenite_tests::golden::{completed, first_difference};
use arenite_tests::properties;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use random::{Random, random_network};

/// Every tensor that a step completes, and the outputs, of each run.
struct Results {
    tensors: Vec<BTreeMap<String, Restored>>,
    outputs: Vec<Vec<Vec<u8>>>,
}

fn results(graph: &Graph, inputs: &[Vec<Vec<u8>>]) -> Results {
    let weights = Weights::nothing(graph).expect("no parameters");
    let file = portable(graph.clone(), &weights).unwrap_or_else(|e| panic!("{e}"));
    let metadata = file.view().and_then(|view| view.metadata()).expect("metadata");
    let model = file.load().expect("it loads");
    let mut tensors = vec![BTreeMap::new(); inputs.len()];
    let outputs = run(&model, inputs, false, &mut |run, step, session| {
        if let Some((names, tensor)) = completed(&metadata, step, session) {
            tensors[run].extend(names.iter().map(|name| (name.clone(), tensor.clone())));
        }
    });
    Results {
        tensors,
        outputs: outputs.expect("it runs"),
    }
}

/// Random inputs, and those at the ends of int8.
fn inputs(graph: &Graph, random: &mut Random) -> Vec<Vec<Vec<u8>>> {
    let mut input = |kind: usize, bytes: usize| -> Vec<u8> {
        let ends = [0x80, 0x7f];
        let byte = |random: &mut Random| match kind {
            0 | 1 => ends[kind],
            2 => ends[random.below(2)],
            _ => random.below(256) as u8,
        };
        (0..bytes).map(|_| byte(random)).collect()
    };
    let bytes = |id| graph.tensor(id).bytes();
    (0..5)
        .map(|kind| graph.inputs.iter().map(|&id| input(kind, bytes(id))).collect())
        .collect()
}

/// Removes, and compares everything that both networks compute.
fn pruned(whole: &Graph, block: usize, seed: u64) -> Result<(Graph, Removed), String> {
    check(whole).map_err(|e| e.to_string())?;
    let mut graph = whole.clone();
    let removed = remove(&mut graph, block).map_err(|e| e.to_string())?;
    let inputs = inputs(whole, &mut Random::new(seed));
    let (before, behind) = (results(whole, &inputs), results(&graph, &inputs));
    if before.outputs != behind.outputs {
        return Err("other outputs".into());
    }
    for (before, behind) in before.tensors.iter().zip(&behind.tensors) {
        for (name, tensor) in behind {
            // A slice that is a view in one of them is a copy in the other.
            let Some(before) = before.get(name) else { continue };
            if let Some(at) = first_difference(tensor, before) {
                let [found, expected] = [tensor, before].map(|tensor| tensor.bytes[at]);
                return Err(format!("`{name}` differs at byte {at}: {found} instead of {expected}"));
            }
        }
    }
    Ok((graph, removed))
}

/// Whether nothing is there that was not before: fillers of zeros are constants that they were not; outputs of the only channel that a depthwise layer has
/// left are those of a plain one, and go one by one.
fn is_regular(whole: &Graph, pruned: &Graph) -> bool {
    let groups = |node: &Node| match &node.op {
        Op::Conv2d(attrs) => attrs.groups,
        _ => 0,
    };
    let mut fates = pruned.channels.values().flat_map(Channels::each);
    let mut nodes = whole.nodes.iter().zip(&pruned.nodes);
    fates.all(|fate| fate != Channel::Filler) && nodes.all(|(a, b)| groups(a) <= 1 || groups(b) > 1)
}

#[test]
fn random_networks_compute_what_they_did() {
    let mut runner = TestRunner::new(properties::config("dead_channels", 1.0));
    let cases = (any::<u64>(), 1..9_usize, prop_oneof![Just(1), Just(2), Just(4)]);
    let (tried, cut, settled, removed) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let result = runner.run(&cases, |(seed, operators, block)| {
        let whole = random_network(seed, operators);
        let (graph, gone) = pruned(&whole, block, seed ^ 1).map_err(TestCaseError::fail)?;
        tried.set(tried.get() + 1);
        cut.set(cut.get() + u32::from(gone.channels > 0));
        removed.set(removed.get() + gone.channels);
        if block == 1 && gone.channels > 0 && is_regular(&whole, &graph) {
            settled.set(settled.get() + 1);
            let mut again = graph.clone();
            let more = remove(&mut again, 1).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(more, Removed::default(), "not all at once");
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    println!(
        "{} networks, {} of them lost {} channels",
        tried.get(),
        cut.get(),
        removed.get()
    );
    assert!(
        12 * settled.get() > tried.get(),
        "{} of {} networks without fillers",
        settled.get(),
        tried.get()
    );
    assert!(
        2 * cut.get() > tried.get(),
        "{} of {} networks lost channels",
        cut.get(),
        tried.get()
    );
}
