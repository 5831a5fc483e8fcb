//! NumPy files: arrays of any element type in, a model's inputs out; and the other way round.

use std::path::Path;

use arenite::{DType, Port};

use crate::files::npy::{self, Element, Npy, Wrong};
use crate::files::zip::Zip;
use crate::files::{self, Draft, Output};
use crate::{Error, Result};

/// An array in C order with its element type; 64-bit floats are kept apart, models have none.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements.
    pub values: Values,
}

/// Elements by type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// f64.
    F64(Vec<f64>),
    /// f32.
    F32(Vec<f32>),
    /// int8.
    I8(Vec<i8>),
    /// uint8.
    U8(Vec<u8>),
    /// int16.
    I16(Vec<i16>),
    /// int32.
    I32(Vec<i32>),
    /// int64.
    I64(Vec<i64>),
    /// bool.
    Bool(Vec<bool>),
}

/// The inputs of one run after the other.
#[derive(Debug, Default)]
pub struct Sequence {
    /// By run and input; one run of a model without inputs.
    pub runs: Vec<Vec<Vec<u8>>>,
    /// Whether the arrays had an axis for the runs.
    pub stacked: bool,
}

impl Sequence {
    /// Joins what each of `ports` was given.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`] where one of them holds another number of runs than the first; `place` says in which file it is.
    pub fn of(ports: &[Port<'_>], inputs: Vec<Runs>, place: impl Fn(usize, Error) -> Error) -> Result<Self> {
        let (count, stacked) = inputs
            .first()
            .map_or((1, false), |first| (first.runs.len(), first.sequence));
        let mut runs = vec![Vec::with_capacity(inputs.len()); count];
        for (index, (input, port)) in inputs.into_iter().zip(ports).enumerate() {
            if (input.runs.len(), input.sequence) != (count, stacked) {
                let error = Error::input(format!("input `{}` holds {} runs", port.name, input.runs.len()));
                return Err(place(index, error).expected(format!("{count}, as `{}` does", ports[0].name)));
            }
            for (run, bytes) in runs.iter_mut().zip(input.runs) {
                run.push(bytes);
            }
        }
        Ok(Self { runs, stacked })
    }
}

impl Array {
    /// Reads a `.npy` file.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Io`] where it cannot be read, [`crate::error::ErrorKind::Input`] where it is no array of numbers.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = files::read(path, "read the array")?;
        Self::decode(&bytes).map_err(|e| e.in_file(&files::paths::shown(path)))
    }

    /// Reads an array of a `.npz` file.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`] where there is no such array, or none of numbers.
    pub fn of_npz(npz: &Zip, name: &str) -> Result<Self> {
        let content = npz.read(&format!("{name}.npy")).or_else(|| npz.read(name));
        let content = content.ok_or_else(|| Error::input("it is not in the archive"));
        content
            .and_then(|content| content.map_err(|e| Error::input(e.to_string())))
            .and_then(|content| Self::decode(&content))
            .map_err(|e| e.at(format_args!("array `{name}`")))
    }

