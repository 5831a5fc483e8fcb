//! Importers: one file a dialect, each recognised from content.

pub mod assume;
mod build;
mod chainer;
pub(crate) mod json;
mod keras_order;
mod megengine;
mod native;
mod rects;
mod solve;
mod tf_shapes;
pub mod tflite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use assume::Assumptions;

use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::graph::{Assumption, Graph};

/// What an importer makes of a file.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// The whole step: forward nodes, and everything else with its [`crate::graph::Role`].
    pub graph: Graph,
    /// Every value that the trace did not state.
    pub assumptions: Vec<Assumption>,
    /// Repairs and oddities that the user should know of.
    pub warnings: Vec<String>,
    /// Operators of the trace that only hold a value (`ImmutableTensor`), by the dialect's name: in the graph they are constant
    /// tensors, in the summary's `ops` they count.
    pub constants: BTreeMap<String, usize>,
    /// The weights file that the trace names, unless `--weights` says otherwise.
    pub weights: Option<PathBuf>,
    /// The files that the trace names: whatever is written must not be one of them.
    pub files: Vec<PathBuf>,
    /// Sample inputs with the outputs that the trace expects.
    pub samples: Option<Samples>,
    /// Other keys under which reference data holds a tensor, by the tensor's name.
    pub keys: BTreeMap<String, String>,
}

/// Runs that `pack` replays before it writes a blob; states carry over from run to run.
#[derive(Debug, Clone)]
pub struct Samples {
    /// The runs, in order.
    pub runs: Vec<SampleRun>,
    /// Largest allowed max|a - b| / max|b| of a tensor, a computed and b stored; where all of b is 0, the largest max|a|.
    pub rtol: f64,
}

/// One run: little-endian elements in the dtype and shape of the tensor that is named.
#[derive(Debug, Clone)]
pub struct SampleRun {
    /// Every input of the network: its name and value.
    pub inputs: Vec<(String, Vec<u8>)>,
    /// Some outputs of the network: name and expected value.
    pub outputs: Vec<(String, Vec<u8>)>,
}

/// What the user passes along with the file.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// `--batch N`: the traced batch is rebuilt to N; 0 stands for 1, the default.
    pub batch: usize,
    /// `--input-shape`.
    pub input_shape: Option<Vec<usize>>,
    /// `--assume KEY=VALUE`; importers read it through [`Assumptions`], which refuses what nobody asked for.
    pub assume: Vec<(String, String)>,
}

/// A dialect: its name for `--dialect`, how its files are recognised, and how they are read.
pub struct Dialect {
    /// Name in `--dialect` and in the summary.
    pub name: &'static str,
    /// Whether the content looks like this dialect; cheap, and true for at most one dialect a file.
    pub recognises: fn(&[u8]) -> bool,
    /// Reads the file. `path` is for messages and for sidecar files.
    pub import: fn(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported>,
}

/// All dialects, in the order in which they are tried.
pub const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "native",
        recognises: native::recognises,
        import: native::import,
    },
    Dialect {
        name: "chainer",
        recognises: chainer::recognises,
        import: chainer::import,
    },
    Dialect {
        name: "tf-shapes",
        recognises: tf_shapes::recognises,
        import: tf_shapes::import,
    },
    Dialect {
        name: "rects",
        recognises: rects::recognises,
        import: rects::import,
    },
    Dialect {
        name: "keras-order",
        recognises: keras_order::recognises,
        import: keras_order::import,
    },
    Dialect {
        name: "megengine",
        recognises: megengine::recognises,
        import: megengine::import,
    },
    tflite::DIALECT,
];

/// Whether the content starts as a JSON object does.
fn is_json_object(content: &[u8]) -> bool {
    content.trim_ascii_start().first() == Some(&b'{')
}

/// Whether `needle` stands anywhere in the first 4 MiB.
fn contains(content: &[u8], needle: &[u8]) -> bool {
    let head = content.get(..4 << 20).unwrap_or(content);
    head.windows(needle.len().max(1)).any(|window| window == needle)
}

/// Recognises and reads a file; `dialect` overrides recognition.
///
/// # Errors
/// [`ErrorKind::Io`] where it can't be read, [`ErrorKind::Unsupported`] where no dialect recognises it, otherwise what the
/// importer says.
pub fn import(path: &Path, dialect: Option<&str>, options: &ImportOptions) -> Result<(&'static str, Imported)> {
    let content = files::read(path, READING)?;
    import_content(&files::paths::shown(path), &content, dialect, options)
}

/// Completes "cannot …" where a network cannot be read.
pub(crate) const READING: &str = "read the input";

/// [`import`] of what has been read; `path` is for messages and for the files beside it.
///
/// # Errors
/// As [`import`].
pub fn import_content(
    path: &Path,
    content: &[u8],
    dialect: Option<&str>,
    options: &ImportOptions,
) -> Result<(&'static str, Imported)> {
    let not_text = match content {
        [] => Some("the file is empty"),
        [0xEF, 0xBB, 0xBF, ..] => Some("the file starts with a byte-order mark"),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("the file starts with the byte-order mark of UTF-16"),
        _ => None,
    };
    if let Some(message) = not_text {
        return Err(Error::input(message)
            .in_file(path)
            .expected("a trace, or a .tflite file")
            .help("text is UTF-8 without a byte-order mark"));
    }
    let names = || DIALECTS.iter().map(|d| d.name).collect::<Vec<_>>().join(", ");
    let no_onnx = || {
        Error::unsupported("ONNX (--dialect onnx) is not built yet")
            .in_file(path)
            .expected(format!("one of {}", names()))
            .help("convert the network to .tflite, or trace its PyTorch module with arenite_trace")
    };
    let found = match dialect {
        Some("onnx") => return Err(no_onnx()),
        Some(name) => DIALECTS.iter().find(|d| d.name == name).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("unknown dialect `{name}`")).expected(format!("one of {}", names()))
        })?,
        None => DIALECTS.iter().find(|d| (d.recognises)(content)).ok_or_else(|| {
            if path.extension().is_some_and(|extension| extension == "onnx") {
                return no_onnx();
            }
            Error::unsupported("the content is of no dialect that pack knows")
                .in_file(path)
                .expected(format!("one of {}", names()))
                .help("if you know the dialect, pass --dialect NAME for an error with the line")
        })?,
    };
    let imported = (found.import)(path, content, options).map_err(|e| e.in_file(path))?;
    Ok((found.name, imported))
}
