//! Arrays of many samples, read a sample at a time: memory does not grow with their number.

use std::io::{BufReader, ErrorKind, Read};

use arenite::Port;

use super::ports::names;
use super::source::{Each, Source, some};
use super::spool::Spool;
use super::value::Value;
use crate::array::{Array, Runs, Sequence, Values, not_an_array};
use crate::error::{Error, Result};
use crate::files::npy::{Head, Wrong};

/// Bytes of samples that are held in memory.
const IN_MEMORY: u64 = 64 << 20;

/// Whether what `source` has for these inputs is more than is held in memory.
pub(super) fn is_large(source: &Source, ports: &[Port<'_>]) -> bool {
    let bytes: u64 = match source {
        Source::Archive(archive) => ports
            .iter()
            .filter_map(|port| archive.size(&entry(archive, port)))
            .sum(),
        Source::Array(file) => file.metadata().map_or(0, |metadata| metadata.len()),
    };
    bytes > IN_MEMORY
}

/// As [`super::read`] does; the inputs of each run lie in a temporary file.
pub(super) fn read(
    source: &Source,
    ports: &[Port<'_>],
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Vec<Value>>> {
    let (mut all, mut counts) = (Vec::new(), Vec::new());
    for port in ports {
        let mut content: Box<dyn Read + '_> = match source {
            Source::Archive(archive) => {
                let content = archive.content(&entry(archive, port));
                let content = content.ok_or_else(|| {
                    let error = Error::input("it is not in the archive").at(format_args!("array `{}`", port.name));
                    error.expected(format!("an array for each input: {}", names(ports)))
                })?;
                Box::new(content.map_err(|e| Error::input(e.to_string()))?)
            }
            Source::Array(file) => Box::new(BufReader::new(file)),
        };
        let at = |e: Error| match source {
            Source::Archive(_) => e.at(format_args!("array `{}`", port.name)),
            Source::Array(_) => e,
        };
        let (sequence, values) = values(&mut content, port, each, note).map_err(at)?;
        counts.push(Runs {
            sequence,
            runs: vec![Vec::new(); values.len()],
        });
        all.push(values.into_iter());
    }
    let count = Sequence::of(ports, counts, |_, error| error)?.runs.len();
    let run = |_| all.iter_mut().filter_map(Iterator::next).collect();
    some((0..count).map(run).collect())
}

/// The name of an input's array.
fn entry(archive: &crate::files::zip::Zip, port: &Port<'_>) -> String {
    let named = format!("{}.npy", port.name);
    if archive.names().any(|name| name == named) {
        named
    } else {
        port.name.to_string()
    }
}

/// An input of each run, and whether there was a leading axis for runs.
fn values(
    content: &mut dyn Read,
    port: &Port<'_>,
    each: &Each<'_>,
    note: &mut dyn FnMut(String),
) -> Result<(bool, Vec<Value>)> {
    let head = Head::read(content).map_err(|wrong| not_an_array(&wrong))?;
    let wanted: Vec<usize> = port.shape.iter().map(|&extent| extent as usize).collect();
    let (count, sequence) = match (&head.shape[..], &wanted[..]) {
        (shape, _) if shape == wanted => (1, false),
        ([count, rest @ ..], _) if rest == wanted => (*count, true),
        // As data sets have it: the batch's axis counts the samples.
        ([count, rest @ ..], [1, inner @ ..]) if rest == inner => (*count, true),
        _ => {
            let other = Array {
                shape: head.shape.clone(),
                values: Values::F32(Vec::new()),
            };
            other.runs(port)?;
            return Err(Error::internal("another shape that is none"));
        }
    };
    let mut spool = Spool::new()?;
    let mut keep = |array: Array, first: usize| {
        let (runs, converted) = each(array, port, first)?.runs(port)?;
        if let (0, Some(converted)) = (first, converted) {
            note(converted);
        }
        runs.runs.iter().try_for_each(|run| spool.add(run))
    };
    let damaged = |e: std::io::Error| match e.kind() {
        ErrorKind::UnexpectedEof => not_an_array(&Wrong::Malformed(format!(
            "its header says {:?}, and it ends before that",
            head.shape
        ))),
        _ => Error::input(e.to_string()),
    };
    // The last axis first, samples are not together.
    if head.fortran && head.shape.len() > 1 {
        let mut data = Vec::new();
        content.read_to_end(&mut data).map_err(damaged)?;
        let npy = head
            .of(head.shape.clone(), &data)
            .map_err(|wrong| not_an_array(&wrong))?;
        keep(Array::of(&npy), 0)?;
    } else {
        let mut data = vec![0; wanted.iter().product::<usize>() * head.size];
        for sample in 0..count {
            content.read_exact(&mut data).map_err(damaged)?;
            let npy = head.of(wanted.clone(), &data).map_err(|wrong| not_an_array(&wrong))?;
            keep(Array::of(&npy), sample)?;
        }
        if content.read(&mut [0]).map_err(damaged)? > 0 {
            let text = format!("its header says {:?}, and more follows", head.shape);
            return Err(not_an_array(&Wrong::Malformed(text)));
        }
    }
    Ok((sequence, spool.values()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::path::Path;

    use arenite::{DType, Slot};
    use ndarray::{Array as NdArray, IxDyn, ShapeBuilder as _};
    use ndarray_npy::{NpzWriter, WriteNpyExt as _};

    use super::super::source::open;
    use super::super::{of_a_data_set, whole};
    use super::*;

    fn port(name: &'static str, dtype: DType, shape: &[u32]) -> Port<'static> {
        Port {
            name,
            slot: Slot::default(),
            dtype,
            shape: shape.iter().copied().collect(),
            scale: 0.0,
            zero_point: 0,
        }
    }

    type Read = Result<(Vec<Vec<Vec<u8>>>, Vec<String>)>;

    /// Returns the results of both ways of reading, the one by samples first.
    fn both(path: &Path, ports: &[Port<'_>]) -> [Read; 2] {
        let (mut by_samples, mut at_once) = (Vec::new(), Vec::new());
        let streamed =
            open(path).and_then(|source| read(&source, ports, &of_a_data_set, &mut |note| by_samples.push(note)));
        let streamed = streamed.and_then(|runs| {
            let bytes = |run: &Vec<Value>| run.iter().map(|value| Ok(value.bytes()?.into_owned())).collect();
            runs.iter().map(bytes).collect::<Result<Vec<Vec<Vec<u8>>>>>()
        });
        let source = open(path);
        let owned = source.and_then(|source| whole(source, ports, &of_a_data_set, &mut |note| at_once.push(note)));
        [
            streamed.map(|runs| (runs, by_samples)),
            owned.map(|runs| (runs, at_once)),
        ]
    }

    fn npz(path: &Path, compressed: bool, write: impl FnOnce(&mut NpzWriter<File>)) {
        let file = File::create(path).unwrap();
        let mut npz = if compressed {
            NpzWriter::new_compressed(file)
        } else {
            NpzWriter::new(file)
        };
        write(&mut npz);
        npz.finish().unwrap();
    }

    fn numbers(shape: &[usize], fortran: bool) -> NdArray<f32, IxDyn> {
        let count: usize = shape.iter().product();
        let values = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
        NdArray::from_shape_vec(IxDyn(shape).set_f(fortran), values).unwrap()
    }

    #[test]
    fn samples_one_by_one_are_the_samples_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples");
        let ports = [port("a", DType::F32, &[1, 3, 5]), port("b", DType::U8, &[1, 4])];
        for (first, second) in [
            (&[6, 3, 5][..], &[6, 4][..]),
            (&[6, 1, 3, 5], &[6, 1, 4]),
            (&[1, 3, 5], &[1, 4]),
        ] {
            for (compressed, fortran) in [(false, false), (true, false), (true, true)] {
                npz(&path, compressed, |npz| {
                    npz.add_array("a", &numbers(first, fortran).mapv(f64::from)).unwrap();
                    npz.add_array("b", &numbers(second, fortran).mapv(|v| (v * 90.0 + 100.0) as u8))
                        .unwrap();
                });
                let [streamed, owned] = both(&path, &ports).map(Result::unwrap);
                assert!(streamed == owned, "{first:?} {compressed} {fortran}");
                assert_eq!(streamed.1.len(), 1, "{:?}", streamed.1);
            }
        }
        // An array alone.
        numbers(&[9, 3, 5], false)
            .write_npy(File::create(&path).unwrap())
            .unwrap();
        let [streamed, owned] = both(&path, &ports[..1]).map(Result::unwrap);
        assert_eq!(streamed.0.len(), 9);
        assert!(streamed == owned);
    }

    #[test]
    fn what_is_wrong_is_the_same_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples");
        let ports = [port("a", DType::F32, &[1, 4]), port("b", DType::F32, &[1, 2])];
        let refused = |text: &str| {
            for (way, read) in ["by samples", "at once"].iter().zip(both(&path, &ports)) {
                let error = read.expect_err(way).to_string();
                assert!(error.contains(text), "{way}: {error}");
            }
        };
        let mut damaged = numbers(&[5, 4], false);
        damaged[[3, 2]] = f32::NAN;
        let arrays = [
            (damaged, numbers(&[5, 2], false), "of sample 3 is NaN at element 2"),
            (numbers(&[5, 4], false), numbers(&[4, 2], false), "`b` holds 4 runs"),
            (numbers(&[5, 3], false), numbers(&[5, 2], false), "shape [5, 3]"),
            (numbers(&[0, 4], false), numbers(&[0, 2], false), "no sample"),
        ];
        for (a, b, text) in arrays {
            npz(&path, true, |npz| {
                npz.add_array("a", &a).unwrap();
                npz.add_array("b", &b).unwrap();
            });
            refused(text);
        }
        npz(&path, false, |npz| {
            npz.add_array("a", &numbers(&[5, 4], false)).unwrap()
        });
        refused("it is not in the archive");
        // A bit of the last sample, which no header tells of.
        npz(&path, false, |npz| {
            npz.add_array("a", &numbers(&[5, 4], false)).unwrap();
            npz.add_array("b", &numbers(&[5, 2], false)).unwrap();
        });
        let mut bytes = std::fs::read(&path).unwrap();
        let last = numbers(&[5, 4], false)[[4, 3]].to_le_bytes();
        let at = bytes.windows(4).position(|four| four == last).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        refused("`a.npy` is damaged");
    }

    #[test]
    fn an_array_of_another_length_than_its_header_says_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.npy");
        let port = [port("a", DType::F32, &[1, 4])];
        for change in [-1, 1_i64] {
            let mut bytes = Vec::new();
            numbers(&[5, 4], false).write_npy(&mut bytes).unwrap();
            bytes.resize((bytes.len() as i64 + change) as usize, 0);
            File::create(&path).unwrap().write_all(&bytes).unwrap();
            for read in both(&path, &port) {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("its header says [5, 4]"), "{error}");
            }
        }
    }

    #[test]
    fn small_files_are_held_and_large_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.npy");
        let ports = [port("a", DType::F32, &[1, 4])];
        for (bytes, large) in [(IN_MEMORY, false), (IN_MEMORY + 1, true)] {
            File::create(&path).unwrap().set_len(bytes).unwrap();
            assert_eq!(is_large(&Source::Array(File::open(&path).unwrap()), &ports), large);
        }
    }
}
