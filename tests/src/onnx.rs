//! Cases of ONNX as its own backend tests lay them out: `NAME/model.onnx` with `NAME/test_data_set_0/{input,output}_K.pb`.
//!
//! The reader of tensors shares no code with the importer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::model::{ModelFile, run};

use crate::golden::packed;

/// Outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All outputs are right.
    Passed,
    /// The importer refuses it, and says why.
    Refused(String),
    /// An output is wrong, or what was packed did not run.
    Wrong(String),
}

/// A tensor of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tensor {
    /// `TensorProto.DataType`
    pub elem: u64,
    /// Extents.
    pub shape: Vec<usize>,
    /// Row-major; integers as they are.
    pub values: Vec<f64>,
}

/// The cases of a folder, by name.
pub fn cases(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().join("model.onnx").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The fields of a protocol buffer: number, and bytes or number.
fn fields(mut data: &[u8]) -> Vec<(u64, Result<&[u8], u64>)> {
    fn varint(data: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0u64, 0);
        while let Some((&byte, rest)) = data.split_first() {
            *data = rest;
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !data.is_empty() {
        let tag = varint(&mut data);
        let value = match tag & 7 {
            0 => Err(varint(&mut data)),
            2 => {
                let length = varint(&mut data) as usize;
                let (bytes, rest) = data.split_at(length);
                data = rest;
                Ok(bytes)
            }
            kind => {
                let (bytes, rest) = data.split_at(if kind == 5 { 4 } else { 8 });
                data = rest;
                Ok(bytes)
            }
        };
        found.push((tag >> 3, value));
    }
    found
}

/// Repeated integers, packed or not.
fn integers(field: Result<&[u8], u64>) -> Vec<u64> {
    match field {
        Err(one) => vec![one],
        Ok(bytes) => {
            let mut values = vec![0u64];
            let mut shift = 0;
            for &byte in bytes {
                *values.last_mut().expect("one") |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    values.push(0);
                    shift = 0;
                }
            }
            values.pop();
            values
        }
    }
}

/// The kinds of a model's operators, of its main graph.
pub fn operators(model: &[u8]) -> BTreeSet<String> {
    let inside = |data, number| {
        let parts = fields(data).into_iter();
        parts.filter_map(move |(found, field)| field.ok().filter(|_| found == number))
    };
    let nodes = inside(model, 7).flat_map(|graph| inside(graph, 1));
    let kinds = nodes.flat_map(|node| inside(node, 4));
    kinds.map(|kind| String::from_utf8_lossy(kind).into_owned()).collect()
}

impl Tensor {
    /// Reads a `TensorProto`; `None` for element types that are no whole bytes of a known number.
    pub fn read(data: &[u8]) -> Option<Self> {
        let mut tensor = Self::default();
        let (mut raw, mut typed): (Option<&[u8]>, Vec<f64>) = (None, Vec::new());
        for (number, field) in fields(data) {
            match (number, field) {
                (1, field) => tensor.shape.extend(integers(field).iter().map(|&n| n as usize)),
                (2, Err(elem)) => tensor.elem = elem,
                (4, Ok(bytes)) => typed.extend(
                    bytes
                        .chunks(4)
                        .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))),
                ),
                (5 | 7, field) => typed.extend(integers(field).iter().map(|&n| n as i64 as f64)),
                (9, Ok(bytes)) => raw = Some(bytes),
                _ => {}
            }
        }
        tensor.values = match raw {
            None => typed,
            Some(raw) => {
                let each = |width: usize, f: fn(&[u8]) -> f64| raw.chunks(width).map(f).collect();
                match tensor.elem {
                    1 => each(4, |b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))),
                    2 | 9 => each(1, |b| f64::from(b[0])),
                    3 => each(1, |b| f64::from(b[0] as i8)),
                    4 => each(2, |b| f64::from(u16::from_le_bytes(b.try_into().unwrap()))),
                    5 => each(2, |b| f64::from(i16::from_le_bytes(b.try_into().unwrap()))),
                    6 => each(4, |b| f64::from(i32::from_le_bytes(b.try_into().unwrap()))),
                    7 => each(8, |b| i64::from_le_bytes(b.try_into().unwrap()) as f64),
                    10 => each(2, |b| half(u16::from_le_bytes(b.try_into().unwrap()))),
                    16 => each(2, |b| {
                        let high = u32::from(u16::from_le_bytes(b.try_into().unwrap()));
                        f64::from(f32::from_bits(high << 16))
                    }),
                    _ => return None,
                }
            }
        };
        if raw.is_none() && matches!(tensor.elem, 10 | 16) {
            // Bits of half floats that stand as integers.
            return None;
        }
        Some(tensor)
    }

    /// The bytes of its elements as `dtype`.
    fn stored(&self, dtype: DType) -> Vec<u8> {
        let each = |v: &f64| match dtype {
            DType::F32 => (*v as f32).to_le_bytes().to_vec(),
            DType::I8 => (*v as i8).to_le_bytes().to_vec(),
            DType::U8 | DType::Bool => vec![*v as u8],
            DType::I16 => (*v as i16).to_le_bytes().to_vec(),
            DType::I32 => (*v as i32).to_le_bytes().to_vec(),
            DType::I64 => (*v as i64).to_le_bytes().to_vec(),
        };
        self.values.iter().flat_map(each).collect()
    }

    /// Returns the difference from bytes of `dtype`, if any: integers by more than `steps`, reals by more than 1e-5 of the largest, or ONNX's own 1e-3 of
    /// themselves; those that the case has in half precision by a step of it at the largest more.
    fn difference(&self, dtype: DType, got: &[u8], steps: f64) -> Option<String> {
        let width = dtype.bytes();
        let value = |b: &[u8]| match dtype {
            DType::F32 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
            DType::I8 => f64::from(b[0] as i8),
            DType::U8 | DType::Bool => f64::from(b[0]),
            DType::I16 => f64::from(i16::from_le_bytes(b.try_into().unwrap())),
            DType::I32 => f64::from(i32::from_le_bytes(b.try_into().unwrap())),
            DType::I64 => i64::from_le_bytes(b.try_into().unwrap()) as f64,
        };
        let got: Vec<f64> = got.chunks_exact(width).map(value).collect();
        if got.len() != self.values.len() {
            return Some(format!("{} elements, expected {}", got.len(), self.values.len()));
        }
        let largest = self
            .values
            .iter()
            .filter(|v| v.is_finite())
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        let close = |a: f64, b: f64| {
            let bound = if dtype == DType::F32 {
                let step = match self.elem {
                    10 => 2f64.powi(-10),
                    16 => 2f64.powi(-7),
                    _ => 0.0,
                };
                (1e-5 * largest).max(1e-3 * b.abs()).max(1e-7).max(step * largest)
            } else {
                steps
            };
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
        };
        let at = got.iter().zip(&self.values).position(|(&a, &b)| !close(a, b))?;
        Some(format!("element {at} is {}, expected {}", got[at], self.values[at]))
    }
}

