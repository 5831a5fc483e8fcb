//! Shapes of every operator of the trace schema, by hand: what the schema's rules give is taken, an extent more or less is refused, and so is what breaks
//! a rule, by its text.

mod form;
mod quant;

use std::path::Path;

use arenite_host::graph::check::check;
use arenite_host::import::{ImportOptions, import_content};
use serde_json::{Map, Value, json};

type Shape = &'static [usize];

/// An operator; operands with their shapes, of which those behind the first `computed` are parameters; its attributes; the result's shape.
type Row = (&'static str, usize, &'static [Shape], Value, Shape);

const IMAGE: &[usize] = &[1, 4, 9, 14];
const WEIGHTS: &[usize] = &[6, 4, 3, 2];

fn trace(op: &str, computed: usize, operands: &[&[usize]], attrs: &Value, result: &[usize]) -> String {
    let mut tensors = Map::new();
    let mut names = Vec::new();
    for (index, shape) in operands.iter().enumerate() {
        let role = if index < computed { "input" } else { "parameter" };
        tensors.insert(
            format!("t{index}"),
            json!({"shape": shape, "dtype": "f32", "role": role}),
        );
        names.push(format!("t{index}"));
    }
    tensors.insert(
        "y".into(),
        json!({"shape": result, "dtype": "f32", "role": "activation"}),
    );
    let operator = json!({"name": "it", "op": op, "inputs": names, "outputs": ["y"], "attrs": attrs});
    let inputs = &names[..computed];
    json!({"arenite_trace": 3, "name": "n", "inputs": inputs, "outputs": ["y"], "tensors": tensors, "ops": [operator]})
        .to_string()
}

fn read(op: &str, computed: usize, operands: &[&[usize]], attrs: &Value, result: &[usize]) -> Result<(), String> {
    let text = trace(op, computed, operands, attrs, result);
    let path = Path::new("n.trace.json");
    let (_, imported) =
        import_content(path, text.as_bytes(), None, &ImportOptions::default()).map_err(|e| e.to_string())?;
    check(&imported.graph).map_err(|e| e.to_string())
}

