//! Every real attribute and every scale of an ONNX file at NaN, the infinities, 0, below zero, and at the ends of f32: refused by name, or right.

use arenite_host::import::ImportOptions;
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, computed, float, floats, imported, initializer, ints, value};

const SENSELESS: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
const EXTREME: [f32; 8] = [0.0, -0.0, -1.0, 1e-45, 1e-30, -1e38, 1e38, f32::MAX];
const X: [f32; 6] = [-3.5, -1.0, -0.25, 0.0, 0.5, 4.0];

/// An attribute, and what its operator computes of an element by ONNX's own formula.
struct Case {
    op: &'static str,
    attribute: &'static str,
    opset: i64,
    formula: fn(f32, f32) -> f32,
}

fn case(op: &'static str, attribute: &'static str, formula: fn(f32, f32) -> f32) -> Case {
    let opset = match op {
        "Swish" => 24,
        "Clip" => 10,
        _ => 17,
    };
    Case {
        op,
        attribute,
        opset,
        formula,
    }
}

fn cases() -> Vec<Case> {
    let elu = |x: f32, alpha: f32| if x < 0.0 { alpha * (x.exp() - 1.0) } else { x };
    vec![
        case("LeakyRelu", "alpha", |x, alpha| if x < 0.0 { alpha * x } else { x }),
        case("Elu", "alpha", elu),
        case("Celu", "alpha", |x, alpha| {
            x.max(0.0) + (alpha * ((x / alpha).exp() - 1.0)).min(0.0)
        }),
        case("Selu", "alpha", |x, alpha| {
            1.050_701 * if x <= 0.0 { alpha * x.exp() - alpha } else { x }
        }),
        case("Selu", "gamma", |x, gamma| {
            gamma
                * if x <= 0.0 {
                    1.673_263_2 * x.exp() - 1.673_263_2
                } else {
                    x
                }
        }),
        case("HardSigmoid", "alpha", |x, alpha| (alpha * x + 0.5).clamp(0.0, 1.0)),
        case("HardSigmoid", "beta", |x, beta| (0.2 * x + beta).clamp(0.0, 1.0)),
        case("Swish", "alpha", |x, alpha| x / (1.0 + (-(alpha * x)).exp())),
        case("ThresholdedRelu", "alpha", |x, alpha| if x > alpha { x } else { 0.0 }),
        case("Clip", "min", |x, min| x.max(min)),
        case("Clip", "max", |x, max| x.min(max)),
    ]
}

