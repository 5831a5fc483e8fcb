//! ONNX files (`.onnx`), operator sets 7 and newer.
//!
//! ```text
//! wire: protocol buffers   proto, attributes: what is read of onnx.proto   external: data in other files   elem, array: types and known values
//! draft: a network of another format, written with ONNX's operators
//! importer, view: the import and the node under way   branches: its nodes, and those of branches   inputs: its inputs   declared: types and shapes that the
//!   file states   calc, fold: computations, now or at run time
//! rows: one row an operator, with its translation (elementwise, integers, constants, movement, gather, scatters, padding, windows,
//!   transposed, pools, products, attention, classic, norms, recurrent, quantised, resize: parts of it)   precision: half precision   report: what is refused
//! ```
//!
//! Each translation computes on values. Where all of them are known, the result is known as well, so that arithmetic on shapes and on weights is done
//! when importing; elsewhere it becomes operators of the graph. Tensors keep their names. Every node that cannot be translated is reported at once, with a
//! remedy.

mod array;
mod attention;
mod attributes;
mod branches;
mod calc;
mod classic;
mod constants;
mod contrib;
mod cut;
mod declared;
mod draft;
mod elem;
mod elementwise;
mod external;
mod extremes;
mod fold;
mod fourier;
mod gather;
mod importer;
mod inputs;
mod integers;
mod movement;
mod norms;
mod padding;
mod pools;
mod precision;
mod products;
mod proto;
mod qonnx;
mod quantised;
mod recurrent;
mod report;
mod resize;
mod rows;
mod scatters;
mod transposed;
mod view;
mod windows;
mod wire;

use std::collections::HashMap;
use std::path::Path;

use self::elem::Elem;
use self::external::Folder;
use self::importer::{Importer, Value};
use self::proto::Model;
use self::report::report;
use super::assume::Assumptions;
use super::imported::{Dialect, ImportOptions, Imported};
use super::rebatch;
use crate::error::{Error, Result};
use crate::foreign;
use crate::graph::facts::IMPLIED;
use crate::graph::{Role, check};

pub(crate) use self::draft::{Attribute, Constant, Draft, Origin, Port, Size};
pub(crate) use self::elem::{Elem as ElementType, unsupported};

/// The dialect `onnx`.
pub const DIALECT: Dialect = Dialect {
    name: "onnx",
    recognises,
    cuts: true,
    signatures: false,
    import,
};

/// The operators that are read: name, versions of the operator, and what is refused of it.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static [i64], &'static str)> {
    rows::ROWS.iter().map(|row| (row.op, row.versions, row.limits))
}

/// The operators of ONNX Runtime's own domain that are read, likewise.
pub fn contributed() -> impl Iterator<Item = (&'static str, &'static [i64], &'static str)> {
    contrib::ROWS.iter().map(|row| (row.op, row.versions, row.limits))
}

/// The operators of classifiers that are read, of ONNX's domain for them, likewise.
pub fn classic() -> impl Iterator<Item = (&'static str, &'static [i64], &'static str)> {
    classic::ROWS.iter().map(|row| (row.op, row.versions, row.limits))
}

/// The operators of QONNX that are read, likewise.
pub fn qonnx() -> impl Iterator<Item = (&'static str, &'static [i64], &'static str)> {
    qonnx::ROWS.iter().map(|row| (row.op, row.versions, row.limits))
}

/// A model begins with the version of the format, and goes on with one of the fields that may follow; no text begins so.
fn recognises(content: &[u8]) -> bool {
    const NEXT: [u8; 9] = [0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2];
    let begins = matches!(content, [0x08, 1..=0x7F, next, ..] if NEXT.contains(next));
    begins && content.get(4..8) != Some(b"TFL3") && !foreign::is_saved_model(content)
}

/// Reads an .onnx file.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a corrupt or contradictory file, [`crate::error::ErrorKind::Unsupported`] with all nodes that have no counterpart.
pub fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    import_by(path, content.len(), options, &|| Model::read(content))
}

/// Reads what was written of a file of another format, which has so many bytes.
///
/// # Errors
/// As [`import`]; nodes are named as that format names them.
pub(crate) fn import_draft(path: &Path, bytes: usize, options: &ImportOptions, draft: &Draft) -> Result<Imported> {
    import_by(path, bytes, options, &|| Ok(draft.model()))
}

/// Imports the model that `read` reads, of a file of so many bytes.
fn import_by<'a>(
    path: &Path,
    bytes: usize,
    options: &ImportOptions,
    read: &dyn Fn() -> Result<Model<'a>>,
) -> Result<Imported> {
    let (model, warnings) = part(path, bytes, options, read)?;
    let (mut imported, assumptions) = network(&model, path, bytes, options)?;
    imported.assumptions = assumptions.finish()?;
    imported.warnings.extend(warnings);
    match (inputs::stated_batch(&model), options.batch) {
        (Some(stated), Some(batch)) if stated != batch => {
            let as_stated = ImportOptions {
                batch: None,
                ..options.clone()
            };
            let (at_stated, _) = network(&model, path, bytes, &as_stated)?;
            rebatch::check(&at_stated.graph, &imported.graph, [stated, batch])?;
        }
        _ => {}
    }
    Ok(imported)
}

