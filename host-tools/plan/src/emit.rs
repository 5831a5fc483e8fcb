//! Writes a program with its memory plan as a blob. Specified in `docs/format.md`.

use std::borrow::Cow;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;

use arenite::{DType, Header, KernelSet, Port, Slot, StateInit, blob};

use crate::error::{Error, ErrorKind, Result};
use crate::files::File;
use crate::graph::{Graph, Tensor, TensorId, facts};
use crate::memory::Placed;
use crate::metadata::{CutStep, Metadata, NO_TENSOR, StepMeta, TensorMeta};
use crate::program::{Content, LoweredStep, Piece, Place, Program};
use crate::weights::Weights;

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
    metadata: &Metadata,
    labels: &[String],
    weights: &Weights,
    file: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Written> {
    let part = Part::whole(program);
    emit_part(program, &part, memory, (metadata, labels), weights, file, progress)
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
    let own = part.ports(program);
    let ports = encode_ports(program, memory, own)?;
    let (steps, kernels) = encode_steps(program, part.steps.clone(), memory)?;
    let meta = metadata.encode()?;
    let labels = encode_labels(labels)?;
    let cores = encode_cores(program)?;
    let (state, state_runs) = encode_state(&program.state.initial);

    let mut arena = [0; arenite::MAX_REGIONS];
    for (field, bytes) in arena.iter_mut().zip(memory.region_bytes()) {
        let too_large =
            |_| Error::new(ErrorKind::DoesNotFit, format!("an arena of {bytes} bytes")).expected("under 4 GiB");
        *field = u32::try_from(bytes).map_err(too_large)?;
    }

    let graph = &program.graph;
    let [inputs, outputs] = own;
    let bytes = |ids: &[TensorId]| ids.iter().map(|&id| graph.tensor(id).bytes() as u32).sum();
    let [input_count, output_count] = facts::check_ports(inputs.len(), outputs.len())?;
    let constants: Vec<&Piece> = program
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
        state_init: program.state.initial.len(),
        state_runs,
        weights: length as usize,
    };
    let too_large = || Error::new(ErrorKind::DoesNotFit, "the model needs more than 4 GiB");
    header.place(lengths).ok_or_else(too_large)?;

    let sections = [&ports[..], &steps, &meta, &labels, &cores, &state];
    write(file, &mut header, &sections, &constants, weights, progress)?;
    let plan = (ports.len() + steps.len()) as u64;
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

/// The tensors that own memory, numbered as the metadata does.
pub struct Owners {
    numbers: std::collections::HashMap<TensorId, u32>,
    /// Their names.
    pub names: Vec<String>,
    /// The owner of each input and output.
    pub ports: Vec<u32>,
}

impl Owners {
    /// Numbers them in the order in which the network touches them.
    pub fn new(program: &Program) -> Self {
        let graph = &program.graph;
        let mut owners = Self {
            numbers: Default::default(),
            names: Vec::new(),
            ports: Vec::new(),
        };
        let touched = program
            .steps
            .iter()
            .flat_map(LoweredStep::places)
            .filter_map(|place| match place {
                Place::Tensor(id, _) => Some(id),
                _ => None,
            });
        let ports = || graph.inputs.iter().chain(&graph.outputs).copied();
        for id in ports().chain(touched) {
            let owner = program.owner(id);
            owners.numbers.entry(owner).or_insert_with(|| {
                owners.names.push(graph.tensor(owner).name.clone());
                owners.names.len() as u32 - 1
            });
        }
        owners.ports = ports().map(|id| owners.of(program, Place::Tensor(id, 0))).collect();
        owners
    }

    fn of(&self, program: &Program, place: Place) -> u32 {
        match place {
            Place::Tensor(id, _) => self.numbers.get(&program.owner(id)).copied().unwrap_or(NO_TENSOR),
            _ => NO_TENSOR,
        }
    }
}

/// The per-step metadata.
///
/// # Errors
/// As [`Placed::slot`].
pub fn step_metadata(program: &Program, memory: &Placed, owners: &Owners) -> Result<Vec<StepMeta>> {
    let graph = &program.graph;
    let completed = program.steps.iter().enumerate();
    let last_writer: std::collections::HashMap<TensorId, usize> = completed
        .filter_map(|(index, step)| Some((step.completes?, index)))
        .collect();
    let mut names: std::collections::HashMap<TensorId, Vec<String>> = Default::default();
    let mut views: Vec<_> = program.views.keys().copied().collect();
    views.sort();
    for view in views {
        let (root, (_, offset)) = (program.owner(view), program.root(view));
        // What a later step computes in the same place has other values.
        let same = offset == 0 && !last_writer.contains_key(&view) && same_array(graph, view, root);
        if same {
            names.entry(root).or_default().push(graph.tensor(view).name.clone());
        }
    }
    program
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let completes = match step.completes.filter(|&id| last_writer.get(&id) == Some(&index)) {
                None => None,
                Some(id) => {
                    let tensor = graph.tensor(id);
                    let mut all = vec![tensor.name.clone()];
                    all.extend(names.get(&id).into_iter().flatten().cloned());
                    let (scale, zero_point) = affine(tensor);
                    Some(TensorMeta {
                        names: all,
                        slot: memory.slot(program, id, 0)?,
                        dtype: tensor.dtype,
                        shape: tensor.shape.iter().map(|&n| n as u32).collect(),
                        traced_perm: tensor.traced_perm.iter().flatten().map(|&axis| axis as u8).collect(),
                        scale,
                        zero_point,
                    })
                }
            };
            Ok(StepMeta {
                name: step.name.clone(),
                kind: step.kind.to_string(),
                macs: traced_macs(program, step),
                completes,
                operands: step.places().iter().map(|&place| owners.of(program, place)).collect(),
            })
        })
        .collect()
}

