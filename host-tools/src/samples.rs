//! Sample inputs of a model: `.npz` with an array for each input, or `.npy` for a single one; one more leading axis is a sequence of runs. Or a folder of
//! pictures or recordings.

mod folder;
mod ports;
mod value;

use std::io::{Read as _, Seek as _};
use std::path::Path;

use arenite::{DType, Port};

use crate::array::{Array, Runs, Sequence};
use crate::error::{Error, Result};
use crate::files::Input;
use crate::files::input::LARGEST;
use crate::files::zip::{self, Zip};
use ports::names;

pub(crate) use value::Value;

/// Bytes that tell an archive from an array.
const MAGIC: u64 = 8;

/// The inputs of each run, from a file as [`read`] takes it, or from a folder: then they lie in a temporary file, and `pictures` says that the network takes
/// bytes.
///
/// # Errors
/// As [`read`]'s; files of a folder that are not the network's input, by name.
pub(crate) fn read_any(
    path: &Path,
    ports: &[Port<'_>],
    pictures: bool,
    each: &dyn Fn(Array, &Port<'_>) -> Result<Array>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Value>>> {
    if path.is_dir() {
        return folder::read(path, ports, pictures, each, note);
    }
    let runs = read(path, ports, each, note).map_err(|e| e.in_file(path))?;
    let owned = |inputs: Vec<Vec<u8>>| inputs.into_iter().map(Value::Owned).collect();
    Ok(runs.into_iter().map(owned).collect())
}

/// The inputs of each run. The file is opened once: it may be a pipe. `each` sees every array before it is taken, and may reshape or refuse it; `note`
/// hears of conversions, and of arrays that are no input.
///
/// # Errors
/// [`crate::ErrorKind::Io`], [`crate::ErrorKind::Input`] for samples that are not the model's inputs.
pub(crate) fn read(
    path: &Path,
    ports: &[Port<'_>],
    each: &dyn Fn(Array, &Port<'_>) -> Result<Array>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Vec<u8>>>> {
    let io = |e: std::io::Error| Error::io(path, "read the samples", &e);
    let input = Input::open(path, "read the samples")?;
    let mut file = input.file().try_clone().map_err(io)?;
    let mut start = Vec::new();
    file.by_ref().take(MAGIC).read_to_end(&mut start).map_err(io)?;
    file.rewind().map_err(io)?;
    let mut arrays = Vec::new();
    if start.starts_with(zip::MAGIC) {
        let archive = Zip::open(file).map_err(|e| Error::input(format!("it is no .npz archive: {e}")))?;
        for port in ports {
            let array = Array::of_npz(&archive, port.name);
            arrays.push(array.map_err(|e| e.expected(format!("an array for each input: {}", names(ports))))?);
        }
        let named = archive.names().map(|name| name.strip_suffix(".npy").unwrap_or(name));
        let others = named.filter(|name| ports.iter().all(|port| port.name != *name));
        others.for_each(|name| note(format!("array `{name}` is no input of the network, and is not read")));
    } else if ports.len() == 1 {
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(io)?;
        arrays.push(Array::decode(&bytes)?);
    } else {
        return Err(Error::input("it is one array, and the network has several inputs")
            .expected(format!("a .npz archive with {}", names(ports))));
    }
    let mut all: Vec<Runs> = Vec::new();
    for (array, port) in arrays.into_iter().zip(ports) {
        let (runs, converted) = each(array, port)?.runs(port)?;
        converted.into_iter().for_each(&mut *note);
        all.push(runs);
    }
    let runs = Sequence::of(ports, all, |_, error| error)?.runs;
    if runs.is_empty() {
        return Err(Error::input("it holds no sample").expected("at least one"));
    }
    Ok(runs)
}

/// An array as data sets have it, for [`read`]: finite, with the samples along its first axis where the network's batch is 1.
pub(crate) fn of_a_data_set(mut array: Array, port: &Port<'_>) -> Result<Array> {
    let wanted: Vec<usize> = port.shape.iter().map(|&n| n as usize).collect();
    // As data sets have it: the batch's axis counts the samples.
    if let ([samples, rest @ ..], [1, inner @ ..]) = (&array.shape[..], &wanted[..])
        && rest == inner
        && *samples != 1
    {
        array.shape = [&[*samples, 1], rest].concat();
    }
    if port.dtype == DType::F32 {
        let each = wanted.iter().product::<usize>().max(1);
        let values = array.to_f64();
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::input(format!(
                "input `{}` of sample {} is {} at element {}",
                port.name,
                at / each,
                values[at],
                at % each
            ))
            .expected("finite values"));
        }
    }
    Ok(array)
}
