//! Layers cut by output channels, for models in pieces whose buffer is smaller than a layer's constants.
//!
//! A layer's node becomes several, each of a range of its output channels, which lowering treats as any other: with kernels and weights of their own. Where a
//! range's outputs do not lie together, for there is more than one pixel, it is computed some pixels at a time into a small tensor of its own, and copied from
//! there to its place. A range's weights serve all pixels while they are in the buffer, so each is still read once a run; only where the output could
//! lie over the input, as with weights that stay, it now cannot.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Range;

use super::back::{self, Source};
use super::options::Progress;
use crate::error::{Error, Result};
use crate::graph::{Data, Graph, Layout, Node, Op, Quant, Tensor, TensorId, TensorKind};
use crate::lower::copies::copy_elements;
use crate::memory::fit::Cuttable;
use crate::program::{LoweredStep, Place, Program, name_of_part};
use crate::weights::Weights;

/// The most output channels that a piece has of each layer that is cut, by the node's name.
pub(super) type Cuts = BTreeMap<String, usize>;

/// The ranges of output channels that are computed by themselves, by the node's name.
pub(super) type Ranges = BTreeMap<String, Vec<Range<usize>>>;

/// The layer of each step that computes a part of one, by their names.
pub(super) type Layers = HashMap<String, String>;

/// Neighbouring channels that kernels take at a time, the most first: ranges of such multiples are computed by the same kernels as the whole.
const BLOCKS: [usize; 5] = [16, 8, 4, 2, 1];

/// A layer that can be cut.
pub(super) struct Layer<'g> {
    node: &'g Node,
    /// Output channels.
    pub(super) channels: usize,
}

impl<'g> Layer<'g> {
    /// The layer of this name: a convolution of one group or a fully connected one, with constant weights and no operand of the output's shape.
    pub(super) fn of(graph: &'g Graph, name: &str) -> Option<Self> {
        let node = graph.nodes.iter().find(|node| node.name == name)?;
        let one = match &node.op {
            Op::Conv2d(attrs) => attrs.groups == 1 && attrs.layout == Layout::Nhwc,
            Op::Linear { .. } => true,
            _ => false,
        };
        let constant = |index: usize| {
            let id = node.inputs.get(index).copied().flatten();
            id.is_none_or(|id| matches!(graph.tensor(id).kind, TensorKind::Const(_)))
        };
        let plain =
            node.inputs.get(1).is_some_and(Option::is_some) && constant(1) && constant(2) && node.inputs.len() <= 3;
        let [y] = node.outputs[..] else { return None };
        let channels = *graph.tensor(y).shape.last()?;
        let weights = graph.tensor(node.inputs.get(1).copied().flatten()?);
        (one && plain && weights.shape.first() == Some(&channels)).then_some(Self { node, channels })
    }

    /// Whether its output is one pixel, whose channels lie together.
    pub(super) fn is_one_pixel(&self, graph: &Graph) -> bool {
        let elements = self.node.outputs.iter().map(|&id| graph.tensor(id).elements());
        elements.eq([self.channels])
    }

    /// Ranges of at most so many channels, as equal as blocks allow.
    fn ranges(&self, most: usize) -> Vec<Range<usize>> {
        let most = most.max(1);
        // A block that costs few more ranges than single channels would.
        let least = self.channels.div_ceil(most);
        let ranges_of = |block: usize| match most / block {
            0 => None,
            blocks => Some(self.channels.div_ceil(blocks * block)),
        };
        let good = |block: &&usize| ranges_of(**block).is_some_and(|count| 8 * count <= 9 * least);
        let block = BLOCKS.iter().find(good).copied().unwrap_or(1);
        let count = ranges_of(block).unwrap_or(self.channels);
        let units = self.channels.div_ceil(block);
        let edge = |n: usize| (n * units / count * block).min(self.channels);
        (0..count).map(|n| edge(n)..edge(n + 1)).collect()
    }
}

/// A part of a layer.
pub(super) struct Part {
    /// The layer's node.
    pub(super) layer: String,
    /// The tensor that it computes, and the layer's.
    outputs: [TensorId; 2],
    /// The first channel.
    pub(super) first: usize,
}

