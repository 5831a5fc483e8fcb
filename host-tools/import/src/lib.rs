//! Importers: one file a dialect, each recognised from content.

// A full or closed stream must not end the program: everything is printed through `files::print`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
// Items that only some dialects use.
#![cfg_attr(
    not(all(
        feature = "chainer",
        feature = "gguf",
        feature = "keras-order",
        feature = "llama2c",
        feature = "megengine",
        feature = "native",
        feature = "onnx",
        feature = "pt2",
        feature = "rects",
        feature = "tf-shapes",
        feature = "tflite"
    )),
    allow(dead_code, unused_imports)
)]

pub mod assume;
mod borders;
mod build;
#[cfg(feature = "chainer")]
mod chainer;
mod compose;
mod fold_budget;
mod foreign;
#[cfg(feature = "gguf")]
mod gguf;
mod imported;
#[cfg(feature = "keras-order")]
mod keras_order;
#[cfg(any(feature = "gguf", feature = "llama2c"))]
mod llama;
#[cfg(feature = "llama2c")]
mod llama2c;
#[cfg(feature = "megengine")]
mod megengine;
mod names;
#[cfg(feature = "native")]
mod native;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(feature = "pt2")]
pub mod pt2;
mod rebatch;
#[cfg(feature = "rects")]
mod rects;
mod solve;
mod states;
#[cfg(feature = "tf-shapes")]
mod tf_shapes;
#[cfg(feature = "tflite")]
pub mod tflite;
mod tokenizer;

use std::path::Path;

pub use assume::Assumptions;
pub use imported::{Dialect, ImportOptions, Imported, SampleRun, Samples};

use arenite_graph::{error, files, graph, half, spelling, weights};

use error::{Error, ErrorKind, Result};

/// All dialects that this crate was built with, in the order in which they are tried.
pub const DIALECTS: &[Dialect] = &[
    #[cfg(feature = "native")]
    Dialect {
        name: "native",
        recognises: native::recognises,
        cuts: false,
        signatures: false,
        import: native::import,
    },
    #[cfg(feature = "chainer")]
    Dialect {
        name: "chainer",
        recognises: chainer::recognises,
        cuts: false,
        signatures: false,
        import: chainer::import,
    },
    #[cfg(feature = "tf-shapes")]
    Dialect {
        name: "tf-shapes",
        recognises: tf_shapes::recognises,
        cuts: false,
        signatures: false,
        import: tf_shapes::import,
    },
    #[cfg(feature = "rects")]
    Dialect {
        name: "rects",
        recognises: rects::recognises,
        cuts: false,
        signatures: false,
        import: rects::import,
    },
    #[cfg(feature = "keras-order")]
    Dialect {
        name: "keras-order",
        recognises: keras_order::recognises,
        cuts: false,
        signatures: false,
        import: keras_order::import,
    },
    #[cfg(feature = "megengine")]
    Dialect {
        name: "megengine",
        recognises: megengine::recognises,
        cuts: false,
        signatures: false,
        import: megengine::import,
    },
    #[cfg(feature = "tflite")]
    tflite::DIALECT,
    #[cfg(feature = "onnx")]
    onnx::DIALECT,
    #[cfg(feature = "pt2")]
    pt2::DIALECT,
    #[cfg(feature = "llama2c")]
    Dialect {
        name: "llama2c",
        recognises: llama2c::recognises,
        cuts: false,
        signatures: false,
        import: llama2c::import,
    },
    #[cfg(feature = "gguf")]
    Dialect {
        name: "gguf",
        recognises: gguf::recognises,
        cuts: false,
        signatures: false,
        import: gguf::import,
    },
];

/// Recognises and reads a file; `dialect` overrides recognition.
///
/// # Errors
/// [`ErrorKind::Io`] where it can't be read, [`ErrorKind::Unsupported`] where no dialect recognises it, otherwise what the
/// importer says.
pub fn import(path: &Path, dialect: Option<&str>, options: &ImportOptions) -> Result<(&'static str, Imported)> {
    let content = read(path)?;
    import_content(&files::paths::shown(path), &content, dialect, options)
}

/// All of a network's file.
///
/// # Errors
/// [`ErrorKind::Io`] where it cannot be read, [`ErrorKind::Unsupported`] for a folder, which it names.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    foreign::refuse_folder(path)?;
    files::read(path, "read the input")
}

