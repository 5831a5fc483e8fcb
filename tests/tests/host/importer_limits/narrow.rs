//! Types that only files have: four bits, uint16 and half precision in constants, networks of half precision, bytes that are moved before they are dequantised,
//! and steps of windows that no byte holds.

use arenite_host::import::ImportOptions;
use arenite_host::import::onnx::import;

use super::onnx_file::{File, computed, floats, imported, initializer, int, ints, longs, stored, typed, value};

const FLOAT: i64 = 1;
const UINT8: i64 = 2;
const UINT16: i64 = 4;
const FLOAT16: i64 = 10;
const BFLOAT16: i64 = 16;
const UINT4: i64 = 21;
const INT4: i64 = 22;

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

/// Two elements a byte, the first in the lower half.
fn halves(values: &[i64]) -> Vec<i64> {
    let byte = |pair: &[i64]| pair[0] & 15 | pair.get(1).map_or(0, |high| (high & 15) << 4);
    values.chunks(2).map(byte).collect()
}

#[test]
fn quantised_constants_of_four_and_sixteen_bits() {
    let (scale, values, unsigned) = (0.125, [-8, 7, -1, 0, 3], [0, 15, 9, 8, 3]);
    for (elem, values, zero) in [
        (INT4, values, 0),
        (INT4, values, -3),
        (UINT4, unsigned, 0),
        (UINT4, unsigned, 8),
        (UINT16, [0, 65535, 32768, 1, 40000], 32768),
    ] {
        let narrow = elem != UINT16;
        let packed = |values: &[i64]| if narrow { halves(values) } else { values.to_vec() };
        let raw = |values: &[i64]| -> Vec<u8> {
            let width = if narrow { 1 } else { 2 };
            packed(values)
                .iter()
                .flat_map(|v| v.to_le_bytes().into_iter().take(width))
                .collect()
        };
        for as_bytes in [true, false] {
            let held = |name: &str, shape: &[i64], values: &[i64]| {
                if as_bytes {
                    initializer(name, elem, shape, &raw(values))
                } else {
                    typed(name, elem, shape, &packed(values))
                }
            };
            let file = File::default()
                .input(&value("x", FLOAT, &[5]))
                .output(&value("y", FLOAT, &[5]))
                .holding(&held("q", &[5], &values))
                .holding(&held("z", &[], &[zero]))
                .holding(&floats("s", &[], &[scale]))
                .node("DequantizeLinear", &["q", "s", "z"], "w", &[])
                .node("Add", &["x", "w"], "y", &[]);
            let y = computed(&file.bytes(21), &stored(&[0.0; 5])).expect("it packs");
            assert_eq!(numbers(&y), values.map(|v| (v - zero) as f32 * scale), "type {elem}");
        }
        let short = File::default()
            .input(&value("x", FLOAT, &[5]))
            .output(&value("y", FLOAT, &[5]))
            .holding(&initializer("q", elem, &[5], &raw(&values)[1..]))
            .holding(&floats("s", &[], &[scale]))
            .node("DequantizeLinear", &["q", "s"], "w", &[])
            .node("Add", &["x", "w"], "y", &[]);
        let text = imported(&short.bytes(21), &ImportOptions::default()).expect_err("it is cut off");
        assert!(text.contains("bytes of data") && text.contains("tensor `q`"), "{text}");
        if narrow {
            let pairs = File::default()
                .input(&value("x", FLOAT, &[5]))
                .output(&value("y", FLOAT, &[5]))
                .holding(&typed("q", elem, &[5], &packed(&values)[1..]))
                .holding(&floats("s", &[], &[scale]))
                .node("DequantizeLinear", &["q", "s"], "w", &[])
                .node("Add", &["x", "w"], "y", &[]);
            let text = imported(&pairs.bytes(21), &ImportOptions::default()).expect_err("it is cut off");
            assert!(text.contains("2 pairs of elements of data"), "{text}");
        }
    }
}

