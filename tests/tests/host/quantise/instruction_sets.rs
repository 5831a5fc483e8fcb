//! A file does not depend on what the packing machine's processor has: packed with each instruction set for which it has loops.
#![cfg(target_arch = "x86_64")]

use std::path::Path;

use arenite::Target;
use arenite::testkit::InstructionSet;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::Activations;
use ndarray::ArrayD;
use serde_json::json;

use crate::quantise::network::{Network, calibrated_to};

/// Convolutions of odd sizes, depthwise ones, a residual sum, an average, a linear layer: what has loops of its own.
fn network() -> Network {
    let mut network = Network::new(29, &[1, 5, 13, 11]);
    let x = network.conv2d("x", [37, 5, 3, 3], json!({"padding": [1, 1, 1, 1]}));
    let x = network.push("relu", &[&x], json!({}));
    let y = network.conv2d(&x, [37, 1, 3, 3], json!({"padding": [1, 1, 1, 1], "groups": 37}));
    let y = network.conv2d(&y, [37, 37, 1, 1], json!({}));
    let sum = network.push("add", &[&x, &y], json!({}));
    let mean = network.push("mean", &[&sum], json!({"axes": [2, 3]}));
    let (weights, bias) = (network.parameter(&[10, 37], |v| v), network.parameter(&[10], |v| v));
    network.push("linear", &[&mean, &weights, &bias], json!({}));
    network
}

/// The files of all ways in which the host's results come into one.
fn files(network: &Network, samples: &[ArrayD<f32>], folder: &Path) -> Vec<(String, Vec<u8>)> {
    let trace = network.write(folder);
    let mut requests = Vec::new();
    for activations in [Activations::Int8, Activations::Int16] {
        for optimise_rounding in [false, true] {
            let mut options = calibrated_to(activations, &trace, folder, samples, &[]);
            if let Some(request) = &mut options.quantize {
                request.optimise_rounding = optimise_rounding;
            }
            requests.push((format!("{activations:?}, optimised {optimise_rounding}"), options));
        }
    }
    // A self-test holds what the packing machine computed.
    let whole = Options::new(&trace, folder.join("net.arenite"));
    requests.push(("f32".into(), whole));
    let tested = |(name, mut options): (String, Options)| {
        options.target = Target::X8664;
        options.self_test = Some(folder.join("samples.npy"));
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, std::fs::read(&options.output).expect("just written"))
    };
    requests.into_iter().map(tested).collect()
}

#[test]
fn the_file_does_not_depend_on_the_instruction_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = network();
    let samples = network.samples(6);
    assert!(InstructionSet::Portable.limit());
    let portable = files(&network, &samples, folder.path());
    for set in [InstructionSet::Avx2, InstructionSet::Vnni] {
        if !set.limit() {
            arenite_tests::skip(&format!("packing with {set:?}"), "the processor does not have it");
            continue;
        }
        for ((name, file), (_, expected)) in files(&network, &samples, folder.path()).iter().zip(&portable) {
            assert!(file == expected, "{name}: packed with {set:?}, the file is another");
        }
    }
}