/// The JSON Schema of `trace.json`, which docs/trace.schema.json holds: the form that the reader checks, made of the same rows.
#[cfg(feature = "native")]
#[must_use]
pub fn trace_schema() -> serde_json::Value {
    native::schema()
}

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
            .expected("a trace, or a .tflite, .onnx or .pt2 file")
            .help("text is UTF-8 without a byte-order mark"));
    }
    let names = || DIALECTS.iter().map(|d| d.name).collect::<Vec<_>>().join(", ");
    let found = match dialect {
        Some(name) => DIALECTS.iter().find(|d| d.name == name).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("unknown dialect `{name}`")).expected(format!("one of {}", names()))
        })?,
        None => DIALECTS.iter().find(|d| (d.recognises)(content)).ok_or_else(|| {
            let (message, help) = foreign::told(path, content);
            Error::unsupported(message)
                .in_file(path)
                .expected(format!("a network in one of the formats {}", names()))
                .help(help)
        })?,
    };
    if let (Some(signature), false) = (&options.signature, found.signatures) {
        let message = format!(
            "--signature {signature}: a network in the format {} has no signatures",
            found.name
        );
        return Err(borders::usage(message).in_file(path).expected("a .tflite file"));
    }
    let mut imported = borders::check(options)
        .and_then(|()| (found.import)(path, content, options))
        .map_err(|e| remedied(e, found.name).in_file(path))?;
    if !found.cuts {
        borders::cut(&mut imported, options).map_err(|e| e.in_file(path))?;
    }
    states::keep(&mut imported, options).map_err(|e| e.in_file(path))?;
    let renamed = names::shown(&mut imported);
    add_text(&mut imported, options).map_err(|e| e.in_file(path))?;
    if !found.cuts || !options.state.is_empty() || renamed {
        graph::check::check(&imported.graph)?;
    }
    Ok((found.name, imported))
}

/// Refuses `--weights` for a network whose file has the values of its parameters.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn refuse_weights(spec: &str, dialect: &str) -> Result<()> {
    if !matches!(dialect, "tflite" | "onnx" | "pt2" | "llama2c" | "gguf") {
        return Ok(());
    }
    Err(borders::usage(format!(
        "--weights {spec}: a network in the format {dialect} has its weights in its own file"
    ))
    .expected("no weights besides")
    .help("leave the option out; to pack other weights, export the network with them"))
}

/// Reads the tokenizer that is given, and refuses a context where there is none.
fn add_text(imported: &mut Imported, options: &ImportOptions) -> Result<()> {
    let graph = &mut imported.graph;
    let is_position = |node: &graph::Node| matches!(node.op, graph::Op::Position { .. });
    if let Some(context) = options.context
        && !graph.nodes.iter().any(is_position)
    {
        return Err(borders::usage(format!(
            "--context {context}: the network keeps no keys and values by position"
        ))
        .expected("a network in the format llama2c or gguf"));
    }
    if let Some(path) = &options.tokenizer {
        let logits = graph.outputs.first().and_then(|&id| graph.tensor(id).shape.last());
        let tokens = logits.copied().unwrap_or(1);
        graph.tokenizer = tokenizer::read(path, tokens)?.into();
        imported.files.push(path.clone());
    }
    Ok(())
}

/// Adds advice to an error of a network in `dialect` that has none: most are of files that are damaged, or contradict themselves.
pub fn remedied(error: Error, dialect: &str) -> Error {
    let help = match (error.kind(), dialect) {
        (ErrorKind::Weights, _) => weights::DAMAGED,
        (ErrorKind::Input, _) if error.file().is_some() => weights::DAMAGED,
        (ErrorKind::Input, "tflite" | "onnx" | "pt2") => {
            "the file is damaged, or its converter made a mistake: take it from its source anew, or export it again"
        }
        (ErrorKind::Input, "native") => {
            "the trace contradicts itself: export it again, or mend this place (docs/trace-schema.md)"
        }
        (ErrorKind::Input, _) => {
            "the trace is damaged or contradicts itself: export it again (docs/dialects.md says what is read of it)"
        }
        (ErrorKind::Unsupported, _) => {
            "build the network without it (docs/operators.md lists what there is), or compute this part in the application"
        }
        _ => return error,
    };
    error.or_help(help)
}
