//! Sample inputs of a model: `.npz` with an array for each input, or `.npy` for a single one; one more leading axis is a sequence of runs. Or a folder of
//! pictures or recordings.

#[cfg(feature = "tools")]
mod caught;
#[cfg(feature = "tools")]
mod folder;
#[cfg(feature = "tools")]
mod picture;
mod ports;
mod source;
#[cfg(feature = "tools")]
mod spool;
#[cfg(feature = "tools")]
mod stream;
mod value;

use std::io::Read as _;
use std::path::Path;

use arenite::{DType, Port};

use crate::array::{Array, Runs, Sequence};
use crate::error::{Error, Result};
use crate::files::input::LARGEST;
use ports::names;
use source::{Each, Source, open, some};

pub(crate) use value::Value;

/// The inputs of each run, from a file as [`read`] takes it, or from a folder, of which `pictures` says that the network takes bytes. Those of a folder, and of
/// a large file, lie in a temporary file.
///
/// # Errors
/// As [`read`]'s; files of a folder that are not the network's input, by name.
pub(crate) fn read_any(
    path: &Path,
    ports: &[Port<'_>],
    pictures: bool,
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Value>>> {
    #[cfg(feature = "tools")]
    if path.is_dir() {
        return folder::read(path, ports, pictures, each, note);
    }
    #[cfg(not(feature = "tools"))]
    let _ = pictures;
    let runs = open(path).and_then(|source| {
        check(&source, ports, note)?;
        #[cfg(feature = "tools")]
        if stream::is_large(&source, ports) {
            return stream::read(&source, ports, each, note);
        }
        let owned = |inputs: Vec<Vec<u8>>| inputs.into_iter().map(Value::Owned).collect();
        Ok(whole(source, ports, each, note)?.into_iter().map(owned).collect())
    });
    runs.map_err(|e| e.in_file(path))
}

/// The inputs of each run. The file is opened once: it may be a pipe. `note` hears of conversions, and of arrays that are no input.
///
/// # Errors
/// [`crate::error::ErrorKind::Io`], [`crate::error::ErrorKind::Input`] for samples that are not the model's inputs.
pub fn read(
    path: &Path,
    ports: &[Port<'_>],
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Vec<u8>>>> {
    let source = open(path)?;
    check(&source, ports, note)?;
    whole(source, ports, each, note)
}

/// Whether it can hold these inputs at all; `note` hears of what else it holds.
fn check(source: &Source, ports: &[Port<'_>], note: &mut dyn FnMut(String)) -> Result<()> {
    match source {
        Source::Archive(archive) => {
            let named = archive.names().map(|name| name.strip_suffix(".npy").unwrap_or(name));
            let others = named.filter(|name| ports.iter().all(|port| port.name != *name));
            others.for_each(|name| note(format!("array `{name}` is no input of the network, and is not read")));
            Ok(())
        }
        Source::Array(_) if ports.len() == 1 => Ok(()),
        Source::Array(_) => Err(Error::input("it is one array, and the network has several inputs")
            .expected(format!("a .npz archive with {}", names(ports)))),
    }
}

fn whole(
    source: Source,
    ports: &[Port<'_>],
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut arrays = Vec::new();
    match source {
        Source::Archive(archive) => {
            for port in ports {
                let array = Array::of_npz(&archive, port.name);
                arrays.push(array.map_err(|e| e.expected(format!("an array for each input: {}", names(ports))))?);
            }
        }
        Source::Array(file) => {
            let mut bytes = Vec::new();
            let read = file.take(LARGEST).read_to_end(&mut bytes);
            read.map_err(|e| Error::input(format!("it cannot be read: {e}")))?;
            arrays.push(Array::decode(&bytes)?);
        }
    }
    let mut all: Vec<Runs> = Vec::new();
    for (array, port) in arrays.into_iter().zip(ports) {
        let (runs, converted) = each(array, port, 0)?.runs(port)?;
        converted.into_iter().for_each(&mut *note);
        all.push(runs);
    }
    some(Sequence::of(ports, all, |_, error| error)?.runs)
}

/// The inputs of each run in a `.npy` or `.npz` file, as `arenite run` takes them; `note` hears of conversions.
///
/// # Errors
/// [`crate::error::ErrorKind::Io`], [`crate::error::ErrorKind::Input`] for arrays that are not the model's inputs.
pub fn inputs(path: &Path, ports: &[Port<'_>], note: &mut dyn FnMut(String)) -> Result<Vec<Vec<Vec<u8>>>> {
    read(path, ports, &|array, _, _| Ok(array), note).map_err(|e| e.in_file(path))
}

/// An array as data sets have it, for [`read`]: finite, with the samples along its first axis where the network's batch is 1.
pub fn of_a_data_set(mut array: Array, port: &Port<'_>, first: usize) -> Result<Array> {
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
                first + at / each,
                values[at],
                at % each
            ))
            .expected("finite values"));
        }
    }
    Ok(array)
}
