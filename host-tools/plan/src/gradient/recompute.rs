//! Activations that are computed again: the backward half of a training step makes those that it wants from a few that were kept, instead of keeping all.
//!
//! The forward half is cut into segments. What crosses a cut is kept; the rest of a segment is made anew in front of the first gradient that reads some of it
//! (Chen, Xu, Zhang, Guestrin 2016, arXiv:1604.06174). Everything is computed as before, from the same operands, so that no bit changes: the parameters of a
//! segment are updated behind its gradients. What lies behind the last cut is kept whole.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::graph::train::Train;
use crate::graph::{Graph, Node, Op, Tensor, TensorId, TensorKind, facts};

/// A way to spend operations on memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saving {
    /// Multiply-accumulates that are done twice.
    pub extra_macs: u64,
    /// The most bytes that are alive at once, in the order of the graph.
    pub live_bytes: u64,
    /// The first node of each segment but the first, and the first node that is kept.
    cuts: Vec<usize>,
}

/// Limits of a segment's bytes that are tried, and ends of what is computed again.
const LIMITS: usize = 12;
const ENDS: usize = 24;

/// Savings of a training step's graph, each with more operations and fewer bytes than the one before.
pub(super) fn savings(graph: &Graph) -> Vec<Saving> {
    let half = Forward::of(graph);
    let plain = live_bytes(&graph.nodes, graph, &[]);
    let mut found: Vec<Saving> = Vec::new();
    for cuts in half.candidates() {
        let (mut bytes, mut again) = (Vec::new(), BTreeSet::new());
        let mut copied = |id: TensorId| {
            bytes.push(graph.tensor(id).bytes() as u64);
            TensorId(graph.tensors.len() + bytes.len() - 1)
        };
        let nodes = half.rewritten(&cuts, &mut copied, &mut |index| _ = again.insert(index));
        let saving = Saving {
            extra_macs: again.into_iter().map(|index| facts::macs(graph, index)).sum(),
            live_bytes: live_bytes(&nodes, graph, &bytes),
            cuts,
        };
        found.push(saving);
    }
    found.sort_by_key(|saving| (saving.extra_macs, saving.live_bytes));
    let mut least = plain;
    found.retain(|saving| {
        let is_less = saving.live_bytes < least;
        least = least.min(saving.live_bytes);
        is_less
    });
    found
}

/// The graph of a training step with a saving.
pub(super) fn with(graph: &Graph, saving: &Saving) -> Graph {
    let mut made = graph.clone();
    let mut copied = |id: TensorId| {
        let tensor = graph.tensor(id);
        made.add_tensor(Tensor {
            name: format!("{} again", tensor.name),
            ..tensor.clone()
        })
    };
    let nodes = Forward::of(graph).rewritten(&saving.cuts, &mut copied, &mut |_| ());
    made.nodes = nodes;
    made
}

/// The forward half of a training step: the nodes in front of the loss.
struct Forward<'g> {
    graph: &'g Graph,
    nodes: usize,
    /// The node of it that writes a tensor.
    writer: HashMap<TensorId, usize>,
    /// The last node of it that reads a tensor, the loss among them.
    last_reader: HashMap<TensorId, usize>,
    /// Activations that a node behind it reads.
    wanted: HashSet<TensorId>,
    /// Whether a node gives the same again.
    repeats: Vec<bool>,
}