fn rows() -> Vec<Row> {
    vec![
        ("conv2d", 1, &[IMAGE, WEIGHTS], json!({}), &[1, 6, 7, 13]),
        (
            "conv2d",
            1,
            &[IMAGE, &[6, 2, 3, 2], &[6]],
            json!({"groups": 2, "strides": [2, 3]}),
            &[1, 6, 4, 5],
        ),
        (
            "conv2d",
            1,
            &[IMAGE, WEIGHTS],
            json!({"padding": [1, 2, 0, 3], "dilation": [2, 4]}),
            &[1, 6, 8, 13],
        ),
        (
            "conv2d",
            1,
            &[&[1, 9, 14, 4], &[6, 4, 3, 2]],
            json!({"layout": "NHWC", "strides": [3, 1]}),
            &[1, 3, 13, 6],
        ),
        (
            "conv_transpose2d",
            1,
            &[&[1, 4, 5, 7], &[4, 3, 3, 2]],
            json!({}),
            &[1, 3, 7, 8],
        ),
        (
            "conv_transpose2d",
            1,
            &[&[1, 4, 5, 7], &[4, 3, 3, 2], &[3]],
            json!({"strides": [2, 3], "output_padding": [1, 0], "padding": [1, 2, 0, 1]}),
            &[1, 3, 9, 19],
        ),
        (
            "conv_transpose2d",
            1,
            &[&[1, 4, 5, 7], &[4, 3, 3, 2]],
            json!({"groups": 2, "dilation": [2, 3]}),
            &[1, 6, 9, 10],
        ),
        ("linear", 1, &[&[2, 3, 5], &[7, 5], &[7]], json!({}), &[2, 3, 7]),
        ("matmul", 2, &[&[2, 1, 3, 5], &[4, 5, 6]], json!({}), &[2, 4, 3, 6]),
        ("matmul", 2, &[&[5], &[4, 5, 6]], json!({}), &[4, 6]),
        ("matmul", 2, &[&[2, 3, 5], &[5]], json!({}), &[2, 3]),
        (
            "max_pool2d",
            1,
            &[&[1, 3, 9, 14]],
            json!({"kernel": [2, 4]}),
            &[1, 3, 4, 3],
        ),
        (
            "max_pool2d",
            1,
            &[&[1, 3, 9, 14]],
            json!({"kernel": [2, 4], "ceil_mode": true}),
            &[1, 3, 5, 4],
        ),
        (
            "max_pool2d",
            1,
            &[&[1, 3, 9, 14]],
            json!({"kernel": [2, 4], "strides": [3, 2], "padding": [1, 0, 2, 1]}),
            &[1, 3, 3, 7],
        ),
        (
            "avg_pool2d",
            1,
            &[&[1, 9, 14, 3]],
            json!({"kernel": [3, 2], "strides": [2, 1], "layout": "NHWC"}),
            &[1, 4, 13, 3],
        ),
        (
            "avg_pool2d",
            1,
            &[&[1, 3, 9, 14]],
            json!({"kernel": [4, 2], "padding": [2, 1, 0, 1], "count_include_pad": false}),
            &[1, 3, 3, 7],
        ),
        // A window that would start in the padding behind is none.
        (
            "avg_pool2d",
            1,
            &[&[1, 3, 4, 7]],
            json!({"kernel": [2, 3], "strides": [3, 3], "padding": [0, 1, 1, 1], "ceil_mode": true}),
            &[1, 3, 2, 3],
        ),
        ("clamp", 1, &[&[3, 5]], json!({"min": -1.0, "max": null}), &[3, 5]),
        ("clamp", 1, &[&[3, 5]], json!({"min": 2, "max": 2}), &[3, 5]),
        ("leaky_relu", 1, &[&[3, 5]], json!({"negative_slope": 0.25}), &[3, 5]),
        ("prelu", 1, &[&[2, 3, 5], &[1]], json!({}), &[2, 3, 5]),
        ("prelu", 1, &[&[2, 3, 5], &[3]], json!({}), &[2, 3, 5]),
        ("add", 2, &[&[2, 1, 5], &[3, 1]], json!({}), &[2, 3, 5]),
        ("sub", 1, &[&[2, 3, 5], &[5]], json!({}), &[2, 3, 5]),
        (
            "batch_norm",
            1,
            &[&[2, 3, 5, 4], &[3], &[3], &[3], &[3]],
            json!({}),
            &[2, 3, 5, 4],
        ),
        (
            "batch_norm",
            1,
            &[&[2, 5, 3], &[3], &[3], &[3], &[3]],
            json!({"axis": -1, "eps": 0.5}),
            &[2, 5, 3],
        ),
        ("softmax", 1, &[&[2, 3, 5]], json!({"axis": 2}), &[2, 3, 5]),
        ("log_softmax", 1, &[&[2, 3, 5]], json!({"axis": -1}), &[2, 3, 5]),
        ("mean", 1, &[&[2, 3, 5, 4]], json!({"axes": [2, -1]}), &[2, 3]),
        (
            "sum",
            1,
            &[&[2, 3, 5, 4]],
            json!({"axes": [1], "keepdims": true}),
            &[2, 1, 5, 4],
        ),
        ("max", 1, &[&[2, 3, 5]], json!({"axes": [-2]}), &[2, 5]),
        ("reshape", 1, &[&[2, 3, 10]], json!({"shape": [2, 5, 6]}), &[2, 5, 6]),
        ("flatten", 1, &[&[2, 3, 5, 4]], json!({}), &[2, 60]),
        (
            "flatten",
            1,
            &[&[2, 3, 5, 4]],
            json!({"start_axis": 1, "end_axis": 2}),
            &[2, 15, 4],
        ),
        ("transpose", 1, &[&[2, 3, 5]], json!({"perm": [2, 0, 1]}), &[5, 2, 3]),
        (
            "pad",
            1,
            &[&[2, 3, 5]],
            json!({"padding": [[0, 0], [1, 2], [0, 3]], "value": 1.5}),
            &[2, 6, 8],
        ),
        (
            "resize_nearest",
            1,
            &[&[1, 3, 4, 5]],
            json!({"size": [6, 3]}),
            &[1, 3, 6, 3],
        ),
        (
            "resize_bilinear",
            1,
            &[&[1, 4, 5, 3]],
            json!({"size": [2, 9], "layout": "NHWC"}),
            &[1, 2, 9, 3],
        ),
        ("rfft", 1, &[&[3, 7]], json!({"length": 8}), &[3, 10]),
        ("concat", 2, &[&[2, 3, 5], &[2, 4, 5]], json!({"axis": 1}), &[2, 7, 5]),
        (
            "slice",
            1,
            &[&[2, 3, 11]],
            json!({"axis": 2, "start": 1, "stop": 9, "step": 3}),
            &[2, 3, 3],
        ),
        (
            "slice",
            1,
            &[&[2, 7, 5]],
            json!({"axis": -2, "start": 2, "stop": 4}),
            &[2, 2, 5],
        ),
    ]
}

