//! Loads without this crate's own checksum: by a receipt, and by a unit of the chip. Which changes they find, and that nothing in a file that was
//! changed after its receipt hurts the device. `arenite_tests::attacks` loads all that it attacks in both ways, too.

use std::panic::catch_unwind;
use std::path::Path;

use arenite::{Bundle, CrcUnit, LoadError, Model, Receipt, Session, Target};
use arenite_host::model::Aligned;
use arenite_tests::attacks;
use arenite_tests::blob::aligned;
use arenite_tests::golden::packed;
use arenite_tests::writers::Random;

/// A committed network with one operator, packed for a target.
fn operator(name: &str, target: Target) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_ops/{name}.tflite"));
    let folder = tempfile::tempdir().expect("a folder");
    let model = packed(&path, folder.path(), target).unwrap_or_else(|error| panic!("{error}"));
    model.bytes().to_vec()
}

/// A unit as a chip has it: a byte at a time, a bit at a time, with no code of the runtime's.
#[derive(Default)]
struct Unit {
    pieces: usize,
}

impl CrcUnit for Unit {
    fn crc32(&mut self, pieces: [&[u8]; 2]) -> u32 {
        self.pieces += pieces.len();
        let mut crc = !0u32;
        for byte in pieces.into_iter().flatten() {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0xEDB8_8320
                } else {
                    crc >> 1
                };
            }
        }
        !crc
    }
}

fn output(model: Model<'_>) -> Vec<u8> {
    let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
    let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("a session");
    for input in 0..usize::from(model.header().inputs) {
        session.input_mut(input).expect("an input").fill(0x35);
    }
    session.run().expect("a run");
    session.output(0).expect("an output").to_vec()
}

#[test]
fn all_ways_to_load_give_the_same_model() {
    for target in [Target::Portable, Target::CortexM4, Target::CortexM55] {
        let mut memory = aligned(&operator("conv_3x3_same", target));
        let file = memory.bytes();
        let receipt = Receipt::of(file).expect("an intact file");
        let kept = Receipt::from_bytes(receipt.to_bytes()).expect("a receipt");
        let mut unit = Unit::default();
        let expected = output(Model::load(file).expect("a model"));
        assert_eq!(
            output(Model::load_with_receipt(file, &kept).expect("a model")),
            expected
        );
        assert_eq!(
            output(Model::load_with_crc(file, &mut unit).expect("a model")),
            expected
        );
        assert_eq!(unit.pieces, 2);
    }
}

/// The table of docs/safety.md.
#[test]
fn what_each_way_finds() {
    let good = operator("conv_3x3_same", Target::Portable);
    let receipt = Receipt::of(aligned(&good).bytes()).expect("an intact file");
    let word = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().expect("four bytes")) as usize;
    let flipped = |at: usize| {
        let mut file = good.clone();
        file[at] ^= 1;
        file
    };
    let found = |file: &[u8]| {
        let mut memory = aligned(file);
        let file = memory.bytes();
        let by_receipt = Model::load_with_receipt(file, &receipt).map(|_| ()).err();
        let by_unit = Model::load_with_crc(file, &mut Unit::default()).map(|_| ()).err();
        assert_eq!(
            by_unit,
            Model::load(file).map(|_| ()).err(),
            "a unit finds what the crate's own checksum finds"
        );
        (by_unit, by_receipt)
    };
    let is_checksum = |error: Option<LoadError>| matches!(error, Some(LoadError::Checksum { .. }));

    let (sum, by_receipt) = found(&flipped(word(52)));
    assert!(is_checksum(sum));
    assert_eq!(by_receipt, None, "a changed weight is not found");
    let (sum, by_receipt) = found(&flipped(word(44) + 1));
    assert!(is_checksum(sum));
    assert_eq!(by_receipt, None, "changed metadata are not found");
    let mut unknown = good.clone();
    unknown[word(32)] = 240;
    let (sum, by_receipt) = found(&unknown);
    assert!(is_checksum(sum));
    assert_eq!(by_receipt, Some(LoadError::UnknownKernel { step: 0, kernel: 240 }));
    let (sum, by_receipt) = found(&flipped(20));
    assert!(is_checksum(sum));
    assert!(matches!(by_receipt, Some(LoadError::Receipt { .. })), "{by_receipt:?}");

    // Another whole file at the same place.
    let other = operator("conv_3x3_same", Target::CortexM4);
    let (sum, by_receipt) = found(&other);
    assert_eq!(sum, None);
    assert!(matches!(by_receipt, Some(LoadError::Receipt { .. })), "{by_receipt:?}");
    // A cut one.
    assert!(matches!(
        found(&good[..good.len() - 1]).1,
        Some(LoadError::Truncated { .. })
    ));
    // No receipt for a damaged one.
    assert!(matches!(
        Receipt::of(aligned(&flipped(word(52))).bytes()),
        Err(LoadError::Checksum { .. })
    ));
}

