//! Models with a state: embedded in a program, run again and again, opened on what an earlier session left, and merged in place.

use std::path::{Path, PathBuf};

use arenite::ops::elementwise::{BinaryF32, BinaryOp, Loop, UnaryF32};
use arenite::ops::pointwise::UnaryOp;
use arenite::{DType, LoadError, Model, Session, SessionError, Slot, Step};
use arenite_host::model::{Aligned, ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::blob::{Blob, Tensor, at};
use arenite_tests::golden::{Archive, options};

arenite::include_model!(mod accumulator = "models/stateful/accumulator.bin", loaded);

const COUNT: u32 = 6;

/// `state += x * x`; the output is the state, which begins as 1 to 6.
fn written() -> Vec<u8> {
    let state = Slot {
        region: Slot::STATE,
        offset: 0,
    };
    let count = COUNT;
    let square = Step::UnaryF32(UnaryF32 {
        output: at(4 * count),
        input: at(0),
        count,
        op: UnaryOp::Square,
    });
    let add = Step::BinaryF32(BinaryF32 {
        output: state,
        a: state,
        b: at(4 * count),
        loops: [Loop { count, a: 1, b: 1 }].into_iter().collect(),
        op: BinaryOp::Add,
        clamp: [f32::NEG_INFINITY, f32::INFINITY],
    });
    let port = |name, slot| Tensor::new(name, slot, DType::F32, &[count]);
    let blob = Blob {
        arena: [8 * count, 0, 0, 0],
        inputs: vec![port("x", at(0))],
        outputs: vec![port("sum", state)],
        state: bytes(&initial()),
        ..Blob::default()
    };
    blob.step(&square).step(&add).file()
}

fn initial() -> Vec<f32> {
    (1..=COUNT as u16).map(f32::from).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn the_embedded_file_is_what_is_written_here() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/stateful/accumulator.bin");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, written()).expect("written");
    }
    assert!(
        std::fs::read(&path).expect("a file") == written(),
        "ARENITE_BLESS=1 writes it"
    );
}

#[test]
fn an_embedded_model_keeps_its_state_from_run_to_run() {
    assert_eq!((accumulator::STATE_BYTES, accumulator::ARENA_BYTES), (24, 48));
    #[repr(align(16))]
    struct State([u8; accumulator::STATE_BYTES]);

    let x: Vec<f32> = vec![0.5, -1.0, 2.0, 3.0, -0.25, 4.0];
    let after = |runs: u16| -> Vec<u8> {
        let sums = initial()
            .into_iter()
            .zip(&x)
            .map(|(from, x)| from + f32::from(runs) * x * x);
        bytes(&sums.collect::<Vec<_>>())
    };
    let (mut arena, mut state) = (accumulator::Arena::new(), State([0xFF; accumulator::STATE_BYTES]));
    let model = accumulator::load().expect("it loads");
    let mut session = Session::new(model, arena.bytes(), &mut state.0).expect("it fits");
    for runs in 1..=3 {
        session.set_input(0, &bytes(&x)).expect("six numbers");
        session.run().expect("it runs");
        assert_eq!(session.output(0).expect("a sum"), after(runs), "{runs} runs");
    }
    session.reset_state();
    session.set_input(0, &bytes(&x)).expect("six numbers");
    session.run().expect("it runs");
    assert_eq!(session.output(0).expect("a sum"), after(1), "after a reset");
    // The state is the caller's: a session that resumes goes on with it, a new one begins.
    let mut session = Session::resume(model, arena.bytes(), &mut state.0).expect("it fits");
    assert_eq!(session.output(0).expect("a sum"), after(1));
    session.set_input(0, &bytes(&x)).expect("six numbers");
    session.run().expect("it runs");
    assert_eq!(session.output(0).expect("a sum"), after(2), "resumed");
    let session = Session::new(model, arena.bytes(), &mut state.0).expect("it fits");
    assert_eq!(session.output(0).expect("a sum"), bytes(&initial()), "new");

    let error = Session::new(model, arena.bytes(), &mut state.0[..16]).expect_err("too short");
    assert_eq!(error, SessionError::StateSize { needed: 24, given: 16 });
}

/// The link set is the file's: another model's kernels are not there.
#[test]
fn an_embedded_model_links_its_own_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/mlp.trace.json");
    let options = options(&digits, folder.path(), arenite::Target::Portable);
    pack(&options, &mut |_, _, _| {}).expect("it packs");
    let file = ModelFile::open(&options.output).expect("a model");
    let found = Model::<accumulator::Kernels>::load_with(file.bytes());
    assert!(
        matches!(
            found,
            Err(LoadError::Kernel {
                step: 0,
                target: "portable",
                ..
            })
        ),
        "{found:?}"
    );
}

fn cases() -> Vec<PathBuf> {
    let names = [
        "svdf_f32",
        "svdf_i8_state",
        "svdf_i16_state",
        "svdf_i16_state_rank1",
        "lstm",
        "lstm_batch",
        "lstm_f32",
        "variable_f32",
        "variable_i8",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    names.map(|name| folder.join(format!("{name}.tflite"))).into()
}

/// Runs in sequence, each on the state that the one before left.
fn sequence(options: &Options, inputs: &[Vec<Vec<u8>>]) -> Vec<Vec<Vec<u8>>> {
    pack(options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    let file = ModelFile::open(&options.output).expect("a model");
    run(&file.load().expect("it loads"), inputs, false, &mut |_, _, _| {}).expect("it runs")
}

/// Four runs in sequence give the same bits with every tensor by itself, merged in place, and step by step with a session anew for each
/// run; with one that differs from run to run.
#[test]
fn stateful_models_compute_the_same_bits_in_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut archive = Archive::open(&cases()[0].with_file_name("cases.npz"));
    let mut kept = 0;
    for path in cases() {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut keys: Vec<String> = archive.names();
        keys.retain(|key| key.starts_with(&format!("{name}/in_")));
        keys.sort();
        let ports: Vec<_> = keys.iter().map(|key| archive.runs(key).0).collect();
        let inputs: Vec<Vec<Vec<u8>>> = (0..4)
            .map(|run| ports.iter().map(|rows| rows[run % rows.len()].clone()).collect())
            .collect();
        let merged = options(&path, folder.path(), arenite::Target::Portable);
        let separate = Options {
            in_place: false,
            output: merged.output.with_extension("separate"),
            ..merged.clone()
        };
        let expected = sequence(&separate, &inputs);
        assert_eq!(sequence(&merged, &inputs), expected, "{name}");

        let file = ModelFile::open(&merged.output).expect("a model");
        let model = file.load().expect("it loads");
        let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
        // Its first value; what follows resumes.
        Session::new(model, arena.bytes(), state.bytes()).expect("it fits");
        for (inputs, expected) in inputs.iter().zip(&expected) {
            let mut session = Session::resume(model, arena.bytes(), state.bytes()).expect("it fits");
            for (port, input) in inputs.iter().enumerate() {
                session.set_input(port, input).expect("an input");
            }
            session.run().expect("it runs");
            for (port, expected) in expected.iter().enumerate() {
                assert_eq!(session.output(port).expect("an output"), expected, "{name}");
            }
            arena.bytes().fill(0xC5);
        }
        // The same input again and again: only a state makes results differ.
        let same = sequence(&merged, &vec![inputs[0].clone(); 3]);
        kept += usize::from(same[0] != same[1]);
    }
    assert!(kept >= 4, "{kept} of the models keep something");
}
