//! Counts that depend on neither passes, dtype nor target: parameters, multiply-accumulates, operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

use super::{Data, Expr, Graph, Node, Op, Role, Tensor, TensorId, TensorKind};

/// Refuses more inputs or outputs than a file can name: their numbers.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`].
pub fn check_ports(inputs: usize, outputs: usize) -> Result<[u8; 2]> {
    let too_many = |n: usize| Error::unsupported(format!("{n} inputs or outputs")).expected("at most 255 of each");
    let count = |n: usize| u8::try_from(n).map_err(|_| too_many(n));
    if inputs > 32 {
        return Err(Error::unsupported(format!("{inputs} inputs")).expected("at most 32"));
    }
    Ok([count(inputs)?, count(outputs)?])
}

/// Scalars in the parameters that the weights source or the input file itself holds, each parameter once.
pub fn params(graph: &Graph) -> u64 {
    let mut keys = BTreeSet::new();
    let mut held = BTreeSet::new();
    let mut sum = 0u64;
    for tensor in &graph.tensors {
        if let Some(&(index, elements)) = graph.stated.params.get(&tensor.name)
            && held.insert(index)
        {
            sum += elements;
        }
        let (TensorKind::Const(Data::Lazy(expr)) | TensorKind::State(Data::Lazy(expr))) = &tensor.kind else {
            continue;
        };
        for_each_param(expr, &mut |key, shape| {
            if keys.insert(key.to_string()) {
                sum += shape.iter().map(|&n| n as u64).product::<u64>();
            }
        });
    }
    sum
}

/// Calls `visit` with the key and the shape of every parameter that an expression reads.
pub fn for_each_param<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a str, &'a [usize])) {
    let mut rest = vec![expr];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Param { key, shape } => visit(key, shape),
            Expr::Literal { .. } => {}
            Expr::Permute { of, .. }
            | Expr::Reshape { of, .. }
            | Expr::Reversed { of }
            | Expr::RowSums { of }
            | Expr::RsqrtEpsilon { of, .. } => rest.push(of),
            Expr::Binary { a, b, .. } => rest.extend([b.as_ref(), a.as_ref()]),
        }
    }
}

/// Multiply-accumulates of all forward convolutions and matrix products, for one element of the batch (axis 0 of the first
/// network input).
pub fn macs_per_element(graph: &Graph) -> u64 {
    let batch = graph.inputs.first().and_then(|&id| graph.tensor(id).shape.first());
    macs_of_a_run(graph) / batch.map_or(1, |&n| n.max(1) as u64)
}

/// Multiply-accumulates of all nodes, for the whole batch.
pub fn macs_of_a_run(graph: &Graph) -> u64 {
    (0..graph.nodes.len()).map(|index| macs(graph, index)).sum()
}

/// Whether layers that use each weight once, as fully connected ones do, may take twice the bytes for speed: where they make a quarter of all products, or at
/// most an eighth of all constants.
pub fn doubles_weights(graph: &Graph) -> bool {
    let elements = |id: TensorId| graph.tensor(id).elements() as u64;
    let (mut all, mut once) = (0_u64, 0_u64);
    for node in graph.nodes.iter().filter(|node| node.role == Role::Forward) {
        let outputs = node.outputs.first().map_or(0, |&id| elements(id));
        let products = outputs.saturating_mul(terms(graph, node));
        let is_layer = matches!(node.op, Op::Conv2d(_) | Op::Linear { .. });
        let weights = node.inputs.get(1).copied().flatten().map_or(0, elements);
        all = all.saturating_add(products);
        once = once.saturating_add(if is_layer && products == weights { products } else { 0 });
    }
    let constants = graph
        .tensors
        .iter()
        .filter(|tensor| matches!(tensor.kind, TensorKind::Const(_)));
    let constants = constants.map(|tensor| tensor.elements() as u64).sum::<u64>();
    once >= all.div_ceil(4) || once <= constants / 8
}

