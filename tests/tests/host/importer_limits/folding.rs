//! Folding of constants is bounded for the whole file, whatever operator makes them: alone, in chains, in fans.

use arenite_host::import::{ImportOptions, import};

use super::onnx_file::{File, float, floats, imported, int, ints, longs, value};

/// Elements that leave about 3 MiB of the budget of a small file.
const MOST: i64 = (128 << 18) - (3 << 18);

/// A constant that takes most of the budget, a small one `c`, and its large form `v0`, 1 MiB.
fn big() -> File {
    File::default()
        .holding(&longs("most", &[MOST]))
        .node("ConstantOfShape", &["most"], "taken", &[])
        .holding(&floats("c", &[1, 1], &[0.5]))
        .holding(&longs("shape", &[512, 512]))
        .holding(&longs("flat", &[-1]))
        .holding(&longs("axis", &[1]))
        .holding(&longs("zero", &[0]))
        .holding(&longs("many", &[1 << 40]))
        .holding(&longs("twice", &[2, 1]))
        .holding(&floats("low", &[], &[-8.0]))
        .holding(&floats("high", &[], &[8.0]))
        .input(&value("x", 1, &[1]))
        .node("Expand", &["c", "shape"], "v0", &[])
}

/// A chain of one operator on the large constant: how its node `i` reads `v{i}` and writes `v{i+1}`.
type Link = fn(File, &str, &str) -> File;

/// Every operator that computes on known values.
fn links() -> Vec<(&'static str, Link)> {
    macro_rules! unary {
        ($($op:literal)*) => { vec![$(($op, (|f, a, b| f.node($op, &[a], b, &[])) as Link)),*] };
    }
    macro_rules! binary {
        ($($op:literal)*) => { vec![$(($op, (|f, a, b| f.node($op, &[a, a], b, &[])) as Link)),*] };
    }
    let mut all = unary!("Abs" "Neg" "Relu" "Exp" "Sqrt" "Floor" "Sigmoid" "Tanh" "Erf" "Sign" "Round" "Reciprocal" "Softplus" "Not" "LeakyRelu" "Elu" "Selu"
        "HardSigmoid" "HardSwish" "IsNaN" "Transpose");
    all.extend(
        binary!("Add" "Sub" "Mul" "Div" "Min" "Max" "Sum" "Mean" "Equal" "Less" "GreaterOrEqual" "And" "Or" "Xor"),
    );
    let others: Vec<(&'static str, Link)> = vec![
        ("Cast", |f, a, b| f.node("Cast", &[a], b, &[int("to", 7)])),
        ("CastLike", |f, a, b| f.node("CastLike", &[a, "zero"], b, &[])),
        ("Clip", |f, a, b| f.node("Clip", &[a, "low", "high"], b, &[])),
        ("Concat", |f, a, b| f.node("Concat", &[a, a], b, &[int("axis", 0)])),
        ("Tile", |f, a, b| f.node("Tile", &[a, "twice"], b, &[])),
        ("Where", |f, a, b| f.node("Where", &[a, a, "c"], b, &[])),
        ("Trilu", |f, a, b| f.node("Trilu", &[a], b, &[])),
        ("Gather", |f, a, b| {
            let row = format!("{b}g");
            f.node("Gather", &[a, "zero"], &row, &[int("axis", 0)])
                .node("Expand", &[&row, "shape"], b, &[])
        }),
        ("ReduceMax", |f, a, b| {
            let sum = format!("{b}s");
            f.node("ReduceMax", &[a], &sum, &[ints("axes", &[1])])
                .node("Expand", &[&sum, "shape"], b, &[])
        }),
        ("ReduceProd", |f, a, b| {
            let sum = format!("{b}s");
            f.node("ReduceProd", &[a], &sum, &[ints("axes", &[0])])
                .node("Expand", &[&sum, "shape"], b, &[])
        }),
        ("Slice", |f, a, b| {
            f.node("Slice", &[a, "zero", "many", "zero", "axis"], &format!("{b}s"), &[])
                .node("Neg", &[&format!("{b}s")], b, &[])
        }),
        ("Reshape", |f, a, b| {
            let flat = format!("{b}f");
            f.node("Reshape", &[a, "flat"], &flat, &[])
                .node("Reshape", &[&flat, "shape"], b, &[])
        }),
        ("DequantizeLinear", |f, a, b| {
            let whole = format!("{b}i");
            f.node("Cast", &[a], &whole, &[int("to", 3)])
                .node("DequantizeLinear", &[&whole, "c1"], b, &[])
        }),
    ];
    all.extend(others);
    all
}

