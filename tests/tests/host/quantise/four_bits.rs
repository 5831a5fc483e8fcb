//! `pack --dtype int8 --weight-bits 4`: weights of four bits under int8 activations, against a loop over the bytes of the file, bit for bit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::ops::low_bit::Conv2dS8W4;
use arenite::quant::Multiplier;
use arenite::{Step, Target};
use arenite_host::board::{self, Blob, RunOptions};
use arenite_host::graph::LowBits;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::quantize::Activations;
use arenite_tests::oracle;
use ndarray::{ArrayD, Axis};
use serde_json::json;

use crate::quantise::network::{Network, answers, calibrated_to, stored};

fn digits(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

fn images() -> Vec<ArrayD<f32>> {
    let array: ArrayD<f32> = ndarray_npy::read_npy(digits("test_images.npy")).expect("a committed file");
    array.axis_iter(Axis(0)).map(|image| image.to_owned()).collect()
}

fn options(trace: &Path, folder: &Path, samples: &[ArrayD<f32>], group: Option<usize>, optimise: bool) -> Options {
    let mut options = calibrated_to(Activations::Int8, trace, folder, samples, &[]);
    if let Some(request) = &mut options.quantize {
        request.low_bits = Some(LowBits { bits: 4, group });
        request.optimise_rounding = optimise;
    }
    options
}

fn packed(options: &Options) -> (Packed, ModelFile) {
    let packed = pack(options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    (packed, ModelFile::open(&options.output).expect("just written"))
}

fn words(constants: &[u8], offset: u32, count: usize) -> Vec<i32> {
    let bytes = &constants[offset as usize..][..4 * count];
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&word| i32::from_le_bytes(word))
        .collect()
}

/// Returns the result of a step for `x`, by the definition: one weight after the other.
fn by_loops(op: &Conv2dS8W4, constants: &[u8], x: &[u8]) -> Vec<u8> {
    let window = &op.window;
    let [h, w, c] = window.input.map(usize::from);
    let [oh, ow, oc] = window.output.map(usize::from);
    let [kh, kw] = window.kernel.map(usize::from);
    let within = c / usize::from(op.groups);
    let filter = kh * kw * within;
    let (share, bytes) = (op.share as usize, filter.div_ceil(2));
    let parts = filter.div_ceil(share);
    let records = words(constants, op.channels, 3 * oc);
    let mut found = Vec::new();
    for at in 0..usize::from(window.batch) * oh * ow * oc {
        let (o, column, row, image) = (at % oc, at / oc % ow, at / oc / ow % oh, at / oc / ow / oh);
        let mut sum = records[3 * o];
        for weight in 0..filter {
            let (channel, kx, ky) = (weight % within, weight / within % kw, weight / within / kw);
            let place = |out: usize, axis: usize, tap: usize| {
                let start = out * usize::from(window.stride[axis]) + tap * usize::from(window.dilation[axis]);
                start.checked_sub(usize::from(window.padding[axis]))
            };
            let (Some(y), Some(x_at)) = (place(row, 0, ky), place(column, 1, kx)) else {
                continue;
            };
            if y >= h || x_at >= w {
                continue;
            }
            let byte = constants[op.weights as usize + o * bytes + weight / 2];
            let number = if weight.is_multiple_of(2) {
                (byte << 4) as i8 >> 4
            } else {
                byte as i8 >> 4
            };
            let factor = i32::from(constants[op.factors as usize + o * parts + weight / share]);
            let own = x[((image * h + y) * w + x_at) * c + o / (oc / usize::from(op.groups)) * within + channel] as i8;
            sum += (i32::from(own) - i32::from(op.input_zero_point)) * i32::from(number) * factor;
        }
        let (mantissa, shift) = (records[3 * o + 1], records[3 * o + 2] as i8);
        let scaled = Multiplier { mantissa, shift }.apply(sum) + i32::from(op.output_zero_point);
        found.push(scaled.clamp(op.clamp[0].into(), op.clamp[1].into()) as u8);
    }
    found
}

/// Convolutions of all kinds and a linear layer.
fn network(seed: u64) -> Network {
    let mut network = Network::new(seed, &[1, 3, 7, 5]);
    let y = network.conv2d("x", [6, 3, 3, 2], json!({"padding": [1, 1, 0, 1], "strides": [1, 2]}));
    let y = network.push("relu", &[&y], json!({}));
    let z = network.conv2d(&y, [6, 1, 3, 3], json!({"groups": 6, "padding": [1, 1, 1, 1]}));
    let y = network.push("add", &[&z, &y], json!({}));
    let y = network.conv2d(&y, [4, 3, 2, 2], json!({"groups": 2, "dilation": [2, 1]}));
    let y = network.push("mean", &[&y], json!({"axes": [2, 3]}));
    let weights = network.parameter(&[5, 4], |v| v);
    let bias = network.parameter(&[5], |v| v);
    network.push("linear", &[&y, &weights, &bias], json!({}));
    network
}

/// Cores with kernels for it pack weights of four bits in their own way, and answer as the scalar kernel does, bit for bit. Of groups of a length that their
/// loops do not take, layers of several are left to that.
#[test]
fn kernels_of_cores_give_the_scalar_kernels_bits() {
    let mut compared = 0;
    for (target, whole, of_groups, most) in [
        // Rows of seven bytes are neither words nor none.
        (Target::CortexM4, "DspW4Conv2dS8", "DspGroupsConv2dS8", 4),
        (Target::CortexM55, "MveW4Conv2dS8", "MveGroupsConv2dS8", 5),
    ] {
        for (seed, group, expected) in [(1, None, [6, 0]), (2, Some(4), [0, 0]), (3, Some(16), [1, most])] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut network = Network::new(90 + seed, &[1, 3, 7, 9]);
            let y = network.conv2d("x", [8, 3, 2, 2], json!({"padding": [1, 1, 0, 1], "strides": [1, 2]}));
            let y = network.push("relu", &[&y], json!({}));
            let y = network.conv2d(&y, [20, 8, 3, 3], json!({"padding": [1, 1, 1, 1]}));
            let y = network.conv2d(&y, [24, 20, 1, 1], json!({}));
            let y = network.conv2d(&y, [7, 24, 2, 3], json!({"dilation": [2, 1]}));
            let y = network.conv2d(&y, [40, 7, 3, 1], json!({}));
            let y = network.push("mean", &[&y], json!({"axes": [2, 3]}));
            let weights = network.parameter(&[5, 40], |v| v);
            let bias = network.parameter(&[5], |v| v);
            network.push("linear", &[&y, &weights, &bias], json!({}));
            let samples = network.samples(12);
            let trace = network.write(folder.path());
            let mut options = options(&trace, folder.path(), &samples, group, false);
            let (_, portable) = packed(&options);
            options.target = target;
            options.output = folder.path().join("other.arenite");
            let (_, own) = packed(&options);
            let steps = own.view().expect("a model").steps().expect("steps");
            let with = |kernel| steps.iter().filter(|step| step.kernel().name() == kernel).count();
            assert_eq!([with(whole), with(of_groups)], expected, "{target:?} {group:?}");
            assert_eq!(
                answers(&own, &samples),
                answers(&portable, &samples),
                "{target:?} {group:?}"
            );
            compared += samples.len();
        }
    }
    oracle::compared("the scalar kernel", compared, 72);
}

