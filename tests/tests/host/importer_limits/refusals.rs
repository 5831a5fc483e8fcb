//! Values in no operator's range, and shapes that an operator does not take.

use arenite_host::import::ImportOptions;
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, float, floats, imported, longs, value};

#[test]
fn values_beyond_an_operators_range_are_refused() {
    let text_of = |name: &str, value: &str| {
        let attribute = Writer::default().bytes(1, name.as_bytes()).bytes(4, value.as_bytes());
        attribute.int(20, 3).done()
    };
    let file = |shape: &[i64]| {
        File::default()
            .input(&value("x", 1, shape))
            .output(&Writer::value("y", &vec![-1; shape.len()]))
    };
    let small = || floats("scales", &[4], &[1.0, 1.0, 0.5, 1.5]);
    let none = || floats("none", &[0], &[]);
    let round = text_of("nearest_mode", "up");
    for (file, opset, wanted) in [
        (
            file(&[2, 3]).node("Celu", &["x"], "y", &[float("alpha", 0.0)]),
            17,
            "attribute `alpha` is 0",
        ),
        (
            file(&[1, 2, 4, 6])
                .holding(&small())
                .node("Upsample", &["x", "scales"], "y", &[]),
            9,
            " of Upsample",
        ),
        (
            file(&[1, 2, 4, 6]).holding(&small()).holding(&none()).node(
                "Resize",
                &["x", "none", "scales"],
                "y",
                &[round],
            ),
            17,
            "the rounding `",
        ),
        (
            file(&[2, 3])
                .holding(&longs("axes", &[0]))
                .node("Squeeze", &["x", "axes"], "y", &[]),
            17,
            "axis 0 of [2, 3] is to go",
        ),
    ] {
        let text = imported(&file.bytes(opset), &ImportOptions::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text}");
    }
}