/// Whether two tensors of the same bytes are one array, element by element in the traced order.
fn same_array(graph: &Graph, a: TensorId, b: TensorId) -> bool {
    // A tensor of other channels is not the same one, where those that are left are.
    let all = graph.traced_elements(a) == graph.traced_elements(b);
    let [a, b] = [graph.tensor(a), graph.tensor(b)];
    all && a.bytes() == b.bytes() && traced_walk(a) == traced_walk(b)
}

/// How the traced order walks through a tensor's elements: extent and stride of each axis, outermost first, those of one element
/// left out and neighbours joined where they are one walk.
fn traced_walk(tensor: &Tensor) -> Vec<(usize, usize)> {
    let mut stride = 1;
    let mut axes: Vec<(usize, usize)> = Vec::with_capacity(tensor.shape.len());
    for &extent in tensor.shape.iter().rev() {
        axes.push((extent, stride));
        stride *= extent;
    }
    axes.reverse();
    let traced: Vec<(usize, usize)> = match &tensor.traced_perm {
        Some(perm) => perm.iter().filter_map(|&axis| axes.get(axis).copied()).collect(),
        None => axes,
    };
    let mut walk: Vec<(usize, usize)> = Vec::with_capacity(traced.len());
    for (extent, stride) in traced.into_iter().filter(|&(extent, _)| extent != 1) {
        match walk.last_mut() {
            Some((outer, above)) if *above == extent * stride => (*outer, *above) = (*outer * extent, stride),
            _ => walk.push((extent, stride)),
        }
    }
    walk
}

/// Those that the step would have with all channels of its node.
fn traced_macs(program: &Program, step: &LoweredStep) -> u64 {
    match program.graph.cut_macs.get(&step.name) {
        // A step may be a part of its node.
        Some(&[before, after]) if after > 0 => (u128::from(step.macs) * u128::from(before) / u128::from(after)) as u64,
        _ => step.macs,
    }
}

/// The steps of nodes of which channels were removed.
pub fn cut_steps(program: &Program, steps: &[StepMeta]) -> Vec<CutStep> {
    let cut = |((index, step), meta): ((u32, &LoweredStep), &StepMeta)| {
        let completes = meta.completes.as_ref().and_then(|tensor| tensor.names.first());
        let channels = completes.and_then(|name| program.graph.channels.get(name)).cloned();
        let fewer = step.macs != meta.macs;
        (fewer || channels.is_some()).then_some(CutStep {
            step: index,
            macs: step.macs,
            channels,
        })
    };
    (0..).zip(&program.steps).zip(steps).filter_map(cut).collect()
}

/// Scale and zero point of a per-tensor quantised tensor; (0, 0) for others.
pub fn affine(tensor: &crate::graph::Tensor) -> (f32, i32) {
    match &tensor.quant {
        Some(quant) if quant.axis.is_none() => (quant.scale[0], quant.zero_point[0]),
        _ => (0.0, 0),
    }
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

fn encode_steps(program: &Program, steps: Range<usize>, memory: &Placed) -> Result<(Vec<u8>, KernelSet)> {
    let (mut bytes, mut kernels) = (Vec::new(), KernelSet::EMPTY);
    for (index, lowered) in program.steps.iter().enumerate().take(steps.end).skip(steps.start) {
        let step = lowered
            .step
            .clone()
            .map(&mut |place| memory.slot_of(program, index, place))?;
        blob::write_step(&step, &mut bytes, &mut kernels).ok_or_else(|| Error::internal("a step does not encode"))?;
    }
    Ok((bytes, kernels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], perm: Option<&[usize]>) -> Tensor {
        Tensor {
            name: "t".into(),
            shape: shape.to_vec(),
            dtype: DType::F32,
            quant: None,
            kind: crate::graph::TensorKind::Activation,
            traced_perm: perm.map(<[usize]>::to_vec),
        }
    }

    #[test]
    fn a_walk_is_the_order_of_elements_whatever_the_axes() {
        let same = |a: &Tensor, b: &Tensor| traced_walk(a) == traced_walk(b);
        let stored = tensor(&[1, 4, 5, 3], None);
        assert!(same(&stored, &tensor(&[60], None)));
        assert!(same(&stored, &tensor(&[20, 1, 3], None)));
        assert!(!same(&stored, &tensor(&[59], None)));
        // NCHW of the same bytes: another order, but where one of channels and places is single.
        let nchw = tensor(&[1, 4, 5, 3], Some(&[0, 3, 1, 2]));
        assert!(!same(&stored, &nchw));
        assert!(!same(&nchw, &tensor(&[1, 60], None)));
        assert!(same(&nchw, &tensor(&[20, 3], Some(&[1, 0]))));
        let one_place = tensor(&[1, 1, 1, 7], Some(&[0, 3, 1, 2]));
        assert!(same(&one_place, &tensor(&[7], None)));
        assert!(traced_walk(&tensor(&[], None)).is_empty());
    }
}
