//! Files of `torch.save` in a program of an older layout: only what tensors are made of is read, nothing is called, and what is damaged says how.

use arenite_host::import::ImportOptions;
use arenite_tests::writers::pt2::{Entry, small, zip};

use crate::pt2::{refused, said};

/// A text of a pickle.
fn text(value: &str) -> Vec<u8> {
    [&[b'X'][..], &(value.len() as u32).to_le_bytes(), value.as_bytes()].concat()
}

fn class(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// `("storage", torch.KIND, "0", "cpu", 3)`, as a persistent id.
fn storage(kind: &str) -> Vec<u8> {
    [
        b"(".to_vec(),
        text("storage"),
        class("torch", kind),
        text("0"),
        text("cpu"),
        b"K\x03tQ".to_vec(),
    ]
    .concat()
}

/// A tensor of three elements at an offset.
fn tensor(kind: &str, offset: u8) -> Vec<u8> {
    let rebuild = class("torch._utils", "_rebuild_tensor_v2");
    let place = [b'K', offset, b'K', 3, 0x85, b'K', 1, 0x85, 0x89];
    let hooks = [class("collections", "OrderedDict"), b")R".to_vec()].concat();
    [
        rebuild,
        b"(".to_vec(),
        storage(kind),
        place.to_vec(),
        hooks,
        b"tR".to_vec(),
    ]
    .concat()
}

/// `{"layer.w": VALUE}`
fn dictionary(value: &[u8]) -> Vec<u8> {
    [
        b"\x80\x02}q\0".to_vec(),
        text("layer.w"),
        value.to_vec(),
        b"s.".to_vec(),
    ]
    .concat()
}

/// The program of `relu(x * w) + x` in the layout of PyTorch 2.5, with a state of this pickle.
fn file(pickle: &[u8]) -> Vec<u8> {
    let elements: Vec<u8> = [0.5_f32, -2.0, 3.0].iter().flat_map(|w| w.to_le_bytes()).collect();
    let state = zip(&[
        Entry::stored("archive/data.pkl", pickle),
        Entry::stored("archive/data/0", &elements),
    ]);
    of_state(&state)
}

fn of_state(state: &[u8]) -> Vec<u8> {
    zip(&[
        Entry::stored("serialized_exported_program.json", small().to_string().as_bytes()),
        Entry::stored("serialized_state_dict.pt", state),
        Entry::stored("version", b"8.2"),
    ])
}

#[test]
fn tensors_are_read_and_nothing_is_called() {
    said(
        &file(&dictionary(&tensor("FloatStorage", 0))),
        &ImportOptions::default(),
    )
    .expect("it is read");
    let parameter = [
        class("torch._utils", "_rebuild_parameter"),
        b"(".to_vec(),
        tensor("FloatStorage", 0),
        b"\x88}tR".to_vec(),
    ];
    said(&file(&dictionary(&parameter.concat())), &ImportOptions::default()).expect("it is read");
    let system = [class("os", "system"), b"(".to_vec(), text("true"), b"tR".to_vec()].concat();
    refused(
        &file(&dictionary(&system)),
        &[
            "the saved tensors cannot be read: it calls os.system",
            "torch.export.save",
        ],
    );
}

#[test]
fn damaged_pickles_say_how() {
    let cannot = "the saved tensors cannot be read";
    let nested: Vec<u8> = [b"\x80\x02)".to_vec(), vec![0x85; 17], b".".to_vec()].concat();
    for (pickle, why) in [
        (b"\x80\x02N.".to_vec(), "no dictionary of tensors"),
        (b"\x80\x02".to_vec(), "the pickle is cut off"),
        (b"cos\nsystem".to_vec(), "the pickle is cut off"),
        (b".".to_vec(), "the pickle takes from an empty stack"),
        (b"t".to_vec(), "the pickle takes from an empty stack"),
        (b"\x86".to_vec(), "the pickle takes from an empty stack"),
        (nested, "tuples in tuples, deeper than tensors have them"),
        (b"\x8a\x09".to_vec(), "a number of more than 64 bits"),
        (b"NN\x93".to_vec(), "a class without a name"),
        (b"h\x05".to_vec(), "the pickle reads what it did not store"),
        (b"i".to_vec(), "the pickle has the instruction 0x69"),
        (b"NQ".to_vec(), "a storage without a name"),
        (b")Q".to_vec(), "a storage without a name"),
        (b"NNR".to_vec(), "a call of no function"),
        (
            dictionary(&tensor("ComplexFloatStorage", 0)),
            "it holds a torch.ComplexFloatStorage",
        ),
        (dictionary(&tensor("FloatStorage", 1)), "elements within what is stored"),
        (
            dictionary(&tensor("DoubleStorage", 0)),
            "elements within what is stored",
        ),
    ] {
        refused(&file(&pickle), &[why]);
        if !why.starts_with("elements") {
            refused(&file(&pickle), &[cannot]);
        }
    }
    let odd = [
        class("torch._utils", "_rebuild_tensor_v2"),
        b"(".to_vec(),
        storage("FloatStorage"),
        b"K\0N\x85)tR".to_vec(),
    ];
    refused(&file(&dictionary(&odd.concat())), &["a shape that is not of numbers"]);
    refused(
        &of_state(&zip(&[Entry::stored("archive/version", b"3")])),
        &[cannot, "no data.pkl"],
    );
    let pickle = dictionary(&tensor("FloatStorage", 0));
    refused(
        &of_state(&zip(&[Entry::stored("a/data.pkl", &pickle)])),
        &[cannot, "no `a/data/0`"],
    );
    refused(&of_state(b"nothing"), &["the zip archive is damaged"]);
    refused(&of_state(b""), &["the archive has no value of `layer.w`"]);
}

/// Every beginning of a pickle, and every byte of it changed: an answer, never a panic.
#[test]
fn changed_pickles_never_panic() {
    let good = dictionary(&tensor("FloatStorage", 0));
    for end in 0..good.len() {
        said(&file(&good[..end]), &ImportOptions::default()).expect_err("it is cut off");
    }
    for at in 0..good.len() {
        for byte in [0, 1, b'(', b')', b'R', b'h', b't', 0x85, 0x8a, 0xFF] {
            let mut changed = good.clone();
            changed[at] = byte;
            let _ = said(&file(&changed), &ImportOptions::default());
        }
    }
}
