//! Activations that are computed again: the backward half of a training step makes those that it wants from a few that were kept, instead of keeping all.
//!
//! The forward half is cut into segments. Tensors across a cut are kept; the rest of a segment is made anew before the first gradient that reads some of it
//! (Chen, Xu, Zhang, Guestrin 2016, arXiv:1604.06174). Everything is computed as before, from the same operands, so that no bit changes: the parameters of a
//! segment are updated behind its gradients. The part behind the last cut is kept whole.

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

/// Savings of a training step's graph, each with more operations and fewer bytes than the one before. `live` is the most bytes that are alive at once in a
/// graph.
pub(super) fn savings(graph: &Graph, live: &dyn Fn(&Graph) -> u64) -> Vec<Saving> {
    let candidates = Forward::of(graph).candidates().into_iter();
    let mut found: Vec<Saving> = candidates
        .map(|cuts| {
            let (made, extra_macs) = rewritten(graph, &cuts);
            Saving {
                extra_macs,
                live_bytes: live(&made),
                cuts,
            }
        })
        .collect();
    found.sort_by_key(|saving| (saving.extra_macs, saving.live_bytes));
    let mut least = live(graph);
    found.retain(|saving| {
        let is_less = saving.live_bytes < least;
        least = least.min(saving.live_bytes);
        is_less
    });
    found
}

/// The graph of a training step with a saving.
pub(super) fn with(graph: &Graph, saving: &Saving) -> Graph {
    rewritten(graph, &saving.cuts).0
}

/// The step where the segments in front of the last cut are computed again, and the multiply-accumulates that are done twice.
fn rewritten(graph: &Graph, cuts: &[usize]) -> (Graph, u64) {
    let half = Forward::of(graph);
    let mut made = graph.clone();
    made.nodes.clear();
    let mut copies: HashMap<TensorId, TensorId> = HashMap::new();
    let (mut done, mut macs) = (vec![false; cuts.len()], 0);
    for (index, node) in graph.nodes.iter().enumerate() {
        let reads = node.inputs.iter().flatten();
        let segments: BTreeSet<usize> = reads.filter_map(|id| half.lost(id, cuts)).collect();
        for at in segments.into_iter().filter(|_| index >= half.nodes) {
            if std::mem::replace(&mut done[at], true) {
                continue;
            }
            for index in half.chain(at, cuts) {
                macs += facts::macs(graph, index);
                let mut copy = graph.nodes[index].clone();
                copy.name += " again";
                renamed(&mut copy.inputs, &copies);
                for id in &mut copy.outputs {
                    let tensor = graph.tensor(*id);
                    let new = made.add_tensor(Tensor {
                        name: format!("{} again", tensor.name),
                        ..tensor.clone()
                    });
                    copies.insert(*id, new);
                    *id = new;
                }
                made.nodes.push(copy);
            }
        }
        let mut node = node.clone();
        renamed(&mut node.inputs, &copies);
        made.nodes.push(node);
    }
    (made, macs)
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

    /// The segment of a tensor that is not kept.
    fn lost(&self, id: &TensorId, cuts: &[usize]) -> Option<usize> {
        let writer = *self.writer.get(id)?;
        let segment = cuts.partition_point(|&cut| cut <= writer);
        let &cut = cuts.get(segment)?;
        let all_end_here = self.graph.nodes[writer].outputs.iter().all(|id| {
            let last = self.last_reader.get(id).copied().unwrap_or(writer);
            self.bytes(*id) > 0 && last < cut
        });
        (self.repeats[writer] && all_end_here).then_some(segment)
    }

    /// The nodes of a segment that what is wanted of it takes.
    fn chain(&self, segment: usize, cuts: &[usize]) -> Vec<usize> {
        let begin = segment.checked_sub(1).map_or(0, |before| cuts[before]);
        let lost = |id: &&TensorId| self.lost(id, cuts).is_some();
        let mut wanted: HashSet<TensorId> = self.wanted.iter().filter(lost).copied().collect();
        let mut chain = Vec::new();
        for index in (begin..cuts[segment]).rev() {
            let node = &self.graph.nodes[index];
            if node.outputs.iter().any(|id| wanted.contains(id)) {
                chain.push(index);
                wanted.extend(node.inputs.iter().flatten().filter(lost));
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
