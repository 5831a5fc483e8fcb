//! `pack --preprocess`: pictures of bytes in, against the same picture prepared by loops in f64.

use std::path::Path;

use arenite::DType;
use arenite_host::Error;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::quantize::{self, Activations};
use ndarray::{Array3, Array4, ArrayD, Axis};
use serde_json::json;

use crate::quantise::network::Network;

/// A preparation of pictures: the words of the option, and the same for the loops.
struct Case {
    words: &'static str,
    picture: [usize; 2],
    /// First row and column, rows and columns.
    crop: Option<[usize; 4]>,
    resize: Option<[usize; 2]>,
    mean: [f64; 3],
    scale: [f64; 3],
    /// Steps in front of the network's own.
    steps: usize,
}

const PLAIN: Case = Case {
    words: "u8",
    picture: [9, 7],
    crop: None,
    resize: None,
    mean: [0.0; 3],
    scale: [1.0; 3],
    steps: 1,
};

/// Bytes of a picture: waves and noise, darkest and brightest among them.
fn picture([rows, columns]: [usize; 2], seed: usize) -> Array3<u8> {
    Array3::from_shape_fn((rows, columns, 3), |(row, column, channel)| {
        let wave = ((row * 3 + seed * 5) as f64 * 0.31 + column as f64 * (0.2 + channel as f64 * 0.17)).sin();
        let noise = (row * 7919 + column * 104_729 + channel * 1299 + seed * 31) % 41;
        (127.0 + 100.0 * wave + noise as f64 - 20.0).round().clamp(0.0, 255.0) as u8
    })
}

/// `[rows, columns, channels]`, by the definition of each step.
fn prepared(case: &Case, picture: &Array3<u8>) -> Array3<f64> {
    let mut now = picture.mapv(f64::from);
    if let Some([row, column, rows, columns]) = case.crop {
        now = Array3::from_shape_fn((rows, columns, 3), |(i, j, c)| now[[row + i, column + j, c]]);
    }
    if let Some([rows, columns]) = case.resize {
        let (high, wide, _) = now.dim();
        // The pixel's middle in the source, its four neighbours, the outermost again beyond the edge.
        let at = |i: usize, to: usize, from: usize| {
            let middle = ((i as f64 + 0.5) * from as f64 / to as f64 - 0.5).max(0.0);
            let low = (middle.floor() as usize).min(from - 1);
            (low, (low + 1).min(from - 1), middle - low as f64)
        };
        now = Array3::from_shape_fn((rows, columns, 3), |(i, j, c)| {
            let ((top, bottom, y), (left, right, x)) = (at(i, rows, high), at(j, columns, wide));
            let upper = now[[top, left, c]] * (1.0 - x) + now[[top, right, c]] * x;
            let lower = now[[bottom, left, c]] * (1.0 - x) + now[[bottom, right, c]] * x;
            upper * (1.0 - y) + lower * y
        });
    }
    let (rows, columns, _) = now.dim();
    Array3::from_shape_fn((rows, columns, 3), |(i, j, c)| {
        (now[[i, j, c]] - case.mean[c]) * case.scale[c]
    })
}

/// A network on `[1, 3, 9, 7]`, or channels last, whose first layer is padded or not, in groups or not.
fn network(case: &Case, channels_last: bool, padding: [usize; 4], groups: usize) -> Network {
    let shape = if channels_last { [1, 9, 7, 3] } else { [1, 3, 9, 7] };
    let layout = if channels_last { "NHWC" } else { "NCHW" };
    let mut network = Network::new(5, &shape);
    let attrs = json!({"padding": padding, "strides": [2, 1], "groups": groups, "layout": layout});
    let first = network.conv2d("x", [6, 3 / groups, 3, 2], attrs);
    let first = network.push("relu", &[&first], json!({}));
    // Of the size of what comes in.
    let of_one = case.scale[0] < 0.1;
    let factor = if of_one { 1.0 } else { 0.01 };
    let factor = network.parameter(&[1], |_| factor);
    let scaled = network.push("mul", &[&first, &factor], json!({}));
    network.conv2d(&scaled, [4, 6, 2, 3], json!({"layout": layout}));
    network
}

