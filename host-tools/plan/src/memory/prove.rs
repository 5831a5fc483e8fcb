//! The proof that a model's memory plan is right, from the model file alone: it follows every byte from writer to reader.
//!
//! It shares nothing with the planner. The metadata names, for each operand of each step, the tensor that it belongs to; the
//! proof keeps a map of the arena in which every byte carries the tensor that wrote it last, and demands that each read finds
//! nothing but bytes of its own tensor. Overlaps within a step are held against the kernel's own rule. A tensor that is complete is not
//! written again: its parts come in their order.

mod rolled;
mod together;

use std::collections::BTreeMap;

use arenite::{Access, Operand, Slot, Step};

use self::together::Together;
use crate::metadata::{Metadata, NO_TENSOR, StepMeta};
use crate::model::ModelView;
use crate::{Error, Result};

/// Extent of a proof: reads that were followed, and arena bytes in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Read operands that were followed.
    pub reads: usize,
    /// One past the highest byte in use, summed over the regions.
    pub arena_touched: u64,
}

/// Proves that every step reads what was written for it.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] naming the step, the tensor, and the bytes that another one overwrote.
pub fn prove(view: &ModelView<'_>) -> Result<Proof> {
    let proof = prove_pieces(std::slice::from_ref(view))?;
    let Some(training) = view.training()? else {
        return Ok(proof);
    };
    let of_training = prove_pieces(&[training]).map_err(|e| e.at("the steps of training"))?;
    Ok(Proof {
        reads: proof.reads + of_training.reads,
        arena_touched: proof.arena_touched.max(of_training.arena_touched),
    })
}

