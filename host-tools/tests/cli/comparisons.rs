//! Findings of `diff` and `eval`, against answers made by hand.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ndarray::{Array3, ArrayD, IxDyn, arr1, arr2};
use ndarray_npy::{NpzWriter, write_npy};

use crate::common::{ARENITE, Bench, PACK, done, json, refused, run};

/// A network that gives back what it gets, where that is not negative: three scores.
const SCORES: &str = r#"{
  "arenite_trace": 1, "name": "scores", "inputs": ["x"], "outputs": ["y"],
  "tensors": {
    "x": {"dtype": "f32", "shape": [1, 3], "role": "input"},
    "y": {"dtype": "f32", "shape": [1, 3], "role": "activation"}
  },
  "ops": [{"name": "relu", "op": "relu", "inputs": ["x"], "outputs": ["y"]}]
}"#;

fn model(bench: &Bench) -> PathBuf {
    let (trace, labels, model) = (bench.path("s.trace.json"), bench.path("l.txt"), bench.path("s.bin"));
    fs::write(&trace, SCORES).expect("written");
    fs::write(&labels, "cat\ndog\nowl\n").expect("written");
    let words = [&trace, Path::new("--labels"), &labels, Path::new("-o"), &model];
    done(run(PACK, &words));
    model
}

#[test]
fn the_confusion_matrix_is_the_one_made_by_hand() {
    let bench = Bench::new();
    let (model, inputs, labels) = (model(&bench), bench.path("x.npy"), bench.path("y.npy"));
    // Seven samples, by right class and chosen class: 0 0, 0 2, 0 2, 1 0, 1 1, 2 2, 2 1.
    let scores = [
        [3.0, 1.0, 2.0],
        [1.0, 2.0, 4.0],
        [0.0, 0.0, 0.5],
        [9.0, 8.0, 7.0],
        [1.0, 5.0, 5.0],
        [0.1, 0.2, 0.3],
        [0.0, 2.0, 1.0f32],
    ];
    let right = arr1(&[0i64, 0, 0, 1, 1, 2, 2]);
    let stacked = Array3::from_shape_fn((7, 1, 3), |(sample, _, class)| scores[sample][class]);
    write_npy(&inputs, &stacked).expect("written");
    write_npy(&labels, &right).expect("written");
    let eval = |more: &[&str]| {
        let mut command = Command::new(ARENITE);
        command
            .arg("eval")
            .arg(&model)
            .arg("--inputs")
            .arg(&inputs)
            .arg("--labels")
            .arg(&labels)
            .args(more);
        done(command.output().expect("it starts"))
    };
    let report = json(&eval(&["--json"]));
    assert_eq!(
        report["confusion"],
        serde_json::json!([[1, 0, 2], [1, 1, 0], [0, 1, 1]])
    );
    assert_eq!((&report["samples"], &report["correct"]), (&7.into(), &3.into()));
    assert_eq!(report["accuracy"], 3.0 / 7.0);
    let text = eval(&[]);
    let rows = [
        "  cat      1     ·     2",
        "  dog      1     1     ·",
        "  owl      ·     1     1",
    ];
    for row in rows {
        assert!(text.lines().any(|line| line.trim_end() == row), "{row}\nin\n{text}");
    }
    assert!(
        text.contains("3 of 7 right on host: 42.86 % (95 % interval 15.82 to 74.95 %)"),
        "{text}"
    );
    // A label that the model cannot choose.
    write_npy(&labels, &arr1(&[0i64, 0, 0, 1, 1, 2, 3])).expect("written");
    let mut command = Command::new(ARENITE);
    command
        .arg("eval")
        .arg(&model)
        .arg("--inputs")
        .arg(&inputs)
        .arg("--labels")
        .arg(&labels);
    let output = command.output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && message.contains("label 3"),
        "{message}"
    );
}

/// Scores whose largest is at the class of each sample.
fn scores_of(classes: &[usize]) -> Array3<f32> {
    Array3::from_shape_fn((classes.len(), 1, 3), |(sample, _, class)| {
        f32::from(u8::from(classes[sample] == class))
    })
}

