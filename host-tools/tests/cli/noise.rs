//! `arenite diff INT8 --float F32`: the noise of layers, in the network and by themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ndarray::{ArrayD, Axis, Slice};

use crate::common::{ARENITE, Bench, PACK, done, json};

#[test]
fn the_noise_of_each_layer_of_an_int8_model_is_told_beside_the_float_one() {
    let bench = Bench::new();
    let float = bench.packed("mlp");
    let (images, int8) = (crate::common::digits("test_images.npy"), bench.path("mlp.int8"));
    int8_of(&crate::common::digits("mlp.trace.json"), &images, &int8, &[]);
    let compare = |more: &[&str]| done(diff_of(&int8, &float, &images, more));
    let report = json(&compare(&["--json"]));
    let layers = report["layers"].as_array().expect("layers");
    let names: Vec<_> = layers
        .iter()
        .map(|layer| layer["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["fc1", "tanh", "logits"]);
    assert!(
        layers
            .iter()
            .all(|layer| layer["snr_db"].as_f64().is_some_and(|snr| (25.0..70.0).contains(&snr)))
    );
    assert!(
        layers
            .iter()
            .all(|layer| layer["clipped"].as_f64().is_some_and(|share| share < 0.01))
    );
    // By themselves: the first layer reads what it reads in the network, later ones no noise of others; no layer is nearer than its scale.
    let of = |layer: usize, field: &str| layers[layer][field].as_f64().expect("noise");
    assert_eq!(layers[0]["alone_db"], layers[0]["snr_db"]);
    assert!(of(2, "alone_db") > of(2, "snr_db") + 0.2, "{report}");
    assert!(
        (0..3).all(|layer| of(layer, "stored_db") >= of(layer, "alone_db")),
        "{report}"
    );
    assert!(report["weak"].as_array().is_some_and(Vec::is_empty), "{report}");
    let shares: f64 = layers.iter().filter_map(|layer| layer["share"].as_f64()).sum();
    let of_inputs = report["inputs_share"].as_f64().expect("a share");
    assert!(
        (shares + of_inputs - 1.0).abs() < 1e-6 && report["samples"] == 360,
        "{report}"
    );
    assert_eq!(report["snr_db"], layers[2]["snr_db"]);
    // Without what all answers share, which the noise is still far below; those of another digit are not.
    assert_eq!(report["deviations_db"], layers[2]["deviations_db"]);
    let deviations = report["deviations_db"].as_f64().expect("noise");
    let another = report["another_db"].as_f64().expect("digits differ");
    assert!((25.0..70.0).contains(&deviations) && another < 3.0, "{report}");
    let text = compare(&[]);
    assert!(
        text.contains("on 360 samples") && text.contains("of the noise of the answers, "),
        "{text}"
    );
    assert!(
        text.contains(&format!("answers less their mean: {deviations:.1} dB")),
        "{text}"
    );
    // A float model beside itself has no noise; other models have other names.
    let same = json(&done(diff_of(&float, &float, &images, &["--json"])));
    assert!(
        same["snr_db"].is_null() && same["worst"].as_array().is_some_and(Vec::is_empty),
        "{same}"
    );
    let other = bench.packed("residual");
    let message = crate::common::refused(diff_of(&int8, &other, &images, &[]), 1);
    assert!(message.contains("none of its layers"), "{message}");
}

#[test]
fn layers_by_themselves_are_fed_in_the_layout_of_their_memory() {
    // The trace has channels first, memory has them last; an index of the wrong axis would store other values.
    let bench = Bench::new();
    let (float, images) = (bench.packed("residual"), crate::common::digits("test_images.npy"));
    let int4 = bench.path("residual.int4");
    let mut pack = Command::new(PACK);
    pack.arg(crate::common::digits("residual.trace.json"))
        .args(["--dtype", "int8", "--weight-bits", "4", "--calibrate"])
        .arg(&images)
        .arg("-o")
        .arg(&int4);
    done(pack.output().expect("it starts"));
    let compare = |more: &[&str]| done(diff_of(&int4, &float, &images, more));
    let report = json(&compare(&["--json"]));
    let layers = report["layers"].as_array().expect("layers");
    let below = |layer: &&serde_json::Value| layer["alone_db"].as_f64().is_some_and(|alone| alone < 30.0);
    let below: Vec<_> = layers.iter().filter(below).map(|layer| &layer["name"]).collect();
    let weak = report["weak"].as_array().expect("a list");
    assert_eq!(weak.iter().map(|weak| &weak["name"]).collect::<Vec<_>>(), below);
    assert!(!weak.is_empty(), "weights of four bits round more than that: {report}");
    for layer in layers {
        assert!(
            layer["stored_db"].as_f64().is_none_or(|stored| stored > 30.0),
            "{layer}"
        );
    }
    let text = compare(&[]);
    assert!(
        text.contains("by itself is at ") && text.contains("its own scale allows"),
        "{text}"
    );
}

/// Between equalised layers channels have other sizes than the float model's: they are compared in its own.
#[test]
fn layers_of_an_equalised_network_are_compared_in_the_float_models_sizes() {
    let bench = Bench::new();
    let (float, int8) = (bench.packed("digits"), bench.path("digits.int8"));
    let images = few_images(&bench);
    let uneven = uneven_digits(&bench);
    let packed = json(&int8_of(&uneven, &images, &int8, &["--json"]));
    let pairs = packed["quantization"]["equalised"].as_u64().expect("a count");
    assert!(pairs > 1, "the search takes the equalised network: {packed}");
    let words = |more: &[&str]| done(diff_of(&int8, &float, &images, more));
    let report = json(&words(&["--json"]));
    assert_eq!(report["equalised"], pairs);
    let layers = report["layers"].as_array().expect("layers");
    assert!(layers.len() > 6, "{report}");
    for layer in layers {
        // In its own sizes an equalised layer would be some dB from the float model's. The first one's channels are of other sizes here than the network's own.
        let snr = layer["snr_db"].as_f64().expect("noise");
        assert!(snr > 25.0, "{layer}");
        assert!(layer["alone_db"].as_f64().is_none_or(|alone| alone > 25.0), "{layer}");
    }
    let shares: f64 = layers.iter().filter_map(|layer| layer["share"].as_f64()).sum();
    let of_inputs = report["inputs_share"].as_f64().expect("a share");
    assert!((shares + of_inputs - 1.0).abs() < 1e-6, "{report}");
    let text = words(&[]);
    assert!(text.contains("they are compared in the float model's sizes"), "{text}");
}

/// The digits with channels of the first convolution of unlike sizes, which the second one's weights take back: the same answers.
fn uneven_digits(bench: &Bench) -> PathBuf {
    let mut parameters = std::fs::read(crate::common::digits("digits.safetensors")).expect("read");
    let copy = parameters.clone();
    let held = safetensors::SafeTensors::deserialize(&copy).expect("parameters");
    let size = |channel: usize| [1.0, 0.04, 0.3, 0.1][channel % 4];
    let mut scale = |name: &str, of: &dyn Fn(usize, &[usize]) -> f32| {
        let tensor = held.tensor(name).expect("a parameter");
        let from = tensor.data().as_ptr() as usize - copy.as_ptr() as usize;
        for (at, word) in tensor.data().as_chunks::<4>().0.iter().enumerate() {
            let value = f32::from_le_bytes(*word) * of(at, tensor.shape());
            parameters[from + 4 * at..][..4].copy_from_slice(&value.to_le_bytes());
        }
    };
    scale("conv1.weight", &|at, shape| {
        size(at / shape[1..].iter().product::<usize>())
    });
    scale("conv1.bias", &|at, _| size(at));
    scale("conv2.weight", &|at, shape| {
        1.0 / size(at / (shape[2] * shape[3]) % shape[1])
    });
    std::fs::write(bench.path("digits.safetensors"), parameters).expect("written");
    let trace = std::fs::read(crate::common::digits("digits.trace.json")).expect("read");
    let mut trace: serde_json::Value = serde_json::from_slice(&trace).expect("a trace");
    trace.as_object_mut().expect("an object").remove("samples");
    let path = bench.path("uneven.trace.json");
    std::fs::write(&path, trace.to_string()).expect("written");
    path
}

/// Each layer's weights disturbed in turn: the layer is the first that is named.
#[test]
fn a_layer_whose_weights_are_damaged_is_named_first() {
    let bench = Bench::new();
    let images = few_images(&bench);
    for network in ["digits", "mlp"] {
        let float = bench.packed(network);
        let parameters = std::fs::read(crate::common::digits(&format!("{network}.safetensors"))).expect("read");
        let held = safetensors::SafeTensors::deserialize(&parameters).expect("parameters");
        let trace = std::fs::read(crate::common::digits(&format!("{network}.trace.json"))).expect("read");
        let mut layers: serde_json::Value = serde_json::from_slice(&trace).expect("a trace");
        // The trace states its answers, which the damaged network does not give.
        layers.as_object_mut().expect("an object").remove("samples");
        let (mut right, mut total) = (0, 0);
        for operator in layers["ops"].as_array().expect("operators") {
            let weights = operator["inputs"][1].as_str().unwrap_or_default();
            let Ok(tensor) = held.tensor(weights) else { continue };
            if tensor.shape().len() < 2 {
                continue;
            }
            let values: Vec<f32> = tensor
                .data()
                .as_chunks()
                .0
                .iter()
                .map(|&word| f32::from_le_bytes(word))
                .collect();
            let size = (values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32).sqrt();
            let from = tensor.data().as_ptr() as usize - parameters.as_ptr() as usize;
            let mut damaged = parameters.clone();
            for (at, value) in values.iter().enumerate() {
                let other = value + 0.3 * size * ((at * 37 % 23) as f32 / 11.0 - 1.0);
                damaged[from + 4 * at..][..4].copy_from_slice(&other.to_le_bytes());
            }
            std::fs::write(bench.path(&format!("{network}.safetensors")), damaged).expect("written");
            std::fs::write(bench.path("damaged.trace.json"), layers.to_string()).expect("written");
            let int8 = bench.path("damaged.int8");
            let mut pack = Command::new(PACK);
            pack.arg(bench.path("damaged.trace.json"))
                .args(["--dtype", "int8", "--calibrate"]);
            pack.arg(&images).arg("-o").arg(&int8);
            done(pack.output().expect("it starts"));
            let report = json(&done(diff_of(&int8, &float, &images, &["--json"])));
            total += 1;
            let named = report["worst"][0]["layer"].as_str().unwrap_or_default();
            right += usize::from(named == operator["name"]);
            if named != operator["name"] {
                println!(
                    "{network}: {} is damaged, {} is named",
                    operator["name"], report["worst"]
                );
            }
        }
        assert!(total >= 2 && right + 1 >= total, "{network}: {right} of {total}");
    }
}

#[test]
fn what_may_help_is_tried() {
    let bench = Bench::new();
    let (float, int8) = (bench.packed("mlp"), bench.path("mlp.int8"));
    let images = few_images(&bench);
    int8_of(&crate::common::digits("mlp.trace.json"), &images, &int8, &[]);
    let made = format!(
        "pack '{}' --dtype int8 --calibrate '{}' -o elsewhere.bin",
        crate::common::digits("mlp.trace.json").display(),
        images.display()
    );
    let diff = |words: &str, more: &[&str]| diff_of(&int8, &float, &images, &[&["--packed-by", words], more].concat());
    let report = json(&done(diff(&made, &["--json"])));
    let options = &report["options"];
    assert_eq!(options["snr_db"], report["snr_db"], "{report}");
    let tried = options["tried"].as_array().expect("options");
    let of = |option: &str| {
        tried
            .iter()
            .find(|tried| tried["option"] == option)
            .unwrap_or_else(|| panic!("{report}"))
    };
    let wide = of("--dtype int16x8");
    assert!(wide["gain_db"].as_f64().is_some_and(|gain| gain > 3.0), "{wide}");
    assert!(
        of("--optimise-rounding")["more_bytes"]
            .as_i64()
            .is_some_and(|more| more.abs() < 64),
        "{report}"
    );
    let worst = report["worst"][0]["layer"].as_str().expect("a layer");
    let kept = of(&format!("--keep-f32 {worst}"));
    assert!(kept["more_bytes"].as_i64().is_some_and(|more| more > 0), "{kept}");
    let gains: Vec<f64> = tried.iter().filter_map(|tried| tried["gain_db"].as_f64()).collect();
    assert!(
        gains.is_sorted_by(|a, b| a >= b) && gains.len() == tried.len(),
        "{report}"
    );
    assert!(!Path::new("elsewhere.bin").exists(), "trials leave no file");
    let text = done(diff(&made, &[]));
    assert!(
        text.contains("tried, beside ") && text.contains("--dtype int16x8: +"),
        "{text}"
    );
    for (words, said) in [
        ("net.onnx 'a", "a quotation mark has no other"),
        ("pack -o m.bin", "there is no network"),
    ] {
        let message = crate::common::refused(diff(words, &[]), 2);
        assert!(message.contains(said), "{message}");
    }
}

/// Every eighth of the images.
fn few_images(bench: &Bench) -> PathBuf {
    let all: ArrayD<f32> = ndarray_npy::read_npy(crate::common::digits("test_images.npy")).expect("images");
    let path = bench.path("few.npy");
    ndarray_npy::write_npy(
        &path,
        &all.slice_each_axis(|axis| {
            let step = if axis.axis == Axis(0) { 8 } else { 1 };
            Slice::new(0, None, step)
        }),
    )
    .expect("written");
    path
}

/// `arenite diff` of an int8 model beside a float one.
fn diff_of(int8: &Path, float: &Path, images: &Path, more: &[&str]) -> Output {
    let mut diff = Command::new(ARENITE);
    diff.arg("diff")
        .arg(int8)
        .arg("--float")
        .arg(float)
        .arg("--inputs")
        .arg(images);
    diff.args(more).output().expect("it starts")
}

/// Output of `pack` for an int8 network of the digits.
fn int8_of(trace: &Path, images: &Path, output: &Path, more: &[&str]) -> String {
    let mut pack = Command::new(PACK);
    pack.arg(trace)
        .args(["--dtype", "int8", "--calibrate"])
        .arg(images)
        .arg("-o")
        .arg(output);
    done(pack.args(more).output().expect("it starts"))
}
