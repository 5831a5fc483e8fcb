//! Common part of all dialects: options and result of an import.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::graph::{Assumption, Graph};

/// Said of int64 at run time.
pub(crate) const NARROWED: &str = "int64 tensors that are computed are int32 on the device";

/// Result of an import.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// The whole step: forward nodes, and everything else with its [`crate::graph::Role`].
    pub graph: Graph,
    /// Whether float operators between Dequantize and Quantize mean integer ones, as in ONNX and in traces of quantised modules.
    pub in_pairs: bool,
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

/// Options that the user passes along with the file.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// `--batch N`: the batch is rebuilt to N. Without it .tflite, .onnx and `trace.json` keep the batch that they state, and other traces are rebuilt to 1.
    pub batch: Option<usize>,
    /// `--input-shape`.
    pub input_shape: Option<Vec<usize>>,
    /// `--assume KEY=VALUE`; importers read it through [`Assumptions`](super::Assumptions), which refuses what nobody asked for.
    pub assume: Vec<(String, String)>,
    /// `--set INPUT=VALUE`: inputs that are constants.
    pub set: Vec<(String, String)>,
    /// `--from TENSOR`: tensors that the network begins with, as its first inputs.
    pub from: Vec<String>,
    /// `--until TENSOR`: tensors that the network ends with, as its outputs.
    pub until: Vec<String>,
    /// `--state IN=OUT`: inputs that become what the run before computed.
    pub state: Vec<String>,
    /// `--context N`: positions of a cache of keys and values.
    pub context: Option<usize>,
    /// `--tokenizer FILE`.
    pub tokenizer: Option<PathBuf>,
    /// `--signature NAME`: the signature of a .tflite file that is read.
    pub signature: Option<String>,
}

impl ImportOptions {
    /// Whether the whole network is read, and all of its inputs stay inputs.
    pub fn is_whole(&self) -> bool {
        self.set.is_empty() && self.from.is_empty() && self.until.is_empty()
    }
}

/// A dialect: its name for `--dialect`, how its files are recognised, and how they are read.
pub struct Dialect {
    /// Name in `--dialect` and in the summary.
    pub name: &'static str,
    /// Whether the content looks like this dialect; cheap, and true for at most one dialect a file.
    pub recognises: fn(&[u8]) -> bool,
    /// Whether its importer cuts the file by `--from`, `--until` and `--set` itself, before operators are translated.
    pub cuts: bool,
    /// Whether a file may hold several networks by name, for `--signature`.
    pub signatures: bool,
    /// Reads the file. `path` is for messages and for sidecar files.
    pub import: fn(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported>,
}