#[test]
fn each_model_in_each_place_is_compared_with_every_other() {
    let bench = Bench::new();
    let (model, inputs, labels) = (model(&bench), bench.path("x.npy"), bench.path("y.npy"));
    // The same network with its scores turned about: class 0 becomes 1, 1 becomes 2, 2 becomes 0.
    let turned = bench.path("turned.bin");
    let trace = SCORES
        .replace("\"outputs\": [\"y\"]", "\"outputs\": [\"z\"]")
        .replacen(
            "\"role\": \"activation\"}\n",
            "\"role\": \"activation\"},\n\"a\": {\"dtype\": \"f32\", \"shape\": [1, 2], \"role\": \"activation\"},\n\
             \"b\": {\"dtype\": \"f32\", \"shape\": [1, 1], \"role\": \"activation\"},\n\
             \"z\": {\"dtype\": \"f32\", \"shape\": [1, 3], \"role\": \"activation\"}\n",
            1,
        )
        .replace(
            "\"outputs\": [\"z\"]}]",
            "\"outputs\": [\"y\"]},\n\
             {\"name\": \"head\", \"op\": \"slice\", \"inputs\": [\"y\"], \"outputs\": [\"a\"], \"attrs\": {\"axis\": 1, \"start\": 0, \"stop\": 2}},\n\
             {\"name\": \"tail\", \"op\": \"slice\", \"inputs\": [\"y\"], \"outputs\": [\"b\"], \"attrs\": {\"axis\": 1, \"start\": 2, \"stop\": 3}},\n\
             {\"name\": \"turn\", \"op\": \"concat\", \"inputs\": [\"b\", \"a\"], \"outputs\": [\"z\"], \"attrs\": {\"axis\": 1}}]",
        );
    let path = bench.path("turned.trace.json");
    fs::write(&path, trace).expect("written");
    done(run(PACK, &[&path, Path::new("-o"), &turned]));

    let (right, chosen) = ([0i64, 0, 1, 1, 2, 2, 2], [0usize, 0, 1, 0, 2, 0, 1]);
    write_npy(&inputs, &scores_of(&chosen)).expect("written");
    write_npy(&labels, &arr1(&right)).expect("written");
    let reference = bench.path("r.npy");
    let eval = |models: &[&Path], more: &[&str]| {
        let mut command = Command::new(ARENITE);
        command.arg("eval").args(models).arg("--inputs").arg(&inputs);
        command.arg("--labels").arg(&labels).args(more);
        done(command.output().expect("it starts"))
    };
    let mut more = vec![
        "--json",
        "--on",
        "host",
        "--on",
        "host",
        "--reference",
        reference.to_str().expect("UTF-8"),
    ];
    // As classes; as scores they say the same.
    write_npy(&reference, &arr1(&[0i64, 1, 1, 1, 2, 2, 0])).expect("written");
    let report = json(&eval(&[&model, &turned], &more));
    let evaluations = report["evaluations"].as_array().expect("an array");
    let known = |field: &str| evaluations.iter().map(|e| e[field].clone()).collect::<Vec<_>>();
    assert_eq!(known("correct"), [4, 4, 2, 2, 5]);
    assert_eq!(known("board"), ["host", "host", "host", "host", "reference"]);
    assert_eq!(known("model")[4], "reference");
    assert_eq!(
        evaluations[4]["confusion"],
        serde_json::json!([[1, 1, 0], [0, 2, 0], [1, 0, 2]])
    );
    for (end, expected) in [(0, 0.358_934_451_83), (1, 0.917_781_075_996)] {
        let found = evaluations[4]["interval"][end].as_f64().expect("a number");
        assert!((found - expected).abs() < 1e-9, "{found}");
    }
    assert!(report.get("confusion").is_none(), "whose would it be?");
    let pairs = report["pairs"].as_array().expect("an array");
    let between: Vec<_> = pairs.iter().map(|p| p["between"].clone()).collect();
    let all: Vec<_> = (0..5)
        .flat_map(|b| (0..b).map(move |a| serde_json::json!([a, b])))
        .collect();
    assert_eq!(between, all);
    let between = |first: usize, second: usize| &pairs[second * (second - 1) / 2 + first];
    assert_eq!(between(0, 1)["agreement"], 1.0);
    let fields = ["same", "only_first", "only_second", "p_value"];
    let values = |pair: &serde_json::Value| fields.map(|field| pair[field].as_f64().expect("a number"));
    for (pair, expected) in [
        (between(0, 2), [0.0, 4.0, 2.0, 0.6875]),
        (between(0, 4), [3.0, 1.0, 2.0, 1.0]),
    ] {
        for (found, expected) in values(pair).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{pair}");
        }
    }
    write_npy(&reference, &scores_of(&[0, 1, 1, 1, 2, 2, 0])).expect("written");
    assert_eq!(json(&eval(&[&model, &turned], &more)), report);
    more.retain(|word| *word != "--json");
    let text = eval(&[&model, &turned], &more);
    for line in [
        "[5] ",
        "[1] and [3] agree on 0.00 %; right alone: 4 and 2; McNemar's p = 0.688",
        "2 of 7 right on host: 28.57 %",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
    // Answers for other samples.
    write_npy(&reference, &arr1(&[0i64, 1])).expect("written");
    let mut command = Command::new(ARENITE);
    command
        .arg("eval")
        .arg(&model)
        .arg("--inputs")
        .arg(&inputs)
        .arg("--labels")
        .arg(&labels);
    let output = command.arg("--reference").arg(&reference).output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("r.npy") && message.contains("7 samples"), "{message}");
}