/// The steps of `whole`, which are `graph`'s in the order in which they run, with these layers cut; what is computed aside has at most `aside` bytes where rows
/// can be as short.
///
/// # Errors
/// Errors of lowering and of reading the weights.
pub(super) fn cut(
    (graph, whole): (&Graph, &Program),
    cuts: &Cuts,
    aside: usize,
    source: Source<'_>,
    progress: &mut Progress<'_>,
) -> Result<(Program, Layers)> {
    let ranges = cuts.iter().filter_map(|(name, &most)| {
        let layer = Layer::of(graph, name)?;
        Some((name.clone(), layer.ranges(most)))
    });
    let (graph, parts) = split(graph, &ranges.collect(), source.weights)?;
    // Parts are what their layers are.
    let spend = source.spend.map(|without| {
        let of = parts.iter().filter(|(_, part)| without.contains(&part.layer));
        without
            .iter()
            .cloned()
            .chain(of.map(|(name, _)| name.clone()))
            .collect()
    });
    let source = Source {
        spend: spend.as_ref(),
        ..source
    };
    let mut program = back::lowered(graph, source, progress)?;
    order(&mut program, whole, &parts);
    let steps = std::mem::take(&mut program.steps);
    let mut tiled: HashSet<TensorId> = HashSet::new();
    for step in steps {
        match parts.get(&step.name) {
            Some(part) if !program.views.contains_key(&part.outputs[0]) => {
                tiled.insert(part.outputs[0]);
                let steps = tiles(&mut program.graph, &step, part, aside)?;
                program.steps.extend(steps);
            }
            _ => program.steps.push(step),
        }
    }
    // Results that the tiles copy are not copied once more.
    program.steps.retain(|step| match step.places()[..] {
        [_, Place::Tensor(from, _), ..] => step.kind != "concat" || !tiled.contains(&from),
        _ => true,
    });
    // The last step of a layer completes it.
    for (last, y) in last_writers(&program, &parts) {
        program.steps[last].completes = Some(y);
    }
    let layers = parts.into_iter().map(|(name, part)| (name, part.layer)).collect();
    Ok((program, layers))
}

/// The graph with a node for each range of channels, and a concatenation of them; the parts by their nodes' names.
pub(super) fn split(graph: &Graph, cuts: &Ranges, weights: &Weights) -> Result<(Graph, HashMap<String, Part>)> {
    let (mut made, mut parts) = (graph.clone(), HashMap::new());
    made.nodes.clear();
    for node in &graph.nodes {
        let cut = cuts.get(&node.name).zip(Layer::of(graph, &node.name));
        let Some((ranges, layer)) = cut else {
            made.nodes.push(node.clone());
            continue;
        };
        let y = node.outputs[0];
        let mut outputs = Vec::with_capacity(ranges.len());
        let constants: Vec<Option<Constant>> = node.inputs[1..]
            .iter()
            .map(|id| id.map(|id| Constant::of(graph.tensor(id), weights)).transpose())
            .collect::<Result<_>>()?;
        for (index, range) in ranges.iter().enumerate() {
            let name = name_of_part(&node.name, index, ranges.len());
            let mut output = graph.tensor(y).clone();
            output.name = name_of_part(&output.name, index, ranges.len());
            if let Some(last) = output.shape.last_mut() {
                *last = range.len();
            }
            let output = made.add_tensor(output);
            let mut inputs = vec![node.inputs[0]];
            for constant in &constants {
                let tensor = constant
                    .as_ref()
                    .map(|constant| constant.range(range, layer.channels, index));
                inputs.push(tensor.map(|tensor| made.add_tensor(tensor)));
            }
            if let Some(&bits) = graph.low_bits.get(&node.name) {
                made.low_bits.insert(name.clone(), bits);
            }
            let part = Part {
                layer: node.name.clone(),
                outputs: [output, y],
                first: range.start,
            };
            parts.insert(name.clone(), part);
            made.nodes.push(Node {
                name,
                inputs,
                outputs: vec![output],
                ..layer.node.clone()
            });
            outputs.push(Some(output));
        }
        let axis = graph.tensor(y).shape.len() - 1;
        made.nodes.push(Node {
            op: Op::Concat {
                axis,
                activation: crate::graph::Activation::None,
            },
            inputs: outputs,
            ..node.clone()
        });
    }
    Ok((made, parts))
}

/// A constant of a layer, its values at hand.
struct Constant {
    tensor: Tensor,
    bytes: Vec<u8>,
}

impl Constant {
    fn of(tensor: &Tensor, weights: &Weights) -> Result<Self> {
        let bytes = match &tensor.kind {
            TensorKind::Const(Data::Bytes(bytes)) => bytes.to_vec(),
            TensorKind::Const(Data::Lazy(expr)) => {
                let values = weights.evaluate(expr)?;
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            _ => return Err(Error::internal(format!("`{}` is no constant", tensor.name))),
        };
        let tensor = tensor.clone();
        Ok(Self { tensor, bytes })
    }

    /// Those of a range of the output's channels, along the first axis; a tensor of one element is of all of them.
    fn range(&self, range: &Range<usize>, channels: usize, index: usize) -> Tensor {
        let Self { tensor, bytes } = self;
        let mut part = Tensor {
            name: format!("{} ({index})", tensor.name),
            ..tensor.clone()
        };
        if tensor.shape.first() != Some(&channels) {
            return part;
        }
        let each = bytes.len() / channels;
        let data = bytes[range.start * each..range.end * each].to_vec();
        part.shape[0] = range.len();
        part.kind = TensorKind::Const(Data::Bytes(data.into()));
        part.quant = tensor.quant.as_ref().map(|quant| match quant.axis {
            Some(0) if quant.scale.len() == channels => Quant {
                scale: quant.scale[range.clone()].to_vec(),
                zero_point: quant.zero_point[range.clone()].to_vec(),
                axis: Some(0),
            },
            _ => quant.clone(),
        });
        part
    }
}

/// The order of the whole: a layer's parts stand where it stood.
fn order(program: &mut Program, whole: &Program, parts: &HashMap<String, Part>) {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, step) in whole.steps.iter().enumerate() {
        places.entry(&step.name).or_default().push(at);
    }
    let cut: BTreeSet<&str> = parts.values().map(|part| part.layer.as_str()).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut keyed: Vec<(usize, LoweredStep)> = Vec::with_capacity(program.steps.len());
    for step in std::mem::take(&mut program.steps) {
        let of = parts
            .get(&step.name)
            .map_or(step.name.as_str(), |part| part.layer.as_str());
        let all = places.get(of).map_or(&[][..], Vec::as_slice);
        let nth = seen.entry(of.to_owned()).or_default();
        // Steps of a node that is not cut are the same ones.
        let index = if cut.contains(of) { 0 } else { *nth };
        *nth += 1;
        keyed.push((all.get(index).or(all.last()).copied().unwrap_or(usize::MAX), step));
    }
    keyed.sort_by_key(|(at, _)| *at);
    program.steps = keyed.into_iter().map(|(_, step)| step).collect();
}

