//! Checks of a device on itself: the self-test that a file brings along, canaries and marks.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::blob::seal;
use arenite::guard::{CANARY_BYTES, Overrun, guarded_bytes};
use arenite::{DType, Header, LoadError, Model, RunError, SelfTestError, Session, SessionError};
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_host::self_test::pass;
use arenite_host::{ErrorKind, sign};
use arenite_tests::digits_options;
use arenite_tests::variants::unprovoked;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::NpzWriter;

const RUNS: usize = 3;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// Samples of `RUNS` runs for each input of a model: small numbers that differ.
fn samples(model: &Path, archive: &Path) {
    let file = ModelFile::open(model).expect("a model");
    let mut npz = NpzWriter::new(fs::File::create(archive).expect("a file"));
    for port in file.view().expect("an intact file").inputs {
        let shape: Vec<usize> = std::iter::once(RUNS)
            .chain(port.shape.iter().map(|&n| n as usize))
            .collect();
        let value = |index: usize| (index * 7 % 23) as i8 - 11;
        let count = shape.iter().product::<usize>();
        let place = IxDyn(&shape);
        let written = match port.dtype {
            DType::I8 => npz.add_array(
                port.name,
                &ArrayD::from_shape_vec(place, (0..count).map(value).collect()).expect("a shape"),
            ),
            DType::F32 => npz.add_array(
                port.name,
                &ArrayD::from_shape_vec(place, (0..count).map(|i| f32::from(value(i)) / 8.0).collect())
                    .expect("a shape"),
            ),
            other => panic!("{other:?}"),
        };
        written.expect("written");
    }
    npz.finish().expect("written");
}

/// A model with a self-test, and the same without.
fn packed(folder: &Path, options: &Options) -> (Vec<u8>, Vec<u8>) {
    let mut options = options.clone();
    options.output = folder.join("plain.bin");
    pack(&options, &mut |_, _, _| {}).expect("a model");
    let archive = folder.join("samples.npz");
    samples(&options.output, &archive);
    let plain = fs::read(&options.output).expect("the model");
    options.self_test = Some(archive);
    options.output = folder.join("tested.bin");
    let summary = pack(&options, &mut |_, _, _| {})
        .expect("a model with a self-test")
        .summary;
    let tested = fs::read(&options.output).expect("the model");
    assert_eq!(summary.model_bytes, tested.len() as u64);
    (tested, plain)
}

fn test(file: &[u8]) -> Result<u32, SelfTestError> {
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(file);
    pass(&Model::load(aligned.bytes()).expect("it loads"))
}

fn small() -> Options {
    digits_options("mlp", Path::new(""))
}

#[test]
fn a_file_tests_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tested, plain) = packed(folder.path(), &small());
    assert_eq!(test(&tested), Ok(RUNS as u32));
    assert_eq!(test(&plain), Err(SelfTestError::Missing));
    // Length, checksum and the place of the self-test are all that differs.
    let differs: Vec<usize> = (0..plain.len()).filter(|&at| plain[at] != tested[at]).collect();
    assert!(
        differs
            .iter()
            .all(|at| (16..24).contains(at) || (128..136).contains(at)),
        "{differs:?}"
    );
}

/// State goes on from run to run: the last runs of a stateful network depend on the first.
#[test]
fn a_stateful_model_tests_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut found = 0;
    for entry in fs::read_dir(models().join("tflite_ops")).expect("models") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains("svdf") || !name.ends_with(".tflite") {
            continue;
        }
        let options = Options::new(&path, "");
        let (tested, _) = packed(folder.path(), &options);
        let mut aligned = Aligned::new(tested.len());
        aligned.bytes().copy_from_slice(&tested);
        let model = Model::load(aligned.bytes()).expect("it loads");
        found += usize::from(model.state_bytes() > 0);
        assert_eq!(pass(&model), Ok(RUNS as u32), "{name}");
        // Without its state there is no run of it.
        let mut arena = Aligned::new(model.arena_bytes(0));
        let refused = model.self_test(arena.bytes());
        assert!(
            matches!(refused, Err(SelfTestError::Session(SessionError::StateSize { .. }))),
            "{refused:?}"
        );
    }
    assert!(found > 0, "no model with state");
}

#[test]
fn each_way_to_fail_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tested, plain) = packed(folder.path(), &small());
    let mut provoked = vec![format!("{:?}", SelfTestError::Missing)];
    let section = Header::parse(&tested).expect("a header").self_test.len as usize;
    let start = tested.len() - section;
    let changed = |at: usize, value: u8| {
        let mut file = tested.clone();
        file[at] = value;
        seal(&mut file);
        file
    };
    let last = *tested.last().expect("bytes");
    let wrong = test(&changed(tested.len() - 1, !last)).expect_err("another digest");
    assert!(
        matches!(wrong, SelfTestError::Output { run: 2, output: 0, .. }),
        "{wrong:?}"
    );
    provoked.push(format!("{wrong:?}"));
    // Weights that changed and were sealed again: what no checksum tells.
    let header = Header::parse(&plain).expect("a header");
    let weight = header.weights.offset as usize + 3;
    let wrong = test(&changed(weight, tested[weight] ^ 0x40)).expect_err("other outputs");
    assert!(matches!(wrong, SelfTestError::Output { .. }), "{wrong:?}");
    for (what, file) in [
        ("a run too few", changed(start, RUNS as u8 - 1)),
        ("a run too many", changed(start, RUNS as u8 + 1)),
        ("no run", changed(start, 0)),
        ("many runs", changed(start + 3, 255)),
        ("a shorter section", changed(132, tested[132] - 1)),
    ] {
        let malformed = test(&file).expect_err(what);
        assert!(matches!(malformed, SelfTestError::Malformed), "{what}: {malformed:?}");
        provoked.push(format!("{malformed:?}"));
    }
    let mut outside = Aligned::new(tested.len());
    outside.bytes().copy_from_slice(&changed(131, 255));
    assert_eq!(Model::load(outside.bytes()).err(), Some(LoadError::Header));

    let mut aligned = Aligned::new(tested.len());
    aligned.bytes().copy_from_slice(&tested);
    let model = Model::load(aligned.bytes()).expect("it loads");
    let none = model.self_test(&mut [][..]).expect_err("no arena");
    provoked.push(format!("{none:?}"));
    provoked.push(format!("{:?}", SelfTestError::Run(RunError::Corrupt { step: 0 })));
    assert_eq!(unprovoked("core/src/self_test.rs", "SelfTestError", provoked), [""; 0]);
}