fn cases() -> Vec<(Case, bool, [usize; 4], usize)> {
    let third = 1.0 / 127.5;
    vec![
        (PLAIN, false, [1, 1, 0, 1], 1),
        (PLAIN, true, [0; 4], 1),
        // A whole mean is the conversion itself; 127.5 is half a step more, behind padding a step of its own.
        (
            Case {
                words: "u8 mean=128 scale=0.0078125",
                mean: [128.0; 3],
                scale: [0.007_812_5; 3],
                ..PLAIN
            },
            true,
            [1, 0, 1, 0],
            3,
        ),
        (
            Case {
                words: "u8 mean=127.5 scale=0.00784313725",
                mean: [127.5; 3],
                scale: [third; 3],
                ..PLAIN
            },
            false,
            [0; 4],
            1,
        ),
        (
            Case {
                words: "u8 mean=127.5 scale=0.00784313725",
                mean: [127.5; 3],
                scale: [third; 3],
                steps: 2,
                ..PLAIN
            },
            true,
            [1, 1, 0, 1],
            1,
        ),
        (
            Case {
                words: "u8 mean=123.5,116.25,103 scale=0.0171,0.0175,0.0174",
                mean: [123.5, 116.25, 103.0],
                scale: [0.0171, 0.0175, 0.0174],
                ..PLAIN
            },
            false,
            [0; 4],
            3,
        ),
        (
            Case {
                words: "u8 mean=123.5,116.25,103 scale=0.0171,0.0175,0.0174",
                mean: [123.5, 116.25, 103.0],
                scale: [0.0171, 0.0175, 0.0174],
                steps: 2,
                ..PLAIN
            },
            false,
            [1, 1, 1, 0],
            1,
        ),
        (
            Case {
                words: "scale=0.0078125 mean=128 u8 size=23x31 crop=18x14 resize=9x7",
                picture: [23, 31],
                crop: Some([2, 8, 18, 14]),
                resize: Some([9, 7]),
                mean: [128.0; 3],
                scale: [0.007_812_5; 3],
                steps: 3,
            },
            true,
            [1, 0, 1, 0],
            1,
        ),
        (
            Case {
                words: "u8 size=12x10 crop=5x9+6+1 resize=9x7 scale=0.004 layout=nchw",
                picture: [12, 10],
                crop: Some([6, 1, 5, 9]),
                resize: Some([9, 7]),
                scale: [0.004; 3],
                steps: 3,
                ..PLAIN
            },
            false,
            [0; 4],
            1,
        ),
    ]
}

fn packed(options: &Options) -> Result<(Packed, ModelFile), Error> {
    let packed = pack(options, &mut |_, _, _| {})?;
    Ok((packed, ModelFile::open(&options.output)?))
}

fn options(network: &Network, folder: &Path, words: &str) -> Options {
    Options {
        preprocess: Some(words.parse().expect("a spec")),
        ..Options::new(network.write(folder), folder.join("net.bin"))
    }
}

/// Returns the outputs of the network for pictures, in real numbers.
fn answers(file: &ModelFile, pictures: &[Array3<u8>]) -> Vec<Vec<f64>> {
    let view = file.view().expect("a model");
    let (input, output) = (&view.inputs[0], &view.outputs[0]);
    assert_eq!((input.name, input.dtype), ("x", DType::U8));
    let runs: Vec<Vec<Vec<u8>>> = pictures
        .iter()
        .map(|picture| vec![picture.iter().copied().collect()])
        .collect();
    let outputs = run(&file.load().expect("loads"), &runs, true, &mut |_, _, _| {}).expect("runs");
    let real = |value: f64| match output.dtype {
        DType::F32 => value,
        _ => f64::from(output.scale) * (value - f64::from(output.zero_point)),
    };
    let values = |answer: &Vec<Vec<u8>>| arenite_host::compare::to_f64(output.dtype, &answer[0]);
    outputs
        .iter()
        .map(|answer| values(answer).into_iter().map(real).collect())
        .collect()
}

