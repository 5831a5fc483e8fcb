//! Sessions: their memory, their inputs, their steps.

use super::*;

arenite::include_model!(mod accumulator = "models/stateful/accumulator.bin", loaded);

#[test]
fn every_reason_to_refuse_memory_is_given_for_its_cause() {
    let mut blob = svdf(
        at(16),
        Slot {
            region: Slot::STATE,
            offset: 0,
        },
    );
    blob.arena = [32, 0, 48, 0];
    let file = blob.file();
    let mut memory = aligned(&file);
    let model = Model::load(memory.bytes()).expect("a model");
    let mut buffers: [Aligned; 4] = std::array::from_fn(|_| Aligned::new(128));
    let [first, third, state, other] = &mut buffers;
    let mut open =
        |first_at: usize, first_len: usize, third_at: usize, third_len: usize, state_at: usize, state_len: usize| {
            let mut arenas: [&mut [u8]; MAX_REGIONS] = [&mut [], &mut [], &mut [], &mut []];
            arenas[0] = &mut first.bytes()[first_at..first_at + first_len];
            arenas[2] = &mut third.bytes()[third_at..third_at + third_len];
            // A region that the model does not use may be anything.
            arenas[3] = &mut other.bytes()[1..4];
            let state = &mut state.bytes()[state_at..state_at + state_len];
            Session::new(model, Arenas::from(arenas), state).map(|_| ())
        };
    assert_eq!(open(0, 32, 0, 48, 0, 16), Ok(()));
    assert_eq!(open(16, 112, 32, 96, 48, 16), Ok(()), "more than needed");
    let small = |region, needed, given| SessionError::ArenaTooSmall { region, needed, given };
    let size = |given| SessionError::StateSize { needed: 16, given };
    let cases = [
        (open(0, 31, 0, 48, 0, 16), small(0, 32, 31)),
        (open(0, 32, 0, 47, 0, 16), small(2, 48, 47)),
        (open(0, 0, 0, 48, 0, 16), small(0, 32, 0)),
        (open(8, 32, 0, 48, 0, 16), SessionError::ArenaMisaligned { region: 0 }),
        (open(0, 32, 1, 48, 0, 16), SessionError::ArenaMisaligned { region: 2 }),
        (open(0, 32, 0, 48, 0, 15), size(15)),
        (open(0, 32, 0, 48, 0, 17), size(17)),
        (open(0, 32, 0, 48, 0, 0), size(0)),
        (open(0, 32, 0, 48, 8, 16), SessionError::StateMisaligned),
    ];
    for (index, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(*found, Err(*expected), "case {index}");
    }
    let first = accumulator::session().map(|_| ());
    assert_eq!(first, Ok(()));
    let twice = accumulator::session().map(|_| ());
    assert_eq!(twice, Err(SessionError::MemoryTaken.into()));
    let debug = cases.iter().map(|(_, error)| format!("{error:?}"));
    let debug = debug.chain(["MemoryTaken".to_string()]);
    assert_eq!(unprovoked("core/src/error.rs", "SessionError", debug), [""; 0]);
}

/// Two inputs of one number each, of which the first is negated twice: three steps.
fn two_inputs() -> Blob {
    Blob {
        arena: [32, 0, 0, 0],
        inputs: vec![
            Tensor::new("a", at(0), DType::F32, &[1]),
            Tensor::new("b", at(4), DType::F32, &[1]),
        ],
        outputs: vec![Tensor::new("y", at(8), DType::F32, &[1])],
        ..Blob::default()
    }
    .step(&unary(at(8), at(0), 1))
    .step(&unary(at(0), at(8), 1))
    .step(&unary(at(8), at(0), 1))
}

