//! Which operator reads which: from name scopes, control edges, and shapes.
//!
//! A convolution's source is named by the control edges of its gradient's constant shapes; a bias and a ReLU read the operator of
//! their scope. The rest (pooling, LRN, and everything in a trace without gradients) is matched by shape: every result
//! but the network's output is read, so that the operators without a known source and the results without a known reader pair up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::rows::{Kernel, Node, Trace, at};
use crate::assume::Assumptions;
use crate::error::{Error, ErrorKind, Result};

/// Axis order of a node's activations.
pub(super) use crate::graph::Layout;

/// The network's structure.
pub(super) struct Edges<'a> {
    /// Index of the source of each forward node: an operator, or the network's input.
    pub(super) sources: Vec<Source>,
    /// Weights or bias of each forward node.
    pub(super) parameters: Vec<Option<&'a str>>,
    pub(super) layouts: Vec<Layout>,
    /// Forward nodes, sources first.
    pub(super) order: Vec<usize>,
    /// Name and shape of the network's input.
    pub(super) input: (&'a str, Vec<usize>),
    pub(super) output: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    Input,
    Node(usize),
}

/// Steps of the search over pairings.
const BUDGET: usize = 200_000;

pub(super) fn find<'a>(trace: &Trace<'a>, assumptions: &mut Assumptions<'_>) -> Result<Edges<'a>> {
    let nodes = &trace.forward;
    let by_name: HashMap<&str, usize> = nodes.iter().enumerate().map(|(i, n)| (n.name, i)).collect();
    let parameters = parameters(trace)?;
    let control = control_edges(trace, &parameters);
    let weights: BTreeSet<&str> = parameters.iter().flatten().copied().collect();
    let mut sources: Vec<Option<Source>> = vec![None; nodes.len()];
    let mut inputs: BTreeSet<&str> = BTreeSet::new();
    for (index, node) in nodes.iter().enumerate() {
        let key = format!("{}.input", node.name);
        if let Some(name) = assumptions.given::<String>(&key, node.name)? {
            let given = by_name.get(name.as_str()).map(|&i| Source::Node(i));
            let is_input = trace.sources.get_key_value(name.as_str());
            inputs.extend(is_input.map(|(name, _)| *name));
            sources[index] = given.or(is_input.map(|_| Source::Input));
            if sources[index].is_none() {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--assume {key}={name}: no such node"),
                ));
            }
        } else if let Some(name) = control.get(node.name) {
            sources[index] = match (by_name.get(name), trace.sources.get_key_value(name)) {
                (Some(&source), _) => Some(Source::Node(source)),
                (None, Some((name, _))) if !weights.contains(name) => {
                    inputs.insert(*name);
                    Some(Source::Input)
                }
                _ => {
                    return Err(at(
                        node.line,
                        format!("`{}` reads `{name}`, which has no row", node.name),
                    ));
                }
            };
        } else {
            sources[index] = scope_source(nodes, node)?.map(Source::Node);
        }
    }
    if inputs.is_empty() {
        // Without gradients no control edge names the input: it is the only source that is no parameter.
        let free = trace
            .sources
            .keys()
            .filter(|name| !weights.contains(*name) && trace.sources[*name].0.len() == 4);
        inputs.extend(free);
    }
    let mut inputs = inputs.into_iter();
    let (Some(input), None) = (inputs.next(), inputs.next()) else {
        return Err(Error::input("the network's input is not one variable or placeholder")
            .expected("a row without inputs that the first convolution reads"));
    };
    let input = (input, trace.sources[input].0.clone());
    let sources = pair_up(nodes, sources, &input, assumptions)?;
    let order = topological(nodes, &sources)?;
    let read: BTreeSet<Source> = sources.iter().copied().collect();
    let mut unread = (0..nodes.len()).filter(|&i| !read.contains(&Source::Node(i)));
    let (Some(output), None) = (unread.next(), unread.next()) else {
        let names: Vec<_> = (0..nodes.len())
            .filter(|&i| !read.contains(&Source::Node(i)))
            .map(|i| nodes[i].name)
            .collect();
        return Err(Error::input(format!(
            "{} results that nobody reads: {}",
            names.len(),
            names.join(", ")
        ))
        .expected("one, the network's output"));
    };
    let layouts = layouts(trace, &sources, &order, &input.1)?;
    Ok(Edges {
        sources,
        parameters,
        layouts,
        order,
        input,
        output,
    })
}