/// Returns the outputs of the network's formulas for the prepared pictures.
fn expected(network: &Network, case: &Case, channels_last: bool, picture: &Array3<u8>) -> Vec<f64> {
    let x = prepared(case, picture);
    let x = if channels_last { x } else { x.permuted_axes([2, 0, 1]) };
    let x = x.insert_axis(Axis(0)).mapv(|value| value as f32);
    network.expected(&ArrayD::from_shape_vec(x.shape(), x.iter().copied().collect()).expect("as many"))
}

#[test]
fn pictures_of_bytes_give_what_prepared_ones_give() {
    for (index, (case, channels_last, padding, groups)) in cases().into_iter().enumerate() {
        let network = network(&case, channels_last, padding, groups);
        let folder = tempfile::tempdir().expect("a folder");
        let bare = Options::new(network.write(folder.path()), folder.path().join("bare.bin"));
        let (bare, _) = packed(&bare).expect("packs");
        let (with, file) =
            packed(&options(&network, folder.path(), case.words)).unwrap_or_else(|e| panic!("{index}: {e}"));
        // Channels first are transposed either way.
        let moved = usize::from(channels_last);
        assert!(
            with.summary.steps <= bare.summary.steps + case.steps
                && with.summary.steps + 1 >= bare.summary.steps + case.steps + moved,
            "{index}: {} and {} steps",
            with.summary.steps,
            bare.summary.steps
        );
        assert_eq!(with.summary.inputs[0].shape, [1, case.picture[0], case.picture[1], 3]);
        let pictures: Vec<_> = (0..3).map(|seed| picture(case.picture, seed)).collect();
        for (picture, found) in pictures.iter().zip(answers(&file, &pictures)) {
            let expected = expected(&network, &case, channels_last, picture);
            let largest = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let error = expected
                .iter()
                .zip(&found)
                .fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(error <= 2e-5 * largest, "{index}: {error} of {largest}");
        }
    }
}

#[test]
fn networks_are_quantised_for_pictures_of_bytes() {
    let both = [Activations::Int8, Activations::Int16];
    for (index, activations) in (0..cases().len()).flat_map(|index| both.map(|kind| (index, kind))) {
        let (case, channels_last, padding, groups) = cases().swap_remove(index);
        let network = network(&case, channels_last, padding, groups);
        let folder = tempfile::tempdir().expect("a folder");
        let samples: Vec<_> = (10..50).map(|seed| picture(case.picture, seed)).collect();
        let views: Vec<_> = samples.iter().map(|sample| sample.view()).collect();
        let stacked: Array4<u8> = ndarray::stack(Axis(0), &views).expect("equal shapes");
        let path = folder.path().join("samples.npy");
        ndarray_npy::write_npy(&path, &stacked).expect("written");
        let options = Options {
            dtype: Some(activations.dtype()),
            quantize: Some(quantize::Request {
                samples: path.clone(),
                activations,
                ..quantize::Request::default()
            }),
            ..options(&network, folder.path(), case.words)
        };
        if activations == Activations::Int16 && case.resize.is_some() {
            let error = packed(&options).err().expect("refused").to_string();
            assert!(error.contains("no int16 form"), "{error}");
            continue;
        }
        let (_, file) = packed(&options).unwrap_or_else(|e| panic!("{index}: {e}"));
        let pictures: Vec<_> = (0..10).map(|seed| picture(case.picture, seed)).collect();
        let (mut signal, mut noise) = (0.0, 0.0);
        for (picture, found) in pictures.iter().zip(answers(&file, &pictures)) {
            for (expected, found) in expected(&network, &case, channels_last, picture).iter().zip(&found) {
                signal += expected * expected;
                noise += (expected - found) * (expected - found);
            }
        }
        let snr = 10.0 * (signal / noise).log10();
        eprintln!("{index}, {activations:?}: {snr:.1} dB");
        let least = if activations == Activations::Int16 { 42.0 } else { 33.0 };
        assert!(snr > least, "{index}, {}, {activations:?}: {snr:.1} dB", case.words);
        // Samples of another type say nothing of bytes.
        ndarray_npy::write_npy(&path, &stacked.mapv(f32::from)).expect("written");
        let error = packed(&options).err().expect("refused").to_string();
        assert!(
            error.contains("no unsigned bytes") && error.contains("uint8"),
            "{error}"
        );
    }
}

