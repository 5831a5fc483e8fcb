//! Programs of `torch.export.save`: what PyTorch computes of them, in each layout of the file, and files that are damaged, hostile, or ask for what there is
//! not: an error that says what and where; never a panic.

mod arguments;
mod hostile;
mod pickles;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::{DType, Target};
use arenite_host::compare::to_f64;
use arenite_host::graph::check::check;
use arenite_host::import::pt2::{calls, import};
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::pack;
use arenite_tests::golden::{options, packed};
use arenite_tests::oracle::compared;
use arenite_tests::skip;
use arenite_tests::writers::pt2::{Entry, archive, small, zip};
use safetensors::{Dtype, SafeTensors};

/// The largest difference from PyTorch's outputs, of the largest of them.
const CLOSE: f64 = 1e-5;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn folder() -> PathBuf {
    root().join("tests/models/pt2")
}

/// The networks, by name.
fn networks() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder");
    let names = entries.filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        name.strip_suffix(".pt2").map(String::from)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Elements of an array as real numbers.
fn reals(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        Dtype::F32 => to_f64(DType::F32, bytes),
        Dtype::I64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| i64::from_le_bytes(*b) as f64)
            .collect(),
        Dtype::BOOL => bytes.iter().map(|&b| f64::from(b)).collect(),
        other => panic!("samples of {other:?}"),
    }
}

/// Elements as a port of the network stores them.
fn stored(dtype: DType, values: &[f64]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|&value| match dtype {
        DType::F32 => (value as f32).to_le_bytes(),
        DType::I32 => (value as i32).to_le_bytes(),
        other => panic!("an input of {other:?}"),
    });
    bytes.collect()
}

/// Returns the differences of a packed network on samples: of each run and output the largest difference from PyTorch's, of its largest.
fn differences(file: &ModelFile, samples: &Path) -> Vec<(String, f64)> {
    let bytes = std::fs::read(samples).expect("samples");
    let arrays = SafeTensors::deserialize(&bytes).expect("arrays");
    let view = file.view().expect("a view");
    let model = file.load().expect("it loads");
    let mut found = Vec::new();
    for number in 0.. {
        let array = |kind: &str, port: usize| {
            let array = arrays.tensor(&format!("{kind}.{number}.{port}")).ok()?;
            Some(reals(array.dtype(), array.data()))
        };
        if array("in", 0).is_none() {
            break;
        }
        let inputs = view.inputs.iter().enumerate();
        let inputs = inputs.map(|(port, input)| stored(input.dtype, &array("in", port).expect("an input")));
        let results = run(&model, &[inputs.collect()], true, &mut |_, _, _| {}).expect("it runs");
        assert!(array("out", view.outputs.len()).is_none(), "an output is missing");
        for (port, output) in view.outputs.iter().enumerate() {
            let (got, expected) = (
                to_f64(output.dtype, &results[0][port]),
                array("out", port).expect("an output"),
            );
            assert_eq!(got.len(), expected.len(), "output {port}");
            let largest = expected
                .iter()
                .filter(|v| v.is_finite())
                .fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()));
            let apart = |(a, b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() / largest };
            let pairs = got.iter().zip(&expected);
            let worst = pairs.map(apart).fold(
                0.0_f64,
                |most, far| if far.is_nan() { f64::INFINITY } else { most.max(far) },
            );
            found.push((format!("run {number}, output {port}"), worst));
        }
    }
    found
}

