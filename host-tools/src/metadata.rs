//! What a blob says of itself to the host tools: names, shapes and counts that the device does not need.

use std::io::{Read, Write};

use arenite::{DType, Slot};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The metadata section: postcard, deflated, for it lies in the device's flash and repeats the trace's long names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Metadata {
    /// Version of the packer.
    pub tool: String,
    /// SHA-256 of the input file, in hexadecimal.
    pub input_sha256: String,
    /// The summary as JSON, as `pack --json` printed it (without the sizes that depend on it).
    pub summary: String,
    /// Class labels, where given.
    pub labels: Vec<String>,
    /// For each input, another key under which reference data holds it; empty where it has none.
    pub input_keys: Vec<String>,
    /// One entry a step.
    pub steps: Vec<StepMeta>,
    /// Names of the tensors that own memory, for the numbers below.
    pub tensors: Vec<String>,
    /// For each input, then each output, the tensor that owns its memory.
    pub ports: Vec<u32>,
}

/// More than any network's names take; a forged stream that inflates to more does not decode.
const MOST_BYTES: u64 = 64 << 20;

/// Stands for no tensor: scratch, or a constant in the weights.
pub const NO_TENSOR: u32 = u32::MAX;

/// What is known of a step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepMeta {
    /// The operator's name in the trace.
    pub name: String,
    /// The kind: `conv2d`, `add` …
    pub kind: String,
    /// Multiply-accumulates.
    pub macs: u64,
    /// The tensor that is complete after this step.
    pub completes: Option<TensorMeta>,
    /// For each operand with a slot, in their order, the tensor that owns its memory (views have the one they look at).
    pub operands: Vec<u32>,
}

/// A tensor as it lies in memory after a step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TensorMeta {
    /// The trace's name; of views of the same bytes, all of them; then other keys under which reference data holds them.
    pub names: Vec<String>,
    /// Where it lies.
    pub slot: Slot,
    /// Element type.
    pub dtype: DType,
    /// Extents in memory.
    pub shape: Vec<u32>,
    /// Axis `i` of the traced tensor is axis `perm[i]` here; empty where the order is the traced one.
    pub traced_perm: Vec<u8>,
    /// Scale, 0 where it is not quantised.
    pub scale: f32,
    /// Zero point.
    pub zero_point: i32,
}

impl Metadata {
    /// Encodes it.
    ///
    /// # Errors
    /// Never in practice; [`crate::ErrorKind::Internal`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        let plain = postcard::to_stdvec(self).map_err(|e| Error::internal(format!("metadata: {e}")))?;
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
        deflated
            .write_all(&plain)
            .and_then(|()| deflated.finish())
            .map_err(|e| Error::internal(format!("metadata: {e}")))
    }

    /// Decodes the metadata of a blob.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] where it was written by another version of the packer.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = |e: &dyn std::fmt::Display| {
            Error::input(format!("the metadata does not decode: {e}"))
                .expected("metadata of this version of the tools")
                .help("pack the model again")
        };
        let plain = inflate(bytes).map_err(|e| bad(&e))?;
        postcard::from_bytes(&plain).map_err(|e| bad(&e))
    }
}

/// What made a file, as the first fields of the metadata say it in every version of the format.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Version of the packer.
    pub tool: String,
    /// SHA-256 of the input file, in hexadecimal.
    pub input_sha256: String,
    summary: serde_json::Value,
}

impl Origin {
    /// Reads them, whatever follows.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] where they do not decode.
    pub fn read(metadata: &[u8]) -> Result<Self> {
        let bad = |e: &dyn std::fmt::Display| Error::input(format!("the metadata does not decode: {e}"));
        // The first files of version 1 hold them plain.
        match inflate(metadata)
            .map_err(|e| bad(&e))
            .and_then(|plain| Self::of(&plain))
        {
            Err(deflated) => Self::of(metadata).map_err(|_| deflated),
            read => read,
        }
    }

    fn of(plain: &[u8]) -> Result<Self> {
        let bad = |e: &dyn std::fmt::Display| Error::input(format!("the metadata does not decode: {e}"));
        let ((tool, input_sha256, summary), _): ((String, String, String), _) =
            postcard::take_from_bytes(plain).map_err(|e| bad(&e))?;
        Ok(Self {
            tool,
            input_sha256,
            summary: serde_json::from_str(&summary).map_err(|e| bad(&e))?,
        })
    }

    /// A field of the summary that is text.
    pub fn text(&self, field: &str) -> Option<String> {
        self.summary.get(field)?.as_str().map(str::to_string)
    }

    /// A field of the summary that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.summary.get(field)?.as_u64()
    }
}

fn inflate(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    DeflateDecoder::new(bytes).take(MOST_BYTES).read_to_end(&mut plain)?;
    Ok(plain)
}
