//! Operators of one stored operand between DequantizeLinear and QuantizeLinear, of all 256 values: what ONNX computes, to the bit.

use super::onnx_file::{File, computed, float, floats, initializer, value};

/// An operator, the constant that is its other operand, and ONNX's formula.
struct Case {
    op: &'static str,
    alpha: Option<f32>,
    constant: Option<(usize, f32)>,
    formula: fn(f32, f32) -> f32,
}

const fn plain(op: &'static str, formula: fn(f32, f32) -> f32) -> Case {
    let (alpha, constant) = (None, None);
    Case {
        op,
        alpha,
        constant,
        formula,
    }
}

/// With a constant at this index among the operands.
const fn with(op: &'static str, at: usize, number: f32, formula: fn(f32, f32) -> f32) -> Case {
    Case {
        constant: Some((at, number)),
        ..plain(op, formula)
    }
}

const LEAKY: fn(f32, f32) -> f32 = |x, slope| if x < 0.0 { slope * x } else { x };

fn cases() -> Vec<Case> {
    let alpha = |alpha: f32| Case {
        alpha: Some(alpha),
        ..plain("LeakyRelu", LEAKY)
    };
    vec![
        alpha(0.01),
        alpha(0.3),
        alpha(-0.75),
        with("PRelu", 1, 0.17, LEAKY),
        with("PRelu", 1, -0.4, LEAKY),
        with("Mul", 1, 0.37, |x, c| x * c),
        with("Mul", 0, -1.9, |x, c| x * c),
        with("Add", 1, 0.77, |x, c| x + c),
        with("Sub", 0, 0.31, |x, c| c - x),
        with("Div", 1, 3.0, |x, c| x / c),
        with("Div", 0, 0.21, |x, c| c / x),
        with("Max", 1, 0.123, |x, c| x.max(c)),
        with("Min", 1, 0.456, |x, c| x.min(c)),
        // Ties of the last pair of scales.
        with("Max", 1, 0.37, |x, c| x.max(c)),
        with("Min", 1, 0.25, |x, c| x.min(c)),
        with("Max", 0, -0.31, |x, c| x.max(c)),
        plain("Relu", |x, _| x.max(0.0)),
        plain("Abs", |x, _| x.abs()),
        plain("Neg", |x, _| -x),
        plain("Floor", |x, _| x.floor()),
    ]
}

/// Scale and zero point of operand and result, as int8 or uint8.
const GRIDS: [[(f32, i32); 2]; 5] = [
    [(0.05, 0), (0.05, 0)],
    [(0.0312, -7), (0.0217, 11)],
    [(0.011, 93), (0.004, -128)],
    [(0.2, -50), (0.0613, 127)],
    [(0.02, 3), (0.02, 3)],
];

/// A constant of one quantised byte and its scale.
fn grid(file: File, name: &str, (scale, zero): (f32, i32), unsigned: bool) -> File {
    let (elem, zero) = if unsigned { (2, zero + 128) } else { (3, zero) };
    file.holding(&floats(&format!("{name}_scale"), &[], &[scale]))
        .holding(&initializer(&format!("{name}_zero"), elem, &[], &[zero as u8]))
}

fn file(case: &Case, [from, to]: [(f32, i32); 2], unsigned: bool) -> Vec<u8> {
    let elem = if unsigned { 2 } else { 3 };
    let mut file = File::default()
        .input(&value("x", elem, &[1, 8, 32]))
        .output(&value("y", elem, &[1, 8, 32]))
        .holding(&floats("c", &[1], &[case.constant.map_or(0.0, |(_, number)| number)]));
    file = grid(grid(file, "from", from, unsigned), "to", to, unsigned);
    let attributes: Vec<_> = case.alpha.iter().map(|&value| float("alpha", value)).collect();
    let operands = match case.constant {
        None => vec!["real"],
        Some((0, _)) => vec!["c", "real"],
        Some(_) => vec!["real", "c"],
    };
    file.node("DequantizeLinear", &["x", "from_scale", "from_zero"], "real", &[])
        .node(case.op, &operands, "result", &attributes)
        .node("QuantizeLinear", &["result", "to_scale", "to_zero"], "y", &[])
        .bytes(17)
}

