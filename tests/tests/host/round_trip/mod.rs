//! Small networks of many shapes through every dialect's writer and importer: parameters, multiply-accumulates, operators and shapes
//! must be those of the network that was written, at the traced batch and at another one.

mod binary;
mod digests;
mod record;
mod run;

use std::path::Path;

use arenite_host::graph::{Graph, Op, Role, check, facts};
use arenite_host::import::{ImportOptions, Imported, import};
use arenite_host::passes;
use arenite_host::stage::Stage;
use arenite_host::{Error, ErrorKind};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine, rects, tf_shapes};

fn read(dialect: &str, text: &str, options: &ImportOptions) -> Result<Imported, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.trace");
    std::fs::write(&path, text).unwrap();
    let (found, imported) = import(Path::new(&path), None, options)?;
    assert_eq!(found, dialect, "recognised from content");
    check::check(&imported.graph).unwrap();
    Ok(imported)
}

fn at_batch(batch: usize) -> ImportOptions {
    ImportOptions {
        batch: Some(batch),
        ..ImportOptions::default()
    }
}

fn assuming(pairs: &[(&str, &str)]) -> ImportOptions {
    ImportOptions {
        assume: pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        ..ImportOptions::default()
    }
}

fn conv(out: usize, kernel: usize, stride: usize, pad: usize) -> Layer {
    grouped(out, kernel, stride, pad, 1, 1)
}

fn grouped(out: usize, kernel: usize, stride: usize, pad: usize, groups: usize, dilation: usize) -> Layer {
    Layer::Conv {
        out,
        kernel: [kernel; 2],
        stride: [stride; 2],
        pad: [pad; 2],
        groups,
        dilation: [dilation; 2],
    }
}

fn pool(kernel: usize, stride: usize, ceiling: bool) -> Layer {
    Layer::MaxPool {
        kernel: [kernel; 2],
        stride: [stride; 2],
        ceiling,
    }
}

/// A convolution's kernel, stride, padding, dilation (rows, columns) and groups.
type Convolution = ([usize; 2], [usize; 2], [usize; 2], [usize; 2], usize);

/// Convolutions of the graph in order; their padding is the same on opposite sides.
fn convolutions(graph: &Graph) -> Vec<Convolution> {
    let nodes = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    nodes
        .filter_map(|node| match &node.op {
            Op::Conv2d(a) => {
                assert_eq!((a.padding.top, a.padding.left), (a.padding.bottom, a.padding.right));
                let padding = [a.padding.top, a.padding.left];
                let weights = &graph.tensor(node.inputs[1].unwrap()).shape;
                Some(([weights[1], weights[2]], a.stride, padding, a.dilation, a.groups))
            }
            _ => None,
        })
        .collect()
}

/// Poolings of the graph in order: kernel and stride.
fn poolings(graph: &Graph) -> Vec<([usize; 2], [usize; 2])> {
    let nodes = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    nodes
        .filter_map(|node| match &node.op {
            Op::MaxPool2d(a) => Some((a.kernel, a.stride)),
            _ => None,
        })
        .collect()
}

fn expect(chain: &Chain, imported: &Imported, batch: usize) {
    let graph = &imported.graph;
    assert_eq!(facts::params(graph), chain.params());
    assert_eq!(facts::macs_per_element(graph), chain.macs());
    let mut shape = vec![batch];
    shape.extend(chain.shapes().last().unwrap());
    assert_eq!(graph.tensor(graph.outputs[0]).shape, shape);
    let written = chain.layers.iter().filter_map(|layer| match *layer {
        Layer::Conv {
            kernel,
            stride,
            pad,
            groups,
            dilation,
            ..
        } => Some((kernel, stride, pad, dilation, groups)),
        _ => None,
    });
    assert_eq!(convolutions(graph), written.collect::<Vec<_>>());
    let written = chain.layers.iter().filter_map(|layer| match *layer {
        Layer::MaxPool { kernel, stride, .. } => Some((kernel, stride)),
        _ => None,
    });
    assert_eq!(poolings(graph), written.collect::<Vec<_>>());
}

fn classifier(batch: usize, flatten: bool) -> Chain {
    let mut layers = vec![
        conv(8, 5, 2, 2),
        Layer::Relu,
        pool(2, 2, false),
        grouped(12, 3, 1, 1, 4, 1),
        Layer::Relu,
        grouped(16, 3, 1, 2, 1, 2),
        Layer::Relu,
        pool(2, 2, false),
    ];
    if flatten {
        layers.push(Layer::Flatten);
    }
    layers.extend([Layer::Linear { out: 20 }, Layer::Relu, Layer::Linear { out: 7 }]);
    Chain {
        batch,
        image: [3, 40, 40],
        layers,
    }
}

