//! `--state`: an input that a tensor of the run before becomes, whatever the format.

use std::path::{Path, PathBuf};

use arenite_host::graph::{Graph, TensorId};
use arenite_host::import::{ImportOptions, import};
use arenite_host::model::run;
use arenite_tests::writers::Random;

use super::borders::{computed, inputs, packed};
use super::onnx_file::{File, floats, stored, value};

/// Runs of a sequence.
const RUNS: usize = 5;

/// `past` halves, `x` is added: `present`; and `y`, what of it is above zero.
fn decaying(shape: &[i64]) -> File {
    File::default()
        .input(&value("x", 1, shape))
        .input(&value("past", 1, &[2, 3]))
        .holding(&floats("half", &[], &[0.5]))
        .node("Mul", &["past", "half"], "kept", &[])
        .node("Add", &["kept", "x"], "present", &[])
        .node("Relu", &["present"], "y", &[])
        .output(&value("y", 1, &[2, 3]))
        .output(&value("present", 1, &[2, 3]))
}

fn file(folder: &tempfile::TempDir, file: &File) -> PathBuf {
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, file.bytes(13)).expect("written");
    path
}

fn keeping(states: &[&str]) -> ImportOptions {
    ImportOptions {
        state: states.iter().map(ToString::to_string).collect(),
        ..ImportOptions::default()
    }
}

#[test]
fn an_input_becomes_what_the_run_before_computed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, &decaying(&[2, 3]));
    for text in ["past=present", "present=past"] {
        let kept = packed(&path, keeping(&[text])).expect("it packs");
        assert_eq!(inputs(&kept), ["x"]);
        let mut random = Random::new(3);
        let given: Vec<Vec<f32>> = (0..RUNS)
            .map(|_| (0..6).map(|_| random.below(64) as f32 - 32.0).collect())
            .collect();
        let runs: Vec<Vec<Vec<u8>>> = given.iter().map(|x| vec![stored(x)]).collect();
        let model = kept.load().expect("it loads");
        let found = run(&model, &runs, false, &mut |_, _, _| {}).expect("it runs");
        let mut past = vec![0.0_f32; 6];
        for (x, found) in given.iter().zip(&found) {
            past = past.iter().zip(x).map(|(past, x)| past * 0.5 + x).collect();
            let y: Vec<f32> = past.iter().map(|value| value.max(0.0)).collect();
            assert_eq!(found, &[stored(&y), stored(&past)]);
        }
        // Each started afresh.
        let found = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
        for (x, found) in given.iter().zip(&found) {
            assert_eq!(found[1], stored(x));
        }
    }
}

/// An input and an output of one shape, type and scale, where there is another input.
fn alike(graph: &Graph) -> Option<(TensorId, TensorId)> {
    let pairs = graph
        .inputs
        .iter()
        .flat_map(|&input| graph.outputs.iter().map(move |&output| (input, output)));
    let computed = |id: &TensorId| graph.nodes.iter().any(|node| node.outputs.contains(id));
    pairs
        .filter(|(_, output)| graph.inputs.len() > 1 && computed(output))
        .find(|&(input, output)| {
            let [input, output] = [input, output].map(|id| graph.tensor(id));
            (&input.shape, input.dtype, &input.quant) == (&output.shape, output.dtype, &output.quant)
        })
}

/// Runs the file with a state, and without one with the value carried by hand: the same bytes. `None` where no input can be one.
fn carried(path: &Path) -> Option<()> {
    let (_, imported) = import(path, None, &ImportOptions::default()).ok()?;
    let graph = imported.graph;
    let (input, output) = alike(&graph)?;
    let name = |id: TensorId| graph.tensor(id).name.clone();
    let (position, answer) = (
        graph.inputs.iter().position(|id| *id == input)?,
        graph.outputs.iter().position(|id| *id == output)?,
    );
    let told = format!("{}: {} to {}", path.display(), name(output), name(input));
    let whole = packed(path, ImportOptions::default()).ok()?;
    if whole.view().expect("a model").header().state_runs > 0 {
        return None;
    }
    let kept = packed(path, keeping(&[&format!("{}={}", name(input), name(output))]));
    let kept = kept.unwrap_or_else(|error| panic!("{told}: {error}"));
    let sizes: Vec<usize> = (0..graph.inputs.len())
        .map(|index| {
            whole
                .load()
                .expect("it loads")
                .input(index)
                .expect("an input")
                .bytes()
                .expect("a size") as usize
        })
        .collect();
    let zero = graph
        .tensor(input)
        .quant
        .as_ref()
        .map_or(0, |quant| quant.zero_point[0]) as u8;
    let (mut random, mut before, mut runs, mut expected) =
        (Random::new(5), vec![zero; sizes[position]], Vec::new(), Vec::new());
    for _ in 0..RUNS {
        // Small numbers of any type: no NaN, nothing out of range.
        let mut given: Vec<Vec<u8>> = sizes
            .iter()
            .map(|&bytes| (0..bytes).map(|_| random.below(50) as u8).collect())
            .collect();
        given[position] = before;
        let outputs = computed(&whole, given.clone());
        before = outputs[answer].clone();
        given.remove(position);
        runs.push(given);
        expected.push(outputs);
    }
    let found = run(&kept.load().expect("it loads"), &runs, false, &mut |_, _, _| {}).expect("it runs");
    assert!(found == expected, "{told}");
    Some(())
}

#[test]
fn a_state_is_what_a_caller_would_carry() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let list = |folder: &str| {
        let entries = std::fs::read_dir(models.join(folder)).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let tflite: Vec<PathBuf> = list("tflite_ops")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "tflite"))
        .collect();
    let onnx: Vec<PathBuf> = list("onnx")
        .into_iter()
        .map(|folder| folder.join("model.onnx"))
        .collect();
    let counts = [tflite, onnx].map(|files| files.iter().filter_map(|path| carried(path)).count());
    println!("{counts:?} files with a state");
    assert!(counts[0] >= 10 && counts[1] >= 4, "{counts:?}");
}

#[test]
fn what_is_no_state_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, &decaying(&[2, 3]));
    for (states, parts) in [
        (&["past"][..], &["--state past", "IN=OUT"][..]),
        (&["past=presnt"], &["no such tensor that is computed", "`present`"]),
        (&["presnt=past"], &["presnt", "`present`"]),
        (&["pst=present"], &["pst: there is no such input", "`past`"]),
        (&["past=x"], &["both are inputs"]),
        (
            &["past=present", "past=y"],
            &["--state past=y", "there is no such input"],
        ),
        (&["past=present", "x=y"], &["every input is a state"]),
    ] {
        let text = packed(&path, keeping(states)).map(drop).expect_err("no state");
        assert!(parts.iter().all(|part| text.contains(part)), "{states:?}: {text}");
    }
    let path = file(&folder, &decaying(&[3]));
    let text = packed(&path, keeping(&["x=present"]))
        .map(drop)
        .expect_err("another shape");
    assert!(
        text.contains("`present` is f32[2, 3]") && text.contains("f32[3], as `x` is"),
        "{text}"
    );
}
