//! Statements that a trace makes twice: the training half names operators that the forward half must have. A network without one of its operators is refused,
//! or it is the same network; never a shorter one in silence.

use std::collections::BTreeMap;
use std::path::Path;

use arenite_host::graph::{Graph, Role};
use arenite_host::import::{DIALECTS, ImportOptions, Imported};
use arenite_host::passes::prune;
use arenite_host::{Error, ErrorKind};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine, rects, tf_shapes};
use arenite_tests::{shared, skip};

fn read_with(dialect: &str, text: &str, options: &ImportOptions) -> Result<Imported, Error> {
    let found = DIALECTS.iter().find(|d| d.name == dialect).unwrap();
    (found.import)(Path::new("x.trace"), text.as_bytes(), options)
}

fn assuming(assume: &[(&str, &str)]) -> ImportOptions {
    ImportOptions {
        assume: assume.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        ..ImportOptions::default()
    }
}

fn read(dialect: &str, text: &str) -> Result<Graph, Error> {
    // Of an image that is not square a Chainer dump leaves the sides open.
    let options = if text.contains(" 2880 0\n") && dialect == "chainer" {
        assuming(&[("image", "3x12x10")])
    } else {
        ImportOptions::default()
    };
    read_with(dialect, text, &options).map(|imported| imported.graph)
}

/// The forward half: operators with their operands' and results' shapes.
fn network(graph: &Graph) -> Vec<String> {
    let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    let shapes = |node: &arenite_host::graph::Node| -> Vec<Vec<usize>> {
        let ids = node.inputs.iter().flatten().chain(&node.outputs);
        ids.map(|&id| graph.tensor(id).shape.clone()).collect()
    };
    forward
        .map(|node| format!("{:?} {:?}", node.op, shapes(node)))
        .collect()
}

/// `damaged` is refused, or the network of `whole`.
fn refused_or_same(dialect: &str, whole: &Graph, damaged: &str, what: &str) -> bool {
    match read(dialect, damaged) {
        Ok(graph) => {
            assert_eq!(
                network(&graph),
                network(whole),
                "{dialect} without {what} packs as another network"
            );
            false
        }
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Internal, "{dialect} without {what}: {error}");
            true
        }
    }
}

fn without(text: &str, gone: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !gone(line)).collect();
    lines.join("\n")
}

fn keras(text: &str, name: &str) -> usize {
    let whole = read("keras-order", text).unwrap();
    let inside = |line: &str| {
        line.strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('/'))
            .map(String::from)
    };
    let operators: Vec<&str> = text
        .lines()
        .filter(|line| inside(line).is_some_and(|op| op.matches('/').count() == 1))
        .collect();
    let mut refused = 0;
    for operator in operators.iter().filter(|line| !line.contains("AssignNewValue")) {
        refused += usize::from(refused_or_same(
            "keras-order",
            &whole,
            &without(text, |line| line == *operator),
            operator,
        ));
    }
    // Whole layers and stages, with and without what the training half says of them.
    let layers: std::collections::BTreeSet<&str> = operators.iter().map(|op| op.split('/').nth(1).unwrap()).collect();
    let stages = ["conv2_", "conv3_", "conv4_", "conv5_"]
        .into_iter()
        .filter(|stage| text.contains(&format!("/{stage}")));
    for part in layers.into_iter().chain(stages) {
        let forward = without(text, |line| inside(line).is_some_and(|op| op.starts_with(part)));
        assert!(
            refused_or_same("keras-order", &whole, &forward, part),
            "keras-order without {part}"
        );
        let both = without(text, |line| line.contains(part));
        assert!(
            refused_or_same("keras-order", &whole, &both, part),
            "keras-order without any {part}"
        );
        refused += 2;
    }
    refused
}

#[test]
fn keras_without_an_operator() {
    assert!(keras(&keras_order::write("resnet8", &[2, 1]), "resnet8") > 30);
    let text = keras_order::write("resnet50", &[1, 1, 1, 2]);
    assert!(keras(&text, "resnet50") > 80);
}

fn tf(text: &str) -> usize {
    let whole = read("tf-shapes", text).unwrap();
    let nodes: Vec<&str> = (text.lines())
        .filter_map(|line| line.split(", ").next()?.split_once(':'))
        .filter(|(node, kernel)| !node.starts_with("gradients") && !["Transpose", "MEMCPYDtoH"].contains(kernel))
        .map(|(node, _)| node)
        .collect();
    assert!(nodes.len() >= 10, "{nodes:?}");
    for node in &nodes {
        let name = |line: &str| line.split(", ").next().unwrap_or_default().to_string();
        let rows = without(text, |line| {
            name(line) == *node || name(line).starts_with(&format!("{node}:"))
        });
        assert!(
            refused_or_same("tf-shapes", &whole, &rows, node),
            "tf-shapes without {node}"
        );
    }
    nodes.len()
}

