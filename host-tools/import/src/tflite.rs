//! TensorFlow Lite files (`.tflite`, schema version 3), with the semantics of TensorFlow Lite Micro.
//!
//! ```text
//! flatbuffer, flexbuffer: checked access   schema: structs   importer: the import under way   scope: of which subgraph
//! tensors: shapes, quantisation   fold: shape arithmetic   stated: options that repeat numbers and types of tensors
//! rows: one row an operator, its types and its translation   ops: how it is applied (products, movement, rearrange, repeat, logic, sums,
//! compound, recurrent, signal: translations)
//! widen: float16 and hybrid weights   legacy, legacy_real: uint8   state: variables and the initialising subgraph   control: IF and WHILE
//! ```
//!
//! Tensors keep their names; where two share one, the later is named `NAME#INDEX` after its index in the file. Reference data may also
//! call a tensor `tINDEX`. Every operator that
//! cannot be translated is reported at once, with a remedy. Metadata that TensorFlow Lite Micro does not look at (a quantised
//! dimension out of range where there is one scale, operator options that repeat shapes) is read as it reads it, with a warning.

mod blocks;
mod compound;
mod constant;
mod control;
mod cut;
mod detections;
mod ethos_u;
mod extents;
mod flatbuffer;
mod flexbuffer;
mod fold;
mod importer;
mod legacy;
mod legacy_real;
mod logic;
mod movement;
mod narrowed;
mod ops;
mod products;
mod rearrange;
mod recurrent;
mod repeat;
mod result_extents;
mod rows;
mod schema;
mod scope;
mod signal;
mod signature;
mod sparse;
mod state;
mod stated;
mod stored;
mod sums;
mod tensors;
mod variables;
mod widen;

use std::path::Path;

use self::importer::Importer;
use self::schema::Model;
use super::assume::Assumptions;
use super::imported::{Dialect, ImportOptions, Imported};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Graph, check};

/// The dialect `tflite`.
pub const DIALECT: Dialect = Dialect {
    name: "tflite",
    recognises: |content| content.get(4..8) == Some(b"TFL3"),
    cuts: true,
    signatures: true,
    import,
};

/// Reads a .tflite file.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a corrupt or contradictory file, [`crate::error::ErrorKind::Unsupported`] with all operators that have no
/// counterpart.
pub fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let mut model = Model::read(content)?;
    let others = signature::choose(&mut model, options)?;
    let values = cut::values(&model, options)?;
    // A part has the types that its tensors have in the whole.
    let legacy = legacy::convert(&mut model)?;
    cut::cut(&mut model, &values, options)?;
    let mut importer = Importer::new(&model, model.main);
    importer.warnings.extend(others);
    importer.legacy.tensors = legacy;
    importer.out.name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let main = importer.scope.graph;
    let mut assumptions = Assumptions::new(options);
    let mut wrong = Ok(());
    for (position, &input) in main.inputs.iter().enumerate() {
        let id = importer
            .input_extents(input, position == 0, options, &mut assumptions)
            .and_then(|()| importer.input(input));
        match id {
            Ok(id) => importer.out.inputs.push(id),
            // First all that is not supported.
            Err(error) if error.kind() == ErrorKind::Input => wrong = wrong.and(Err(error)),
            Err(error) => return Err(error),
        }
    }
    if wrong.is_ok() {
        check_options(&importer.out, options)?;
    }
    for (name, text) in &options.set {
        assumptions.record(name, text, "an input", "given by --set");
    }
    importer.dequantises_by_channel = widen::dequantises_by_channel(&model, &mut assumptions)?;
    let assumptions = assumptions.finish()?;
    importer.operators();
    match (importer.report(), wrong) {
        (Err(error), Err(_)) if error.kind() == ErrorKind::Unsupported => return Err(error),
        (report, wrong) => wrong.and(report)?,
    }
    for &output in &main.outputs {
        let id = importer.result(output).map_err(|e| e.at("the network's outputs"))?;
        importer.out.outputs.push(id);
    }
    let in_graph = importer.scope.map.iter().enumerate();
    let keys = in_graph.filter_map(|(index, id)| {
        let key = format!("t{index}");
        let free = !importer.names.contains(&key);
        free.then_some((importer.out.tensor((*id)?).name.clone(), key))
    });
    let keys = keys.collect();
    let (graph, warnings) = importer.finish()?;
    check::check(&graph)?;
    Ok(Imported {
        graph,
        assumptions,
        warnings,
        keys,
        ..Imported::default()
    })
}

/// The operators that are read, by name: the newest version whose meaning is known, and the types of the first activation. Those that packing computes
/// alone are not among them.
pub fn operators() -> impl Iterator<Item = (&'static str, i32, &'static [DType])> {
    rows::rows().map(|row| (row.kind, row.version, row.types))
}

/// The names of the main subgraph's tensors, by index in the file: reference data often names them `tINDEX`.
///
/// # Errors
/// As [`import`], for a corrupt file.
pub fn tensor_names(content: &[u8]) -> Result<Vec<String>> {
    let model = Model::read(content)?;
    Ok(model.subgraphs[0].tensors.iter().map(|t| t.name.clone()).collect())
}

/// `--batch` and `--input-shape` can only agree with the extents that the file does not leave open.
fn check_options(graph: &Graph, options: &ImportOptions) -> Result<()> {
    let Some(input) = graph.inputs.first().map(|&id| graph.tensor(id)) else {
        return Ok(());
    };
    if let Some(batch) = options.batch
        && input.shape.first().copied().unwrap_or(1) != batch
    {
        return Err(Error::unsupported(format!("--batch {batch}"))
            .expected(format!(
                "the file's own batch: `{}` has shape {:?}",
                input.name, input.shape
            ))
            .help("the file does not leave this extent open: convert the model with the batch that you want"));
    }
    match &options.input_shape {
        Some(shape) if *shape != input.shape => Err(Error::unsupported(format!("--input-shape {shape:?}"))
            .expected(format!("{:?}, the file's own", input.shape))
            .help("the file does not leave the other extents open: convert the model with the shape that you want")),
        _ => Ok(()),
    }
}
