//! `--input-dtype`, `--output-dtype`: what the caller of a quantised network gives and gets, with a step that converts.

use std::collections::HashMap;

use arenite::DType;

use super::activations::Activations;
use super::grid::Grid;
use super::rewrite::conversion;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, Op, Quant, Tensor, TensorId, TensorKind};

/// Gives the inputs and outputs of a network these element types, where they are int8 or int16 now, or f32 that the network converts at once. Bytes of a
/// picture that is calibrated have the values that `grid` says.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`] for one that cannot be had.
pub fn retype(graph: &mut Graph, input: Option<DType>, output: Option<DType>, grid: Option<Grid>) -> Result<()> {
    if let Some(dtype) = input {
        for index in 0..graph.inputs.len() {
            give(graph, index, dtype, grid)?;
        }
    }
    if let Some(dtype) = output {
        for index in 0..graph.outputs.len() {
            take(graph, index, dtype)?;
        }
    }
    drop_unread(graph);
    Ok(())
}

/// Input `index` comes in `dtype`: its tensor is that, and what reads it gets what it was.
fn give(graph: &mut Graph, index: usize, dtype: DType, grid: Option<Grid>) -> Result<()> {
    let id = graph.inputs[index];
    if dtype != DType::F32 {
        take_converted_input(graph, id);
    }
    let Some(mut quant) = convertible(graph, id, dtype, "--input-dtype")? else {
        return Ok(());
    };
    let own = graph.tensor(id).clone();
    // An int8 input of bytes has their own scale already.
    if let (DType::U8, DType::I16, Some(grid)) = (dtype, own.dtype, grid) {
        quant = Some(Quant::per_tensor(grid.scale, i32::from(grid.zero)));
    }
    let name = format!("{} ({})", own.name, own.dtype.name());
    let inside = graph.add_tensor(Tensor {
        name: name.clone(),
        kind: TensorKind::Activation,
        ..own.clone()
    });
    // Layers in f32 read an f32 input as it is.
    let mut same: HashMap<TensorId, TensorId> = HashMap::new();
    if dtype == DType::F32 {
        let reads = |node: &&Node| node.op == Op::Dequantize && node.inputs == [Some(id)];
        let found = graph
            .nodes
            .iter()
            .filter(reads)
            .filter(|node| !graph.outputs.contains(&node.outputs[0]));
        same.extend(found.map(|node| (node.outputs[0], id)));
    }
    for node in &mut graph.nodes {
        for input in node.inputs.iter_mut().flatten() {
            *input = match (*input == id, same.get(input)) {
                (true, _) => inside,
                (false, Some(&direct)) => direct,
                (false, None) => *input,
            };
        }
    }
    let outputs = graph.outputs.iter_mut().filter(|output| **output == id);
    outputs.for_each(|output| *output = inside);
    let tensor = graph.tensor_mut(id);
    (tensor.dtype, tensor.quant) = (dtype, quant);
    graph.nodes.insert(0, conversion(name, Op::Quantize, id, inside));
    Ok(())
}

/// Output `index` goes out in `dtype`, under its own name.
fn take(graph: &mut Graph, index: usize, dtype: DType) -> Result<()> {
    if dtype != DType::F32 {
        give_unconverted_output(graph, index);
    }
    let id = graph.outputs[index];
    let Some(quant) = convertible(graph, id, dtype, "--output-dtype")? else {
        return Ok(());
    };
    let own = graph.tensor(id).clone();
    let outside = match writer_in_f32(graph, id).filter(|_| dtype == DType::F32) {
        Some(direct) => direct,
        None => {
            let outside = graph.add_tensor(Tensor {
                dtype,
                quant,
                kind: TensorKind::Activation,
                ..own.clone()
            });
            let op = if dtype == DType::F32 {
                Op::Dequantize
            } else {
                Op::Quantize
            };
            let node = conversion(format!("{} ({})", own.name, dtype.name()), op, id, outside);
            graph.nodes.push(node);
            outside
        }
    };
    graph.tensor_mut(id).name = format!("{} ({})", own.name, own.dtype.name());
    graph.tensor_mut(outside).name = own.name;
    graph.outputs[index] = outside;
    Ok(())
}