impl<'g> Forward<'g> {
    fn of(graph: &'g Graph) -> Self {
        let is_loss = |node: &Node| {
            matches!(
                node.op,
                Op::Train(Train::SoftmaxCrossEntropy | Train::SquaredError { .. })
            )
        };
        let nodes = graph.nodes.iter().position(is_loss).unwrap_or(0);
        let (mut writer, mut last_reader) = (HashMap::new(), HashMap::new());
        let mut readers: HashMap<TensorId, usize> = HashMap::new();
        for (index, node) in graph.nodes.iter().enumerate().take(nodes + 1) {
            for &id in node.inputs.iter().flatten() {
                last_reader.insert(id, index);
                *readers.entry(id).or_default() += 1;
            }
            writer.extend(node.outputs.iter().filter(|_| index < nodes).map(|&id| (id, index)));
        }
        let behind = graph.nodes.iter().skip(nodes + 1);
        let wanted = behind.flat_map(|node| node.inputs.iter().flatten().copied());
        let wanted = wanted.filter(|id| writer.contains_key(id)).collect();
        // The state is as it was, where no other layer's update comes in between and nothing in front of the loss writes it.
        let is_state = |id: TensorId| matches!(graph.tensor(id).kind, TensorKind::State(_));
        let repeats = |node: &Node| {
            let reads = node.inputs.iter().flatten();
            !matches!(node.op, Op::Train(Train::BatchStatistics { .. }))
                && node.outputs.iter().all(|&id| !is_state(id))
                && reads
                    .filter(|&&id| is_state(id))
                    .all(|id| readers.get(id) == Some(&1) && !writer.contains_key(id))
        };
        let repeats = graph.nodes.iter().take(nodes).map(repeats).collect();
        Self {
            graph,
            nodes,
            writer,
            last_reader,
            wanted,
            repeats,
        }
    }

    /// Bytes that a tensor takes of the arena.
    fn bytes(&self, id: TensorId) -> u64 {
        let tensor = self.graph.tensor(id);
        match tensor.kind {
            TensorKind::Activation => tensor.bytes() as u64,
            _ => 0,
        }
    }

    /// Sets of cuts, each with few bytes across its cuts for a limit of a segment's own.
    fn candidates(&self) -> BTreeSet<Vec<usize>> {
        let mut own = vec![0; self.nodes + 1];
        let mut across = vec![0; self.nodes + 1];
        for (&id, &writer) in &self.writer {
            let bytes = self.bytes(id);
            if self.wanted.contains(&id) {
                own[writer + 1] += bytes;
            }
            let last = self.last_reader.get(&id).copied().unwrap_or(writer);
            let cuts = across.iter_mut().take(last + 1).skip(writer + 1);
            cuts.for_each(|across| *across += bytes);
        }
        let largest = own.iter().copied().max().unwrap_or(0);
        for index in 1..own.len() {
            own[index] += own[index - 1];
        }
        let all = own[self.nodes];
        let mut found = BTreeSet::new();
        for number in 0..LIMITS {
            let share = (number as f64 + 1.0) / LIMITS as f64;
            // Even in the logarithm, from the largest node's to all.
            let limit = largest as f64 * (all as f64 / largest.max(1) as f64).powf(share);
            let cut = self.cut(&own, &across, limit as u64);
            for end in 1..=ENDS {
                let end = self.nodes * end / ENDS;
                // The cheapest place for an end nearby.
                let nearby = (end.saturating_sub(self.nodes / ENDS).max(1)..=end).min_by_key(|&end| across[end]);
                let Some(mut at) = nearby else { continue };
                let mut cuts = Vec::new();
                while at > 0 {
                    cuts.push(at);
                    at = cut[at];
                }
                cuts.reverse();
                found.insert(cuts);
            }
        }
        found.remove(&Vec::new());
        found
    }

    /// Of each node the cut before it, where segments end in front of that node: the sum of the bytes across all cuts is the least, for segments of at most
    /// `limit` bytes or one node.
    fn cut(&self, own: &[u64], across: &[u64], limit: u64) -> Vec<usize> {
        let (mut least, mut before) = (vec![u64::MAX; self.nodes + 1], vec![0; self.nodes + 1]);
        least[0] = 0;
        for end in 1..=self.nodes {
            for begin in (0..end).rev() {
                if own[end] - own[begin] > limit && begin + 1 < end {
                    break;
                }
                let sum = least[begin].saturating_add(across[end]);
                if sum < least[end] {
                    (least[end], before[end]) = (sum, begin);
                }
            }
        }
        before
    }

