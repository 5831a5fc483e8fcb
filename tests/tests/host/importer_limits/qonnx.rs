//! QONNX's `Quant` at every number of bits, by a formula, and what it may not state.

use arenite_host::import::ImportOptions;
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, computed, floats, imported, int, text, value};

const X: [f32; 12] = [-9.0, -3.4, -1.0, -0.6, -0.25, 0.0, 0.26, 0.74, 1.1, 2.3, 3.9, 50.0];

/// Values that a case states.
#[derive(Clone, Copy)]
struct Stated {
    scale: f32,
    zero: f32,
    bits: f32,
    signed: i64,
    narrow: i64,
    rounding: &'static str,
}

const USUAL: Stated = Stated {
    scale: 0.3,
    zero: 0.0,
    bits: 5.0,
    signed: 1,
    narrow: 0,
    rounding: "ROUND",
};

/// One node between real numbers, in a domain.
fn file(of: Stated, domain: &str, op: &str) -> Vec<u8> {
    let node = Writer::node(op, &["x", "s", "z", "b"], "y").bytes(7, domain.as_bytes());
    let attributes = [
        int("signed", of.signed),
        int("narrow", of.narrow),
        text("rounding_mode", of.rounding),
    ];
    let node = attributes.iter().fold(node, |node, attribute| node.bytes(5, attribute));
    let file = File::default()
        .input(&value("x", 1, &[1, 12]))
        .output(&value("y", 1, &[1, 12]));
    let file = file
        .holding(&floats("s", &[], &[of.scale]))
        .holding(&floats("z", &[1], &[of.zero]));
    file.holding(&floats("b", &[], &[of.bits])).raw(&node.done()).bytes(13)
}

#[test]
fn quant_of_qonnx_is_its_definition() {
    for bits in 2..=8_u32 {
        for (signed, narrow, zero) in [(1, 0, 0.0), (1, 1, 0.0), (0, 0, 0.0), (0, 1, 1.0), (1, 0, -1.0)] {
            for (rounding, round) in [
                ("ROUND", f32::round_ties_even as fn(f32) -> f32),
                ("FLOOR", f32::floor),
                ("CEIL", f32::ceil),
            ] {
                let of = Stated {
                    bits: bits as f32,
                    signed,
                    narrow,
                    zero,
                    rounding,
                    ..USUAL
                };
                let (half, all) = (2f32.powi(bits as i32 - 1), 2f32.powi(bits as i32));
                let (low, high) = match signed {
                    1 => (narrow as f32 - half, half - 1.0),
                    _ => (0.0, all - 1.0 - narrow as f32),
                };
                let wanted = X.map(|x| (round((x / 0.3 + zero).clamp(low, high)) - zero) * 0.3);
                for domain in ["qonnx.custom_op.general", "onnx.brevitas"] {
                    let bytes: Vec<u8> = X.iter().flat_map(|x| x.to_le_bytes()).collect();
                    let found = computed(&file(of, domain, "Quant"), &bytes).expect("packs");
                    let found = found.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word));
                    for ((found, wanted), x) in found.zip(wanted).zip(X) {
                        assert!(
                            (found - wanted).abs() < 1e-5,
                            "{bits} bits, {signed} {narrow} {zero} {rounding}: {x} gives {found}, {wanted} expected"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_quant_may_not_state_is_refused_by_name() {
    let refused = |of: Stated, op: &str, parts: &[&str]| {
        let text =
            imported(&file(of, "qonnx.custom_op.general", op), &ImportOptions::default()).expect_err("it is refused");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    for (bits, said) in [
        (1.0, "1 bits"),
        (9.0, "9 bits"),
        (4.5, "4.5 bits"),
        (f32::NAN, "NaN bits"),
        (-3.0, "-3 bits"),
    ] {
        refused(Stated { bits, ..USUAL }, "Quant", &["Quant", said, "from 2 to 8"]);
    }
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        refused(Stated { scale, ..USUAL }, "Quant", &["a scale is", "above zero"]);
    }
    for zero in [0.5, f32::NAN, f32::INFINITY] {
        refused(Stated { zero, ..USUAL }, "Quant", &["a zero point is", "whole numbers"]);
    }
    let rounding = "HALF_UP";
    refused(
        Stated { rounding, ..USUAL },
        "Quant",
        &["rounding mode HALF_UP", "ROUND, FLOOR or CEIL"],
    );
    refused(USUAL, "BipolarQuant", &["BipolarQuant", "QCDQ"]);
    // A scale that the network computes.
    let node = Writer::node("Quant", &["x", "x", "z", "b"], "y")
        .bytes(7, b"onnx.brevitas")
        .done();
    let file = File::default()
        .input(&value("x", 1, &[1, 12]))
        .output(&value("y", 1, &[1, 12]));
    let file = file
        .holding(&floats("z", &[], &[0.0]))
        .holding(&floats("b", &[], &[4.0]))
        .raw(&node)
        .bytes(13);
    let text = imported(&file, &ImportOptions::default()).expect_err("it is refused");
    assert!(
        text.contains("a scale that is computed") && text.contains("a constant"),
        "{text}"
    );
}
