//! Reference arrays, and models packed to be compared with them.

use std::path::Path;

use arenite::{DType, Session, Target};
use arenite_host::metadata::{Metadata, Restored};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use ndarray::{ArrayD, Axis};
use ndarray_npy::NpzReader;

/// The bytes of each element along the first axis of an array.
pub struct Runs(pub Vec<Vec<u8>>);

/// An .npz file.
pub struct Archive(NpzReader<std::fs::File>);

impl Archive {
    /// Opens it.
    pub fn open(path: &Path) -> Self {
        let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(NpzReader::new(file).expect("an npz file"))
    }

    /// The keys.
    pub fn names(&mut self) -> Vec<String> {
        let names = self.0.names().expect("names");
        names
            .into_iter()
            .map(|n| n.trim_end_matches(".npy").to_string())
            .collect()
    }

    /// The rows of an array, little-endian.
    pub fn runs(&mut self, key: &str) -> Runs {
        macro_rules! try_type {
            ($($t:ty)*) => {$(
                if let Ok(array) = self.0.by_name::<ndarray::OwnedRepr<$t>, ndarray::IxDyn>(key) {
                    let array: ArrayD<$t> = array;
                    let rows = array.axis_iter(Axis(0));
                    return Runs(rows.map(|row| row.iter().flat_map(|v| bytes_of(*v)).collect()).collect());
                }
            )*};
        }
        try_type!(i8 u8 i16 i32 u32 i64 u64 f32 f64 bool);
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
little_endian!(i8 u8 i16 i32 u32 i64 u64 f32 f64);

impl LittleEndian for bool {
    fn little_endian(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
}

fn bytes_of<T: LittleEndian>(value: T) -> Vec<u8> {
    value.little_endian()
}

/// Returns the options of `pack INPUT -o FOLDER/… --target TARGET`.
pub fn options(input: &Path, folder: &Path, target: Target) -> Options {
    let output = folder
        .join(input.file_stem().expect("a name"))
        .with_extension("arenite");
    Options {
        target,
        plan_nodes: 2000,
        ..Options::new(input, output)
    }
}

/// Packs a model for `target` into `folder`.
///
/// # Errors
/// Errors of packing.
pub fn packed(input: &Path, folder: &Path, target: Target) -> Result<ModelFile, arenite_host::Error> {
    let options = options(input, folder, target);
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(&options.output)
}

/// [`packed`] with `--size`.
///
/// # Errors
/// Errors of packing.
pub fn packed_small(input: &Path, folder: &Path, target: Target) -> Result<ModelFile, arenite_host::Error> {
    let options = Options {
        size: true,
        ..options(input, folder, target)
    };
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(&options.output)
}

/// [`packed`] with `--keep-dead-channels`.
///
/// # Errors
/// Errors of packing.
pub fn packed_whole(input: &Path, folder: &Path, target: Target) -> Result<ModelFile, arenite_host::Error> {
    let options = Options {
        keep_dead_channels: true,
        ..options(input, folder, target)
    };
    pack(&options, &mut |_, _, _| {})?;
    ModelFile::open(&options.output)
}

/// The tensor that `step` of a session completes, as the trace has it, and its names.
pub fn completed<'m>(metadata: &'m Metadata, step: u32, session: &Session<'_, '_>) -> Option<(&'m [String], Restored)> {
    let tensor = metadata.steps[step as usize].completes.as_ref()?;
    let len = tensor.shape.iter().product::<u32>() * tensor.dtype.bytes() as u32;
    let bytes = session.read(tensor.slot, len).expect("in bounds");
    let restored = metadata.traced(step as usize, bytes).expect("its metadata is right");
    Some((&tensor.names, restored))
}

/// The first byte of two int8 tensors that both networks compute and that differs; of tensors of one size.
pub fn first_difference(a: &Restored, b: &Restored) -> Option<usize> {
    assert_eq!(a.bytes.len(), b.bytes.len());
    (0..a.bytes.len()).find(|&at| a.is_known(at) && b.is_known(at) && a.bytes[at] != b.bytes[at])
}

/// Returns the difference between `got` and `expected`, if any.
pub fn difference(dtype: DType, got: &[u8], expected: &[u8]) -> Option<String> {
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