#[test]
fn diff_ends_with_1_where_a_layer_differs_and_with_0_where_none_does() {
    let bench = Bench::new();
    let (model, reference) = (model(&bench), bench.path("r.npz"));
    let diff = |y: [f32; 3], more: &[&str]| -> Output {
        let mut npz = NpzWriter::new(File::create(&reference).expect("made"));
        npz.add_array("x", &arr2(&[[2.0f32, -1.0, 0.5]])).expect("written");
        npz.add_array("y", &arr2(&[y])).expect("written");
        npz.finish().expect("written");
        let mut command = Command::new(ARENITE);
        command.arg("diff").arg(&model).arg(&reference).args(more);
        command.output().expect("it starts")
    };
    for more in [&[][..], &["--json"]] {
        assert_eq!(diff([2.0, 0.0, 0.5], more).status.code(), Some(0), "{more:?}");
        let output = diff([2.0, 0.0, 0.75], more);
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            text.contains("0.125") || text.contains("1.250e-1"),
            "by an eighth of the largest: {text}"
        );
        // A difference within the tolerance that was asked for is none.
        let mut wide = more.to_vec();
        wide.extend(["--tolerance", "0.2"]);
        assert_eq!(diff([2.0, 0.0, 0.75], &wide).status.code(), Some(0), "{more:?}");
        assert_eq!(diff([2.0, f32::NAN, 0.5], more).status.code(), Some(1), "{more:?}");
    }
}

