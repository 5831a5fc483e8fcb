//! TensorFlow Lite Micro's signal operators, bit for bit: single ones, and its feature front end for speech as a model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::ops::fft::SignalFft;
use arenite::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use arenite::ops::signal::{SignalEnergy, SignalLog, SignalPcan, SignalSubtraction, SignalWindow};
use arenite::{DType, Fault, LoadError, Model, Slot, Step, Target};
use arenite_host::model::run;
use arenite_tests::blob::{Blob, aligned};
use arenite_tests::golden::{Archive, Runs, difference, packed};
use arenite_tests::{oracle, shared, skip};

/// Runs a model on arrays and compares all outputs: how many were compared, or what differs. Where a bool among the outputs says that the others are not
/// valid, TensorFlow Lite Micro has not written them.
fn mismatch(
    model: &Path,
    folder: &Path,
    archive: &mut Archive,
    [inputs, outputs]: [&[String]; 2],
    reset: bool,
) -> Result<usize, String> {
    let file = packed(model, folder, Target::Portable).map_err(|error| error.to_string())?;
    let model = file.load().expect("it loads");
    let inputs: Vec<Runs> = inputs.iter().map(|key| archive.runs(key)).collect();
    let outputs: Vec<Runs> = outputs.iter().map(|key| archive.runs(key)).collect();
    let runs: Vec<Vec<Vec<u8>>> = (0..inputs[0].0.len())
        .map(|run| inputs.iter().map(|input| input.0[run].clone()).collect())
        .collect();
    let results = run(&model, &runs, reset, &mut |_, _, _| {}).map_err(|error| error.to_string())?;
    let dtypes: Vec<DType> = (0..outputs.len())
        .map(|port| model.output(port).expect("an output").dtype)
        .collect();
    let mut compared = 0;
    for (index, result) in results.iter().enumerate() {
        let invalid = (0..outputs.len()).any(|port| dtypes[port] == DType::Bool && outputs[port].0[index] == [0]);
        for (port, dtype) in dtypes.iter().enumerate() {
            if invalid && *dtype != DType::Bool {
                continue;
            }
            if let Some(text) = difference(*dtype, &result[port], &outputs[port].0[index]) {
                return Err(format!("output {port}, run {index}: {text}"));
            }
            compared += 1;
        }
    }
    Ok(compared)
}

fn operators() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_signal")
}

