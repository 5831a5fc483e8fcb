//! Recurrent layers: those of ONNX are unrolled, and become int8 like any others; those of TensorFlow Lite with a state in f32 are refused with what to do.

use std::path::{Path, PathBuf};

use arenite_host::ErrorKind;
use arenite_host::model::ModelFile;
use arenite_host::pack::pack;
use arenite_tests::oracle;
use ndarray::{ArrayD, Axis};

use crate::quantise::network::{answers, calibrated};

/// Each with the signal over noise that it must reach in int8, in dB. Without steps in int16 the first two reach 27 and 33.
const LEAST: [(&str, f64); 3] = [("lstm", 30.0), ("gru", 37.5), ("rnn", 32.0)];

fn models(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

fn array(path: &Path) -> ArrayD<f32> {
    ndarray_npy::read_npy(path).expect("tracked")
}

fn rows(array: &ArrayD<f32>) -> Vec<ArrayD<f32>> {
    array.axis_iter(Axis(0)).map(|row| row.to_owned()).collect()
}

#[test]
fn recurrent_layers_of_onnx_become_int8() {
    let of = |name: &str| models("recurrent").join(name);
    let [samples, judged] = ["samples.npy", "judged.npy"].map(|name| rows(&array(&of(name))));
    for (name, least) in LEAST {
        let folder = tempfile::tempdir().expect("a folder");
        let options = calibrated(&of(&format!("{name}.onnx")), folder.path(), &samples, &[]);
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let steps = file.view().and_then(|view| view.steps()).expect("steps");
        let real = steps.iter().filter(|step| step.kernel().name().contains("F32"));
        assert_eq!(real.count(), 0, "{name}");
        let expected = array(&of(&format!("{name}.npy")));
        let found: Vec<f64> = answers(&file, &judged).into_iter().flatten().collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        let mean = expected.mean_axis(Axis(0)).expect("answers");
        let (mut signal, mut noise) = (0.0, 0.0);
        for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let mean = mean.iter().nth(at % mean.len()).expect("a class");
            signal += f64::from(expected - mean).powi(2);
            noise += (f64::from(*expected) - found).powi(2);
        }
        let snr = 10.0 * (signal / noise).log10();
        eprintln!("{name}: {snr:.1} dB");
        assert!(snr >= least, "{name}: {snr} dB");
        oracle::compared("ONNX Runtime", found.len(), 1);
    }
}

#[test]
fn an_lstm_with_a_state_in_f32_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = vec![ArrayD::zeros(ndarray::IxDyn(&[2, 4, 5]))];
    let options = calibrated(&models("tflite_ops/lstm_f32.tflite"), folder.path(), &samples, &[]);
    let error = pack(&options, &mut |_, _, _| {}).expect_err("it has a state");
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
    for part in ["a state in f32", "UNIDIRECTIONAL_SEQUENCE_LSTM", "pack its .tflite"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