/// The same of a model in pieces, which run one behind the other over one arena: what one leaves there the next ones find. A tensor is the same one where it
/// has the same name.
///
/// # Errors
/// As [`prove`].
pub fn prove_pieces(pieces: &[ModelView<'_>]) -> Result<Proof> {
    let mut followed = Followed::default();
    for (index, piece) in pieces.iter().enumerate() {
        let here = |e: Error| {
            if pieces.len() > 1 {
                e.at(format_args!("piece {index}"))
            } else {
                e
            }
        };
        followed.piece(piece, pieces.len() > 1).map_err(here)?;
    }
    Ok(Proof {
        reads: followed.reads,
        arena_touched: followed.writers.touched(),
    })
}

/// State behind the pieces that were followed.
#[derive(Default)]
struct Followed {
    writers: Writers,
    finished: Finished,
    reads: usize,
    /// Tensors of all pieces, by their names.
    tensors: BTreeMap<String, u32>,
}

impl Followed {
    fn piece(&mut self, view: &ModelView<'_>, named: bool) -> Result<()> {
        let mut metadata = view.metadata()?;
        let steps = view.steps()?;
        if metadata.steps.len() != steps.len() || metadata.ports.len() != view.inputs.len() + view.outputs.len() {
            return Err(Error::input(format!(
                "the metadata describes {} steps of {} and {} inputs and outputs of {}",
                metadata.steps.len(),
                steps.len(),
                metadata.ports.len(),
                view.inputs.len() + view.outputs.len()
            )));
        }
        if let Some(step) = metadata.contradiction() {
            let message = format!("the metadata describes other channels of step {step} than its tensor has");
            return Err(Error::input(message).help("the file is damaged: pack it again"));
        }
        if named {
            self.number(&mut metadata);
        }
        let (inputs, outputs) = metadata.ports.split_at(view.inputs.len());
        for (port, &tensor) in view
            .inputs
            .iter()
            .zip(inputs)
            .filter(|(port, _)| port.slot.region != Slot::ROLLED)
        {
            self.writers.write(port.slot, port.bytes().unwrap_or(0), tensor);
        }
        // State is written before the first run, and by every one.
        self.writers.state = true;
        let mut together = Together::of(view, steps.len())?;
        let turned = self.rolled(view, &metadata, &steps)?;
        for (index, (step, meta)) in steps.iter().zip(&metadata.steps).enumerate().skip(turned) {
            let mut operands = Vec::new();
            step.operands(&mut |operand| operands.push(operand));
            let here = |e: Error| e.at(format_args!("step {index} (`{}`)", meta.name));
            check_step(view, step, &operands).map_err(here)?;
            together.step(index, &operands).map_err(here)?;
            let of = |operand: usize| meta.operands.get(operand).copied().unwrap_or(NO_TENSOR);
            for (i, operand) in operands.iter().enumerate() {
                if matches!(operand.access, Access::Read | Access::Update) && operand.place.region != Slot::WEIGHTS {
                    let read = self.writers.read(operand.place, operand.bytes, of(i));
                    read.map_err(|fault| tell(&metadata, index, of(i), operand, fault))?;
                    self.reads += 1;
                }
            }
            self.finished.write(&metadata, meta, &operands).map_err(here)?;
            for (i, operand) in operands.iter().enumerate() {
                match operand.access {
                    Access::Read => {}
                    Access::Write | Access::Update => self.writers.write(operand.place, operand.bytes, of(i)),
                    Access::Scratch => self.writers.write(operand.place, operand.bytes, NO_TENSOR),
                }
            }
        }
        for (port, &tensor) in view.outputs.iter().zip(outputs) {
            let bytes = port.bytes().unwrap_or(0);
            self.writers.read(port.slot, bytes, tensor).map_err(|fault| {
                let by = name(&metadata, fault.tensor);
                Error::input(format!(
                    "output `{}`: at the end of a run, byte {} of region {} belongs to {by}",
                    port.name, fault.at, port.slot.region
                ))
            })?;
            self.reads += 1;
        }
        Ok(())
    }

    /// Gives the tensors of a piece the numbers that all pieces have for them.
    fn number(&mut self, metadata: &mut Metadata) {
        let own = std::mem::take(&mut metadata.tensors);
        let numbers: Vec<u32> = own
            .into_iter()
            .map(|name| {
                let next = self.tensors.len() as u32;
                *self.tensors.entry(name).or_insert(next)
            })
            .collect();
        let operands = metadata.steps.iter_mut().flat_map(|step| &mut step.operands);
        for tensor in operands.chain(&mut metadata.ports) {
            *tensor = numbers.get(*tensor as usize).copied().unwrap_or(NO_TENSOR);
        }
        // For messages.
        metadata.tensors = vec![String::new(); self.tensors.len()];
        for (name, &number) in &self.tensors {
            metadata.tensors[number as usize].clone_from(name);
        }
    }
}

/// Bounds, alignment and overlaps of one step, by the rules that a device's load applies.
fn check_step(view: &ModelView<'_>, step: &Step, operands: &[Operand]) -> Result<()> {
    let header = view.header();
    step.check().map_err(|fault| Error::input(fault.to_string()))?;
    let size = |slot: Slot| match slot.region {
        Slot::STATE => header.state_init.len,
        Slot::WEIGHTS => header.weights.len,
        region => header.arena.get(usize::from(region)).copied().unwrap_or(0),
    };
    for (index, operand) in operands.iter().enumerate() {
        let Operand {
            place: slot,
            bytes,
            align,
            access,
        } = *operand;
        let end = u64::from(slot.offset) + u64::from(bytes);
        if end > u64::from(size(slot)) {
            let size = size(slot);
            return Err(Error::input(format!(
                "operand {index} ends at byte {end} of a memory of {size}"
            )));
        }
        if slot.region == Slot::WEIGHTS && access != Access::Read {
            return Err(Error::input(format!("operand {index} writes into the weights")));
        }
        if !slot.offset.is_multiple_of(align.max(1)) {
            let offset = slot.offset;
            return Err(Error::input(format!(
                "operand {index} at byte {offset} is not aligned to {align}"
            )));
        }
        if access == Access::Read {
            continue;
        }
        for (other_index, other) in operands.iter().enumerate() {
            let meet = other_index != index
                && other.place.region == slot.region
                && bytes > 0
                && other.bytes > 0
                && u64::from(other.place.offset) < end
                && u64::from(slot.offset) < u64::from(other.place.offset) + u64::from(other.bytes);
            let distance = || step.distance(other_index).map(|d| i64::from(slot.offset) + d);
            let allowed = index == 0
                && other.access == Access::Read
                && (distance().is_some_and(|least| least <= i64::from(other.place.offset))
                    || (slot == other.place && step.in_place(other_index)));
            if meet && !allowed {
                return Err(Error::input(format!("operand {index} overlaps operand {other_index}")));
            }
        }
    }
    Ok(())
}

fn name(metadata: &Metadata, tensor: u32) -> String {
    match metadata.tensors.get(tensor as usize) {
        Some(name) => format!("`{name}`"),
        None => "nothing".to_string(),
    }
}

fn tell(metadata: &Metadata, step: usize, tensor: u32, operand: &Operand, fault: Fault) -> Error {
    Error::input(format!(
        "step {step} (`{}`) reads {} at {}+{} of region {}, but byte {} belongs to {}",
        metadata.steps[step].name,
        name(metadata, tensor),
        operand.place.offset,
        operand.bytes,
        operand.place.region,
        fault.at,
        name(metadata, fault.tensor)
    ))
    .help("the plan is wrong: pack the model again, and please report it")
}

/// Tensors that are complete: nothing but a tensor that takes their place is written into them.
#[derive(Default)]
struct Finished(Vec<Extent>);

#[derive(Debug, Clone, Copy)]
struct Extent {
    slot: Slot,
    bytes: u32,
    /// The tensor that owns the memory.
    owner: u32,
}

impl Extent {
    fn end(&self) -> u64 {
        u64::from(self.slot.offset) + u64::from(self.bytes)
    }

    fn meets(&self, other: &Extent) -> bool {
        self.slot.region == other.slot.region
            && u64::from(self.slot.offset) < other.end()
            && u64::from(other.slot.offset) < self.end()
    }

    fn covers(&self, other: &Extent) -> bool {
        self.slot.region == other.slot.region && self.slot.offset <= other.slot.offset && other.end() <= self.end()
    }
}

impl Finished {
    /// Checks a step's write: inside the tensor that it completes, and into no other one that is complete and still owns its memory, unless the step adds to
    /// all of it.
    fn write(&mut self, metadata: &Metadata, meta: &StepMeta, operands: &[Operand]) -> Result<()> {
        let owner = |operand: usize| meta.operands.get(operand).copied().unwrap_or(NO_TENSOR);
        let completes = meta.completes.as_ref().map(|tensor| Extent {
            slot: tensor.slot,
            bytes: (tensor.shape.iter()).fold(tensor.dtype.bytes() as u32, |bytes, &n| bytes.saturating_mul(n)),
            owner: owner(0),
        });
        for (index, operand) in operands.iter().enumerate().filter(|(_, o)| o.access != Access::Read) {
            let (slot, bytes) = (operand.place, operand.bytes);
            let written = Extent {
                slot,
                bytes,
                owner: owner(index),
            };
            let own = index == 0 && completes.is_some_and(|tensor| tensor.covers(&written));
            if let (0, false, Some(tensor)) = (index, own, completes) {
                return Err(Error::input(format!(
                    "it writes {}+{bytes} of region {}, outside the tensor at {}+{} that it completes",
                    slot.offset, slot.region, tensor.slot.offset, tensor.bytes
                )));
            }
            // Who adds to a tensor, as to a sum of gradients, has read all of it.
            let adds = |tensor: &Extent| {
                operand.access == Access::Update && (tensor.slot, tensor.bytes) == (written.slot, written.bytes)
            };
            let spoilt = |tensor: &&Extent| tensor.owner == written.owner && tensor.meets(&written) && !adds(tensor);
            if let (false, Some(tensor)) = (own, self.0.iter().find(spoilt)) {
                return Err(Error::input(format!(
                    "it writes {}+{bytes} of region {}, into {}, which is complete",
                    slot.offset,
                    slot.region,
                    name(metadata, tensor.owner)
                )));
            }
            self.0.retain(|tensor| !tensor.meets(&written));
        }
        self.0
            .extend(completes.filter(|tensor| tensor.slot.region < Slot::STATE));
        Ok(())
    }
}

/// Which tensor wrote each byte of each region last: by region and first byte, the end and the tensor.
#[derive(Default)]
struct Writers {
    spans: BTreeMap<(u8, u32), (u32, u32)>,
    state: bool,
}

/// A byte that is not the reader's, and whose it is.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    at: u32,
    tensor: u32,
}