#[test]
fn every_signal_operator_is_as_in_tensorflow_lite_micro() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(&operators().join("cases.npz"));
    let mut cases: BTreeMap<String, [Vec<String>; 2]> = BTreeMap::new();
    let mut names = archive.names();
    names.sort();
    for key in names {
        let (case, array) = key.split_once('/').expect("case/array");
        let arrays = cases.entry(case.to_string()).or_default();
        arrays[usize::from(array.starts_with("out_"))].push(key.clone());
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (case, [inputs, outputs]) in &cases {
        let path = operators().join(format!("{case}.tflite"));
        match mismatch(&path, folder.path(), &mut archive, [inputs, outputs], false) {
            Ok(found) => compared += found,
            Err(text) => wrong.push(format!("{case}: {text}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    oracle::compared("TensorFlow Lite Micro, signal operators", compared, 390);
}

/// The four clips through one session, frame by frame, and single frames of noise at full scale.
#[test]
fn the_front_end_for_speech_is_as_in_tensorflow_lite_micro() {
    let Some(shared) = shared() else {
        return skip(
            "the_front_end_for_speech_is_as_in_tensorflow_lite_micro",
            "no shared data",
        );
    };
    let model = shared.join("data/frontend/tflm_audio_preprocessor_int8.tflite");
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(&model.with_extension("npz"));
    let mut compared = 0;
    for (set, reset) in [("seqreal", false), ("rand", true)] {
        let keys = [format!("in_{set}_0"), format!("out_{set}_tflm_0")];
        let found = mismatch(&model, folder.path(), &mut archive, [&keys[..1], &keys[1..]], reset);
        compared += found.unwrap_or_else(|text| panic!("{set}: {text}"));
    }
    oracle::compared("TensorFlow Lite Micro, front end for speech", compared, 204);
}

#[test]
fn every_mistake_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = operators().join("odd");
    let text = std::fs::read_to_string(odd.join("expected.json")).expect("what is expected");
    let expected: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).expect("words");
    assert!(expected.len() > 40, "{}", expected.len());
    let mut wrong = Vec::new();
    for (name, words) in expected {
        match packed(&odd.join(format!("{name}.tflite")), folder.path(), Target::Portable) {
            Ok(_) => wrong.push(format!("{name}: it packs")),
            Err(error) => {
                let text = error.to_string();
                let missing: Vec<&String> = words.iter().filter(|word| !text.contains(*word)).collect();
                if !missing.is_empty() {
                    wrong.push(format!("{name}: {missing:?} missing in: {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A committed network of one operator, packed.
fn operator(name: &str) -> Blob {
    let folder = tempfile::tempdir().expect("a folder");
    let model = packed(
        &operators().join(format!("{name}.tflite")),
        folder.path(),
        Target::Portable,
    );
    Blob::of(model.unwrap_or_else(|e| panic!("{e}")).bytes())
}

/// The bands of a filter bank say where to read: a load looks at each.
#[test]
fn a_band_outside_of_the_spectrum_does_not_load() {
    let mut blob = operator("filter_bank");
    let (at, bank) = blob
        .decoded()
        .into_iter()
        .enumerate()
        .find_map(|(at, step)| match step {
            Step::SignalFilterBank(bank) => Some((at as u32, bank)),
            _ => None,
        })
        .expect("a filter bank");
    let load = |blob: &Blob| Model::load(aligned(&blob.file()).bytes()).map(|_| ());
    assert_eq!(load(&blob), Ok(()));
    let refused = Err(LoadError::Step {
        step: at,
        fault: Fault::Weights,
    });
    // The last band, which has bins: its first bin, then their number.
    let last = (bank.bands + 4 * bank.channels) as usize;
    let (first, bins) = (blob.weights[last], blob.weights[last + 2]);
    assert!(u32::from(first) + u32::from(bins) <= bank.bins && bins > 0);
    let mut edited = |at: usize, byte: u8| {
        let before = std::mem::replace(&mut blob.weights[at], byte);
        let found = load(&blob);
        blob.weights[at] = before;
        found
    };
    let room = bank.bins as u8 - bins;
    assert_eq!(edited(last, room), Ok(()), "up to the last bin");
    assert_eq!(edited(last, room + 1), refused, "a bin too far");
    assert_eq!(edited(last + 1, 0xff), refused, "far outside");
    assert_eq!(edited(last + 2, bins - 1), refused, "a weight too many");
    assert_eq!(edited(last + 2, bins + 1), refused, "a weight too few");
}

#[test]
fn what_no_signal_kernel_computes_is_refused() {
    let slot = Slot::default();
    let check = |step: Step| step.check();
    let fft = SignalFft {
        output: slot,
        input: slot,
        dtype: DType::I16,
        rows: 2,
        samples: 17,
        length: 24,
        inverse: false,
        twiddles: 0,
    };
    let ffts = [
        (fft, Ok(())),
        (SignalFft { length: 14, ..fft }, Err(Fault::Unsupported)),
        (SignalFft { length: 0, ..fft }, Err(Fault::Unsupported)),
        (SignalFft { length: 1 << 17, ..fft }, Err(Fault::Unsupported)),
        (
            SignalFft {
                dtype: DType::I8,
                ..fft
            },
            Err(Fault::Unsupported),
        ),
        (SignalFft { samples: 25, ..fft }, Err(Fault::Shape)),
        (SignalFft { samples: 0, ..fft }, Err(Fault::Shape)),
        (SignalFft { inverse: true, ..fft }, Err(Fault::Shape)),
        (SignalFft { rows: 1 << 30, ..fft }, Err(Fault::Shape)),
    ];
    for (op, expected) in ffts {
        assert_eq!(check(Step::SignalFftS16(op)), expected, "{op:?}");
    }
    let window = SignalWindow {
        output: slot,
        input: slot,
        window: slot,
        count: 12,
        size: 4,
        shift: 31,
    };
    assert_eq!(check(Step::SignalWindow(window)), Ok(()));
    assert_eq!(
        check(Step::SignalWindow(SignalWindow { shift: 32, ..window })),
        Err(Fault::Quantisation)
    );
    for size in [0, 5, 24] {
        assert_eq!(
            check(Step::SignalWindow(SignalWindow { size, ..window })),
            Err(Fault::Shape)
        );
    }
    let energy = SignalEnergy {
        output: slot,
        input: slot,
        bins: 9,
        start: 3,
        end: 9,
    };
    assert_eq!(check(Step::SignalEnergy(energy)), Ok(()));
    assert_eq!(
        check(Step::SignalEnergy(SignalEnergy { end: 10, ..energy })),
        Err(Fault::Shape)
    );
    assert_eq!(
        check(Step::SignalEnergy(SignalEnergy { end: 2, ..energy })),
        Err(Fault::Shape)
    );
    let Some(Step::SignalSubtraction(subtraction)) = operator("subtraction")
        .decoded()
        .into_iter()
        .find(|step| matches!(step, Step::SignalSubtraction(_)))
    else {
        panic!("a spectral subtraction");
    };
    for (smoothing_bits, bits) in [(32, 14), (10, 64)] {
        let mut op = subtraction;
        (op.constants.smoothing_bits, op.constants.bits) = (smoothing_bits, bits);
        assert_eq!(check(Step::SignalSubtraction(op)), Err(Fault::Quantisation));
    }
    assert_eq!(
        check(Step::SignalSubtraction(SignalSubtraction {
            count: 0,
            ..subtraction
        })),
        Err(Fault::Shape)
    );
    let pcan = SignalPcan {
        output: slot,
        input: slot,
        noise: slot,
        count: 3,
        shift: 64,
        table: 0,
    };
    assert_eq!(check(Step::SignalPcan(pcan)), Err(Fault::Quantisation));
    let log = SignalLog {
        output: slot,
        input: slot,
        count: 3,
        scale: 64,
        correction: 32,
        table: 0,
    };
    assert_eq!(check(Step::SignalLog(log)), Err(Fault::Quantisation));
    let delay = SignalDelay {
        output: slot,
        input: slot,
        state: slot,
        rows: 2,
        frame: 3,
        delay: 0,
    };
    assert_eq!(check(Step::SignalDelay(delay)), Err(Fault::Shape));
    let framer = SignalFramer {
        output: slot,
        input: slot,
        valid: slot,
        state: slot,
        rows: 1,
        frames: 2,
        size: 0x7fff,
        step: 1,
        prefill: false,
    };
    assert_eq!(check(Step::SignalFramer(framer)), Ok(()));
    // Its state counts the steps before the first frame.
    assert_eq!(
        check(Step::SignalFramer(SignalFramer { size: 0x8001, ..framer })),
        Err(Fault::Shape)
    );
    assert_eq!(
        check(Step::SignalFramer(SignalFramer { step: 0, ..framer })),
        Err(Fault::Shape)
    );
    let stacker = SignalStacker {
        output: slot,
        input: slot,
        valid: slot,
        state: slot,
        channels: 2,
        left: 1,
        right: 2,
        step: 4,
    };
    assert_eq!(check(Step::SignalStacker(stacker)), Ok(()));
    for (left, step) in [(1, 0), (1, 5), (u32::MAX, 1), (0x7fff, 1)] {
        assert_eq!(
            check(Step::SignalStacker(SignalStacker { left, step, ..stacker })),
            Err(Fault::Shape)
        );
    }
    let add = SignalOverlapAdd {
        output: slot,
        input: slot,
        state: slot,
        dtype: DType::F32,
        rows: 2,
        frames: 3,
        size: 5,
        step: 5,
    };
    assert_eq!(check(Step::SignalOverlapAdd(add)), Ok(()));
    assert_eq!(
        check(Step::SignalOverlapAdd(SignalOverlapAdd { step: 6, ..add })),
        Err(Fault::Shape)
    );
    let wide = SignalOverlapAdd {
        dtype: DType::I32,
        ..add
    };
    assert_eq!(check(Step::SignalOverlapAdd(wide)), Err(Fault::Unsupported));
}
