//! Types and shapes that an ONNX file states twice, or states of what its operators compute: a contradiction is refused by the value's name.

use arenite_host::import::ImportOptions;

use super::onnx_file::{File, computed, float, floats, imported, initializer, int, longs, text, value};

const FLOAT: i64 = 1;
const INT8: i64 = 3;
const INT32: i64 = 6;
const INT64: i64 = 7;
const BOOL: i64 = 9;
const HALF: i64 = 10;
const DOUBLE: i64 = 11;

fn read(file: &File) -> Result<Vec<Vec<usize>>, String> {
    imported(&file.bytes(17), &ImportOptions::default())
}

fn refused(file: &File, parts: &[&str]) {
    let text = read(file).expect_err(parts[0]);
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing from: {text}");
    }
}

/// `t = x + w`, `y = -t`.
fn sum() -> File {
    File::default()
        .input(&value("x", FLOAT, &[1, 6]))
        .output(&value("y", FLOAT, &[1, 6]))
        .holding(&floats("w", &[6], &[1.0; 6]))
        .node("Add", &["x", "w"], "t", &[])
        .node("Neg", &["t"], "y", &[])
}

#[test]
fn an_initializer_is_of_the_type_and_shape_that_the_file_states() {
    for (elem, shape, parts) in [
        (
            FLOAT,
            [7].as_slice(),
            [
                "the file states the shape [7] of `w`",
                "expected [6], that of its initializer",
            ],
        ),
        (
            FLOAT,
            &[1, 6],
            ["the file states the shape [1, 6] of `w`", "expected [6]"],
        ),
        (FLOAT, &[], ["the file states the shape [] of `w`", "expected [6]"]),
        (
            INT8,
            &[6],
            [
                "the file states the type int8 of `w`",
                "expected float, that of its initializer",
            ],
        ),
        (
            DOUBLE,
            &[6],
            ["the file states the type double of `w`", "expected float"],
        ),
    ] {
        refused(&sum().input(&value("w", elem, shape)), &parts);
        refused(&sum().stating(&value("w", elem, shape)), &parts);
    }
    for shape in [[6], [-1], [0]] {
        assert_eq!(read(&sum().input(&value("w", FLOAT, &shape))), Ok(vec![vec![1, 6]]));
        assert_eq!(read(&sum().stating(&value("w", FLOAT, &shape))), Ok(vec![vec![1, 6]]));
    }
    // One element is a scalar too.
    let one = |shape: &[i64], stated: &[i64]| {
        let file = File::default()
            .input(&value("x", FLOAT, &[1, 6]))
            .input(&value("w", FLOAT, stated))
            .output(&value("y", FLOAT, &[1, 6]))
            .holding(&floats("w", shape, &[1.0]));
        read(&file.node("Add", &["x", "w"], "y", &[]))
    };
    assert!(one(&[], &[1]).is_ok() && one(&[1], &[]).is_ok() && one(&[1], &[2]).is_err());
}

#[test]
fn an_input_is_of_the_type_and_shape_that_the_file_states_elsewhere() {
    refused(
        &sum().stating(&value("x", FLOAT, &[1, 7])),
        &[
            "the file states the shape [1, 7] of `x`",
            "expected [1, 6], that of the input",
        ],
    );
    refused(
        &sum().stating(&value("x", DOUBLE, &[1, 6])),
        &[
            "the file states the type double of `x`",
            "expected float, that of the input",
        ],
    );
    assert!(read(&sum().stating(&value("x", FLOAT, &[-1, 6]))).is_ok());
    // Another batch is asked of the input and stated of neither.
    let options = ImportOptions {
        batch: Some(3),
        ..ImportOptions::default()
    };
    let file = sum().stating(&value("x", FLOAT, &[1, 6]));
    assert_eq!(imported(&file.bytes(17), &options), Ok(vec![vec![3, 6]]));
}