impl Writers {
    fn write(&mut self, slot: Slot, bytes: u32, tensor: u32) {
        if slot.region == Slot::STATE || bytes == 0 {
            return;
        }
        let (region, start, end) = (slot.region, slot.offset, slot.offset.saturating_add(bytes));
        while let Some((at, (to, of))) = self.overlapping(region, start, end) {
            self.spans.remove(&(region, at));
            if at < start {
                self.spans.insert((region, at), (start, of));
            }
            if to > end {
                self.spans.insert((region, end), (to, of));
            }
        }
        // Neighbours of one tensor are one span.
        let (mut start, mut end) = (start, end);
        let before = self.spans.range((region, 0)..(region, start)).next_back();
        if let Some((&(_, at), _)) = before.filter(|(_, span)| **span == (start, tensor)) {
            self.spans.remove(&(region, at));
            start = at;
        }
        if let Some(&(to, of)) = self.spans.get(&(region, end))
            && of == tensor
        {
            self.spans.remove(&(region, end));
            end = to;
        }
        self.spans.insert((region, start), (end, tensor));
    }

    /// All bytes must be the tensor's own.
    fn read(&self, slot: Slot, bytes: u32, tensor: u32) -> std::result::Result<(), Fault> {
        if slot.region == Slot::STATE && self.state {
            return Ok(());
        }
        if slot.region == Slot::WEIGHTS {
            return Ok(());
        }
        let end = slot.offset.saturating_add(bytes);
        let mut at = slot.offset;
        while at < end {
            match self.overlapping(slot.region, at, end) {
                Some((from, (to, of))) if from <= at => {
                    if of != tensor || tensor == NO_TENSOR {
                        return Err(Fault { at, tensor: of });
                    }
                    at = to;
                }
                _ => return Err(Fault { at, tensor: NO_TENSOR }),
            }
        }
        Ok(())
    }