fn refused(what: &str, file: &File, op: &str) {
    let bytes = file.bytes(13);
    assert!(bytes.len() < 40_000, "{what}: {} bytes", bytes.len());
    let text = imported(&bytes, &ImportOptions::default()).expect_err(what);
    for part in [
        "folding would compute a constant of shape",
        "of folded constants in the whole file",
        "are left",
        "help: ",
        op,
    ] {
        assert!(text.contains(part), "{what} lacks `{part}`: {text}");
    }
}

#[test]
fn chains_of_every_operator_that_folds() {
    let mut slowest = (std::time::Duration::ZERO, "");
    for (op, link) in links() {
        let mut file = big().holding(&floats("c1", &[], &[0.5]));
        let longest = 12;
        for index in 0..longest {
            file = link(file, &format!("v{index}"), &format!("v{}", index + 1));
        }
        let file = file.node("Add", &["x", &format!("v{longest}")], "z", &[]);
        let file = file
            .node("Gather", &["taken", "zero"], "t", &[])
            .node("Add", &["z", "t"], "y", &[]);
        let start = std::time::Instant::now();
        refused(
            op,
            &file.output(&arenite_tests::onnx::Writer::value("y", &[-1, -1])),
            "node ",
        );
        slowest = slowest.max((start.elapsed(), op));
    }
    println!("slowest chain: {} in {:?}", slowest.1, slowest.0);
}

#[test]
fn fans_of_one_constant() {
    let mut file = big();
    for index in 1..=12 {
        let (name, sum) = (format!("e{index}"), format!("v{index}"));
        file = file
            .node("Exp", &["v0"], &name, &[])
            .node("Add", &["x", &name], &sum, &[]);
    }
    let names: Vec<String> = (1..=12).map(|index| format!("v{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = file
        .node("Sum", &names, "z", &[])
        .node("Gather", &["taken", "zero"], "t", &[]);
    let file = file
        .node("Add", &["z", "t"], "y", &[])
        .output(&arenite_tests::onnx::Writer::value("y", &[-1, -1]));
    refused("a fan", &file, "Exp");
}

/// Results that one node makes of nothing, or of little.
#[test]
fn single_nodes_that_make_too_much() {
    let start = || {
        File::default()
            .input(&value("x", 1, &[1, 70_000]))
            .holding(&floats("c", &[1, 1], &[0.5]))
            .holding(&longs("shape", &[1 << 16, 1 << 16]))
            .holding(&longs("huge", &[1 << 62, 1 << 62]))
            .holding(&longs("depth", &[1 << 40]))
            .holding(&longs("from", &[0]))
            .holding(&longs("to", &[1 << 40]))
            .holding(&longs("one", &[1]))
            .holding(&longs("indices", &[0, 1]))
            .holding(&floats("values", &[2], &[0.0, 1.0]))
            .holding(&floats("half", &[], &[0.5]))
    };
    let cases: Vec<(&str, File)> = vec![
        ("ConstantOfShape", start().node("ConstantOfShape", &["shape"], "v", &[])),
        ("ConstantOfShape", start().node("ConstantOfShape", &["huge"], "v", &[])),
        ("Expand", start().node("Expand", &["c", "shape"], "v", &[])),
        ("Tile", start().node("Tile", &["c", "shape"], "v", &[])),
        ("Range", start().node("Range", &["from", "to", "one"], "v", &[])),
        (
            "OneHot",
            start().node("OneHot", &["indices", "depth", "values"], "v", &[]),
        ),
        ("CumSum", start().node("CumSum", &["x", "one"], "v", &[])),
    ];
    for (op, file) in cases {
        let file = file.node("Add", &["x", "v"], "y", &[]);
        refused(
            op,
            &file.output(&arenite_tests::onnx::Writer::value("y", &[-1, -1])),
            op,
        );
    }
}

/// A chain of values of one element: what each costs beside its element is paid as well.
#[test]
fn what_is_small_is_folded() {
    let mut file = File::default()
        .input(&value("x", 1, &[3]))
        .holding(&floats("v0", &[], &[1.0]));
    for index in 0..300 {
        file = file.node(
            "LeakyRelu",
            &[&format!("v{index}")],
            &format!("v{}", index + 1),
            &[float("alpha", 0.5)],
        );
    }
    let file = file.node("Mul", &["x", "v300"], "y", &[]).output(&value("y", 1, &[3]));
    assert_eq!(imported(&file.bytes(13), &ImportOptions::default()), Ok(vec![vec![3]]));
}

#[test]
fn the_smallest_file_that_held_gigabytes() {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip("fold-memory.onnx", "no shared data");
        return;
    };
    let file = std::fs::read(shared.join("data/defects/fold-memory.onnx")).expect("a file");
    let text = imported(&file, &ImportOptions::default()).expect_err("too much");
    assert!(
        text.contains("(Expand)") && text.contains("folding would compute a constant of shape"),
        "{text}"
    );
}

/// Sequences are unrolled: a few bytes state as many nodes as they like, in one layer or in many.
#[test]
fn nodes_of_unrolled_sequences_are_bounded_in_the_whole_file() {
    for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
        for (steps, layers) in [(1 << 40, 1), (100_000, 3), (300, 60)] {
            let mut file = File::default()
                .input(&value("x", 1, &[steps, 1, 1]))
                .holding(&longs("axes", &[1]))
                .holding(&floats("w", &[1, gates, 1], &vec![0.5; gates as usize]))
                .holding(&floats("r", &[1, gates, 1], &vec![0.25; gates as usize]));
            let mut x = "x".to_owned();
            for layer in 0..layers {
                let (y, next) = (format!("y{layer}"), format!("x{layer}"));
                file = file.node(op, &[&x, "w", "r"], &y, &[int("hidden_size", 1)]).node(
                    "Squeeze",
                    &[&y, "axes"],
                    &next,
                    &[],
                );
                x = next;
            }
            let file = file.output(&value(&x, 1, &[steps, 1, 1])).bytes(14);
            let text = imported(&file, &ImportOptions::default()).expect_err(op);
            assert!(
                text.contains("nodes or more") && text.contains(&format!("({op})")),
                "{text}"
            );
        }
    }
}

