//! The batch and the shapes that a file states: kept, rebuilt rightly, or refused by name.

use std::path::Path;

use arenite_host::import::ImportOptions;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, floats, imported, int, ints, longs, value};

fn at(batch: usize) -> ImportOptions {
    ImportOptions {
        batch: Some(batch),
        ..ImportOptions::default()
    }
}

/// A file over `x` of this shape, with a result of open extents.
fn open(shape: &[i64], result: usize, rest: impl FnOnce(File) -> File) -> Vec<u8> {
    rest(
        File::default()
            .input(&value("x", 1, shape))
            .output(&Writer::value("y", &vec![-1; result])),
    )
    .bytes(17)
}

fn perceptron(file: File) -> File {
    let weights: Vec<f32> = (0..6).map(|i| i as f32 - 2.0).collect();
    let file = file
        .holding(&floats("w", &[3, 2], &weights))
        .holding(&floats("b", &[2], &[1.0, -1.0]));
    file.node("Gemm", &["x", "w", "b"], "h", &[])
        .node("Relu", &["h"], "y", &[])
}

#[test]
fn without_the_option_the_stated_batch_stays() {
    for batch in [1, 2, 4, 7] {
        let file = open(&[batch, 3], 2, perceptron);
        assert_eq!(
            imported(&file, &ImportOptions::default()),
            Ok(vec![vec![batch as usize, 2]])
        );
    }
    let free = File::default()
        .input(&Writer::value("x", &[-1, 3]))
        .output(&Writer::value("y", &[-1, -1]));
    assert_eq!(
        imported(&perceptron(free).bytes(17), &ImportOptions::default()),
        Ok(vec![vec![1, 2]])
    );
}

#[test]
fn a_stated_batch_is_rebuilt_and_computes_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("m.onnx");
    std::fs::write(&input, open(&[4, 3], 2, perceptron)).expect("written");
    let results = |batch: Option<usize>, values: &[f32]| -> Vec<u8> {
        let mut options = Options::new(&input, folder.path().join("m.bin"));
        options.import.batch = batch;
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let file = ModelFile::open(&options.output).expect("a model");
        let model = file.load().expect("it loads");
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        run(&model, &[vec![bytes]], true, &mut |_, _, _| {}).expect("it runs")[0][0].clone()
    };
    let values: Vec<f32> = (0..12).map(|i| (i * 7 % 5) as f32 - 1.5).collect();
    let whole = results(None, &values);
    let each: Vec<u8> = values.chunks(3).flat_map(|sample| results(Some(1), sample)).collect();
    assert_eq!(whole, each);
    let twice: Vec<u8> = [&values[..], &values[..]]
        .concat()
        .chunks(24)
        .flat_map(|eight| results(Some(8), eight))
        .collect();
    assert_eq!(twice, [&whole[..], &whole[..]].concat());
}