    /// Decodes a `.npy` file.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`] where it is no array of numbers.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let npy = Npy::parse(bytes).map_err(|wrong| not_an_array(&wrong))?;
        Ok(Self::of(&npy))
    }

    /// The elements of a decoded file.
    pub(crate) fn of(npy: &Npy<'_>) -> Self {
        let values = match npy.element {
            Element::F64 => Values::F64(npy.elements(f64::from_le_bytes)),
            Element::F32 => Values::F32(npy.elements(f32::from_le_bytes)),
            Element::I8 => Values::I8(npy.elements(i8::from_le_bytes)),
            Element::U8 => Values::U8(npy.elements(u8::from_le_bytes)),
            Element::I16 => Values::I16(npy.elements(i16::from_le_bytes)),
            Element::I32 => Values::I32(npy.elements(i32::from_le_bytes)),
            Element::I64 => Values::I64(npy.elements(i64::from_le_bytes)),
            Element::Bool => Values::Bool(npy.elements(|[byte]: [u8; 1]| byte != 0)),
        };
        let shape = npy.shape.clone();
        Self { shape, values }
    }

    /// An array of raw little-endian bytes, as models hold them.
    pub fn of_bytes(shape: &[usize], dtype: DType, bytes: &[u8]) -> Self {
        fn words<const N: usize, T>(bytes: &[u8], of: fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks().0.iter().map(|&word| of(word)).collect()
        }
        let values = match dtype {
            DType::F32 => Values::F32(words(bytes, f32::from_le_bytes)),
            DType::I8 => Values::I8(words(bytes, i8::from_le_bytes)),
            DType::U8 => Values::U8(bytes.to_vec()),
            DType::I16 => Values::I16(words(bytes, i16::from_le_bytes)),
            DType::I32 => Values::I32(words(bytes, i32::from_le_bytes)),
            DType::I64 => Values::I64(words(bytes, i64::from_le_bytes)),
            DType::Bool => Values::Bool(bytes.iter().map(|&b| b != 0).collect()),
        };
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    /// Raw little-endian bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.values {
            Values::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I8(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::U8(v) => v.clone(),
            Values::I16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Bool(v) => v.iter().map(|&v| u8::from(v)).collect(),
        }
    }

    /// The model's element type; `None` for 64-bit floats.
    pub(crate) fn dtype(&self) -> Option<DType> {
        Some(match self.values {
            Values::F64(_) => return None,
            Values::F32(_) => DType::F32,
            Values::I8(_) => DType::I8,
            Values::U8(_) => DType::U8,
            Values::I16(_) => DType::I16,
            Values::I32(_) => DType::I32,
            Values::I64(_) => DType::I64,
            Values::Bool(_) => DType::Bool,
        })
    }

    /// The element type's name.
    pub fn type_name(&self) -> &'static str {
        match self.dtype() {
            None => "float64",
            Some(DType::F32) => "float32",
            Some(dtype) => dtype.name(),
        }
    }

    /// The elements as f64.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.values {
            Values::F64(v) => v.clone(),
            _ => crate::compare::to_f64(self.dtype().unwrap_or(DType::F32), &self.bytes()),
        }
    }

    /// A draft of a `.npy` file.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Io`].
    pub fn draft(&self, output: &Output) -> Result<Draft> {
        let element = match self.values {
            Values::F64(_) => Element::F64,
            Values::F32(_) => Element::F32,
            Values::I8(_) => Element::I8,
            Values::U8(_) => Element::U8,
            Values::I16(_) => Element::I16,
            Values::I32(_) => Element::I32,
            Values::I64(_) => Element::I64,
            Values::Bool(_) => Element::Bool,
        };
        let whole = [npy::header(element, &self.shape), self.bytes()].concat();
        let draft = output.draft_of(&whole);
        draft.map_err(|e| Error::io(output.path(), "write the array", &e))
    }

    /// The runs that this array holds for an input: itself, or one for each index of an additional leading axis; where the input's batch is 1, that axis may
    /// stand in its place, as data sets have it. Second, what was converted, for the user to know.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`] for another shape or element type, with both.
    pub fn runs(&self, port: &Port<'_>) -> Result<(Runs, Option<String>)> {
        let wanted: Vec<usize> = port.shape.iter().map(|&n| n as usize).collect();
        let sequence = match &self.shape[..] {
            shape if shape == wanted => false,
            [_, rest @ ..] if rest == wanted || wanted.split_first() == Some((&1, rest)) => true,
            shape => {
                return Err(Error::input(format!("input `{}` was given shape {shape:?}", port.name))
                    .expected(format!("{wanted:?}, or one more leading axis for a sequence of runs")));
            }
        };
        let (bytes, note) = self.converted(port)?;
        let each = wanted.iter().product::<usize>() * port.dtype.bytes();
        let runs = if sequence {
            bytes.chunks_exact(each.max(1)).map(<[u8]>::to_vec).collect()
        } else {
            vec![bytes]
        };
        Ok((Runs { sequence, runs }, note))
    }

    /// The bytes in the port's element type: the same, or floats rounded to it with the model's scale.
    fn converted(&self, port: &Port<'_>) -> Result<(Vec<u8>, Option<String>)> {
        if self.dtype() == Some(port.dtype) {
            return Ok((self.bytes(), None));
        }
        let wrong = Error::input(format!("input `{}` was given {} elements", port.name, self.type_name()));
        let float = matches!(self.values, Values::F32(_) | Values::F64(_));
        let (name, dtype) = (port.name, port.dtype);
        if float && dtype == DType::F32 {
            let bytes = self.to_f64().iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
            return Ok((bytes, Some(format!("input `{name}`: float64 rounded to float32"))));
        }
        if !float || port.scale == 0.0 {
            return Err(wrong.expected(dtype.name()).help("convert it with numpy's astype"));
        }
        let (scale, zero_point) = (port.scale, port.zero_point);
        let quantised = |low: i32, high: i32| {
            let values = self.to_f64().into_iter();
            values.map(move |v| quantise(v as f32, scale, zero_point, low, high))
        };
        let bytes = match dtype {
            DType::I8 => quantised(-128, 127).map(|v| v as u8).collect(),
            DType::U8 => quantised(0, 255).map(|v| v as u8).collect(),
            DType::I16 => quantised(-32768, 32767)
                .flat_map(|v| (v as i16).to_le_bytes())
                .collect(),
            _ => return Err(wrong.expected(dtype.name())),
        };
        let how = format!(
            "input `{name}`: {} quantised to {} with scale {scale} and zero point {zero_point}",
            self.type_name(),
            dtype.name()
        );
        Ok((bytes, Some(how)))
    }
}