/// Returns the steps that compute a part of a layer, some pixels at a time, and copy them into the layer's output.
fn tiles(graph: &mut Graph, step: &LoweredStep, part: &Part, aside: usize) -> Result<Vec<LoweredStep>> {
    let [own, y] = part.outputs;
    let (tensor, element) = (graph.tensor(own).clone(), graph.tensor(own).dtype.bytes());
    let (channels, all) = match (tensor.shape.last(), graph.tensor(y).shape.last()) {
        (Some(&channels), Some(&all)) => (channels, all),
        _ => return Err(Error::internal(format!("`{}` has no channels", tensor.name))),
    };
    let pixels = tensor.elements() / channels.max(1);
    let made = Cuttable::of(step).and_then(|cut| {
        let tiles = cut.tiles_of(aside / (channels * element));
        let steps: Option<Vec<_>> = tiles
            .iter()
            .map(|tile| Some((cut.pixels(tile), cut.part(tile)?)))
            .collect();
        steps
    });
    // A kernel that computes the whole alone.
    let made = made.unwrap_or_else(|| vec![(0..pixels, step.clone())]);
    let most = made.iter().map(|(pixels, _)| pixels.len()).max().unwrap_or(0);
    let small = Tensor {
        name: format!("{} (aside)", tensor.name),
        shape: vec![1, 1, most, channels],
        ..tensor
    };
    let small = graph.add_tensor(small);
    let mut steps = Vec::with_capacity(2 * made.len());
    for (pixels, tile) in made {
        let Ok(computed) = tile.step.map(&mut |place| {
            Ok::<_, Infallible>(match place {
                Place::Tensor(id, _) if id == own => Place::Tensor(small, 0),
                other => other,
            })
        });
        let too_large = || Error::unsupported(format!("an output of more than 4 GiB, `{}`", step.name));
        let to = (pixels.start * all + part.first) * element;
        let places = [
            Place::Tensor(y, u32::try_from(to).map_err(|_| too_large())?),
            Place::Tensor(small, 0),
        ];
        let (count, axes) = (pixels.len(), [(pixels.len(), all, channels), (channels, 1, 1)]);
        let copied = copy_elements(places, element, 0, count * channels, &axes).ok_or_else(too_large)?;
        steps.push(LoweredStep {
            step: computed,
            completes: None,
            ..tile
        });
        steps.push(LoweredStep {
            name: step.name.clone(),
            kind: "store_tile",
            step: copied,
            macs: 0,
            completes: None,
            page: step.page,
            handed: false,
            own: None,
        });
    }
    Ok(steps)
}

/// The last step that writes each layer's output, which is complete then.
fn last_writers(program: &Program, parts: &HashMap<String, Part>) -> BTreeMap<usize, TensorId> {
    let mut last: BTreeMap<TensorId, usize> = BTreeMap::new();
    for (at, step) in program.steps.iter().enumerate() {
        if let Some(part) = parts.get(&step.name) {
            last.insert(part.outputs[1], at);
        }
    }
    last.into_iter().map(|(y, at)| (at, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Origin, Role};

    #[test]
    fn ranges_are_of_whole_blocks_where_that_costs_little() {
        let node = Node {
            name: "layer".to_owned(),
            kind: "Linear".to_owned(),
            op: Op::Reshape,
            inputs: Vec::new(),
            outputs: Vec::new(),
            role: Role::Forward,
            origin: Origin::default(),
        };
        let ranges = |channels, most| {
            let layer = Layer { node: &node, channels };
            let ranges = layer.ranges(most);
            assert!(
                ranges.iter().all(|range| !range.is_empty() && range.len() <= most),
                "{ranges:?}"
            );
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, channels));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            ranges.len()
        };
        assert_eq!(ranges(512, 171), 3); // blocks of 2 would take a fourth
        assert_eq!(ranges(512, 13), 43); // 12
        assert_eq!(ranges(10, 3), 4);
        assert_eq!(ranges(10, 1), 10);
        assert_eq!(ranges(1000, 31), 36); // 28
        for channels in 1..70 {
            for most in 1..channels {
                ranges(channels, most);
            }
        }
    }
}