/// `op` of `x` alone with one attribute.
fn file(case: &Case, given: f32) -> Vec<u8> {
    let ports = File::default()
        .input(&value("x", 1, &[1, 6]))
        .output(&value("y", 1, &[1, 6]));
    ports
        .node(case.op, &["x"], "y", &[float(case.attribute, given)])
        .bytes(case.opset)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn reals(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

#[test]
fn attributes_are_refused_by_name_or_right() {
    let (mut right, mut refused) = (0, 0);
    for case in cases() {
        for given in SENSELESS.into_iter().chain(EXTREME) {
            let what = format!("{} with {} {given:e}", case.op, case.attribute);
            match computed(&file(&case, given), &bytes(&X)) {
                Ok(found) => {
                    assert!(!given.is_nan(), "{what} is taken");
                    assert!(given.is_finite() || case.op == "Clip", "{what} is taken");
                    for (found, x) in reals(&found).into_iter().zip(X) {
                        let wanted = (case.formula)(x, given);
                        let close = found == wanted || (found - wanted).abs() <= 1e-5 * wanted.abs().max(1e-2);
                        // Products of the largest numbers may be infinite in one order and not in another.
                        assert!(close || given.abs() >= 1e38, "{what} of {x}: {found}, not {wanted}");
                    }
                    right += 1;
                }
                Err(text) => {
                    assert!(!given.is_finite() || given <= 0.0, "{what}: {text}");
                    for part in [case.op, case.attribute, "node 0"] {
                        assert!(text.contains(part), "{what} lacks `{part}`: {text}");
                    }
                    refused += 1;
                }
            }
        }
    }
    println!("attributes: {right} right, {refused} refused");
    assert!(right > 70 && refused > 25);
}

/// Attributes that are no function of one element: refused where they are no numbers, and named.
#[test]
fn other_attributes_that_are_no_numbers_are_refused() {
    let x = || {
        File::default()
            .input(&value("x", 1, &[2, 4]))
            .output(&Writer::value("y", &[-1, -1]))
    };
    fn four(name: &str) -> Vec<u8> {
        floats(name, &[4], &[1.0, 2.0, 3.0, 4.0])
    }
    let image = || {
        File::default()
            .input(&value("x", 1, &[1, 4, 2, 2]))
            .output(&Writer::value("y", &[-1, -1, -1, -1]))
    };
    let statistics = |file: File| {
        ["s", "b", "m", "v"]
            .iter()
            .fold(file, |file, name| file.holding(&four(name)))
    };
    let sequence = || {
        File::default()
            .input(&value("x", 1, &[2, 1, 1]))
            .output(&Writer::value("y", &[-1, -1, -1, -1]))
            .holding(&floats("w", &[1, 1, 1], &[1.0]))
            .holding(&floats("r", &[1, 1, 1], &[1.0]))
    };
    type Make = Box<dyn Fn(f32) -> File>;
    let list = |name: &'static str, value: f32| {
        let mut attribute = Writer::default()
            .bytes(1, name.as_bytes())
            .bytes(7, &value.to_le_bytes())
            .done();
        attribute.extend(Writer::default().int(20, 6).done());
        attribute
    };
    let named = |name: &'static str, word: &'static str| {
        Writer::default()
            .bytes(1, name.as_bytes())
            .bytes(9, word.as_bytes())
            .int(20, 8)
            .done()
    };
    let cases: Vec<(&str, &str, Make)> = vec![
        (
            "BatchNormalization",
            "epsilon",
            Box::new(move |v| {
                statistics(image()).node(
                    "BatchNormalization",
                    &["x", "s", "b", "m", "v"],
                    "y",
                    &[float("epsilon", v)],
                )
            }),
        ),
        (
            "InstanceNormalization",
            "epsilon",
            Box::new(move |v| {
                image().holding(&four("s")).holding(&four("b")).node(
                    "InstanceNormalization",
                    &["x", "s", "b"],
                    "y",
                    &[float("epsilon", v)],
                )
            }),
        ),
        (
            "LayerNormalization",
            "epsilon",
            Box::new(move |v| {
                x().holding(&four("s"))
                    .node("LayerNormalization", &["x", "s"], "y", &[float("epsilon", v)])
            }),
        ),
        (
            "LRN",
            "alpha",
            Box::new(move |v| {
                image().node(
                    "LRN",
                    &["x"],
                    "y",
                    &[super::onnx_file::int("size", 3), float("alpha", v)],
                )
            }),
        ),
        (
            "LRN",
            "beta",
            Box::new(move |v| {
                image().node(
                    "LRN",
                    &["x"],
                    "y",
                    &[super::onnx_file::int("size", 3), float("beta", v)],
                )
            }),
        ),
        (
            "LRN",
            "bias",
            Box::new(move |v| {
                image().node(
                    "LRN",
                    &["x"],
                    "y",
                    &[super::onnx_file::int("size", 3), float("bias", v)],
                )
            }),
        ),
        (
            "Gemm",
            "alpha",
            Box::new(move |v| {
                x().holding(&floats("w", &[4, 2], &[1.0; 8]))
                    .node("Gemm", &["x", "w"], "y", &[float("alpha", v)])
            }),
        ),
        (
            "Gemm",
            "beta",
            Box::new(move |v| {
                let file = x()
                    .holding(&floats("w", &[4, 2], &[1.0; 8]))
                    .holding(&floats("c", &[2], &[1.0; 2]));
                file.node("Gemm", &["x", "w", "c"], "y", &[float("beta", v)])
            }),
        ),
        (
            "RNN",
            "clip",
            Box::new(move |v| {
                sequence().node(
                    "RNN",
                    &["x", "w", "r"],
                    "y",
                    &[super::onnx_file::int("hidden_size", 1), float("clip", v)],
                )
            }),
        ),
        (
            "RNN",
            "activation_alpha",
            Box::new(move |v| {
                let attributes = [
                    super::onnx_file::int("hidden_size", 1),
                    named("activations", "LeakyRelu"),
                    list("activation_alpha", v),
                ];
                sequence().node("RNN", &["x", "w", "r"], "y", &attributes)
            }),
        ),
        (
            "Resize",
            "cubic_coeff_a",
            Box::new(move |v| {
                let file = image()
                    .holding(&floats("scales", &[4], &[1.0, 1.0, 1.5, 1.5]))
                    .holding(&floats("none", &[0], &[]));
                let mode = Writer::default().bytes(1, b"mode").bytes(4, b"cubic").int(20, 3).done();
                file.node(
                    "Resize",
                    &["x", "none", "scales"],
                    "y",
                    &[mode, float("cubic_coeff_a", v)],
                )
            }),
        ),
    ];
    for (op, attribute, make) in cases {
        for given in SENSELESS {
            let text = imported(&make(given).bytes(17), &ImportOptions::default()).expect_err(op);
            for part in [op, attribute, "node 0", "finite"] {
                assert!(text.contains(part), "{op} {attribute} {given} lacks `{part}`: {text}");
            }
        }
        imported(&make(0.5).bytes(17), &ImportOptions::default()).unwrap_or_else(|e| panic!("{op} {attribute}: {e}"));
        if attribute == "epsilon" {
            let text = imported(&make(-1.0).bytes(17), &ImportOptions::default()).expect_err(op);
            assert!(text.contains("not below zero"), "{text}");
        }
    }
}

/// The constants of paddings and bounds may be infinite, and are no NaN.
#[test]
fn infinities_that_have_a_meaning_are_kept() {
    let pad = |fill: f32| {
        let file = File::default()
            .input(&value("x", 1, &[1, 2]))
            .output(&value("y", 1, &[1, 4]));
        file.node("Pad", &["x"], "y", &[ints("pads", &[0, 1, 0, 1]), float("value", fill)])
            .bytes(10)
    };
    let found = computed(&pad(f32::NEG_INFINITY), &bytes(&[1.0, 2.0])).expect("packs");
    assert_eq!(reals(&found), [f32::NEG_INFINITY, 1.0, 2.0, f32::NEG_INFINITY]);
    let text = computed(&pad(f32::NAN), &bytes(&[1.0, 2.0])).expect_err("no number");
    assert!(text.contains("Pad") && text.contains("value"), "{text}");
    let mask = File::default()
        .input(&value("x", 1, &[1, 2]))
        .output(&value("y", 1, &[1, 2]));
    let mask = mask
        .holding(&floats("m", &[1, 2], &[0.0, f32::NEG_INFINITY]))
        .node("Add", &["x", "m"], "y", &[]);
    let found = computed(&mask.bytes(17), &bytes(&[1.0, 2.0])).expect("packs");
    assert_eq!(reals(&found), [1.0, f32::NEG_INFINITY]);
}

/// A scale of QuantizeLinear and DequantizeLinear.
#[test]
fn scales_are_refused_by_name_or_right() {
    let quantize = |scale: f32| {
        let file = File::default()
            .input(&value("x", 1, &[1, 6]))
            .output(&value("y", 3, &[1, 6]));
        let file = file
            .holding(&floats("s", &[], &[scale]))
            .holding(&initializer("z", 3, &[], &[3]));
        file.node("QuantizeLinear", &["x", "s", "z"], "y", &[]).bytes(13)
    };
    let dequantize = |scale: f32| {
        let file = File::default()
            .input(&value("x", 3, &[1, 6]))
            .output(&value("y", 1, &[1, 6]));
        let file = file
            .holding(&floats("s", &[], &[scale]))
            .holding(&initializer("z", 3, &[], &[3]));
        file.node("DequantizeLinear", &["x", "s", "z"], "y", &[]).bytes(13)
    };
    for scale in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, -1.0, -1e-45] {
        for (op, file) in [
            ("QuantizeLinear", quantize(scale)),
            ("DequantizeLinear", dequantize(scale)),
        ] {
            let text = imported(&file, &ImportOptions::default()).expect_err(op);
            for part in [
                format!("a scale is {scale}"),
                op.to_string(),
                "node 0".to_string(),
                "above zero".to_string(),
            ] {
                assert!(text.contains(&part), "{op} {scale} lacks `{part}`: {text}");
            }
        }
    }
    for scale in [1e-45, 1e-40, 1e-30, 0.1, 1.0, 1e30, 1e38, f32::MAX] {
        // No quotient lies half-way between two integers.
        let x = [-3.3, -1.0, -0.24, 0.0, 0.52, 4.0];
        let found = computed(&quantize(scale), &bytes(&x)).expect("packs");
        let wanted = x.map(|x| ((x / scale).round_ties_even() + 3.0).clamp(-128.0, 127.0) as i8 as u8);
        assert_eq!(found, wanted, "scale {scale:e}");
        let stored = [-128i8, -3, 0, 3, 4, 127];
        let found = computed(&dequantize(scale), &stored.map(|v| v as u8)).expect("packs");
        assert_eq!(
            reals(&found),
            stored.map(|v| (f32::from(v) - 3.0) * scale),
            "scale {scale:e}"
        );
    }
}