#[test]
fn chainer_of_other_shapes_and_orders() {
    for (seed, batch) in [(1, 1), (2, 5), (3, 16)] {
        for flatten in [true, false] {
            let mut chain = classifier(batch, flatten);
            chain.layers[2] = pool(3, 2, true);
            let text = chainer::write(&chain, seed);
            for wanted in [batch, 3] {
                let imported = read("chainer", &text, &at_batch(wanted)).unwrap();
                expect(&chain, &imported, wanted);
            }
        }
    }
}

/// Rows unlike columns in everything: image, kernel, stride, padding, dilation, windows.
fn uneven(batch: usize, ceiling: bool) -> Chain {
    let wide = Layer::Conv {
        out: 8,
        kernel: [3, 5],
        stride: [1, 2],
        pad: [2, 1],
        groups: 1,
        dilation: [1, 1],
    };
    let tall = Layer::Conv {
        out: 12,
        kernel: [4, 2],
        stride: [2, 1],
        pad: [0, 3],
        groups: 4,
        dilation: [1, 3],
    };
    let flat = Layer::MaxPool {
        kernel: [2, 3],
        stride: [1, 2],
        ceiling,
    };
    let high = Layer::MaxPool {
        kernel: [3, 2],
        stride: [3, 1],
        ceiling: false,
    };
    Chain {
        batch,
        image: [3, 37, 52],
        layers: vec![
            wide,
            Layer::Relu,
            flat,
            tall,
            Layer::Relu,
            high,
            Layer::Flatten,
            Layer::Linear { out: 7 },
        ],
    }
}

#[test]
fn windows_with_rows_unlike_columns() {
    for batch in [1, 4] {
        for (dialect, ceiling, text) in [
            ("chainer", true, chainer::write(&uneven(batch, true), 5)),
            ("chainer", false, chainer::write(&uneven(batch, false), 6)),
            ("megengine", false, megengine::write(&uneven(batch, false))),
        ] {
            for wanted in [batch, 2] {
                let imported = read(dialect, &text, &at_batch(wanted)).unwrap_or_else(|e| panic!("{dialect}: {e}"));
                expect(&uneven(batch, ceiling), &imported, wanted);
            }
        }
    }
}

#[test]
fn chainer_without_a_classifier_has_the_batch_of_its_labels() {
    let chain = Chain {
        batch: 4,
        image: [3, 12, 12],
        layers: vec![conv(6, 3, 1, 1), Layer::Relu],
    };
    let text = chainer::write(&chain, 9);
    let imported = read("chainer", &text, &at_batch(4)).unwrap();
    expect(&chain, &imported, 4);
}

#[test]
fn megengine_of_other_shapes() {
    for batch in [1, 6] {
        let chain = classifier(batch, true);
        let text = megengine::write(&chain);
        for wanted in [batch, 2] {
            let imported = read("megengine", &text, &at_batch(wanted)).unwrap();
            expect(&chain, &imported, wanted);
            assert_eq!(imported.constants["ImmutableTensor"], 12);
        }
    }
}

#[test]
fn tf_shapes_of_other_shapes_and_orders() {
    for (seed, batch) in [(None, 1), (Some(5), 8)] {
        let chain = Chain {
            batch,
            image: [3, 64, 64],
            layers: vec![
                conv(16, 5, 1, 2),
                Layer::Relu,
                Layer::Lrn,
                pool(3, 2, false),
                grouped(32, 3, 1, 1, 2, 1),
                Layer::Relu,
                pool(3, 2, false),
                conv(24, 3, 1, 1),
                Layer::Relu,
                pool(3, 2, false),
            ],
        };
        let text = tf_shapes::write(&chain, seed);
        for wanted in [batch, 3] {
            let imported = read("tf-shapes", &text, &at_batch(wanted)).unwrap();
            expect(&chain, &imported, wanted);
            let counts = facts::operators(&imported.graph);
            assert_eq!((counts["LRN"], counts["MaxPool"], counts["Conv2D"]), (1, 3, 3));
        }
    }
}

