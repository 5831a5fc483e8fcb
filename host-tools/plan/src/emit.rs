//! Writes a program with its memory plan as a blob. Specified in `docs/format.md`.

mod described;

use std::borrow::Cow;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;

use arenite::{DType, Header, KernelSet, Port, Slot, StateInit, blob};

use crate::error::{Error, ErrorKind, Result};
use crate::files::File;
use crate::graph::{Graph, TensorId, facts};
use crate::memory::Placed;
use crate::metadata::Metadata;
use crate::program::{Content, Piece, Program};
use crate::weights::Weights;

pub use described::{Owners, affine, cut_steps, step_metadata};

/// Sizes of a written blob, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The whole file.
    pub model: u64,
    /// The weights section.
    pub weights: u64,
    /// Ports and steps.
    pub plan: u64,
    /// The metadata.
    pub meta: u64,
}

/// Steps that become a file, with what they read.
#[derive(Debug, Clone)]
pub struct Part {
    /// The steps.
    pub steps: Range<usize>,
    /// The page of their constants; none where they have no constants.
    pub page: Option<u32>,
    /// Whether the network's inputs are this file's.
    pub inputs: bool,
    /// Whether its outputs are.
    pub outputs: bool,
}

/// A training step, with where its tensors lie: in the arena and the state of inference, with constants behind those of inference.
#[derive(Debug, Clone, Copy)]
pub struct Training<'t> {
    /// The steps.
    pub program: &'t Program,
    /// Their places.
    pub memory: &'t Placed,
}

impl Part {
    /// All of a program whose constants are on one page.
    fn whole(program: &Program) -> Self {
        Self {
            steps: 0..program.steps.len(),
            page: Some(0),
            inputs: true,
            outputs: true,
        }
    }

    /// The network's inputs and outputs as far as they are this file's.
    pub fn ports<'p>(&self, program: &'p Program) -> [&'p [TensorId]; 2] {
        let Graph { inputs, outputs, .. } = &program.graph;
        [(self.inputs, inputs), (self.outputs, outputs)].map(|(own, ports)| if own { ports.as_slice() } else { &[] })
    }
}