fn conv(out: usize, kernel: usize, pad: usize) -> Layer {
    Layer::Conv {
        out,
        kernel: [kernel; 2],
        stride: [1; 2],
        pad: [pad; 2],
        groups: 1,
        dilation: [1; 2],
    }
}

fn features() -> Chain {
    let pool = Layer::MaxPool {
        kernel: [3; 2],
        stride: [2; 2],
        ceiling: false,
    };
    Chain {
        batch: 2,
        image: [3, 33, 29],
        layers: vec![
            conv(4, 3, 1),
            Layer::Relu,
            Layer::Lrn,
            pool,
            conv(4, 3, 1),
            Layer::Relu,
            conv(6, 3, 1),
            Layer::Relu,
            pool,
        ],
    }
}

#[test]
fn tf_shapes_without_an_operator() {
    assert_eq!(tf(&tf_shapes::write(&features(), None)), 12);
}

fn classifier() -> Chain {
    let pool = Layer::MaxPool {
        kernel: [2; 2],
        stride: [2; 2],
        ceiling: false,
    };
    let layers = vec![
        conv(4, 3, 1),
        Layer::Relu,
        conv(4, 3, 1),
        Layer::Relu,
        pool,
        Layer::Flatten,
        Layer::Linear { out: 6 },
        Layer::Relu,
        Layer::Linear { out: 5 },
    ];
    Chain {
        batch: 2,
        image: [3, 12, 10],
        layers,
    }
}

/// Records of a Chainer dump: lines from `forward` or `backward` up to the next.
fn records(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut table = Vec::new();
    let mut records: Vec<Vec<String>> = Vec::new();
    for line in text.lines().map(String::from) {
        match (line.as_str(), records.last_mut()) {
            ("forward" | "backward", _) => records.push(vec![line]),
            (_, Some(record)) => record.push(line),
            (_, None) => table.push(line),
        }
    }
    (table, records)
}

fn rejoined(table: &[String], records: &[&Vec<String>]) -> String {
    let buffers = table[0].split(' ').next().unwrap();
    let first = format!("{buffers} {}", records.len());
    let lines = std::iter::once(first).chain(table[1..].iter().cloned());
    let lines: Vec<String> = lines.chain(records.iter().flat_map(|r| r.iter().cloned())).collect();
    lines.join("\n") + "\n"
}

fn chainer(text: &str) -> usize {
    let whole = read("chainer", text).unwrap();
    let (table, all) = records(text);
    let rank = |record: &Vec<String>| {
        let json = record.last().unwrap();
        json.split("\"rank\": ")
            .nth(1)
            .unwrap()
            .split([',', '}'])
            .next()
            .unwrap()
            .to_string()
    };
    let mut refused = 0;
    for gone in all.iter().filter(|record| record[0] == "forward") {
        let what = format!("{} of rank {}", gone[gone.len() - 2], rank(gone));
        let forward: Vec<&Vec<String>> = all.iter().filter(|record| *record != gone).collect();
        assert!(
            refused_or_same("chainer", &whole, &rejoined(&table, &forward), &what),
            "chainer without {what}"
        );
        let both: Vec<&Vec<String>> = all.iter().filter(|record| rank(record) != rank(gone)).collect();
        refused += usize::from(refused_or_same("chainer", &whole, &rejoined(&table, &both), &what));
    }
    refused
}

#[test]
fn chainer_without_an_operator() {
    // Without the loss it is the same network.
    assert_eq!(chainer(&chainer::write(&classifier(), 3)), classifier().layers.len());
}