    /// The first span of a region that meets these bytes.
    fn overlapping(&self, region: u8, start: u32, end: u32) -> Option<(u32, (u32, u32))> {
        let before = self.spans.range((region, 0)..=(region, start)).next_back();
        let before = before.filter(|(_, span)| span.0 > start);
        let found = before.or_else(|| self.spans.range((region, start)..(region, end)).next());
        found.map(|(&(_, at), &span)| (at, span))
    }

    /// One past the highest byte in use, summed over the regions.
    fn touched(&self) -> u64 {
        let mut ends = [0; 1 << u8::BITS];
        for (&(region, _), &(end, _)) in &self.spans {
            ends[usize::from(region)] = u64::from(end);
        }
        ends.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(offset: u32) -> Slot {
        Slot { region: 0, offset }
    }

    #[test]
    fn a_read_finds_the_bytes_of_its_tensor_or_names_the_culprit() {
        let mut writers = Writers::default();
        writers.write(slot(0), 100, 1);
        assert_eq!(writers.read(slot(20), 80, 1), Ok(()));
        writers.write(slot(50), 100, 2);
        assert_eq!(writers.read(slot(0), 50, 1), Ok(()));
        assert_eq!(writers.read(slot(0), 51, 1), Err(Fault { at: 50, tensor: 2 }));
        assert_eq!(
            writers.read(slot(50), 101, 2),
            Err(Fault {
                at: 150,
                tensor: NO_TENSOR
            })
        );
        writers.write(slot(10), 10, NO_TENSOR);
        assert_eq!(
            writers.read(slot(0), 50, 1),
            Err(Fault {
                at: 10,
                tensor: NO_TENSOR
            })
        );
    }

    #[test]
    fn pieces_of_one_tensor_are_one_tensor() {
        let mut writers = Writers::default();
        writers.write(slot(0), 10, 1);
        writers.write(slot(10), 10, 1);
        assert_eq!(writers.read(slot(0), 20, 1), Ok(()));
        assert_eq!(
            writers.read(slot(0), 21, 1),
            Err(Fault {
                at: 20,
                tensor: NO_TENSOR
            })
        );
    }
}
