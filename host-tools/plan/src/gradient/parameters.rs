//! Trained parameters of layers, and the patterns that choose them by name.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::graph::{BinaryOp, DType, Data, Expr, Graph, Op, TensorId, TensorKind, facts};
use crate::model::gradients::UPDATE;

/// A parameter of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The tensor.
    pub tensor: TensorId,
    /// Its name in the weights source.
    pub name: String,
    /// Whether it is a bias.
    pub bias: bool,
}

/// The pattern that stands for the biases of all layers.
const BIASES: &str = "biases";

/// The parameters that the patterns choose, all of them where there is none.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a pattern that matches nothing; for parameters that are not f32, that pack computes from several, or that layers
/// share.
pub fn chosen(graph: &Graph, patterns: &[String]) -> Result<Vec<Parameter>> {
    let mut found = all(graph, !patterns.is_empty());
    if found.is_empty() {
        return Err(Error::input("--train: the network has no weights that can be trained")
            .expected("a convolution or a fully connected layer with constant f32 weights"));
    }
    for pattern in patterns {
        if !found.iter().any(|(parameter, _)| matches(pattern, parameter)) {
            let names: Vec<&str> = found.iter().map(|(parameter, _)| parameter.name.as_str()).collect();
            return Err(Error::input(format!("--trainable {pattern} matches no parameter"))
                .expected(format!("a pattern of {}, or {BIASES}", names.join(", "))));
        }
    }
    if !patterns.is_empty() {
        found.retain(|(parameter, _)| patterns.iter().any(|pattern| matches(pattern, parameter)));
    }
    let refused: Vec<String> = found
        .iter()
        .filter_map(|(parameter, layers)| {
            let reason = not_trainable(graph, parameter, *layers)?;
            Some(format!("`{}`: {reason}", parameter.name))
        })
        .collect();
    if !refused.is_empty() {
        return Err(Error::unsupported(format!("--train of {}", refused.join("; ")))
            .expected("f32 parameters of one layer, as the network has them")
            .help("--trainable PATTERN leaves the others as they are; one that takes a batch norm's gain or shift as well keeps it out of its layer"));
    }
    Ok(found.into_iter().map(|(parameter, _)| parameter).collect())
}

/// Whether a pattern chooses a parameter: by its name, in which `*` stands for any characters, or as a bias.
fn matches(pattern: &str, parameter: &Parameter) -> bool {
    (pattern == BIASES && parameter.bias) || fits(pattern.as_bytes(), parameter.name.as_bytes())
}