#[test]
fn diff_of_integers_wants_them_equal() {
    let bench = Bench::new();
    let cases = crate::common::models().join("tflite_ops");
    let model = bench.path("m.bin");
    let words = [&cases.join("conv_1x1.tflite"), Path::new("-o"), &model];
    done(run(PACK, &words));
    let mut archive = ndarray_npy::NpzReader::new(File::open(cases.join("cases.npz")).expect("opens")).expect("npz");
    let mut first = |key: &str| -> ArrayD<i8> {
        let all: ArrayD<i8> = archive.by_name::<ndarray::OwnedRepr<i8>, IxDyn>(key).expect("an array");
        all.index_axis(ndarray::Axis(0), 0).to_owned()
    };
    let (x, y) = (first("conv_1x1/in_0"), first("conv_1x1/out_0"));
    for (add, status) in [(0, 0), (1, 1), (-1, 1)] {
        let reference = bench.path("r.npz");
        let mut npz = NpzWriter::new(File::create(&reference).expect("made"));
        let mut changed = y.clone();
        let last = changed.last_mut().expect("not empty");
        *last = last.wrapping_add(add);
        npz.add_array("t0", &x).expect("written");
        npz.add_array("t3", &changed).expect("written");
        npz.finish().expect("written");
        let output = run(ARENITE, &[Path::new("diff"), &model, &reference]);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Two operators where the other network has the first alone.
const SQUARES: &str = r#"{
  "arenite_trace": 1, "name": "squares", "inputs": ["x"], "outputs": ["z"],
  "tensors": {
    "x": {"dtype": "f32", "shape": [1, 3], "role": "input"},
    "y": {"dtype": "f32", "shape": [1, 3], "role": "activation"},
    "z": {"dtype": "f32", "shape": [1, 3], "role": "activation"}
  },
  "ops": [
    {"name": "relu", "op": "relu", "inputs": ["x"], "outputs": ["y"]},
    {"name": "square", "op": "square", "inputs": ["y"], "outputs": ["z"]}
  ]
}"#;

#[test]
fn two_models_stand_side_by_side() {
    let bench = Bench::new();
    let (scores, trace, squares, inputs) = (
        model(&bench),
        bench.path("q.trace.json"),
        bench.path("q.bin"),
        bench.path("x.npy"),
    );
    fs::write(&trace, SQUARES).expect("written");
    done(run(PACK, &[&trace, Path::new("-o"), &squares]));
    write_npy(&inputs, &arr2(&[[3.0f32, -1.0, 2.0]])).expect("written");
    let compare = |second: &Path, more: &[&Path]| {
        let words = [&[Path::new("compare"), &scores, second], more].concat();
        done(run(ARENITE, &words))
    };
    let with = [Path::new("--input"), inputs.as_path(), Path::new("--json")];
    let report = json(&compare(&squares, &with));
    // By hand: 3, 0, 2 beside 9, 0, 4; the largest difference is twice the largest of the first.
    assert_eq!(
        report["outputs"],
        serde_json::json!([{"a": "y", "b": "z", "equal": false, "relative_error": 2.0}])
    );
    let figure = |name: &str| {
        let figures = report["figures"].as_array().expect("a list");
        let found = figures.iter().find(|figure| figure["name"] == name).expect(name);
        [found["a"].as_u64(), found["b"].as_u64()]
    };
    assert_eq!(figure("steps"), [Some(1), Some(2)]);
    let size = |path: &Path| Some(fs::metadata(path).expect("written").len());
    assert_eq!(figure("model_bytes"), [size(&scores), size(&squares)]);
    let steps = report["step_list"].as_array().expect("a list");
    let names: Vec<_> = steps
        .iter()
        .map(|step| step["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["relu", "square"]);
    assert_eq!(steps[0]["a"], steps[0]["b"]);
    assert!(steps[1]["a"].is_null() && !steps[1]["b"].is_null());
    let report = json(&compare(&scores, &with));
    assert_eq!(report["outputs"][0]["equal"], true);
    let text = compare(&squares, &[]);
    for part in ["steps: 1 the same, 1 differ", "outputs: not computed", "arena bytes"] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn models_of_other_inputs_are_not_run_on_the_same() {
    let bench = Bench::new();
    let (scores, other) = (model(&bench), bench.packed("mlp"));
    let inputs = bench.path("x.npy");
    write_npy(&inputs, &arr2(&[[3.0f32, 1.0, 2.0]])).expect("written");
    let words = [Path::new("compare"), &scores, &other, Path::new("--input"), &inputs];
    let message = refused(run(ARENITE, &words), 1);
    assert!(message.contains("x.npy"), "{message}");
    json(&done(run(
        ARENITE,
        &[words[0], words[1], words[2], Path::new("--json")],
    )));
}

#[test]
fn a_watched_network_is_packed_again_when_it_changes() {
    use std::io::{BufRead, BufReader};
    let bench = Bench::new();
    let trace = bench.path("n.trace.json");
    fs::write(&trace, SCORES).expect("written");
    let mut watch = Command::new(ARENITE);
    watch.arg("watch").arg(&trace).args(["--", "--name", "watched"]);
    let pipe = std::process::Stdio::piped;
    let mut child = watch.stdout(pipe()).stderr(pipe()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut turn = || {
        let text = lines.by_ref().map(|line| line.expect("UTF-8"));
        let turn: Vec<String> = text
            .take_while(|line| !line.starts_with("waiting for a change of "))
            .collect();
        turn.join("\n")
    };
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    let first = turn();
    assert!(
        row(&first, "steps ").ends_with(&["1".into(), "1".into(), "1.000".into()]),
        "{first}"
    );
    // An error of packing is reported, and waited out.
    fs::write(&trace, SCORES.replace("relu", "rely")).expect("written");
    assert_eq!(turn().trim(), "");
    fs::write(&trace, SQUARES).expect("written");
    let second = turn();
    assert_eq!(row(&second, "steps "), ["steps", "1", "2", "2.000"], "{second}");
    assert!(second.contains("steps: 1 the same, 1 differ"), "{second}");
    assert!(
        row(&second, "params").is_empty(),
        "what has not changed is not shown: {second}"
    );
    child.kill().expect("it runs");
    let said = child.wait_with_output().expect("it ends").stderr;
    assert!(String::from_utf8_lossy(&said).contains("rely"), "the error is shown");
}

#[test]
fn a_watch_writes_no_file_and_watches_none_that_is_not_there() {
    let bench = Bench::new();
    let model = model(&bench);
    let trace = bench.path("s.trace.json");
    for option in ["-o", "--output=x.bin", "-ox.bin"] {
        let words = [Path::new("watch"), &trace, Path::new("--"), Path::new(option)];
        assert!(refused(run(ARENITE, &words), 2).contains("temporary"), "{option}");
    }
    for missing in [Path::new("missing.json"), &bench.path("")] {
        let words = [Path::new("watch"), missing];
        assert!(refused(run(ARENITE, &words), 1).contains("no file"), "{missing:?}");
    }
    assert!(model.is_file());
}
