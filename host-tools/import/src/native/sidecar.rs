//! The files beside a trace: constants and samples. Parameters are only checked; packing reads them in pieces.

use std::collections::HashMap;
use std::path::Path;

use super::fields::{self, Role};
use super::trace::{Declared, Trace, file_name};
use crate::build::elements;
use crate::error::{Error, ErrorKind, Result};
use crate::files::json::Json;
use crate::files::system::canonical;
use crate::graph::DType;
use crate::imported::{SampleRun, Samples};
use crate::weights::safetensors::File;

/// The largest part of a sidecar that is read into memory: samples and constants are small, weights are not read here.
const LARGEST: usize = 256 << 20;

/// The most runs of samples.
pub(super) const MOST_RUNS: usize = 1 << 20;

/// The values of constants; checks that the file holds exactly what the trace names.
pub(super) fn constants(trace: &Trace<'_>, folder: &Path) -> Result<HashMap<String, Vec<u8>>> {
    let mut constants = HashMap::new();
    let in_memory = |declared: &Declared<'_>| match declared.role {
        Role::Constant => true,
        Role::Parameter => declared.dtype != DType::F32,
        _ => false,
    };
    let Some(name) = &trace.parameters else {
        return Ok(constants);
    };
    let path = folder.join(name);
    if canonical(&path).is_err() && !trace.tensors.values().any(in_memory) {
        // `--weights` may name another file; without it, opening this one is the error.
        return Ok(constants);
    }
    let file = File::open(&path, "read the weights").map_err(|e| named(e, "parameters"))?;
    let in_file = |e: Error| e.in_file(&path);
    for name in &trace.order {
        let declared = &trace.tensors[name.as_str()];
        if !matches!(declared.role, Role::Parameter | Role::Constant) {
            continue;
        }
        check_entry(&file, name, &declared.shape, declared.dtype).map_err(in_file)?;
        if in_memory(declared) {
            let bytes = read(&file, name, declared, 1).map_err(in_file)?;
            check_finite(&bytes, declared.dtype).map_err(|e| in_file(e.at(format!("`{name}`"))))?;
            constants.insert(name.clone(), bytes);
        }
    }
    let named = |key: &String| {
        trace
            .tensors
            .get(key)
            .is_some_and(|d| matches!(d.role, Role::Parameter | Role::Constant))
    };
    match file.keys().into_iter().find(|key| !named(key)) {
        Some(key) => Err(in_file(Error::new(
            ErrorKind::Weights,
            format!("entry `{key}` is no parameter or constant of the trace"),
        ))),
        None => Ok(constants),
    }
}

/// The name of the file of the sample runs, if the trace has any.
pub(super) fn samples_file(trace: &Trace<'_>) -> Result<Option<String>> {
    let name = |json: &Json<'_>| file_name(json.object()?.need("file")?);
    trace.samples.as_ref().map(name).transpose()
}

/// The sample runs, if the trace has any.
pub(super) fn samples(trace: &Trace<'_>, folder: &Path) -> Result<Option<Samples>> {
    let Some(json) = &trace.samples else {
        return Ok(None);
    };
    let object = json.object()?;
    fields::SAMPLES.check(&object)?;
    let path = folder.join(file_name(object.need("file")?)?);
    let runs = object.need("runs")?.size(1..=MOST_RUNS)?;
    let rtol = match object.get("rtol") {
        None => 1e-4,
        Some(json) => match json.number()? {
            rtol if rtol > 0.0 => rtol,
            rtol => return Err(json.error(format!("rtol {rtol}")).expected("a number above zero")),
        },
    };
    let file = File::open(&path, "read the samples").map_err(|e| named(e, "samples"))?;
    let mut all = vec![
        SampleRun {
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        runs
    ];
    for (field, names) in [("inputs", &trace.inputs), ("outputs", &trace.outputs)] {
        let map = object.need(field)?;
        let map_fields = map.object()?;
        for (name, key) in map_fields.fields() {
            if !names.iter().any(|(n, _)| n == name) {
                return Err(key.error(format!("`{name}` is not among the network's {field}")));
            }
            let declared = trace.declared(name, key)?;
            let key = key.string()?;
            let shape: Vec<usize> = std::iter::once(runs).chain(declared.shape.iter().copied()).collect();
            check_entry(&file, &key, &shape, declared.dtype).map_err(|e| e.in_file(&path))?;
            let bytes = read(&file, &key, declared, runs).map_err(|e| e.in_file(&path))?;
            let each = elements(&declared.shape)? * declared.dtype.bytes();
            for (run, bytes) in all.iter_mut().zip(bytes.chunks_exact(each.max(1))) {
                let entry = (name.clone(), bytes.to_vec());
                match field {
                    "inputs" => run.inputs.push(entry),
                    _ => run.outputs.push(entry),
                }
            }
        }
        let count = map_fields.fields().len();
        if (field == "inputs" && count != names.len()) || count == 0 {
            return Err(map.error(format!("{count} {field}")).expected(match field {
                "inputs" => "every input of the network",
                _ => "at least one output of the network",
            }));
        }
    }
    Ok(Some(Samples { runs: all, rtol }))
}

fn check_entry(file: &File, key: &str, shape: &[usize], dtype: DType) -> Result<()> {
    let Some((found, found_dtype)) = file.entry(key) else {
        return Err(crate::weights::missing(key, &file.keys()));
    };
    let wanted = match dtype {
        DType::F32 => "F32",
        DType::I8 => "I8",
        DType::U8 => "U8",
        DType::I16 => "I16",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::Bool => "BOOL",
    };
    if found == shape && found_dtype == wanted {
        Ok(())
    } else {
        Err(
            Error::new(ErrorKind::Weights, format!("entry `{key}` is {found_dtype} {found:?}"))
                .expected(format!("{wanted} {shape:?}")),
        )
    }
}

fn read(file: &File, key: &str, declared: &Declared<'_>, runs: usize) -> Result<Vec<u8>> {
    let bytes = elements(&declared.shape)? * declared.dtype.bytes();
    match bytes.checked_mul(runs) {
        Some(bytes) if bytes <= LARGEST => file.bytes(key),
        _ => Err(
            Error::unsupported(format!("entry `{key}` is too large for a constant or a sample"))
                .expected(format!("at most {LARGEST} bytes")),
        ),
    }
}

fn check_finite(bytes: &[u8], dtype: DType) -> Result<()> {
    if dtype != DType::F32 {
        return Ok(());
    }
    let mut values = bytes.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw));
    match values.position(|v| !v.is_finite()) {
        Some(index) => Err(Error::new(ErrorKind::Weights, format!("element {index} is not finite"))),
        None => Ok(()),
    }
}

/// Says of a file that cannot be read who asked for it.
fn named(error: Error, entry: &str) -> Error {
    match error.kind() {
        ErrorKind::Io => error.help(format!("the trace names this file as its `{entry}`")),
        _ => error,
    }
}