/// Every scale and zero point of the quantised operators.
#[test]
fn every_scale_of_quantised_operators_is_checked() {
    let scales = |file: File, bad: &str, given: f32| {
        ["as", "bs", "ys"].iter().fold(file, |file, &name| {
            file.holding(&floats(name, &[], &[if name == bad { given } else { 0.5 }]))
        })
    };
    let zeros = |file: File, elem: i64| {
        let raw: &[u8] = if elem == 3 { &[0] } else { &[0; 4] };
        ["az", "bz", "yz"].iter().fold(file, |file, &name| {
            file.holding(&initializer(
                name,
                if name == "az" { elem } else { 3 },
                &[],
                if name == "az" { raw } else { &[0] },
            ))
        })
    };
    let domain = |op: &str, inputs: &[&str]| {
        let contributed = op.starts_with("QLinearAdd") || op.starts_with("QLinearMul");
        let node = Writer::node(op, inputs, "y");
        if contributed {
            node.bytes(7, b"com.microsoft")
        } else {
            node
        }
        .done()
    };
    let network = |op: &str, bad: &str, given: f32, elem: i64| {
        let (x, w, y): (&[i64], &[i64], &[i64]) = match op {
            "QLinearConv" => (&[1, 1, 2, 2], &[1, 1, 2, 2], &[1, 1, 1, 1]),
            _ => (&[2, 2], &[2, 2], &[2, 2]),
        };
        let graph = Writer::default().bytes(1, &domain(op, &["a", "as", "az", "b", "bs", "bz", "ys", "yz"]));
        let graph = graph.bytes(5, &initializer("b", 3, w, &[1, 2, 3, 4]));
        let rest = zeros(scales(File::default(), bad, given), elem)
            .input(&value("a", 3, x))
            .output(&value("y", 3, y));
        let mut all = graph.done();
        // The fields of a message may stand in any order, its parts behind each other.
        all.extend(inside(&rest.bytes(13)));
        Writer::model(&all, 13)
    };
    for op in ["QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"] {
        imported(&network(op, "", 0.5, 3), &ImportOptions::default()).unwrap_or_else(|e| panic!("{op}: {e}"));
        for bad in ["as", "bs", "ys"] {
            for given in [f32::NAN, f32::INFINITY, -1.0, 0.0] {
                let text = match imported(&network(op, bad, given, 3), &ImportOptions::default()) {
                    // Constants may be zero throughout.
                    Ok(_) if bad == "bs" && given == 0.0 => continue,
                    Ok(_) => panic!("{op}: {bad} of {given} is taken"),
                    Err(text) => text,
                };
                assert!(
                    text.contains(op) && text.contains(&format!("a scale is {given}")),
                    "{op} {bad}: {text}"
                );
            }
        }
        let text = imported(&network(op, "", 0.5, 6), &ImportOptions::default()).expect_err("of another type");
        assert!(text.contains("a zero point is int32"), "{op}: {text}");
    }
}

/// The graph of a model that [`File::bytes`] wrote.
fn inside(model: &[u8]) -> Vec<u8> {
    // Version, then the graph's tag and length.
    let (mut at, mut length, mut shift) = (3, 0usize, 0);
    loop {
        let byte = model[at];
        length |= usize::from(byte & 0x7F) << shift;
        (at, shift) = (at + 1, shift + 7);
        if byte & 0x80 == 0 {
            return model[at..at + length].to_vec();
        }
    }
}
