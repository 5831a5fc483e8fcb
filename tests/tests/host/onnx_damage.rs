//! ONNX files that are damaged, hostile, or ask for what there is not: an error that says what and where, in bounded time and memory; never a panic.

use std::path::Path;

use arenite::Target;
use arenite_host::graph::check::check;
use arenite_host::graph::{Graph, facts};
use arenite_host::import::onnx::import;
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::model::run;
use arenite_tests::golden::packed;
use arenite_tests::onnx::{Writer, cases};
use arenite_tests::writers::Random;

/// Largest network that a damaged file is packed for, in elements.
const LARGEST: usize = 1 << 16;

fn models() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/onnx")
}

/// Imports a file; returns its graph, or the error.
fn said(content: &[u8], options: &ImportOptions) -> Result<Graph, String> {
    import(Path::new("nowhere/m.onnx"), content, options)
        .map(|imported| imported.graph)
        .map_err(|e| e.to_string())
}

fn refused(content: &[u8], options: &ImportOptions, parts: &[&str]) {
    let text = said(content, options).map(|_| ()).expect_err("it is refused");
    for part in parts {
        assert!(text.contains(part), "{text} lacks `{part}`");
    }
}

/// A graph of these nodes over `x` of this shape, with the result `y`.
fn graph(shape: &[i64], nodes: &[Writer]) -> Vec<u8> {
    let graph = nodes
        .iter()
        .fold(Writer::default(), |graph, node| graph.bytes(1, &node.clone().done()));
    graph
        .bytes(11, &Writer::value("x", shape))
        .bytes(12, &Writer::value("y", &[-1]))
        .done()
}

/// Tensors computed at run time have no half and no double precision, whichever operator asks for it.
#[test]
fn half_and_double_precision_of_computed_tensors_are_refused_by_name() {
    for (number, name, width) in [(10, "float16", 2), (16, "bfloat16", 2), (11, "double", 8)] {
        let like = Writer::default().int(1, 1).int(2, number).bytes(8, b"like");
        let like = like.bytes(9, &vec![0; width]).done();
        let to = Writer::default().bytes(1, b"to").int(3, number).int(20, 2).done();
        let to = |input| Writer::node("Cast", &[input], "c").bytes(5, &to);
        let back = Writer::default().bytes(1, b"to").int(3, 1).int(20, 2).done();
        let back = Writer::node("Cast", &["c"], "y").bytes(5, &back);
        let named = |node: Writer| vec![node, back.clone()];
        for (what, nodes) in [
            ("Cast", named(to("x"))),
            ("CastLike", named(Writer::node("CastLike", &["x", "like"], "c"))),
            (
                "CastLike",
                [
                    vec![Writer::node("Identity", &["like"], "same")],
                    named(Writer::node("CastLike", &["x", "same"], "c")),
                ]
                .concat(),
            ),
        ] {
            let content = Writer::model(
                &[graph(&[4], &nodes), Writer::default().bytes(5, &like).done()].concat(),
                19,
            );
            let element = format!("element type {name} of a tensor that is computed");
            refused(&content, &ImportOptions::default(), &[what, "`c`", &element, "float32"]);
        }
    }
}

#[test]
fn files_that_are_cut_off_anywhere() {
    for name in cases(&models()) {
        let content = std::fs::read(models().join(&name).join("model.onnx")).unwrap();
        for at in (0..content.len()).step_by(1 + content.len() / 40) {
            if let Ok(graph) = said(&content[..at], &ImportOptions::default()) {
                check(&graph).unwrap_or_else(|e| panic!("{name} at {at}: {e}"));
            }
        }
    }
}

/// `ARENITE_ROUNDS` says how many; a failure prints the round, which is the seed.
#[test]
fn stacked_mutations() {
    let read = |name: &String| std::fs::read(models().join(name).join("model.onnx")).unwrap();
    let files: Vec<(String, Vec<u8>)> = cases(&models())
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .collect();
    mutated(&files, 1500, 20);
}

