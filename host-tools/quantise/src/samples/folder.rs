//! Sample inputs from a folder: pictures as a camera takes them, or recordings. One file is decoded at a time, and what comes of it lies in a temporary file:
//! memory does not grow with the number of samples.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::{DType, Port};

use super::picture;
use super::ports::names;
use super::source::Each;
use super::spool::Spool;
use super::value::Value;
use crate::array::{Array, Values};
use crate::error::{Error, Result};

/// Kinds of files that a folder may hold, by the names' ends.
const PICTURES: [&str; 3] = ["png", "jpg", "jpeg"];
const RECORDING: &str = "wav";

/// The samples of a folder and of the folders in it, in the order of their paths. `pictures` says that the network takes bytes; `each` sees every array.
///
/// # Errors
/// Files that are no pictures or recordings of the network's input, by name.
pub(super) fn read(
    folder: &Path,
    ports: &[Port<'_>],
    pictures: bool,
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Value>>> {
    let [port] = ports else {
        return Err(
            Error::input("a folder has one input's samples, and the network has several inputs")
                .in_file(folder)
                .expected(format!("a .npz archive with {}", names(ports))),
        );
    };
    let mut all = Vec::new();
    list(folder, &mut all)?;
    all.sort();
    let found = all.len();
    let is = |path: &PathBuf, ends: &[&str]| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        ends.contains(&end.to_ascii_lowercase().as_str())
    };
    all.retain(|path| is(path, &PICTURES) || is(path, &[RECORDING]));
    if all.len() < found {
        note(format!(
            "{} files are no PNG, JPEG or WAV, and are not read",
            found - all.len()
        ));
    }
    let Some(first) = all.first() else {
        return Err(Error::input("the folder holds no sample")
            .in_file(folder)
            .expected(".png, .jpg, .jpeg or .wav files"));
    };
    let recordings = is(first, &[RECORDING]);
    if let Some(other) = all.iter().find(|path| is(path, &[RECORDING]) != recordings) {
        return Err(Error::input("pictures and recordings in one folder")
            .in_file(other)
            .expected(format!("files such as {}", first.display())));
    }
    let mut spool = Spool::new()?;
    let mut rate = None;
    for path in &all {
        let arrays = if recordings {
            recording(path, port, pictures, &mut rate)
        } else {
            picture(path, port, pictures).map(|array| vec![array])
        };
        for (window, array) in arrays.map_err(|e| e.in_file(path))?.into_iter().enumerate() {
            let array = each(array, port, window).map_err(|e| e.in_file(path))?;
            for run in array.runs(port).map_err(|e| e.in_file(path))?.0.runs {
                spool.add(&run)?;
            }
        }
    }
    Ok(spool.values()?.into_iter().map(|value| vec![value]).collect())
}

/// All files below a folder but hidden ones.
fn list(folder: &Path, all: &mut Vec<PathBuf>) -> Result<()> {
    let io = |e: std::io::Error| Error::io(folder, "list the samples", &e);
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let path = entry.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // A link to a folder is not followed: it may lead back.
        match (hidden, entry.file_type().map_err(io)?.is_dir()) {
            (true, _) => {}
            (false, true) => list(&path, all)?,
            (false, false) => all.push(path),
        }
    }
    Ok(())
}

/// A picture as the bytes that the network takes.
fn picture(path: &Path, port: &Port<'_>, pictures: bool) -> Result<Array> {
    let shape: Vec<usize> = port.shape.iter().map(|&extent| extent as usize).collect();
    if !pictures {
        return Err(Error::input(format!(
            "a picture's bytes for input `{}`, which is real numbers",
            port.name
        ))
        .help("--preprocess 'u8 mean=… scale=…' says what a byte means to the network"));
    }
    let [1, rows, columns, channels @ (1 | 3 | 4)] = shape[..] else {
        return Err(
            Error::input(format!("a picture for input `{}` of {shape:?}", port.name))
                .expected("an input of one picture: [1, rows, columns, 1, 3 or 4 channels]"),
        );
    };
    let wrong = |e: &str| Error::input(format!("it is no picture: {e}")).expected("PNG or JPEG");
    let io = |e: std::io::Error| Error::io(path, "read a sample", &e);
    let opened = picture::open(path).map_err(io)?;
    let picture = opened.decode().map_err(|e| wrong(&e))?;
    let (wide, high) = (picture.wide, picture.high);
    if [high, wide] != [rows, columns] {
        return Err(Error::input(format!("{high} rows of {wide} pixels"))
            .expected(format!(
                "{rows} rows of {columns}, as input `{}` of {shape:?} takes them",
                port.name
            ))
            .help(format!(
                "--preprocess 'u8 size={high}x{wide} crop=… resize={rows}x{columns}' takes pictures of this size"
            )));
    }
    Ok(Array {
        shape,
        values: Values::U8(picture.into_bytes(channels)),
    })
}

/// A recording in pieces of what the network takes, from -1 to 1; what is left behind the last whole piece is left out.
fn recording(path: &Path, port: &Port<'_>, pictures: bool, rate: &mut Option<(u32, PathBuf)>) -> Result<Vec<Array>> {
    if pictures || port.dtype != DType::F32 {
        return Err(Error::input(format!(
            "a recording for input `{}`, which is a picture's bytes",
            port.name
        ))
        .help("--preprocess without u8 is for recordings: their values lie between -1 and 1"));
    }
    let wrong = |e: hound::Error| Error::input(format!("it is no recording: {e}")).expected("WAV of PCM or f32");
    let mut reader = hound::WavReader::open(path).map_err(wrong)?;
    let spec = reader.spec();
    if spec.channels != 1 {
        return Err(Error::input(format!("{} channels", spec.channels)).expected("one"));
    }
    match rate {
        Some((rate, first)) if *rate != spec.sample_rate => {
            return Err(Error::input(format!("{} values a second", spec.sample_rate))
                .expected(format!("{rate}, as {} has", first.display())));
        }
        Some(_) => {}
        None => *rate = Some((spec.sample_rate, path.to_path_buf())),
    }
    // The header's number of samples is not read: it is no more than the file holds.
    let mut values: Vec<f32> = Vec::new();
    match spec.sample_format {
        hound::SampleFormat::Float => {
            for value in reader.samples::<f32>() {
                values.push(value.map_err(wrong)?);
            }
        }
        hound::SampleFormat::Int => {
            let most = (1_u64 << spec.bits_per_sample.saturating_sub(1).min(31)) as f32;
            for value in reader.samples::<i32>() {
                values.push(value.map_err(wrong)? as f32 / most);
            }
        }
    }
    let shape: Vec<usize> = port.shape.iter().map(|&extent| extent as usize).collect();
    let piece = shape.iter().product::<usize>().max(1);
    if values.len() < piece {
        return Err(Error::input(format!("{} values", values.len())).expected(format!(
            "at least {piece}, as input `{}` of {shape:?} takes them",
            port.name
        )));
    }
    let pieces = values.chunks_exact(piece).map(|piece| Array {
        shape: shape.clone(),
        values: Values::F32(piece.to_vec()),
    });
    Ok(pieces.collect())
}