#[test]
fn results_have_the_shape_of_the_schemas_rules_and_no_other() {
    for (op, computed, operands, attrs, result) in rows() {
        read(op, computed, operands, &attrs, result).unwrap_or_else(|e| panic!("{op} {attrs}: {e}"));
        for axis in 0..result.len() {
            for other in [result[axis] + 1, result[axis] - 1] {
                let mut shape = result.to_vec();
                shape[axis] = other;
                if other == 0 {
                    continue;
                }
                let error = read(op, computed, operands, &attrs, &shape).expect_err("another extent");
                let [found, stated] = [result, &shape].map(|shape| format!("{shape:?}"));
                // The shape by the rule and the one in the trace, unless the elements are too few or too many.
                assert!(
                    error.contains("n.trace.json")
                        && (op == "reshape" || error.contains(&found) && error.contains(&stated)),
                    "{op} {attrs}: {error}"
                );
            }
        }
    }
}

/// An operator that breaks a rule, and all that is said behind its place.
fn wrong() -> Vec<(Row, &'static str)> {
    vec![
        (
            ("conv2d", 1, &[IMAGE, &[6, 3, 3, 2]], json!({}), &[1, 6, 7, 13]),
            "): 4 input channels, 1 groups and weights [6, 3, 2, 3] (OHWI) do not fit together; \
             expected weights whose I times the groups is the input's channels, and an O that the groups divide",
        ),
        (
            (
                "conv2d",
                1,
                &[IMAGE, &[5, 2, 3, 2]],
                json!({"groups": 2}),
                &[1, 5, 7, 13],
            ),
            "): 4 input channels, 2 groups and weights [5, 3, 2, 2] (OHWI) do not fit together; \
             expected weights whose I times the groups is the input's channels, and an O that the groups divide",
        ),
        (
            ("conv2d", 1, &[IMAGE, WEIGHTS, &[5]], json!({}), &[1, 6, 7, 13]),
            "): the weights has shape [6, 3, 2, 4], the bias [5]: they do not fit",
        ),
        (
            ("conv2d", 1, &[IMAGE, &[6, 4, 10, 2]], json!({}), &[1, 6, 1, 13]),
            "): a window of 10 does not fit into 9 with padding 0",
        ),
        (
            ("conv2d", 1, &[IMAGE, WEIGHTS], json!({"strides": [2]}), &[1, 6, 4, 7]),
            "/attrs/strides): `strides`; expected [rows, columns]",
        ),
        (
            (
                "conv2d",
                1,
                &[IMAGE, WEIGHTS],
                json!({"strides": [0, 1]}),
                &[1, 6, 4, 7],
            ),
            "/attrs/strides/0): found `0`; expected an integer from 1 to 16777216",
        ),
        (
            (
                "conv2d",
                1,
                &[IMAGE, WEIGHTS],
                json!({"padding": [1, 1]}),
                &[1, 6, 4, 7],
            ),
            "/attrs/padding): `padding`; expected [top, bottom, left, right]",
        ),
        (
            ("conv2d", 1, &[IMAGE, WEIGHTS], json!({"layout": "CHWN"}), &[1, 6, 4, 7]),
            "/attrs/layout): layout `CHWN`; expected NCHW or NHWC",
        ),
        (
            (
                "conv2d",
                1,
                &[IMAGE, WEIGHTS],
                json!({"kernel": [3, 2]}),
                &[1, 6, 7, 13],
            ),
            "/attrs/kernel): unknown name `kernel`; expected one of strides, padding, dilation, groups, layout",
        ),
        (
            (
                "conv_transpose2d",
                1,
                &[&[1, 4, 5, 7], &[4, 3, 3, 2]],
                json!({"padding": [3, 0, 0, 0]}),
                &[1, 3, 4, 8],
            ),
            "): padding 3 of a kernel that reaches 2; expected at most dilation * (kernel - 1)",
        ),
        (
            ("linear", 1, &[&[2, 3, 5], &[7, 4]], json!({}), &[2, 3, 7]),
            "): the last axis of the operand has shape [2, 3, 5], the weights [7, 4]: they do not fit",
        ),
        (
            ("linear", 1, &[&[2, 3, 5]], json!({}), &[2, 3, 7]),
            "): 1 operands; expected 2 to 3",
        ),
        (
            ("matmul", 2, &[&[2, 3, 5], &[4, 6]], json!({}), &[2, 3, 6]),
            "): rows of 5 elements and columns of 4",
        ),
        (
            ("max_pool2d", 1, &[&[1, 3, 9, 14]], json!({}), &[1, 3, 4, 3]),
            "): attribute `kernel` is missing",
        ),
        (
            (
                "max_pool2d",
                1,
                &[&[1, 3, 9, 14]],
                json!({"kernel": [2, 3], "padding": [0, 2, 0, 0]}),
                &[1, 3, 4, 5],
            ),
            "): padding [0, 2, 0, 0] of a kernel of [2, 3]; expected at most half the kernel",
        ),
        (
            (
                "max_pool2d",
                1,
                &[&[1, 3, 9, 14]],
                json!({"kernel": [2, 3], "padding": [0, 0, 2, 0]}),
                &[1, 3, 5, 4],
            ),
            "): padding [0, 0, 2, 0] of a kernel of [2, 3]; expected at most half the kernel",
        ),
        (
            (
                "max_pool2d",
                1,
                &[&[1, 3, 9, 14]],
                json!({"kernel": [2, 3], "strides": [1, 2], "dilation": [3, 2]}),
                &[1, 3, 6, 5],
            ),
            "/attrs/dilation): a dilated pooling; expected dilation [1, 1]",
        ),
        (
            ("clamp", 1, &[&[3, 5]], json!({"min": null, "max": null}), &[3, 5]),
            "): clamp from -inf to inf; expected min <= max, not both null",
        ),
        (
            ("clamp", 1, &[&[3, 5]], json!({"min": 2, "max": 1}), &[3, 5]),
            "): clamp from 2 to 1; expected min <= max, not both null",
        ),
        (
            ("prelu", 1, &[&[2, 3, 5], &[5]], json!({}), &[2, 3, 5]),
            "): 5 slopes for an operand of shape [2, 3, 5]; expected one, or one for each index of axis 1",
        ),
        (
            ("dropout", 1, &[&[3, 5]], json!({"ratio": 1.0}), &[3, 5]),
            "/attrs/ratio): ratio 1; expected 0 <= ratio < 1",
        ),
        (
            ("dropout", 1, &[&[3, 5]], json!({"ratio": -0.5}), &[3, 5]),
            "/attrs/ratio): ratio -0.5; expected 0 <= ratio < 1",
        ),
        (
            ("add", 2, &[&[2, 3, 5], &[4, 5]], json!({}), &[2, 3, 5]),
            "): one operand has shape [2, 3, 5], the other [4, 5]: they do not fit",
        ),
        (
            (
                "batch_norm",
                1,
                &[&[2, 3, 5], &[3], &[3], &[3], &[4]],
                json!({}),
                &[2, 3, 5],
            ),
            "): the channels of the operand has shape [2, 3, 5], a statistic [4]: they do not fit",
        ),
        (
            (
                "batch_norm",
                1,
                &[&[2, 3, 5], &[3], &[3], &[3], &[3]],
                json!({"eps": 0.0}),
                &[2, 3, 5],
            ),
            "/attrs/eps): eps 0; expected a number above zero",
        ),
        (
            ("softmax", 1, &[&[2, 3, 5]], json!({"axis": 3}), &[2, 3, 5]),
            "/attrs/axis): axis 3 of an operand of 3 axes; expected -3 to 2",
        ),
        (
            ("mean", 1, &[&[2, 3, 5]], json!({"axes": []}), &[2, 3, 5]),
            "/attrs/axes): axes []; expected one or more, none of them twice",
        ),
        (
            ("mean", 1, &[&[2, 3, 5]], json!({"axes": [1, -2]}), &[2, 5]),
            "/attrs/axes): axes [1, 1]; expected one or more, none of them twice",
        ),
        (
            ("reshape", 1, &[&[2, 3, 5]], json!({"shape": [2, 3, 4]}), &[2, 3, 4]),
            "/attrs/shape): [2, 3, 5] cannot be reshaped into [2, 3, 4]",
        ),
        (
            (
                "flatten",
                1,
                &[&[2, 3, 5]],
                json!({"start_axis": 2, "end_axis": 1}),
                &[2, 15],
            ),
            "): flatten from axis 2 to 1; expected start_axis <= end_axis",
        ),
        (
            ("transpose", 1, &[&[2, 3, 5]], json!({"perm": [2, 0, 0]}), &[5, 2, 2]),
            "): [2, 0, 0] is no permutation of the axes of [2, 3, 5]",
        ),
        (
            ("transpose", 1, &[&[2, 3, 5]], json!({"perm": [1, 0]}), &[3, 2]),
            "): [1, 0] is no permutation of the axes of [2, 3, 5]",
        ),
        (
            ("pad", 1, &[&[2, 3]], json!({"padding": [[0, 1]]}), &[3, 3]),
            "): 1 axes padded of an operand of shape [2, 3]",
        ),
        (
            ("pad", 1, &[&[2, 3]], json!({"padding": [[0, 1], [-1, 0]]}), &[3, 2]),
            "/attrs/padding/1/0): found `-1`; expected an integer from 0 to 16777216",
        ),
        (
            ("concat", 2, &[&[2, 3, 5], &[2, 4, 6]], json!({"axis": 1}), &[2, 7, 5]),
            "): operand 0 has shape [2, 3, 5], another operand [2, 4, 6]: they do not fit",
        ),
        (
            (
                "slice",
                1,
                &[&[2, 3, 11]],
                json!({"axis": 2, "start": 4, "stop": 4}),
                &[2, 3, 1],
            ),
            "): a slice from 4 to 4; expected 0 <= start < stop",
        ),
        (
            (
                "slice",
                1,
                &[&[2, 3, 11]],
                json!({"axis": 2, "start": 4, "stop": 12}),
                &[2, 3, 8],
            ),
            "/attrs/stop): found `12`; expected an integer from 0 to 11",
        ),
        (
            (
                "slice",
                1,
                &[&[2, 3, 11]],
                json!({"axis": 2, "start": 4, "stop": 8, "step": 0}),
                &[2, 3, 4],
            ),
            "/attrs/step): found `0`; expected an integer from 1 to 16777216",
        ),
    ]
}

#[test]
fn what_breaks_a_rule_is_refused_by_its_text() {
    for ((op, computed, operands, attrs, result), said) in wrong() {
        let error = read(op, computed, operands, &attrs, result).expect_err("a broken rule");
        let (_, found) = error.split_once(" (ops/0").expect("its place");
        // Where nothing says what was expected, a last line says what to do.
        assert_eq!(found.split("\n  help: ").next(), Some(said), "{op} {attrs}");
    }
}