#[test]
fn models_of_a_bundle_have_receipts_of_their_own() {
    let models = ["conv_3x3_same", "add_int8"].map(|name| operator(name, Target::Portable));
    let mut file = vec![0; 96];
    let mut entries = Vec::new();
    for (name, model) in ["first", "second"].iter().zip(&models) {
        file.resize(file.len().next_multiple_of(64), 0);
        entries.push((*name, file.len() as u32, model.len() as u32));
        file.extend(model);
    }
    let total = file.len() as u32;
    arenite::bundle::write_directory(total, entries.into_iter(), &mut file[..96]).expect("a directory");
    let mut memory = aligned(&file);
    let bundle = Bundle::open(memory.bytes()).expect("a bundle");
    let receipts = [0, 1].map(|index| Receipt::of(bundle.entry(index).expect("an entry").bytes).expect("intact"));
    for index in [0, 1] {
        let expected = output(bundle.load(index).expect("a model"));
        let model = bundle.load_with_receipt(index, &receipts[index]).expect("a model");
        assert_eq!(output(model), expected);
        let model = bundle.load_with_crc(index, &mut Unit::default()).expect("a model");
        assert_eq!(output(model), expected);
        let swapped = bundle.load_with_receipt(index, &receipts[1 - index]).map(|_| ());
        assert!(matches!(swapped, Err(LoadError::Receipt { .. })), "{swapped:?}");
    }
    assert_eq!(
        bundle.load_with_receipt(2, &receipts[0]).map(|_| ()),
        Err(LoadError::Header)
    );
}

/// One to four changes anywhere behind the header's checksum, the receipt of before: refused, or run within its operands. `attacks::blob` runs what loads by
/// a receipt that says what the header says, and finds the same files good by a unit that says the same, and with a checksum put right.
#[test]
fn a_file_changed_after_its_receipt_is_refused_or_safe() {
    let rounds = std::env::var("ARENITE_ROUNDS").map_or(6_000, |n| n.parse().expect("ARENITE_ROUNDS is a number"));
    let names = [
        "conv_3x3_same",
        "depthwise_3x3_same",
        "linear",
        "add_int8",
        "concat_int8",
        "average_pool_int8",
        "exp_f32",
    ];
    let targets = [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55];
    let files: Vec<_> = names
        .iter()
        .flat_map(|name| targets.map(|target| operator(name, target)))
        .collect();
    let (mut loaded, mut refused, mut findings) = (0, 0, Vec::new());
    for round in 0..rounds {
        let mut random = Random::new(round);
        let file = &files[random.below(files.len())];
        let receipt = Receipt::of(aligned(file).bytes()).expect("an intact file");
        let mut changed = file.clone();
        for _ in 0..=random.below(3) {
            // Half of the changes before the weights, where there is most to break.
            let end = if random.below(2) == 0 {
                changed.len()
            } else {
                changed.len().min(400)
            };
            let at = 24 + random.below(end - 24);
            let value = [random.below(256) as u8, 0, 0x7F, 0x80, 0xFF, changed[at] ^ 1];
            changed[at] = value[random.below(value.len())];
        }
        if catch_unwind(|| attacks::target("blob", &changed)).is_err() {
            findings.push(round);
        }
        match Model::load_with_receipt(aligned(&changed).bytes(), &receipt) {
            Ok(_) => loaded += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{loaded} loaded, {refused} were refused");
    assert!(findings.is_empty(), "rounds {findings:?}");
    assert!(
        loaded > rounds / 100 && refused > rounds / 100,
        "{loaded} loaded, {refused} were refused"
    );
}
