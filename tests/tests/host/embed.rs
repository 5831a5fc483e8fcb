//! The compiler's reading of an embedded file, done when a program runs: every mistake by its text, and every port as load reads it. That a program with such a
//! file does not compile, `include` shows.

use std::panic::catch_unwind;

use arenite::embed::{self, checked};
use arenite::{DType, Model};
use arenite_tests::blob::{Blob, Tensor, aligned, at, seal};
use arenite_tests::typed::{bundle, other, written};

/// A file that stays, where a model may lie.
fn kept(file: &[u8]) -> &'static [u8] {
    Box::leak(Box::new(aligned(file))).bytes()
}

/// Runs `read`; returns its result, or the message that the compiler would give.
fn said<T>(read: impl FnOnce() -> T + std::panic::UnwindSafe) -> Result<T, String> {
    catch_unwind(read).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

/// A change behind which the checksum is put right.
fn sealed(mut file: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut file);
    seal(&mut file);
    file
}

/// The mistake, how a file is made so, and the message.
type Case = (&'static str, fn(&mut [u8]), &'static str);

const CONTRADICTION: &str = "the model's header contradicts itself: pack the model again";

#[test]
fn what_is_wrong_with_a_header_is_told() {
    let file = written().file();
    let cases: [Case; 14] = [
        (
            "another magic",
            |file| file[3] ^= 1,
            "this is no model file: `pack` writes them",
        ),
        (
            "an older version",
            |file| file[8] = 0,
            "the model has an older format version",
        ),
        (
            "a later version",
            |file| file[8] = 3,
            "the model has a newer format version",
        ),
        (
            "a version of two bytes",
            |file| file[9] = 1,
            "the model has a newer format version",
        ),
        ("a longer header", |file| file[10] += 1, CONTRADICTION),
        ("a reserved byte", |file| file[15] = 1, CONTRADICTION),
        ("ports outside", |file| file[26] = 1, CONTRADICTION),
        ("longer steps", |file| file[38] = 1, CONTRADICTION),
        ("metadata outside", |file| file[47] = 0x80, CONTRADICTION),
        ("weights outside", |file| file[54] = 1, CONTRADICTION),
        ("state outside", |file| file[62] = 1, CONTRADICTION),
        ("a self-test outside", |file| file[130] = 1, CONTRADICTION),
        ("labels outside", |file| file[138] = 1, CONTRADICTION),
        (
            "an unknown kernel",
            |file| file[127] |= 0x80,
            "a kernel that this version does not know",
        ),
    ];
    for (what, change, reason) in cases {
        let file = kept(&sealed(file.clone(), change));
        let text = said(|| checked(file)).expect_err(what);
        assert!(text.contains(reason), "{what}: {text}");
    }
    // Lengths: what seals a file goes by the length that it states.
    let stated = |total: u32| {
        let mut file = file.clone();
        file[16..20].copy_from_slice(&total.to_le_bytes());
        kept(&file)
    };
    let whole = file.len() as u32;
    let reason = |file: &'static [u8]| said(|| checked(file)).expect_err("a wrong length");
    assert_eq!(reason(stated(143)), CONTRADICTION);
    assert_eq!(reason(stated(144)), CONTRADICTION);
    assert!(reason(stated(whole + 1)).starts_with("the model file is cut"));
    assert!(reason(kept(&file[..143])).starts_with("this is no model file"));
    assert!(reason(kept(&[])).starts_with("this is no model file"));
    for byte in [20, 144, file.len() - 1] {
        let mut damaged = file.clone();
        damaged[byte] ^= 0x10;
        let text = said(move || checked(kept(&damaged))).expect_err("a damaged file");
        assert!(
            text.contains("checksum does not match") || text.contains("is cut"),
            "{byte}: {text}"
        );
    }
    // Bytes behind the file are not looked at.
    let longer = [&file[..], &[7; 9]].concat();
    assert_eq!(said(move || checked(kept(&longer))), Ok(&file[..]));
}

#[test]
fn what_is_wrong_with_a_port_or_a_label_is_told() {
    let file = written().file();
    // The first port: the length of its name, the name, region, offset, type, axes, extents.
    let cases: [Case; 6] = [
        (
            "a name beyond the ports",
            |file| file[144] = 127,
            "the name of an input, an output or a class is cut",
        ),
        ("a name that is no text", |file| file[145] = 0xFF, "is no UTF-8"),
        (
            "an offset of six bytes",
            |file| file[147..153].fill(0x80),
            "is too long",
        ),
        ("an unknown type", |file| file[148] = 7, "an unknown type"),
        ("nine axes", |file| file[149] = 9, "too many axes"),
        (
            "fewer bytes of ports",
            |file| file[28] -= 1,
            "the description of an input, an output or a label is cut",
        ),
    ];
    for (what, change, reason) in cases {
        let file = kept(&sealed(file.clone(), change));
        let text = said(|| checked(file)).expect_err(what);
        assert!(text.contains(reason), "{what}: {text}");
    }
    let mut many = written();
    many.inputs[0].shape = vec![128, 128, 128, 128, 1, 1, 1, 1];
    let many = kept(&sealed(many.file(), |file| {
        file[150..158].copy_from_slice(&[0xFF, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F]);
        file[158..162].fill(127);
    }));
    assert_eq!(
        said(|| embed::input_elements(many, 0)),
        Err("an input or output has too many elements".into())
    );
    let labels = kept(
        &Blob {
            labels: vec![2, 1, b'a', 9, b'b'],
            ..written()
        }
        .file(),
    );
    assert_eq!(embed::label_count(labels), 2);
    assert!(
        said(|| embed::labels::<2>(labels))
            .expect_err("a cut label")
            .contains("is cut")
    );
}