#[test]
fn tf_shapes_asks_for_a_window_that_shapes_leave_open() {
    let chain = Chain {
        batch: 2,
        image: [3, 16, 16],
        layers: vec![conv(8, 3, 1, 1), Layer::Relu, pool(2, 2, false)],
    };
    let text = tf_shapes::write(&chain, None);
    let error = read("tf-shapes", &text, &at_batch(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(
        error.to_string().contains("pool.window=") && error.to_string().contains("2x2/2/"),
        "{error}"
    );
    let imported = read("tf-shapes", &text, &assuming(&[("pool.window", "2x2/2/SAME")])).unwrap();
    expect(&chain, &imported, 1);
    let error = read("tf-shapes", &text, &assuming(&[("pool.window", "5x5/9/SAME")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn keras_resnets_of_every_depth() {
    for (network, blocks, params) in [
        ("resnet50", [3, 4, 6, 3].as_slice(), Some(25_636_712)),
        ("resnet101", &[3, 4, 23, 3], Some(44_707_176)),
        ("resnet152", &[3, 8, 36, 3], Some(60_419_944)),
        ("resnet14", &[1, 1, 1, 1], None),
        ("resnet8", &[2, 1], None),
    ] {
        let text = keras_order::write(network, blocks);
        let imported = read("keras-order", &text, &at_batch(2)).unwrap();
        let expected = keras_order::params(blocks);
        assert_eq!(facts::params(&imported.graph), params.unwrap_or(expected), "{network}");
        assert_eq!(expected, params.unwrap_or(expected));
        assert!(imported.warnings.is_empty(), "{:?}", imported.warnings);
        let smaller = ImportOptions {
            input_shape: Some(vec![1, 64, 96, 3]),
            ..ImportOptions::default()
        };
        let imported = read("keras-order", &text, &smaller).unwrap();
        assert_eq!(imported.graph.tensor(imported.graph.inputs[0]).shape, [1, 64, 96, 3]);
    }
}

fn local(layers: &[(usize, usize)]) -> rects::Local {
    rects::Local {
        batch: 48,
        image: [2, 21, 19],
        layers: layers.to_vec(),
        classes: 35,
    }
}

#[test]
fn rects_of_other_depths() {
    for layers in [[(8, 5)].as_slice(), &[(8, 5), (6, 3)], &[(4, 3), (4, 3), (5, 4)]] {
        let network = local(layers);
        let imported = read("rects", &network.write(), &at_batch(3)).unwrap();
        assert_eq!(facts::params(&imported.graph), network.params());
        assert_eq!(facts::operators(&imported.graph)["filter"], layers.len());
        assert_eq!(imported.graph.tensor(imported.graph.outputs[0]).shape, [3, 35, 1, 1]);
    }
}

/// Under noise the importer may give up, but it must never make another network; and light noise it must see through.
#[test]
fn rects_under_noise_of_other_kinds() {
    let network = local(&[(8, 5), (6, 3)]);
    let clean = network.write();
    for (rarity, least) in [(400, 195), (120, 195), (40, 150), (15, 100)] {
        let mut good = 0;
        for seed in 0..200 {
            if let Ok(imported) = read("rects", &rects::noise(&clean, seed, rarity), &at_batch(1)) {
                let place = format!("seed {seed}, one in {rarity}");
                let graph = &imported.graph;
                assert_eq!(facts::params(graph), network.params(), "{place}");
                assert_eq!(facts::operators(graph)["filter"], 2, "{place}");
                let [c, h, w] = network.image;
                assert_eq!(graph.tensor(graph.inputs[0]).shape, [1, c, h, w], "{place}");
                assert_eq!(
                    graph.tensor(graph.outputs[0]).shape,
                    [1, network.classes, 1, 1],
                    "{place}"
                );
                good += 1;
            }
        }
        println!("one in {rarity}: {good} of 200 pictures were legible");
        assert!(good >= least, "one in {rarity}: {good} of 200 pictures were legible");
    }
}

/// Keras's convolutions have a bias of their own before the batch norm.
#[test]
fn batch_norms_fold_into_convolutions_with_a_bias() {
    let text = keras_order::write("resnet50", &[1, 2]);
    let mut graph = read("keras-order", &text, &ImportOptions::default()).unwrap().graph;
    passes::run(&mut graph, Stage::Import).unwrap();
    let count = |graph: &Graph, of: fn(&Op) -> bool| graph.nodes.iter().filter(|node| of(&node.op)).count();
    let convolutions = count(&graph, |op| matches!(op, Op::Conv2d(_)));
    assert_eq!(count(&graph, |op| matches!(op, Op::BatchNorm { .. })), convolutions);
    passes::run(&mut graph, Stage::Fold).unwrap();
    passes::run(&mut graph, Stage::Fuse).unwrap();
    assert_eq!(count(&graph, |op| matches!(op, Op::Conv2d(_))), convolutions);
    let others = count(&graph, |op| {
        matches!(op, Op::BatchNorm { .. } | Op::Binary { .. } | Op::Unary(_))
    });
    assert_eq!(others, 0, "sums and activations are the convolutions' own");
}

/// Gain and bias of a picture's layer, and its nonlinearity, are the locally connected layer's own.
#[test]
fn gains_and_biases_fold_into_locally_connected_layers() {
    let mut graph = read("rects", &local(&[(8, 5), (6, 3)]).write(), &at_batch(1))
        .unwrap()
        .graph;
    for stage in [Stage::Import, Stage::Fold, Stage::Fuse] {
        passes::run(&mut graph, stage).unwrap();
    }
    let count = |of: fn(&Op) -> bool| graph.nodes.iter().filter(|node| of(&node.op)).count();
    assert_eq!(count(|op| matches!(op, Op::LocallyConnected2d { .. })), 2);
    assert_eq!(
        count(|op| matches!(op, Op::Affine | Op::Binary { .. } | Op::Unary(_))),
        0
    );
}
