//! The calls that are read: a row each, with the translation. `docs/pt2.md` is made of these rows, and of those of `core/src/ops/pointwise.rs`.

use super::call::{Call, Made};
use super::program::Node;
use super::{binary, creation, movement, norms, pointwise, products, recurrent, resize, windows};
use crate::error::Result;
use arenite::ops::pointwise::Function;

/// A call that is read: its name without namespace and overload.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Limits of the operator, for the table.
    pub(super) limits: &'static str,
    rule: Rule,
}

/// How a call is translated.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    One(fn(&mut Call<'_>) -> Made),
    Several(fn(&mut Call<'_>) -> Result<Vec<String>>),
}

use Rule::{One, Several};

const fn one(name: &'static str, rule: fn(&mut Call<'_>) -> Made) -> Row {
    limited(name, "", One(rule))
}

const fn several(name: &'static str, rule: fn(&mut Call<'_>) -> Result<Vec<String>>) -> Row {
    limited(name, "", Several(rule))
}

const fn limited(name: &'static str, limits: &'static str, rule: Rule) -> Row {
    Row { name, limits, rule }
}

/// Calls of integers that are computed of extents, by all of their name.
const OF_SYMBOLS: [&str; 7] = [
    "_operator.add",
    "_operator.floordiv",
    "_operator.mul",
    "_operator.sub",
    "torch.sym_max",
    "torch.sym_min",
    "_operator.floor_divide",
];

/// The rule of a call of this name.
pub(super) fn rule(name: &str, node: &Node) -> Option<Rule> {
    if OF_SYMBOLS.contains(&name) {
        return Some(One(binary::of_symbols));
    }
    if !node.target.starts_with("aten.") {
        return None;
    }
    match ROWS.binary_search_by(|row| row.name.cmp(name)) {
        Ok(at) => Some(ROWS[at].rule),
        Err(_) => pointwise::row(node).map(|_| One(pointwise::function)),
    }
}

/// All names that are read, sorted, each with what is refused of it.
pub(super) fn names() -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = ROWS.iter().map(|row| (row.name, row.limits)).collect();
    let pointwise = Function::rows().filter_map(|(_, names)| names.aten);
    names.extend(pointwise.map(|aten| (aten.name, "")));
    names.sort_unstable();
    names.dedup_by_key(|(name, _)| *name);
    names
}

