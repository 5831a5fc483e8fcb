//! Which channels the network's outputs depend on.

use super::flow::{Channel, channels, flow};
use super::products::{Products, Reach};
use super::ranges::Ranges;
use crate::graph::{Graph, TensorId};
use crate::passes::prune::mentioned;

/// Use of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// An output depends on what it holds.
    Live,
    /// None does; it stays all the same, for a tensor keeps a channel at least, and kernels take whole blocks.
    Filler,
    /// It goes.
    Dead,
}

/// The channels of a network, in classes that stand and fall together.
pub(super) struct Classes {
    /// By tensor: where its channels begin, and how many there are.
    tensors: Vec<(usize, usize)>,
    /// By channel: another one of its class, or itself.
    parent: Vec<usize>,
    /// By the class's last parent.
    uses: Vec<Use>,
}

impl Classes {
    /// All channels of `graph`. Where some of a layer's go, so many stay that their number is a multiple of `block`.
    pub(super) fn of(graph: &Graph, ranges: &Ranges, block: usize) -> Self {
        let mut classes = Self {
            tensors: Vec::new(),
            parent: Vec::new(),
            uses: Vec::new(),
        };
        let mentioned = mentioned(graph);
        for (id, &mentioned) in mentioned.iter().enumerate() {
            // A tensor that no operator reads or writes any more has no channels to lose.
            let followed = channels(graph, TensorId(id)).filter(|_| mentioned);
            let count = followed.unwrap_or(0);
            let first = classes.parent.len();
            classes.tensors.push((first, count));
            classes.parent.extend(first..first + count);
        }
        classes.uses = vec![Use::Dead; classes.parent.len()];

        let mut layers: Vec<Option<Products>> = vec![None; graph.tensors.len()];
        let mut wanted: Vec<Channel> = Vec::new();
        let all = |classes: &Self, id: TensorId| (0..classes.tensors[id.0].1).map(move |c| (id, c));
        for &id in graph.inputs.iter().chain(&graph.outputs) {
            wanted.extend(all(&classes, id));
        }
        for node in &graph.nodes {
            let operands = || node.inputs.iter().flatten().copied();
            if let Some(layer) = Products::of(graph, node) {
                // Its constants are its own, whoever else reads them.
                for id in operands().filter(|&id| id != layer.x) {
                    wanted.extend(all(&classes, id));
                }
                if layer.depthwise.is_some() {
                    (0..layer.outputs()).for_each(|o| classes.join((layer.x, layer.input(o, 0)), (layer.y, o)));
                } else {
                    let y = layer.y.0;
                    layers[y] = Some(layer);
                }
            } else if let Some(flow) = flow(graph, node) {
                flow.pairs.iter().for_each(|&(from, to)| classes.join(from, to));
                wanted.extend(flow.shared);
            } else {
                for id in operands().chain(node.outputs.iter().copied()) {
                    wanted.extend(all(&classes, id));
                }
            }
        }
        classes.mark(wanted, &layers, ranges);
        classes.fill(graph, &layers, block);
        classes
    }

    /// Returns the use of a channel.
    pub(super) fn at(&self, channel: Channel) -> Use {
        self.uses[self.class(channel)]
    }

    /// The channels of a tensor that stay.
    pub(super) fn kept(&self, id: TensorId) -> Vec<usize> {
        let stays = |&c: &usize| self.at((id, c)) != Use::Dead;
        (0..self.tensors[id.0].1).filter(stays).collect()
    }

    /// Whether any go.
    pub(super) fn any_dead(&self) -> bool {
        (0..self.tensors.len()).any(|id| self.loses(TensorId(id)))
    }

    /// Whether channels of this tensor go.
    pub(super) fn loses(&self, id: TensorId) -> bool {
        self.kept(id).len() != self.count(id)
    }

    /// Tensors that there were.
    pub(super) fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// The channels of a tensor, before.
    pub(super) fn count(&self, id: TensorId) -> usize {
        self.tensors[id.0].1
    }

    fn class(&self, (id, channel): Channel) -> usize {
        let mut at = self.tensors[id.0].0 + channel;
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: Channel, b: Channel) {
        let (a, b) = (self.class(a), self.class(b));
        // The later one is the parent: tensors behind have fewer before them to go through.
        self.parent[a.min(b)] = a.max(b);
    }

    /// Marks what is wanted, and all that it depends on.
    fn mark(&mut self, mut wanted: Vec<Channel>, layers: &[Option<Products>], ranges: &Ranges) {
        let mut members: Vec<Vec<Channel>> = vec![Vec::new(); self.parent.len()];
        for id in (0..self.tensors.len()).map(TensorId) {
            if layers[id.0].is_some() {
                (0..self.count(id)).for_each(|c| members[self.class((id, c))].push((id, c)));
            }
        }
        while let Some(channel) = wanted.pop() {
            let class = self.class(channel);
            if std::mem::replace(&mut self.uses[class], Use::Live) == Use::Live {
                continue;
            }
            for (id, output) in std::mem::take(&mut members[class]) {
                let Some(layer) = &layers[id.0] else { continue };
                // One value alone takes no products: the rewriting leaves it its bias.
                if ranges.at((id, output)).constant().is_none() {
                    wanted.extend(reads(layer, output, ranges));
                }
            }
        }
    }

    /// Keeps fillers: one channel of each tensor, and of a layer's result whole blocks.
    fn fill(&mut self, graph: &Graph, layers: &[Option<Products>], block: usize) {
        let upto = |classes: &mut Self, id: TensorId, block: usize| {
            let count = classes.count(id);
            let kept = classes.kept(id).len();
            let mut missing = kept.max(1).next_multiple_of(block).min(count).saturating_sub(kept);
            for c in 0..count {
                let class = classes.class((id, c));
                if missing > 0 && classes.uses[class] == Use::Dead {
                    classes.uses[class] = Use::Filler;
                    // Where several channels of a tensor are of one class, more than one comes back.
                    missing -= 1;
                }
            }
        };
        for node in &graph.nodes {
            for &y in &node.outputs {
                upto(self, y, if layers[y.0].is_some() { block } else { 1 });
            }
        }
    }
}

/// The input channels that an output channel of a layer reads: not those without weights, nor those of one value that its bias can take over.
fn reads(layer: &Products, output: usize, ranges: &Ranges) -> Vec<Channel> {
    let (mut read, mut folded) = (Vec::new(), Vec::new());
    let mut bias = i64::from(layer.bias[output]).abs();
    for c in 0..layer.inputs {
        let channel = (layer.x, layer.input(output, c));
        let taps = layer.taps.iter().enumerate();
        let weights = taps.filter_map(|(tap, &reach)| match layer.weight(output, tap, c) {
            0 => None,
            weight => (reach != Reach::Never).then_some((weight, reach)),
        });
        let value = ranges.at(channel).constant();
        match value.map(|value| i64::from(value - layer.zero_in)) {
            _ if weights.clone().next().is_none() => {}
            Some(0) => {}
            // The padding is the zero point: this value is not there everywhere.
            Some(_) if weights.clone().any(|(_, reach)| reach == Reach::Sometimes) => read.push(channel),
            Some(value) => {
                bias += weights
                    .map(|(weight, _)| (i64::from(weight) * value).abs())
                    .sum::<i64>();
                folded.push(channel);
            }
            None => read.push(channel),
        }
    }
    if bias > i64::from(i32::MAX) {
        read.extend(folded);
    }
    read
}