/// The variable that a convolution or a bias reads: of its scope and its shape.
fn parameters<'a>(trace: &Trace<'a>) -> Result<Vec<Option<&'a str>>> {
    let mut used = BTreeSet::new();
    let mut parameters = Vec::new();
    for node in &trace.forward {
        let Some(wanted) = &node.parameter else {
            parameters.push(None);
            continue;
        };
        let vector = |shape: &[usize]| shape == wanted || (wanted.len() == 1 && shape == [wanted[0], 1]);
        let scope = node.name.rsplit_once('/').map_or("", |(scope, _)| scope);
        let of_shape = trace
            .sources
            .iter()
            .filter(|(name, (shape, _))| vector(shape) && !used.contains(*name));
        let in_scope = |name: &str| {
            name.strip_prefix(scope)
                .is_some_and(|rest| scope.is_empty() || rest.starts_with('/'))
        };
        let found: Vec<&str> = of_shape.map(|(name, _)| *name).filter(|name| in_scope(name)).collect();
        match found.as_slice() {
            [only] => {
                used.insert(*only);
                parameters.push(Some(*only));
            }
            _ => {
                return Err(at(
                    node.line,
                    format!(
                        "{} variables of scope `{scope}` have shape {wanted:?}, which `{}` reads",
                        found.len(),
                        node.name
                    ),
                )
                .expected("one"));
            }
        }
    }
    Ok(parameters)
}

