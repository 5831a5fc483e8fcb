//! One attribute of an ONNX node changed at a time to a value that the operator has not: refused by the node's and the attribute's name. The node without the
//! change is taken.

use arenite_host::import::ImportOptions;

use super::onnx_file::{File, float, floats, imported, initializer, int, ints, longs, text, value};

/// An attribute by its name.
pub(super) type Named = (&'static str, Vec<u8>);

fn whole(name: &'static str, value: i64) -> Named {
    (name, int(name, value))
}

fn list(name: &'static str, values: &[i64]) -> Named {
    (name, ints(name, values))
}

fn real(name: &'static str, value: f32) -> Named {
    (name, float(name, value))
}

fn word(name: &'static str, value: &str) -> Named {
    (name, text(name, value))
}

/// A node that is taken, and changes of one attribute that are refused, each with a part of the text.
pub(super) struct Case {
    op: &'static str,
    opset: i64,
    /// All but the node.
    pub(super) file: File,
    inputs: &'static [&'static str],
    sound: Vec<Named>,
    refused: Vec<(Named, &'static str)>,
}

impl Case {
    fn bytes(&self, attributes: &[Vec<u8>]) -> Vec<u8> {
        let file = self.file.clone();
        file.node(self.op, self.inputs, "y", attributes).bytes(self.opset)
    }

    /// Its attributes with this one among them.
    fn with(&self, (name, attribute): &Named) -> Vec<Vec<u8>> {
        let others = self.sound.iter().filter(|(other, _)| other != name);
        let others = others.map(|(_, attribute)| attribute.clone());
        others.chain([attribute.clone()]).collect()
    }
}

pub(super) fn read(file: &[u8]) -> Result<Vec<Vec<usize>>, String> {
    imported(file, &ImportOptions::default())
}

/// `x` of this shape, and a result of which the type is known.
pub(super) fn of(shape: &[i64], elem: i64, rank: usize) -> File {
    File::default()
        .input(&value("x", 1, shape))
        .output(&value("y", elem, &vec![-1; rank]))
}

fn ones(name: &str, shape: &[i64]) -> Vec<u8> {
    let count: i64 = shape.iter().product();
    floats(name, shape, &vec![1.0; count as usize])
}

fn image() -> File {
    of(&[1, 4, 6, 6], 1, 4)
}

pub(super) fn rows() -> File {
    of(&[2, 4], 1, 2)
}

const FLAG: [i64; 2] = [2, -1];
const OF_FLAG: [&str; 2] = ["is 2; expected 0 or 1", "is -1; expected 0 or 1"];

/// Changes of a flag.
fn flag(name: &'static str) -> Vec<(Named, &'static str)> {
    let changes = FLAG.into_iter().zip(OF_FLAG);
    changes.map(|(value, said)| (whole(name, value), said)).collect()
}

fn flags(names: &[&'static str]) -> Vec<(Named, &'static str)> {
    names.iter().flat_map(|name| flag(name)).collect()
}

fn pool(op: &'static str, more: &[&'static str]) -> Case {
    let mut refused = flags(more);
    refused.extend([
        (
            list("pads", &[-1, 0, 0, 0]),
            "expected paddings that are not below zero",
        ),
        (list("pads", &[3, 0, 0, 0]), "paddings 3 and 0 of a window of 3"),
        (list("pads", &[0, 1, 0, 2]), "paddings 1 and 2 of a window of 2"),
        (word("auto_pad", "FOO"), "attribute `auto_pad` is `FOO`"),
        (
            word("auto_pad", "VALID"),
            "attribute `pads` is [1, 1, 1, 1] beside auto_pad VALID",
        ),
        (list("kernel_shape", &[3]), "kernel_shape [3] of 2 spatial axes"),
    ]);
    Case {
        op,
        opset: 19,
        file: image(),
        inputs: &["x"],
        sound: vec![list("kernel_shape", &[3, 2]), list("pads", &[1, 1, 1, 1])],
        refused,
    }
}

pub(super) fn cell(op: &'static str, gates: i64, more: &[&'static str]) -> Case {
    let file = of(&[3, 1, 4], 1, 4)
        .holding(&ones("w", &[1, 5 * gates, 4]))
        .holding(&ones("r", &[1, 5 * gates, 5]));
    let mut refused = flags(more);
    refused.extend([
        (whole("hidden_size", 4), "attribute `hidden_size` is 4; expected 5"),
        (whole("hidden_size", 0), "attribute `hidden_size` is 0; expected 5"),
        (
            word("direction", "foo"),
            "attribute `direction` is `foo`; expected forward",
        ),
        (word("direction", "Reverse"), "attribute `direction` is `Reverse`"),
    ]);
    Case {
        op,
        opset: 14,
        file,
        inputs: &["x", "w", "r"],
        sound: vec![whole("hidden_size", 5), word("direction", "reverse")],
        refused,
    }
}

