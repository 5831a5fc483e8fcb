//! The float networks of MLPerf Tiny in int8, beside the int8 files that were published: how far each is from the float network on real inputs.
//!
//! Leave one out: each real input is judged by a network that was calibrated on the others, changed as a user would change them. The noise is taken
//! before the softmax and pooled: squares of all answers over squares of all differences.

use std::path::Path;

use arenite::{DType, Target};
use arenite_host::board::{BenchOptions, Board, bench, ready};
use arenite_host::metadata::TensorMeta;
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, Result, compare, files, quantize};
use ndarray::{ArrayD, Axis, IxDyn};
use ndarray_npy::{NpzReader, write_npy};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// File in `tests/results`.
pub const FILE: &str = "quantise.json";

/// The board whose instructions are counted.
const BOARD: &str = "mps2-an386";

/// A float network and what was published of it in int8.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Stem of the float file.
    pub float: &'static str,
    /// Stem of the int8 file.
    pub published: &'static str,
    /// The int8 file's pooled SNR as it was measured first, in dB.
    pub stated: f64,
    /// Whether inputs are images; spectra in dB else.
    pub images: bool,
}

/// The networks.
pub const SUBJECTS: [Subject; 4] = [
    subject("vww_96_float", "vww_96_int8", 26.5, true),
    subject("pretrainedResnet", "pretrainedResnet_quant", 26.3, true),
    subject(
        "pretrainedResnet_large_float",
        "pretrainedResnet_large_int8",
        29.7,
        true,
    ),
    subject("ad01_fp32", "ad01_int8", 33.6, false),
];

const fn subject(float: &'static str, published: &'static str, stated: f64, images: bool) -> Subject {
    Subject {
        float,
        published,
        stated,
        images,
    }
}

/// Results for a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Stem of the float file.
    pub model: String,
    /// Pooled SNR of the published file on the real inputs, in dB.
    pub published_db: f64,
    /// Pooled SNR of ours, leave one out.
    pub ours_db: f64,
    /// The same with `--optimise-rounding`.
    pub optimised_db: f64,
    /// On independent random inputs: published, ours, and with `--optimise-rounding`.
    pub random_db: [f64; 3],
    /// Instructions on the M4F: published, ours.
    pub instructions: [u64; 2],
    /// Arena there: published, ours.
    pub arena_bytes: [u64; 2],
}

/// Signal and noise, in squares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pool([f64; 2]);

impl Pool {
    pub(crate) fn add(&mut self, expected: &[f64], found: &[f64]) {
        for (expected, found) in expected.iter().zip(found) {
            self.0[0] += expected * expected;
            self.0[1] += (expected - found) * (expected - found);
        }
    }

    pub(crate) fn decibels(&self) -> f64 {
        let ratio = 10.0 * (self.0[0] / self.0[1]).log10();
        (ratio * 100.0).round() / 100.0
    }
}

/// Samples that calibrate a network, and the inputs that judge it then.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) samples: Vec<ArrayD<f32>>,
    pub(crate) judged: Vec<ArrayD<f32>>,
}

/// Each real input of a network once, and the others as a user would change them.
pub(crate) fn folds(subject: &Subject, models: &Path) -> Result<Vec<Fold>> {
    let golden = models.join("golden").join(format!("{}.npz", subject.float));
    let real = inputs(&golden, "in_real_0")?;
    let fold = |left_out: usize| {
        let others = real.iter().enumerate().filter(|(index, _)| *index != left_out);
        Fold {
            samples: others.flat_map(|(_, input)| changed(input, subject.images)).collect(),
            judged: vec![real[left_out].clone()],
        }
    };
    Ok((0..real.len()).map(fold).collect())
}