/// Bytes keep what they stand for through what moves them, whichever comes first.
#[test]
fn bytes_that_are_moved_before_they_are_dequantised() {
    let x: Vec<u8> = (0..24).map(|i| i * 10).collect();
    let real = |byte: u8| (f32::from(byte) - 3.0) * 0.5;
    let file = || {
        File::default()
            .input(&value("x", UINT8, &[1, 2, 3, 4]))
            .holding(&floats("s", &[], &[0.5]))
            .holding(&initializer("z", UINT8, &[], &[3]))
    };
    let last = |file: File, from: &str, shape: &[i64]| {
        file.node("DequantizeLinear", &[from, "s", "z"], "y", &[])
            .output(&value("y", FLOAT, shape))
    };
    // Rows and columns change places: channels last become first.
    let turned = file().node("Transpose", &["x"], "t", &[ints("perm", &[0, 3, 1, 2])]);
    let y = computed(&last(turned, "t", &[1, 4, 2, 3]).bytes(17), &x).expect("it packs");
    let right: Vec<f32> = (0..24).map(|i| real(x[i % 6 * 4 + i / 6])).collect();
    assert_eq!(numbers(&y), right);
    let shaped = file()
        .holding(&longs("to", &[4, 6]))
        .node("Reshape", &["x", "to"], "t", &[]);
    let y = computed(&last(shaped, "t", &[4, 6]).bytes(17), &x).expect("it packs");
    assert_eq!(numbers(&y), x.iter().map(|&b| real(b)).collect::<Vec<_>>());
    let chain = file()
        .holding(&longs("to", &[6, 4]))
        .holding(&longs("one", &[1]))
        .holding(&longs("four", &[4]))
        .node("Identity", &["x"], "same", &[])
        .node("Reshape", &["same", "to"], "r", &[])
        .node("Slice", &["r", "one", "four"], "p", &[])
        .node("Transpose", &["p"], "t", &[]);
    let y = computed(&last(chain, "t", &[4, 3]).bytes(17), &x).expect("it packs");
    let right: Vec<f32> = (0..12).map(|i| real(x[(1 + i % 3) * 4 + i / 3])).collect();
    assert_eq!(numbers(&y), right);
    // Two readings of one input, of other scales: the second is arithmetic.
    let two = file()
        .holding(&floats("s2", &[], &[0.25]))
        .holding(&longs("to", &[24]))
        .node("Reshape", &["x", "to"], "r", &[])
        .node("DequantizeLinear", &["r", "s", "z"], "a", &[])
        .node("DequantizeLinear", &["r", "s2"], "b", &[])
        .node("Add", &["a", "b"], "y", &[])
        .output(&value("y", FLOAT, &[24]));
    let y = computed(&two.bytes(17), &x).expect("it packs");
    assert_eq!(
        numbers(&y),
        x.iter().map(|&b| real(b) + f32::from(b) * 0.25).collect::<Vec<_>>()
    );
}