    /// The nodes of the step where the segments in front of the last cut are computed again. `copied` makes a tensor like another one; `again` hears of each
    /// node that is computed twice.
    fn rewritten(
        &self,
        cuts: &[usize],
        copied: &mut dyn FnMut(TensorId) -> TensorId,
        again: &mut dyn FnMut(usize),
    ) -> Vec<Node> {
        let segment = |node: usize| cuts.partition_point(|&cut| cut <= node);
        let lost = |id: &TensorId| {
            let writer = *self.writer.get(id)?;
            let at = segment(writer);
            let all_end_here = self.graph.nodes[writer].outputs.iter().all(|id| {
                let last = self.last_reader.get(id).copied().unwrap_or(writer);
                self.bytes(*id) > 0 && cuts.get(at).is_some_and(|&cut| last < cut)
            });
            (at < cuts.len() && self.repeats[writer] && all_end_here).then_some(at)
        };
        let mut made: HashMap<TensorId, TensorId> = HashMap::new();
        let mut done = vec![false; cuts.len()];
        let mut nodes = Vec::with_capacity(self.graph.nodes.len());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if index < self.nodes {
                nodes.push(node.clone());
                continue;
            }
            let segments: BTreeSet<usize> = node.inputs.iter().flatten().filter_map(lost).collect();
            for at in segments {
                if std::mem::replace(&mut done[at], true) {
                    continue;
                }
                let begin = at.checked_sub(1).map_or(0, |before| cuts[before]);
                for index in self.chain(begin..cuts[at], &|id| lost(id).is_some()) {
                    again(index);
                    let mut copy = self.graph.nodes[index].clone();
                    copy.name += " again";
                    renamed(&mut copy.inputs, &made);
                    for id in &mut copy.outputs {
                        let new = copied(*id);
                        made.insert(*id, new);
                        *id = new;
                    }
                    nodes.push(copy);
                }
            }
            let mut node = node.clone();
            renamed(&mut node.inputs, &made);
            nodes.push(node);
        }
        nodes
    }

    /// The nodes of a segment that what is wanted of it takes, of tensors that are lost.
    fn chain(&self, segment: std::ops::Range<usize>, lost: &dyn Fn(&TensorId) -> bool) -> Vec<usize> {
        let mut wanted: HashSet<TensorId> = self.wanted.iter().filter(|id| lost(id)).copied().collect();
        let mut chain = Vec::new();
        for index in segment.rev() {
            let node = &self.graph.nodes[index];
            if node.outputs.iter().any(|id| wanted.contains(id)) {
                chain.push(index);
                wanted.extend(node.inputs.iter().flatten().filter(|id| lost(id)));
            }
        }
        chain.reverse();
        chain
    }
}

fn renamed(operands: &mut [Option<TensorId>], made: &HashMap<TensorId, TensorId>) {
    for id in operands.iter_mut().flatten() {
        *id = made.get(id).copied().unwrap_or(*id);
    }
}

/// The most bytes of inputs and activations that are alive at a node; `further` are those of tensors behind the graph's.
fn live_bytes(nodes: &[Node], graph: &Graph, further: &[u64]) -> u64 {
    let bytes = |id: TensorId| match graph.tensors.get(id.0) {
        Some(tensor) => match tensor.kind {
            TensorKind::Activation | TensorKind::Input => tensor.bytes() as u64,
            _ => 0,
        },
        None => further[id.0 - graph.tensors.len()],
    };
    let mut last: HashMap<TensorId, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let operands = node.inputs.iter().flatten().chain(&node.outputs);
        operands.for_each(|&id| _ = last.insert(id, index));
    }
    graph.outputs.iter().for_each(|&id| _ = last.insert(id, nodes.len()));
    let mut ends = vec![0; nodes.len() + 1];
    last.iter().for_each(|(&id, &index)| ends[index] += bytes(id));
    let mut live: u64 = graph.inputs.iter().map(|&id| bytes(id)).sum();
    let mut most = live;
    for (index, node) in nodes.iter().enumerate() {
        live += node.outputs.iter().map(|&id| bytes(id)).sum::<u64>();
        most = most.max(live);
        live -= ends[index];
    }
    most
}
