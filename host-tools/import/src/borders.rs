//! A part of a network, and inputs of known value: what `--from`, `--until` and `--set` have in common for all dialects, and how they cut a graph.
//!
//! The network then begins with the tensors of `--from` and with the inputs that are still needed, and ends with the tensors of `--until`. An input that is
//! set is a constant.

use std::collections::HashSet;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Data, Graph, Op, Role, Tensor, TensorId, TensorKind};
use crate::imported::{ImportOptions, Imported};
use crate::spelling::distance;

/// Names that a refusal proposes.
const PROPOSED: usize = 3;

/// Refuses names that are given twice, and borders between which nothing lies.
pub(super) fn check(options: &ImportOptions) -> Result<()> {
    let twice = |option: &str, names: &mut dyn Iterator<Item = &String>| {
        let mut seen = Vec::new();
        for name in names {
            if seen.contains(&name) {
                return Err(usage(format!("{option} {name}: `{name}` is given twice")));
            }
            seen.push(name);
        }
        Ok(())
    };
    twice("--set", &mut options.set.iter().map(|(name, _)| name))?;
    twice("--from", &mut options.from.iter())?;
    twice("--until", &mut options.until.iter())?;
    match options.from.iter().find(|name| options.until.contains(name)) {
        Some(name) => Err(usage(format!("--from {name} --until {name}")).expected("a tensor behind the other")),
        None => Ok(()),
    }
}

pub(super) fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// Names, the nearest to `name` first, each once.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let far = |other: &str| {
        let within = other.contains(name) || name.contains(other);
        (
            !within,
            distance(&name.to_lowercase(), &other.to_lowercase()),
            other.to_owned(),
        )
    };
    let mut near: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).map(far).collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(.., name)| name).collect()
}

/// The refusal of a tensor that is not there: the nearest names.
pub(super) fn unknown<'a>(option: &str, name: &str, what: &str, names: impl IntoIterator<Item = &'a str>) -> Error {
    let error = usage(format!("{option} {name}: there is no such {what}"));
    let near = nearest(name, names).into_iter().take(PROPOSED);
    let near: Vec<String> = near.map(|name| format!("`{name}`")).collect();
    if near.is_empty() {
        return error;
    }
    error.expected(format!("the name of one; the nearest are {}", near.join(", ")))
}

/// The refusal of a tensor that no node computes.
pub(super) fn not_computed(option: &str, name: &str, what: &str) -> Error {
    usage(format!("{option} {name}: `{name}` is {what}")).expected("a tensor that an operator of the network computes")
}

/// The refusal of a beginning that the end does not need.
pub(super) fn not_needed(name: &str) -> Error {
    usage(format!("--from {name}: no output of the network depends on `{name}`"))
        .help("name a tensor ahead of the outputs, or of --until")
}

/// The value that `--set` gives a tensor: its extents and its elements, in order. One number fills all of the tensor; a list has as many as it has elements.
/// Extents that the network leaves open are 1, or, where one is open, as long as the list says.
pub(super) fn value(name: &str, text: &str, extents: &[Option<usize>], dtype: DType) -> Result<(Vec<usize>, Vec<f64>)> {
    let wrong = |expected: String| usage(format!("--set {name}={text}")).expected(expected);
    let list = text.trim();
    let list = list.strip_prefix('[').and_then(|l| l.strip_suffix(']')).unwrap_or(list);
    let whole = !matches!(dtype, DType::F32);
    let number = |word: &str| match word.trim() {
        "true" if dtype == DType::Bool => Some(1.0),
        "false" if dtype == DType::Bool => Some(0.0),
        word if whole => word.parse::<i64>().ok().map(|value| value as f64),
        word => word
            .parse::<f32>()
            .ok()
            .map(f64::from)
            .filter(|value| value.is_finite()),
    };
    let kind = if whole { "whole numbers" } else { "finite numbers" };
    let numbers: Option<Vec<f64>> = list.split(',').map(number).collect();
    let numbers = numbers.ok_or_else(|| wrong(format!("{kind} of {}, separated by commas", dtype.name())))?;
    let [low, high] = range(dtype);
    if let Some(value) = numbers.iter().find(|value| !(low..=high).contains(*value)) {
        return Err(wrong(format!("{} holds {low} to {high}, not {value}", dtype.name())));
    }
    let open = extents.iter().filter(|extent| extent.is_none()).count();
    let stated: Option<usize> = extents
        .iter()
        .flatten()
        .try_fold(1_usize, |n, &extent| n.checked_mul(extent));
    let stated = stated.filter(|&stated| stated <= MOST);
    let stated = stated.ok_or_else(|| wrong(format!("a tensor of at most {MOST} elements")))?;
    let length = if open == 1 && stated > 0 {
        numbers.len() / stated
    } else {
        1
    };
    let shape: Vec<usize> = extents.iter().map(|extent| extent.unwrap_or(length)).collect();
    let count: usize = shape.iter().product();
    match numbers.len() {
        1 => Ok((shape, vec![numbers[0]; count])),
        found if found == count => Ok((shape, numbers)),
        found => Err(wrong(format!(
            "one number, or {count} for shape {shape:?}, not {found}"
        ))),
    }
}

