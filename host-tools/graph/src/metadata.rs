//! Metadata of a blob for the host tools: names, shapes and counts that the device does not need.

use std::io::{Read, Write};

use arenite::{DType, Slot};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::error::one_line;
use crate::error::{Error, Result};

mod channels;

pub use channels::{Channel, Channels, Restored};

/// The metadata section: postcard, deflated, for it lies in the device's flash and repeats the trace's long names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// Version of the packer.
    pub tool: String,
    /// SHA-256 of the input file, in hexadecimal.
    pub input_sha256: String,
    /// The summary as JSON, as `pack --json` printed it (without the sizes that depend on it).
    pub summary: String,
    /// Class labels, of files from before those had a section of their own; `ModelView::metadata` puts the section's here.
    pub labels: Vec<String>,
    /// For each input, another key under which reference data holds it; empty where it has none.
    pub input_keys: Vec<String>,
    /// One entry a step.
    pub steps: Vec<StepMeta>,
    /// Names of the tensors that own memory, for the numbers below.
    pub tensors: Vec<String>,
    /// For each input, then each output, the tensor that owns its memory.
    pub ports: Vec<u32>,
    /// Steps of nodes of which channels were removed. They stand behind the rest, and only where there are any.
    #[serde(skip)]
    pub cut: Vec<CutStep>,
    /// The steps of training, behind those, where there are any.
    #[serde(skip)]
    pub training: Option<Box<ListMeta>>,
}

/// Metadata of another list of steps of the same file, field by field as of the file's own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `Metadata`")]
pub struct ListMeta {
    pub input_keys: Vec<String>,
    pub steps: Vec<StepMeta>,
    pub tensors: Vec<String>,
    pub ports: Vec<u32>,
    /// Parameters that are trained.
    pub parameters: Vec<TrainedMeta>,
}

/// A parameter that is trained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainedMeta {
    /// Its name in the weights source.
    pub name: String,
    /// Where in the state it lies.
    pub offset: u32,
    /// Extents in memory.
    pub shape: Vec<u32>,
}

/// More than any network's names take; a forged stream that inflates to more does not decode.
const MOST_BYTES: u64 = 64 << 20;

/// Stands for no tensor: scratch, or a constant in the weights.
pub const NO_TENSOR: u32 = u32::MAX;

/// Metadata of a step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepMeta {
    /// The operator's name in the trace.
    pub name: String,
    /// The kind: `conv2d`, `add` …
    pub kind: String,
    /// Multiply-accumulates, as traced.
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

/// A step of a node of which channels were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutStep {
    /// The step.
    pub step: u32,
    /// Multiply-accumulates that are left.
    pub macs: u64,
    /// Fates of the channels of the tensor that it completes, where that has fewer.
    pub channels: Option<Channels>,
}

impl Metadata {
    /// Returns the fates of the channels of the tensor that `step` completes, where some were removed.
    pub fn channels(&self, step: usize) -> Option<&Channels> {
        self.cut_step(step)?.channels.as_ref()
    }

    /// The multiply-accumulates that `step` computes.
    pub fn computed_macs(&self, step: usize) -> u64 {
        let traced = self.steps.get(step).map_or(0, |meta| meta.macs);
        self.cut_step(step).map_or(traced, |cut| cut.macs)
    }

    /// The first step whose channels are not those of the tensor that it completes.
    pub fn contradiction(&self) -> Option<u32> {
        let fits = |cut: &&CutStep| {
            let Some(meta) = self.steps.get(cut.step as usize) else {
                return false;
            };
            let last = meta.completes.as_ref().and_then(|tensor| tensor.shape.last());
            cut.channels
                .as_ref()
                .is_none_or(|channels| last.is_some_and(|&n| channels.in_memory() == n as usize))
        };
        self.cut.iter().find(|cut| !fits(cut)).map(|cut| cut.step)
    }

    fn cut_step(&self, step: usize) -> Option<&CutStep> {
        self.cut.iter().find(|cut| cut.step as usize == step)
    }

    /// The tensor that `step` completes as the trace has it, from what is in memory. `None` where the metadata contradicts itself.
    pub fn traced(&self, step: usize, memory: &[u8]) -> Option<Restored> {
        let dtype = self.steps.get(step)?.completes.as_ref()?.dtype;
        match self.channels(step) {
            Some(channels) => channels.restore(dtype, memory),
            None => Some(Restored {
                bytes: memory.to_vec(),
                known: vec![true],
            }),
        }
    }

    /// The metadata of the steps of training as that of a file of its own; `None` of a file without.
    pub fn of_training(&self) -> Option<Self> {
        let list = self.training.as_deref()?.clone();
        Some(Self {
            input_keys: list.input_keys,
            steps: list.steps,
            tensors: list.tensors,
            ports: list.ports,
            cut: Vec::new(),
            training: None,
            ..self.clone()
        })
    }