/// At most `pattern.len() * name.len()` comparisons: where a character differs, the last `*` takes one more, and earlier ones stay as they are.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Behind the last `*`, and the first character that it does not take.
    let mut again = None;
    while let Some(character) = name.get(from) {
        match (pattern.get(at), again) {
            (Some(b'*'), _) => {
                at += 1;
                again = Some((at, from));
            }
            (Some(other), _) if other == character => {
                at += 1;
                from += 1;
            }
            (_, Some((behind, taken))) => {
                (at, from) = (behind, taken + 1);
                again = Some((at, from));
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

/// The name of the step that updates a parameter: the parameter's, as `--trainable` knows it.
pub(super) fn update(graph: &Graph, parameter: TensorId) -> String {
    format!("{}{UPDATE}", keys(graph, parameter).join(" and "))
}

/// The constant parameters of layers, in the layers' order, and how many layers have each; with those of sums and products, where they are asked for.
fn all(graph: &Graph, of_elements: bool) -> Vec<(Parameter, usize)> {
    let mut order = Vec::new();
    let mut layers: BTreeMap<TensorId, usize> = BTreeMap::new();
    for node in &graph.nodes {
        let places: &[(usize, bool)] = match node.op {
            Op::LocallyConnected2d { .. } => &[(1, false), (2, true), (3, false)],
            _ if has_parameters(&node.op) => &[(1, false), (2, true)],
            Op::RmsNorm { .. } => &[(1, false)],
            Op::Binary {
                kind: BinaryOp::Add, ..
            } if of_elements => &[(0, true), (1, true)],
            Op::Binary {
                kind: BinaryOp::Mul, ..
            } if of_elements => &[(0, false), (1, false)],
            _ => continue,
        };
        for &(index, bias) in places {
            let Some(tensor) = node.inputs.get(index).copied().flatten() else {
                continue;
            };
            let is_number = graph.tensor(tensor).elements() == 1 && matches!(node.op, Op::Binary { .. });
            if !graph.tensor(tensor).is_const() || !is_parameter(graph, tensor) || is_number {
                continue;
            }
            let users = layers.entry(tensor).or_insert(0);
            *users += 1;
            if *users == 1 {
                let name = keys(graph, tensor).join(" and ");
                order.push(Parameter { tensor, name, bias });
            }
        }
    }
    order
        .into_iter()
        .map(|parameter| {
            let users = layers[&parameter.tensor];
            (parameter, users)
        })
        .collect()
}

/// Why a parameter cannot be trained, where it cannot.
fn not_trainable(graph: &Graph, parameter: &Parameter, layers: usize) -> Option<String> {
    let tensor = graph.tensor(parameter.tensor);
    if tensor.dtype != DType::F32 {
        return Some(format!("it is {}", tensor.dtype.name()));
    }
    if let TensorKind::Const(Data::Lazy(expr)) = &tensor.kind
        && !is_moved(expr)
    {
        return Some("the layer's value is computed from it and others when packing, as of a batch norm".into());
    }
    let users = graph.nodes.iter().filter(|node| {
        let inputs = node.inputs.iter().flatten();
        inputs.filter(|&&id| id == parameter.tensor).count() > 0
    });
    let several = layers > 1 || users.count() > 1 || shared(graph, parameter);
    several.then(|| "several operators have it".into())
}

/// Whether another tensor that an operator reads is made of the same parameter.
fn shared(graph: &Graph, parameter: &Parameter) -> bool {
    let own = keys(graph, parameter.tensor);
    let read = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
    let mut others = read.filter(|&&id| id != parameter.tensor && graph.tensor(id).is_const());
    others.any(|&id| {
        let TensorKind::Const(Data::Lazy(expr)) = &graph.tensor(id).kind else {
            return false;
        };
        let mut same = false;
        facts::for_each_param(expr, &mut |key, _| same |= own.iter().any(|own| own == key));
        same
    })
}

/// Whether the elements are those of one parameter, in whatever order: what is learnt belongs to that parameter then.
fn is_moved(expr: &Expr) -> bool {
    match expr {
        Expr::Param { .. } | Expr::Literal { .. } => true,
        Expr::Permute { of, .. } | Expr::Reshape { of, .. } | Expr::Reversed { of } => is_moved(of),
        Expr::Binary { .. } | Expr::RowSums { .. } | Expr::RsqrtEpsilon { .. } => false,
    }
}

/// Whether it is a layer whose operands 1 and 2 are weights and bias, or gain and shift.
fn has_parameters(op: &Op) -> bool {
    matches!(
        op,
        Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. } | Op::BatchNorm { trained: true, .. }
    )
}

/// Batch norms of which gain or shift will be trained stay operators, with the momentum that is `given` or their own; returns it where there are any. The
/// others are folded into the layers beside them. A pass ahead of all that fold.
pub fn keep_batch_norms(graph: &mut Graph, patterns: &[String], given: Option<f32>) -> Option<f32> {
    let mut found = None;
    for index in 0..graph.nodes.len() {
        let own = |operand: usize, bias: bool| {
            let tensor = graph.nodes[index].inputs.get(operand).copied().flatten()?;
            let name = keys(graph, tensor).join(" and ");
            Some(Parameter { tensor, name, bias })
        };
        let trained = [own(1, false), own(2, true)]
            .into_iter()
            .flatten()
            .any(|parameter| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, &parameter)));
        if let Op::BatchNorm {
            trained: kept,
            momentum,
            ..
        } = &mut graph.nodes[index].op
        {
            *kept = trained;
            *momentum = given.unwrap_or(*momentum);
            found = found.or(trained.then_some(*momentum));
        }
    }
    found
}

/// Whether a constant holds a parameter of the network, and is not made by an import: the matrix of a resize is nothing to learn.
fn is_parameter(graph: &Graph, id: TensorId) -> bool {
    let tensor = graph.tensor(id);
    let mut found = graph.stated.params.contains_key(&tensor.name);
    if let TensorKind::Const(Data::Lazy(expr)) = &tensor.kind {
        facts::for_each_param(expr, &mut |_, _| found = true);
    }
    found
}

/// Keys of the parameters of the weights source that a tensor's value is computed from; its name where there is none.
pub(super) fn keys(graph: &Graph, id: TensorId) -> Vec<String> {
    let tensor = graph.tensor(id);
    let mut keys = Vec::new();
    if let TensorKind::Const(Data::Lazy(expr)) | TensorKind::State(Data::Lazy(expr)) = &tensor.kind {
        facts::for_each_param(expr, &mut |key, _| keys.push(key.to_string()));
    }
    if keys.is_empty() {
        keys.push(tensor.name.clone());
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        let fits = |pattern: &str, name: &str| fits(pattern.as_bytes(), name.as_bytes());
        for (pattern, name, expected) in [
            ("fc*", "fc1.weight", true),
            ("fc*", "conv1.weight", false),
            ("*.bias", "conv1.bias", true),
            ("*.bias", "conv1.bias2", false),
            ("conv1.weight", "conv1.weight", true),
            ("c*1*t", "conv1.weight", true),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
        // However many stars there are.
        let (stars, name) = ("*".repeat(40), "a".repeat(200));
        assert!(fits(&stars, &name) && fits(&format!("{stars}a{stars}"), &name));
        assert!(!fits(&format!("{stars}x"), &name) && !fits(&format!("{}b", "*a".repeat(40)), &name));
        let bias = |bias| Parameter {
            tensor: TensorId(0),
            name: "b".into(),
            bias,
        };
        assert!(matches(BIASES, &bias(true)) && !matches(BIASES, &bias(false)));
    }
}