/// A network that computes in half precision is f32 on the device; its constants are those of the file.
#[test]
fn networks_of_half_precision_are_widened() {
    // 1.5 and -0.25 in either type.
    for (elem, name, bits) in [
        (FLOAT16, "float16", [0x3E00u16, 0xB400]),
        (BFLOAT16, "bfloat16", [0x3FC0, 0xBE80]),
    ] {
        let raw: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        let file = |ports: i64| {
            File::default()
                .input(&value("x", ports, &[2]))
                .output(&value("y", ports, &[2]))
                .holding(&initializer("w", elem, &[2], &raw))
        };
        let whole = file(elem)
            .node("Mul", &["x", "w"], "m", &[])
            .node("Relu", &["m"], "y", &[]);
        // As converters write it that keep the types of inputs and outputs.
        let inside = file(FLOAT)
            .node("Cast", &["x"], "h", &[int("to", elem)])
            .node("Mul", &["h", "w"], "m", &[])
            .node("Relu", &["m"], "r", &[])
            .node("Cast", &["r"], "y", &[int("to", FLOAT)]);
        for file in [whole, inside] {
            let bytes = file.bytes(17);
            let imported = import(
                std::path::Path::new("nowhere/m.onnx"),
                &bytes,
                &ImportOptions::default(),
            )
            .expect("it is read");
            assert!(
                imported
                    .warnings
                    .iter()
                    .any(|text| text.contains(&format!("the network computes in {name}: "))),
                "{:?}",
                imported.warnings
            );
            let y = computed(&bytes, &stored(&[3.003, -2.0])).expect("it packs");
            assert_eq!(numbers(&y), [3.003 * 1.5, 0.5]);
        }
        // A cast that only rounds is refused, also where it makes an output, by itself or moved.
        let rounds = |to: i64| {
            File::default()
                .input(&value("x", FLOAT, &[2]))
                .output(&value("y", to, &[2]))
                .node("Cast", &["x"], "h", &[int("to", elem)])
        };
        let like = File::default()
            .input(&value("x", FLOAT, &[2]))
            .output(&value("y", elem, &[2]))
            .holding(&initializer("w", elem, &[2], &raw))
            .node("CastLike", &["x", "w"], "y", &[]);
        for file in [
            rounds(FLOAT).node("Cast", &["h"], "y", &[int("to", FLOAT)]),
            rounds(elem).node("Identity", &["h"], "y", &[]),
            File::default()
                .input(&value("x", FLOAT, &[2]))
                .output(&value("y", elem, &[2]))
                .node("Cast", &["x"], "y", &[int("to", elem)]),
            like,
        ] {
            let text = imported_text(&file);
            assert!(
                text.contains(&format!("element type {name} of a tensor that is computed")),
                "{text}"
            );
        }
    }
}

fn imported_text(file: &File) -> String {
    imported(&file.bytes(17), &ImportOptions::default()).expect_err("it is refused")
}

/// Convolutions and poolings whose strides, dilations and paddings are above 255, by their definition.
#[test]
fn wide_steps_of_windows() {
    let x: Vec<f32> = (0..1400).map(|i| ((i * 37 % 101) as f32 - 50.0) / 8.0).collect();
    let weights = [0.5f32, -1.0, 2.0];
    for (stride, dilation, pads) in [
        (300, 1, [0, 0]),
        (1, 400, [0, 0]),
        (256, 300, [0, 0]),
        (255, 255, [3, 1]),
        (100, 2, [400, 300]),
    ] {
        let span = 2 * dilation + 1;
        let out = (1400 + pads[0] + pads[1] - span) / stride + 1;
        let element = |at: i64| {
            let inside = usize::try_from(at - pads[0]).ok().filter(|&i| i < x.len());
            inside.map(|i| x[i])
        };
        let taps = |o: i64| (0..3).map(move |k| o * stride + k * dilation);
        let how = [
            ints("strides", &[stride]),
            ints("dilations", &[dilation]),
            ints("pads", &pads),
            ints("kernel_shape", &[3]),
        ];
        let file = File::default()
            .input(&value("x", FLOAT, &[1, 1, 1400]))
            .output(&value("y", FLOAT, &[1, 1, out]))
            .holding(&floats("w", &[1, 1, 3], &weights));
        let y = computed(
            &file.clone().node("Conv", &["x", "w"], "y", &how).bytes(17),
            &stored(&x),
        )
        .expect("Conv");
        let right: Vec<f32> = (0..out)
            .map(|o| taps(o).zip(weights).map(|(at, w)| element(at).unwrap_or(0.0) * w).sum())
            .collect();
        let near = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(
            near(&numbers(&y), &right),
            "{stride} {dilation} {pads:?}: {:?}, {right:?}",
            numbers(&y)
        );
        if pads[0] >= span || pads[1] >= span {
            continue;
        }
        let y = computed(&file.node("MaxPool", &["x"], "y", &how).bytes(17), &stored(&x)).expect("MaxPool");
        let right: Vec<f32> = (0..out)
            .map(|o| taps(o).filter_map(element).fold(f32::NEG_INFINITY, f32::max))
            .collect();
        assert_eq!(numbers(&y), right, "{stride} {dilation} {pads:?}");
    }
}