/// Multiply-accumulates of one node: each output element sums over the inputs of its window or row.
pub fn macs(graph: &Graph, index: usize) -> u64 {
    let Some(node) = graph.nodes.get(index).filter(|node| node.role == Role::Forward) else {
        return 0;
    };
    if let Some(&stated) = graph.stated.macs.get(&node.name) {
        return stated;
    }
    let outputs = node.outputs.first().map_or(0, |&id| graph.tensor(id).elements() as u64);
    outputs.saturating_mul(terms(graph, node))
}

/// Products that one output element sums.
fn terms(graph: &Graph, node: &Node) -> u64 {
    let shape = |i: usize| {
        let id = node.inputs.get(i).copied().flatten();
        id.map_or(&[][..], |id| graph.tensor(id).shape.as_slice())
    };
    let product = |extents: &[usize]| extents.iter().map(|&n| n as u64).product::<u64>();
    match &node.op {
        // OHWI: all but the first axis.
        Op::Conv2d(_) => shape(1).get(1..).map_or(0, product),
        // [out, in, kh, kw, oh, ow]
        Op::LocallyConnected2d { .. } => shape(1).get(1..4).map_or(0, product),
        Op::Linear { .. } => shape(1).get(1..).map_or(0, product),
        Op::MatMul { transpose_a, .. } => {
            let back = if *transpose_a { 2 } else { 1 };
            let a = shape(0);
            a.len()
                .checked_sub(back)
                .and_then(|i| a.get(i))
                .map_or(0, |&k| k as u64)
        }
        // Of each of an output's filters: one product with the features, one with its memory.
        Op::Svdf { rank, .. } => {
            *rank as u64 * (product(shape(1).get(1..).unwrap_or(&[])) + product(shape(2).get(1..).unwrap_or(&[])))
        }
        // The score and the weighted sum, of each line that the cache holds.
        Op::Attention { .. } => 2 * shape(1).get(1).map_or(0, |&lines| lines as u64),
        // Four gates, each of the input and of the state.
        Op::UnidirectionalLstm { .. } => {
            4 * (product(shape(1).get(1..).unwrap_or(&[])) + product(shape(5).get(1..).unwrap_or(&[])))
        }
        _ => 0,
    }
}

/// Whether operators are commands for an Ethos-U, which no kernel computes.
pub fn has_commands(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| matches!(node.op, Op::EthosU(_)))
}

/// The key in [`Graph::pruned`] of forward operators that feed no output of the network.
pub const UNUSED: &str = "unused";

/// [`Node::kind`] of nodes that stand for no operator of the trace: an importer put them in to say what the trace implies.
pub const IMPLIED: &str = "implied";

/// A node as its owner knows it, for messages: by its own name and kind; one that an importer put in, by the operator of the file that it is a part of, or by
/// the tensor that it reads.
pub fn described(graph: &Graph, node: &Node) -> String {
    if node.kind != IMPLIED {
        return format!("`{}` ({})", node.name, node.kind);
    }
    let of_file = |other: &&Node| other.origin == node.origin && other.kind != IMPLIED;
    if let Some(whole) = graph.nodes.iter().find(of_file) {
        return format!("`{}` ({})", whole.name, whole.kind);
    }
    let mut operands = node.inputs.iter().flatten().map(|&id| graph.tensor(id));
    let computed = operands.clone().find(|tensor| !tensor.is_const());
    let operand = computed.or_else(|| operands.next_back());
    let name = operand.map_or(&node.name, |tensor| &tensor.name);
    format!("a step behind `{name}`, which the file implies")
}

/// Where an error is: the node as [`described`], and its place in the file.
pub fn place(graph: &Graph, node: &Node) -> String {
    format!("{}, {}", described(graph, node), node.origin)
}

/// Forward operators by the dialect's own name.
pub fn operators(graph: &Graph) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    for node in forward.filter(|node| node.kind != IMPLIED) {
        *counts.entry(node.kind.clone()).or_insert(0) += 1;
    }
    counts
}

/// Whether a tensor's value comes from the weights source.
pub fn is_param(tensor: &Tensor) -> bool {
    matches!(tensor.kind, TensorKind::Const(Data::Lazy(_)))
}