/// Convolution -> the name of its data source, from the control edges of the constant shapes in its gradient.
fn control_edges<'a>(trace: &Trace<'a>, parameters: &[Option<&'a str>]) -> HashMap<&'a str, &'a str> {
    let mut gradients: HashMap<String, (usize, &'a str)> = HashMap::new();
    for (index, node) in trace.forward.iter().enumerate() {
        gradients.insert(format!("gradients/{}_grad", node.name), (index, node.name));
    }
    let mut found = HashMap::new();
    for (row, _) in trace.outside.iter().filter(|(row, _)| !row.control.is_empty()) {
        let name = row.name.strip_prefix("ConstantFolding/").unwrap_or(row.name);
        let Some((index, node)) = name.rsplit_once('/').and_then(|(gradient, _)| gradients.get(gradient)) else {
            continue;
        };
        let own = parameters.get(*index).copied().flatten();
        let sources = row
            .control
            .iter()
            .map(|name| name.strip_suffix("/read").unwrap_or(name));
        for source in sources.filter(|name| Some(*name) != own) {
            found.insert(*node, source);
        }
    }
    found
}

/// A bias reads the convolution of its scope; a ReLU named after its scope reads the last operator in it.
fn scope_source(nodes: &[Node<'_>], node: &Node<'_>) -> Result<Option<usize>> {
    let scope = match node.op {
        Kernel::BiasAdd => node.name.rsplit_once('/').map_or("", |(scope, _)| scope),
        Kernel::Relu => node.name.strip_suffix("/Relu").unwrap_or(node.name),
        _ => return Ok(None),
    };
    let of_kind = |op: Kernel| {
        let inside = move |name: &str| {
            name.strip_prefix(scope)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| !rest.contains('/'))
        };
        let found = nodes
            .iter()
            .enumerate()
            .filter(move |(_, n)| n.op == op && inside(n.name) && n.output == node.input);
        found.map(|(i, _)| i).collect::<Vec<_>>()
    };
    let order: &[Kernel] = match node.op {
        Kernel::BiasAdd => &[Kernel::Conv2d],
        _ => &[Kernel::BiasAdd, Kernel::Conv2d],
    };
    for &op in order {
        match of_kind(op).as_slice() {
            [] => {}
            [only] => return Ok(Some(*only)),
            several => {
                let names: Vec<_> = several.iter().map(|&i| nodes[i].name).collect();
                return Err(at(
                    node.line,
                    format!("`{}` may read any of {}", node.name, names.join(", ")),
                ));
            }
        }
    }
    Ok(None)
}

/// Gives every operator without a source one of the results without a reader, by shape.
fn pair_up(
    nodes: &[Node<'_>],
    mut sources: Vec<Option<Source>>,
    input: &(&str, Vec<usize>),
    assumptions: &mut Assumptions<'_>,
) -> Result<Vec<Source>> {
    let unknown: Vec<usize> = (0..nodes.len()).filter(|&i| sources[i].is_none()).collect();
    let taken: BTreeSet<Source> = sources.iter().flatten().copied().collect();
    let free: Vec<Source> = std::iter::once(Source::Input)
        .chain((0..nodes.len()).map(Source::Node))
        .filter(|source| !taken.contains(source))
        .collect();
    let shape = |source: Source| match source {
        Source::Input => &input.1,
        Source::Node(i) => &nodes[i].output,
    };
    let name = |source: Source| match source {
        Source::Input => input.0,
        Source::Node(i) => nodes[i].name,
    };
    let candidates: Vec<Vec<Source>> = (unknown.iter())
        .map(|&u| {
            let fits = free
                .iter()
                .filter(|&&s| s != Source::Node(u) && same_up_to_layout(shape(s), &nodes[u].input));
            fits.copied().collect()
        })
        .collect();
    // Depth-first over the unknown nodes, with an explicit stack of choices; two solutions are enough to know.
    let mut solutions: Vec<Vec<Source>> = Vec::new();
    let mut choice: Vec<usize> = vec![0];
    let mut used: BTreeSet<Source> = BTreeSet::new();
    let mut steps = 0;
    while let Some(depth) = choice.len().checked_sub(1) {
        steps += 1;
        if steps > BUDGET || solutions.len() > 8 {
            break;
        }
        let Some(&node) = unknown.get(depth) else {
            solutions.push(choice.iter().zip(&candidates).map(|(&c, all)| all[c - 1]).collect());
            choice.pop();
            if let (Some(&c), Some(&last)) = (choice.last(), unknown.get(choice.len().wrapping_sub(1))) {
                used.remove(&candidates[choice.len() - 1][c - 1]);
                sources[last] = None;
            }
            continue;
        };
        let next = candidates[depth].get(choice[depth]).copied();
        choice[depth] += 1;
        match next {
            Some(source) if !used.contains(&source) && !reaches(&sources, source, node) => {
                used.insert(source);
                sources[node] = Some(source);
                choice.push(0);
            }
            Some(_) => {}
            None => {
                choice.pop();
                if let Some(&c) = choice.last() {
                    let depth = choice.len() - 1;
                    used.remove(&candidates[depth][c - 1]);
                    sources[unknown[depth]] = None;
                }
            }
        }
    }
    let assigned = |solution: &[Source]| {
        let mut all = sources.clone();
        for (&node, &source) in unknown.iter().zip(solution) {
            all[node] = Some(source);
        }
        all.into_iter().flatten().collect::<Vec<_>>()
    };
    match solutions.as_slice() {
        [] => {
            let lonely = unknown.iter().zip(&candidates).find(|(_, c)| c.is_empty());
            let node = &nodes[lonely.map_or(unknown[0], |(&node, _)| node)];
            Err(at(
                node.line,
                format!("no result explains the input {:?} of `{}`", node.input, node.name),
            )
            .expected("another operator's output of this shape, which nobody else reads"))
        }
        [only] => {
            for (&node, &source) in unknown.iter().zip(only) {
                let reason = "the only pairing by shape in which every result is read once";
                assumptions.record(
                    &format!("{}.input", nodes[node].name),
                    name(source),
                    nodes[node].name,
                    reason,
                );
            }
            Ok(assigned(only))
        }
        several => {
            let differs = (0..unknown.len())
                .find(|&i| several.iter().any(|s| s[i] != several[0][i]))
                .unwrap_or(0);
            let options: BTreeSet<&str> = several.iter().map(|s| name(s[differs])).collect();
            let options: Vec<_> = options.into_iter().collect();
            let node = &nodes[unknown[differs]];
            Err(Error::new(
                ErrorKind::Ambiguous,
                format!("`{}` may read any of {}", node.name, options.join(", ")),
            )
            .at(format!("line {}", node.line))
            .help(format!(
                "choose with --assume {}.input={}",
                node.name,
                options.first().unwrap_or(&"")
            )))
        }
    }
}

/// Whether following the sources from `from` leads to `node`: then an edge from `from` to `node` closes a cycle.
fn reaches(sources: &[Option<Source>], from: Source, node: usize) -> bool {
    let mut at = from;
    for _ in 0..=sources.len() {
        match at {
            Source::Input => return false,
            Source::Node(i) if i == node => return true,
            Source::Node(i) => match sources.get(i).copied().flatten() {
                Some(next) => at = next,
                None => return false,
            },
        }
    }
    true
}

fn topological(nodes: &[Node<'_>], sources: &[Source]) -> Result<Vec<usize>> {
    let mut readers: BTreeMap<Source, Vec<usize>> = BTreeMap::new();
    for (index, &source) in sources.iter().enumerate() {
        readers.entry(source).or_default().push(index);
    }
    let mut order = Vec::new();
    let mut ready = vec![Source::Input];
    while let Some(source) = ready.pop() {
        for &reader in readers.get(&source).into_iter().flatten() {
            order.push(reader);
            ready.push(Source::Node(reader));
        }
    }
    let mut reached = vec![false; nodes.len()];
    order.iter().for_each(|&index| reached[index] = true);
    match reached.iter().position(|reached| !reached) {
        Some(lost) => Err(at(
            nodes[lost].line,
            format!(
                "`{}` is not reached from the network's input: its sources form a cycle",
                nodes[lost].name
            ),
        )),
        None => Ok(order),
    }
}

/// The layout of each node: a convolution's from its filter, everything else's from the shape it shares with its source.
fn layouts(trace: &Trace<'_>, sources: &[Source], order: &[usize], input: &[usize]) -> Result<Vec<Layout>> {
    let optimised = trace
        .outside
        .iter()
        .any(|(row, _)| row.name.contains("TransposeNHWCToNCHW"));
    let mut layouts = vec![Layout::Nhwc; trace.forward.len()];
    for &index in order {
        let node = &trace.forward[index];
        let (from, layout) = match sources[index] {
            Source::Input => (input, Layout::Nhwc),
            Source::Node(i) => (trace.forward[i].output.as_slice(), layouts[i]),
        };
        layouts[index] = match (&node.parameter, node.op) {
            (Some(filter), Kernel::Conv2d) => {
                let [_, _, cin, cout] = *filter.as_slice() else {
                    return Err(
                        at(node.line, format!("a filter of shape {filter:?}")).expected("rows, columns, in, out")
                    );
                };
                let fits = |axis: usize| node.output[axis] == cout && node.input[axis].is_multiple_of(cin);
                match (fits(1), fits(3)) {
                    (true, true) if optimised => Layout::Nchw,
                    (_, true) => Layout::Nhwc,
                    (true, false) => Layout::Nchw,
                    (false, false) => {
                        return Err(at(
                            node.line,
                            format!(
                                "a filter {filter:?} does not turn {:?} into {:?}",
                                node.input, node.output
                            ),
                        ));
                    }
                }
            }
            (Some(bias), Kernel::BiasAdd) if node.input == from => {
                let axis = if layout == Layout::Nchw { 1 } else { 3 };
                match bias.as_slice() {
                    [channels] if node.input[axis] == *channels => layout,
                    _ => return Err(at(node.line, format!("a bias {bias:?} for {:?}", node.input))),
                }
            }
            _ if node.input == from => layout,
            _ => match layout {
                Layout::Nchw => Layout::Nhwc,
                Layout::Nhwc => Layout::Nchw,
            },
        };
        if node.op == Kernel::Lrn && layouts[index] != Layout::Nhwc {
            // TensorFlow's LRN knows no other layout; equal extents hide the transposition.
            layouts[index] = Layout::Nhwc;
        }
    }
    Ok(layouts)
}

/// Equal, or one is the other with its channels moved.
fn same_up_to_layout(a: &[usize], b: &[usize]) -> bool {
    a == b
        || matches!((a, b), (&[n, p, q, r], &[m, x, y, z]) if n == m && ((p, q, r) == (z, x, y) || (p, q, r) == (y, z, x)))
}
