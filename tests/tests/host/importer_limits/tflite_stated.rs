//! Facts that options of TensorFlow Lite state a second time (numbers and types of tensors), and numbers that only some operators read: a contradiction is
//! refused by the operator and the option, the same file without it is taken.

use arenite_host::import::{ImportOptions, import_content};
use arenite_tests::tflite_file::{BOOL, FLOAT32, Fields, INT8, INT32, TfliteFile, byte, int};

const DEPTHWISE_CONV_2D: i32 = 4;
const LSTM: i32 = 44;
const SPLIT: i32 = 49;
const CAST: i32 = 53;
const ARG_MAX: i32 = 56;
const SHAPE: i32 = 77;
const ARG_MIN: i32 = 79;
const PACK: i32 = 83;
const UNPACK: i32 = 88;
const MIRROR_PAD: i32 = 100;
const SPLIT_V: i32 = 102;

const INT64: u8 = 4;

fn read(file: &TfliteFile) -> Result<(), String> {
    let read = import_content("m.tflite".as_ref(), &file.bytes(), None, &ImportOptions::default());
    read.map(drop).map_err(|e| e.to_string())
}

/// `[2, 4]` through an operator whose options are these.
fn of(code: i32, options: Fields) -> TfliteFile {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[2, 4]);
    let mut result = |name: &str, kind: u8, shape: &[i32]| file.tensor(name, kind, shape);
    let results = match code {
        SPLIT | SPLIT_V => vec![result("a", FLOAT32, &[2, 2]), result("b", FLOAT32, &[2, 2])],
        UNPACK => vec![result("a", FLOAT32, &[4]), result("b", FLOAT32, &[4])],
        PACK => vec![result("y", FLOAT32, &[2, 2, 4])],
        MIRROR_PAD => vec![result("y", FLOAT32, &[2, 6])],
        CAST => vec![result("y", INT32, &[2, 4])],
        SHAPE => vec![result("y", INT32, &[2])],
        _ => vec![result("y", INT32, &[2])],
    };
    let operands = match code {
        SPLIT => vec![file.list("axis", &[1]), x],
        SPLIT_V => vec![x, file.list("sizes", &[2, 2]), file.list("axis", &[1])],
        PACK => vec![x, x],
        MIRROR_PAD => vec![
            x,
            file.constant(
                "pads",
                INT32,
                &[2, 2],
                [0i32, 0, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect(),
            ),
        ],
        ARG_MAX | ARG_MIN => vec![x, file.list("axis", &[1])],
        _ => vec![x],
    };
    file.operator(code, &operands, &results, options);
    file.ends(&[x], &results);
    file
}

#[test]
fn options_that_contradict_the_tensors_are_refused_by_name() {
    let axis = |code: i32| {
        if code == UNPACK || code == PACK {
            vec![(1, int(0))]
        } else {
            Vec::new()
        }
    };
    let counts = [
        (SPLIT, "NumSplits"),
        (SPLIT_V, "NumSplits"),
        (PACK, "ValuesCount"),
        (UNPACK, "Num"),
    ];
    for (code, option) in counts {
        let with = |value: i32| of(code, [vec![(0, int(value))], axis(code)].concat());
        read(&of(code, axis(code))).unwrap_or_else(|e| panic!("{option}: {e}"));
        read(&with(2)).unwrap_or_else(|e| panic!("{option}: {e}"));
        for value in [1, 3, -2] {
            let text = read(&with(value)).expect_err(option);
            let said = format!("option {option} is {value}; expected 2");
            assert!(text.contains(&said) && text.contains("operator 0 ("), "{text}");
        }
    }
    let types = [
        (CAST, 0, "InDataType", None),
        (CAST, 1, "OutDataType", Some(INT32)),
        (ARG_MAX, 0, "OutputType", Some(INT32)),
        (ARG_MIN, 0, "OutputType", Some(INT32)),
        (SHAPE, 0, "OutType", Some(INT32)),
    ];
    for (code, field, option, own) in types {
        read(&of(code, Vec::new())).unwrap_or_else(|e| panic!("{option}: {e}"));
        if let Some(own) = own {
            read(&of(code, vec![(field, byte(own))])).unwrap_or_else(|e| panic!("{option}: {e}"));
        }
        for (other, name) in [(INT8, "INT8"), (INT64, "INT64"), (BOOL, "BOOL"), (99, "type 99")] {
            let text = read(&of(code, vec![(field, byte(other))])).expect_err(option);
            let expected = if own.is_some() { "INT32" } else { "FLOAT32" };
            let said = format!("option {option} is {name}; expected {expected}, the type of `");
            assert!(text.contains(&said) && text.contains("operator 0 ("), "{text}");
        }
    }
    for mode in [0, 1] {
        read(&of(MIRROR_PAD, vec![(0, byte(mode))])).unwrap_or_else(|e| panic!("mode {mode}: {e}"));
    }
    for mode in [2, 7, -1] {
        let text = read(&of(MIRROR_PAD, vec![(0, byte(mode as u8))])).expect_err("a mode");
        let said = format!("option Mode is {mode}; expected 0 (REFLECT) or 1 (SYMMETRIC)");
        assert!(text.contains(&said) && text.contains("(MIRROR_PAD)"), "{text}");
    }
}

