//! Imported TensorFlow Lite models against TensorFlow Lite Micro: integers bit for bit, f32 within 1e-5.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::import::ImportOptions;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::{shared, skip};
use ndarray::{ArrayD, Axis};
use ndarray_npy::NpzReader;

/// A NumPy array as dtype name and bytes of each element along the first axis.
struct Runs(Vec<Vec<u8>>);

struct Archive(NpzReader<std::fs::File>);

impl Archive {
    fn open(path: &Path) -> Self {
        let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(NpzReader::new(file).expect("an npz file"))
    }

    fn names(&mut self) -> Vec<String> {
        let names = self.0.names().expect("names");
        names
            .into_iter()
            .map(|n| n.trim_end_matches(".npy").to_string())
            .collect()
    }

    /// The rows of an array, little-endian.
    fn runs(&mut self, key: &str) -> Runs {
        macro_rules! try_type {
            ($($t:ty)*) => {$(
                if let Ok(array) = self.0.by_name::<ndarray::OwnedRepr<$t>, ndarray::IxDyn>(key) {
                    let array: ArrayD<$t> = array;
                    let rows = array.axis_iter(Axis(0));
                    return Runs(rows.map(|row| row.iter().flat_map(|v| bytes_of(*v)).collect()).collect());
                }
            )*};
        }
        try_type!(i8 u8 i16 i32 f32 bool);
        panic!("{key} is of no known type");
    }
}

trait LittleEndian {
    fn little_endian(self) -> Vec<u8>;
}

macro_rules! little_endian {
    ($($t:ty)*) => {$(
        impl LittleEndian for $t {
            fn little_endian(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}
little_endian!(i8 u8 i16 i32 f32);

impl LittleEndian for bool {
    fn little_endian(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
}

fn bytes_of<T: LittleEndian>(value: T) -> Vec<u8> {
    value.little_endian()
}

fn packed(input: &Path, folder: &Path) -> Result<ModelFile, arenite_host::Error> {
    let output = folder
        .join(input.file_stem().expect("a name"))
        .with_extension("arenite");
    let options = Options {
        input: input.to_path_buf(),
        output: output.clone(),
        dialect: None,
        weights: None,
        import: ImportOptions::default(),
        target: Target::Portable,
        plan_nodes: 2000,
        in_place: true,
        name: None,
        labels: Vec::new(),
        dump_after: None,
    };
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(&output)
}

/// What differs between `got` and `expected`, if anything.
fn difference(dtype: DType, got: &[u8], expected: &[u8]) -> Option<String> {
    if dtype != DType::F32 {
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        let count = got.iter().zip(expected).filter(|(a, b)| a != b).count();
        return match (got.len() == expected.len(), at) {
            (false, _) => Some(format!("{} bytes, expected {}", got.len(), expected.len())),
            (true, None) => None,
            (true, Some(at)) => Some(format!(
                "byte {at} is {}, expected {}; {count} differ",
                got[at], expected[at]
            )),
        };
    }
    let real = |bytes: &[u8]| -> Vec<f32> {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect()
    };
    let (got, expected) = (real(got), real(expected));
    let largest = expected.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
    let worst = got
        .iter()
        .zip(&expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f32, f32::max);
    let same = got.len() == expected.len() && worst <= 1e-5 * largest && got.iter().all(|x| x.is_finite());
    (!same).then(|| format!("relative error {}", worst / largest))
}

/// Runs a model on arrays and compares all outputs; `None` where they are as expected.
fn mismatch(
    model: &Path,
    folder: &Path,
    archive: &mut Archive,
    inputs: &[String],
    outputs: &[String],
    reset: bool,
) -> Option<String> {
    let file = match packed(model, folder) {
        Ok(file) => file,
        Err(error) => return Some(error.to_string()),
    };
    let model = file.load().expect("it loads");
    let inputs: Vec<Runs> = inputs.iter().map(|key| archive.runs(key)).collect();
    let runs: Vec<Vec<Vec<u8>>> = (0..inputs[0].0.len())
        .map(|run| inputs.iter().map(|input| input.0[run].clone()).collect())
        .collect();
    let results = match run(&model, &runs, reset, &mut |_, _, _| {}) {
        Ok(results) => results,
        Err(error) => return Some(error.to_string()),
    };
    for (port, key) in outputs.iter().enumerate() {
        let expected = archive.runs(key);
        let dtype = model.output(port).expect("an output").dtype;
        for (index, (result, expected)) in results.iter().zip(&expected.0).enumerate() {
            if let Some(text) = difference(dtype, &result[port], expected) {
                return Some(format!("{key}, run {index}: {text}"));
            }
        }
    }
    None
}

fn operators() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops")
}

/// Cases that the importer refuses by name, or whose TensorFlow Lite Micro kernel is another arithmetic.
const REFUSED: &[&str] = &[
    "arg_min_",
    "squared_difference_int",
    "div_i8",
    "linear_weights_zero_point",
];

#[test]
fn every_single_operator_is_as_in_tensorflow_lite_micro() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(&operators().join("cases.npz"));
    let mut cases: BTreeMap<String, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for key in archive.names() {
        let (case, array) = key.split_once('/').expect("case/array");
        let (inputs, outputs) = cases.entry(case.to_string()).or_default();
        if array.starts_with("in_") { inputs } else { outputs }.push(key.clone());
    }
    let mut wrong = Vec::new();
    for (case, (mut inputs, mut outputs)) in cases {
        inputs.sort();
        outputs.sort();
        let path = operators().join(format!("{case}.tflite"));
        let found = mismatch(&path, folder.path(), &mut archive, &inputs, &outputs, false);
        match (found, REFUSED.iter().any(|r| case.starts_with(r))) {
            (Some(text), false) => wrong.push(format!("{case}: {text}")),
            (None, true) => wrong.push(format!("{case}: runs, but is listed as refused")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_real_model_is_as_in_tensorflow_lite_micro() {
    let Some(shared) = shared() else {
        return skip("every_real_model_is_as_in_tensorflow_lite_micro", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let models = shared.join("data/models");
    let mut wrong = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(&models).expect("models") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "tflite") || name == "kws_ref_model_float32" {
            continue;
        }
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        let keys = archive.names();
        for set in ["rand", "real", "seq", "seqreal"] {
            let with = |prefix: &str| {
                let mut keys: Vec<String> = keys.iter().filter(|k| k.starts_with(prefix)).cloned().collect();
                keys.sort();
                keys
            };
            let (inputs, outputs) = (with(&format!("in_{set}_")), with(&format!("out_{set}_tflm_")));
            if inputs.is_empty() || outputs.is_empty() {
                continue;
            }
            let reset = !set.starts_with("seq");
            if let Some(text) = mismatch(&path, folder.path(), &mut archive, &inputs, &outputs, reset) {
                wrong.push(format!("{name}: {text}"));
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 21, "{compared} sets were compared");
}