    /// Encodes it.
    ///
    /// # Errors
    /// Never in practice; [`crate::ErrorKind::Internal`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        let encoding = |e: postcard::Error| Error::internal(format!("metadata: {e}"));
        let mut plain = postcard::to_stdvec(self).map_err(encoding)?;
        if !self.cut.is_empty() || self.training.is_some() {
            plain.extend(postcard::to_stdvec(&self.cut).map_err(encoding)?);
        }
        if let Some(training) = &self.training {
            plain.extend(postcard::to_stdvec(training.as_ref()).map_err(encoding)?);
        }
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
        deflated
            .write_all(&plain)
            .and_then(|()| deflated.finish())
            .map_err(|e| Error::internal(format!("metadata: {e}")))
    }

    /// Decodes the metadata of the first files of version 1, which is plain and has no keys of the `inputs`; `None` for other bytes.
    pub fn plain(bytes: &[u8], inputs: usize) -> Option<Self> {
        type Fields = (
            String,
            String,
            String,
            Vec<String>,
            Vec<StepMeta>,
            Vec<String>,
            Vec<u32>,
        );
        let (tool, input_sha256, summary, labels, steps, tensors, ports): Fields = postcard::from_bytes(bytes).ok()?;
        Some(Self {
            tool,
            input_sha256,
            summary,
            labels,
            input_keys: vec![String::new(); inputs],
            steps,
            tensors,
            ports,
            cut: Vec::new(),
            training: None,
        })
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
        let (mut metadata, rest): (Self, &[u8]) = postcard::take_from_bytes(&plain).map_err(|e| bad(&e))?;
        if !rest.is_empty() {
            let (cut, rest) = postcard::take_from_bytes(rest).map_err(|e| bad(&e))?;
            metadata.cut = cut;
            if !rest.is_empty() {
                let training: ListMeta = postcard::from_bytes(rest).map_err(|e| bad(&e))?;
                metadata.training = Some(Box::new(training));
            }
        }
        metadata.escape();
        Ok(metadata)
    }

    /// Escapes control characters of all names: a forged file may have them, and they are printed.
    fn escape(&mut self) {
        fn escape(name: &mut String) {
            if name.contains(char::is_control) {
                *name = one_line(name).into_owned();
            }
        }
        fn names_of(step: &mut StepMeta) -> impl Iterator<Item = &mut String> {
            let names = step.completes.iter_mut().flat_map(|tensor| &mut tensor.names);
            [&mut step.name, &mut step.kind].into_iter().chain(names)
        }
        self.steps.iter_mut().flat_map(names_of).for_each(escape);
        let lists = [&mut self.input_keys, &mut self.tensors, &mut self.labels];
        lists.into_iter().flatten().for_each(escape);
        if let Some(training) = &mut self.training {
            training.steps.iter_mut().flat_map(names_of).for_each(escape);
            let lists = [&mut training.input_keys, &mut training.tensors];
            lists.into_iter().flatten().for_each(escape);
            training
                .parameters
                .iter_mut()
                .map(|parameter| &mut parameter.name)
                .for_each(escape);
        }
    }
}

/// Origin of a file, from the first fields of the metadata, which are the same in every version of the format.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(channels: u32) -> Metadata {
        let tensor = TensorMeta {
            names: vec!["y".into()],
            slot: Slot::default(),
            dtype: DType::I8,
            shape: vec![1, 2, 3, channels],
            traced_perm: vec![],
            scale: 0.5,
            zero_point: 0,
        };
        let step = StepMeta {
            name: "layer".into(),
            kind: "conv2d".into(),
            macs: 90,
            completes: Some(tensor),
            operands: vec![0],
        };
        Metadata {
            steps: vec![step.clone(), step],
            ..Metadata::default()
        }
    }

    fn cut(step: u32) -> CutStep {
        let channels = [Channel::Kept, Channel::Constant(-7), Channel::Kept];
        CutStep {
            step,
            macs: 40,
            channels: Some(Channels::new(channels.into_iter())),
        }
    }

    #[test]
    fn steps_that_lost_channels_stand_behind_the_rest() {
        let plain = metadata(2);
        let mut with = plain.clone();
        with.cut.push(cut(1));
        let decoded = Metadata::decode(&with.encode().expect("encodes")).expect("decodes");
        assert_eq!(decoded.cut, with.cut);
        assert_eq!([0, 1].map(|step| decoded.computed_macs(step)), [90, 40]);
        assert_eq!(decoded.traced(1, &[5, 6]).expect("restored").bytes, [5, 249, 6]);
        assert_eq!(decoded.traced(0, &[5, 6]).expect("as it is").bytes, [5, 6]);
        assert_eq!(decoded.contradiction(), None);
        // Files of before have nothing there.
        let plain = Metadata::decode(&plain.encode().expect("encodes")).expect("decodes");
        assert_eq!((plain.cut.len(), plain.steps.len()), (0, 2));
    }

    #[test]
    fn channels_of_another_tensor_or_of_no_step_are_seen() {
        for (channels, step) in [(3, 1), (2, 2)] {
            let mut wrong = metadata(channels);
            wrong.cut.push(cut(step));
            assert_eq!(wrong.contradiction(), Some(step));
        }
    }
}
