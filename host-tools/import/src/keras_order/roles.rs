//! Purposes of the names outside the forward half.

use crate::graph::Role;

/// The role of an operator under a layer that does not compute the network's output.
pub(super) fn of_layer(op: &str) -> Option<Role> {
    let last = op.rsplit('/').next().unwrap_or(op);
    match last {
        _ if last.starts_with("AssignNewValue") => Some(Role::Optimizer),
        _ if last.starts_with("ReadVariableOp") => Some(Role::Bookkeeping),
        "paddings" | "reduction_indices" => Some(Role::Bookkeeping),
        _ if last.ends_with("-LayoutOptimizer") => Some(Role::Bookkeeping),
        _ => None,
    }
}

/// The role of any name outside the forward half; `None` for a name of no known kind.
pub(super) fn of(name: &str, network: &str) -> Option<Role> {
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    if first == network {
        return of_layer(rest);
    }
    let first = numberless(first);
    Some(match first {
        "gradient_tape" | "AddN" => Role::Backward,
        "SGD" | "Adam" | "RMSprop" => Role::Optimizer,
        "DistributedGradientTape_Allreduce" => Role::Allreduce,
        "SparseSoftmaxCrossEntropyWithLogits" | "softmax_cross_entropy_with_logits" => Role::Loss,
        "ConstantFolding" | "ArithmeticOptimizer" | "Func" | "AssignVariableOp" | "Cast" | "Reshape" => {
            Role::Bookkeeping
        }
        _ if first.starts_with("HorovodBroadcast") => Role::Bookkeeping,
        _ if name.ends_with("-LayoutOptimizer") => Role::Bookkeeping,
        _ => return None,
    })
}

/// The layer, and the operator where there is one, that a name outside the forward half belongs to: its gradients, and broadcasts of its variables.
pub(super) fn trained<'n>(name: &'n str, network: &str) -> Option<(&'n str, Option<&'n str>)> {
    if let Some(variable) = name.strip_prefix("HorovodBroadcast.") {
        let variable = numberless(variable.split('/').next()?);
        let kinds = [
            "_kernel",
            "_bias",
            "_gamma",
            "_beta",
            "_moving_mean",
            "_moving_variance",
        ];
        return kinds.iter().find_map(|kind| Some((variable.strip_suffix(kind)?, None)));
    }
    let (_, inside) = name.split_once("gradient_tape/")?;
    let (layer, op) = inside.strip_prefix(network)?.strip_prefix('/')?.split_once('/')?;
    let op = numberless(op.split('/').next()?);
    Some((
        layer,
        Some(if op == "FusedBatchNormGradV3" {
            "FusedBatchNormV3"
        } else {
            op.strip_suffix("Grad").unwrap_or(op)
        }),
    ))
}

/// Whether the name is the update of one parameter.
pub(super) fn is_update(name: &str) -> bool {
    name.rsplit('/')
        .next()
        .is_some_and(|last| last.starts_with("ResourceApply"))
}

/// Whether the name is one gradient, averaged between workers.
pub(super) fn is_averaged(name: &str) -> bool {
    name.starts_with("DistributedGradientTape_Allreduce/cond") && name.contains("/output/")
}

/// `AddN_3` -> `AddN`
fn numberless(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((stem, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}
