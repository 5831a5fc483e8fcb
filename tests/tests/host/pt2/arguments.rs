//! Arguments that the translation of a call refuses, one of each: by the call, the argument and what there may be.

use arenite_tests::writers::pt2::{archive, call, program, tensor};
use serde_json::{Value, json};

use crate::pt2::refused;

fn float(value: f64) -> Value {
    json!({"as_float": value})
}

/// As `torch.export` writes it.
fn no_number() -> Value {
    json!({"as_float": "NaN"})
}

fn int(value: i64) -> Value {
    json!({"as_int": value})
}

fn ints(values: &[i64]) -> Value {
    json!({"as_ints": values})
}

fn tensors(names: &[&str]) -> Value {
    let names: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"as_tensors": names})
}

fn yes() -> Value {
    json!({"as_bool": true})
}

const TRAINS: &str = "false: export the module in its inference mode (model.eval())";

#[test]
fn each_refusal_names_the_argument() {
    let x = || ("self", tensor("x"));
    let one = |name| (name, tensor("x"));
    type Case<'a> = (&'a str, Vec<(&'a str, Value)>, &'a str, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("aten.bitwise_not.default", vec![x()], "self", "truth values"),
        (
            "aten.bitwise_and.Tensor",
            vec![x(), one("other")],
            "self",
            "truth values",
        ),
        (
            "aten.elu.default",
            vec![x(), ("input_scale", float(2.0))],
            "input_scale",
            "1",
        ),
        (
            "aten.threshold.default",
            vec![x(), ("threshold", no_number()), ("value", float(1.0))],
            "threshold",
            "a number",
        ),
        (
            "aten.leaky_relu.default",
            vec![x(), ("negative_slope", no_number())],
            "negative_slope",
            "a number",
        ),
        (
            "aten.hardshrink.default",
            vec![x(), ("lambd", no_number())],
            "lambd",
            "a number",
        ),
        ("aten.clamp.default", vec![x(), ("min", no_number())], "min", "a number"),
        (
            "aten.dropout.default",
            vec![one("input"), ("train", yes())],
            "train",
            TRAINS,
        ),
        (
            "_operator.add",
            vec![("a", float(1.0)), ("b", int(1))],
            "a",
            "an integer",
        ),
        (
            "aten.one_hot.default",
            vec![x()],
            "num_classes",
            "the number of classes",
        ),
        (
            "aten.expand.default",
            vec![x(), ("size", int(1))],
            "size",
            "a list of integers",
        ),
        (
            "aten.roll.default",
            vec![x(), ("shifts", ints(&[1]))],
            "dims",
            "an axis for each shift",
        ),
        (
            "aten.pad.default",
            vec![x(), ("pad", ints(&[1]))],
            "pad",
            "two numbers for each of the last axes",
        ),
        (
            "aten.pad.default",
            vec![x(), ("pad", ints(&[1, 1])), ("mode", json!({"as_string": "fold"}))],
            "mode",
            "constant, reflect, replicate or circular",
        ),
        (
            "aten.channel_shuffle.default",
            vec![x(), ("groups", int(0))],
            "groups",
            "at least 1",
        ),
        (
            "aten.channel_shuffle.default",
            vec![("self", tensor("w")), ("groups", int(1))],
            "self",
            "batch and channels",
        ),
        (
            "aten.slice_scatter.default",
            vec![x(), one("src"), ("step", int(2))],
            "step",
            "1",
        ),
        (
            "aten.batch_norm.default",
            vec![one("input"), ("training", yes())],
            "training",
            TRAINS,
        ),
        (
            "aten.var.correction",
            vec![x(), ("dim", ints(&[1])), ("correction", int(3))],
            "correction",
            "less than the number of elements",
        ),
        (
            "aten.norm.ScalarOpt_dim",
            vec![x(), ("p", float(0.5))],
            "p",
            "1, 2 or infinity",
        ),
        (
            "aten.scaled_dot_product_attention.default",
            vec![one("query"), one("key"), one("value"), ("dropout_p", float(0.5))],
            "dropout_p",
            "0: export the module in its inference mode (model.eval())",
        ),
        (
            "aten.lstm.data",
            vec![one("data")],
            "data",
            "sequences of one length, not packed ones",
        ),
        (
            "aten.lstm.input",
            vec![one("input"), ("hx", tensors(&["x"])), ("params", tensors(&["w"]))],
            "params",
            "weights and biases of each layer and direction, without projections",
        ),
        (
            "aten.gru.input",
            vec![
                one("input"),
                one("hx"),
                ("params", tensors(&["w"; 4])),
                ("dropout", float(0.5)),
                ("train", yes()),
            ],
            "train",
            TRAINS,
        ),
        (
            "aten.rnn_tanh.input",
            vec![one("input"), one("hx"), ("params", tensors(&["w"; 4]))],
            "input",
            "sequences, batch and elements: three axes",
        ),
        (
            "aten.upsample_nearest2d.vec",
            vec![one("input")],
            "output_size",
            "the size of the result, or factors",
        ),
        (
            "aten.avg_pool1d.default",
            vec![x(), ("divisor_override", int(2))],
            "divisor_override",
            "none",
        ),
        (
            "aten.adaptive_avg_pool1d.default",
            vec![x(), ("output_size", ints(&[1000]))],
            "output_size",
            "at most 256 elements where windows differ in length",
        ),
        (
            "aten.index.Tensor",
            vec![
                x(),
                (
                    "indices",
                    json!({"as_optional_tensors": [{"as_tensor": {"name": "w"}}, {"as_tensor": {"name": "w"}}]}),
                ),
            ],
            "indices",
            "integers for one axis",
        ),
    ];
    for (target, arguments, argument, expected) in cases {
        let file = archive(&program(&[call(target, &arguments, "y")]));
        refused(
            &file,
            &[
                &format!("({target})"),
                &format!("its argument `{argument}` is "),
                &format!("expected {expected}"),
            ],
        );
    }
}