/// An f32 input that is read by conversions to one int8 or int16 tensor alone becomes that tensor.
fn take_converted_input(graph: &mut Graph, id: TensorId) {
    let readers = |node: &&Node| node.inputs.contains(&Some(id));
    let converts = |node: &Node| node.op == Op::Quantize && node.inputs == [Some(id)];
    let all: Vec<&Node> = graph.nodes.iter().filter(readers).collect();
    let Some(first) = all.first().filter(|_| graph.tensor(id).dtype == DType::F32) else {
        return;
    };
    let of = |node: &Node| {
        (
            graph.tensor(node.outputs[0]).dtype,
            graph.tensor(node.outputs[0]).quant.clone(),
        )
    };
    let (dtype, quant) = of(first);
    let made: Vec<TensorId> = all.iter().map(|node| node.outputs[0]).collect();
    let is_port = |id: &TensorId| graph.outputs.contains(id);
    let same = all
        .iter()
        .all(|node| converts(node) && of(node) == (dtype, quant.clone()));
    if !same || made.iter().chain([&id]).any(is_port) || Activations::of(graph.tensor(made[0])).is_none() {
        return;
    }
    graph.nodes.retain(|node| !converts(node));
    for input in graph.nodes.iter_mut().flat_map(|node| node.inputs.iter_mut().flatten()) {
        if made.contains(input) {
            *input = id;
        }
    }
    let tensor = graph.tensor_mut(id);
    (tensor.dtype, tensor.quant) = (dtype, quant);
}

/// An f32 output that a conversion of an int8 or int16 tensor makes becomes that tensor, under its own name.
fn give_unconverted_output(graph: &mut Graph, index: usize) {
    let id = graph.outputs[index];
    let makes = |node: &&Node| node.op == Op::Dequantize && node.outputs == [id];
    let Some(&[Some(from)]) = graph.nodes.iter().find(makes).map(|node| &node.inputs[..]) else {
        return;
    };
    let own = graph.tensor(from);
    let usable = matches!(own.kind, TensorKind::Activation) && Activations::of(own).is_some();
    if !usable || graph.outputs.contains(&from) || graph.inputs.contains(&from) {
        return;
    }
    graph.outputs[index] = from;
    let name = graph.tensor(id).name.clone();
    graph.tensor_mut(id).name = format!("{name} (f32)");
    graph.tensor_mut(from).name = name;
}

/// The f32 tensor that a conversion makes `id` of.
fn writer_in_f32(graph: &Graph, id: TensorId) -> Option<TensorId> {
    let node = graph.nodes.iter().find(|node| node.outputs == [id])?;
    let from = node
        .inputs
        .first()
        .copied()
        .flatten()
        .filter(|_| node.op == Op::Quantize)?;
    let tensor = graph.tensor(from);
    let usable = tensor.dtype == DType::F32 && matches!(tensor.kind, TensorKind::Activation);
    (usable && !graph.outputs.contains(&from)).then_some(from)
}

/// The quantisation of an int8 or int16 tensor in another type; `None` where nothing is to be done.
fn convertible(graph: &Graph, id: TensorId, dtype: DType, option: &str) -> Result<Option<Option<Quant>>> {
    let tensor = graph.tensor(id);
    if tensor.dtype == dtype {
        return Ok(None);
    }
    let Some((activations, quant)) = Activations::of(tensor) else {
        let message = format!(
            "{option} {}: `{}` is {}",
            dtype.name(),
            tensor.name,
            tensor.dtype.name()
        );
        let help = match tensor.dtype {
            DType::F32 => "--dtype int8 --calibrate FILE quantises the network",
            _ => "leave the option out",
        };
        return Err(Error::unsupported(message)
            .expected("an int8 or int16 tensor with a scale")
            .help(help));
    };
    // Of 16 bits the upper eight.
    let (scale, zero) = match activations {
        Activations::Int8 => (quant.scale[0], quant.zero_point[0]),
        Activations::Int16 => (quant.scale[0] * 256.0, 0),
    };
    match dtype {
        DType::F32 => Ok(Some(None)),
        DType::I8 => Ok(Some(Some(Quant::per_tensor(scale, zero)))),
        DType::U8 => Ok(Some(Some(Quant::per_tensor(scale, zero + 128)))),
        _ => Err(Error::unsupported(format!("{option} {}", dtype.name())).expected("f32, u8 or int8")),
    }
}

/// Drops conversions that nobody reads any more.
fn drop_unread(graph: &mut Graph) {
    loop {
        let read: Vec<TensorId> = graph
            .nodes
            .iter()
            .flat_map(|node| node.inputs.iter().flatten().copied())
            .collect();
        let before = graph.nodes.len();
        let outputs = graph.outputs.clone();
        graph.nodes.retain(|node| {
            let converts = matches!(node.op, Op::Quantize | Op::Dequantize);
            !converts || node.outputs.iter().any(|id| read.contains(id) || outputs.contains(id))
        });
        if graph.nodes.len() == before {
            break;
        }
    }
}
