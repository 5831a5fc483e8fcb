//! `--from`, `--until` and `--set`: the part of the main subgraph between tensors, cut before its operators are translated, so that what lies outside may be
//! anything; and inputs that are constants.

use super::schema::{Model, Subgraph, TensorInfo};
use crate::borders::{self, not_computed, not_needed, unknown, usage};
use crate::error::{Error, Result};
use crate::imported::ImportOptions;

/// An input of `--set`.
pub(super) struct SetInput {
    /// The number of its tensor.
    index: usize,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The inputs of `--set`.
pub(super) fn values(model: &Model<'_>, options: &ImportOptions) -> Result<Vec<SetInput>> {
    let graph = &model.subgraphs[model.main];
    let value = |(name, text): &(String, String)| {
        let mut inputs = graph.inputs.iter().copied();
        let Some(index) = inputs.find(|&index| graph.tensors[index].name == *name) else {
            let names = graph.inputs.iter().map(|&index| graph.tensors[index].name.as_str());
            return Err(unknown("--set", name, "input", names));
        };
        let info = &graph.tensors[index];
        let dtype = info.dtype().ok_or_else(|| {
            Error::unsupported(format!("--set {name}: `{name}` is {}", info.type_name()))
                .expected("numbers or booleans")
        })?;
        let known = |(axis, &extent): (usize, &i32)| {
            let stated = usize::try_from(extent).ok().filter(|&extent| extent > 0);
            stated.filter(|_| !info.is_open_along(axis))
        };
        let extents: Vec<Option<usize>> = info.shape.iter().enumerate().map(known).collect();
        let (shape, values) = borders::value(name, text, &extents, dtype)?;
        let bytes = borders::bytes(dtype, &values);
        Ok(SetInput { index, shape, bytes })
    };
    options.set.iter().map(value).collect()
}

/// Makes constants of these inputs, and leaves what lies between `--from` and `--until`.
pub(super) fn cut<'a>(model: &mut Model<'a>, values: &'a [SetInput], options: &ImportOptions) -> Result<()> {
    if options.is_whole() {
        return Ok(());
    }
    let graph = &mut model.subgraphs[model.main];
    for value in values {
        let info = &mut graph.tensors[value.index];
        info.data = Some(&value.bytes);
        // Extents that were left open are known now.
        info.shape = value
            .shape
            .iter()
            .map(|&extent| i32::try_from(extent).unwrap_or(0))
            .collect();
        info.signature.clear();
        graph.inputs.retain(|&input| input != value.index);
    }
    let ends: Vec<usize> = options
        .until
        .iter()
        .map(|name| computed(graph, "--until", name))
        .collect::<Result<_>>()?;
    let begins: Vec<usize> = options
        .from
        .iter()
        .map(|name| computed(graph, "--from", name))
        .collect::<Result<_>>()?;
    if !ends.is_empty() {
        graph.outputs = ends;
    }
    for &index in &begins {
        begin_with(graph, index);
    }
    if !options.until.is_empty() || !begins.is_empty() {
        let needed = keep_needed(graph);
        if let Some((_, name)) = begins.iter().zip(&options.from).find(|&(&index, _)| !needed[index]) {
            return Err(not_needed(name));
        }
        graph.inputs.retain(|&input| needed[input]);
        graph.inputs.splice(0..0, begins);
    }
    if graph.inputs.is_empty() && !options.set.is_empty() {
        return Err(usage("no input is left".into()).expected("an input that is not set"));
    }
    if !model.planned.is_empty() && model.main == 0 {
        model.planned.resize(model.subgraphs[0].tensors.len(), -1);
    }
    Ok(())
}

/// The number of the tensor of this name that an operator computes.
fn computed(graph: &Subgraph<'_>, option: &str, name: &str) -> Result<usize> {
    let mut written = graph
        .operators
        .iter()
        .flat_map(|operator| operator.outputs.iter().copied());
    if let Some(index) = written.find(|&index| graph.tensors[index].name == name) {
        return Ok(index);
    }
    match graph.tensors.iter().position(|tensor| tensor.name == name) {
        Some(index) if graph.inputs.contains(&index) => Err(not_computed(option, name, "an input")),
        Some(_) => Err(not_computed(option, name, "a constant")),
        None => {
            let written = graph.operators.iter().flat_map(|operator| operator.outputs.iter());
            let names = written.map(|&index| graph.tensors[index].name.as_str());
            Err(unknown(option, name, "tensor", names))
        }
    }
}

/// Has what computes tensor `index` write to a tensor that nothing reads.
fn begin_with(graph: &mut Subgraph<'_>, index: usize) {
    let info = &graph.tensors[index];
    let unread = TensorInfo {
        name: format!("{} (cut)", info.name),
        shape: info.shape.clone(),
        signature: info.signature.clone(),
        scale: info.scale.clone(),
        zero_point: info.zero_point.clone(),
        ..*info
    };
    let unread_index = graph.tensors.len();
    graph.tensors.push(unread);
    for operator in &mut graph.operators {
        for output in operator.outputs.iter_mut().filter(|output| **output == index) {
            *output = unread_index;
        }
    }
}

/// Keeps the operators that the outputs need, and those that are there for what they leave behind: the tensors that are needed.
fn keep_needed(graph: &mut Subgraph<'_>) -> Vec<bool> {
    let mut needed = vec![false; graph.tensors.len()];
    for &output in &graph.outputs {
        needed[output] = true;
    }
    let mut kept = vec![false; graph.operators.len()];
    for (index, operator) in graph.operators.iter().enumerate().rev() {
        if operator.outputs.is_empty() || operator.outputs.iter().any(|&output| needed[output]) {
            kept[index] = true;
            operator.inputs.iter().flatten().for_each(|&input| needed[input] = true);
        }
    }
    let mut kept = kept.into_iter();
    graph.operators.retain(|_| kept.next().unwrap_or(false));
    needed
}
