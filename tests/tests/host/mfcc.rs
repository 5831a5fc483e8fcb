//! The front end of mel-frequency cepstral coefficients (`python -m arenite_trace.mfcc`), streamed hop by hop: against NumPy's coefficients of whole
//! clips, against loops in f64, and through the keyword model.

use std::f64::consts::PI;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::model::{ModelFile, run};
use arenite_tests::golden::{Archive, packed};
use arenite_tests::{oracle, shared, skip};

const FRAME: usize = 480;
const HOP: usize = 320;

/// The step of the keyword model's input, and its zero point.
const STEP: f64 = 0.584_702_9;
const ZERO: f64 = 83.0;

fn front_end(folder: &Path) -> ModelFile {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/mfcc/mfcc.trace.json");
    // It replays NumPy's samples, too.
    packed(&trace, folder, Target::Portable).unwrap_or_else(|error| panic!("{error}"))
}

/// The samples of a mono file of 16 bits.
fn clip(path: &Path) -> Vec<i16> {
    let file = std::fs::read(path).expect("a clip");
    let at = file.windows(4).position(|tag| tag == b"data").expect("samples") + 8;
    file[at..]
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| i16::from_le_bytes(*pair))
        .collect()
}

/// The coefficients of the frames of `samples`, one for each hop from the start: a run before them takes in what the first frame has beside its hop.
fn streamed(file: &ModelFile, samples: &[f32]) -> Vec<Vec<f32>> {
    let before = FRAME - HOP;
    let mut padded = vec![0.0; HOP - before];
    padded.extend(samples);
    let hops = padded
        .chunks_exact(HOP)
        .map(|hop| vec![hop.iter().flat_map(|x| x.to_le_bytes()).collect()]);
    let runs: Vec<Vec<Vec<u8>>> = hops.collect();
    let model = file.load().expect("it loads");
    let results = run(&model, &runs, false, &mut |_, _, _| {}).expect("it runs");
    let numbers = |bytes: &[u8]| {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| f32::from_le_bytes(*word))
            .collect()
    };
    results.iter().skip(1).map(|result| numbers(&result[0])).collect()
}

/// The same from the formula.
fn formula(samples: &[f64]) -> Vec<f64> {
    let mel = |f: f64| 1127.0 * (f / 700.0).ln_1p();
    let windowed = samples
        .iter()
        .enumerate()
        .map(|(t, x)| x * (0.5 - 0.5 * (2.0 * PI * t as f64 / FRAME as f64).cos()));
    let windowed: Vec<f64> = windowed.collect();
    let magnitude = |k: usize| {
        let phase = |t: usize| 2.0 * PI * ((k * t) % 512) as f64 / 512.0;
        let part = |f: fn(f64) -> f64| windowed.iter().enumerate().map(|(t, x)| x * f(phase(t))).sum::<f64>();
        part(f64::cos).hypot(part(f64::sin))
    };
    let magnitudes: Vec<f64> = (0..=256).map(magnitude).collect();
    let edge = |i: usize| mel(20.0) + (mel(4000.0) - mel(20.0)) * i as f64 / 41.0;
    let band = |b: usize| {
        let weight = |k: usize| {
            let at = mel(k as f64 * 31.25);
            let (up, down) = (
                (at - edge(b)) / (edge(b + 1) - edge(b)),
                (edge(b + 2) - at) / (edge(b + 2) - edge(b + 1)),
            );
            up.min(down).max(0.0)
        };
        ((1..=256).map(|k| weight(k) * magnitudes[k]).sum::<f64>() + 1e-6).ln()
    };
    let bands: Vec<f64> = (0..40).map(band).collect();
    let coefficient = |i: usize| {
        let terms = bands
            .iter()
            .enumerate()
            .map(|(b, x)| 2.0 * x * (PI * i as f64 * (2 * b + 1) as f64 / 80.0).cos());
        terms.sum::<f64>() / 80f64.sqrt()
    };
    (0..10).map(coefficient).collect()
}

fn clips(shared: &Path) -> [(PathBuf, usize); 4] {
    // Answers of the keyword model: it hears `no` as another word.
    [("yes", 9), ("no", 1), ("noise", 11), ("silence", 10)]
        .map(|(name, answer)| (shared.join(format!("data/models/audio/{name}_1000ms.wav")), answer))
}

#[test]
fn whole_clips_are_within_a_step_and_heard_as_in_the_goldens() {
    let Some(shared) = shared() else {
        return skip(
            "whole_clips_are_within_a_step_and_heard_as_in_the_goldens",
            "no shared data",
        );
    };
    let folder = tempfile::tempdir().expect("a folder");
    let front_end = front_end(folder.path());
    let keywords = packed(
        &shared.join("data/models/kws_ref_model.tflite"),
        folder.path(),
        Target::Portable,
    );
    let keywords = keywords.expect("it packs");
    let keywords = keywords.load().expect("it loads");
    let mut archive = Archive::open(&shared.join("data/models/audio/kws_mfcc_derived.npz"));
    let expected = archive.runs("mfcc").0;
    let (mut worst, mut compared) = (0.0f64, 0);
    for ((path, answer), expected) in clips(&shared).into_iter().zip(&expected) {
        let samples = clip(&path);
        let largest = f32::from(*samples.iter().max().expect("samples"));
        let scaled: Vec<f32> = samples.iter().map(|&x| f32::from(x) / largest).collect();
        let found: Vec<f32> = streamed(&front_end, &scaled).concat();
        let expected: Vec<f32> = expected
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| f32::from_le_bytes(*word))
            .collect();
        assert_eq!(found.len(), expected.len(), "{}", path.display());
        for (found, expected) in found.iter().zip(&expected) {
            worst = worst.max(f64::from(found - expected).abs());
        }
        let stored = |x: &f32| (f64::from(*x) / STEP + ZERO).round().clamp(-128.0, 127.0) as i8 as u8;
        let results = run(
            &keywords,
            &[vec![found.iter().map(stored).collect()]],
            true,
            &mut |_, _, _| {},
        )
        .expect("it runs");
        assert_eq!(keywords.output(0).expect("an output").dtype, DType::I8);
        let heard = (0..12).max_by_key(|&i| results[0][0][i] as i8).expect("words");
        assert_eq!(heard, answer, "{}", path.display());
        compared += expected.len();
    }
    println!("largest difference {worst:e}, {} of a step", worst / STEP);
    assert!(worst < STEP / 100.0, "{worst}");
    oracle::compared("NumPy, MFCC", compared, 1960);
}

#[test]
fn a_stream_of_a_fixed_gain_is_the_formula() {
    let Some(shared) = shared() else {
        return skip("a_stream_of_a_fixed_gain_is_the_formula", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let front_end = front_end(folder.path());
    let mut worst = 0.0f64;
    for (path, _) in clips(&shared) {
        let samples: Vec<f32> = clip(&path).iter().map(|&x| f32::from(x) / 32768.0).collect();
        for (frame, found) in streamed(&front_end, &samples).iter().enumerate().step_by(7) {
            let frame: Vec<f64> = samples[frame * HOP..][..FRAME].iter().map(|&x| x.into()).collect();
            for (found, expected) in found.iter().zip(formula(&frame)) {
                worst = worst.max((f64::from(*found) - expected).abs());
            }
        }
    }
    println!("largest difference {worst:e}, {} of a step", worst / STEP);
    assert!(worst < STEP / 100.0, "{worst}");
}
