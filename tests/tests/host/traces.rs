//! The five reference traces against the numbers of their catalogue, which were computed independently.

use std::path::PathBuf;

use arenite_host::graph::{Op, facts};
use arenite_host::import::{ImportOptions, Imported, import};
use arenite_host::memory::lifetimes;

struct Facts {
    file: &'static str,
    dialect: &'static str,
    batch: usize,
    params: u64,
    macs: u64,
    liveness: u64,
    operators: &'static [(&'static str, usize)],
    pruned: &'static [(&'static str, usize)],
}

fn imported(test: &str, file: &str, batch: usize) -> Option<(&'static str, Imported)> {
    let Some(folder) = arenite_tests::shared() else {
        arenite_tests::skip(test, "no shared data");
        return None;
    };
    let options = ImportOptions {
        batch: Some(batch),
        ..ImportOptions::default()
    };
    let path: PathBuf = folder.join("traces").join(file);
    Some(import(&path, None, &options).unwrap_or_else(|e| panic!("{e}")))
}

fn check(facts: &Facts) {
    let Some((dialect, imported)) = imported(facts.file, facts.file, facts.batch) else {
        return;
    };
    assert_eq!(dialect, facts.dialect);
    assert_eq!(facts::params(&imported.graph), facts.params);
    assert_eq!(facts::macs_per_element(&imported.graph), facts.macs);
    assert_eq!(lifetimes::max_live(&imported.graph), facts.liveness);
    let mut operators = facts::operators(&imported.graph);
    operators.extend(imported.constants.clone());
    let expected = facts.operators.iter().map(|(kind, n)| (kind.to_string(), *n));
    assert_eq!(operators, expected.collect());

    let mut graph = imported.graph.clone();
    arenite_host::passes::prune::run(&mut graph).unwrap();
    let expected = facts.pruned.iter().map(|(kind, n)| (kind.to_string(), *n));
    assert_eq!(graph.pruned, expected.collect());

    // Another batch: the same network, activations in proportion.
    let (_, other) = self::imported(facts.file, facts.file, 2).unwrap();
    assert_eq!(facts::params(&other.graph), facts.params);
    assert_eq!(facts::macs_per_element(&other.graph), facts.macs);
    assert_eq!(
        lifetimes::max_live(&other.graph),
        facts.liveness / facts.batch as u64 * 2
    );
}

#[test]
fn megengine() {
    check(&Facts {
        file: "resnet50-megengine.trace.json",
        dialect: "megengine",
        batch: 10,
        params: 25_526_632,
        macs: 4_089_184_256,
        liveness: 96_337_920,
        operators: &[
            ("ConvolutionForward", 53),
            ("Elemwise", 69),
            ("ImmutableTensor", 106),
            ("MatrixMul", 1),
            ("PoolingForward", 2),
            ("Reduce", 2),
            ("Reshape", 1),
        ],
        pruned: &[("bookkeeping", 6)],
    });
}

#[test]
fn megengine_softmax_becomes_one_operator() {
    let Some((_, imported)) = imported("megengine softmax", "resnet50-megengine.trace.json", 1) else {
        return;
    };
    let mut graph = imported.graph;
    arenite_host::passes::prune::run(&mut graph).unwrap();
    arenite_host::passes::recognise_softmax::run(&mut graph).unwrap();
    let softmaxes = graph.nodes.iter().filter(|node| matches!(node.op, Op::Softmax { .. }));
    assert_eq!(softmaxes.count(), 1);
    arenite_host::graph::check::check(&graph).unwrap();
    let last = graph.nodes.last().unwrap();
    assert_eq!(
        graph.tensor(graph.outputs[0]).name,
        "TRUE_DIV(EXP[852],reduce0[854])[857]"
    );
    assert_eq!(last.outputs, graph.outputs);
    assert_eq!(graph.tensor(graph.inputs[0]).name, "data");
}

#[test]
fn chainer() {
    check(&Facts {
        file: "vgg19-chainer.trace.txt",
        dialect: "chainer",
        batch: 32,
        params: 143_667_240,
        macs: 19_632_062_464,
        liveness: 822_083_584,
        operators: &[
            ("Convolution2DFunction", 16),
            ("Dropout", 2),
            ("LinearFunction", 3),
            ("MaxPooling2D", 5),
            ("ReLU", 18),
            ("Reshape", 1),
        ],
        pruned: &[("backward", 46), ("loss", 1)],
    });
}

#[test]
fn keras_order() {
    check(&Facts {
        file: "resnet50-keras-order.trace.txt",
        dialect: "keras-order",
        batch: 1,
        params: 25_636_712,
        macs: 3_857_973_248,
        liveness: 9_633_792,
        operators: &[
            ("BiasAdd", 54),
            ("Conv2D", 53),
            ("FusedBatchNormV3", 53),
            ("MatMul", 1),
            ("MaxPool", 1),
            ("Mean", 1),
            ("Pad", 2),
            ("Relu", 49),
            ("add", 16),
        ],
        pruned: &[
            ("allreduce", 215),
            ("backward", 404),
            ("bookkeeping", 1293),
            ("loss", 1),
            ("optimizer", 324),
        ],
    });
}

#[test]
fn tf_shapes() {
    check(&Facts {
        file: "alexnet-tf-shapes.trace.txt",
        dialect: "tf-shapes",
        batch: 128,
        params: 2_469_696,
        macs: 658_145_280,
        liveness: 205_520_896,
        operators: &[("BiasAdd", 5), ("Conv2D", 5), ("LRN", 2), ("MaxPool", 3), ("Relu", 5)],
        pruned: &[("backward", 74), ("bookkeeping", 84)],
    });
}

#[test]
fn rects() {
    check(&Facts {
        file: "localnet-rects.trace.txt",
        dialect: "rects",
        batch: 256,
        params: 293_629_250,
        macs: 293_512_896,
        liveness: 142_737_408,
        operators: &[
            ("filter", 2),
            ("filterA", 2),
            ("filterNL", 2),
            ("linear1", 1),
            ("softmax", 1),
        ],
        // Of the training half the grammar says what is not legible.
        pruned: &[("backward", 23), ("bookkeeping", 1), ("loss", 1), ("optimizer", 7)],
    });
}