#[test]
fn samples_that_are_not_the_inputs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.npz");
    let refused = |path: &Path| {
        let options = Options {
            self_test: Some(path.to_path_buf()),
            output: folder.path().join("refused.bin"),
            ..small()
        };
        let error = pack(&options, &mut |_, _, _| {}).expect_err("refused");
        assert!(!options.output.exists());
        (error.kind(), error.to_string())
    };
    let mut npz = NpzWriter::new(fs::File::create(&path).expect("a file"));
    npz.add_array("other", &ArrayD::<f32>::zeros(IxDyn(&[1, 1, 8, 8])))
        .expect("written");
    npz.finish().expect("written");
    let (kind, text) = refused(&path);
    assert!(
        kind == ErrorKind::Input && text.contains("`image`") && text.contains("wrong.npz"),
        "{text}"
    );
    let mut npz = NpzWriter::new(fs::File::create(&path).expect("a file"));
    npz.add_array("image", &ArrayD::<f32>::zeros(IxDyn(&[0, 1, 1, 8, 8])))
        .expect("written");
    npz.finish().expect("written");
    assert!(refused(&path).1.contains("no sample"));
}

#[test]
fn canaries_and_marks_tell_what_was_used() {
    let mut aligned = stateful();
    let model = Model::load(aligned.bytes()).expect("it loads");
    let (arena_bytes, state_bytes) = (model.arena_bytes(0), model.state_bytes());
    let mut arena = Aligned::new(guarded_bytes(arena_bytes) + 64);
    let mut state = Aligned::new(guarded_bytes(state_bytes));
    let canaries = [&mut arena, &mut state].map(|memory| memory.bytes().as_mut_ptr());
    let canaries = [
        canaries[0].wrapping_add(arena_bytes),
        canaries[1].wrapping_add(state_bytes),
    ];
    let (mut session, guard) = Session::guarded(model, arena.bytes(), state.bytes()).expect("a session");
    assert_eq!(session.marks().arena, [0; 4]);
    assert_eq!(session.marks().state, 0);
    for index in 0..usize::from(model.header().inputs) {
        session.input_mut(index).expect("an input").fill(1);
    }
    session.run().expect("a run");
    let marks = session.marks();
    assert!(
        marks.arena[0] > 0 && marks.arena[0] as usize <= arena_bytes,
        "{marks:?}"
    );
    assert!(marks.state > 0 && marks.state as usize <= state_bytes, "{marks:?}");
    assert_eq!(guard.check(), Ok(()));
    let errors = [Overrun::Arena { region: 0 }, Overrun::State];
    for (canary, error) in canaries.into_iter().zip(errors) {
        for at in 0..CANARY_BYTES {
            // SAFETY: inside the memory that outlives the guard: the stray write that is to be found.
            let flip = || unsafe { canary.add(at).write_volatile(!canary.add(at).read_volatile()) };
            flip();
            assert_eq!(guard.check(), Err(error), "byte {at}");
            flip();
            assert_eq!(guard.check(), Ok(()));
        }
    }
}

#[test]
fn guarded_memory_has_room_for_its_canaries() {
    let mut aligned = stateful();
    let model = Model::load(aligned.bytes()).expect("it loads");
    let needed = [guarded_bytes(model.arena_bytes(0)), guarded_bytes(model.state_bytes())];
    let open = |arena: usize, state: usize| {
        let (mut arena, mut state) = (Aligned::new(arena), Aligned::new(state));
        Session::guarded(model, arena.bytes(), state.bytes()).map(drop)
    };
    assert_eq!(open(needed[0], needed[1]), Ok(()));
    let [arena, state] = needed.map(|needed| needed as u32);
    let small = SessionError::ArenaTooSmall {
        region: 0,
        needed: arena,
        given: arena - 1,
    };
    assert_eq!(open(needed[0] - 1, needed[1]), Err(small));
    let small = SessionError::StateSize {
        needed: state,
        given: state - 1,
    };
    assert_eq!(open(needed[0], needed[1] - 1), Err(small));
    assert_eq!(guarded_bytes(0), 0);
}

/// A model with state, packed.
fn stateful() -> Aligned {
    let entries = fs::read_dir(models().join("tflite_ops")).expect("models");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("svdf") && name.ends_with(".tflite"))
        .collect();
    names.sort();
    let folder = tempfile::tempdir().expect("a folder");
    let input = models().join("tflite_ops").join(&names[0]);
    let (file, _) = packed(folder.path(), &Options::new(input, ""));
    let mut aligned = Aligned::new(file.len());
    aligned.bytes().copy_from_slice(&file);
    aligned
}

#[test]
fn a_self_test_is_signed_with_its_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tested, _) = packed(folder.path(), &small());
    let key = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let signed = sign::Signer::new(key, 1).sign(&tested).expect("a signed file");
    assert_eq!(test(arenite::content(&signed)), Ok(RUNS as u32));
}
