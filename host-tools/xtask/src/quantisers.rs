//! Other quantisers on the same networks and calibration sets: `tests/oracle/quantisers.py` runs them, here their answers are judged.

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::{DType, Target};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, Result, files};
use ndarray::{Array1, Array2, ArrayD, Axis};
use ndarray_npy::{NpzReader, NpzWriter, read_npy};
use serde::{Deserialize, Serialize};

use crate::quantise::{self, Fold, Pool, SUBJECTS};

/// File in `tests/results`.
pub const FILE: &str = "quantisers.json";

/// The networks of `tests/models/digits`.
const DIGITS: [&str; 3] = ["digits", "residual", "mlp"];
/// Every ninth image of the held-out set calibrates; all of them judge.
const STEP: usize = 9;

/// Arenite among the quantisers, and whether `--optimise-rounding` is passed.
pub(crate) const OURS: [(&str, bool); 2] = [("Arenite", false), ("Arenite, --optimise-rounding", true)];

/// Among the quantisers: the float network itself.
const FLOAT: &str = "float";

/// Result of a quantiser for a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The network.
    pub network: String,
    /// The quantiser, with its method where it has several.
    pub quantiser: String,
    /// Pooled SNR of what it answers before the last softmax, in dB; none for the float network itself, whose quantiser is `float`.
    pub snr_db: Option<f64>,
    /// Images whose class is right; of the digits alone.
    pub right: Option<usize>,
}

/// A network that is judged.
struct Network {
    name: &'static str,
    /// The float network.
    input: PathBuf,
    folds: Vec<Fold>,
}

/// Where everything is.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The `.tflite` files, beside `golden`.
    pub models: &'a Path,
    /// A Python with what the script names.
    pub python: &'a Path,
}

/// Judges the networks of these names, all where there are none.
///
/// # Errors
/// Where a file is not there, a network does not pack, or the script fails.
pub fn measure(places: &Places<'_>, names: &[String], note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let scratch = files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let (sets, answers) = (scratch.path().join("sets"), scratch.path().join("answers"));
    std::fs::create_dir(&sets).map_err(|e| Error::io(&sets, "make a folder", &e))?;
    let wanted = |name: &str| names.is_empty() || names.iter().any(|other| other == name);
    let networks: Vec<Network> = networks(places)?
        .into_iter()
        .filter(|network| wanted(network.name))
        .collect();
    for network in &networks {
        write(&sets.join(format!("{}.npz", network.name)), &network.folds)?;
    }

    let mut command = Command::new(places.python);
    command.arg(places.root.join("tests/oracle/quantisers.py"));
    command.args([&sets, places.models, &answers]);
    let status = command.status();
    let failed = |what: String| Error::input(format!("{} {what}", places.python.display()));
    let status = status.map_err(|e| failed(format!("does not start: {e}")))?;
    if !status.success() {
        return Err(
            failed(format!("ended with {status}")).help("install what the head of tests/oracle/quantisers.py names")
        );
    }

    let labels: Array1<i64> =
        read_npy(digits(places.root, "test_labels.npy")).map_err(|e| Error::input(format!("the labels: {e}")))?;
    let mut rows = Vec::new();
    for network in &networks {
        let float = packed(network, &scratch.path().join("float"), None)?;
        let expected = network.folds.iter().map(|fold| quantise::answers(&float, &fold.judged));
        let expected = expected.collect::<Result<Vec<_>>>()?;
        let right = |answers: &[Vec<Vec<f64>>]| {
            let pairs = answers.iter().flatten().zip(&labels);
            let right = pairs.filter(|(scores, label)| largest(scores) as i64 == **label);
            DIGITS.contains(&network.name).then(|| right.count())
        };
        rows.push(Row {
            network: network.name.to_owned(),
            quantiser: FLOAT.to_owned(),
            snr_db: None,
            right: right(&expected),
        });
        let mut judge = |quantiser: String, found: &[Vec<Vec<f64>>]| {
            let mut pool = Pool::default();
            for (expected, found) in expected.iter().flatten().zip(found.iter().flatten()) {
                pool.add(expected, found);
            }
            let row = Row {
                network: network.name.to_owned(),
                quantiser,
                snr_db: Some(pool.decibels()),
                right: right(found),
            };
            note(&format!("{row:?}"));
            rows.push(row);
        };
        // Arenite's results for the other networks are measured by `cargo xtask quantise` itself.
        let ours = OURS.iter().filter(|_| DIGITS.contains(&network.name));
        for &(quantiser, optimise) in ours {
            let of_fold = |fold: &Fold| {
                let request = quantise::request(&fold.samples, scratch.path(), optimise)?;
                let file = packed(network, &scratch.path().join("ours"), Some(request))?;
                quantise::answers(&file, &fold.judged)
            };
            let found = network.folds.iter().map(of_fold).collect::<Result<Vec<_>>>()?;
            judge(quantiser.to_owned(), &found);
        }
        for (quantiser, path) in theirs(&answers, network.name)? {
            judge(quantiser, &read_answers(&path, network.folds.len())?);
        }
    }
    Ok(rows)
}