#[test]
fn a_model_of_a_bundle_is_found_by_its_whole_name() {
    let file = kept(&bundle(&[("several", written().file()), ("other", other().file())]));
    assert_eq!(embed::entry(file, "other")[..], other().file()[..]);
    for name in ["othe", "other-one", ""] {
        assert!(
            said(|| embed::entry(file, name))
                .expect_err(name)
                .contains("no model of this name")
        );
    }
    let single = kept(&written().file());
    assert!(
        said(|| embed::entry(single, "several"))
            .expect_err("a model")
            .contains("this is no bundle")
    );
    assert!(
        said(|| checked(file))
            .expect_err("a bundle")
            .contains("arenite::include_bundle!")
    );
}

/// A model of these ports, all at the start of the arena, and of these bytes in the regions.
fn of_ports(inputs: &[Tensor], outputs: &[Tensor], arena: [u32; 4]) -> Blob {
    let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
    Blob {
        inputs,
        outputs,
        arena,
        ..other()
    }
}

#[test]
fn ports_are_read_as_load_reads_them() {
    let types = [
        DType::F32,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::Bool,
    ];
    let tensors: Vec<Tensor> = (0u32..)
        .zip(types)
        .map(|(index, dtype)| {
            let shape = &[3, 1, 2, 150, 1, 1, 1, 2][..=index as usize];
            let (scale, zero_point) = (
                [0.0, 0.125, 3.5e-7][index as usize % 3],
                [0, -128, 127, -70_000][index as usize % 4],
            );
            Tensor {
                scale,
                zero_point,
                ..Tensor::new(&"näme".repeat(index as usize), at(0), dtype, shape)
            }
        })
        .collect();
    let arenas = [[65536, 0, 0, 0], [65536, 0, 0, 16], [65536, 8, 0, 0]];
    for (count, arena) in [
        (1, arenas[0]),
        (3, arenas[1]),
        (4, arenas[2]),
        (5, arenas[0]),
        (7, arenas[0]),
    ] {
        let file = of_ports(&tensors[..count], &tensors[7 - count..], arena).file();
        let file = checked(kept(&file));
        let model = Model::load(file).expect("a model");
        assert_eq!((embed::inputs(file), embed::outputs(file)), (count, count));
        assert_eq!(embed::form(count), if count > 4 { 0 } else { count });
        assert_eq!(
            (embed::arena_bytes(file), embed::one_region(file)),
            (65536, arena == arenas[0])
        );
        let ports = (0..count)
            .map(|index| model.input(index))
            .chain((0..count).map(|index| model.output(index)));
        for (number, port) in ports.enumerate() {
            let port = port.expect("a port");
            let elements: u32 = port.shape.iter().product();
            let (is, dtype) = if number < count {
                (embed::input_elements(file, number), embed::input_type(file, number))
            } else {
                (
                    embed::output_elements(file, number - count),
                    embed::output_type(file, number - count),
                )
            };
            assert_eq!(
                (is, dtype),
                (elements as usize, port.dtype as u8),
                "{number} of {count}"
            );
            let [is] = embed::described::<1>(file, number);
            let stated = (is.name, is.dtype, is.shape(), is.scale, is.zero_point);
            assert_eq!(
                stated,
                (port.name, port.dtype, &port.shape[..], port.scale, port.zero_point)
            );
        }
        assert_eq!(
            embed::input_elements(file, count) + embed::output_elements(file, count),
            0
        );
        assert_eq!(
            (embed::input_type(file, count), embed::output_type(file, count)),
            (0, 0)
        );
        let receipt = embed::receipt(file);
        assert!(Model::load_with_receipt(file, &receipt).is_ok() && receipt.length as usize == file.len());
    }
    assert_eq!((embed::larger(3, 2), embed::larger(2, 5)), (3, 5));
}

#[test]
fn labels_are_read_in_order() {
    let file = kept(&written().file());
    assert_eq!(
        (embed::label_count(file), embed::labels::<3>(file)),
        (3, ["no", "yes", "Käse"])
    );
    assert_eq!(embed::label_count(kept(&other().file())), 0);
    let long = "x".repeat(300);
    let many: Vec<&str> = (0..130).map(|index| if index == 7 { &long[..] } else { "y" }).collect();
    let labels = postcard::to_stdvec(&many).expect("encodes");
    let file = kept(&Blob { labels, ..written() }.file());
    assert_eq!(
        (embed::label_count(file), &embed::labels::<130>(file)[..]),
        (130, &many[..])
    );
}
