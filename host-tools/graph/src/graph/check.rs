//! The consistency check that holds after the import and after every pass.

use std::collections::HashSet;

use super::facts::place;
use super::infer::{infer, infer_dtype};
use super::numbers;
use super::{DType, Data, Graph, Op, Role, TensorId, TensorKind};
use crate::error::{Error, ErrorKind, Result};

/// Checks that names are unique, every tensor is written once and before it is read (so that there is no cycle), shapes and
/// dtypes agree with what each operator infers, and constants have the bytes that their shape says. Nodes outside inference
/// ([`Op::Opaque`]) are exempt from order and shape.
///
/// # Errors
/// Names the first node or tensor that is wrong.
pub fn check(graph: &Graph) -> Result<()> {
    check_names(graph)?;
    check_structure(graph)
}

/// All of [`check`] but that names are unique: for a change that has made none.
///
/// # Errors
/// As [`check`].
pub fn check_structure(graph: &Graph) -> Result<()> {
    check_order(graph)?;
    for node in graph.nodes.iter().filter(|node| node.role == Role::Forward) {
        let at = |e: Error| e.at(place(graph, node));
        let inputs: Vec<_> = node.inputs.iter().map(|id| id.map(|id| graph.tensor(id))).collect();
        numbers::check(&node.op).map_err(at)?;
        let shape = infer(&node.op, &inputs).map_err(at)?;
        let dtype = infer_dtype(&node.op, &inputs);
        for &output in &node.outputs {
            let output = graph.tensor(output);
            if shape.as_ref().is_some_and(|shape| *shape != output.shape) {
                return Err(at(Error::input(format!(
                    "output `{}` has shape {:?}",
                    output.name, output.shape
                ))
                .expected(format!("{:?}", shape.unwrap_or_default()))));
            }
            if dtype.is_some_and(|dtype| dtype != output.dtype) {
                return Err(at(Error::input(format!(
                    "output `{}` is {}",
                    output.name,
                    output.dtype.name()
                ))
                .expected(dtype.map_or("", |d| d.name()))));
            }
        }
        if let (Op::Reshape, Some(Some(x)), [y]) = (&node.op, inputs.first(), node.outputs.as_slice())
            && x.elements() != graph.tensor(*y).elements()
        {
            return Err(at(Error::input(format!(
                "a reshape of {:?} into {:?} loses elements",
                x.shape,
                graph.tensor(*y).shape
            ))));
        }
    }
    for tensor in &graph.tensors {
        check_tensor(tensor)?;
    }
    Ok(())
}

fn check_names(graph: &Graph) -> Result<()> {
    let mut names = HashSet::with_capacity(graph.tensors.len());
    if let Some(twice) = graph.tensors.iter().find(|t| !names.insert(&t.name)) {
        return Err(Error::input(format!("two tensors are named `{}`", twice.name)));
    }
    let mut names = HashSet::with_capacity(graph.nodes.len());
    if let Some(twice) = graph.nodes.iter().find(|n| !names.insert(&n.name)) {
        return Err(Error::input(format!("two operators are named `{}`", twice.name)).at(&twice.origin));
    }
    Ok(())
}

fn check_order(graph: &Graph) -> Result<()> {
    let mut written: Vec<bool> = graph
        .tensors
        .iter()
        .map(|t| !matches!(t.kind, TensorKind::Activation))
        .collect();
    let exists = |id: TensorId| id.0 < graph.tensors.len();
    for node in graph.nodes.iter().filter(|node| node.op != Op::Opaque) {
        let at = |e: Error| e.at(place(graph, node));
        for &id in node.inputs.iter().flatten() {
            if !exists(id) {
                return Err(at(Error::internal("it reads a tensor that does not exist")));
            }
            if !written[id.0] {
                return Err(at(Error::input(format!(
                    "it reads `{}` before anything writes it",
                    graph.tensor(id).name
                ))
                .help("the operators form a cycle, or the one that writes it is missing")));
            }
        }
        for &id in &node.outputs {
            if !exists(id) {
                return Err(at(Error::internal("it writes a tensor that does not exist")));
            }
            if std::mem::replace(&mut written[id.0], true) {
                return Err(at(Error::input(format!(
                    "it writes `{}`, which is written already",
                    graph.tensor(id).name
                ))));
            }
        }
    }
    match graph
        .outputs
        .iter()
        .find(|id| !written.get(id.0).copied().unwrap_or(false))
    {
        Some(id) => Err(Error::input(format!(
            "nothing writes the network's output `{}`",
            graph.tensor(*id).name
        ))),
        None if graph.outputs.is_empty() => Err(Error::input("the network has no output")),
        None => Ok(()),
    }
}

fn check_tensor(tensor: &super::Tensor) -> Result<()> {
    let at = |e: Error| e.at(format_args!("tensor `{}`", tensor.name));
    let bytes = (tensor.shape.iter())
        .try_fold(tensor.dtype.bytes(), |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| u32::try_from(bytes).is_ok());
    let Some(bytes) = bytes else {
        return Err(at(Error::new(
            ErrorKind::Unsupported,
            format!("shape {:?} needs more than 4 GiB", tensor.shape),
        )));
    };
    match &tensor.kind {
        TensorKind::Const(Data::Bytes(data)) | TensorKind::State(Data::Bytes(data)) if data.len() != bytes => {
            return Err(at(
                Error::input(format!("{} bytes of data", data.len())).expected(format!("{bytes}"))
            ));
        }
        TensorKind::Const(Data::Lazy(expr)) if expr.shape() != tensor.shape => {
            return Err(at(Error::internal(format!("its value has shape {:?}", expr.shape()))
                .expected(format!("{:?}", tensor.shape))));
        }
        _ => {}
    }
    if let Some(quant) = &tensor.quant {
        let channels = match quant.axis {
            None => 1,
            Some(axis) => *tensor.shape.get(axis).ok_or_else(|| {
                at(Error::input(format!(
                    "quantised along axis {axis}, but its shape is {:?}",
                    tensor.shape
                )))
            })?,
        };
        if quant.scale.len() != channels || quant.zero_point.len() != channels {
            return Err(at(Error::input(format!(
                "{} scales and {} zero points",
                quant.scale.len(),
                quant.zero_point.len()
            ))
            .expected(format!("{channels} of each"))));
        }
        if let Some(scale) = quant.scale.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            return Err(at(
                Error::input(format!("scale {scale}")).expected("a finite scale above zero")
            ));
        }
        let [low, high] = match tensor.dtype {
            DType::I8 => [-128, 127],
            DType::U8 => [0, 255],
            DType::I16 => [-32768, 32767],
            _ => [i32::MIN, i32::MAX],
        };
        if let Some(zero) = quant.zero_point.iter().find(|zero| !(low..=high).contains(*zero)) {
            return Err(at(
                Error::input(format!("zero point {zero}")).expected(format!("{low} to {high}"))
            ));
        }
    }
    Ok(())
}
