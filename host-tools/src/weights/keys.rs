//! Names of parameters: those that a graph wants, and what is said where one is missing.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};
use crate::graph::facts::for_each_param;
use crate::graph::{Data, Graph, TensorKind};

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
pub(crate) fn missing(key: &str, keys: &[String]) -> Error {
    let mut near: Vec<(usize, &String)> = keys.iter().map(|k| (distance(key, k), k)).collect();
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

/// Levenshtein distance of the first 64 characters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