#[test]
fn a_run_wants_its_inputs_and_takes_its_steps() {
    let mut memory = aligned(&two_inputs().file());
    let model = Model::load(memory.bytes()).expect("a model");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    let one = 1f32.to_le_bytes();
    let missing = |input| Err(RunError::InputMissing { input });
    let wrong = |input, given| {
        let needed = 4;
        Err(RunError::InputSize { input, needed, given })
    };
    let mut provoked = Vec::new();
    let mut expect = |found: Result<(), RunError>, expected: Result<(), RunError>, what: &str| {
        assert_eq!(found, expected, "{what}");
        provoked.extend(found.err().map(|error| format!("{error:?}")));
    };

    expect(session.run(), missing(0), "nothing set");
    expect(session.set_input(0, &one), Ok(()), "the first");
    expect(session.run(), missing(1), "the second is missing");
    expect(session.set_input(1, &one[..3]), wrong(1, 3), "a byte too few");
    expect(session.run(), missing(1), "a wrong size is not set");
    expect(session.set_input(1, &one), Ok(()), "the second");
    expect(session.set_input(0, &[0; 5]), wrong(0, 5), "a byte too many");
    expect(session.run(), missing(0), "a wrong size unsets");
    expect(session.set_input(0, &one), Ok(()), "the first again");
    for index in [2, 31, 32, 33, usize::MAX] {
        let none = RunError::NoSuchPort { index: index as u32 };
        expect(session.set_input(index, &one), Err(none), "no such input");
    }
    let none = RunError::NoSuchPort { index: 1 };
    expect(session.output(1).map(|_| ()), Err(none), "no such output");

    // Exactly as many steps as there are.
    let taken: Vec<Result<Progress, RunError>> = (0..4).map(|_| session.step()).collect();
    let step = |step| Ok(Progress::Step { step, steps: 3 });
    assert_eq!(taken[..3], [step(0), step(1), Ok(Progress::Done)]);
    assert_eq!(taken[3], Err(RunError::InputMissing { input: 0 }), "the run is over");
    assert_eq!(session.output(0), Ok(&(-1f32).to_le_bytes()[..]));
    expect(session.run(), missing(0), "a second run without inputs");

    // An input that is set half-way starts over and wants the others again.
    session.set_input(0, &one).expect("the first");
    session.set_input(1, &one).expect("the second");
    assert_eq!(session.step(), step(0));
    session.set_input(1, &one).expect("the second");
    expect(session.run(), missing(0), "its inputs are gone");
    session.set_input(0, &2f32.to_le_bytes()).expect("the first");
    let mut after = Vec::new();
    let pushed = session.run_with(|step| {
        after.push(step);
        assert!(after.len() < 100, "the run does not end");
    });
    assert_eq!(pushed, Ok(()));
    assert_eq!(after, [0, 1, 2], "the hook sees each step once");
    assert_eq!(session.output(0), Ok(&(-2f32).to_le_bytes()[..]));

    let type_of = |port| Err(RunError::PortType { port });
    expect(
        session.set_values(1, &[1i8, 2, 3, 4]),
        type_of(1),
        "four bytes, but no float",
    );
    expect(
        session.values::<i32>(0).map(|_| ()),
        type_of(2),
        "a float, but no integer",
    );

    let mut blob = two_inputs();
    blob.cores = vec![2, 0, 0, 0];
    let file = blob.file();
    let mut memory = arenite_tests::blob::aligned(&file);
    let model = Model::load(memory.bytes()).expect("a model of two cores");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    session.set_input(0, &one).expect("the first");
    session.set_input(1, &one).expect("the second");
    let few = session.run_on(&mut OneCore).expect_err("one core of two");
    provoked.push(format!("{few:?}"));

    // Faults of accelerators and indices out of range have tests of their own, `accelerators` and `language`, and so have rows that are fed, `arena::rolling`.
    provoked.extend(["Accelerator", "OutOfRange"].map(String::from));
    provoked.extend(["RowSize", "RowsOver", "RowsMissing", "FedByRows", "NotByRows"].map(String::from));

    let corrupt = a_file_that_changes_under_its_session();
    provoked.push(format!("{corrupt:?}"));
    assert_eq!(unprovoked("core/src/error.rs", "RunError", provoked), [""; 0]);
}

/// A board of one core.
struct OneCore;

// SAFETY: the work is called once, by the caller.
unsafe impl arenite::Cores for OneCore {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        work(0);
    }
}

/// The second step's kernel becomes one that is none, after the load.
fn a_file_that_changes_under_its_session() -> RunError {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changing.bin");
    let bytes = two_inputs().file();
    std::fs::write(&path, &bytes).expect("writes");
    // Mapped, so that the file's bytes are the model's.
    let file = ModelFile::open(&path).expect("a file");
    let model = file.load().expect("intact");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    let set = |session: &mut Session<'_, '_>| {
        session.set_input(0, &[0; 4]).expect("the first");
        session.set_input(1, &[0; 4]).expect("the second");
    };
    set(&mut session);
    assert_eq!(bounded(&mut session), Ok(()));
    let steps = model.header().steps.offset as usize;
    let second = steps + (model.header().steps.len as usize) / 3;
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    writer.seek(SeekFrom::Start(second as u64)).expect("seeks");
    writer.write_all(&[47]).expect("writes");
    set(&mut session);
    let found = session.run().expect_err("it changed");
    assert_eq!(found, RunError::Corrupt { step: 1 });
    // Afterwards a run starts anew, and wants its inputs.
    assert_eq!(session.run(), Err(RunError::InputMissing { input: 0 }));
    found
}

#[test]
fn a_model_without_steps_is_done_at_once() {
    let blob = Blob {
        steps: vec![],
        ..small()
    };
    let mut memory = aligned(&blob.file());
    let model = Model::load(memory.bytes()).expect("a model");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    for _ in 0..3 {
        assert_eq!(session.step(), Err(RunError::InputMissing { input: 0 }));
        session.set_input(0, &[0; 12]).expect("the input");
        assert_eq!(session.step(), Ok(Progress::Done));
    }
}

/// Nothing is missing for another run, which takes all steps again.
#[test]
fn a_model_without_inputs_runs_as_often_as_it_is_asked_to() {
    let number = 2.5f32.to_le_bytes();
    let constant = Slot {
        region: WEIGHTS,
        offset: 0,
    };
    let mut blob = Blob {
        inputs: vec![],
        outputs: vec![Tensor::new("y", at(8), DType::F32, &[1])],
        weights: number.to_vec(),
        ..small()
    };
    blob.replace(0, &unary(at(4), constant, 1));
    let blob = blob.step(&unary(at(0), at(4), 1)).step(&unary(at(8), at(0), 1));
    let mut memory = aligned(&blob.file());
    let model = Model::load(memory.bytes()).expect("a model");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    for run in 0..3 {
        for step in 0..2 {
            assert_eq!(session.step(), Ok(Progress::Step { step, steps: 3 }), "run {run}");
        }
        assert_eq!(session.step(), Ok(Progress::Done), "run {run}");
        assert_eq!(session.output(0), Ok(&(-2.5f32).to_le_bytes()[..]));
    }
}

/// A packer's file is that of the maker: it follows the format.
#[test]
fn a_file_taken_apart_and_put_together_is_the_same_file() {
    for (name, target) in [
        ("depthwise_3x3_same", Target::CortexM3),
        ("svdf_i8_state", Target::Portable),
        ("concat_int8", Target::CortexM4),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_ops/{name}.tflite"));
        let folder = tempfile::tempdir().expect("a folder");
        let model = packed(&path, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
        assert!(Blob::of(model.bytes()).file() == model.bytes(), "{name}");
    }
}
