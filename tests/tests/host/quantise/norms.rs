//! Normalisations inside an int8 network: of int16 where that brings the answers nearer, and there alone.

use arenite::DType;
use arenite_host::model::ModelFile;
use arenite_host::pack::pack;
use ndarray::ArrayD;
use serde_json::json;

use crate::quantise::network::{Network, calibrated};

/// Residual blocks around a normalisation of lines, as a transformer has them; `mean` says whether the lines' means are taken away.
fn blocks(seed: u64, mean: bool) -> Network {
    let mut n = Network::new(seed, &[1, 9, 14]);
    let lines = json!({"axes": [2], "keepdims": true});
    let (mut x, mut width) = ("x".to_owned(), 14);
    for _ in 0..2 {
        let line = if mean {
            let means = n.push("mean", &[&x], lines.clone());
            n.push("sub", &[&x, &means], json!({}))
        } else {
            x.clone()
        };
        let squares = n.push("mul", &[&line, &line], json!({}));
        let variance = n.push("mean", &[&squares], lines.clone());
        let least = n.parameter(&[1], |_| 1e-3);
        let above = n.push("add", &[&variance, &least], json!({}));
        let root = n.push("sqrt", &[&above], json!({}));
        let normal = n.push("div", &[&line, &root], json!({}));
        let weights = n.parameter(&[14, width], |v| 0.6 * v);
        let bias = n.parameter(&[14], |v| 0.1 * v);
        let wide = n.push("linear", &[&normal, &weights, &bias], json!({}));
        x = n.push("add", &[&x, &wide], json!({}));
        width = 14;
    }
    n
}

#[test]
fn normalisations_are_of_int16_where_the_answers_come_nearer() {
    for (seed, mean) in [(3, true), (4, false)] {
        let mut n = blocks(seed, mean);
        let samples = n.samples(48);
        let folder = tempfile::tempdir().expect("a folder");
        let (packed, file) = n.packed(folder.path(), &samples, &[]).expect("packs");
        let report = packed.summary.quantization.as_ref().expect("quantised");
        // Of a block the square, two means, the sum, the root, the product, the line without its mean; and what it normalises.
        let least = if mean { 14 } else { 10 };
        assert!(report.int16_inside >= least, "{mean}: {}", report.int16_inside);
        let view = file.view().expect("a model");
        assert!(
            view.inputs
                .iter()
                .chain(&view.outputs)
                .all(|port| port.dtype == DType::I8)
        );
        let kinds = |dtype: DType| {
            let steps = view.metadata().expect("names").steps;
            let of = |step: &arenite_host::metadata::StepMeta| {
                step.completes.as_ref().is_some_and(|tensor| tensor.dtype == dtype)
            };
            steps.iter().filter(|step| of(step)).count()
        };
        assert!(
            kinds(DType::I16) >= least && kinds(DType::I8) >= 3,
            "{} {}",
            kinds(DType::I16),
            kinds(DType::I8)
        );
        let snr = n.snr(&[]).expect("packs");
        assert!(snr > 30.0, "{mean}: {snr:.1} dB");
    }
}

/// The estimate is of samples that nothing was chosen by: near what others give, and said with its spread.
#[test]
fn an_estimate_is_near_what_other_samples_give() {
    let mut n = blocks(5, true);
    let samples = n.samples(96);
    let folder = tempfile::tempdir().expect("a folder");
    let estimated = |samples: &[ArrayD<f32>]| {
        let trace = n.write(folder.path());
        let mut options = calibrated(&trace, folder.path(), samples, &[]);
        options.quantize.as_mut().expect("a request").estimate = true;
        let packed = pack(&options, &mut |_, _, _| {}).expect("packs");
        let file = ModelFile::open(&options.output).expect("a model");
        let held = file.view().and_then(|view| view.summary()).expect("a summary");
        (
            packed.summary.quantization.expect("quantised"),
            held.quantization.expect("quantised"),
        )
    };
    let (report, held) = estimated(&samples);
    let estimate = report.estimate.expect("96 samples");
    assert_eq!((estimate.samples, estimate.folds), (96, 4));
    assert!(estimate.spread_db >= 1.0 && estimate.spread_db < 4.0, "{estimate:?}");
    let on_them = report.snr_db.expect("noise");
    assert!((estimate.snr_db - on_them).abs() < 4.0, "{estimate:?} {on_them}");
    // Files do not hold it; one sample says nothing of others.
    assert_eq!(held.estimate, None);
    assert_eq!(estimated(&samples[..1]).0.estimate, None);
}
