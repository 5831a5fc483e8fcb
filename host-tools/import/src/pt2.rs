//! Programs that `torch.export.save` writes (`.pt2`): read without PyTorch.
//!
//! ```text
//! archive: the layouts of the file   pickle: tensors of torch.save   elements: their types, and strided storage
//! program: PyTorch's schema   translate: a program as a draft of ONNX   aliases: values that share memory
//! call: the call under translation   names, rows: one row a call, with its translation
//!   (pointwise, binary, products, windows, norms, movement, creation, resize, recurrent: parts of it)
//! ```
//!
//! Each call of ATen becomes nodes of ONNX, in memory, which the importer of ONNX then reads: constants are folded, shapes followed, and what is not
//! supported is refused there. Tensors keep the program's names, parameters those of the module.

mod aliases;
mod archive;
mod binary;
mod call;
mod creation;
mod elements;
mod movement;
mod names;
mod norms;
mod pickle;
mod pointwise;
mod products;
mod program;
mod recurrent;
mod resize;
mod rows;
mod translate;
mod windows;

use std::path::Path;

use self::archive::{Archive, within};
use self::program::Program;
use super::imported::{Dialect, ImportOptions, Imported};
use crate::error::Result;
use crate::fold_budget::FoldBudget;
use crate::{foreign, onnx};

/// The dialect `pt2`.
pub const DIALECT: Dialect = Dialect {
    name: "pt2",
    recognises,
    cuts: true,
    signatures: false,
    import,
};

/// The calls of ATen that are read: name, and what is refused of it.
pub fn calls() -> Vec<(&'static str, &'static str)> {
    rows::names()
}

/// An archive with a program.
fn recognises(content: &[u8]) -> bool {
    foreign::names_in_archive(content).is_some_and(|names| archive::is_program(&names))
}

/// Reads a .pt2 file.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a damaged or contradictory file, [`crate::error::ErrorKind::Unsupported`] with all calls that have no counterpart.
pub fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let mut archive = Archive::open(content)?;
    let (name, text) = archive.program()?;
    let program = Program::read(&text).map_err(|e| within(e, &name))?;
    let budget = FoldBudget::of(content.len());
    let draft = translate::drafted(&program, &mut archive, &budget)?;
    onnx::import_draft(path, content.len(), options, &draft)
}