#[test]
fn every_step_computes_what_a_loop_over_its_bytes_computes() {
    let mut compared = 0;
    for (seed, group, optimise) in [
        (1, None, false),
        (2, Some(4), false),
        (3, Some(5), true),
        (4, None, true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(70 + seed);
        let samples = network.samples(12);
        let trace = network.write(folder.path());
        let mut options = options(&trace, folder.path(), &samples, group, optimise);
        options.in_place = false;
        let (packed, file) = packed(&options);
        let report = packed.summary.quantization.expect("what was done");
        // The depthwise layer keeps eight bits.
        assert_eq!(
            (report.weight_bits, report.group, report.low_bit_layers),
            (Some(4), group, 3)
        );
        let view = file.view().expect("a model");
        let (steps, constants) = (view.steps().expect("steps"), view.weights());
        let stored_input = |x: &ArrayD<f32>| vec![x.iter().flat_map(|&v| stored(v, &view.inputs[0])).collect()];
        let runs: Vec<Vec<Vec<u8>>> = samples.iter().map(stored_input).collect();
        run(&file.load().expect("loads"), &runs, true, &mut |_, step, session| {
            if let Step::W4Conv2dS8(op) = &steps[step as usize] {
                let read = |slot, len: Option<u32>| session.read(slot, len.expect("a size")).expect("in the arena");
                let x = read(op.input, op.window.input_len());
                let y = read(op.output, op.window.output_len());
                assert_eq!(y, by_loops(op, constants, x), "{group:?}, step {step}");
                compared += 1;
            }
        })
        .expect("runs");
    }
    oracle::compared("a loop over the file's bytes", compared, 4 * 12 * 3);
}

#[test]
fn smaller_groups_and_optimised_rounding_bring_answers_nearer() {
    let mut sums = [0.0; 4];
    for seed in 1..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let mut network = network(90 + seed);
        let (samples, judged) = (network.samples(48), network.samples(24));
        let trace = network.write(folder.path());
        let expected: Vec<f64> = judged.iter().flat_map(|x| network.expected(x)).collect();
        let forms = [(None, false), (Some(4), false), (None, true), (Some(4), true)];
        for (sum, (group, optimise)) in sums.iter_mut().zip(forms) {
            let (_, file) = packed(&options(&trace, folder.path(), &samples, group, optimise));
            let (mut signal, mut noise) = (0.0, 0.0);
            for (expected, found) in expected.iter().zip(answers(&file, &judged).concat()) {
                signal += expected * expected;
                noise += (expected - found) * (expected - found);
            }
            *sum += 10.0 * (signal / noise).log10() / 4.0;
        }
    }
    eprintln!("{sums:.1?}");
    assert!(sums[0] > 12.0 && sums[1] > sums[0] + 1.0, "{sums:?}");
    assert!(sums[2] > sums[0] + 1.0 && sums[3] > sums[1] + 1.0, "{sums:?}");
}

