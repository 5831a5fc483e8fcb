//! A network of attention as ONNX has it, by ONNX Runtime's answer.

use arenite::DType;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{self, Activations};
use arenite_tests::golden::Archive;
use arenite_tests::oracle;
use arenite_tests::writers::Random;
use ndarray::{ArrayD, Axis, IxDyn};

use crate::quantise::network::answers;

/// Four heads, 64 samples of a normal distribution. None of its layers is left in f32.
#[test]
fn four_heads_are_near_onnx_runtime() {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip("attention in int8", "no shared data");
        return;
    };
    let defects = shared.join("data/defects");
    let mut archive = Archive::open(&defects.join("attention_4_heads.npz"));
    let mut read = |key: &str| -> Vec<f32> {
        let runs = archive.runs(key).0;
        runs.concat()
            .as_chunks()
            .0
            .iter()
            .map(|&word| f32::from_le_bytes(word))
            .collect()
    };
    let (input, expected) = (read("in_x"), read("out_0"));
    let shape = IxDyn(&[1, 10, 16]);
    let mut random = Random::new(41);
    let mut samples: Vec<ArrayD<f32>> = Vec::new();
    for _ in 0..64 {
        let values = (0..160).map(|_| normal(&mut random)).collect();
        samples.push(ArrayD::from_shape_vec(shape.clone(), values).expect("as many values"));
    }
    let x = ArrayD::from_shape_vec(shape, input).expect("as many values");
    for (activations, least) in [(Activations::Int8, 22.0), (Activations::Int16, 34.0)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.npy");
        let views: Vec<_> = samples.iter().map(|sample| sample.index_axis(Axis(0), 0)).collect();
        ndarray_npy::write_npy(&path, &ndarray::stack(Axis(0), &views).expect("equal shapes")).expect("written");
        let options = Options {
            dtype: Some(activations.dtype()),
            quantize: Some(quantize::Request {
                samples: path,
                activations,
                ..quantize::Request::default()
            }),
            ..Options::new(
                defects.join("attention_4_heads.onnx"),
                folder.path().join("net.arenite"),
            )
        };
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let operators = &packed.summary.ops_final;
        assert_eq!(operators.get("matmul"), Some(&8), "{operators:?}");
        assert!(!operators.contains_key("dequantize"), "{operators:?}");
        let file = ModelFile::open(&options.output).expect("just written");
        assert_ne!(file.view().expect("a model").inputs[0].dtype, DType::F32);
        let found = answers(&file, std::slice::from_ref(&x)).concat();
        let (mut signal, mut noise) = (0.0, 0.0);
        for (&expected, found) in expected.iter().zip(&found) {
            let expected = f64::from(expected);
            signal += expected * expected;
            noise += (expected - found) * (expected - found);
        }
        let snr = 10.0 * (signal / noise).log10();
        assert!(snr >= least, "{activations:?}: {snr:.1} dB");
        oracle::compared("ONNX Runtime", found.len(), 160);
    }
}

/// Half the sum of twelve numbers that are even from -1 to 1.
fn normal(random: &mut Random) -> f32 {
    let even = (0..12).map(|_| random.below(2001) as f32 / 1000.0 - 1.0);
    even.sum::<f32>() / 2.0
}