/// Why bytes are no array, for the user.
pub(crate) fn not_an_array(wrong: &Wrong) -> Error {
    match wrong {
        Wrong::Element(found) => Error::input(format!("its element type {found} is none that a model has"))
            .expected("float32, float64, int8, uint8, int16, int32, int64 or bool"),
        Wrong::Malformed(reason) => {
            Error::input(format!("it is no NumPy array: {reason}")).expected("a file as numpy.save writes it")
        }
    }
}

/// Values of an array for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// Whether there was a leading axis for runs.
    pub sequence: bool,
    /// The input's bytes, run by run.
    pub runs: Vec<Vec<u8>>,
}

/// `round(v / scale) + zero_point`, halves away from zero, saturated: TensorFlow Lite's QUANTIZE.
fn quantise(v: f32, scale: f32, zero_point: i32, low: i32, high: i32) -> i32 {
    let rounded = (v / scale).round();
    // NaN becomes 0, as in the runtime's own conversion.
    (rounded as i32).saturating_add(zero_point).clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite::Slot;

    fn port(dtype: DType, shape: &[u32], scale: f32, zero_point: i32) -> Port<'static> {
        Port {
            name: "x",
            slot: Slot::default(),
            dtype,
            shape: shape.iter().copied().collect(),
            scale,
            zero_point,
        }
    }

    fn floats(shape: &[usize], values: &[f32]) -> Array {
        Array {
            shape: shape.to_vec(),
            values: Values::F32(values.to_vec()),
        }
    }

    #[test]
    fn arrays_survive_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let all = [
            Values::F64(vec![1.5, -2.0]),
            Values::F32(vec![f32::NAN.copysign(1.0), 3.0]),
            Values::I8(vec![-128, 127]),
            Values::U8(vec![0, 255]),
            Values::I16(vec![-32768, 5]),
            Values::I32(vec![i32::MIN, 7]),
            Values::I64(vec![i64::MAX, 7]),
            Values::Bool(vec![true, false]),
        ];
        for values in all {
            let array = Array {
                shape: vec![1, 2],
                values,
            };
            array.draft(&Output::to(&path).unwrap()).unwrap().publish().unwrap();
            let read = Array::read(&path).unwrap();
            assert_eq!((read.shape.clone(), read.bytes()), (array.shape.clone(), array.bytes()));
            assert_eq!(read.dtype(), array.dtype());
        }
    }

    #[test]
    fn a_leading_axis_is_a_sequence() {
        let port = port(DType::F32, &[1, 2], 0.0, 0);
        let (one, _) = floats(&[1, 2], &[1.0, 2.0]).runs(&port).unwrap();
        assert_eq!((one.sequence, one.runs.len()), (false, 1));
        let (three, _) = floats(&[3, 1, 2], &[1.0; 6]).runs(&port).unwrap();
        assert_eq!((three.sequence, three.runs.len()), (true, 3));
        // As data sets have it.
        let (five, _) = floats(&[5, 2], &[1.0; 10]).runs(&port).unwrap();
        assert_eq!((five.sequence, five.runs.len()), (true, 5));
        let error = floats(&[5, 3], &[1.0; 15]).runs(&port).unwrap_err().to_string();
        assert!(error.contains("[5, 3]"), "{error}");
        let error = floats(&[2], &[1.0; 2]).runs(&port).unwrap_err().to_string();
        assert!(error.contains("[2]") && error.contains("[1, 2]"), "{error}");
    }

    #[test]
    fn floats_are_quantised_with_the_models_scale() {
        let port = port(DType::I8, &[5], 0.5, 3);
        let (runs, note) = floats(&[5], &[0.25, -0.25, 1.0, 1000.0, -1000.0]).runs(&port).unwrap();
        assert_eq!(runs.runs[0], [4, 2, 5, 127, 128]);
        assert!(note.unwrap().contains("scale 0.5"));
    }

    #[test]
    fn other_types_are_refused_with_both_names() {
        let array = Array {
            shape: vec![1],
            values: Values::I64(vec![1]),
        };
        let error = array.runs(&port(DType::I32, &[1], 0.0, 0)).unwrap_err().to_string();
        assert!(error.contains("int64") && error.contains("int32"), "{error}");
    }
}