#[test]
fn programs_compute_what_pytorch_does() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for name in networks().iter().filter(|name| !name.starts_with("open_")) {
        let file = match packed(&folder().join(format!("{name}.pt2")), scratch.path(), Target::Portable) {
            Ok(file) => file,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let own = name.trim_end_matches("_2_5").trim_end_matches("_2_8");
        let found = differences(&file, &folder().join(format!("{own}.samples.safetensors")));
        count += found.len();
        let far = found.iter().filter(|(_, far)| *far > CLOSE);
        wrong.extend(far.map(|(place, far)| format!("{name}, {place}: {far}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    compared("PyTorch", count, 40);
}

/// Imports a file; returns the error, if there is one.
fn said(content: &[u8], options: &ImportOptions) -> Result<(), String> {
    let imported = import(Path::new("nowhere/m.pt2"), content, options).map_err(|e| e.to_string())?;
    check(&imported.graph).expect("an importer returned an inconsistent network");
    Ok(())
}

fn refused(content: &[u8], parts: &[&str]) {
    let text = said(content, &ImportOptions::default()).expect_err("it is refused");
    for part in parts {
        assert!(text.contains(part), "{text} lacks `{part}`");
    }
}

#[test]
fn the_archive_is_known_by_its_content() {
    let is = |content: &[u8]| {
        let found: Vec<_> = DIALECTS
            .iter()
            .filter(|d| (d.recognises)(content))
            .map(|d| d.name)
            .collect();
        found == ["pt2"]
    };
    assert!(is(&archive(&small())));
    for name in networks() {
        assert!(
            is(&std::fs::read(folder().join(format!("{name}.pt2"))).expect("a file")),
            "{name}"
        );
    }
    assert!(!is(&zip(&[
        Entry::stored("m/data.pkl", b""),
        Entry::stored("models/x.txt", b"")
    ])));
    said(&archive(&small()), &ImportOptions::default()).expect("it is read");
}

/// The file of the layouts of older releases is the same network.
#[test]
fn each_layout_is_the_same_network() {
    let scratch = tempfile::tempdir().expect("a folder");
    let files = ["mlp", "mlp_2_8", "mlp_2_5"].map(|name| {
        let file = packed(&folder().join(format!("{name}.pt2")), scratch.path(), Target::Portable).expect("packs");
        let view = file.view().expect("a view");
        (view.weights().to_vec(), format!("{:?}", view.steps().expect("steps")))
    });
    assert!(!files[0].0.is_empty());
    assert_eq!(files[0], files[1]);
    assert_eq!(files[0], files[2]);
}

/// Extents that the program leaves open, by the options that ONNX has for them.
#[test]
fn open_extents_are_given_by_options() {
    let scratch = tempfile::tempdir().expect("a folder");
    let shapes = |name: &str, change: &dyn Fn(&mut ImportOptions)| {
        let mut options = options(&folder().join(format!("{name}.pt2")), scratch.path(), Target::Portable);
        change(&mut options.import);
        pack(&options, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
        let file = ModelFile::open(&options.output).expect("a file");
        let view = file.view().expect("a view");
        let shape = |slice: &[u32]| slice.to_vec();
        Ok::<_, String>([
            shape(view.inputs[0].shape.as_slice()),
            shape(view.outputs[0].shape.as_slice()),
        ])
    };
    assert_eq!(
        shapes("open_batch", &|_| {}).expect("packs"),
        [vec![1, 3, 8], vec![1, 4]]
    );
    assert_eq!(
        shapes("open_batch", &|o| o.batch = Some(3)).expect("packs"),
        [vec![3, 3, 8], vec![3, 4]]
    );
    let text = shapes("open_rows", &|_| {}).expect_err("rows and columns are open");
    assert!(
        text.contains("dynamic shape: axis 2 of [1, 3,") && text.contains("--input-shape"),
        "{text}"
    );
    let given = shapes("open_rows", &|o| o.input_shape = Some(vec![1, 3, 8, 6])).expect("packs");
    assert_eq!(given, [vec![1, 3, 8, 6], vec![1, 4]]);
    // Of the extents that the samples have, the network computes what PyTorch does.
    let mut count = 0;
    for (name, shape) in [("open_batch", vec![2, 3, 8]), ("open_rows", vec![1, 3, 8, 6])] {
        let mut options = options(&folder().join(format!("{name}.pt2")), scratch.path(), Target::Portable);
        options.import.input_shape = Some(shape);
        pack(&options, &mut |_, _, _| {}).expect("packs");
        let file = ModelFile::open(&options.output).expect("a file");
        let found = differences(&file, &folder().join(format!("{name}.samples.safetensors")));
        count += found.len();
        assert!(found.iter().all(|(_, far)| *far <= CLOSE), "{name}: {found:?}");
    }
    compared("PyTorch", count, 4);
}

/// `docs/pt2.md` has the calls that the importer's rows have.
#[test]
fn the_document_lists_the_calls() {
    let all = calls();
    assert!(all.len() >= 250, "{}", all.len());
    let mut table = "| call | limits |\n| --- | --- |\n".to_string();
    let (limited, free): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, limits)| !limits.is_empty());
    for (name, limits) in limited {
        table += &format!("| {name} | {limits} |\n");
    }
    let free: Vec<String> = free.iter().map(|(name, _)| format!("`{name}`")).collect();
    let mut line = String::new();
    for name in &free {
        if line.len() + name.len() > 150 {
            table += &format!("\n{}", line.trim_end());
            line.clear();
        }
        line += &format!("{name}, ");
    }
    table += &format!("\n{}\n", line.trim_end_matches(", "));
    let path = root().join("docs/pt2.md");
    let text = std::fs::read_to_string(&path).expect("the document");
    let from = "<!-- calls: generated -->\n";
    let start = text.find(from).expect("a start marker") + from.len();
    let end = start + text[start..].find("<!-- end -->").expect("an end marker");
    let made = format!("{}{}{}", &text[..start], table, &text[end..]);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    assert!(
        text == made,
        "docs/pt2.md has other calls: ARENITE_BLESS=1 cargo test -p arenite-tests --test host pt2::"
    );
}

#[test]
#[ignore = "long: needs PyTorch"]
fn made_anew_they_are_the_same() {
    let python = std::env::var("ARENITE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let run = |arguments: &[&str]| Command::new(&python).args(arguments).current_dir(root()).output();
    if !run(&["-c", "import torch, safetensors"]).is_ok_and(|output| output.status.success()) {
        return skip("made_anew_they_are_the_same", "no PyTorch");
    }
    let output = run(&["tests/oracle/make_pt2.py", "--check"]).expect("it runs");
    let said = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    compared("PyTorch", networks().len(), 20);
}
