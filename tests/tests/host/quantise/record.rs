//! All that comes of calibrating small networks in many ways is on record as digests, in `record.txt`: a line for each operator, and for a network of several.
//!
//! The other tests hold that it is near enough to loops in f64; within that, every choice of a range, of rounding and of precision shows here. Where it is
//! meant, `ARENITE_BLESS=1` writes the file anew.

use std::fmt::Write;

use arenite::DType;
use arenite_host::graph::LowBits;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{Activations, Aims, Request};
use arenite_host::stage::Stage;
use arenite_tests::record::{Digest, held};

use crate::quantise::network::{Network, calibrated_to};
use crate::quantise::{mixed, operators};

type Way = (&'static str, fn(&mut Options, &mut Request));

const WAYS: &[Way] = &[
    ("plain", |_, _| {}),
    ("four", |_, request| {
        request.low_bits = Some(LowBits {
            bits: 4,
            group: Some(32),
        });
    }),
    ("rounded", |_, request| request.optimise_rounding = true),
    ("floats", |options, request| {
        request.float_ports = [true, true];
        options.input_dtype = Some(DType::F32);
        options.output_dtype = Some(DType::F32);
    }),
    ("kept", |_, request| request.keep_f32 = vec!["conv2d0".into()]),
    ("small", |_, request| {
        request.mixed = Some(Aims {
            flash: Some(2800),
            snr_db: None,
        });
    }),
    ("good", |_, request| {
        request.mixed = Some(Aims {
            flash: None,
            snr_db: Some(34.0),
        });
    }),
];

/// Of the file and of all that is said, or of an error.
fn digest(network: &mut Network, way: &Way) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = network.write(folder.path());
    let samples = network.samples(7);
    let mut options = calibrated_to(network.activations, &trace, folder.path(), &samples, &[]);
    let mut request = options.quantize.take().expect("a request");
    way.1(&mut options, &mut request);
    options.quantize = Some(request);
    options.dump_after = Some(Stage::Quantize);
    let mut sum = Digest::default();
    let mark = match pack(&options, &mut |_, _, _| {}) {
        Ok(mut packed) => {
            // They are measured anew whenever a kernel changes; the files lie in a folder of another name each time.
            packed.summary.stack_bytes.clear();
            packed.summary.load_stack_bytes.clear();
            packed.summary.code_bytes_estimate = None;
            packed.files.clear();
            sum.bytes(&std::fs::read(&options.output).expect("just written"));
            let _ = write!(sum, "{packed:?}");
            ""
        }
        Err(error) => {
            let said = error.to_string().replace(&folder.path().display().to_string(), "");
            let _ = write!(sum, "{:?} {said}", error.kind());
            "!"
        }
    };
    format!(" {}={mark}{}", way.0, sum.text())
}

fn line(name: &str, ways: [&[Way]; 2], network: impl Fn() -> Network) -> String {
    let mut line = name.to_string();
    for (activations, ways) in [Activations::Int8, Activations::Int16].into_iter().zip(ways) {
        let _ = write!(line, " {}:", activations.option());
        for way in ways {
            let mut network = network();
            network.activations = activations;
            line += &digest(&mut network, way);
        }
    }
    line + "\n"
}

#[test]
fn calibrated_networks_are_those_on_record() {
    let mut found = String::new();
    for (index, (name, add)) in operators::OPERATORS.iter().enumerate() {
        let network = || {
            let mut network = Network::new(index as u64 + 1, &[1, 6, 7, 5]);
            let z = operators::same(&mut network, "x");
            let y = add(&mut network, "x", &z);
            network.push("relu", &[&y], serde_json::json!({}));
            network
        };
        // One way each: several operators are alike to each of them.
        let at = index % WAYS.len();
        let other = (at + 3) % WAYS.len();
        found += &line(name, [&WAYS[at..=at], &WAYS[other..=other]], network);
    }
    found += &line("network", [WAYS, &WAYS[..4]], || mixed::network(3));
    held("tests/host/quantise/record.txt", &found, "quantise::record");
}
