//! Names of calls: what of them is the operator, and what the operator does to its operand.

/// Calls whose result lies where their operand does.
const VIEWS: [&str; 41] = [
    "adjoint",
    "alias",
    "alpha_dropout",
    "broadcast_to",
    "chunk",
    "contiguous",
    "detach",
    "dropout",
    "expand",
    "expand_as",
    "feature_dropout",
    "flatten",
    "lift",
    "lift_fresh",
    "mT",
    "moveaxis",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "pixel_shuffle",
    "positive",
    "reshape",
    "reshape_as",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
];

/// The name of an ATen call without namespace and overload, and whether it writes its operand in place; other names as they are.
pub(super) fn called(target: &str) -> (&str, bool) {
    let Some(name) = target.strip_prefix("aten.") else {
        return (target, false);
    };
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    match name.strip_suffix('_') {
        Some(plain) if !plain.ends_with('_') => (plain, true),
        _ => (name, false),
    }
}

/// Whether a call has no value: what PyTorch checks while it runs.
pub(super) fn is_no_value(target: &str) -> bool {
    let (name, _) = called(target);
    name.starts_with("_assert_") || name.starts_with("sym_constrain_range")
}

/// Whether the result may lie where the operand does.
pub(super) fn is_view(name: &str) -> bool {
    VIEWS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(called("aten.relu_.default"), ("relu", true));
        assert_eq!(called("aten._softmax.default"), ("_softmax", false));
        assert_eq!(called("aten.__and__.Tensor"), ("__and__", false));
        assert_eq!(called("_operator.add"), ("_operator.add", false));
    }
}