/// A float16, of its bits.
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => mantissa * 2f64.powi(-24),
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

fn tensors(folder: &Path, what: &str) -> Option<Vec<Tensor>> {
    let path = |index: usize| folder.join(format!("{what}_{index}.pb"));
    let count = (0..).take_while(|&i| path(i).is_file()).count();
    (0..count)
        .map(|i| Tensor::read(&std::fs::read(path(i)).expect("a file")))
        .collect()
}

/// Packs and runs a case; integers may be `steps` away.
pub fn run_case(case: &Path, scratch: &Path, target: Target, steps: f64) -> Outcome {
    let input: PathBuf = case.join("model.onnx");
    match packed(&input, scratch, target) {
        Ok(file) => run_packed(case, &file, steps),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

/// Runs the file that a case was packed to, which this host loads; integers may be `steps` away.
pub fn run_packed(case: &Path, file: &ModelFile, steps: f64) -> Outcome {
    let data = case.join("test_data_set_0");
    let (Some(inputs), Some(expected)) = (tensors(&data, "input"), tensors(&data, "output")) else {
        return Outcome::Wrong("it packs, though its data are of a type that nobody reads".to_string());
    };
    let model = file.load().expect("it loads");
    if inputs.len() != usize::from(model.header().inputs) {
        return Outcome::Wrong(format!("{} inputs, expected {}", model.header().inputs, inputs.len()));
    }
    let stored = inputs.iter().enumerate();
    let stored = stored.map(|(port, tensor)| tensor.stored(model.input(port).expect("an input").dtype));
    let results = match run(&model, &[stored.collect()], true, &mut |_, _, _| {}) {
        Ok(results) => results,
        Err(error) => return Outcome::Wrong(error.to_string()),
    };
    for (port, tensor) in expected.iter().enumerate() {
        let output = model.output(port).expect("an output");
        if let Some(text) = tensor.difference(output.dtype, &results[0][port], steps) {
            return Outcome::Wrong(format!("output {port}: {text}"));
        }
    }
    Outcome::Passed
}

/// Writes ONNX files, field by field.
#[derive(Debug, Clone, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// With an integer field.
    #[must_use]
    pub fn int(mut self, number: u64, value: i64) -> Self {
        self.varint(number << 3);
        self.varint(value as u64);
        self
    }

    /// With a field of bytes: text, data or a message.
    #[must_use]
    pub fn bytes(mut self, number: u64, value: &[u8]) -> Self {
        self.varint(number << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// The message.
    pub fn done(self) -> Vec<u8> {
        self.0
    }

    /// A `ValueInfoProto` of floats; a negative extent is one that is only named, after its axis.
    pub fn value(name: &str, shape: &[i64]) -> Vec<u8> {
        let mut extents = Self::default();
        for (axis, &extent) in shape.iter().enumerate() {
            let extent = match extent {
                0.. => Self::default().int(1, extent),
                _ => Self::default().bytes(2, format!("{name}_{axis}").as_bytes()),
            };
            extents = extents.bytes(1, &extent.done());
        }
        let tensor = Self::default().int(1, 1).bytes(2, &extents.done()).done();
        let kind = Self::default().bytes(1, &tensor).done();
        Self::default().bytes(1, name.as_bytes()).bytes(2, &kind).done()
    }

    /// A `NodeProto`.
    pub fn node(op: &str, inputs: &[&str], output: &str) -> Self {
        let node = inputs
            .iter()
            .fold(Self::default(), |node, input| node.bytes(1, input.as_bytes()));
        node.bytes(2, output.as_bytes()).bytes(4, op.as_bytes())
    }

    /// A `TensorProto` of floats in another file.
    pub fn external(name: &str, shape: &[i64], location: &str, offset: i64, length: i64) -> Vec<u8> {
        let tensor = shape
            .iter()
            .fold(Self::default(), |tensor, &extent| tensor.int(1, extent));
        let pair = |key: &str, value: &str| {
            Self::default()
                .bytes(1, key.as_bytes())
                .bytes(2, value.as_bytes())
                .done()
        };
        let tensor = tensor
            .int(2, 1)
            .bytes(8, name.as_bytes())
            .bytes(13, &pair("location", location));
        let tensor = tensor.bytes(13, &pair("offset", &offset.to_string()));
        tensor.bytes(13, &pair("length", &length.to_string())).int(14, 1).done()
    }

    /// A `ModelProto` of this graph and operator set.
    pub fn model(graph: &[u8], opset: i64) -> Vec<u8> {
        let set = Self::default().int(2, opset).done();
        Self::default().int(1, 8).bytes(7, graph).bytes(8, &set).done()
    }
}