/// Operators that take the first axis for something else than samples, and each reason.
#[test]
fn another_batch_of_a_network_that_mixes_its_first_axis_is_refused_by_name() {
    let cases: Vec<(&str, Vec<u8>)> = vec![
        (
            "Softmax",
            open(&[5, 3], 2, |f| f.node("Softmax", &["x"], "y", &[int("axis", 0)])),
        ),
        (
            "ReduceMean",
            open(&[5, 3], 2, |f| f.node("ReduceMean", &["x"], "y", &[ints("axes", &[0])])),
        ),
        (
            "CumSum",
            open(&[5, 3], 2, |f| {
                f.holding(&longs("axis", &[0])).node("CumSum", &["x", "axis"], "y", &[])
            }),
        ),
        (
            "Concat",
            open(&[5, 3], 2, |f| f.node("Concat", &["x", "x"], "y", &[int("axis", 0)])),
        ),
        (
            "Slice",
            open(&[5, 3], 2, |f| {
                let f = f
                    .holding(&longs("from", &[-1]))
                    .holding(&longs("to", &[-6]))
                    .holding(&longs("axis", &[0]))
                    .holding(&longs("step", &[-1]));
                f.node("Slice", &["x", "from", "to", "axis", "step"], "y", &[])
            }),
        ),
        (
            "Gather",
            open(&[5, 3], 2, |f| {
                f.holding(&longs("chosen", &[0]))
                    .node("Gather", &["x", "chosen"], "y", &[])
            }),
        ),
        (
            "Reshape",
            open(&[5, 3], 2, |f| {
                f.holding(&longs("shape", &[5, 3]))
                    .node("Reshape", &["x", "shape"], "y", &[])
            }),
        ),
        (
            "Reshape",
            open(&[4, 6], 2, |f| {
                f.holding(&longs("shape", &[4, -1]))
                    .node("Reshape", &["x", "shape"], "y", &[])
            }),
        ),
        (
            "Reshape",
            open(&[4, 6], 2, |f| {
                f.holding(&longs("shape", &[3, -1]))
                    .node("Reshape", &["x", "shape"], "y", &[])
            }),
        ),
        (
            "MatMul",
            open(&[5, 3], 2, |f| {
                f.holding(&floats("w", &[4, 5], &[1.0; 20]))
                    .node("MatMul", &["w", "x"], "y", &[])
            }),
        ),
        (
            "Add",
            open(&[5, 3], 2, |f| {
                f.holding(&floats("c", &[5, 3], &[1.0; 15]))
                    .node("Add", &["x", "c"], "y", &[])
            }),
        ),
        (
            "MatMul",
            open(&[4, 3], 2, |f| {
                f.holding(&floats("w", &[4, 2], &[1.0; 8]))
                    .node("Transpose", &["x"], "t", &[])
                    .node("MatMul", &["t", "w"], "y", &[])
            }),
        ),
        // A product of matrices for each sample is as many steps.
        (
            "MatMul",
            open(&[4, 2, 5], 3, |f| {
                f.node("Transpose", &["x"], "t", &[ints("perm", &[0, 2, 1])])
                    .node("MatMul", &["x", "t"], "y", &[])
            }),
        ),
        // The samples are divided by how many there are.
        (
            "Div",
            open(&[5, 3], 2, |f| {
                let f = f
                    .node("Shape", &["x"], "s", &[])
                    .node("Cast", &["s"], "n", &[int("to", 1)]);
                let f = f
                    .holding(&longs("first", &[0]))
                    .node("Gather", &["n", "first"], "b", &[]);
                f.node("Div", &["x", "b"], "y", &[])
            }),
        ),
        (
            "RNN",
            open(&[5, 1, 1], 4, |f| {
                let f = f
                    .holding(&floats("w", &[1, 1, 1], &[1.0]))
                    .holding(&floats("r", &[1, 1, 1], &[1.0]));
                f.node("RNN", &["x", "w", "r"], "y", &[int("hidden_size", 1)])
            }),
        ),
    ];
    let mut by_batch = 0;
    for (op, file) in cases {
        imported(&file, &ImportOptions::default()).unwrap_or_else(|e| panic!("{op} as it is: {e}"));
        for batch in [1, 2, 10] {
            let text = imported(&file, &at(batch)).expect_err(op);
            assert!(text.contains(op), "{op} at {batch}: {text}");
            by_batch += usize::from(text.contains(", where the file states "));
        }
        // The batch that the file states is no other batch.
        let stated = imported(&file, &ImportOptions::default());
        assert_eq!(imported(&file, &at(first(&file))), stated, "{op}");
    }
    assert!(by_batch > 10, "{by_batch} refusals speak of the batch");
}

/// The first extent of the only input.
fn first(file: &[u8]) -> usize {
    let options = ImportOptions::default();
    let imported = arenite_host::import::onnx::import(Path::new("m.onnx"), file, &options).expect("imports");
    imported.graph.tensor(imported.graph.inputs[0]).shape[0]
}