/// Measures a network; `models` has its files, beside `golden`.
///
/// # Errors
/// Where a file is not there or does not pack, or a board does not run.
pub fn measure(subject: &Subject, models: &Path, note: &mut dyn FnMut(&str)) -> Result<Row> {
    let folder = files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let folder = folder.path();
    let golden = models.join("golden").join(format!("{}.npz", subject.float));
    let (real, random) = (inputs(&golden, "in_real_0")?, inputs(&golden, "in_rand_0")?);
    let (float, published) = (
        models.join(format!("{}.tflite", subject.float)),
        models.join(format!("{}.tflite", subject.published)),
    );
    let packed = |input: &Path, name: &str, target: Target, request: Option<&quantize::Request>| -> Result<ModelFile> {
        let output = folder.join(name);
        let options = Options {
            target,
            dtype: request.map(|_| DType::I8),
            quantize: request.cloned(),
            ..Options::new(input, &output)
        };
        pack(&options, &mut |_, _, _| {})?;
        ModelFile::open(&output)
    };
    let reference = packed(&float, "float", Target::Portable, None)?;
    let theirs = packed(&published, "published", Target::Portable, None)?;
    let answers = |file: &ModelFile, inputs: &[ArrayD<f32>]| answers(file, inputs);
    let (real_answers, random_answers) = (answers(&reference, &real)?, answers(&reference, &random)?);
    let pooled = |expected: &[Vec<f64>], found: &[Vec<f64>]| {
        let mut pool = Pool::default();
        expected
            .iter()
            .zip(found)
            .for_each(|(expected, found)| pool.add(expected, found));
        pool.decibels()
    };
    let published_db = pooled(&real_answers, &answers(&theirs, &real)?);
    note(&format!("{}: published {published_db} dB", subject.float));

    let mut random_db = [pooled(&random_answers, &answers(&theirs, &random)?), 0.0, 0.0];
    let mut ours = [0.0; 2];
    for (at, optimise) in [false, true].into_iter().enumerate() {
        let mut pool = Pool::default();
        for (left_out, fold) in folds(subject, models)?.iter().enumerate() {
            let request = request(&fold.samples, folder, optimise)?;
            let file = packed(&float, "ours", Target::Portable, Some(&request))?;
            pool.add(&real_answers[left_out], &answers(&file, &fold.judged)?[0]);
            note(&format!(
                "{} without input {left_out}: {:?}",
                subject.float,
                file.view()?.summary()?.quantization
            ));
        }
        ours[at] = pool.decibels();
        let samples: Vec<ArrayD<f32>> = real.iter().flat_map(|input| changed(input, subject.images)).collect();
        let request = request(&samples, folder, optimise)?;
        let file = packed(&float, "ours", Target::Portable, Some(&request))?;
        random_db[at + 1] = pooled(&random_answers, &answers(&file, &random)?);
        note(&format!(
            "{}: ours {} dB, optimised {optimise}; random {:?}",
            subject.float, ours[at], random_db
        ));
    }
    let samples: Vec<ArrayD<f32>> = real.iter().flat_map(|input| changed(input, subject.images)).collect();
    let all = request(&samples, folder, false)?;
    let ours_on_board = packed(&float, "ours on a board", Target::CortexM4, Some(&all))?;
    let published_on_board = packed(&published, "published on a board", Target::CortexM4, None)?;
    let (mut instructions, mut arena_bytes) = ([0; 2], [0; 2]);
    let board = Board::find(BOARD).ok_or_else(|| Error::internal(format!("no board {BOARD}")))?;
    ready(board)?;
    for (at, file) in [&published_on_board, &ours_on_board].into_iter().enumerate() {
        let zeros = vec![0; file.view()?.header().input_bytes as usize];
        let options = BenchOptions {
            trace: false,
            code: false,
            ..BenchOptions::default()
        };
        let measured = bench(board, file, &zeros, &options, &mut |_| ())?;
        (instructions[at], arena_bytes[at]) = (measured.instructions, file.view()?.summary()?.arena_bytes);
    }
    Ok(Row {
        model: subject.float.to_owned(),
        published_db,
        ours_db: ours[0],
        optimised_db: ours[1],
        random_db,
        instructions,
        arena_bytes,
    })
}

pub(crate) fn request(samples: &[ArrayD<f32>], folder: &Path, optimise: bool) -> Result<quantize::Request> {
    let path = folder.join("samples.npy");
    let views: Vec<_> = samples.iter().map(|sample| sample.view()).collect();
    let stacked = ndarray::stack(Axis(0), &views).map_err(|e| Error::internal(e.to_string()))?;
    write_npy(&path, &stacked).map_err(|e| Error::internal(format!("the samples: {e}")))?;
    Ok(quantize::Request {
        samples: path,
        optimise_rounding: optimise,
        ..quantize::Request::default()
    })
}

fn inputs(golden: &Path, key: &str) -> Result<Vec<ArrayD<f32>>> {
    let file = std::fs::File::open(golden).map_err(|e| Error::io(golden, "read the inputs", &e))?;
    let wrong = |e: &dyn std::fmt::Display| Error::input(format!("array `{key}`: {e}")).in_file(golden);
    let mut npz = NpzReader::new(file).map_err(|e| wrong(&e))?;
    let array: ArrayD<f32> = npz
        .by_name::<ndarray::OwnedRepr<f32>, IxDyn>(key)
        .map_err(|e| wrong(&e))?;
    Ok(array.axis_iter(Axis(0)).map(|input| input.to_owned()).collect())
}