#[test]
fn megengine_without_an_operator() {
    let text = megengine::write(&classifier());
    let whole = read("megengine", &text).unwrap();
    let dump: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<String> = dump["graph_exec"]["operator"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert!(ids.len() > 20);
    for id in ids {
        let mut damaged = dump.clone();
        let kind = damaged["graph_exec"]["operator"][&id]["type"].to_string();
        damaged["graph_exec"]["operator"].as_object_mut().unwrap().remove(&id);
        damaged["graph_exec"]["comp_seq"]
            .as_array_mut()
            .unwrap()
            .retain(|item| item != &serde_json::json!(id));
        damaged["profiler"]["opr_footprint"]
            .as_object_mut()
            .unwrap()
            .remove(&id);
        let is_refused = refused_or_same("megengine", &whole, &damaged.to_string(), &kind);
        assert!(is_refused || kind.contains("Callback"), "megengine without {kind}");
    }
}

fn local() -> rects::Local {
    rects::Local {
        batch: 12,
        image: [2, 13, 11],
        // A layer of 1 x 1 keeps every shape.
        layers: vec![(4, 3), (4, 1), (4, 1)],
        classes: 9,
    }
}

#[test]
fn rects_without_an_operator() {
    let text = local().write();
    let whole = read("rects", &text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let start = |name: &str| {
        lines
            .iter()
            .position(|line| line.split(' ').next() == Some(name))
            .unwrap()
    };
    for layer in 0..3 {
        let end = if layer == 2 {
            start("classifier.weights1")
        } else {
            start(&format!("L{}.W", layer + 1))
        };
        let from = start(&format!("L{layer}.W"));
        let left: Vec<&str> = lines[..from].iter().chain(&lines[end..]).copied().collect();
        let is_refused = refused_or_same("rects", &whole, &left.join("\n"), &format!("layer {layer}"));
        assert!(is_refused, "rects without layer {layer}");
    }
    // An operator with its result.
    let nodes = [
        "L0.filter",
        "L1.filterA",
        "L2.filterNL",
        "classifier.linear1",
        "classifier.softmax",
        "L1.filter",
    ];
    for node in nodes {
        let left = without(&text, |line| {
            line == node
                || line
                    .split(' ')
                    .any(|word| word == format!("{node}.output") || word == format!("{node}.probability"))
        });
        assert!(refused_or_same("rects", &whole, &left, node), "rects without {node}");
    }
}

fn pruned(mut graph: Graph) -> BTreeMap<String, usize> {
    prune::run(&mut graph).unwrap();
    graph.pruned
}

/// Noise takes nothing from the training half, nor adds to it.
#[test]
fn rects_count_what_is_pruned_alike() {
    let network = rects::Local {
        batch: 48,
        image: [2, 21, 19],
        layers: vec![(8, 5), (6, 3)],
        classes: 35,
    };
    let clean = network.write();
    let expected = pruned(read("rects", &clean).unwrap());
    // Softmax, linear1 and three gradients a layer; three and six that are cleared; an update for each parameter.
    assert_eq!(
        (expected["backward"], expected["optimizer"]),
        (2 + 3 * 2 + 3 + 6 * 2, 1 + 3 * 2)
    );
    let mut read_of = [0, 0];
    for (kind, rarity) in [(0, 400), (1, 60)] {
        for seed in 0..60 {
            if let Ok(graph) = read("rects", &rects::noise(&clean, seed, rarity)) {
                assert_eq!(pruned(graph), expected, "seed {seed}, one in {rarity}");
                read_of[kind] += 1;
            }
        }
    }
    assert!(
        read_of[0] >= 50 && read_of[1] >= 20,
        "{read_of:?} pictures were legible"
    );
}

#[test]
fn reference_traces_without_an_operator() {
    let Some(shared) = shared() else {
        return skip("reference_traces_without_an_operator", "no shared data");
    };
    let text = |name: &str| std::fs::read_to_string(shared.join("traces").join(name)).unwrap();
    assert!(keras(&text("resnet50-keras-order.trace.txt"), "resnet50") > 250);
    assert_eq!(tf(&text("alexnet-tf-shapes.trace.txt")), 20);
    assert_eq!(chainer(&text("vgg19-chainer.trace.txt")), 45);
}

/// Every assumption that an import reports can be given, and is then used; or giving it is refused.
#[test]
fn assumptions_are_used_or_refused() {
    let samples = [
        ("keras-order", keras_order::write("resnet8", &[2, 1])),
        ("tf-shapes", tf_shapes::write(&features(), None)),
        ("chainer", chainer::write(&classifier(), 3)),
        ("megengine", megengine::write(&classifier())),
        ("rects", local().write()),
    ];
    let mut refused = 0;
    for (dialect, text) in samples {
        let needed: &[(&str, &str)] = if dialect == "chainer" {
            &[("image", "3x12x10")]
        } else {
            &[]
        };
        let plain = read_with(dialect, &text, &assuming(needed)).unwrap();
        let more = [
            "batch.traced",
            "architecture",
            "output",
            "kernel",
            "reading",
            "name",
            "dilation",
            "reshape.batch",
            "no.such.key",
        ];
        let keys = plain
            .assumptions
            .iter()
            .filter(|a| a.reason != "given")
            .map(|a| a.key.as_str())
            .chain(more);
        for key in keys {
            for value in ["0", "7", "vgg", "3x3"] {
                match read_with(dialect, &text, &assuming(&[needed, &[(key, value)]].concat())) {
                    Ok(imported) => {
                        let used = imported
                            .assumptions
                            .iter()
                            .any(|a| (a.key.as_str(), a.value.as_str(), a.reason.as_str()) == (key, value, "given"));
                        assert!(used, "{dialect}: --assume {key}={value} is ignored");
                    }
                    Err(error) => {
                        assert_ne!(error.kind(), ErrorKind::Internal, "{dialect}, {key}={value}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 100);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops/add_int8.tflite");
    let content = std::fs::read(&model).unwrap();
    let error = arenite_host::import::tflite::import(&model, &content, &assuming(&[("a", "b")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}
