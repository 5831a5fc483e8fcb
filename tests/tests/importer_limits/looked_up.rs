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
        plain("Relu", |x, _| x.max(0.0)),
        plain("Abs", |x, _| x.abs()),
        plain("Neg", |x, _| -x),
        plain("Floor", |x, _| x.floor()),
    ]
}

/// Scale and zero point of operand and result, as int8 or uint8.
const GRIDS: [[(f32, i32); 2]; 4] = [
    [(0.05, 0), (0.05, 0)],
    [(0.0312, -7), (0.0217, 11)],
    [(0.011, 93), (0.004, -128)],
    [(0.2, -50), (0.0613, 127)],
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
                    let stored = if unsigned { i32::from(byte) } else { i32::from(byte as i8) };
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