fn norm(op: &'static str, opset: i64, inputs: &'static [&'static str], sound: Vec<Named>) -> Case {
    Case {
        op,
        opset,
        file: image()
            .holding(&ones("s", &[if op == "GroupNormalization" { 4 } else { 6 }]))
            .holding(&ones("b", &[4])),
        inputs,
        sound,
        refused: vec![
            (
                whole("stash_type", 2),
                "attribute `stash_type` is 2; expected 1 (float)",
            ),
            (whole("stash_type", 0), "attribute `stash_type` is 0"),
        ],
    }
}

fn windows() -> Vec<Case> {
    vec![
        pool("MaxPool", &["ceil_mode", "storage_order"]),
        pool("AveragePool", &["ceil_mode", "count_include_pad"]),
        Case {
            op: "Conv",
            opset: 17,
            file: image().holding(&ones("w", &[4, 4, 3, 3])),
            inputs: &["x", "w"],
            sound: vec![list("pads", &[1, 1, 1, 1]), list("kernel_shape", &[3, 3])],
            refused: vec![
                (
                    list("pads", &[0, 0, -1, 0]),
                    "expected paddings that are not below zero",
                ),
                (list("kernel_shape", &[2, 3]), "kernel_shape [2, 3] and weights"),
                (word("auto_pad", "same"), "attribute `auto_pad` is `same`"),
                (word("auto_pad", "VALID"), "beside auto_pad VALID"),
                (whole("group", 0), "`group` 0"),
            ],
        },
        Case {
            op: "ConvTranspose",
            opset: 17,
            file: image().holding(&ones("w", &[4, 2, 3, 3])),
            inputs: &["x", "w"],
            sound: vec![
                list("strides", &[2, 2]),
                list("pads", &[1, 1, 1, 1]),
                list("kernel_shape", &[3, 3]),
                list("output_padding", &[1, 0]),
            ],
            refused: vec![
                (list("kernel_shape", &[2, 2]), "kernel_shape [2, 2] and weights"),
                (list("kernel_shape", &[3]), "kernel_shape [3] of 2 spatial axes"),
                (list("output_padding", &[2, 0]), "attribute `output_padding` is [2, 0]"),
                (list("output_padding", &[-1, 0]), "output_padding [-1, 0]"),
                (list("strides", &[1, 1]), "attribute `output_padding` is [1, 0]"),
                (word("auto_pad", "FOO"), "attribute `auto_pad` is `FOO`"),
                (word("auto_pad", "VALID"), "beside auto_pad VALID"),
                (
                    list("pads", &[-1, 0, 0, 0]),
                    "pads [-1, 0, 0, 0], output_padding [1, 0]",
                ),
                (
                    list("output_shape", &[12, 15]),
                    "attribute `output_shape` is [12, 15]; expected less than 15 along spatial axis 1",
                ),
            ],
        },
    ]
}

fn others() -> Vec<Case> {
    let case = |op, opset, file, inputs, sound, refused| Case {
        op,
        opset,
        file,
        inputs,
        sound,
        refused,
    };
    let lrn = ["alpha", "beta"].into_iter().flat_map(|name| {
        [
            (real(name, 0.0), "is 0; expected a finite number above zero"),
            (real(name, -1.0), "is -1; expected a finite number above zero"),
            (real(name, f32::NAN), "is NaN; expected a finite number above zero"),
        ]
    });
    let block = |op| {
        let refused = vec![
            (word("mode", "FOO"), "attribute `mode` is `FOO`; expected DCR, CRD"),
            (word("mode", "dcr"), "attribute `mode` is `dcr`"),
            (whole("blocksize", 0), "blocks of 0 x 0"),
        ];
        case(
            op,
            17,
            image(),
            &["x"],
            vec![whole("blocksize", 2), word("mode", "CRD")],
            refused,
        )
    };
    let axes = |elem| of(&[2, 4], elem, 2);
    vec![
        case("LRN", 17, image(), &["x"], vec![whole("size", 3)], lrn.collect()),
        block("DepthToSpace"),
        block("SpaceToDepth"),
        case(
            "Transpose",
            17,
            rows(),
            &["x"],
            vec![list("perm", &[1, 0])],
            vec![
                (
                    list("perm", &[0, -1]),
                    "attribute `perm` is [0, -1]; expected axes from 0 on",
                ),
                (list("perm", &[0, 0]), "[0, 0]"),
                (list("perm", &[0, 2]), "axis 2 of 2 axes"),
            ],
        ),
        case(
            "ReduceMean",
            13,
            rows(),
            &["x"],
            vec![list("axes", &[1])],
            flag("keepdims"),
        ),
        case(
            "ArgMax",
            13,
            axes(7),
            &["x"],
            vec![whole("axis", 1)],
            flags(&["keepdims", "select_last_index"]),
        ),
        case(
            "CumSum",
            14,
            rows().holding(&longs("a", &[1])),
            &["x", "a"],
            Vec::new(),
            flags(&["exclusive", "reverse"]),
        ),
        case(
            "Gemm",
            13,
            rows().holding(&ones("w", &[4, 4])),
            &["x", "w"],
            Vec::new(),
            flags(&["transA", "transB"]),
        ),
        case(
            "Reshape",
            14,
            rows().holding(&longs("s", &[4, -1])),
            &["x", "s"],
            Vec::new(),
            flag("allowzero"),
        ),
        case(
            "TopK",
            11,
            rows().holding(&longs("k", &[1])),
            &["x", "k"],
            Vec::new(),
            flags(&["largest", "sorted"]),
        ),
        case("Trilu", 14, rows(), &["x"], Vec::new(), flag("upper")),
        case(
            "IsInf",
            10,
            axes(9),
            &["x"],
            Vec::new(),
            flags(&["detect_negative", "detect_positive"]),
        ),
        case(
            "Split",
            18,
            rows(),
            &["x"],
            vec![whole("axis", 1), whole("num_outputs", 1)],
            vec![
                (whole("num_outputs", 2), "attribute `num_outputs` is 2; expected 1"),
                (whole("num_outputs", -1), "attribute `num_outputs` is -1"),
            ],
        ),
        case(
            "Resize",
            18,
            image().holding(&floats("s", &[2], &[2.0, 2.0])),
            &["x", "", "s"],
            vec![list("axes", &[2, 3]), word("mode", "cubic")],
            vec![
                (list("axes", &[2, 2]), "axis 2 is named twice"),
                (list("axes", &[3, -1]), "axis 3 is named twice"),
            ]
            .into_iter()
            .chain(flags(&["exclude_outside", "antialias"]))
            .collect(),
        ),
        case(
            "DequantizeLinear",
            21,
            File::default()
                .input(&value("x", 3, &[2, 4]))
                .output(&value("y", 1, &[2, 4]))
                .holding(&ones("s", &[2, 2])),
            &["x", "s"],
            vec![whole("axis", 1), whole("block_size", 2)],
            vec![(whole("block_size", -2), "attribute `block_size` is -2")],
        ),
    ]
}

fn cases() -> Vec<Case> {
    let mut all = windows();
    all.extend(others());
    all.extend([
        cell("LSTM", 4, &["input_forget", "layout"]),
        cell("GRU", 3, &["linear_before_reset", "layout"]),
        cell("RNN", 1, &["layout"]),
        norm("LayerNormalization", 17, &["x", "s"], vec![whole("stash_type", 1)]),
        norm("RMSNormalization", 23, &["x", "s"], vec![whole("stash_type", 10)]),
        norm("GroupNormalization", 21, &["x", "s", "b"], vec![whole("num_groups", 2)]),
    ]);
    all
}

#[test]
fn values_that_an_operator_has_not_are_refused_by_name() {
    let mut refused = 0;
    for case in cases() {
        let sound: Vec<Vec<u8>> = case.sound.iter().map(|(_, attribute)| attribute.clone()).collect();
        read(&case.bytes(&sound)).unwrap_or_else(|e| panic!("{}: {e}", case.op));
        for (changed, part) in &case.refused {
            let what = format!("{} with {}: `{part}`", case.op, changed.0);
            let text = read(&case.bytes(&case.with(changed))).expect_err(&what);
            assert!(
                text.contains(&format!("node 0 ({})", case.op)) && text.contains(part),
                "{what}: {text}"
            );
            refused += 1;
        }
    }
    println!("{refused} values refused");
    assert!(refused > 70, "{refused}");
}

/// Paddings beside an `auto_pad` that gives the same, or zeros, say nothing new.
#[test]
fn paddings_that_agree_with_auto_pad_are_taken() {
    let same = || word("auto_pad", "SAME_UPPER").1;
    for pads in [[0; 4], [1; 4]] {
        let pool = [ints("kernel_shape", &[3, 3]), ints("pads", &pads), same()];
        let shape = read(&image().node("MaxPool", &["x"], "y", &pool).bytes(17)).expect("it is taken");
        assert_eq!(shape, [[1, 4, 6, 6]]);
    }
    let weights = image().holding(&ones("w", &[4, 1, 3, 3]));
    let transposed = [ints("pads", &[0; 4]), same()];
    let shape = read(&weights.node("ConvTranspose", &["x", "w"], "y", &transposed).bytes(17)).expect("it is taken");
    assert_eq!(shape, [[1, 1, 6, 6]]);
    let empty = [
        text("auto_pad", ""),
        ints("pads", &[1; 4]),
        ints("kernel_shape", &[3, 3]),
    ];
    read(&image().node("MaxPool", &["x"], "y", &empty).bytes(17)).expect("no word");
}

/// Operands that contradict each other or name an axis twice.
#[test]
fn operands_that_contradict_each_other_are_refused() {
    let bytes = |shape: &[i64]| initializer("z", 3, shape, &vec![1; shape.iter().product::<i64>() as usize]);
    let quantised = |op: &str, scales: &[i64], zeros: &[i64]| {
        let [from, to] = if op == "QuantizeLinear" { [1, 3] } else { [3, 1] };
        File::default()
            .input(&value("x", from, &[1, 4, 6, 6]))
            .output(&value("y", to, &[1, 4, 6, 6]))
            .holding(&ones("s", scales))
            .holding(&bytes(zeros))
            .node(op, &["x", "s", "z"], "y", &[])
    };
    let slice = |axes: &[i64]| {
        let lists = [("b", [0, 1].as_slice()), ("e", &[2, 3]), ("a", axes)];
        let file = lists
            .iter()
            .fold(rows(), |file, (name, list)| file.holding(&longs(name, list)));
        file.node("Slice", &["x", "b", "e", "a"], "y", &[])
    };
    let both = image()
        .holding(&floats("s", &[4], &[1.0, 1.0, 2.0, 2.0]))
        .holding(&longs("z", &[1, 4, 12, 12]))
        .node("Resize", &["x", "", "s", "z"], "y", &[]);
    for op in ["QuantizeLinear", "DequantizeLinear"] {
        read(&quantised(op, &[4], &[4]).bytes(13)).expect("as many of both");
        read(&quantised(op, &[], &[1]).bytes(13)).expect("one of both");
        for (scales, zeros, said) in [
            ([4].as_slice(), [].as_slice(), "4 scales and 1 zero points"),
            (&[4], &[1], "4 scales and 1 zero points"),
            (&[], &[4], "1 scales and 4 zero points"),
        ] {
            let text = read(&quantised(op, scales, zeros).bytes(13)).expect_err(said);
            assert!(
                text.contains(said) && text.contains(&format!("node 0 ({op})")),
                "{text}"
            );
        }
    }
    read(&slice(&[0, 1]).bytes(13)).expect("two axes");
    for (file, said) in [
        (slice(&[1, 1]), "axis 1 is named twice"),
        (slice(&[1, -1]), "axis 1 is named twice"),
        (
            both,
            "scales [1.0, 1.0, 2.0, 2.0] and sizes [1, 4, 12, 12]; expected one of the two",
        ),
    ] {
        let text = read(&file.bytes(13)).expect_err(said);
        assert!(text.contains(said) && text.contains("node 0 ("), "{text}");
    }
}
