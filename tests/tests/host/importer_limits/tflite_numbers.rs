//! Every scale, zero point and real option of TensorFlow Lite files replaced by a number of no sense: refused by name, or not read at all.

use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::import::{ImportOptions, import_content};
use arenite_tests::golden::packed;

/// The type of a variable's handle.
const RESOURCE: u8 = 13;

/// A file and where its numbers stand: what each is, its place, its bytes.
struct Numbers<'a>(&'a [u8], Vec<(&'static str, usize)>);

impl Numbers<'_> {
    fn u32(&self, at: usize) -> usize {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes")) as usize
    }

    /// The place of a field of the table at `at`.
    fn field(&self, at: usize, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"));
        let vtable = at.checked_add_signed(-(back as isize)).expect("inside the file");
        let u16 = |at: usize| usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]));
        let entry = 4 + 2 * index;
        (entry + 2 <= u16(vtable) && u16(vtable + entry) != 0).then(|| at + u16(vtable + entry))
    }

    fn table(&self, at: usize, index: usize) -> Option<usize> {
        self.field(at, index).map(|at| at + self.u32(at))
    }

    /// Places of a vector's elements of `width` bytes.
    fn vector(&self, at: usize, index: usize, width: usize) -> Vec<usize> {
        let Some(start) = self.table(at, index) else {
            return Vec::new();
        };
        (0..self.u32(start)).map(|i| start + 4 + i * width).collect()
    }

    fn tables(&self, at: usize, index: usize) -> Vec<usize> {
        self.vector(at, index, 4)
            .into_iter()
            .map(|at| at + self.u32(at))
            .collect()
    }

    fn find(&mut self) {
        let model = self.u32(0);
        let codes = self.tables(model, 1).into_iter().map(|code| {
            let old = self.field(code, 0).map_or(0, |at| usize::from(self.0[at]));
            old.max(self.field(code, 3).map_or(0, |at| self.u32(at)))
        });
        let codes: Vec<usize> = codes.collect();
        let mut found = Vec::new();
        for graph in self.tables(model, 2) {
            for tensor in self.tables(graph, 0) {
                let Some(quant) = self.table(tensor, 4) else { continue };
                found.extend(self.vector(quant, 2, 4).into_iter().map(|at| ("scale", at)));
                found.extend(self.vector(quant, 3, 8).into_iter().map(|at| ("zero point", at)));
            }
            for operator in self.tables(graph, 3) {
                let code = codes[self.field(operator, 0).map_or(0, |at| self.u32(at))];
                let Some(options) = self.table(operator, 4) else {
                    continue;
                };
                // SOFTMAX's beta, LEAKY_RELU's alpha, UNIDIRECTIONAL_SEQUENCE_LSTM's cell_clip.
                let field = match code {
                    25 => ("beta", 0),
                    98 => ("alpha", 0),
                    44 => ("cell_clip", 1),
                    _ => continue,
                };
                found.extend(self.field(options, field.1).map(|at| (field.0, at)));
            }
        }
        self.1 = found;
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "tflite"));
    files.sort();
    files
}

#[test]
fn numbers_of_no_sense_are_refused_by_name_or_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut refused, mut unread, mut kinds) = (0, 0, std::collections::BTreeSet::new());
    let mut said = std::collections::BTreeSet::<&str>::new();
    for path in files() {
        let content = std::fs::read(&path).expect("a file");
        let pack = |content: &[u8]| {
            let input = folder.path().join("m.tflite");
            std::fs::write(&input, content).expect("written");
            packed(&input, folder.path(), Target::Portable)
                .map(drop)
                .map_err(|e| e.to_string())
        };
        let mut numbers = Numbers(&content, Vec::new());
        numbers.find();
        // The first of each kind, and a few more.
        let mut taken = std::collections::BTreeMap::<&str, usize>::new();
        for (what, at) in numbers.1 {
            let count = taken.entry(what).or_default();
            *count += 1;
            if *count > 3 {
                continue;
            }
            let senseless: Vec<Vec<u8>> = match what {
                "zero point" => [1i64 << 40, -(1 << 40), i64::MAX]
                    .iter()
                    .map(|v| v.to_le_bytes().to_vec())
                    .collect(),
                _ => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY]
                    .iter()
                    .map(|v| v.to_le_bytes().to_vec())
                    .collect(),
            };
            for bytes in senseless {
                let mut changed = content.clone();
                changed[at..at + bytes.len()].copy_from_slice(&bytes);
                match pack(&changed) {
                    Err(text) => {
                        assert!(text.contains(what), "{} {what}: {text}", path.display());
                        let parts = ["a finite scale that is not below zero"];
                        said.extend(parts.into_iter().filter(|part| text.contains(part)));
                        refused += 1;
                    }
                    Ok(_) => {
                        unread += 1;
                        kinds.insert(format!("{what} in {}", path.file_name().unwrap_or_default().display()));
                    }
                }
            }
        }
    }
    println!("TensorFlow Lite: {refused} refused, {unread} not read: {kinds:?}");
    assert!(refused > 200, "{refused}");
    assert_eq!(said.len(), 1, "{said:?}");
}

