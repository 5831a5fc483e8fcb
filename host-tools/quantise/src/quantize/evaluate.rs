//! Runs of a network on samples, with every activation to be seen: by the runtime's own kernels, on several threads, with results that do not depend
//! on how many.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use arenite::{Port, Slot, Target};

use super::activations::Activations;
use crate::error::{Error, Result};
use crate::graph::{Graph, Quant, TensorId};
use crate::model;
use crate::portable::Portable;
use crate::samples::Value;
use crate::weights::Weights;

/// The samples are cut into at most so many parts, whatever the threads: each part has its own statistics.
const PARTS: usize = 8;

/// Samples: of each, its inputs, in f32 where the network has real numbers.
pub(super) type Samples = [Vec<Value>];

/// A network that is run on samples.
pub(super) struct Evaluator {
    portable: Portable,
    /// By step: the activations that are complete behind it.
    complete: Vec<Vec<(TensorId, Slot, u32)>>,
    /// Activations that are an input, or a part of one: its index and the first byte.
    inputs: Vec<(TensorId, usize, usize, usize)>,
    /// Of each input: its elements, and how a sample of f32 is stored for it.
    ports: Vec<Taken>,
    threads: usize,
}

/// The elements of an input, and the integers that it is of, where it is.
type Taken = (usize, Option<(Activations, Quant)>);

/// An activation's value.
pub(super) struct Seen<'a> {
    /// The sample's number.
    pub(super) sample: usize,
    pub(super) tensor: TensorId,
    pub(super) bytes: &'a [u8],
}

impl Evaluator {
    /// The tensors that `wanted` says are seen.
    pub(super) fn new(
        graph: &Graph,
        weights: &Weights,
        threads: usize,
        wanted: impl Fn(TensorId) -> bool,
    ) -> Result<Self> {
        let portable = Portable::of(graph.clone(), weights, Target::X8664)?;
        let program = &portable.program;
        let last: HashMap<TensorId, usize> = program
            .steps
            .iter()
            .enumerate()
            .filter_map(|(step, lowered)| Some((lowered.completes?, step)))
            .collect();
        // Behind which step a tensor is complete; none for what is there from the start.
        let mut behind: HashMap<TensorId, Option<usize>> = graph.inputs.iter().map(|&id| (id, None)).collect();
        for node in &graph.nodes {
            let first = node.inputs.first().copied().flatten();
            for output in &node.outputs {
                let step = last.get(output).map(|&step| Some(step));
                if let Some(step) = step.or_else(|| behind.get(&first?).copied()) {
                    behind.insert(*output, step);
                }
            }
        }
        let mut complete = vec![Vec::new(); program.steps.len()];
        let mut inputs = Vec::new();
        let mut all: Vec<_> = behind.into_iter().filter(|(id, _)| wanted(*id)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        for (id, step) in all {
            let bytes = graph.tensor(id).bytes();
            let (root, offset) = program.root(id);
            match (step, graph.inputs.iter().position(|&input| input == root)) {
                (Some(step), _) => {
                    let slot = portable.placed.slot(program, id, 0)?;
                    complete[step].push((id, slot, bytes as u32));
                }
                (None, Some(input)) => inputs.push((id, input, offset as usize, bytes)),
                (None, None) => {}
            }
        }
        let port = |&id: &TensorId| {
            let tensor = graph.tensor(id);
            let quant = Activations::of(tensor).map(|(activations, quant)| (activations, quant.clone()));
            (tensor.elements(), quant)
        };
        Ok(Self {
            portable,
            complete,
            inputs,
            ports: graph.inputs.iter().map(port).collect(),
            threads,
        })
    }

    /// The network's inputs.
    ///
    /// # Errors
    /// Never in practice.
    pub(super) fn ports(&self) -> Result<Vec<Port<'_>>> {
        Ok(self.portable.file.view()?.inputs)
    }

    /// A sample as the network takes it.
    fn taken(&self, sample: &[Value]) -> Result<Vec<Vec<u8>>> {
        let input = |(value, (elements, quant)): (&Value, &Taken)| {
            let bytes = value.bytes()?;
            Ok(match quant {
                Some((activations, quant)) if bytes.len() == elements * size_of::<f32>() => {
                    activations.stored(floats(&bytes), quant)
                }
                _ => bytes.into_owned(),
            })
        };
        sample.iter().zip(&self.ports).map(input).collect()
    }

    /// Runs all samples, of which a thread has one in memory at a time: each part of them with a value of its own, made by `make`, that sees every
    /// activation. The values come back in the order of the samples; `progress` hears of each part.
    ///
    /// # Errors
    /// Errors of a run or of `see`: of several, that of the first part.
    pub(super) fn each<T: Send>(
        &self,
        samples: &Samples,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, Seen<'_>) -> Result<()> + Sync,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<T>> {
        let model = self.portable.file.load()?;
        let parts: Vec<_> = parts(samples).collect();
        let size = parts.first().map_or(0, |part| part.len());
        let next = AtomicUsize::new(0);
        let part = |index: usize| -> Result<T> {
            let mut value = make();
            for (run, sample) in parts[index].iter().enumerate() {
                let sample_number = index * size + run;
                let taken = self.taken(sample)?;
                let mut failed = None;
                model::run(&model, std::slice::from_ref(&taken), true, &mut |_, step, session| {
                    let at_start = if step == 0 { &self.inputs[..] } else { &[] };
                    let of_inputs = at_start.iter().map(|&(tensor, input, from, len)| {
                        let bytes = taken.get(input).and_then(|all| all.get(from..from + len));
                        (tensor, bytes)
                    });
                    let of_step = self.complete.get(step as usize).into_iter().flatten();
                    let of_step = of_step.map(|&(tensor, slot, len)| (tensor, session.read(slot, len)));
                    for (tensor, bytes) in of_inputs.chain(of_step) {
                        let lost = || Error::internal("an activation lies outside of the arena");
                        let seen = bytes.ok_or_else(lost).and_then(|bytes| {
                            let seen = Seen {
                                sample: sample_number,
                                tensor,
                                bytes,
                            };
                            see(&mut value, seen)
                        });
                        if failed.is_none() {
                            failed = seen.err();
                        }
                    }
                })?;
                if let Some(error) = failed {
                    return Err(error);
                }
            }
            Ok(value)
        };
        if self.threads <= 1 {
            let mut done = 0;
            let mut told = |index: usize| {
                let result = part(index);
                done += parts[index].len();
                progress(done);
                result
            };
            return (0..parts.len()).map(&mut told).collect();
        }
        let mut results: Vec<Option<Result<T>>> = parts.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..self.threads.clamp(1, parts.len().max(1)) {
                let (sender, next, part, count) = (sender.clone(), &next, &part, parts.len());
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count || sender.send((index, part(index))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut done = 0;
            for (index, result) in receiver {
                done += parts[index].len();
                progress(done);
                results[index] = Some(result);
            }
        });
        let missing = || Err(Error::internal("a thread of the calibration is gone"));
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(missing))
            .collect()
    }
}

/// Neighbouring samples, which one thread runs.
pub(super) fn parts(samples: &Samples) -> impl Iterator<Item = &Samples> {
    samples.chunks(samples.len().div_ceil(PARTS).max(1))
}

/// Elements of f32.
pub(super) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word))
}