#[test]
fn tables_hold_what_onnx_computes() {
    let bytes: Vec<u8> = (0..=255).collect();
    for case in cases() {
        for grids in GRIDS {
            for unsigned in [false, true] {
                let [(scale, zero), (to, zero_to)] = grids;
                let what = format!("{} of {grids:?}, unsigned {unsigned}", case.op);
                let found = computed(&file(&case, grids, unsigned), &bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
                let offset = if unsigned { 128 } else { 0 };
                for (&byte, found) in bytes.iter().zip(found) {
                    let stored = if unsigned {
                        i32::from(byte)
                    } else {
                        i32::from(byte as i8)
                    };
                    let real = (stored - zero - offset) as f32 * scale;
                    let number = case.alpha.or(case.constant.map(|(_, number)| number));
                    let result = (case.formula)(real, number.unwrap_or_default()) / to;
                    if result.is_nan() {
                        continue;
                    }
                    let wanted = result.round_ties_even().clamp(-1e6, 1e6) as i32 + zero_to + offset;
                    let wanted = wanted.clamp(offset - 128, offset + 127) as u8;
                    assert_eq!(found, wanted, "{what}: {stored}, {real}");
                }
            }
        }
    }
}

/// A function in parts is one table too: x * sigmoid(x), with all parts between the conversions.
#[test]
fn functions_in_parts_are_one_table() {
    let bytes: Vec<u8> = (0..=255).collect();
    for unsigned in [false, true] {
        let elem = if unsigned { 2 } else { 3 };
        let [from, to] = [(0.047, -9), (0.031, -101)];
        let file = File::default()
            .input(&value("x", elem, &[1, 8, 32]))
            .output(&value("y", elem, &[1, 8, 32]));
        let file = grid(grid(file, "from", from, unsigned), "to", to, unsigned)
            .node("DequantizeLinear", &["x", "from_scale", "from_zero"], "real", &[])
            .node("Sigmoid", &["real"], "gate", &[])
            .node("Mul", &["real", "gate"], "result", &[])
            .node("QuantizeLinear", &["result", "to_scale", "to_zero"], "y", &[])
            .bytes(17);
        let found = computed(&file, &bytes).expect("packs");
        let offset = if unsigned { 128 } else { 0 };
        let mut far = 0;
        for (&byte, found) in bytes.iter().zip(found) {
            let stored = if unsigned {
                i32::from(byte)
            } else {
                i32::from(byte as i8)
            };
            let x = f64::from((stored - from.1 - offset) as f32 * from.0);
            let wanted = (x / (1.0 + (-x).exp()) / f64::from(to.0)).round_ties_even() as i32 + to.1;
            let found = if unsigned {
                i32::from(found) - 128
            } else {
                i32::from(found as i8)
            };
            far += u32::from(found != wanted.clamp(-128, 127));
        }
        assert_eq!(far, 0);
    }
}

/// A clamp between a layer and its QuantizeLinear clamps the stored numbers: nothing computes in f32.
#[test]
fn a_clamp_behind_a_layer_is_one_of_bytes() {
    let bytes: Vec<u8> = (0..=255).collect();
    let [from, to] = [(0.05, 4), (0.043, -30)];
    let (min, max) = (-1.7f32, 2.9f32);
    // Two channels of 1x1: each the other's sum and difference.
    let file = File::default()
        .input(&value("x", 3, &[1, 2, 16, 8]))
        .output(&value("y", 3, &[1, 2, 16, 8]))
        .holding(&initializer("w", 3, &[2, 2, 1, 1], &[64, 32, 32, 192]))
        .holding(&floats("w_scale", &[], &[1.0 / 64.0]))
        .holding(&initializer("w_zero", 3, &[], &[0]))
        .holding(&floats("min", &[], &[min]))
        .holding(&floats("max", &[], &[max]));
    let file = grid(grid(file, "from", from, false), "to", to, false)
        .node("DequantizeLinear", &["x", "from_scale", "from_zero"], "real", &[])
        .node("DequantizeLinear", &["w", "w_scale", "w_zero"], "weights", &[])
        .node("Conv", &["real", "weights"], "sums", &[])
        .node("Clip", &["sums", "min", "max"], "clamped", &[])
        .node("QuantizeLinear", &["clamped", "to_scale", "to_zero"], "y", &[])
        .bytes(17);
    let found = computed(&file, &bytes).expect("packs");
    let real = |index: usize| (f64::from(bytes[index] as i8) - 4.0) * 0.05;
    for channel in 0..2 {
        for place in 0..128 {
            let (a, b) = (real(place), real(128 + place));
            let sum = if channel == 0 { a + b / 2.0 } else { a / 2.0 - b };
            let wanted = (sum.clamp(min.into(), max.into()) / 0.043).round_ties_even() - 30.0;
            let found = f64::from(found[128 * channel + place] as i8);
            // The layer's own rounding may be a step away from a tie.
            assert!(
                (found - wanted).abs() <= 1.0,
                "{channel}, {place}: {found}, not {wanted}"
            );
        }
    }
    let limit = |bound: f32| (bound / 0.043).round() as i8 - 30;
    let stored = found.iter().map(|&byte| byte as i8);
    assert_eq!(stored.clone().min(), Some(limit(min)));
    assert_eq!(stored.max(), Some(limit(max)));
}
