//! What the names outside the forward half are for.

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

/// `AddN_3` -> `AddN`
fn numberless(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((stem, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}