/// Elements of a tensor that is set at most.
const MOST: usize = 1 << 24;

/// The least and the largest value of a type.
fn range(dtype: DType) -> [f64; 2] {
    match dtype {
        DType::F32 => [f64::from(f32::MIN), f64::from(f32::MAX)],
        DType::Bool => [0.0, 1.0],
        DType::U8 => [0.0, 255.0],
        DType::I8 => [-128.0, 127.0],
        DType::I16 => [-32768.0, 32767.0],
        DType::I32 => [f64::from(i32::MIN), f64::from(i32::MAX)],
        DType::I64 => [-(2_f64.powi(53)), 2_f64.powi(53)],
    }
}

/// The bytes of such values, little-endian.
pub(super) fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    let each = |value: f64| match dtype {
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        dtype => (value as i32).to_le_bytes()[..dtype.bytes()].to_vec(),
    };
    values.iter().flat_map(|&value| each(value)).collect()
}

/// Cuts a network that is imported whole.
pub(super) fn cut(imported: &mut Imported, options: &ImportOptions) -> Result<()> {
    if options.is_whole() {
        return Ok(());
    }
    let graph = &mut imported.graph;
    for (name, text) in &options.set {
        set(graph, name, text)?;
        imported.assumptions.push(crate::graph::Assumption {
            key: name.clone(),
            value: text.clone(),
            applies_to: "an input".into(),
            reason: "given by --set".into(),
        });
    }
    if !options.until.is_empty() {
        graph.outputs = options
            .until
            .iter()
            .map(|name| computed(graph, "--until", name))
            .collect::<Result<_>>()?;
    }
    let begins: Vec<TensorId> = options
        .from
        .iter()
        .map(|name| computed(graph, "--from", name))
        .collect::<Result<_>>()?;
    for &id in &begins {
        begin_with(graph, id);
    }
    let live = keep_needed(graph);
    if let Some((_, name)) = begins.iter().zip(&options.from).find(|(id, _)| !live.contains(id)) {
        return Err(not_needed(name));
    }
    graph.inputs.retain(|id| !begins.contains(id));
    graph.inputs.splice(0..0, begins);
    renumber(graph, &live);
    if graph.inputs.is_empty() {
        return Err(usage("no input is left".into()).expected("an input that is not set"));
    }
    if imported.samples.take().is_some() {
        let text = "the samples are of the whole network: they are not replayed";
        imported.warnings.push(text.into());
    }
    Ok(())
}

fn set(graph: &mut Graph, name: &str, text: &str) -> Result<()> {
    let named = |id: &&TensorId| graph.tensor(**id).name == name;
    let Some(&id) = graph.inputs.iter().find(named) else {
        let names = graph.inputs.iter().map(|&id| graph.tensor(id).name.as_str());
        return Err(unknown("--set", name, "input", names));
    };
    let tensor = graph.tensor_mut(id);
    let extents: Vec<Option<usize>> = tensor.shape.iter().copied().map(Some).collect();
    let (_, values) = value(name, text, &extents, tensor.dtype)?;
    tensor.kind = TensorKind::Const(Data::Bytes(bytes(tensor.dtype, &values).into()));
    graph.inputs.retain(|input| *input != id);
    Ok(())
}

/// The tensor of this name that a node of the network computes.
fn computed(graph: &Graph, option: &str, name: &str) -> Result<TensorId> {
    let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    let mut written = forward.flat_map(|node| node.outputs.iter().copied());
    if let Some(id) = written.find(|&id| graph.tensor(id).name == name) {
        return Ok(id);
    }
    match graph.tensors.iter().find(|tensor| tensor.name == name) {
        Some(tensor) => Err(not_computed(
            option,
            name,
            match tensor.kind {
                TensorKind::Input => "an input",
                TensorKind::Const(_) => "a constant",
                TensorKind::State(_) => "a state",
                TensorKind::Activation => "outside the network",
            },
        )),
        None => {
            let activations = graph
                .tensors
                .iter()
                .filter(|t| matches!(t.kind, TensorKind::Activation));
            Err(unknown(option, name, "tensor", activations.map(|t| t.name.as_str())))
        }
    }
}

