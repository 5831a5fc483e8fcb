//! Names of parameters: those that a graph wants, and what is said where one is missing.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};
use crate::graph::facts::for_each_param;
use crate::graph::{Data, Graph, TensorKind};
use crate::spelling::distance;

/// Every parameter that the graph's constants read, with its traced shape, in name order.
pub fn params(graph: &Graph) -> BTreeMap<&str, &[usize]> {
    let mut params = BTreeMap::new();
    for tensor in &graph.tensors {
        if let TensorKind::Const(Data::Lazy(expr)) | TensorKind::State(Data::Lazy(expr)) = &tensor.kind {
            for_each_param(expr, &mut |key, shape| {
                params.insert(key, shape);
            });
        }
    }
    params
}

/// The error where a file lacks a parameter: what it has instead.
pub fn missing(key: &str, keys: &[String]) -> Error {
    // Whoever writes keys of kilobytes is not kept waiting.
    let start = |key: &str| key.chars().take(64).collect::<String>();
    let mut near: Vec<(usize, &String)> = keys.iter().map(|k| (distance(&start(key), &start(k)), k)).collect();
    near.sort();
    let near: Vec<_> = near.iter().take(3).map(|(_, k)| format!("`{k}`")).collect();
    let error = Error::new(ErrorKind::Weights, format!("parameter `{key}` is missing"));
    if near.is_empty() {
        return error.help("the file is empty");
    }
    error.help(format!(
        "the file has {} entries, nearest: {}",
        keys.len(),
        near.join(", ")
    ))
}