#[test]
fn results_are_of_the_type_that_the_file_states() {
    for (elem, name) in [
        (INT8, "int8"),
        (HALF, "float16"),
        (INT64, "int64"),
        (BOOL, "bool"),
        (DOUBLE, "double"),
    ] {
        let said = format!("the file states the type {name} of `y`");
        let relu = File::default()
            .input(&value("x", FLOAT, &[2, 6]))
            .output(&value("y", elem, &[2, 6]))
            .node("Relu", &["x"], "y", &[]);
        refused(
            &relu,
            &[
                &said,
                "node 0 (Relu)",
                "expected float, which follows from its operands",
            ],
        );
        let said = format!("the file states the type {name} of `t`");
        refused(&sum().stating(&value("t", elem, &[1, 6])), &[&said, "node 0 (Add)"]);
        // Also at another batch, where shapes are not compared.
        let options = ImportOptions {
            batch: Some(3),
            ..ImportOptions::default()
        };
        let text = imported(&sum().stating(&value("t", elem, &[1, 6])).bytes(17), &options).expect_err("a type");
        assert!(text.contains(&said), "{text}");
    }
    assert!(read(&sum().stating(&value("t", FLOAT, &[1, 6]))).is_ok());
}

/// Types that the device has not are others there, of right files.
#[test]
fn types_that_are_narrowed_or_widened_are_taken() {
    let of = |from: i64, to: i64| {
        File::default()
            .input(&value("x", from, &[2, 6]))
            .output(&value("y", to, &[-1, -1]))
    };
    let quantised = of(FLOAT, INT8)
        .holding(&floats("s", &[], &[0.5]))
        .holding(&initializer("z", INT8, &[], &[3]))
        .node("QuantizeLinear", &["x", "s", "z"], "y", &[]);
    let largest = of(FLOAT, INT64).node("ArgMax", &["x"], "y", &[int("axis", 1)]);
    let compared = of(FLOAT, BOOL)
        .holding(&floats("w", &[6], &[1.0; 6]))
        .node("Greater", &["x", "w"], "y", &[]);
    let half = of(HALF, HALF)
        .node("Relu", &["x"], "t", &[])
        .stating(&value("t", HALF, &[2, 6]))
        .node("LeakyRelu", &["t"], "y", &[float("alpha", 0.5)]);
    let indices = of(INT64, INT64)
        .holding(&longs("w", &[1; 6]))
        .node("Add", &["x", "w"], "y", &[]);
    let cast = of(HALF, FLOAT).node("Cast", &["x"], "y", &[int("to", FLOAT)]);
    let whole = of(FLOAT, INT32).node("Cast", &["x"], "y", &[int("to", INT32)]);
    for file in [quantised, largest, compared, half, indices, cast, whole] {
        read(&file).expect("it is taken");
    }
}

/// Integers stay integers, the reals between them cut off as ONNX Runtime does.
#[test]
fn a_resize_of_integers_gives_integers() {
    let resized = |elem: i64, mode: &str, x: &[u8]| {
        let file = File::default()
            .input(&value("x", elem, &[1, 1, 1, 3]))
            .output(&value("y", elem, &[1, 1, 1, 5]))
            .holding(&longs("z", &[1, 1, 1, 5]));
        let modes = [
            text("mode", mode),
            text("coordinate_transformation_mode", "align_corners"),
        ];
        computed(&file.node("Resize", &["x", "", "", "z"], "y", &modes).bytes(18), x)
    };
    let signed = |bytes: Vec<u8>| bytes.into_iter().map(|byte| byte as i8).collect::<Vec<i8>>();
    let found = resized(INT8, "linear", &[-3i8 as u8, 2, 9]).map(signed);
    assert_eq!(found, Ok(vec![-3, 0, 2, 5, 9]));
    let found = resized(INT8, "nearest", &[-3i8 as u8, 2, 9]).map(signed);
    assert_eq!(found, Ok(vec![-3, -3, 2, 2, 9]));
    let found = resized(2, "linear", &[250, 3, 0]);
    assert_eq!(found, Ok(vec![250, 126, 3, 1, 0]));
}