/// Returns the answers of a file before its last softmax, in real numbers, run by run. Floats are quantised with its own scale.
pub(crate) fn answers(file: &ModelFile, inputs: &[ArrayD<f32>]) -> Result<Vec<Vec<f64>>> {
    let view = file.view()?;
    let port = &view.inputs[0];
    let stored = |value: &f32| arenite::quant::quantize(*value, port.scale, port.zero_point, -128, 127) as u8;
    let runs: Vec<Vec<Vec<u8>>> = inputs
        .iter()
        .map(|input| match port.dtype {
            DType::I8 => vec![input.iter().map(stored).collect()],
            _ => vec![input.iter().flat_map(|value| value.to_le_bytes()).collect()],
        })
        .collect();
    let metadata = view.metadata()?;
    let last = metadata.steps.len() - 1;
    let judged = match metadata.steps[last].kind.as_str() {
        "softmax" => last - 1,
        _ => last,
    };
    let missing = || Error::internal("the last step completes no tensor");
    let tensor: &TensorMeta = metadata.steps[judged].completes.as_ref().ok_or_else(missing)?;
    let bytes = tensor.shape.iter().product::<u32>() * tensor.dtype.bytes() as u32;
    let mut found = Vec::new();
    model::run(&file.load()?, &runs, true, &mut |_, step, session| {
        if step as usize == judged {
            found.push(session.read(tensor.slot, bytes).map(<[u8]>::to_vec).unwrap_or_default());
        }
    })?;
    let real = |value: f64| match tensor.dtype {
        DType::F32 => value,
        _ => f64::from(tensor.scale) * (value - f64::from(tensor.zero_point)),
    };
    let answers = found
        .iter()
        .map(|bytes| compare::to_f64(tensor.dtype, bytes).into_iter().map(real).collect());
    Ok(answers.collect())
}

/// An input and what a user makes of it: of an image shifts by an eighth, crops, and brighter and darker ones; of a spectrum in dB gains of 6.
fn changed(input: &ArrayD<f32>, image: bool) -> Vec<ArrayD<f32>> {
    let mut all = vec![input.clone()];
    if !image {
        all.extend([6.0, -6.0].map(|gain| input.mapv(|value| value + gain)));
        return all;
    }
    let &[_, height, width, channels] = input.shape() else {
        return all;
    };
    let most = input.iter().fold(0.0_f32, |most, &value| most.max(value));
    // Images of bytes stay such.
    let (limit, step) = if most > 1.5 { (255.0, 1.0) } else { (1.0, 1.0 / 255.0) };
    let moved = |of: &dyn Fn(usize, usize) -> (isize, isize)| {
        ArrayD::from_shape_fn(IxDyn(&[1, height, width, channels]), |at| {
            let (row, column) = of(at[1], at[2]);
            let inside = |at: isize, extent: usize| at.clamp(0, extent as isize - 1) as usize;
            input[[0, inside(row, height), inside(column, width), at[3]]]
        })
    };
    let far = (height / 8) as isize;
    for (down, right) in [(far, 0), (-far, 0), (0, far), (0, -far)] {
        all.push(moved(&|row, column| (row as isize - down, column as isize - right)));
    }
    for corner in [0, height / 4] {
        // Three quarters of the image, by the nearest pixel.
        let at = move |at: usize| (corner + at * 3 / 4) as isize;
        all.push(moved(&|row, column| (at(row), at(column))));
    }
    all.push(moved(&|row, column| {
        (row as isize, width as isize - 1 - column as isize)
    }));
    for factor in [0.8_f32, 1.2] {
        all.push(input.mapv(|value| ((value * factor).min(limit) / step).round() * step));
    }
    all
}

/// Reads the results; none where there is no file yet.
///
/// # Errors
/// Where the file cannot be read.
pub fn read(results: &Path) -> Result<Vec<Row>> {
    rows_of(&results.join(FILE))
}

/// Writes the results.
///
/// # Errors
/// Where they cannot be written.
pub fn write(results: &Path, rows: &[Row]) -> Result<()> {
    write_rows(&results.join(FILE), rows)
}

pub(crate) fn rows_of<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the results", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no results: {e}")).in_file(path))
}

pub(crate) fn write_rows<R: Serialize>(path: &Path, rows: &[R]) -> Result<()> {
    let text = serde_json::to_string_pretty(rows).map_err(|e| Error::internal(e.to_string()))? + "\n";
    files::write(path, text.as_bytes())
}
