//! `arenite diff INT8 --float F32`: the noise of layers, in the network and by themselves.

use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, done, json};

#[test]
fn the_noise_of_each_layer_of_an_int8_model_is_told_beside_the_float_one() {
    let bench = Bench::new();
    let float = bench.packed("mlp");
    let (images, int8) = (crate::common::digits("test_images.npy"), bench.path("mlp.int8"));
    let trace = crate::common::digits("mlp.trace.json");
    let mut pack = Command::new(PACK);
    pack.arg(trace)
        .args(["--dtype", "int8", "--calibrate"])
        .arg(&images)
        .arg("-o")
        .arg(&int8);
    done(pack.output().expect("it starts"));
    let compare = |more: &[&str]| {
        let mut diff = Command::new(ARENITE);
        diff.arg("diff")
            .arg(&int8)
            .arg("--float")
            .arg(&float)
            .arg("--inputs")
            .arg(&images)
            .args(more);
        done(diff.output().expect("it starts"))
    };
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
    assert!((shares - 1.0).abs() < 1e-6 && report["samples"] == 360, "{report}");
    assert_eq!(report["snr_db"], layers[2]["snr_db"]);
    // Without what all answers share, which the noise is still far below; those of another digit are not.
    assert_eq!(report["deviations_db"], layers[2]["deviations_db"]);
    let deviations = report["deviations_db"].as_f64().expect("noise");
    let another = report["another_db"].as_f64().expect("digits differ");
    assert!((25.0..70.0).contains(&deviations) && another < 3.0, "{report}");
    let text = compare(&[]);
    assert!(
        text.contains("on 360 samples") && text.contains("of the noise: "),
        "{text}"
    );
    assert!(
        text.contains(&format!("answers less their mean: {deviations:.1} dB")),
        "{text}"
    );
    // A float model beside itself has no noise; other models have other names.
    let mut same = Command::new(ARENITE);
    same.arg("diff")
        .arg(&float)
        .arg("--float")
        .arg(&float)
        .arg("--inputs")
        .arg(&images)
        .arg("--json");
    let same = json(&done(same.output().expect("it starts")));
    assert!(
        same["snr_db"].is_null() && same["worst"].as_array().is_some_and(Vec::is_empty),
        "{same}"
    );
    let other = bench.packed("residual");
    let mut wrong = Command::new(ARENITE);
    wrong
        .arg("diff")
        .arg(&int8)
        .arg("--float")
        .arg(&other)
        .arg("--inputs")
        .arg(&images);
    let message = crate::common::refused(wrong.output().expect("it starts"), 1);
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
    let compare = |more: &[&str]| {
        let mut diff = Command::new(ARENITE);
        diff.arg("diff")
            .arg(&int4)
            .arg("--float")
            .arg(&float)
            .arg("--inputs")
            .arg(&images);
        done(diff.args(more).output().expect("it starts"))
    };
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

/// Between equalised layers channels have other sizes than the float model's: what they differ by is no noise, and no layer is to blame for it.
#[test]
fn layers_of_an_equalised_network_are_not_judged() {
    let bench = Bench::new();
    let (float, int8) = (bench.packed("digits"), bench.path("digits.int8"));
    let images = crate::common::digits("test_images.npy");
    let mut pack = Command::new(PACK);
    pack.arg(crate::common::digits("digits.trace.json"))
        .args(["--dtype", "int8", "--json", "--calibrate"])
        .arg(&images)
        .arg("-o")
        .arg(&int8);
    let packed = json(&done(pack.output().expect("it starts")));
    let pairs = packed["quantization"]["equalised"].as_u64().expect("a count");
    assert!(pairs > 1, "the search takes the equalised network: {packed}");
    let compare = |more: &[&str]| {
        let mut diff = Command::new(ARENITE);
        diff.arg("diff").arg(&int8).arg("--float").arg(&float);
        diff.arg("--inputs").arg(&images).args(more);
        done(diff.output().expect("it starts"))
    };
    let report = json(&compare(&["--json"]));
    let reason = report["not_judged"].as_str().expect("a reason");
    assert!(
        reason.contains(&format!(
            "cannot be judged: packing equalised channels between {pairs} pairs"
        )),
        "{reason}"
    );
    for list in ["layers", "worst", "weak"] {
        assert!(report[list].as_array().is_some_and(Vec::is_empty), "{list}: {report}");
    }
    // The answers are the float model's own, whatever lies before them.
    assert!(report["snr_db"].as_f64().is_some_and(|snr| snr > 25.0), "{report}");
    assert!(report["another_db"].as_f64().is_some_and(|snr| snr < 3.0), "{report}");
    let text = compare(&[]);
    assert!(text.starts_with("answers: ") && text.contains(reason), "{text}");
    for blame in [
        "of the noise",
        "by itself",
        "--keep-f32",
        "--optimise-rounding",
        "relu",
        "conv",
    ] {
        assert!(!text.contains(blame), "{blame}: {text}");
    }
}