#[test]
fn indices_of_an_adaptive_pooling_are_refused() {
    let mut pool = call(
        "aten.adaptive_max_pool1d.default",
        &[("self", tensor("x")), ("output_size", ints(&[1]))],
        "y",
    );
    pool["outputs"] = json!([tensor("y"), tensor("places")]);
    let sum = call(
        "aten.add.Tensor",
        &[("self", tensor("y")), ("other", tensor("places"))],
        "sum",
    );
    refused(
        &archive(&program(&[pool, sum])),
        &["its argument `output_size` is", "a pooling whose indices nobody reads"],
    );
}

/// Numbers at their limits: an answer, never a panic.
#[test]
fn numbers_at_their_limits_never_panic() {
    let list = |number: i64| [int(number), ints(&[number]), ints(&[number, number])];
    let cases = [
        ("aten.chunk.default", vec!["chunks"]),
        ("aten.split.Tensor", vec!["split_size", "dim"]),
        ("aten.tensor_split.sections", vec!["sections"]),
        ("aten.roll.default", vec!["shifts"]),
        ("aten.slice.Tensor", vec!["start", "end", "step", "dim"]),
        ("aten.select.int", vec!["index", "dim"]),
        ("aten.narrow.default", vec!["start", "length"]),
        ("aten.slice_scatter.default", vec!["start", "end"]),
        ("aten.select_scatter.default", vec!["index"]),
        ("aten.repeat.default", vec!["repeats"]),
        ("aten.repeat_interleave.self_int", vec!["repeats"]),
        ("aten.pad.default", vec!["pad"]),
        ("aten.view.default", vec!["size"]),
        ("aten.expand.default", vec!["size"]),
        ("aten.flatten.using_ints", vec!["start_dim", "end_dim"]),
        ("aten.movedim.int", vec!["source", "destination"]),
        ("aten.permute.default", vec!["dims"]),
        ("aten.flip.default", vec!["dims"]),
        ("aten.channel_shuffle.default", vec!["groups"]),
        ("aten.pixel_shuffle.default", vec!["upscale_factor"]),
        ("aten.adaptive_avg_pool1d.default", vec!["output_size"]),
        (
            "aten.max_pool1d.default",
            vec!["kernel_size", "stride", "padding", "dilation"],
        ),
        ("aten.var.correction", vec!["correction", "dim"]),
        ("aten.eye.m", vec!["n", "m"]),
        ("aten.full.default", vec!["size", "fill_value"]),
        ("aten.arange.start_step", vec!["start", "end", "step"]),
        ("aten.topk.default", vec!["k", "dim"]),
        ("aten.cumsum.default", vec!["dim"]),
        ("aten.one_hot.default", vec!["num_classes"]),
    ];
    for (target, names) in cases {
        for number in [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, 1 << 32, i64::MAX - 1, i64::MAX] {
            for form in 0..3 {
                let numbers = names.iter().map(|name| (*name, list(number)[form].clone()));
                let mut arguments = vec![("self", tensor("x")), ("src", tensor("x")), ("dims", ints(&[0]))];
                arguments.retain(|(name, _)| !names.contains(name));
                arguments.extend(numbers);
                let _ = crate::pt2::said(
                    &archive(&program(&[call(target, &arguments, "y")])),
                    &Default::default(),
                );
            }
        }
    }
}
