//! Parameters from files and seeds: the same values whichever way they come, and errors that name what is wrong.

use std::path::{Path, PathBuf};

use arenite_host::ErrorKind;
use arenite_host::graph::{Expr, Graph};
use arenite_host::import::{ImportOptions, import};
use arenite_host::weights::export::export;
use arenite_host::weights::{Weights, params};
use arenite_tests::writers::keras_order;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::NpzWriter;

fn network(folder: &Path) -> Graph {
    let path = folder.join("small.trace");
    std::fs::write(&path, keras_order::write("resnet8", &[1])).unwrap();
    let options = ImportOptions {
        input_shape: Some(vec![1, 32, 32, 3]),
        assume: vec![("classes".to_string(), "10".to_string())],
        ..ImportOptions::default()
    };
    import(&path, None, &options).unwrap().1.graph
}

fn value(weights: &Weights, key: &str, shape: &[usize]) -> Vec<f32> {
    let (key, shape) = (key.to_string(), shape.to_vec());
    weights.evaluate(&Expr::Param { key, shape }).unwrap()
}

fn write_npz(path: &Path, graph: &Graph, weights: &Weights, change: impl Fn(&str, &mut ArrayD<f32>)) {
    let mut file = NpzWriter::new(std::fs::File::create(path).unwrap());
    for (key, shape) in params(graph) {
        let mut array = ArrayD::from_shape_vec(IxDyn(shape), value(weights, key, shape)).unwrap();
        change(key, &mut array);
        file.add_array(key, &array).unwrap();
    }
    file.finish().unwrap();
}

#[test]
fn seed_safetensors_and_npz_give_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let graph = network(folder.path());
    let seeded = Weights::open("seeded:7", &graph).unwrap();
    let safetensors: PathBuf = folder.path().join("w.safetensors");
    export(&graph, 7, &safetensors).unwrap();
    let npz = folder.path().join("w.npz");
    write_npz(&npz, &graph, &seeded, |_, _| {});
    let from_file = Weights::file(&safetensors, &graph).unwrap();
    let from_npz = Weights::file(&npz, &graph).unwrap();
    for (key, shape) in params(&graph) {
        let expected = value(&seeded, key, shape);
        assert_eq!(value(&from_file, key, shape), expected, "{key}");
        assert_eq!(value(&from_npz, key, shape), expected, "{key}");
    }
    assert!(from_file.unused(&graph).is_empty() && from_npz.unused(&graph).is_empty());
}

/// The rule of the contract, measured: deviations of every kind of parameter.
#[test]
fn seeded_weights_follow_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let graph = network(folder.path());
    let weights = Weights::open("seeded:1", &graph).unwrap();
    let all = params(&graph);
    let moments = |key: &str| {
        let values = value(&weights, key, all[key]);
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    };
    let near = |key: &str, mean: f64, deviation: f64| {
        let (m, d) = moments(key);
        let count = all[key].iter().product::<usize>() as f64;
        assert!((m - mean).abs() < 5.0 * deviation / count.sqrt(), "{key}: mean {m}");
        assert!(
            (d / deviation - 1.0).abs() < 5.0 / (2.0 * count).sqrt(),
            "{key}: deviation {d}, expected {deviation}"
        );
    };
    near("conv1_conv/kernel", 0.0, (2.0f64 / 147.0).sqrt());
    near("conv2_block1_2_conv/kernel", 0.0, (2.0f64 / 576.0).sqrt());
    // Through bias and batch norm these two meet in the block's addition.
    near("conv2_block1_3_conv/kernel", 0.0, 0.25 * (2.0f64 / 64.0).sqrt());
    near("conv2_block1_0_conv/kernel", 0.0, 0.25 * (2.0f64 / 64.0).sqrt());
    near("predictions/kernel", 0.0, 0.1 * (2.0f64 / 256.0).sqrt());
    near("conv2_block1_3_conv/bias", 0.0, 0.01);
    near("conv2_block1_3_bn/gamma", 1.0, 0.1);
    near("conv2_block1_3_bn/beta", 0.0, 0.1);
    near("conv2_block1_3_bn/moving_mean", 0.0, 0.1);
    let variance = value(&weights, "conv2_block1_3_bn/moving_variance", &[256]);
    assert!(variance.iter().all(|&v| v >= 1.0));
    let other = Weights::open("seeded:2", &graph).unwrap();
    assert_ne!(
        value(&other, "predictions/bias", &[10]),
        value(&weights, "predictions/bias", &[10])
    );
}

#[test]
fn wrong_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let graph = network(folder.path());
    let seeded = Weights::open("seeded:7", &graph).unwrap();
    let path = folder.path().join("w.npz");

    write_npz(&path, &graph, &seeded, |key, array| {
        if key == "predictions/bias" {
            *array = ArrayD::zeros(IxDyn(&[11]));
        }
    });
    let error = Weights::file(&path, &graph).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Weights);
    assert!(
        error.to_string().contains("predictions/bias") && error.to_string().contains("[11]"),
        "{error}"
    );

    write_npz(&path, &graph, &seeded, |key, array| {
        if key == "predictions/bias" {
            array.fill(f32::NAN);
        }
    });
    let (key, shape) = ("predictions/bias".to_string(), vec![10]);
    let error = Weights::file(&path, &graph)
        .unwrap()
        .evaluate(&Expr::Param { key, shape })
        .unwrap_err();
    assert!(error.to_string().contains("NaN"), "{error}");

    let safetensors = folder.path().join("w.safetensors");
    export(&graph, 1, &safetensors).unwrap();
    let whole = std::fs::read(&safetensors).unwrap();
    for damaged in [
        &whole[..4],
        &whole[..100],
        &whole[..whole.len() - 4],
        b"not a weights file at all",
    ] {
        std::fs::write(&path, damaged).unwrap();
        let error = Weights::file(&path, &graph).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Weights | ErrorKind::Io), "{error}");
    }
    let renamed = String::from_utf8_lossy(&whole[8..]).find("predictions/bias").unwrap();
    let mut misspelled = whole.clone();
    misspelled[8 + renamed + 15] = b'z';
    std::fs::write(&path, misspelled).unwrap();
    let error = Weights::file(&path, &graph).unwrap_err().to_string();
    assert!(
        error.contains("`predictions/bias` is missing") && error.contains("`predictions/biaz`"),
        "{error}"
    );

    for spec in ["seeded:", "seeded:-1", "seeded:x"] {
        assert_eq!(
            Weights::open(spec, &graph).unwrap_err().kind(),
            ErrorKind::Usage,
            "{spec}"
        );
    }
    let error = Weights::open("absent.safetensors", &graph).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(Weights::nothing(&graph).unwrap_err().kind(), ErrorKind::Weights);
}
