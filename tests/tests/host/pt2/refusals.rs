//! Unsupported parts of programs: by the name of the call, all at once, with advice.

use arenite_host::import::ImportOptions;
use arenite_tests::writers::pt2::{archive, call, meta, program, small, tensor};
use serde_json::{Value, json};

use crate::pt2::{refused, said};

fn number(value: f64) -> Value {
    json!({"as_float": value})
}

/// A call of one operand.
fn of_x(target: &str, result: &str) -> Value {
    call(target, &[("self", tensor("x"))], result)
}

#[test]
fn calls_that_are_not_supported_are_named_together() {
    let calls = [
        of_x("aten.fft_fft.default", "fft"),
        of_x("aten.relu.default", "relu"),
        call(
            "aten.foo.default",
            &[("self", tensor("relu")), ("other", tensor("fft"))],
            "foo",
        ),
        of_x("mylib.bar.default", "bar"),
        call(
            "aten.mul.Tensor",
            &[("self", tensor("relu")), ("other", tensor("bar"))],
            "mul",
        ),
    ];
    refused(
        &archive(&program(&calls)),
        &[
            "node 3 (mylib.bar.default) that writes `bar`: not supported",
            "torch.onnx.export",
        ],
    );
    let mut both = calls.to_vec();
    both.push(call(
        "aten.add.Tensor",
        &[("self", tensor("mul")), ("other", tensor("fft"))],
        "add",
    ));
    refused(
        &archive(&program(&both)),
        &[
            "2 nodes are not supported",
            "node 0 (aten.fft_fft.default) that writes `fft`",
            "node 3 (mylib.bar.default)",
        ],
    );
    // Calls that no output needs may be anything.
    let mut unneeded = calls.to_vec();
    unneeded.push(of_x("aten.neg.default", "neg"));
    said(&archive(&program(&unneeded)), &ImportOptions::default()).expect("it is read");
}

#[test]
fn arguments_out_of_range_are_refused_by_name() {
    for (call, parts) in [
        (
            call(
                "aten.elu.default",
                &[("self", tensor("x")), ("scale", number(2.0))],
                "y",
            ),
            ["(aten.elu.default)", "its argument `scale` is 2", "expected 1"],
        ),
        (
            call(
                "aten.dropout.default",
                &[("input", tensor("x")), ("train", json!({"as_bool": true}))],
                "y",
            ),
            ["(aten.dropout.default)", "its argument `train` is true", "model.eval()"],
        ),
        (
            call("aten.mm.default", &[("self", number(1.0))], "y"),
            [
                "(aten.mm.default)",
                "its argument `self` is missing, or of another kind",
                "a tensor",
            ],
        ),
        (
            call(
                "aten.softmax.int",
                &[("self", tensor("x")), ("dim", json!({"as_string": "a"}))],
                "y",
            ),
            [
                "(aten.softmax.int)",
                "its argument `dim` is missing, or of another kind",
                "an integer",
            ],
        ),
        (
            call("aten.norm.Scalar", &[("self", tensor("x")), ("p", number(3.0))], "y"),
            ["(aten.norm.Scalar)", "its argument `p` is 3", "1, 2 or infinity"],
        ),
        (
            call(
                "aten.mean.dim",
                &[("self", tensor("x")), ("dim", json!({"as_ints": [2]}))],
                "y",
            ),
            [
                "(aten.mean.dim)",
                "its argument `dim` is missing, or of another kind",
                "an axis of its operand",
            ],
        ),
    ] {
        refused(&archive(&program(&[call])), &parts);
    }
}

/// A program whose `x` has a first extent that is an expression.
fn open(calls: &[Value]) -> Vec<u8> {
    let mut program = program(calls);
    let values = program["graph_module"]["graph"]["tensor_values"]
        .as_object_mut()
        .expect("values");
    for (_, value) in values.iter_mut().filter(|(name, _)| *name != "w") {
        value["sizes"][0] = json!({"as_expr": {"expr_str": "s0", "hint": {"as_int": 2}}});
    }
    archive(&program)
}

#[test]
fn calls_that_need_an_open_extent_are_refused() {
    let calls = [call(
        "aten.var.correction",
        &[("self", tensor("x")), ("dim", json!({"as_ints": [0]}))],
        "y",
    )];
    refused(
        &open(&calls),
        &[
            "(aten.var.correction)",
            "dynamic shape: `self` depends on extents that the program leaves open",
            "dynamic_shapes",
        ],
    );
    said(&open(&[of_x("aten.relu.default", "y")]), &ImportOptions::default()).expect("it is read");
}

/// A program with one change of its signature or graph.
fn changed(change: &dyn Fn(&mut Value)) -> Vec<u8> {
    let mut program = small();
    change(&mut program["graph_module"]);
    archive(&program)
}

