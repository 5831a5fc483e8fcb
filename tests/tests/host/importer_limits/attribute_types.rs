//! Attributes of an ONNX node that are of another type than the operator's, or are stated twice: refused by the node's and the attribute's name.

use arenite_tests::onnx::Writer;

use super::attributes::{cell, of, read, rows};
use super::onnx_file::{File, float, initializer, int};

/// Encodings of a value under this name, of each type: its name, and the field.
fn of_each_type(name: &str) -> [(&'static str, Vec<u8>); 7] {
    let named = || Writer::default().bytes(1, name.as_bytes());
    let with = |tail: &[u8]| {
        let mut bytes = named().done();
        bytes.extend(tail);
        bytes
    };
    let tensor = initializer("", 1, &[1], &1f32.to_le_bytes());
    [
        ("FLOAT", with(&[2 << 3 | 5, 0, 0, 0x80, 0x3F])),
        ("INT", named().int(3, 1).done()),
        ("STRING", named().bytes(4, b"DCR").done()),
        ("TENSOR", named().bytes(5, &tensor).done()),
        (
            "FLOATS",
            named()
                .bytes(7, &[1f32.to_le_bytes(), 1f32.to_le_bytes()].concat())
                .done(),
        ),
        ("INTS", named().int(8, 1).int(8, 0).done()),
        ("STRINGS", named().bytes(9, b"Tanh").done()),
    ]
}

/// The number of a type of attributes.
fn number(kind: &str) -> i64 {
    let names = [
        "", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS",
    ];
    names.iter().position(|name| *name == kind).expect("a type") as i64
}

/// An operator, its attribute and that one's type; the operator set, a file with the operands, and their names.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    i64,
    File,
    &'static [&'static str],
);

#[test]
fn attributes_of_another_type_are_refused_by_name() {
    let sequence = || cell("RNN", 1, &[]).file;
    let scales = of(&[1, 1, 2, 2], 1, 4);
    let kinds: [Case; 10] = [
        ("LeakyRelu", "alpha", "FLOAT", 17, rows(), &["x"]),
        ("Elu", "alpha", "FLOAT", 17, rows(), &["x"]),
        ("Softmax", "axis", "INT", 17, rows(), &["x"]),
        ("ReduceMean", "keepdims", "INT", 13, rows(), &["x"]),
        ("Transpose", "perm", "INTS", 17, rows(), &["x"]),
        ("ReduceMax", "axes", "INTS", 13, rows(), &["x"]),
        ("DepthToSpace", "mode", "STRING", 17, of(&[1, 1, 2, 2], 1, 4), &["x"]),
        ("RNN", "activations", "STRINGS", 14, sequence(), &["x", "w", "r"]),
        ("RNN", "activation_alpha", "FLOATS", 14, sequence(), &["x", "w", "r"]),
        ("Upsample", "scales", "FLOATS", 7, scales, &["x"]),
    ];
    for (op, name, kind, opset, file, inputs) in kinds {
        let more = match op {
            "DepthToSpace" => vec![int("blocksize", 1)],
            _ => Vec::new(),
        };
        let taken = |attribute: Vec<u8>| {
            let attributes = more.iter().cloned().chain([attribute]).collect::<Vec<_>>();
            read(&file.clone().node(op, inputs, "y", &attributes).bytes(opset))
        };
        for (found, field) in of_each_type(name) {
            let typed = |number: i64| [field.clone(), Writer::default().int(20, number).done()].concat();
            // The type as stated, and as the field tells where the file leaves it out.
            let own = [typed(number(found)), field.clone(), typed(0)];
            for attribute in own {
                let what = format!("{op} with {name} as {found}");
                match taken(attribute) {
                    // An `activation_alpha` of two numbers for one activation, `scales` of two axes.
                    Err(text) if found == kind => assert!(!text.contains("is of type"), "{what}: {text}"),
                    Ok(_) => assert_eq!(found, kind, "{what} is taken"),
                    Err(text) => {
                        let said = format!("attribute `{name}` is of type {found}; expected {kind}");
                        assert!(
                            text.contains(&said) && text.contains(&format!("node 0 ({op})")),
                            "{what}: {text}"
                        );
                    }
                }
            }
            if found != kind {
                let text = taken(typed(number(kind))).expect_err("a field of another type");
                assert!(
                    text.contains(&format!("attribute `{name}` is of type {found}")),
                    "{text}"
                );
            }
        }
    }
    // A number of a type that ONNX has not.
    let odd = [of_each_type("alpha")[0].1.clone(), Writer::default().int(20, 77).done()].concat();
    let text = read(&rows().node("LeakyRelu", &["x"], "y", &[odd]).bytes(17)).expect_err("a type");
    assert!(
        text.contains("attribute `alpha` is of type number 77; expected FLOAT"),
        "{text}"
    );
}

#[test]
fn an_attribute_that_is_stated_twice_is_refused() {
    for second in [float("alpha", 0.5), float("alpha", 0.25), int("alpha", 1)] {
        let file = rows().node("LeakyRelu", &["x"], "y", &[float("alpha", 0.5), second]);
        let text = read(&file.bytes(17)).expect_err("two values");
        for part in ["node 0 (LeakyRelu)", "attribute `alpha` is stated twice"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