#[test]
fn the_digits_are_nearly_as_good_and_smaller() {
    let labels: ArrayD<i64> = ndarray_npy::read_npy(digits("test_labels.npy")).expect("a committed file");
    let images = images();
    let samples: Vec<_> = images.iter().step_by(9).cloned().collect();
    let folder = tempfile::tempdir().expect("a folder");
    let trace = digits("digits.trace.json");
    let (eight, _) = packed(&calibrated_to(Activations::Int8, &trace, folder.path(), &samples, &[]));
    let (four, file) = packed(&options(&trace, folder.path(), &samples, Some(32), true));
    let largest =
        |scores: &Vec<f64>| (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best });
    let answers = answers(&file, &images);
    let right = answers
        .iter()
        .zip(&labels)
        .filter(|(scores, label)| largest(scores) as i64 == **label)
        .count();
    let part = four.summary.model_bytes as f64 / eight.summary.model_bytes as f64;
    eprintln!("{right} right, file {part:.3} of int8's");
    // Four fewer than in f32 at most.
    assert!(right + 4 >= 355 && part <= 0.68, "{right} right, {part:.3}");
    oracle::compared("PyTorch", images.len(), 360);
}

#[test]
fn boards_answer_as_the_host_does_bit_for_bit() {
    let images = images();
    let samples: Vec<_> = images.iter().step_by(9).cloned().collect();
    let folder = tempfile::tempdir().expect("a folder");
    let (_, file) = packed(&options(
        &digits("residual.trace.json"),
        folder.path(),
        &samples,
        Some(8),
        false,
    ));
    let view = file.view().expect("a model");
    let few = &images[..4];
    let runs: Vec<Vec<Vec<u8>>> = few
        .iter()
        .map(|image| vec![image.iter().flat_map(|&v| stored(v, &view.inputs[0])).collect()])
        .collect();
    let expected = run(&file.load().expect("loads"), &runs, true, &mut |_, _, _| {}).expect("runs");
    for board in arenite_tests::named_by_turns("weights of four bits", &["mps2-an386", "mps2-an385:thumbv6m"]) {
        let name = board.name;
        if let Err(reason) = board::ready(board) {
            arenite_tests::skip(&format!("weights of four bits on {name}"), &reason.to_string());
            continue;
        }
        let options = RunOptions {
            runs: few.len() as u32,
            timeout: Duration::from_secs(600),
            ..RunOptions::default()
        };
        let inputs = runs.concat().concat();
        let report = board::run(board, Blob::File(file.path()), &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(report.outputs, expected.concat().concat(), "{name}");
    }
}