/// Extents of the results of operators of a file's main subgraph: name of the tensor, place of each extent. A variable's handle has no shape of a value.
fn extents_of_results(content: &[u8]) -> Vec<(String, Vec<usize>)> {
    let file = Numbers(content, Vec::new());
    let mut found = Vec::new();
    if let Some(&graph) = file.tables(file.u32(0), 2).first() {
        let tensors = file.tables(graph, 0);
        for operator in file.tables(graph, 3) {
            for result in file.vector(operator, 2, 4) {
                let tensor = tensors[file.u32(result)];
                if file.field(tensor, 1).is_some_and(|at| content[at] == RESOURCE) {
                    continue;
                }
                let name = file.vector(tensor, 3, 1);
                let name = name.iter().map(|&at| content[at]).collect();
                found.push((String::from_utf8(name).expect("a name"), file.vector(tensor, 0, 4)));
            }
        }
    }
    found
}

/// The places of the types of a file's inputs.
pub(crate) fn types_of_inputs(content: &[u8]) -> Vec<usize> {
    let file = Numbers(content, Vec::new());
    let graph = file.tables(file.u32(0), 2)[0];
    let tensors = file.tables(graph, 0);
    let inputs = file.vector(graph, 1, 4);
    inputs
        .into_iter()
        .filter_map(|input| file.field(tensors[file.u32(input)], 1))
        .collect()
}

#[test]
fn a_declared_shape_that_contradicts_the_computed_one_is_refused() {
    let (mut refused, mut taken) = (0, Vec::new());
    // How many frames CIRCULAR_BUFFER holds is said by its result's extent alone.
    let states = |path: &Path, axis| axis == 1 && path.to_string_lossy().contains("circular_");
    for path in files() {
        let content = std::fs::read(&path).expect("a file");
        let read = |content: &[u8]| import_content("m.tflite".as_ref(), content, None, &ImportOptions::default());
        if read(&content).is_err() {
            continue;
        }
        for (name, extents) in extents_of_results(&content) {
            for (axis, at) in extents.into_iter().enumerate() {
                let extent = i32::from_le_bytes(content[at..at + 4].try_into().expect("four bytes"));
                for other in [extent + 1, extent * 2, extent - 1, 1] {
                    if other == extent || other <= 0 || states(&path, axis) {
                        continue;
                    }
                    let mut changed = content.clone();
                    changed[at..at + 4].copy_from_slice(&other.to_le_bytes());
                    match read(&changed) {
                        Err(_) => refused += 1,
                        Ok(_) => taken.push(format!("{}: `{name}`, axis {axis}: {other}", path.display())),
                    }
                }
            }
        }
    }
    println!("{refused} declared extents refused");
    assert!(refused > 1000, "{refused}");
    assert_eq!(taken, [""; 0]);
}

/// A product whose operator becomes another one has weights of four axes, and a megengine convolution whose constant lost an axis has three.
#[test]
fn weights_of_other_axes_are_refused_by_their_shape() {
    const MUL: u8 = 18;
    const FULLY_CONNECTED: u8 = 9;
    let models = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mul = std::fs::read(models.join("models/tflite_ops/mul_broadcast_float32.tflite")).expect("a model");
    let places: Vec<usize> = (0..mul.len()).filter(|&at| mul[at] == MUL).collect();
    let mut said = Vec::new();
    // The operator's number stands in the file twice.
    for (i, &first) in places.iter().enumerate() {
        for &second in &places[i + 1..] {
            let mut changed = mul.clone();
            (changed[first], changed[second]) = (FULLY_CONNECTED, FULLY_CONNECTED);
            let read = import_content("m.tflite".as_ref(), &changed, None, &ImportOptions::default());
            said.extend(read.err().map(|e| e.to_string()));
        }
    }
    assert!(
        said.iter().any(|text| text.contains("weights of shape [1, 3, 1, 4]")),
        "{said:?}"
    );
    let trace = std::fs::read_to_string(models.join("corpus/megengine/small")).expect("a trace");
    let changed = trace.replace("4,3,3,3]", "4,3,9]");
    let read = import_content("t.json".as_ref(), changed.as_bytes(), None, &ImportOptions::default());
    let text = read.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(text.contains("weights of shape [4, 3, 9]"), "{text}");
}
