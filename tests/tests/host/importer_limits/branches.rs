//! `If`: the branch that a known condition takes, and refusals by name of what decides the others.

use arenite_host::import::ImportOptions;
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, computed, floats, imported, initializer, longs, stored, value};

const X: [f32; 4] = [-2.5, 0.5, 3.0, -0.25];

fn truth(name: &str, holds: bool) -> Vec<u8> {
    initializer(name, 9, &[], &[u8::from(holds)])
}

fn network() -> File {
    File::default()
        .input(&value("x", 1, &[1, 4]))
        .output(&Writer::value("y", &[-1, -1]))
}

/// A branch of these nodes, each of the one before, that ends in `name`.
fn branch(ops: &[&str], name: &str) -> File {
    let mut file = File::default();
    for (at, op) in ops.iter().enumerate() {
        let from = if at == 0 {
            "x".to_string()
        } else {
            format!("{name}{at}")
        };
        let to = if at + 1 == ops.len() {
            name.to_string()
        } else {
            format!("{name}{}", at + 1)
        };
        file = file.node(op, &[&from], &to, &[]);
    }
    file.output(&Writer::value(name, &[-1, -1]))
}

fn choice(file: File, condition: &str, then: &File, other: &File, to: &str) -> File {
    let branches = [other.attribute("else_branch"), then.attribute("then_branch")];
    file.node("If", &[condition], to, &branches)
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn run(file: &File) -> Vec<f32> {
    numbers(&computed(&file.bytes(17), &stored(&X)).expect("it packs"))
}

fn refused(file: &File, parts: &[&str]) {
    let text = imported(&file.bytes(17), &ImportOptions::default()).expect_err("it is refused");
    for part in parts {
        assert!(text.contains(part), "{text} lacks `{part}`");
    }
}

#[test]
fn a_constant_condition() {
    for (holds, function) in [(true, (|x| -x) as fn(f32) -> f32), (false, f32::abs)] {
        let file = network().holding(&truth("c", holds));
        let file = choice(file, "c", &branch(&["Neg"], "t"), &branch(&["Abs"], "e"), "y");
        assert_eq!(run(&file), X.map(function));
    }
}

/// As PyTorch exports `squeeze`: whether an axis goes depends on its extent.
#[test]
fn a_condition_that_shapes_decide() {
    for extent in [1, 4] {
        let file = File::default()
            .input(&value("x", 1, &[1, 4 / extent, extent]))
            .holding(&longs("last", &[2]))
            .holding(&longs("one", &[1]))
            .node("Shape", &["x"], "s", &[])
            .node("Gather", &["s", "last"], "g", &[])
            .node("Equal", &["g", "one"], "c", &[]);
        let then = File::default()
            .node("Squeeze", &["x", "last"], "t", &[])
            .output(&Writer::value("t", &[-1, -1]));
        let file = choice(file, "c", &then, &branch(&["Identity"], "e"), "y");
        let file = file.output(&Writer::value("y", &vec![-1; if extent == 1 { 2 } else { 3 }]));
        let shapes = imported(&file.bytes(17), &ImportOptions::default()).expect("it is read");
        let whole = vec![1, 4 / extent as usize, extent as usize];
        assert_eq!(shapes, [if extent == 1 { vec![1, 4] } else { whole }]);
        let bytes = computed(&file.bytes(17), &stored(&X)).expect("it packs");
        assert_eq!(numbers(&bytes), X);
    }
}

/// Operators that only the branch that is not taken reads need not be supported.
#[test]
fn names_of_the_graph_around() {
    for holds in [true, false] {
        let file = network()
            .holding(&truth("c", holds))
            .holding(&floats("w", &[4], &[1.0, 2.0, 3.0, 4.0]))
            .node("Mul", &["x", "w"], "only_then", &[])
            .node("Scan", &["x"], "only_else", &[]);
        let then = File::default()
            .holding(&floats("v", &[1], &[0.5]))
            .node("Add", &["only_then", "v"], "t", &[])
            .output(&Writer::value("t", &[-1, -1]));
        let other = File::default()
            .node("Neg", &["only_else"], "e", &[])
            .output(&Writer::value("e", &[-1, -1]));
        let file = choice(file, "c", &then, &other, "y");
        if holds {
            let weighted: Vec<f32> = (1u8..).zip(X).map(|(w, x)| x * f32::from(w) + 0.5).collect();
            assert_eq!(run(&file), weighted);
        } else {
            refused(&file, &["(Scan)", "`only_else`", "not supported"]);
        }
    }
}

/// Branches within branches; both branches, and one `If` after another, have the same names.
#[test]
fn nested_and_repeated() {
    let within = choice(
        File::default().holding(&truth("d", false)),
        "d",
        &branch(&["Abs"], "p"),
        &branch(&["Neg", "Relu"], "p"),
        "t",
    );
    let within = within.output(&Writer::value("t", &[-1, -1]));
    let file = network().holding(&truth("c", true));
    let file = choice(file, "c", &within, &branch(&["Abs"], "t"), "m");
    let file = choice(file, "c", &within, &branch(&["Abs"], "t"), "n");
    let file = file.node("Add", &["m", "n"], "y", &[]);
    assert_eq!(run(&file), X.map(|x| 2.0 * (-x).max(0.0)));
}

#[test]
fn a_result_that_is_known_stays_known() {
    let then = File::default()
        .holding(&longs("flat", &[4]))
        .node("Identity", &["flat"], "t", &[])
        .output(&value("t", 7, &[1]));
    let other = File::default()
        .holding(&longs("tall", &[4, 1]))
        .node("Identity", &["tall"], "e", &[])
        .output(&value("e", 7, &[2]));
    let file = File::default()
        .input(&value("x", 1, &[1, 4]))
        .holding(&truth("c", false));
    let file = choice(file, "c", &then, &other, "shape")
        .node("Reshape", &["x", "shape"], "y", &[])
        .output(&Writer::value("y", &[-1, -1]));
    assert_eq!(
        imported(&file.bytes(17), &ImportOptions::default()).expect("it is read"),
        [vec![4, 1]]
    );
}

#[test]
fn conditions_of_values_are_refused_with_what_decides_them() {
    let file = network()
        .holding(&longs("zero", &[0]))
        .node("ReduceMax", &["x"], "m", &[])
        .node("Cast", &["m"], "c", &[super::onnx_file::int("to", 9)]);
    let file = choice(file, "c", &branch(&["Neg"], "t"), &branch(&["Abs"], "e"), "y");
    refused(
        &file,
        &[
            "(If)",
            "control flow",
            "the condition `c` is computed at run time, from the values of `x`",
            "from the values of `x`",
            "help: ",
        ],
    );
}

#[test]
fn broken_branches() {
    let held = || network().holding(&truth("c", true));
    let (neg, abs) = (branch(&["Neg"], "t"), branch(&["Abs"], "e"));
    refused(
        &held().node("If", &["c"], "y", &[abs.attribute("else_branch")]),
        &["it has no then_branch"],
    );
    let with_input = neg.clone().input(&value("i", 1, &[1]));
    refused(
        &choice(held(), "c", &with_input, &abs, "y"),
        &["its then_branch has 1 inputs"],
    );
    let without_output = File::default().node("Neg", &["x"], "t", &[]);
    refused(
        &choice(held(), "c", &without_output, &abs, "y"),
        &["and 0 outputs", "1 outputs"],
    );
    let two = network().holding(&initializer("c", 9, &[2], &[1, 1]));
    refused(
        &choice(two, "c", &neg, &abs, "y"),
        &["the condition is not one element"],
    );
    let twice = held().node("Abs", &["x"], "t", &[]).node("Relu", &["t"], "z", &[]);
    let twice = choice(twice, "c", &neg, &abs, "n").node("Add", &["n", "z"], "y", &[]);
    refused(
        &twice,
        &["writes `t`, which has a value already", "in the then_branch of node 2"],
    );
    let strange = File::default()
        .node("Strange", &["x"], "t", &[])
        .output(&Writer::value("t", &[-1, -1]));
    refused(
        &choice(held(), "c", &strange, &abs, "y"),
        &["node 0 (Strange) that writes `t`, in the then_branch of node 0"],
    );
    let mut deep = neg;
    for _ in 0..17 {
        deep = choice(File::default(), "c", &deep, &abs, "t").output(&Writer::value("t", &[-1, -1]));
    }
    refused(
        &choice(held(), "c", &deep, &abs, "y"),
        &["control flow nested more than 16 levels deep"],
    );
}