/// Writes the blob to an empty file. `progress` is called with weight bytes done and in all.
///
/// # Errors
/// [`ErrorKind::Io`]; what reading the weights says; [`ErrorKind::DoesNotFit`] beyond 4 GiB.
pub fn emit(
    program: &Program,
    memory: &Placed,
    training: Option<Training<'_>>,
    (metadata, labels): (&Metadata, &[String]),
    weights: &Weights,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Written> {
    let part = Part::whole(program);
    let lists = (memory, training);
    emit_lists(program, &part, lists, (metadata, labels), weights, file, progress)
}

/// Writes the blob of a part.
///
/// # Errors
/// As [`emit`].
pub fn emit_part(
    program: &Program,
    part: &Part,
    memory: &Placed,
    (metadata, labels): (&Metadata, &[String]),
    weights: &Weights,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Written> {
    let lists = (memory, None);
    emit_lists(program, part, lists, (metadata, labels), weights, file, progress)
}

/// Writes the blob of a part, with a training step.
fn emit_lists(
    program: &Program,
    part: &Part,
    (memory, training): (&Placed, Option<Training<'_>>),
    (metadata, labels): (&Metadata, &[String]),
    weights: &Weights,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Written> {
    let own = part.ports(program);
    let ports = encode_ports(program, memory, own)?;
    let (steps, mut kernels, records) = encode_steps(program, part.steps.clone(), memory)?;
    let rolling = match &memory.rolled {
        Some(rolled) => rolled.section(&memory.offsets, &records)?,
        None => Vec::new(),
    };
    let mut list = Vec::new();
    if let Some(training) = training {
        let (bytes, own) = encode_list(training)?;
        (list, kernels) = (bytes, kernels.union(own));
    }
    let meta = metadata.encode()?;
    let labels = encode_labels(labels)?;
    let cores = encode_cores(program)?;
    // Of a model in pieces the first one has it.
    let tokenizer = if part.inputs { &program.graph.tokenizer[..] } else { &[] };
    let (state, state_runs) = encode_state(&program.state.initial);

    let mut arena = [0; arenite::MAX_REGIONS];
    let of_training = training.map_or([0; arenite::MAX_REGIONS], |training| training.memory.region_bytes());
    let regions = memory.region_bytes().into_iter().zip(of_training);
    for (field, (inference, training)) in arena.iter_mut().zip(regions) {
        let bytes = inference.max(training);
        let too_large =
            |_| Error::new(ErrorKind::DoesNotFit, format!("an arena of {bytes} bytes")).expected("under 4 GiB");
        *field = u32::try_from(bytes).map_err(too_large)?;
    }

    let graph = &program.graph;
    let [inputs, outputs] = own;
    let bytes = |ids: &[TensorId]| ids.iter().map(|&id| graph.tensor(id).bytes() as u32).sum();
    let [input_count, output_count] = facts::check_ports(inputs.len(), outputs.len())?;
    let constants: Vec<&Piece> = training
        .map_or(program, |training| training.program)
        .weights
        .pieces()
        .iter()
        .filter(|piece| Some(piece.page) == part.page)
        .collect();
    // The section ends with the last one.
    let length = constants.last().map_or(0, |piece| piece.offset + piece.len);
    let mut header = Header {
        target: program.target as u8,
        inputs: input_count,
        outputs: output_count,
        step_count: part.steps.len() as u32,
        arena,
        input_bytes: bytes(inputs),
        output_bytes: bytes(outputs),
        kernels,
        ..Header::default()
    };
    let lengths = blob::Lengths {
        ports: ports.len(),
        steps: steps.len(),
        meta: meta.len(),
        labels: labels.len(),
        cores: cores.len(),
        tokenizer: tokenizer.len(),
        training: list.len(),
        rolling: rolling.len(),
        state_init: program.state.initial.len(),
        state_runs,
        weights: length as usize,
    };
    let too_large = || Error::new(ErrorKind::DoesNotFit, "the model needs more than 4 GiB");
    header.place(lengths).ok_or_else(too_large)?;

    let sections = [
        &ports[..],
        &steps,
        &meta,
        &labels,
        &cores,
        tokenizer,
        &list,
        &rolling,
        &state,
    ];
    write(file, &mut header, &sections, &constants, weights, progress)?;
    let plan = (ports.len() + steps.len() + list.len() + rolling.len()) as u64;
    Ok(Written {
        model: u64::from(header.total),
        weights: u64::from(length),
        plan,
        meta: meta.len() as u64,
    })
}

/// Writes header, sections and weights in one pass; the checksum is patched into the header at the end.
fn write(
    file: &File,
    header: &mut Header,
    sections: &[&[u8]],
    constants: &[&Piece],
    weights: &Weights,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let io = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write the model: {e}"));
    let mut out = Out {
        file: BufWriter::with_capacity(1 << 20, file),
        crc: crc32fast::Hasher::new(),
        at: 0,
    };
    let mut head = Vec::new();
    header.write(&mut head);
    for part in arenite::checksummed(&head) {
        out.crc.update(part);
    }
    out.file.write_all(&head).map_err(io)?;
    out.at = head.len() as u64;
    for section in sections {
        out.write(section).map_err(io)?;
    }
    let (base, all) = (u64::from(header.weights.offset), u64::from(header.weights.len));
    let mut buffer = Vec::new();
    for piece in constants {
        out.pad_to(base + u64::from(piece.offset)).map_err(io)?;
        let start = out.at;
        match &piece.content {
            Content::Bytes(bytes) => out.write(bytes).map_err(io)?,
            Content::Expr(expr) => weights.stream(expr, &mut |values| {
                buffer.clear();
                buffer.extend(values.iter().flat_map(|v| v.to_le_bytes()));
                out.write(&buffer).map_err(io)?;
                progress(out.at - base, all);
                Ok(())
            })?,
        }
        if out.at - start != u64::from(piece.len) {
            return Err(Error::internal(format!(
                "a constant of {} bytes has {}",
                piece.len,
                out.at - start
            )));
        }
    }
    out.pad_to(u64::from(header.total)).map_err(io)?;
    header.crc = out.crc.finalize();
    let mut writer = out.file;
    writer.seek(SeekFrom::Start(0)).map_err(io)?;
    head.clear();
    header.write(&mut head);
    writer.write_all(&head).map_err(io)?;
    writer.flush().map_err(io)
}

struct Out<'f> {
    file: BufWriter<&'f File>,
    crc: crc32fast::Hasher,
    at: u64,
}

impl Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.crc.update(bytes);
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn pad_to(&mut self, at: u64) -> std::io::Result<()> {
        let gap = at.saturating_sub(self.at) as usize;
        self.write(&[0; blob::WEIGHTS_ALIGN as usize][..gap])
    }
}

/// Nothing for no labels.
fn encode_labels(labels: &[String]) -> Result<Vec<u8>> {
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    postcard::to_stdvec(labels).map_err(|e| Error::internal(format!("labels: {e}")))
}

/// The initial state as runs of equal bytes, and their number, where that is shorter; else as it is.
fn encode_state(initial: &[u8]) -> (Cow<'_, [u8]>, u8) {
    let mut runs = Vec::new();
    let count = StateInit::runs_of(initial, &mut runs);
    count.map_or((initial.into(), 0), |count| (runs.into(), count))
}

/// Nothing for one core.
fn encode_cores(program: &Program) -> Result<Vec<u8>> {
    let assigned = &program.assigned;
    let (steps, accelerator) = (&assigned.steps, &assigned.accelerator);
    match (assigned.cores, steps.len() == program.steps.len()) {
        (_, true) if let Some(declared) = accelerator => {
            let declared = declared.to_bytes();
            Ok([&[blob::ACCELERATED][..], steps, &declared].concat())
        }
        (0, _) if accelerator.is_none() => Ok(Vec::new()),
        (cores, true) => Ok(std::iter::once(cores as u8).chain(steps.iter().copied()).collect()),
        (_, false) => Err(Error::internal("steps without a core")),
    }
}

/// The section of a training step, and its kernels.
fn encode_list(training: Training<'_>) -> Result<(Vec<u8>, KernelSet)> {
    let Training { program, memory } = training;
    let Graph { inputs, outputs, .. } = &program.graph;
    let ports = encode_ports(program, memory, [inputs, outputs])?;
    let (steps, kernels, _) = encode_steps(program, 0..program.steps.len(), memory)?;
    let bytes = |ids: &[TensorId]| ids.iter().map(|&id| program.graph.tensor(id).bytes() as u32).sum();
    let [input_count, output_count] = facts::check_ports(inputs.len(), outputs.len())?;
    let head = blob::ListHead {
        inputs: input_count,
        outputs: output_count,
        ports: ports.len() as u32,
        steps: program.steps.len() as u32,
        input_bytes: bytes(inputs),
        output_bytes: bytes(outputs),
    };
    Ok(([&head.to_bytes()[..], &ports, &steps].concat(), kernels))
}

fn encode_ports(program: &Program, memory: &Placed, ports: [&[TensorId]; 2]) -> Result<Vec<u8>> {
    let graph = &program.graph;
    let mut bytes = Vec::new();
    for &id in ports.into_iter().flatten() {
        let tensor = graph.tensor(id);
        let mut shape = heapless::Vec::new();
        for &extent in &tensor.shape {
            shape.push(extent as u32).map_err(|_| {
                Error::unsupported(format!("`{}` has {} axes", tensor.name, tensor.shape.len()))
                    .expected(format!("at most {}", arenite::blob::MAX_RANK))
            })?;
        }
        let (scale, zero_point) = affine(tensor);
        let slot = memory.slot(program, id, 0)?;
        let port = Port {
            name: &tensor.name,
            slot,
            dtype: tensor.dtype,
            shape,
            scale,
            zero_point,
        };
        blob::write_port(&port, &mut bytes).ok_or_else(|| Error::internal("a port does not encode"))?;
        debug_assert!(tensor.dtype != DType::Bool || slot.region != Slot::WEIGHTS);
    }
    Ok(bytes)
}

/// The records of steps, their kernels, and where each record begins.
fn encode_steps(program: &Program, steps: Range<usize>, memory: &Placed) -> Result<(Vec<u8>, KernelSet, Vec<u32>)> {
    let (mut bytes, mut kernels, mut records) = (Vec::new(), KernelSet::EMPTY, Vec::new());
    for (index, lowered) in program.steps.iter().enumerate().take(steps.end).skip(steps.start) {
        let step = lowered
            .step
            .clone()
            .map(&mut |place| memory.slot_of(program, index, place))?;
        records.push(bytes.len() as u32);
        blob::write_step(&step, &mut bytes, &mut kernels).ok_or_else(|| Error::internal("a step does not encode"))?;
    }
    Ok((bytes, kernels, records))
}
