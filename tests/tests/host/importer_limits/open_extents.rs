//! Extents that a `.tflite` file leaves open, given by `--batch` and `--input-shape`, and what else ordinary converters write: lists of recurrent layers,
//! operators of TensorFlow itself, filters without a scale.

use std::path::{Path, PathBuf};

use arenite_host::import::{ImportOptions, Imported, import_content};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::golden::Archive;
use arenite_tests::tflite_file::{FLOAT32, Fields, TfliteFile, byte, int, ints};
use arenite_tests::tflite_made;
use arenite_tests::writers::Random;
use arenite_tests::{shared, skip};

use super::onnx_file::stored;

pub(crate) fn at(batch: usize) -> ImportOptions {
    ImportOptions {
        batch: Some(batch),
        ..ImportOptions::default()
    }
}

pub(crate) fn read(content: &[u8], options: &ImportOptions) -> Result<Imported, String> {
    import_content(Path::new("m.tflite"), content, None, options)
        .map(|(_, imported)| imported)
        .map_err(|e| e.to_string())
}

/// The outputs of the packed network.
pub(crate) fn computed(content: &[u8], import: ImportOptions, inputs: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("m.tflite");
    std::fs::write(&input, content).expect("written");
    let options = Options {
        import,
        plan_nodes: 100,
        ..Options::new(&input, folder.path().join("m.bin"))
    };
    pack(&options, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    let file = ModelFile::open(&options.output).map_err(|e| e.to_string())?;
    let model = file.load().map_err(|e| e.to_string())?;
    let mut results = run(&model, &[inputs], true, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    Ok(results.swap_remove(0))
}

pub(crate) fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

pub(crate) fn random(count: usize) -> Vec<f32> {
    let mut random = Random::new(count as u64);
    (0..count).map(|_| random.below(4096) as f32 / 1024.0 - 2.0).collect()
}

/// Whether numbers are the same but for the order of sums.
pub(crate) fn close(a: &[f32], b: &[f32]) -> bool {
    let largest = b.iter().fold(1e-3_f32, |largest, value| largest.max(value.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * largest)
}

/// SVDF and LSTM keep a state of their own for each sample.
#[test]
fn states_have_the_batch_too() {
    let [mut svdf, mut lstm] = [TfliteFile::new(), TfliteFile::new()];
    let real = |file: &mut TfliteFile, name: &str, shape: &[i32]| {
        let count = shape.iter().product::<i32>() as usize;
        file.reals(name, shape, &random(count))
    };
    let x = svdf.tensor("x", FLOAT32, &[-1, 3]);
    let (features, time) = (real(&mut svdf, "features", &[4, 3]), real(&mut svdf, "time", &[4, 5]));
    let state = svdf.variable("state", &[1, 20]);
    let y = svdf.tensor("y", FLOAT32, &[-1, 2]);
    svdf.operator(27, &[x, features, time, -1, state], &[y], vec![(0, int(2))]);
    svdf.ends(&[x], &[y]);

    let x = lstm.tensor("x", FLOAT32, &[-1, 2, 3]);
    let mut operands = vec![x];
    for index in 0..8 {
        let shape = if index < 4 { [4, 3] } else { [4, 4] };
        operands.push(real(&mut lstm, &format!("weights {index}"), &shape));
    }
    operands.extend([-1; 3]);
    for index in 0..4 {
        operands.push(real(&mut lstm, &format!("bias {index}"), &[4]));
    }
    operands.extend([-1; 2]);
    operands.extend(["hidden", "cell"].map(|name| lstm.variable(name, &[1, 4])));
    operands.extend([-1; 4]);
    let y = lstm.tensor("y", FLOAT32, &[-1, 2, 4]);
    lstm.operator(44, &operands, &[y], vec![(0, byte(4))]);
    lstm.ends(&[x], &[y]);

    for (name, file, count) in [("SVDF", svdf, 3), ("LSTM", lstm, 6)] {
        let file = file.bytes();
        let x = random(3 * count);
        let whole = computed(&file, at(3), vec![stored(&x)]).unwrap_or_else(|e| panic!("{name}: {e}"));
        let each = x.chunks(count).flat_map(|x| {
            let outputs = computed(&file, at(1), vec![stored(x)]).unwrap_or_else(|e| panic!("{name}: {e}"));
            numbers(&outputs[0])
        });
        let each: Vec<f32> = each.collect();
        assert!(
            close(&numbers(&whole[0]), &each),
            "{name}: {:?}, {each:?}",
            numbers(&whole[0])
        );
    }
}

/// Rows and columns that are left open are those of `--input-shape`, or of `--assume`, else what the file states, which is said.
#[test]
fn other_extents_are_given_too() {
    let file = made("open_rows");
    let options = |shape: &[usize]| ImportOptions {
        input_shape: Some(shape.to_vec()),
        ..ImportOptions::default()
    };
    let x = random(2 * 3 * 5 * 2);
    let found = computed(&file, options(&[2, 3, 5, 2]), vec![stored(&x)]).expect("packs");
    let mean = |n: usize, c: usize| (0..15).map(|i| x[n * 30 + i * 2 + c].abs()).sum::<f32>() / 15.0;
    let expected: Vec<f32> = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(n, c)| mean(n, c)).to_vec();
    assert!(
        close(&numbers(&found[0]), &expected),
        "{:?}, {expected:?}",
        numbers(&found[0])
    );
    let said = |options: &ImportOptions| -> Vec<String> {
        let assumptions = read(&file, options).expect("reads").assumptions;
        assumptions.iter().map(|a| format!("{}={}", a.key, a.value)).collect()
    };
    assert_eq!(said(&ImportOptions::default()), ["x.1=1", "x.2=1"]);
    let assume = [("x.1", "7"), ("x.2", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let assuming = ImportOptions {
        assume: assume.to_vec(),
        ..at(2)
    };
    assert_eq!(said(&assuming), ["batch=2", "x.1=7", "x.2=3"]);
    assert_eq!(
        read(&file, &assuming).expect("reads").graph.tensors[0].shape,
        [2, 7, 3, 2]
    );
    for (options, part) in [
        (options(&[2, 3, 5, 4]), "the file does not leave the other extents open"),
        (options(&[2, 3, 5]), "4 extents above zero"),
        (options(&[2, 0, 5, 2]), "4 extents above zero"),
        (
            ImportOptions {
                batch: Some(4),
                ..options(&[2, 3, 5, 2])
            },
            "--batch 4 contradicts --input-shape [2, 3, 5, 2]",
        ),
        (
            ImportOptions {
                assume: vec![("x.1".to_owned(), "0".to_owned())],
                ..ImportOptions::default()
            },
            "extents above zero",
        ),
        (options(&[1 << 20, 1 << 10, 1 << 10, 2]), "fewer than 2^29 elements"),
    ] {
        let text = read(&file, &options).map(drop).expect_err(part);
        assert!(text.contains(part), "{text}");
    }
}

/// One operator with these options, whose first operand and result are open and whose other operands are lists.
fn open_operator(code: i32, x: &[i32], y: &[i32], lists: &[&[i32]], options: Fields) -> Vec<u8> {
    let mut file = TfliteFile::new();
    let mut inputs = vec![file.tensor("x", FLOAT32, x)];
    inputs.extend(lists.iter().map(|list| file.list("list", list)));
    let y = file.tensor("y", FLOAT32, y);
    file.operator(code, &inputs, &[y], options);
    file.ends(&inputs[..1], &[y]);
    file.bytes()
}

#[test]
fn extents_that_do_not_fit_are_refused_by_name() {
    let long: [i32; 8] = [-1, 1, 1, 1, 1, 1, 1, 2];
    let circular = {
        let mut file = TfliteFile::new();
        let x = file.tensor("x", FLOAT32, &[-1, 2]);
        let y = file.tensor("y", FLOAT32, &[-1, 2]);
        file.custom("CIRCULAR_BUFFER", &[x], &[y]);
        file.ends(&[x], &[y]);
        file.bytes()
    };
    let pool = vec![(0, byte(1)), (1, int(1)), (2, int(1)), (3, int(3)), (4, int(3))];
    for (file, batch, parts) in [
        (
            open_operator(37, &[-1, 3, 2, 3], &[-1, 6, 4, 3], &[&[2, 2], &[0, 0, 0, 0]], vec![]),
            1,
            ["BATCH_TO_SPACE_ND", "a result of shape [0, 6, 4, 3]"],
        ),
        (
            open_operator(70, &long, &long, &[&[0]], vec![]),
            2,
            ["EXPAND_DIMS", "a result of 9 axes"],
        ),
        (
            open_operator(65, &[-1, 3], &[-1, -1], &[&[0, 3], &[-1, -1]], vec![]),
            2,
            ["the network's outputs", "it reads `y`, which has no elements here"],
        ),
        (
            circular,
            2,
            [
                "CIRCULAR_BUFFER",
                "operands of other extents than the file states, of which those of its results do not follow",
            ],
        ),
        (
            open_operator(17, &[-1, 2, 3, 1], &[-1, -1, -1, 1], &[], pool),
            2,
            ["MAX_POOL_2D", "a window of 3 over an extent of 2"],
        ),
        (
            open_operator(43, &[-1, 3], &[-1], &[], vec![(0, ints(&[0]))]),
            2,
            ["SQUEEZE", "it drops axis 0 of [2, 3]"],
        ),
        (
            open_operator(9, &[-1, 3], &[-1, 1], &[&[1, 2, 3]], vec![]),
            2,
            ["FULLY_CONNECTED", "weights of shape [3]"],
        ),
    ] {
        let text = read(&file, &at(batch)).map(drop).expect_err(parts[1]);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
        assert!(!text.contains("damaged"), "{text}");
    }
}

/// A RESHAPE to numbers holds the batch that the network was converted with; one to -1 does not.
#[test]
fn a_reshape_that_fixes_an_extent_is_refused_by_name() {
    let text = read(&made("reshape_fixed"), &at(2)).map(drop).expect_err("fixed");
    assert!(
        ["RESHAPE", "`flat`", "[1, 12] of [2, 3, 4]", "--batch"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );
    assert!(read(&made("reshape_fixed"), &at(1)).is_ok());
    let free = read(&tflite_made::reshape(&[-1, 12]).bytes(), &at(2))
        .expect("open")
        .graph;
    assert_eq!(free.tensor(free.outputs[0]).shape, [2, 12]);
}

/// Some converters write -1 into the shape itself.
#[test]
fn a_shape_may_say_itself_that_it_is_open() {
    let mut file = TfliteFile::new();
    let [x, y] = ["x", "y"].map(|name| file.open(name, FLOAT32, &[-1, 3], &[-1, 3]));
    file.operator(19, &[x], &[y], vec![]);
    file.ends(&[x], &[y]);
    for (options, batch) in [(ImportOptions::default(), 1), (at(4), 4)] {
        let graph = read(&file.bytes(), &options).expect("reads").graph;
        assert_eq!(graph.tensor(graph.outputs[0]).shape, [batch, 3]);
    }
}

#[test]
fn a_loop_fills_a_list_row_by_row() {
    let x = random(8);
    let twice: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
    let found = computed(&made("list_loop"), ImportOptions::default(), vec![stored(&x)]).expect("packs");
    assert_eq!(numbers(&found[0]), twice);
    // The list that it begins with is a constant of one sample.
    let text = read(
        &made("list_loop"),
        &ImportOptions {
            input_shape: Some(vec![4, 3, 2]),
            ..ImportOptions::default()
        },
    );
    let text = text.map(drop).expect_err("a list of one sample");
    assert!(
        text.contains("CONCATENATION") && text.contains("[0, 1, 2] and [1, 3, 2]"),
        "{text}"
    );
}

fn made(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_made/{name}.tflite"));
    std::fs::read(path).expect("a committed file")
}

/// A public model: a recurrent layer over a list, convolutions of int8 weights under float32 activations.
#[test]
fn portiloop_is_as_in_litert() {
    let Some(shared) = shared() else {
        return skip("portiloop_is_as_in_litert", "no shared data");
    };
    let folder: PathBuf = shared.join("data/defects");
    let content = std::fs::read(folder.join("portiloop_q.tflite")).expect("a file");
    let mut archive = Archive::open(&folder.join("portiloop_q.golden.npz"));
    let (inputs, expected) = (archive.runs("in_rand_0").0, archive.runs("out_rand_ref_0").0);
    for (input, expected) in inputs.into_iter().zip(expected) {
        let found = computed(&content, ImportOptions::default(), vec![input]).expect("packs");
        let (found, expected) = (numbers(&found[0])[0], numbers(&expected)[0]);
        // LiteRT quantises the activations of two hybrid convolutions at run time.
        println!("{found} {expected}");
        assert!((found - expected).abs() < 5e-3, "{found}, {expected}");
    }
}

/// Unsupported operators are reported all at once, in subgraphs too, and nothing is called damaged that lies behind.
#[test]
fn what_is_not_supported_comes_before_what_contradicts_itself() {
    let text = read(&made("flex_lists"), &ImportOptions::default())
        .map(drop)
        .expect_err("flex");
    for part in [
        "FlexTensorListReserve",
        "FlexTensorListSetItem",
        "subgraph 2",
        "FlexErf",
        "TFLITE_BUILTINS",
        "SELECT_TF_OPS",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("damaged") && !text.contains("before anything writes"),
        "{text}"
    );
    let Some(shared) = shared() else {
        return skip("flood_lstm.tflite", "no shared data");
    };
    let content = std::fs::read(shared.join("data/defects/flood_lstm.tflite")).expect("a file");
    let text = read(&content, &ImportOptions::default()).map(drop).expect_err("flex");
    for part in [
        "FlexTensorListReserve",
        "FlexTensorListStack",
        "FlexTensorListSetItem",
        "TFLITE_BUILTINS",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("damaged"), "{text}");
}

/// A channel with a scale of 0 and a filter of zeros is the result's zero point, whatever its bias; the others are what their numbers mean.
#[test]
fn a_filter_of_zeros_may_have_no_scale() {
    let file = tflite_made::idle_channel().bytes();
    let x: Vec<u8> = [1_i8, 2, -3, 4, 50, -60, 127, -128, 0, -3].map(|v| v as u8).to_vec();
    let found = computed(&file, ImportOptions::default(), vec![x.clone()])
        .expect("packs")
        .swap_remove(0);
    for (place, (x, y)) in x.chunks(2).zip(found.chunks(3)).enumerate() {
        let [a, b] = [x[0], x[1]].map(|v| 0.5 * (f64::from(v as i8) + 3.0));
        let first = (0.25 * (64.0 * a - 32.0 * b) + 100.0 * 0.125) / 4.0 + 5.0;
        let third = (0.125 * (16.0 * a + 127.0 * b) + 12.0 * 0.0625) / 4.0 + 5.0;
        for (channel, expected) in [(0, first), (2, third)] {
            let expected = expected.clamp(-128.0, 127.0);
            assert!(
                (f64::from(y[channel] as i8) - expected).abs() <= 0.51,
                "{place}, {channel}: {y:?}, {expected}"
            );
        }
        assert_eq!(y[1] as i8, 5, "{place}");
    }
    // A filter that is not all zeros has a scale.
    let text = {
        let mut changed = file.clone();
        let filter = [64_i8, -32, 0, 0, 16, 127].map(|v| v as u8);
        let at = changed.windows(6).position(|part| part == filter).expect("the filter");
        changed[at + 3] = 1;
        read(&changed, &ImportOptions::default())
            .map(drop)
            .expect_err("no scale")
    };
    assert!(text.contains("scale 0") && text.contains("`filter`"), "{text}");
    let Some(shared) = shared() else {
        return skip("zero_scale_conv.tflite", "no shared data");
    };
    let folder = shared.join("data/defects");
    let content = std::fs::read(folder.join("zero_scale_conv.tflite")).expect("a file");
    let mut archive = Archive::open(&folder.join("zero_scale_conv.npz"));
    let (x, expected) = (
        archive.runs("in_0").0.swap_remove(0),
        archive.runs("out_0").0.swap_remove(0),
    );
    assert_eq!(
        computed(&content, ImportOptions::default(), vec![x]).expect("packs"),
        [expected]
    );
}