/// Networks that treat every sample by itself, through reshapes and products that keep the samples apart.
#[test]
fn networks_of_independent_samples_are_rebuilt() {
    let cases: Vec<Vec<u8>> = vec![
        open(&[4, 3], 2, perceptron),
        open(&[4, 6], 3, |f| {
            f.holding(&longs("shape", &[0, 3, 2]))
                .node("Reshape", &["x", "shape"], "y", &[])
        }),
        open(&[4, 6], 2, |f| {
            f.holding(&longs("shape", &[-1, 6]))
                .node("Reshape", &["x", "shape"], "y", &[])
        }),
        open(&[4, 2, 3], 2, |f| f.node("Flatten", &["x"], "y", &[])),
        open(&[4, 3], 2, |f| f.node("Softmax", &["x"], "y", &[int("axis", 1)])),
        open(&[4, 3], 2, |f| f.node("Concat", &["x", "x"], "y", &[int("axis", 1)])),
        open(&[4, 1, 4, 4], 4, |f| {
            f.holding(&floats("w", &[2, 1, 3, 3], &[0.5; 18]))
                .node("Conv", &["x", "w"], "y", &[])
        }),
    ];
    for (index, file) in cases.iter().enumerate() {
        let stated = imported(file, &ImportOptions::default()).unwrap_or_else(|e| panic!("{index}: {e}"));
        for batch in [1, 3, 8] {
            let rebuilt = imported(file, &at(batch)).unwrap_or_else(|e| panic!("{index} at {batch}: {e}"));
            assert_eq!(rebuilt[0][0], batch, "{index}");
            assert_eq!(rebuilt[0][1..], stated[0][1..], "{index}");
        }
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let file = open(&[4, 3], 2, perceptron);
    let options = ImportOptions {
        input_shape: Some(vec![4, 3]),
        ..at(2)
    };
    let text = imported(&file, &options).expect_err("4 and 2");
    assert!(text.contains("--batch 2 contradicts --input-shape"), "{text}");
}

/// A shape that a file states and that does not follow: of a value between nodes, and of an output.
#[test]
fn a_stated_shape_that_contradicts_is_refused() {
    let file = |between: &[i64], result: &[i64]| {
        let file = File::default()
            .input(&value("x", 1, &[2, 3]))
            .stating(&Writer::value("h", between));
        file.output(&Writer::value("y", result))
            .node("Relu", &["x"], "h", &[])
            .node("Neg", &["h"], "y", &[])
            .bytes(17)
    };
    for right in [[2, 3], [-1, 3], [2, -1], [-1, -1], [0, 3]] {
        assert_eq!(
            imported(&file(&right, &right), &ImportOptions::default()),
            Ok(vec![vec![2, 3]]),
            "{right:?}"
        );
    }
    for (wrong, shown) in [
        (&[2i64, 4][..], "[2, 4]"),
        (&[3, 2], "[3, 2]"),
        (&[-1, 2], "[?, 2]"),
        (&[6], "[6]"),
        (&[2, 3, 1], "[2, 3, 1]"),
    ] {
        for (name, bytes) in [("`h`", file(wrong, &[2, 3])), ("`y`", file(&[2, 3], wrong))] {
            let text = imported(&bytes, &ImportOptions::default()).expect_err(shown);
            for part in [name, shown, "[2, 3]", "the file states the shape"] {
                assert!(text.contains(part), "{wrong:?} lacks `{part}`: {text}");
            }
        }
    }
}

#[test]
fn the_shared_file_of_batch_four() {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip("stated_batch_4.onnx", "no shared data");
        return;
    };
    let file = std::fs::read(shared.join("data/defects/stated_batch_4.onnx")).expect("a file");
    let stated = imported(&file, &ImportOptions::default()).expect("imports");
    assert_eq!(stated[0][0], 4);
    let one = imported(&file, &at(1)).expect("imports");
    assert_eq!((one[0][0], &one[0][1..]), (1, &stated[0][1..]));
}

/// A network without an axis has no batch.
#[test]
fn a_batch_of_a_scalar_is_refused() {
    let file = open(&[], 0, |file| file.node("Neg", &["x"], "y", &[]));
    for batch in [None, Some(1)] {
        let import = ImportOptions {
            batch,
            ..ImportOptions::default()
        };
        assert!(imported(&file, &import).is_ok(), "{batch:?}");
    }
    let text = imported(&file, &at(2)).expect_err("no axis");
    assert!(text.contains("--batch of a network whose input is a scalar"), "{text}");
}
