//! The TensorFlow Lite importer on real files, on single operators, and on both with damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::{Step, Target};
use arenite_host::graph::check::check;
use arenite_host::graph::{TensorKind, facts};
use arenite_host::import::tflite::{import, operators};
use arenite_host::import::{ImportOptions, Imported};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, ErrorKind};
use arenite_tests::golden::packed;
use arenite_tests::{developers_words, properties, shared, skip};
use proptest::prelude::*;

fn read(path: &Path, content: &[u8]) -> Result<Imported, Error> {
    import(path, content, &ImportOptions::default())
}

fn packs(path: &Path) -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    pack(&Options::new(path, folder.path().join("m.bin")), &mut |_, _, _| {}).map(|_| ())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder of models")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tflite"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn committed() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops"))
}

#[test]
fn every_single_operator_is_imported() {
    let mut wrong = Vec::new();
    for path in committed() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let content = std::fs::read(&path).unwrap();
        match read(&path, &content) {
            Ok(imported) => {
                if let Err(error) = check(&imported.graph) {
                    wrong.push(format!("{name}: {error}"));
                }
                // Of hybrid operators and of float16 the weights become f32, and legacy uint8 becomes int8, which is said.
                let widened = ["hybrid", "halves", "legacy"].iter().any(|word| name.contains(word));
                if imported.warnings.is_empty() == widened {
                    wrong.push(format!("{name}: imported with warnings {:?}", imported.warnings));
                }
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Operators that packing computes, or that make nothing of their own, and those of which only other operators' cases tell.
const COMPUTED: [&str; 4] = ["BROADCAST_ARGS", "DENSIFY", "RANK", "SHAPE"];

/// Operators beside those of TensorFlow Lite Micro, with the number of committed cases of each and whose results they hold.
#[test]
fn the_document_has_the_operators_beside_tensorflow_lite_micros() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let micro = std::fs::read_to_string(models.join("micro_operators.txt")).unwrap();
    let by_litert = std::fs::read_to_string(models.join("tflite_ops/litert.txt")).unwrap();
    let mut cases: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for folder in ["tflite_ops", "tflite_wide", "tflite_signal"] {
        for path in files(&models.join(folder)) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let oracle = usize::from(by_litert.lines().any(|listed| listed == name));
            let imported = read(&path, &std::fs::read(&path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
            for kind in facts::operators(&imported.graph).into_keys() {
                cases.entry(kind).or_default()[oracle] += 1;
            }
        }
    }
    let mut rows: BTreeMap<&str, String> = BTreeMap::new();
    for (kind, version, types) in operators() {
        let types: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
        let types = if types.is_empty() {
            "-".to_string()
        } else {
            types.join(", ")
        };
        rows.insert(kind, format!("{version} | {types}"));
    }
    rows.extend(COMPUTED.map(|kind| (kind, "computed when packing | -".to_string())));
    for kind in micro.lines() {
        rows.entry(kind).or_insert_with(|| "refused | -".to_string());
    }
    let mut lines = "| operator | version | types | Micro has it | cases by Micro | by LiteRT |\n| --- | --- | --- | --- | ---: | ---: |\n".to_string();
    let (mut refused, mut untold) = (Vec::new(), Vec::new());
    for (kind, read) in rows {
        let has = if micro.lines().any(|other| other == kind) {
            "yes"
        } else {
            ""
        };
        let [own, other] = cases.get(kind).copied().unwrap_or_default();
        lines += &format!("| {kind} | {read} | {has} | {own} | {other} |\n");
        if read.starts_with("refused") {
            refused.push(kind);
        } else if own + other == 0 && !read.starts_with("computed") {
            untold.push(kind);
        }
    }
    println!("refused: {refused:?}; without a case: {untold:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operators.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let from = "<!-- beside Micro: generated -->\n";
    let start = text.find(from).expect("a start marker") + from.len();
    let end = start + text[start..].find("<!-- end -->").expect("an end marker");
    let made = format!("{}{lines}{}", &text[..start], &text[end..]);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(
        text == made,
        "ARENITE_BLESS=1 cargo test -p arenite-tests --test host tflite_import:: writes docs/operators.md"
    );
}

#[test]
fn every_real_model_is_imported() {
    let Some(shared) = shared() else {
        return skip("every_real_model_is_imported", "no shared data");
    };
    for path in files(&shared.join("data/models")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let content = std::fs::read(&path).unwrap();
        let imported = read(&path, &content);
        let imported = imported.unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&imported.graph).unwrap_or_else(|e| panic!("{name}: {e}"));
        let states = (imported.graph.tensors.iter()).filter(|t| matches!(t.kind, TensorKind::State(_)));
        let expected = match name.as_str() {
            "esphome_v2_vad" => 4,
            "tflm_keyword_scrambled" => 7,
            "tflm_mnist_lstm_int8" => 2,
            _ => 0,
        };
        assert_eq!(states.count(), expected, "{name}");
        let hybrid = imported.warnings.iter().any(|w| w.contains("5 hybrid operators"));
        assert_eq!(
            hybrid,
            name == "kws_ref_model_float32",
            "{name}: {:?}",
            imported.warnings
        );
    }
}

/// Against counts made of the files' shapes by another program (tests/oracle/make_counts.py).
#[test]
fn parameters_and_macs_are_those_of_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let text = std::fs::read_to_string(folder.join("counts.json")).unwrap();
    let expected: BTreeMap<String, (u64, u64)> = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, expected) in &expected {
        let path = folder.join(format!("{name}.tflite"));
        let Ok(imported) = read(&path, &std::fs::read(&path).unwrap()) else {
            continue;
        };
        let found = (facts::params(&imported.graph), facts::macs_per_element(&imported.graph));
        if found != *expected {
            wrong.push(format!("{name}: {found:?}, expected {expected:?}"));
        }
        compared += usize::from(expected.0 > 0 || expected.1 > 0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 60, "{compared} models have parameters");
}

/// Parameters of subgraphs count once, their products as often as they run: counted by hand.
#[test]
fn what_runs_again_is_counted_again() {
    for (name, params, macs) in [
        // Five units of five features, four times; the batch is two.
        ("while_dense", 30, 100),
        // 60 results of six taps, three times.
        ("while_depthwise", 21, 1080),
        // Four units of seven features and what their state begins with; six times, of an input of six rows.
        ("while_rows", 32, 28),
        // Seven features, four units, for each row.
        ("if_extents", 32, 28),
    ] {
        let (path, content) = case(name);
        let graph = read(&path, &content).unwrap().graph;
        let found = (facts::params(&graph), facts::macs_per_element(&graph));
        assert_eq!(found, (params, macs), "{name}");
    }
}

/// The body of a WHILE stands once in the packed file, and its copies on the way in and out are no steps.
#[test]
fn what_runs_again_is_stored_once() {
    let (path, _) = case("while_depthwise");
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(&path, folder.path(), Target::Portable).expect("it packs");
    let view = file.view().expect("sections");
    assert_eq!(view.steps().expect("steps").len(), 3);
    let weights = view.weights().len();
    assert!(weights < 128, "{weights} bytes for 18 weights and 3 channels");
}

/// Multiply-accumulates as the models' source states them.
#[test]
fn parameters_and_macs_of_real_models() {
    let Some(shared) = shared() else {
        return skip("parameters_and_macs_of_real_models", "no shared data");
    };
    for (name, params, macs) in [
        ("ad01_int8", 265_864, 264_192),
        ("ad01_fp32", 265_864, 264_192),
        ("kws_ref_model", 22_604, 2_656_768),
        ("vww_96_int8", 210_850, 7_489_664),
        ("pretrainedResnet_quant", 77_706, 12_501_632),
        ("pretrainedResnet_large_int8", 480_330, 76_473_920),
        ("str_ww_ref_model", 46_883, 826_368),
        ("tflm_keyword_scrambled", 21_474, 21_056),
        ("tflm_mnist_lstm_int8", 9_530, 113_120),
    ] {
        let path = shared.join(format!("data/models/{name}.tflite"));
        let graph = read(&path, &std::fs::read(&path).unwrap()).unwrap().graph;
        assert_eq!(
            (facts::params(&graph), facts::macs_per_element(&graph)),
            (params, macs),
            "{name}"
        );
    }
}

#[test]
fn truncated_files_are_refused_with_a_reason() {
    for path in committed().iter().step_by(17) {
        let content = std::fs::read(path).unwrap();
        for len in (0..content.len()).step_by(13) {
            match read(path, &content[..len]) {
                Err(error) => assert!(!error.message().is_empty()),
                // Padding at the end of the file may be missing.
                Ok(imported) => assert!(check(&imported.graph).is_ok()),
            }
        }
    }
}

#[test]
fn what_is_no_tflite_file_is_refused() {
    for content in [
        &b""[..],
        b"TFL3",
        b"\0\0\0\0TFL",
        b"\xFF\xFF\xFF\xFFTFL3",
        b"\0\0\0\0TFL3",
    ] {
        let error = read(Path::new("x.tflite"), content).expect_err("no model");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
}

/// Files with one mistake each, and what has to be said of it (tests/oracle/make_odd.py).
#[test]
fn mistakes_are_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_odd");
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(expected.len() >= 30);
    let mut wrong = Vec::new();
    for (name, expected) in expected {
        let path = folder.join(format!("{name}.tflite"));
        let imported = read(&path, &std::fs::read(&path).unwrap());
        // Shapes that contradict each other are the graph's own check's to find.
        let imported = imported.and_then(|i| check(&i.graph).map(|()| i));
        // Files that no translation contradicts, packing may.
        let imported = imported.and_then(|i| match expected.get("error") {
            Some(_) => packs(&path).map(|()| i),
            None => Ok(i),
        });
        let (said, words) = match (&imported, expected.get("error"), expected.get("warning")) {
            (Err(error), Some(words), _) => (error.to_string(), words),
            (Ok(imported), _, Some(words)) => (imported.warnings.join("\n"), words),
            (Err(error), ..) => {
                wrong.push(format!("{name}: refused: {error}"));
                continue;
            }
            (Ok(_), ..) => {
                wrong.push(format!("{name}: not refused"));
                continue;
            }
        };
        let words = words.as_array().unwrap().iter().map(|w| w.as_str().unwrap());
        let missing: Vec<&str> = words.filter(|w| !said.contains(w)).collect();
        if !missing.is_empty() {
            wrong.push(format!("{name}: {missing:?} is missing from: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Blocks of four bits under float32 are stored as they are.
#[test]
fn weights_of_four_bits_stay_four_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["blocks_float16", "blocks_float32"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_odd/{name}.tflite"));
        let model = folder.path().join(name);
        pack(&Options::new(path, &model), &mut |_, _, _| {}).expect("packs");
        let file = ModelFile::open(&model).expect("a file");
        let steps = file.view().and_then(|view| view.steps()).expect("steps");
        let share = steps.iter().find_map(|step| match step {
            Step::W4Conv2dF32(op) => Some(op.share),
            _ => None,
        });
        assert_eq!(share, Some(4), "{name}");
    }
}

/// Copies of `file` in which one occurrence of `value` is replaced.
fn replaced(file: &[u8], value: &[u8], by: &[u8]) -> Vec<Vec<u8>> {
    (0..=file.len().saturating_sub(value.len()))
        .filter(|&at| file[at..].starts_with(value))
        .map(|at| {
            let mut changed = file.to_vec();
            changed[at..at + by.len()].copy_from_slice(by);
            changed
        })
        .collect()
}

fn case(name: &str) -> (PathBuf, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_ops/{name}.tflite"));
    let content = std::fs::read(&path).unwrap();
    (path, content)
}

#[test]
fn a_zero_scale_is_refused_by_name() {
    let (path, content) = case("add_int8");
    let changed = replaced(&content, &0.05_f32.to_le_bytes(), &0.0_f32.to_le_bytes());
    assert_eq!(changed.len(), 1);
    let error = read(&path, &changed[0]).expect_err("a zero scale").to_string();
    assert!(error.contains("scale 0") && error.contains("`t0`"), "{error}");
}

#[test]
fn an_overflowing_shape_is_refused_by_name() {
    let (path, content) = case("logistic_0");
    let shape: Vec<u8> = [1_i32, 256].iter().flat_map(|d| d.to_le_bytes()).collect();
    let huge: Vec<u8> = [i32::MAX; 2].iter().flat_map(|d| d.to_le_bytes()).collect();
    let changed = replaced(&content, &shape, &huge);
    assert_eq!(changed.len(), 2);
    for changed in changed {
        let error = read(&path, &changed).expect_err("an overflowing shape").to_string();
        assert!(
            error.contains("shape [2147483647, 2147483647]") && error.contains("fewer than"),
            "{error}"
        );
    }
}

#[test]
fn an_unsupported_operator_is_named_with_a_remedy() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_odd/detections_type.tflite");
    let content = std::fs::read(&path).unwrap();
    let error = read(&path, &content).expect_err("not supported").to_string();
    assert!(
        error.contains("TFLite_Detection_PostProcess") && error.contains("`t3`") && error.contains("f32"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(properties::config("tflite_import", 12.0))]

    /// No damage makes the importer or the graph's check panic.
    #[test]
    fn damaged_bytes_are_an_error_or_a_graph(
        pick: prop::sample::Index,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let all = committed();
        let path = pick.get(&all);
        let mut content = std::fs::read(path).unwrap();
        for (at, value) in damage {
            let at = at.index(content.len());
            content[at] = value;
        }
        match read(path, &content) {
            Ok(imported) => prop_assert!(check(&imported.graph).is_ok(), "an inconsistent network"),
            Err(error) => prop_assert_eq!(developers_words(&error.to_string()), None, "{}", error),
        }
    }

    /// The same, aimed at offsets and lengths.
    #[test]
    fn damaged_words_are_an_error_or_a_graph(
        pick: prop::sample::Index,
        at: prop::sample::Index,
        value in prop::sample::select(vec![0_u32, 1, 4, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_FFFC, 1 << 16]),
    ) {
        let all = committed();
        let path = pick.get(&all);
        let mut content = std::fs::read(path).unwrap();
        let at = at.index(content.len() / 4) * 4;
        content[at..at + 4].copy_from_slice(&value.to_le_bytes());
        if let Ok(imported) = read(path, &content) {
            prop_assert!(check(&imported.graph).is_ok(), "an inconsistent network");
        }
    }
}