#[test]
fn what_a_program_keeps_from_run_to_run_is_refused_by_name() {
    let kept = "the program writes what it keeps from run to run: ";
    let mutation = json!({"buffer_mutation": {"arg": {"name": "add"}, "buffer_name": "cache.k"}});
    let file = changed(&|module| {
        let specs = module["signature"]["output_specs"].as_array_mut().expect("a list");
        specs.push(mutation.clone());
    });
    refused(&file, &[kept, "`cache.k`", "--state IN=OUT"]);
    let calls = [
        call(
            "aten.add_.Tensor",
            &[("self", tensor("w")), ("other", number(1.0))],
            "add_",
        ),
        of_x("aten.relu.default", "relu"),
    ];
    refused(&archive(&program(&calls)), &[kept, "`layer.w`"]);
}

#[test]
fn what_is_written_in_place_is_followed() {
    // `y = x * 2; v = y[0]; y += 1`, and `v` is read again.
    let viewed = [
        call("aten.mul.Tensor", &[("self", tensor("x")), ("other", number(2.0))], "y"),
        call(
            "aten.view.default",
            &[("self", tensor("y")), ("size", json!({"as_ints": [2, 3]}))],
            "v",
        ),
        call(
            "aten.add_.Tensor",
            &[("self", tensor("y")), ("other", number(1.0))],
            "z",
        ),
        call(
            "aten.add.Tensor",
            &[("self", tensor("v")), ("other", tensor("z"))],
            "sum",
        ),
    ];
    refused(
        &archive(&program(&viewed)),
        &[
            "node 2 (aten.add_.Tensor)",
            "it writes `y` in place, of which `v` is a view",
            "without the operator in place",
        ],
    );
    let unread = [
        viewed[0].clone(),
        viewed[1].clone(),
        viewed[2].clone(),
        of_x("aten.neg.default", "neg"),
    ];
    said(&archive(&program(&unread)), &ImportOptions::default()).expect("nobody reads the view");
}

/// A call's result from a few bytes is paid for from the budget of the file, as for every importer.
#[test]
fn constants_are_folded_within_the_budget() {
    let size = json!({"as_ints": [1 << 15, 1 << 15]});
    let calls = [
        call(
            "aten.full.default",
            &[("size", size), ("fill_value", number(0.5))],
            "full",
        ),
        call("aten.sum.default", &[("self", tensor("full"))], "sum"),
        call(
            "aten.add.Tensor",
            &[("self", tensor("x")), ("other", tensor("sum"))],
            "y",
        ),
    ];
    refused(
        &archive(&program(&calls)),
        &[
            "node 0 (aten.full.default)",
            "folding would compute a constant of shape [32768, 32768]",
        ],
    );
}

#[test]
fn other_versions_and_odd_programs_are_refused() {
    let mut program = small();
    program["schema_version"] = json!({"major": 9, "minor": 1});
    refused(&archive(&program), &["schema version 9 of torch.export", "5 to 8"]);
    let file =
        changed(&|module| module["signature"]["output_specs"] = json!([{"user_output": {"arg": {"as_int": 3}}}]));
    refused(&file, &["an output of the program is no tensor"]);
    let file = changed(&|module| {
        drop(
            module["graph"]["tensor_values"]
                .as_object_mut()
                .expect("values")
                .remove("x"),
        )
    });
    refused(&file, &["nothing is stated of the input `x`"]);
    let file = changed(&|module| {
        drop(
            module["graph"]["tensor_values"]
                .as_object_mut()
                .expect("values")
                .remove("add"),
        )
    });
    refused(&file, &["nothing is stated of the output `add`"]);
    // A cycle: the first call reads what the last one writes.
    let file = changed(&|module| module["graph"]["nodes"][0]["inputs"][0]["arg"] = tensor("add"));
    refused(&file, &["it reads `add` before anything writes it"]);
    let file = changed(&|module| {
        module["graph"]["nodes"][1]["outputs"] = json!([tensor("mul")]);
        module["graph"]["nodes"][2]["inputs"][0]["arg"] = tensor("mul");
    });
    refused(&file, &["it writes `mul`, which has a value already"]);
    let file = changed(&|module| {
        module["graph"]["nodes"][1]["inputs"][0]["arg"] = json!({"as_int": 1, "as_tensor": {"name": "x"}})
    });
    refused(&file, &["an argument of several kinds, or of none"]);
    let file = changed(&|module| module["signature"]["input_specs"][0] = json!({}));
    refused(&file, &["an input of several kinds, or of none"]);
    let file = changed(&|module| module["signature"]["output_specs"][0] = json!({}));
    refused(&file, &["an output of several kinds, or of none"]);
    let file = changed(&|module| module["graph"]["tensor_values"]["x"] = meta(&[1; 65]));
    refused(&file, &["a shape of more than 64 axes"]);
    let file = changed(&|module| module["graph"]["tensor_values"]["relu"] = meta(&[3, 2]));
    refused(
        &file,
        &[
            "the file states the shape [3, 2] of `relu`",
            "[2, 3], which follows from its operands",
        ],
    );
}