fn digits(root: &Path, file: &str) -> PathBuf {
    root.join("tests/models/digits").join(file)
}

fn networks(places: &Places<'_>) -> Result<Vec<Network>> {
    let mut networks = Vec::new();
    for subject in &SUBJECTS {
        networks.push(Network {
            name: subject.float,
            input: places.models.join(format!("{}.tflite", subject.float)),
            folds: quantise::folds(subject, places.models)?,
        });
    }
    let images: ArrayD<f32> =
        read_npy(digits(places.root, "test_images.npy")).map_err(|e| Error::input(format!("the images: {e}")))?;
    let images: Vec<ArrayD<f32>> = images.axis_iter(Axis(0)).map(|image| image.to_owned()).collect();
    networks.extend(DIGITS.map(|name| Network {
        name,
        input: digits(places.root, &format!("{name}.trace.json")),
        folds: vec![Fold {
            samples: images.iter().step_by(STEP).cloned().collect(),
            judged: images.clone(),
        }],
    }));
    Ok(networks)
}

fn packed(network: &Network, output: &Path, request: Option<arenite_host::quantize::Request>) -> Result<ModelFile> {
    let options = Options {
        target: Target::Portable,
        dtype: request.as_ref().map(|_| DType::I8),
        quantize: request,
        ..Options::new(&network.input, output)
    };
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(output)
}

fn largest(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

fn write(path: &Path, folds: &[Fold]) -> Result<()> {
    let file = std::fs::File::create(path).map_err(|e| Error::io(path, "write the samples", &e))?;
    let mut npz = NpzWriter::new_compressed(file);
    let wrong = |e: &dyn std::fmt::Display| Error::internal(format!("the samples of {}: {e}", path.display()));
    for (at, fold) in folds.iter().enumerate() {
        for (kind, arrays) in [("samples", &fold.samples), ("judged", &fold.judged)] {
            let views: Vec<_> = arrays.iter().map(|array| array.view()).collect();
            let stacked = ndarray::stack(Axis(0), &views).map_err(|e| wrong(&e))?;
            npz.add_array(format!("{kind}_{at}"), &stacked).map_err(|e| wrong(&e))?;
        }
    }
    npz.finish().map(|_| ()).map_err(|e| wrong(&e))
}

/// The script's files for a network, by quantiser.
fn theirs(folder: &Path, network: &str) -> Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read the answers", &e))?;
    let mut found: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let quantiser = name.strip_prefix(network)?.strip_prefix('.')?.strip_suffix(".npz")?;
            Some((quantiser.to_owned(), path))
        })
        .collect();
    found.sort();
    Ok(found)
}

fn read_answers(path: &Path, folds: usize) -> Result<Vec<Vec<Vec<f64>>>> {
    let file = std::fs::File::open(path).map_err(|e| Error::io(path, "read the answers", &e))?;
    let wrong = |e: &dyn std::fmt::Display| Error::input(format!("answers: {e}")).in_file(path);
    let mut npz = NpzReader::new(file).map_err(|e| wrong(&e))?;
    let mut read = |fold: usize| {
        let array: Array2<f64> = npz.by_name(&format!("answers_{fold}")).map_err(|e| wrong(&e))?;
        Ok(array.rows().into_iter().map(|row| row.to_vec()).collect())
    };
    (0..folds).map(&mut read).collect()
}

/// Reads the results; none where there is no file yet.
///
/// # Errors
/// Where the file cannot be read.
pub fn read(results: &Path) -> Result<Vec<Row>> {
    quantise::rows_of(&results.join(FILE))
}

/// Writes the results.
///
/// # Errors
/// Where they cannot be written.
pub fn record(results: &Path, rows: &[Row]) -> Result<()> {
    quantise::write_rows(&results.join(FILE), rows)
}