/// A recurrent layer of one operator that begins in a constant state.
fn begun(op: &str, gates: i64, state: Option<(&[i64], &[f32])>) -> File {
    let weights = |count: i64| -> Vec<f32> { (0..count).map(|i| (i % 7) as f32 / 8.0 - 0.375).collect() };
    let net = File::default()
        .input(&value("x", 1, &[5, 1, 3]))
        .holding(&floats("w", &[1, 2 * gates, 3], &weights(6 * gates)))
        .holding(&floats("r", &[1, 2 * gates, 2], &weights(4 * gates)));
    let net = match state {
        None => net.node(op, &["x", "w", "r"], "y", &[int("hidden_size", 2)]),
        Some((shape, values)) => net.holding(&floats("h", shape, values)).node(
            op,
            &["x", "w", "r", "", "", "h"],
            "y",
            &[int("hidden_size", 2)],
        ),
    };
    net.output(&value("y", 1, &[5, 1, 1, 2]))
}

#[test]
fn a_state_of_zeros_is_none_and_products_of_constants_are_constants() {
    let folder = tempfile::tempdir().expect("a folder");
    let kinds = |file: &File| {
        let path = folder.path().join("m.onnx");
        std::fs::write(&path, file.bytes(14)).expect("written");
        let (_, imported) = import(&path, None, &ImportOptions::default())?;
        let kinds = imported.graph.nodes.into_iter().map(|node| format!("{:?}", node.op));
        Ok::<Vec<String>, arenite_host::Error>(kinds.collect())
    };
    let products = |kinds: &[String]| kinds.iter().filter(|kind| kind.starts_with("Linear")).count();
    for (op, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        let none = kinds(&begun(op, gates, None)).expect("it imports");
        let zero = kinds(&begun(op, gates, Some((&[1, 1, 2], &[0.0, -0.0])))).expect("it imports");
        assert_eq!(zero, none, "{op}");
        // The first step's product with its state is of constants.
        let some = kinds(&begun(op, gates, Some((&[1, 1, 2], &[0.0, 0.5])))).expect("it imports");
        assert!(some.len() > none.len(), "{op}");
        assert!(products(&some) <= products(&none) + usize::from(op == "GRU"), "{op}");
        let error = kinds(&begun(op, gates, Some((&[1, 2, 1], &[0.0, 0.0])))).expect_err("another shape");
        assert!(error.to_string().contains(op), "{error}");
    }
}
