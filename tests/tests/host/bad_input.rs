//! Bad input of every kind: a typed error that names the trouble, no output left behind, an existing one untouched.

use std::path::{Path, PathBuf};

use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::convert::Convert;
use arenite::ops::movement::{CopyLoop, CopyStrided};
use arenite::ops::packed_conv2d::{Form, PackedConv2dS8};
use arenite::ops::window::Window2d;
use arenite::{DType, FORMAT_VERSION, Fault, LoadError, Model, RunError, Session, SessionError, Slot, Step};
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, ErrorKind};
use arenite_tests::{digits_options, properties};
use proptest::prelude::*;

fn blob(network: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.bin");
    pack(&digits_options(network, &path), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    std::fs::read(&path).expect("just written")
}

/// Loads bytes at the alignment that a device gives.
fn load<T>(bytes: &[u8], then: impl FnOnce(Result<Model<'_>, LoadError>) -> T) -> T {
    let mut memory = Aligned::new(bytes.len());
    memory.bytes().copy_from_slice(bytes);
    then(Model::load(memory.bytes()))
}

fn error(bytes: &[u8]) -> LoadError {
    load(bytes, |model| model.expect_err("it is damaged"))
}

#[test]
fn a_blob_cut_anywhere_is_refused() {
    let good = blob("mlp");
    for length in (0..good.len()).step_by(7).chain(good.len() - 64..good.len()) {
        match error(&good[..length]) {
            LoadError::Truncated { expected, found } => {
                assert_eq!(found as usize, length);
                assert!(expected as usize > length);
            }
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let good = blob("mlp");
    let mut memory = Aligned::new(good.len());
    memory.bytes().copy_from_slice(&good);
    for at in 0..good.len() {
        // Every byte of header, plan and metadata; of the weights a sample.
        if at > 2048 && !at.is_multiple_of(61) {
            continue;
        }
        memory.bytes()[at] ^= 1 << (at % 8);
        let refused = Model::load(memory.bytes()).expect_err("a bit is flipped");
        if at >= 24 {
            let by_sum = matches!(refused, LoadError::Checksum { .. } | LoadError::Header);
            assert!(by_sum, "byte {at}: {refused:?}");
        }
        memory.bytes()[at] ^= 1 << (at % 8);
    }
    assert!(Model::load(memory.bytes()).is_ok());
}

/// With the checksum put right, the checks behind it must hold: whatever still loads also runs without a panic.
#[test]
fn a_flipped_bit_with_a_good_checksum_never_panics() {
    let good = blob("residual");
    let mut refused = 0;
    for at in 24..2500.min(good.len()) {
        for bit in [0, 3, 7] {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let crc = arenite::checksum(&bad);
            bad[20..24].copy_from_slice(&crc.to_le_bytes());
            refused += load(&bad, |model| match model {
                Err(_) => 1,
                Ok(model) if model.arena_bytes(0) > 1 << 24 || model.state_bytes() > 1 << 20 => 0,
                Ok(model) => {
                    run_zeros(model);
                    0
                }
            });
        }
    }
    // A flip that still loads is one in the metadata, or one that makes another valid model.
    assert!(refused > 500, "only {refused} were refused");
}

fn run_zeros(model: Model<'_>) {
    let mut arena = Aligned::new(model.arena_bytes(0));
    let mut state = Aligned::new(model.state_bytes());
    let Ok(mut session) = Session::new(model, arena.bytes(), state.bytes()) else {
        return;
    };
    for port in 0.. {
        match session.input_mut(port) {
            Ok(input) => input.fill(0),
            Err(_) => break,
        }
    }
    session.run().expect("what loads runs");
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let mut bytes = blob("mlp");
    let (found, supported) = (FORMAT_VERSION + 1, FORMAT_VERSION);
    bytes[8..10].copy_from_slice(&found.to_le_bytes());
    let expected = LoadError::Version { found, supported };
    assert_eq!(error(&bytes), expected);
    let text = expected.to_string();
    let both = [found, supported].map(|version| format!("version {version}"));
    assert!(both.iter().all(|version| text.contains(version)), "{text}");
}

#[test]
fn wrong_inputs_and_small_arenas_are_refused_with_the_sizes() {
    let bytes = blob("digits");
    load(&bytes, |model| {
        let model = model.expect("intact");
        let needed = model.arena_bytes(0);
        let mut arena = Aligned::new(needed);
        let small = &mut arena.bytes()[..needed - 1];
        match Session::new(model, small, &mut []) {
            Err(SessionError::ArenaTooSmall {
                region: 0,
                needed: n,
                given,
            }) => {
                assert_eq!((n as usize, given as usize), (needed, needed - 1));
            }
            other => panic!("{other:?}"),
        }
        let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
        let wrong = RunError::InputSize {
            input: 0,
            needed: 256,
            given: 255,
        };
        assert_eq!(session.set_input(0, &[0; 255]), Err(wrong));
        assert_eq!(session.run(), Err(RunError::InputMissing { input: 0 }));
        assert_eq!(session.set_input(1, &[]), Err(RunError::NoSuchPort { index: 1 }));
    });
}

/// The bytes behind the arena are somebody else's.
#[test]
fn nothing_beyond_the_arena_is_touched() {
    const CANARY: u8 = 0xA5;
    for network in ["digits", "residual", "mlp"] {
        load(&blob(network), |model| {
            let model = model.expect("intact");
            let needed = model.arena_bytes(0);
            let mut arena = Aligned::new(needed + 256);
            arena.bytes().fill(CANARY);
            let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
            session.set_input(0, &[0x3F; 256]).expect("an image");
            session.run().expect("runs");
            let (_, behind) = arena.bytes().split_at(needed);
            assert!(behind.iter().all(|&byte| byte == CANARY), "{network}");
        });
    }
}

const TRACE: &str = r#"{"arenite_trace": 1, "name": "small", "inputs": ["x"], "outputs": ["y"],
 "tensors": {
  "x": {"shape": [1, 4], "dtype": "f32", "role": "input"},
  "w": {"shape": [2, 4], "dtype": "f32", "role": "parameter"},
  "h": {"shape": [1, 2], "dtype": "f32", "role": "activation"},
  "y": {"shape": [1, 2], "dtype": "f32", "role": "activation"}},
 "ops": [
  {"name": "fc", "op": "linear", "inputs": ["x", "w"], "outputs": ["h"]},
  {"name": "act", "op": "leaky_relu", "inputs": ["h"], "outputs": ["y"], "attrs": {"negative_slope": 0.1}}]}"#;

/// Packs a trace given as text, over an output that exists already.
fn packed(trace: &str) -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("x.trace.json");
    let output = folder.path().join("model.bin");
    std::fs::write(&input, trace).expect("writes");
    std::fs::write(&output, "before").expect("writes");
    let mut options = Options::new(&input, &output);
    options.weights = Some("seeded:1".to_string());
    let result = pack(&options, &mut |_, _, _| {}).map(|_| ());
    let mut left: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .expect("lists")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    left.sort();
    assert_eq!(left, [output.clone(), input.clone()], "files are left behind");
    let untouched = std::fs::read(&output).expect("reads") == b"before";
    assert_eq!(untouched, result.is_err());
    result
}

#[test]
fn a_bad_trace_is_refused_by_place_and_leaves_the_output_alone() {
    assert!(packed(TRACE).is_ok());
    let cases = [
        // A missing tensor.
        (
            "\"inputs\": [\"x\", \"w\"]",
            "\"inputs\": [\"x\", \"v\"]",
            "`v`",
            ErrorKind::Input,
        ),
        // A cycle: read before it is written.
        (
            "\"inputs\": [\"x\", \"w\"]",
            "\"inputs\": [\"y\", \"w\"]",
            "`y`",
            ErrorKind::Input,
        ),
        // A shape that does not fit.
        ("[2, 4]", "[2, 5]", "fc", ErrorKind::Input),
        // A NaN attribute.
        (
            "\"negative_slope\": 0.1",
            "\"negative_slope\": NaN",
            "line 9",
            ErrorKind::Input,
        ),
        // An unknown operator.
        (
            "\"op\": \"linear\"",
            "\"op\": \"fourier\"",
            "`fourier`",
            ErrorKind::Unsupported,
        ),
    ];
    for (from, to, said, kind) in cases {
        let broken = TRACE.replacen(from, to, 1);
        assert_ne!(broken, TRACE);
        let error = packed(&broken).expect_err(to);
        let text = error.to_string();
        assert!(text.contains(said) && text.contains("x.trace.json"), "{to}: {text}");
        assert_eq!(error.kind(), kind, "{to}: {text}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    for (output, said) in [
        (folder.path().join("nowhere/model.bin"), "does not exist"),
        (folder.path().to_path_buf(), "directory"),
    ] {
        let error = pack(&digits_options("mlp", &output), &mut |_, _, _| {}).expect_err("not writable");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_missing_model_names_the_file() {
    let error = ModelFile::open(Path::new("no such file.bin")).err().expect("absent");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("no such file.bin"), "{error}");
}

proptest! {
    #![proptest_config(properties::config("bad_input", 0.25))]

    /// Bytes that are no model are refused whatever they are.
    #[test]
    fn garbage_is_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..2048), magic in any::<bool>()) {
        if magic && bytes.len() > 12 {
            bytes[..12].copy_from_slice(b"ARENITE\n\x01\x00\x80\x00");
        }
        prop_assert!(load(&bytes, |model| model.is_err()));
    }
}

/// Steps that decode and whose kernels would read or write elsewhere, fail or never end.
#[test]
fn parameters_that_no_kernel_computes_are_refused() {
    let slot = Slot::default();
    let window = Window2d {
        batch: 1,
        input: [1, 1, 2],
        output: [1, 1, 2],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    };
    let wide = PackedConv2dS8 {
        output: slot,
        input: slot,
        scratch: slot,
        weights: 0,
        // Its 2 * 46,341^2 words are few in 32 bits.
        window: Window2d {
            kernel: [46_341; 2],
            dilation: [1, 2],
            ..window
        },
        input_zero_point: 0,
        form: Form::General,
    };
    assert_eq!(Step::DspConv2dS8(wide).check(), Err(Fault::Shape));
    assert_eq!(Step::DspDepthwiseS8(wide).check(), Err(Fault::Shape));

    let grouped = Conv2dS8 {
        output: slot,
        input: slot,
        scratch: slot,
        weights: 0,
        channels: 0,
        window,
        groups: 2,
        input_zero_point: 0,
        output_zero_point: 0,
        clamp: [-128, 127],
        flags: 0,
    };
    assert_eq!(Step::IntConv2dS8(grouped).check(), Err(Fault::Unsupported));
    assert_eq!(Step::IntDenseS8(grouped).check(), Err(Fault::Unsupported));
    assert_eq!(Step::IntDepthwiseS8(grouped).check(), Ok(()));
    let dense = Conv2dS8 { groups: 1, ..grouped };
    assert_eq!(Step::IntDenseS8(dense).check(), Ok(()));
    assert_eq!(Step::IntDepthwiseS8(dense).check(), Err(Fault::Unsupported));

    let convert = |to| Convert {
        output: slot,
        input: slot,
        count: 1,
        from: DType::F32,
        to,
        scale: 1.0,
        zero_point: 0,
    };
    assert_eq!(Step::Convert(convert(DType::I8)).check(), Ok(()));
    assert_eq!(Step::Convert(convert(DType::F32)).check(), Err(Fault::Quantisation));

    // One byte, copied 2^96 times.
    let mut copy = CopyStrided {
        output: slot,
        input: slot,
        element: 1,
        input_len: 1,
        from: 0,
        loops: Default::default(),
    };
    assert_eq!(Step::CopyBytes(copy.clone()).check(), Ok(()));
    for _ in 0..3 {
        let forever = CopyLoop {
            count: u32::MAX,
            to: 0,
            from: 0,
        };
        copy.loops.push(forever).expect("room for three");
    }
    assert_eq!(Step::CopyBytes(copy).check(), Err(Fault::Shape));
}