/// Sorted by name.
const ROWS: &[Row] = &[
    limited("__and__", "truth values", One(binary::bitwise_and)),
    limited("__or__", "truth values", One(binary::bitwise_or)),
    limited("__xor__", "truth values", One(binary::bitwise_xor)),
    one("_adaptive_avg_pool2d", windows::adaptive_avg_pool),
    one("_adaptive_avg_pool3d", windows::adaptive_avg_pool),
    one("_convolution", windows::conv),
    several("_fused_rms_norm", norms::rms_norm),
    one("_log_softmax", norms::log_softmax),
    limited(
        "_native_batch_norm_legit_no_training",
        "inference",
        Several(norms::batch_norm),
    ),
    one("_prelu_kernel", pointwise::prelu),
    one("_reshape_copy", movement::reshape),
    one("_safe_softmax", norms::softmax),
    limited(
        "_scaled_dot_product_flash_attention_for_cpu",
        "of four axes or three, without dropout",
        Several(products::attention),
    ),
    one("_softmax", norms::softmax),
    one("_to_copy", pointwise::converted),
    one("_unsafe_view", movement::reshape),
    one("_upsample_nearest_exact1d", resize::nearest_exact),
    one("_upsample_nearest_exact2d", resize::nearest_exact),
    one("_upsample_nearest_exact3d", resize::nearest_exact),
    one("_weight_norm", products::weight_norm),
    one("adaptive_avg_pool1d", windows::adaptive_avg_pool),
    one("adaptive_avg_pool2d", windows::adaptive_avg_pool),
    one("adaptive_avg_pool3d", windows::adaptive_avg_pool),
    limited(
        "adaptive_max_pool1d",
        "without indices",
        Several(windows::adaptive_max_pool),
    ),
    limited(
        "adaptive_max_pool2d",
        "without indices",
        Several(windows::adaptive_max_pool),
    ),
    limited(
        "adaptive_max_pool3d",
        "without indices",
        Several(windows::adaptive_max_pool),
    ),
    one("add", binary::add),
    one("addcdiv", binary::addcdiv),
    one("addcmul", binary::addcmul),
    one("addmm", products::addmm),
    one("adjoint", movement::turned),
    one("alias", pointwise::same),
    one("all", norms::all),
    limited("alpha_dropout", "inference", One(pointwise::dropout)),
    one("amax", norms::amax),
    one("amin", norms::amin),
    one("any", norms::any),
    one("arange", creation::arange),
    limited("arctan", "of constants", One(pointwise::atan)),
    one("argmax", norms::argmax),
    one("argmin", norms::argmin),
    limited("atan", "of constants", One(pointwise::atan)),
    limited("avg_pool1d", "without divisor_override", One(windows::avg_pool)),
    limited("avg_pool2d", "without divisor_override", One(windows::avg_pool)),
    limited("avg_pool3d", "without divisor_override", One(windows::avg_pool)),
    one("baddbmm", products::baddbmm),
    limited("batch_norm", "inference", Several(norms::batch_norm)),
    limited("bitwise_and", "truth values", One(binary::bitwise_and)),
    limited("bitwise_not", "truth values", One(pointwise::bitwise_not)),
    limited("bitwise_or", "truth values", One(binary::bitwise_or)),
    limited("bitwise_xor", "truth values", One(binary::bitwise_xor)),
    one("bmm", products::matmul),
    one("broadcast_to", movement::expand),
    one("cat", movement::cat),
    one("celu", pointwise::celu),
    one("channel_shuffle", movement::channel_shuffle),
    several("chunk", movement::split),
    one("clamp", pointwise::clamp),
    one("clamp_max", pointwise::clamp),
    one("clamp_min", pointwise::clamp),
    one("clip", pointwise::clamp),
    one("clone", pointwise::same),
    one("concat", movement::cat),
    one("concatenate", movement::cat),
    one("constant_pad_nd", movement::pad),
    one("contiguous", pointwise::same),
    one("conv1d", windows::conv),
    one("conv2d", windows::conv),
    one("conv3d", windows::conv),
    one("conv_transpose1d", windows::conv),
    one("conv_transpose2d", windows::conv),
    one("conv_transpose3d", windows::conv),
    one("convolution", windows::conv),
    one("copy", binary::copy),
    one("cosine_similarity", products::cosine),
    one("cumsum", norms::cumsum),
    one("detach", pointwise::same),
    one("div", binary::div),
    one("divide", binary::div),
    one("dot", products::matmul),
    limited("dropout", "inference", One(pointwise::dropout)),
    limited(
        "einsum",
        "a product of two operands, or a sum of one",
        One(products::einsum),
    ),
    limited("elu", "scales of 1", One(pointwise::elu)),
    one("embedding", movement::embedding),
    one("empty", creation::zeros),
    one("empty_like", creation::zeros_like),
    one("eq", binary::eq),
    one("erfc", pointwise::erfc),
    one("exp2", pointwise::exp2),
    one("expand", movement::expand),
    one("expand_as", movement::expand_as),
    one("expand_copy", movement::expand),
    one("expm1", pointwise::expm1),
    one("eye", creation::eye),
    limited("feature_dropout", "inference", One(pointwise::dropout)),
    one("fill", creation::full_like),
    one("fix", pointwise::trunc),
    one("flatten", movement::flatten),
    one("flip", movement::flip),
    one("floor_divide", binary::floor_divide),
    one("fmod", binary::fmod),
    one("frac", pointwise::frac),
    one("full", creation::full),
    one("full_like", creation::full_like),
    limited("gather", "constant indices", One(movement::gather)),
    one("ge", binary::ge),
    one("ger", products::outer),
    one("glu", pointwise::glu),
    one("greater", binary::gt),
    one("greater_equal", binary::ge),
    several("group_norm", norms::group_norm),
    limited("gru", "sequences of one length", Several(recurrent::gru)),
    one("gt", binary::gt),
    one("hardshrink", pointwise::hardshrink),
    one("hardtanh", pointwise::hardtanh),
    limited("index", "of one axis", One(movement::index)),
    limited(
        "index_select",
        "constant indices, or rows of a matrix",
        One(movement::index_select),
    ),
    one("instance_norm", norms::instance_norm),
    one("isinf", pointwise::is_inf),
    one("isnan", pointwise::is_nan),
    several("layer_norm", norms::layer_norm),
    one("le", binary::le),
    one("leaky_relu", pointwise::leaky_relu),
    one("lerp", binary::lerp),
    one("less", binary::lt),
    one("less_equal", binary::le),
    one("lift", pointwise::same),
    one("lift_fresh", pointwise::same),
    one("lift_fresh_copy", pointwise::same),
    limited("linalg_vector_norm", "of order 1, 2 or infinity", One(norms::norm)),
    one("linear", products::linear),
    one("log10", pointwise::log10),
    one("log1p", pointwise::log1p),
    one("log2", pointwise::log2),
    one("log_sigmoid", pointwise::log_sigmoid),
    one("log_softmax", norms::log_softmax),
    one("logical_and", binary::and),
    one("logical_not", pointwise::not),
    one("logical_or", binary::or),
    one("logical_xor", binary::xor),
    one("logit", pointwise::logit),
    one("logsumexp", norms::logsumexp),
    limited("lstm", "sequences of one length", Several(recurrent::lstm)),
    one("lt", binary::lt),
    one("mT", movement::turned),
    one("masked_fill", binary::masked_fill),
    one("matmul", products::matmul),
    several("max", norms::max),
    limited("max_pool1d", "without indices", Several(windows::max_pool)),
    limited("max_pool1d_with_indices", "without indices", Several(windows::max_pool)),
    limited("max_pool2d", "without indices", Several(windows::max_pool)),
    limited("max_pool2d_with_indices", "without indices", Several(windows::max_pool)),
    limited("max_pool3d", "without indices", Several(windows::max_pool)),
    limited("max_pool3d_with_indices", "without indices", Several(windows::max_pool)),
    one("maximum", binary::maximum),
    one("mean", norms::mean),
    several("min", norms::min),
    one("minimum", binary::minimum),
    one("mish", pointwise::mish),
    one("mm", products::matmul),
    one("moveaxis", movement::movedim),
    one("movedim", movement::movedim),
    one("mul", binary::mul),
    one("multiply", binary::mul),
    one("mv", products::matmul),
    one("narrow", movement::narrow),
    one("narrow_copy", movement::narrow),
    limited("native_batch_norm", "inference", Several(norms::batch_norm)),
    several("native_group_norm", norms::group_norm),
    several("native_layer_norm", norms::layer_norm),
    one("ne", binary::ne),
    one("new_empty", creation::zeros),
    one("new_full", creation::full),
    one("new_ones", creation::ones),
    one("new_zeros", creation::zeros),
    limited("norm", "of order 1, 2 or infinity", One(norms::norm)),
    one("not_equal", binary::ne),
    one("numpy_T", movement::turned),
    limited("one_hot", "of a stated number of classes", One(creation::one_hot)),
    one("ones", creation::ones),
    one("ones_like", creation::ones_like),
    one("outer", products::outer),
    one("pad", movement::pad),
    one("permute", movement::permute),
    one("permute_copy", movement::permute),
    one("pixel_shuffle", movement::pixel_shuffle),
    one("pixel_unshuffle", movement::pixel_unshuffle),
    one("positive", pointwise::same),
    one("pow", binary::pow),
    one("prelu", pointwise::prelu),
    limited("prod", "of at most 256 factors", One(norms::prod)),
    one("reciprocal", pointwise::reciprocal),
    one("reflection_pad1d", movement::pad),
    one("reflection_pad2d", movement::pad),
    one("reflection_pad3d", movement::pad),
    one("relu", pointwise::relu),
    one("relu6", pointwise::relu6),
    one("remainder", binary::remainder),
    one("repeat", movement::repeat),
    limited(
        "repeat_interleave",
        "by one number along an axis",
        One(movement::repeat_interleave),
    ),
    one("replication_pad1d", movement::pad),
    one("replication_pad2d", movement::pad),
    one("replication_pad3d", movement::pad),
    one("reshape", movement::reshape),
    one("reshape_as", movement::reshape_as),
    several("rms_norm", norms::rms_norm),
    limited("rnn_relu", "sequences of one length", Several(recurrent::rnn_relu)),
    limited("rnn_tanh", "sequences of one length", Several(recurrent::rnn_tanh)),
    limited("roll", "along named axes", One(movement::roll)),
    one("rsub", binary::rsub),
    one("scalar_tensor", creation::scalar),
    limited(
        "scaled_dot_product_attention",
        "of four axes or three, without dropout",
        Several(products::attention),
    ),
    one("select", movement::select),
    one("select_copy", movement::select),
    one("select_scatter", movement::select_scatter),
    one("selu", pointwise::selu),
    one("silu", pointwise::silu),
    one("slice", movement::slice),
    one("slice_copy", movement::slice),
    limited("slice_scatter", "steps of 1", One(movement::slice_scatter)),
    one("softmax", norms::softmax),
    one("softshrink", pointwise::softshrink),
    one("special_erfc", pointwise::erfc),
    one("special_expm1", pointwise::expm1),
    one("special_log1p", pointwise::log1p),
    one("special_logit", pointwise::logit),
    one("special_logsumexp", norms::logsumexp),
    several("split", movement::split),
    several("split_copy", movement::split),
    several("split_with_sizes", movement::split),
    several("split_with_sizes_copy", movement::split),
    one("squeeze", movement::squeeze),
    one("squeeze_copy", movement::squeeze),
    one("stack", movement::stack),
    several("std", norms::std),
    several("std_mean", norms::std),
    one("sub", binary::sub),
    one("subtract", binary::sub),
    one("sum", norms::sum),
    one("swapaxes", movement::transpose),
    one("swapdims", movement::transpose),
    one("sym_size", binary::size),
    one("t", movement::turned),
    one("t_copy", movement::turned),
    limited("take_along_dim", "constant indices", One(movement::gather)),
    one("tan", pointwise::tan),
    several("tensor_split", movement::split),
    one("threshold", pointwise::threshold),
    one("tile", movement::repeat),
    one("to", pointwise::converted),
    limited("topk", "of constants, or k = 1", Several(norms::topk)),
    one("transpose", movement::transpose),
    one("transpose_copy", movement::transpose),
    one("tril", binary::tril),
    one("triu", binary::triu),
    one("true_divide", binary::div),
    one("trunc", pointwise::trunc),
    one("type_as", pointwise::converted),
    several("unbind", movement::unbind),
    several("unbind_copy", movement::unbind),
    one("unflatten", movement::unflatten),
    several("unsafe_chunk", movement::split),
    several("unsafe_split", movement::split),
    several("unsafe_split_with_sizes", movement::split),
    one("unsqueeze", movement::unsqueeze),
    one("unsqueeze_copy", movement::unsqueeze),
    one("upsample_bicubic2d", resize::cubic),
    one("upsample_bilinear2d", resize::linear),
    one("upsample_linear1d", resize::linear),
    one("upsample_nearest1d", resize::nearest),
    one("upsample_nearest2d", resize::nearest),
    one("upsample_nearest3d", resize::nearest),
    one("upsample_trilinear3d", resize::linear),
    several("var", norms::var),
    several("var_mean", norms::var),
    one("view", movement::reshape),
    one("view_as", movement::reshape_as),
    one("view_copy", movement::reshape),
    one("where", binary::choice),
    one("zero", creation::zeros_like),
    one("zeros", creation::zeros),
    one("zeros_like", creation::zeros_like),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted() {
        assert!(ROWS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
