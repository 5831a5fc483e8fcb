//! Weights that are float16 in a `.tflite` file: convolutions and linear layers store these bits, and compute what they mean.

use arenite::KernelId;
use arenite_host::gradient::{Loss, Optimiser, Request};
use arenite_host::graph::LowBits;
use arenite_host::import::ImportOptions;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::WeightOnly;
use arenite_tests::tflite_file::{FLOAT32, TfliteFile, byte, int};
use arenite_tests::writers::Random;

use super::dequantised::packed;
use super::onnx_file::stored;
use super::open_extents::{numbers, random};

/// FLOAT16 in the schema.
const FLOAT16: u8 = 1;
const DEQUANTIZE: i32 = 6;

/// Halves below 2, of which some are subnormal, and the numbers that they are.
fn halves(count: usize) -> (Vec<u8>, Vec<f64>) {
    let mut random = Random::new(11);
    let mut all = (Vec::new(), Vec::new());
    for index in 0..count {
        let (exponent, mantissa) = if index % 7 == 0 {
            (0, random.below(1024))
        } else {
            (1 + random.below(15), random.below(1024))
        };
        let negative = random.below(2);
        let bits = (negative << 15 | exponent << 10 | mantissa) as u16;
        all.0.extend(bits.to_le_bytes());
        let magnitude = match exponent {
            0 => mantissa as f64 * 2.0_f64.powi(-24),
            _ => (1.0 + mantissa as f64 / 1024.0) * 2.0_f64.powi(exponent as i32 - 15),
        };
        all.1.push(if negative == 1 { -magnitude } else { magnitude });
    }
    all
}

const INPUTS: usize = 7;
const CHANNELS: usize = 9;
const OUTPUTS: usize = 11;

/// A 3 x 3 convolution over 5 x 6 pixels of seven channels, then a linear layer of its 270 results: the file and the weights of both.
fn network() -> (Vec<u8>, Vec<f64>, Vec<f64>) {
    let between = 5 * 6 * CHANNELS;
    let (bits, first) = halves(CHANNELS * 9 * INPUTS);
    let (more, second) = halves(OUTPUTS * between);
    let mut file = TfliteFile::new();
    let [i, c, o] = [INPUTS, CHANNELS, OUTPUTS].map(|extent| extent as i32);
    let x = file.tensor("x", FLOAT32, &[1, 5, 6, i]);
    let half = file.constant("half", FLOAT16, &[c, 3, 3, i], bits);
    let real = file.tensor("real", FLOAT32, &[c, 3, 3, i]);
    let h = file.tensor("h", FLOAT32, &[1, 5, 6, c]);
    let other = file.constant("other half", FLOAT16, &[o, between as i32], more);
    let other_real = file.tensor("other", FLOAT32, &[o, between as i32]);
    let y = file.tensor("y", FLOAT32, &[1, o]);
    file.operator(DEQUANTIZE, &[half], &[real], vec![]);
    let options = vec![(0, byte(0)), (1, int(1)), (2, int(1))];
    file.operator(3, &[x, real, -1], &[h], options);
    file.operator(DEQUANTIZE, &[other], &[other_real], vec![]);
    file.operator(9, &[h, other_real, -1], &[y], vec![]);
    file.ends(&[x], &[y]);
    (file.bytes(), first, second)
}

#[test]
fn layers_keep_their_halves_and_compute_what_they_mean() {
    let between = 5 * 6 * CHANNELS;
    let (file, first, second) = network();
    let input = random(5 * 6 * INPUTS);
    let (bytes, found) = packed(&file, ImportOptions::default(), &[stored(&input)]);
    let mut hidden = Vec::new();
    for (row, column, channel) in
        (0..5_usize).flat_map(|r| (0..6_usize).flat_map(move |k| (0..CHANNELS).map(move |channel| (r, k, channel))))
    {
        let mut sum = 0.0;
        for (i, j) in (0..3_usize).flat_map(|i| (0..3_usize).map(move |j| (i, j))) {
            let (Some(r), Some(k)) = ((row + i).checked_sub(1), (column + j).checked_sub(1)) else {
                continue;
            };
            if r < 5 && k < 6 {
                let weight = |input: usize| first[((channel * 3 + i) * 3 + j) * INPUTS + input];
                let products = (0..INPUTS).map(|at| weight(at) * f64::from(input[(r * 6 + k) * INPUTS + at]));
                sum += products.sum::<f64>();
            }
        }
        hidden.push(sum);
    }
    let expected = (0..OUTPUTS).map(|o| {
        hidden
            .iter()
            .zip(&second[o * between..])
            .map(|(h, w)| h * w)
            .sum::<f64>()
    });
    let expected: Vec<f64> = expected.collect();
    let largest = expected.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let found = numbers(&found[0]);
    assert_eq!(found.len(), OUTPUTS);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (f64::from(*found) - expected).abs() <= 1e-5 * largest,
            "{found}, {expected}"
        );
    }
    let weights = first.len() + second.len();
    assert!(
        bytes < 2 * weights + 16 * (CHANNELS + OUTPUTS) + 64,
        "{bytes} bytes for {weights} weights"
    );
}

/// Trained weights are f32; layers that stay as they are keep their halves.
#[test]
fn trained_layers_are_f32() {
    let folder = tempfile::tempdir().expect("a folder");
    let (content, first, second) = network();
    let input = folder.path().join("m.tflite");
    std::fs::write(&input, content).expect("written");
    for (trainable, trained) in [(vec![], first.len() + second.len()), (vec!["other*"], second.len())] {
        let options = Options {
            train: Some(Request {
                loss: Loss::Mse,
                trainable: trainable.into_iter().map(String::from).collect(),
                micro_batches: 1,
                optimiser: Optimiser::Sgd,
            }),
            ..Options::new(&input, folder.path().join("m.bin"))
        };
        let summary = pack(&options, &mut |_, _, _| {}).expect("packs").summary;
        assert_eq!(summary.training.expect("it trains").trained_params, trained as u64);
        let file = ModelFile::open(&options.output).expect("a model");
        let view = file.view().expect("sections");
        let kernels = view.steps().expect("steps").into_iter().map(|step| step.kernel());
        let halves = kernels.filter(|&kernel| kernel == KernelId::W16Conv2dF32).count();
        assert_eq!(halves, usize::from(trained == second.len()));
    }
}

#[test]
fn all_weights_are_f32_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (content, first, second) = network();
    let input = folder.path().join("m.tflite");
    std::fs::write(&input, content).expect("written");
    let mut sizes = Vec::new();
    for bits in [None, Some(LowBits::WIDE)] {
        let options = Options {
            weight_only: bits.map(|bits| WeightOnly {
                bits,
                keep_f32: Vec::new(),
            }),
            ..Options::new(&input, folder.path().join("m.bin"))
        };
        pack(&options, &mut |_, _, _| {}).expect("packs");
        let file = ModelFile::open(&options.output).expect("a model");
        let view = file.view().expect("sections");
        let mut kernels = view.steps().expect("steps").into_iter().map(|step| step.kernel());
        assert_eq!(kernels.any(|kernel| kernel == KernelId::W16Conv2dF32), bits.is_none());
        sizes.push(view.weights().len());
    }
    assert!(
        sizes[0] + 2 * (first.len() + second.len()) <= sizes[1] + 256,
        "{sizes:?}"
    );
}
