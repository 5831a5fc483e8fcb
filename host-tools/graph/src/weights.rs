//! Where parameters come from: a `.safetensors` or `.npz` file, or a seed; always read in pieces.
//!
//! A graph holds its parameters as [`Expr`](crate::graph::Expr)essions; [`Weights::stream`] computes one and hands it out in chunks, so that a gigabyte of
//! weights passes through a few hundred kilobytes. Only a permutation that moves the first axis holds its operand, one tensor at a
//! time.

pub mod export;
mod keys;
mod npz;
pub mod safetensors;
mod seeded;
mod stream;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use keys::missing;
pub use keys::params;
pub use seeded::uniform;

use crate::error::{Error, ErrorKind, Result};
use crate::files::Input;
use crate::graph::Graph;

/// A source of parameters.
#[derive(Debug)]
pub struct Weights {
    source: Source,
    /// The file, for messages.
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum Source {
    Seeded(seeded::Seeded),
    Safetensors(safetensors::File),
    Npz(npz::File),
    /// A network without parameters needs no file.
    Nothing,
}

/// Advice for weights that do not fit the network.
pub const DAMAGED: &str = "the file is damaged, or belongs to another network: export the network and its weights anew";

impl Weights {
    /// Returns the weights named by `--weights`: `seeded:N`, or a file. `graph` is the imported one, before any pass, whose structure seeded weights follow;
    /// every parameter of it must be there.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a malformed seed, [`ErrorKind::Io`] and [`ErrorKind::Weights`] for the file.
    pub fn open(spec: &str, graph: &Graph) -> Result<Self> {
        let Some(seed) = spec.strip_prefix("seeded:") else {
            return Self::file(Path::new(spec), graph);
        };
        let seed = seed.parse().map_err(|_| {
            Error::new(ErrorKind::Usage, format!("--weights seeded:{seed}"))
                .expected("seeded:N with N an integer from 0 to 2^64 - 1")
        })?;
        Ok(Self::seeded(seed, graph))
    }

    /// Reproducible weights, see the generator in `weights/seeded.rs`.
    pub fn seeded(seed: u64, graph: &Graph) -> Self {
        Self {
            source: Source::Seeded(seeded::Seeded::new(seed, graph)),
            path: None,
        }
    }

    /// A `.safetensors` or `.npz` file, recognised from its content.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where it can't be read; [`ErrorKind::Weights`] where it is malformed, or lacks a parameter of `graph`, or
    /// holds one of another shape or dtype.
    pub fn file(path: &Path, graph: &Graph) -> Result<Self> {
        Self::checked(path, graph).map_err(|e| match e.kind() {
            ErrorKind::Weights => e.or_help(DAMAGED),
            _ => e,
        })
    }

    fn checked(path: &Path, graph: &Graph) -> Result<Self> {
        let input = Input::open(path, "read the weights")?;
        let mut start = Vec::new();
        let read = input.file().take(4).read_to_end(&mut start);
        read.map_err(|e| Error::io(input.path(), "read the weights", &e))?;
        let source = if npz::recognises(&start) {
            Source::Npz(npz::File::open(&input)?)
        } else {
            Source::Safetensors(safetensors::File::of(&input)?)
        };
        let path = input.path().to_path_buf();
        let weights = Self {
            source,
            path: Some(path.clone()),
        };
        weights.check(graph).map_err(|e| e.in_file(&path))?;
        Ok(weights)
    }

    /// No weights at all, for a network that has no parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] where it has some; the message says how to give them.
    pub fn nothing(graph: &Graph) -> Result<Self> {
        match params(graph).into_iter().next() {
            None => Ok(Self {
                source: Source::Nothing,
                path: None,
            }),
            Some((key, shape)) => Err(Error::new(
                ErrorKind::Weights,
                format!("the trace carries no weights, and parameter `{key}` {shape:?} needs some"),
            )
            .help("pass --weights FILE.safetensors, or --weights seeded:1 for reproducible random ones")),
        }
    }

    /// Keys in the file that no parameter of `graph` names.
    pub fn unused(&self, graph: &Graph) -> Vec<String> {
        let params = params(graph);
        let mut unused = self.keys();
        unused.retain(|key| !params.contains_key(key.as_str()));
        unused
    }

    /// Elements `start..start + out.len()` of the parameter `key`.
    fn read(&self, key: &str, start: usize, out: &mut [f32]) -> Result<()> {
        self.read_finite(key, start, out).map_err(|error| match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        })
    }

    fn read_finite(&self, key: &str, start: usize, out: &mut [f32]) -> Result<()> {
        match &self.source {
            Source::Seeded(seeded) => seeded.read(key, start, out)?,
            Source::Safetensors(file) => file.read(key, start, out)?,
            Source::Npz(file) => file.read(key, start, out)?,
            Source::Nothing => return Err(missing(key, &[])),
        }
        let Some(index) = out.iter().position(|v| !v.is_finite()) else {
            return Ok(());
        };
        let error = Error::new(
            ErrorKind::Weights,
            format!(
                "element {} of parameter `{key}` is {}",
                start + index,
                out.get(index).copied().unwrap_or_default()
            ),
        )
        .expected("finite values");
        Err(match &self.source {
            Source::Safetensors(file) => error.in_file(file.path()),
            Source::Npz(file) => error.in_file(file.path()),
            Source::Seeded(_) | Source::Nothing => error,
        })
    }

    fn keys(&self) -> Vec<String> {
        match &self.source {
            Source::Safetensors(file) => file.keys(),
            Source::Npz(file) => file.keys(),
            Source::Seeded(_) | Source::Nothing => Vec::new(),
        }
    }

    /// Every parameter is there, in its shape, as f32.
    fn check(&self, graph: &Graph) -> Result<()> {
        for (key, shape) in params(graph) {
            let found = match &self.source {
                Source::Safetensors(file) => file.entry(key),
                Source::Npz(file) => file.entry(key)?,
                Source::Seeded(_) | Source::Nothing => return Ok(()),
            };
            let Some((found, dtype)) = found else {
                return Err(missing(key, &self.keys()));
            };
            if dtype != "F32" {
                return Err(Error::new(ErrorKind::Weights, format!("parameter `{key}` is {dtype}")).expected("F32"));
            }
            if found != shape {
                return Err(
                    Error::new(ErrorKind::Weights, format!("parameter `{key}` has shape {found:?}"))
                        .expected(format!("{shape:?}")),
                );
            }
        }
        Ok(())
    }
}