/// An int8 network's bytes are its own numbers, moved: with its own scale and zero point nothing is rounded.
#[test]
fn int8_networks_take_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let mut compared = 0;
    for entry in std::fs::read_dir(models).expect("models") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains("conv") || !name.ends_with("int8.tflite") {
            continue;
        }
        let bare = Options::new(&path, folder.path().join("bare.bin"));
        let (summary, bare) = packed(&bare).expect("packs");
        let [input] = &summary.summary.inputs[..] else { continue };
        let (&[1, rows, columns, channels], "int8", Some(scale), Some(zero)) =
            (&input.shape[..], input.dtype.as_str(), input.scale, input.zero_point)
        else {
            continue;
        };
        let mean = zero + 128;
        let options = |words: String| Options {
            preprocess: Some(words.parse().expect("a spec")),
            ..Options::new(&path, folder.path().join("with.bin"))
        };
        let (found, with) = packed(&options(format!("u8 mean={mean} scale={scale} layout=nhwc"))).expect("packs");
        assert!(
            found.warnings.iter().all(|warning| !warning.contains("half")),
            "{:?}",
            found.warnings
        );
        let bytes: Vec<u8> = (0..rows * columns * channels)
            .map(|at| (at * 89 + at / 7) as u8)
            .collect();
        let own: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x80).collect();
        let outputs = |file: &ModelFile, input: Vec<u8>| {
            run(&file.load().expect("loads"), &[vec![input]], true, &mut |_, _, _| {})
        };
        assert_eq!(
            outputs(&with, bytes).expect("runs"),
            outputs(&bare, own).expect("runs"),
            "{name}"
        );
        // Half a step is said, more than the bytes have and a value for each channel are refused.
        let (half, _) = packed(&options(format!(
            "u8 mean={}.5 scale={scale} layout=nhwc",
            mean.min(254)
        )))
        .expect("packs");
        assert!(
            half.warnings.iter().any(|warning| warning.contains("no half steps")),
            "{:?}",
            half.warnings
        );
        for (words, expected) in [
            ("u8 mean=300 layout=nhwc".to_string(), "mean=300; expected 0 to 255"),
            ("mean=3 layout=nhwc".to_string(), "which is int8; expected u8 as well"),
            (
                format!("u8 scale={} layout=nhwc", vec!["1"; channels - 1].join(",") + ",2"),
                "which is int8 with one scale",
            ),
        ] {
            if channels > 1 {
                let error = packed(&options(words)).err().expect("refused").to_string();
                assert!(error.contains(expected), "{error}");
            }
        }
        compared += 1;
    }
    assert!(compared >= 5, "{compared}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |network: &Network, words: &str| {
        let error = packed(&options(network, folder.path(), words)).err();
        error.unwrap_or_else(|| panic!("{words}: packed")).to_string()
    };
    let network = network(&PLAIN, true, [0; 4], 1);
    for (words, expected) in [
        ("u8 mean=1,2", "2 values of mean; expected 1 or 3"),
        ("u8 scale=1,2,3,4", "4 values of scale; expected 1 or 3"),
        ("u8 scale=-1", "scale=-1e0 of bytes"),
        (
            "u8 size=10x7",
            "a picture of 10 x 7 comes to the network; expected 9 x 7",
        ),
        (
            "u8 size=10x7 crop=9x8",
            "crop of 9 x 8; expected inside the picture of 10 x 7",
        ),
        ("u8 size=10x7 crop=9x7+2+0", "crop of 9 x 7 from row 2 and column 0"),
        ("u8 layout=nchw mean=1,2,3", "3 values of mean; expected 1 or 9"),
    ] {
        let error = of(&network, words);
        assert!(error.contains(expected), "{words}: {error}");
    }
    let mut flat = Network::new(3, &[1, 12]);
    flat.push("relu", &["x"], json!({}));
    assert!(of(&flat, "u8").contains("`x` has 2 axes; expected the four of a picture"));
    let mut square = Network::new(3, &[1, 4, 5, 3]);
    square.push("relu", &["x"], json!({}));
    assert!(of(&square, "u8").contains("layout=nhwc or layout=nchw"));
}
