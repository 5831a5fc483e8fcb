//! The training step that a trace states, with the backward half that its framework makes of the forward half: what is alive in it, and which of the trace's
//! operators are those.
//!
//! Every operator has buffers of its own, alive from the operator that writes it to its last reader. Reshapes, transposes and sums' gradients are other
//! names of one buffer; what is trained, and what a kernel keeps to itself, is none. A parameter's gradient that nobody reads is a result, and lives to the
//! end.

mod keras;
mod live;
mod styles;

use std::collections::BTreeMap;

use self::live::Operator;
use crate::error::{Error, Result};
use crate::graph::{Graph, Role};

/// How many names a message lists.
const LISTED: usize = 5;

/// A traced training step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// The most bytes that are alive at once.
    pub live_bytes: u64,
    /// Operators of the trace's training half that the forward half asks for, by what they are: `gradients`, `zeroings`, `updates`, `allreduces`.
    pub matched: BTreeMap<&'static str, usize>,
}

/// The training step of a network as it was imported; none of a trace without a backward half, and of networks of operators whose gradients the frameworks
/// that are known here do not have.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] where the trace's half lacks operators, or has others.
pub fn of(graph: &Graph) -> Result<Option<Traced>> {
    let names: Vec<&str> = graph
        .nodes
        .iter()
        .filter(|node| node.role == Role::Backward)
        .map(|node| node.name.as_str())
        .collect();
    let any = |is: &dyn Fn(&str) -> bool| names.iter().any(|name| is(name));
    // Each framework spells the names of gradients in its own way.
    let stated = if any(&|name| name.starts_with(keras::TAPE)) {
        keras::step(graph)
    } else if any(&|name| name.starts_with(styles::TF_SCOPE)) {
        styles::a_few_for_each(graph)
    } else if any(&|name| name.ends_with(styles::ONE_END)) {
        styles::one_for_each(graph)
    } else if any(&|name| name.ends_with(styles::CLEARED_END)) {
        styles::cleared(graph)
    } else {
        None
    };
    let Some(operators) = stated else { return Ok(None) };
    let matched = matched(graph, &operators)?;
    Ok(Some(Traced {
        live_bytes: live::most(graph, &operators),
        matched,
    }))
}

/// Counts the operators that both halves have.
fn matched(graph: &Graph, operators: &[Operator]) -> Result<BTreeMap<&'static str, usize>> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let outside = graph.nodes.iter().filter(|node| node.role != Role::Forward);
    for node in outside.filter(|node| styles::is_operator(node)) {
        *left.entry(&node.name).or_insert(0) += 1;
    }
    let (mut counts, mut missing) = (BTreeMap::new(), Vec::new());
    for operator in operators {
        for (name, kind) in &operator.names {
            match left.get_mut(name.as_str()).filter(|count| **count > 0) {
                Some(count) => {
                    *count -= 1;
                    *counts.entry(*kind).or_insert(0) += 1;
                }
                None => missing.push(format!("`{name}`")),
            }
        }
    }
    let others: Vec<String> = left
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if missing.is_empty() && others.is_empty() {
        return Ok(counts);
    }
    let listed = |names: &[String]| {
        let more = if names.len() > LISTED { ", …" } else { "" };
        format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
    };
    let lacks = (!missing.is_empty()).then(|| format!("lacks {}", listed(&missing)));
    let has = (!others.is_empty()).then(|| {
        format!(
            "has {}, which no operator of the forward half asks for",
            listed(&others)
        )
    });
    let said: Vec<String> = lacks.into_iter().chain(has).collect();
    Err(
        Error::input(format!("the trace's training half {}", said.join(", and ")))
            .expected("one gradient of each operator, and one update of each parameter where there are any")
            .help("without --train the forward half alone is read"),
    )
}