/// The same of what no file of the folder has: branches, scattered and chosen elements, four bits, half precision.
#[test]
fn stacked_mutations_of_generated_files() {
    let tensor = |name: &str, elem: i64, shape: &[i64], raw: &[u8]| {
        let tensor = shape
            .iter()
            .fold(Writer::default(), |tensor, &extent| tensor.int(1, extent));
        tensor.int(2, elem).bytes(8, name.as_bytes()).bytes(9, raw).done()
    };
    let longs = |values: &[i64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let branch = |name: &str, op: &str| {
        let graph = Writer::default()
            .bytes(1, &Writer::node(op, &["x"], "t").done())
            .bytes(12, &Writer::value("t", &[-1, -1]))
            .done();
        Writer::default()
            .bytes(1, name.as_bytes())
            .bytes(6, &graph)
            .int(20, 5)
            .done()
    };
    let chosen = Writer::node("If", &["c"], "y")
        .bytes(5, &branch("then_branch", "Neg"))
        .bytes(5, &branch("else_branch", "Abs"));
    let files = [
        ("If", vec![chosen], vec![tensor("c", 9, &[], &[1])]),
        (
            "ScatterND",
            vec![Writer::node("ScatterND", &["x", "i", "u"], "y")],
            vec![
                tensor("i", 7, &[1, 2], &longs(&[1, 2])),
                tensor("u", 1, &[1], &1f32.to_le_bytes()),
            ],
        ),
        (
            "GatherElements",
            vec![Writer::node("GatherElements", &["x", "i"], "y")],
            vec![tensor("i", 7, &[2, 2], &longs(&[0, 1, 1, 0]))],
        ),
        (
            "TopK",
            vec![
                Writer::node("TopK", &["i", "k"], "v"),
                Writer::node("Gather", &["x", "v"], "y"),
            ],
            vec![
                tensor("i", 7, &[2], &longs(&[0, 1])),
                tensor("k", 7, &[1], &longs(&[2])),
            ],
        ),
        (
            "DequantizeLinear",
            vec![
                Writer::node("DequantizeLinear", &["q", "s"], "w"),
                Writer::node("Add", &["x", "w"], "y"),
            ],
            vec![
                tensor("q", 22, &[3], &[0x71, 0x0F]),
                tensor("s", 1, &[], &0.5f32.to_le_bytes()),
            ],
        ),
        (
            "Mul",
            vec![
                Writer::node("Mul", &["x", "w"], "m"),
                Writer::node("CumSum", &["m", "a"], "y"),
            ],
            vec![
                tensor("w", 10, &[3], &[0, 62, 0, 180, 0, 60]),
                tensor("a", 7, &[], &longs(&[1])),
            ],
        ),
    ];
    let files = files.map(|(name, nodes, held)| {
        let held = held
            .iter()
            .fold(Writer::default(), |held, tensor| held.bytes(5, tensor));
        let body = [graph(&[2, 3], &nodes), held.done()].concat();
        (name.to_string(), Writer::model(&body, 21))
    });
    for (name, file) in &files {
        said(file, &ImportOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    // Small files, of which few survive.
    mutated(&files, 1500, 50);
}

/// Files with a few bits changed, bytes gone, or the end cut off. At least one in `share` is a network still, and half of these run.
fn mutated(files: &[(String, Vec<u8>)], rounds: u64, share: u64) {
    let rounds = std::env::var("ARENITE_ROUNDS").map_or(rounds, |n| n.parse().expect("ARENITE_ROUNDS is a number"));
    let folder = tempfile::tempdir().unwrap();
    let (mut networks, mut ran, mut findings) = (0, 0, Vec::new());
    for round in 0..rounds {
        let mut random = Random::new(round);
        let (name, file) = &files[random.below(files.len())];
        let mut bytes = file.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(8) {
                0..=4 => bytes[at] ^= 1 << random.below(8),
                5 => bytes[at] = random.below(256) as u8,
                6 => drop(bytes.drain(at..(at + random.below(6)).min(bytes.len()))),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let path = folder.path().join("damaged.onnx");
        let through = || {
            for dialect in DIALECTS {
                let _ = (dialect.recognises)(&bytes);
            }
            let Ok(graph) = said(&bytes, &ImportOptions::default()) else {
                return (false, false);
            };
            check(&graph).unwrap_or_else(|e| panic!("{e}"));
            let _ = (facts::params(&graph), facts::macs_per_element(&graph));
            if graph.tensors.iter().map(|t| t.elements()).sum::<usize>() > LARGEST {
                return (true, false);
            }
            std::fs::write(&path, &bytes).unwrap();
            let Ok(file) = packed(&path, folder.path(), Target::Portable) else {
                return (true, false);
            };
            let model = file.load().unwrap_or_else(|e| panic!("packed: {e}"));
            let ports = 0..usize::from(model.header().inputs);
            let inputs = ports.map(|port| vec![0; model.input(port).and_then(|p| p.bytes()).expect("a size") as usize]);
            run(&model, &[inputs.collect()], true, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("run: {e}"));
            (true, true)
        };
        match std::panic::catch_unwind(through) {
            Ok((network, run)) => {
                networks += u64::from(network);
                ran += u64::from(run);
            }
            Err(_) => findings.push(format!("round {round}, {name}: a panic")),
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(
        networks * share > rounds && ran * 2 * share > rounds,
        "{networks} networks, {ran} ran of {rounds}"
    );
}

/// Little that says it is much: refused for what it says, before memory is taken for it.
#[test]
fn bombs() {
    let plain = ImportOptions::default();
    // Five million empty nodes in ten megabytes.
    let nodes = [0x0A, 0x00].repeat(5_000_000);
    refused(
        &Writer::model(&nodes, 17),
        &plain,
        &["more than 4000000 entries of lists"],
    );
    // A message of 4 GiB in a few bytes.
    let mut long = vec![0x08, 0x08, 0x3A];
    long.extend([0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
    refused(&long, &plain, &["reaches beyond its end"]);
    // Groups within groups, which no field of a model is.
    refused(
        &[&[0x08, 0x08][..], &[0x3B; 100_000]].concat(),
        &plain,
        &["wire type 3"],
    );
    // A constant of 2^60 elements without data.
    let tensor = Writer::default()
        .int(1, 1 << 30)
        .int(1, 1 << 30)
        .int(2, 1)
        .bytes(8, b"w")
        .done();
    let body = graph(&[2, 3], &[Writer::node("Add", &["x", "w"], "y")]);
    let body = [body, Writer::default().bytes(5, &tensor).done()].concat();
    refused(&Writer::model(&body, 17), &plain, &["`w`", "4 GiB"]);
    // One that is made when importing.
    let shape: Vec<u8> = [1i64 << 20, 1 << 20].iter().flat_map(|n| n.to_le_bytes()).collect();
    let shape = Writer::default()
        .int(1, 2)
        .int(2, 7)
        .bytes(8, b"s")
        .bytes(9, &shape)
        .done();
    let made = [
        Writer::node("ConstantOfShape", &["s"], "w"),
        Writer::node("Add", &["x", "w"], "y"),
    ];
    let body = [graph(&[2, 3], &made), Writer::default().bytes(5, &shape).done()].concat();
    refused(
        &Writer::model(&body, 17),
        &plain,
        &["a constant of shape", "ConstantOfShape"],
    );
    // More extents than any tensor has.
    let tensor = Writer::default().bytes(1, &[1; 5000]).int(2, 1).bytes(8, b"w").done();
    let body = [graph(&[2], &[]), Writer::default().bytes(5, &tensor).done()].concat();
    refused(&Writer::model(&body, 17), &plain, &["more than 64 extents"]);
}

#[test]
fn all_reasons_at_once_each_once() {
    let nodes = [
        Writer::node("Scan", &["x"], "a"),
        Writer::node("NonZero", &["x"], "b"),
        Writer::node("Scan", &["a"], "c"),
        Writer::node("Nothing", &["x"], "e").bytes(7, b"com.vendor"),
        Writer::node("Sum", &["a", "b", "c", "e"], "y"),
    ];
    let file = Writer::model(&graph(&[2, 3], &nodes), 17);
    let text = said(&file, &ImportOptions::default()).map(|_| ()).unwrap_err();
    for part in [
        "4 nodes",
        "`a` and 1 more",
        "control flow",
        "(NonZero)",
        "dynamic shape",
        "the domain `com.vendor`",
    ] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    assert_eq!(text.matches("(Scan)").count(), 1, "{text}");
    assert!(!text.contains("(Sum)"), "{text}");
}

#[test]
fn operator_sets_and_order() {
    let plain = ImportOptions::default();
    let relu = graph(&[2, 3], &[Writer::node("Relu", &["x"], "y")]);
    refused(&Writer::model(&relu, 6), &plain, &["operator set 6", "7 to"]);
    refused(&Writer::model(&relu, 99), &plain, &["operator set 99", "7 to"]);
    let backwards = [Writer::node("Relu", &["a"], "y"), Writer::node("Relu", &["x"], "a")];
    refused(
        &Writer::model(&graph(&[2], &backwards), 17),
        &plain,
        &["reads `a` before anything writes it"],
    );
    let twice = [Writer::node("Relu", &["x"], "y"), Writer::node("Relu", &["x"], "y")];
    refused(
        &Writer::model(&graph(&[2], &twice), 17),
        &plain,
        &["writes `y`, which has a value already"],
    );
}

#[test]
fn extents_that_the_file_only_names() {
    let file = Writer::model(&graph(&[-1, 3, -1], &[Writer::node("Relu", &["x"], "y")]), 17);
    let plain = ImportOptions::default();
    refused(
        &file,
        &plain,
        &["axis 2 of [x_0, 3, x_2]", "--input-shape", "--assume x_2=N"],
    );
    let shape = |options: &ImportOptions| said(&file, options).map(|g| g.tensor(g.inputs[0]).shape.clone());
    let assumed = ImportOptions {
        assume: vec![("x_2".to_string(), "5".to_string())],
        ..ImportOptions::default()
    };
    assert_eq!(shape(&assumed), Ok(vec![1, 3, 5]));
    assert_eq!(
        shape(&ImportOptions {
            batch: Some(4),
            ..assumed
        }),
        Ok(vec![4, 3, 5])
    );
    let asked = |shape: &[usize]| ImportOptions {
        input_shape: Some(shape.to_vec()),
        ..ImportOptions::default()
    };
    assert_eq!(shape(&asked(&[2, 3, 7])), Ok(vec![2, 3, 7]));
    refused(&file, &asked(&[2, 4, 7]), &["contradicts the file", "3 along axis 1"]);
    refused(&file, &asked(&[2, 3]), &["3 extents"]);
}

/// Data lie in the model's folder, and nowhere else.
#[test]
fn external_data() {
    let folder = tempfile::tempdir().unwrap();
    let (home, outside) = (folder.path().join("model"), folder.path().join("secret.bin"));
    std::fs::create_dir(&home).unwrap();
    let weights: Vec<u8> = (0..12u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    std::fs::write(&outside, &weights).unwrap();
    std::fs::write(home.join("w.bin"), &weights).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, home.join("link.bin")).unwrap();
    let model = |tensors: &[Vec<u8>]| {
        let nodes = [
            Writer::node("Add", &["x", "w"], "a"),
            Writer::node("Add", &["a", "v"], "y"),
        ];
        let body = tensors
            .iter()
            .fold(Writer::default(), |body, tensor| body.bytes(5, tensor))
            .done();
        Writer::model(&[graph(&[2, 3], &nodes), body].concat(), 17)
    };
    let reads =
        |content: &[u8]| import(&home.join("m.onnx"), content, &ImportOptions::default()).map_err(|e| e.to_string());
    let good = Writer::external("v", &[2, 3], "w.bin", 24, 24);
    let imported = reads(&model(&[
        Writer::external("w", &[2, 3], "./w.bin", 0, 24),
        good.clone(),
    ]))
    .unwrap();
    assert_eq!(facts::params(&imported.graph), 12);
    assert_eq!(imported.files, [home.join("w.bin").canonicalize().unwrap()]);
    let absolute = outside.display().to_string();
    let mut attacks = vec![
        (absolute.as_str(), 0, 24, "a file inside the model's folder"),
        ("../secret.bin", 0, 24, "a file inside the model's folder"),
        ("", 0, 24, "a file inside the model's folder"),
        (".", 0, 24, "a file inside the model's folder"),
        ("w.bin", 12, 24, "overlaps"),
        ("w.bin", 40, 24, "at most 48"),
        ("w.bin", i64::MAX, 24, "at most 48"),
        ("w.bin", 0, 12, "12 bytes of data"),
        ("w.bin", -4, 24, "no number"),
        ("none.bin", 0, 24, "cannot read"),
    ];
    if cfg!(unix) {
        attacks.push(("link.bin", 0, 24, "a file inside the model's folder"));
    }
    for (location, offset, length, part) in attacks {
        let file = model(&[Writer::external("w", &[2, 3], location, offset, length), good.clone()]);
        let text = reads(&file).map(|_| ()).expect_err(location);
        assert!(text.contains(part), "{location}: {text}");
    }
}