/// Makes an input of what a node computes; the node keeps a result that nothing reads.
fn begin_with(graph: &mut Graph, id: TensorId) {
    let unread = Tensor {
        name: format!("{} (cut)", graph.tensor(id).name),
        ..graph.tensor(id).clone()
    };
    let unread = graph.add_tensor(unread);
    for node in &mut graph.nodes {
        for output in node.outputs.iter_mut().filter(|output| **output == id) {
            *output = unread;
        }
    }
    graph.tensor_mut(id).kind = TensorKind::Input;
    graph.inputs.push(id);
}

/// Keeps the nodes that the outputs need, with the updates of states that they read: the tensors that are left.
fn keep_needed(graph: &mut Graph) -> HashSet<TensorId> {
    let mut live: HashSet<TensorId> = graph.outputs.iter().copied().collect();
    let mut kept = vec![false; graph.nodes.len()];
    loop {
        let before = live.len();
        for (index, node) in graph.nodes.iter().enumerate().rev() {
            let updates = matches!(node.op, Op::AssignState | Op::WriteLine)
                && node
                    .inputs
                    .first()
                    .copied()
                    .flatten()
                    .is_some_and(|state| live.contains(&state));
            let needed = node.role == Role::Forward && (updates || node.outputs.iter().any(|id| live.contains(id)));
            if needed {
                kept[index] = true;
                live.extend(node.inputs.iter().flatten().chain(&node.outputs));
            }
        }
        if live.len() == before {
            break;
        }
    }
    let mut kept = kept.into_iter();
    graph.nodes.retain(|_| kept.next().unwrap_or(false));
    graph.inputs.retain(|id| live.contains(id));
    live
}

/// Drops the tensors that are not live.
fn renumber(graph: &mut Graph, live: &HashSet<TensorId>) {
    let mut to = vec![TensorId(0); graph.tensors.len()];
    let mut tensors = Vec::new();
    for (index, tensor) in std::mem::take(&mut graph.tensors).into_iter().enumerate() {
        if live.contains(&TensorId(index)) {
            to[index] = TensorId(tensors.len());
            tensors.push(tensor);
        } else {
            graph.stated.params.remove(&tensor.name);
        }
    }
    graph.tensors = tensors;
    let ids = graph.inputs.iter_mut().chain(&mut graph.outputs);
    ids.for_each(|id| *id = to[id.0]);
    for node in &mut graph.nodes {
        let ids = node.inputs.iter_mut().flatten().chain(&mut node.outputs);
        ids.for_each(|id| *id = to[id.0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_fills_a_tensor_or_lists_its_elements() {
        let of =
            |text: &str, extents: &[Option<usize>], dtype| value("x", text, extents, dtype).map_err(|e| e.to_string());
        assert_eq!(of("16000", &[], DType::I64), Ok((vec![], vec![16000.0])));
        assert_eq!(of("2", &[Some(3)], DType::F32), Ok((vec![3], vec![2.0; 3])));
        assert_eq!(of("[1, 2,3]", &[None], DType::I32), Ok((vec![3], vec![1.0, 2.0, 3.0])));
        assert_eq!(
            of("1,2,3,4", &[None, Some(2)], DType::F32),
            Ok((vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]))
        );
        assert_eq!(of("true", &[None], DType::Bool), Ok((vec![1], vec![1.0])));
        for (text, extents, dtype, part) in [
            ("1,2", &[Some(3)][..], DType::F32, "or 3 for shape [3], not 2"),
            ("1.5", &[], DType::I32, "whole numbers"),
            ("nan", &[], DType::F32, "finite numbers"),
            ("300", &[], DType::U8, "0 to 255"),
            ("", &[], DType::F32, "finite numbers"),
            ("1", &[Some(usize::MAX), Some(2)], DType::F32, "elements"),
        ] {
            let text = of(text, extents, dtype).unwrap_err();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_nearest_names_are_proposed() {
        let text = unknown("--until", "conv", "tensor", ["relu", "block/conv/out", "conw", "x"]).to_string();
        assert!(text.contains("the nearest are `block/conv/out`, `conw`"), "{text}");
    }
}