/// The part of the file that is asked for, and what is cut besides, in words.
fn part<'a>(
    path: &Path,
    bytes: usize,
    options: &ImportOptions,
    read: &dyn Fn() -> Result<Model<'a>>,
) -> Result<(Model<'a>, Vec<String>)> {
    let mut model = read()?;
    declared::agree(&model.graph)?;
    let unstated = cut::unstated(&model, options)?;
    let mut beginnings = HashMap::new();
    if !unstated.is_empty() {
        // Type and shape follow from what computes them.
        let names: Vec<String> = unstated.iter().map(|name| (*name).clone()).collect();
        let mut ahead = read()?;
        cut::end(&mut ahead, &names)?;
        let mut of_ahead = options.clone();
        let inputs = &ahead.graph.inputs;
        of_ahead
            .set
            .retain(|(name, _)| inputs.iter().any(|input| input.name == name));
        let (imported, _) = network(&ahead, path, bytes, &of_ahead).map_err(|e| {
            e.or_help(
                "the file does not state the shape of a tensor of --from: run onnx.shape_inference.infer_shapes on it",
            )
        })?;
        for (name, &id) in unstated.into_iter().zip(&imported.graph.outputs) {
            let tensor = imported.graph.tensor(id);
            let (shape, elem) = (tensor.shape.clone(), Elem::of(tensor.dtype));
            beginnings.insert(name.as_str(), cut::Beginning { shape, elem });
        }
    }
    cut::end(&mut model, &options.until)?;
    cut::begin(&mut model, &options.from, &beginnings)?;
    let warnings = classic::cut(&mut model);
    Ok((model, warnings))
}

/// The network at the batch that is asked for, and what it assumes.
fn network<'o>(
    model: &Model<'_>,
    path: &Path,
    bytes: usize,
    options: &'o ImportOptions,
) -> Result<(Imported, Assumptions<'o>)> {
    let opset = opset(model)?;
    let folder = Folder::of(path);
    let mut importer = Importer::new(model, &folder, bytes);
    importer.out.name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut assumptions = Assumptions::new(options);
    importer.inputs(options, &mut assumptions)?;
    if model.graph.outputs.is_empty() {
        return Err(Error::input("the network has no output"));
    }
    importer.graph(&model.graph, opset);
    report(importer.problems())?;
    importer.outputs()?;
    let (warnings, files) = (std::mem::take(&mut importer.warnings), folder.files());
    let constants = importer.findings.constants;
    let constants = (constants > 0).then(|| ("Constant".to_string(), constants));
    let graph = importer.out;
    check::check(&graph)?;
    let imported = Imported {
        graph,
        in_pairs: true,
        warnings,
        files,
        constants: constants.into_iter().collect(),
        ..Imported::default()
    };
    Ok((imported, assumptions))
}

/// The version of the operator set.
fn opset(model: &Model<'_>) -> Result<i64> {
    let own = |domain: &str| matches!(domain, "" | "ai.onnx");
    let version = model
        .opsets
        .iter()
        .filter(|(domain, _)| own(domain))
        .map(|(_, v)| *v)
        .max();
    let [oldest, newest] = rows::OPSETS;
    match version {
        Some(version) if (oldest..=newest).contains(&version) => Ok(version),
        Some(version) => Err(Error::unsupported(format!("operator set {version}"))
            .expected(format!("{oldest} to {newest}"))
            .help("convert the model with onnx.version_converter, or export it with another opset_version")),
        None => Err(Error::input("the file states no operator set").help("the model is damaged: export it again")),
    }
}

impl Importer<'_, '_> {
    /// The network's outputs; one that nothing computes at run time is copied, so that it has a place of its own.
    fn outputs(&mut self) -> Result<()> {
        for output in &self.model.graph.outputs {
            let value = self.value(output.name).map_err(|e| e.at("the network's outputs"))?;
            let value = value.ok_or_else(|| Error::internal("an output that was not translated"))?;
            let shape = self.shape(&value);
            self.as_declared(None, output.name, &shape)
                .map_err(|e| e.at("the network's outputs"))?;
            let mut id = self.tensor(&value)?;
            let tensor = self.out.tensor(id);
            if tensor.is_const() || self.out.outputs.contains(&id) {
                let shape = tensor.shape.clone();
                id = self.emit_shape(crate::graph::Op::Identity, &[id], &shape)?;
            }
            if let Value::Mask(_) = value {
                self.rename(id, output.name);
            }
            self.out.outputs.push(id);
        }
        debug_assert!(
            self.out
                .nodes
                .iter()
                .all(|n| n.kind != IMPLIED || n.role == Role::Forward)
        );
        Ok(())
    }
}