/// An extent that no equal parts have, and a place of no integer: the operator says so.
#[test]
fn parts_and_places_are_whole_numbers() {
    let mut file = TfliteFile::new();
    let x = file.tensor("x", FLOAT32, &[2, 5]);
    let parts = ["a", "b"].map(|name| file.tensor(name, FLOAT32, &[2, 2]));
    let axis = file.list("axis", &[1]);
    file.operator(SPLIT, &[axis, x], &parts, vec![(0, int(2))]);
    file.ends(&[x], &parts);
    let text = read(&file).expect_err("five into two");
    assert!(text.contains("it splits an extent of 5 into 2 equal parts"), "{text}");

    let mut file = TfliteFile::new();
    let (x, y) = (file.tensor("x", FLOAT32, &[2, 4]), file.tensor("y", FLOAT32, &[2]));
    let axis = file.list("axis", &[1]);
    file.operator(ARG_MAX, &[x, axis], &[y], Vec::new());
    file.ends(&[x], &[y]);
    let text = read(&file).expect_err("a place in f32");
    assert!(text.contains("a result that is not INT32"), "{text}");
}

/// A depthwise int8 convolution of two channels that states this multiplier.
fn depthwise(multiplier: i32) -> TfliteFile {
    let mut file = TfliteFile::new();
    let shape = [1, 2, 2, 2];
    let (x, y) = (file.tensor("x", INT8, &shape), file.tensor("y", INT8, &shape));
    let (w, bias) = (
        file.constant("w", INT8, &[1, 1, 1, 2], vec![1; 2]),
        file.list("bias", &[1, 2]),
    );
    for tensor in [x, y] {
        file.scales(tensor, &[0.5], 3, 0);
    }
    file.scales(w, &[0.5], 0, 0);
    let options = vec![(0, byte(1)), (1, int(1)), (2, int(1)), (3, int(multiplier))];
    file.operator(DEPTHWISE_CONV_2D, &[x, w, bias], &[y], options);
    file.ends(&[x], &[y]);
    file
}

#[test]
fn a_depth_multiplier_is_that_of_the_weights() {
    for multiplier in [0, 1] {
        read(&depthwise(multiplier)).expect("none is stated, or the right one");
    }
    for multiplier in [2, -1] {
        let text = read(&depthwise(multiplier)).expect_err("a multiplier");
        let said = format!("depth multiplier {multiplier}, 2 channels");
        assert!(
            text.contains(&said) && text.contains("expected depth multiplier 1"),
            "{text}"
        );
    }
}

/// An LSTM of real numbers with an intermediate of this scale.
fn lstm(scale: f32) -> TfliteFile {
    let mut file = TfliteFile::new();
    let (x, y) = (
        file.tensor("x", FLOAT32, &[1, 3, 4]),
        file.tensor("y", FLOAT32, &[1, 3, 2]),
    );
    let mut operands = vec![x];
    for (name, width) in [("w", 4), ("r", 2)] {
        operands.extend(
            (0..4).map(|gate| file.reals(&format!("{name}{gate}"), &[2, width], &vec![0.5; 2 * width as usize])),
        );
    }
    operands.extend([-1; 3]);
    operands.extend((0..4).map(|gate| file.reals(&format!("b{gate}"), &[2], &[0.5; 2])));
    operands.extend([-1; 2]);
    operands.extend([file.variable("h", &[1, 2]), file.variable("c", &[1, 2])]);
    operands.extend([-1; 4]);
    let sums = file.tensor("sums", INT8, &[0]);
    file.scales(sums, &[scale], 0, 0);
    file.operator(LSTM, &operands, &[y], vec![(0, byte(4))]);
    file.intermediates(&[sums]);
    file.ends(&[x], &[y]);
    file
}

#[test]
fn scales_of_the_sums_within_an_lstm_are_numbers() {
    for scale in [0.0, 0.01] {
        read(&lstm(scale)).unwrap_or_else(|e| panic!("{scale}: {e}"));
    }
    for scale in [f32::NAN, f32::INFINITY, -0.5] {
        let text = read(&lstm(scale)).expect_err("a scale");
        let said = format!("scale {scale} of the intermediate `sums`; expected a finite scale that is not below zero");
        assert!(
            text.contains(&said) && text.contains("(UNIDIRECTIONAL_SEQUENCE_LSTM)"),
            "{text}"
        );
    }
}
