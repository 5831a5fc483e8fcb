//! Accelerators: files of `pack --accelerator` give the bits of the core, whether steps are handed over or not and however long they take; an accelerator that
//! is another one, fails, takes for ever or has written nothing is seen, and the session works on; whatever a file says wrongly of one is refused.

mod boards;
mod mocks;
mod networks;
mod shared;

use std::path::{Path, PathBuf};

use arenite::ops::pool2d::PoolInt;
use arenite::ops::window::Window2d;
use arenite::{
    AcceleratorFault, BARRIER, Backend, Cpu, DType, Declaration, Fault, Lack, LoadError, Model, Name, RunError, Slot,
    Step, Target,
};
use arenite_host::accelerator::Accelerator as Declared;
use arenite_host::memory::prove::prove;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Packed, pack};
use arenite_host::{Error, ErrorKind};
use arenite_tests::blob::{Blob as Parts, Tensor, aligned};
use arenite_tests::golden::options;
use arenite_tests::shared;

use mocks::{Does, Held, Thread, Wrong, fill, outputs};

/// An accelerator with kernels of `target` that takes `operators` of so much work.
fn declared(target: Target, operators: &str, least_work: u64, more: &str) -> Declared {
    let kernels = target.name();
    let text = format!(
        "name = \"second\"\nversion = 7\nkernels = \"{kernels}\"\noperators = [{operators}]\nleast_work = {least_work}\n{more}"
    );
    Declared::parse(&text, Path::new("second.toml")).expect("a declaration")
}

fn packed(
    input: &Path,
    folder: &Path,
    target: Target,
    accelerator: Option<Declared>,
) -> Result<(Packed, ModelFile), Error> {
    let mut options = options(input, folder, target);
    options.accelerator = accelerator;
    let packed = pack(&options, &mut |_, _, _| {})?;
    Ok((packed, ModelFile::open(&options.output)?))
}

/// A copy of a file that the next one does not overwrite.
fn kept(file: &ModelFile, folder: &Path) -> ModelFile {
    let path = folder.join("alone.arenite");
    std::fs::write(&path, file.bytes()).expect("written");
    ModelFile::open(&path).expect("a file")
}

fn real(name: &str) -> Option<PathBuf> {
    Some(shared()?.join("data/models").join(name).with_extension("tflite"))
}

/// A small network with most of its steps handed over.
fn small() -> Vec<u8> {
    small_with("")
}

/// The same with such lines more in the accelerator's declaration.
fn small_with(more: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let accelerator = declared(
        Target::CortexM33,
        "'conv2d', 'max_pool2d', 'linear'",
        0,
        &format!("alignment = 8\n{more}"),
    );
    let (_, file) = packed(&path, folder.path(), Target::Portable, Some(accelerator)).unwrap_or_else(|e| panic!("{e}"));
    file.bytes().to_vec()
}

/// A core that states that nothing is beside it refuses the file by name, as it does steps that it would compute itself and cannot.
#[test]
fn a_core_without_an_accelerator_refuses_the_file() {
    let mut file = aligned(&small());
    let mut lack = |cpu| match Model::load_on(file.bytes(), cpu).map(|_| ()) {
        Err(LoadError::Cpu { lack }) => Some(lack),
        Ok(()) => None,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(lack(Cpu::COMPILED.with_cores(1)), None);
    assert_eq!(lack(Cpu::COMPILED.without_accelerator()), Some(Lack::Accelerator));
    assert!(
        Lack::Accelerator
            .to_string()
            .contains("for an accelerator, and there is none")
    );
    let first = steps_of(&small())[0];
    let fpu = lack(Cpu::COMPILED.without(Backend::Fpu));
    assert!(
        matches!(fpu, Some(Lack::Kernel { step, .. }) if step == first),
        "{fpu:?}"
    );
}

/// Whatever it does, the run says so, and the session runs on: on the core, and with an accelerator that is right.
#[test]
fn faults_are_typed_and_leave_the_session_usable() {
    let mut file = aligned(&small());
    let model = Model::load(file.bytes()).expect("it loads");
    let declared = model.accelerator().expect("one");
    let handed: Vec<u32> = steps_of(&small());
    assert!(handed.len() > 3, "{handed:?}");
    let (mut held, mut in_order) = (Held::of(&model), Held::of(&model));
    let (mut session, mut core) = (held.session(&model), in_order.session(&model));
    let cases = [
        (Does::FailsToStart, AcceleratorFault::Failed { code: 5 }, 1),
        (Does::FailsLater, AcceleratorFault::Failed { code: 6 }, 1),
        (Does::NeverEnds, AcceleratorFault::TimedOut, 1),
        (Does::WritesNothing, AcceleratorFault::Unwritten, 0),
        (Does::StopsEarly, AcceleratorFault::Unwritten, 0),
        (Does::BeginsLate, AcceleratorFault::Unwritten, 0),
        (Does::ReachesNothing, AcceleratorFault::Reach, 0),
    ];
    for (does, fault, stopped) in cases {
        for (after, &step) in handed.iter().enumerate() {
            let mut wrong = Wrong::new(declared, does, after);
            fill(&mut session, after as u64);
            let error = session.run_accelerated(&mut wrong).expect_err("wrong");
            assert_eq!(error, RunError::Accelerator { step, fault }, "{does:?}");
            assert_eq!((wrong.stopped, wrong.busy), (stopped, false), "{does:?}");
            // Its inputs are gone, and nothing else.
            let missing = Err(RunError::InputMissing { input: 0 });
            assert_eq!(session.run(), missing);
            for own in [true, false] {
                [&mut session, &mut core]
                    .into_iter()
                    .for_each(|session| fill(session, 9));
                core.run().expect("it runs");
                if own {
                    session.run().expect("it runs");
                } else {
                    let mut right = Wrong::new(declared, Does::Right, 0);
                    session.run_accelerated(&mut right).expect("it runs");
                }
                assert_eq!(outputs(&session), outputs(&core), "{does:?}");
            }
        }
    }
    // One that has written at the first time is asked no second time.
    let mut once = Wrong::new(declared, Does::IsDoneOnlyOnce, handed.len());
    fill(&mut session, 3);
    session.run_accelerated(&mut once).expect("it runs");
    assert_eq!((once.started, once.stopped), (handed.len(), 0));
    // The rest of a run that was begun on the core.
    [&mut session, &mut core]
        .into_iter()
        .for_each(|session| fill(session, 4));
    session.step().expect("a step");
    session
        .run_accelerated(&mut Wrong::new(declared, Does::Right, 0))
        .expect("it runs");
    core.run().expect("it runs");
    assert_eq!(outputs(&session), outputs(&core));
}

/// The steps that a file has for an accelerator.
fn steps_of(file: &[u8]) -> Vec<u32> {
    let mut file = aligned(file);
    let sections = arenite::Sections::open(file.bytes()).expect("a file");
    let (_, steps) = sections.accelerator().expect("one");
    let handed = |&(_, &on): &(u32, &u8)| on & !BARRIER == 1;
    (0..).zip(steps).filter(handed).map(|(step, _)| step).collect()
}

#[test]
fn another_accelerator_than_the_files_is_refused_by_what_differs() {
    let mut file = aligned(&small());
    let first = steps_of(&small())[0];
    let model = Model::load(file.bytes()).expect("it loads");
    let good = model.accelerator().expect("one");
    let mut held = Held::of(&model);
    let mut session = held.session(&model);
    let name = Name::new("other").expect("a name");
    for (declared, fault, said) in [
        (Declaration { name, ..good }, AcceleratorFault::Name, "another name"),
        (
            Declaration { version: 8, ..good },
            AcceleratorFault::Version,
            "another version",
        ),
        (
            Declaration {
                layout: Target::CortexM55,
                ..good
            },
            AcceleratorFault::Layout,
            "layout of another target",
        ),
        (
            Declaration { regions: 3, ..good },
            AcceleratorFault::Regions,
            "other regions",
        ),
        (
            Declaration { alignment: 4, ..good },
            AcceleratorFault::Alignment,
            "aligned",
        ),
    ] {
        fill(&mut session, 1);
        let mut other = Wrong::new(declared, Does::Right, 0);
        let error = session.run_accelerated(&mut other).expect_err("another one");
        assert_eq!(error, RunError::Accelerator { step: first, fault });
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!((other.started, other.stopped), (0, 0));
        // Nothing was run: the inputs are there.
        session.run().expect("it runs");
    }
    // A model that is for none takes any.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let (_, file) = packed(&path, folder.path(), Target::Portable, None).unwrap_or_else(|e| panic!("{e}"));
    let model = file.load().expect("it loads");
    assert_eq!(model.accelerator(), None);
    let mut held = Held::of(&model);
    let mut session = held.session(&model);
    fill(&mut session, 1);
    let mut any = Wrong::new(good, Does::FailsToStart, 0);
    session.run_accelerated(&mut any).expect("it runs on the core");
    assert_eq!(any.started, 0);
}

/// A maximum over windows of one element: its output is its input, of so many bytes.
fn copying(bytes: u16) -> Parts {
    let slot = |offset| Slot { region: 0, offset };
    let step = Step::MaxPoolInt(PoolInt {
        output: slot(1024),
        input: slot(0),
        dtype: DType::I8,
        window: Window2d {
            batch: 1,
            input: [1, bytes, 1],
            output: [1, bytes, 1],
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
        },
        clamp: [-128, 127],
    });
    let tensor = |name: &str, offset| Tensor::new(name, slot(offset), DType::I8, &[1, 1, u32::from(bytes), 1]);
    let declared = Declaration {
        name: Name::new("second").expect("a name"),
        version: 0,
        layout: Target::CortexM33,
        alignment: 16,
        regions: 1,
    };
    let parts = Parts {
        arena: [2048, 0, 0, 0],
        inputs: vec![tensor("x", 0)],
        outputs: vec![tensor("y", 1024)],
        cores: [&[0x82, 1][..], &declared.to_bytes()].concat(),
        ..Parts::default()
    };
    parts.step(&step)
}

/// Outputs that are what the pattern is, in whole or in part: never taken for unwritten, at the price of a second start.
#[test]
fn outputs_that_are_as_the_pattern_are_no_fault() {
    let mut again = 0;
    for bytes in [1u16, 2, 15, 16, 17, 31, 32, 33, 100] {
        let parts = copying(bytes);
        let mut file = aligned(&parts.file());
        let model = Model::load(file.bytes()).expect("it loads");
        let declared = model.accelerator().expect("one");
        let mut held = Held::of(&model);
        let mut session = held.session(&model);
        let all = usize::from(bytes);
        let same: Vec<Vec<u8>> = (0..=255).map(|value| vec![value; all]).collect();
        let halves = [[0x5B, 0xA4], [0xA4, 0x5B], [0x5B, 0], [0, 0x5B]].map(|[first, second]| {
            let mut input = vec![first; all];
            input[all / 2..].fill(second);
            input
        });
        for input in same.iter().chain(&halves) {
            session.set_input(0, input).expect("an input");
            let mut right = Wrong::new(declared, Does::Right, 0);
            session.run_accelerated(&mut right).expect("it runs");
            assert_eq!(session.output(0).expect("an output"), input);
            again += usize::from(right.started == 2);
            assert!((1..=2).contains(&right.started));
            // And where nothing is written, that is seen, whatever it would have been.
            session.set_input(0, input).expect("an input");
            let error = session.run_accelerated(&mut Wrong::new(declared, Does::WritesNothing, 0));
            let fault = AcceleratorFault::Unwritten;
            assert_eq!(error, Err(RunError::Accelerator { step: 0, fault }), "{input:?}");
        }
    }
    assert!(again >= 9, "{again}");
}

/// Whatever a step's byte or the declaration says: load and the proof refuse it alike, or it gives the bits of the core.
#[test]
fn whatever_a_file_says_of_an_accelerator_is_refused_or_right() {
    refused_or_right(&small());
}

fn refused_or_right(file: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changed.bin");
    let good = Parts::of(file);
    let (mut refused, mut right) = (Vec::new(), 0);
    for at in 0..good.cores.len() {
        for value in [
            0,
            1,
            2,
            3,
            4,
            8,
            16,
            32,
            64,
            BARRIER,
            BARRIER | 1,
            BARRIER | 2,
            b'a',
            0xff,
        ] {
            let mut parts = good.clone();
            parts.cores[at] = value;
            let bytes = parts.file();
            let mut file = aligned(&bytes);
            std::fs::write(&path, &bytes).expect("written");
            let loaded = Model::load(file.bytes());
            let proof = prove(&ModelFile::open(&path).expect("a file").view().expect("a view"));
            match loaded {
                Err(error) => refused.push(error),
                Ok(model) => {
                    assert!(proof.is_ok(), "byte {at} as {value:#x}: {proof:?}");
                    let Some(declared) = model.accelerator() else {
                        continue;
                    };
                    let (mut held, mut in_order) = (Held::of(&model), Held::of(&model));
                    let (mut beside, mut core) = (held.session(&model), in_order.session(&model));
                    [&mut beside, &mut core]
                        .into_iter()
                        .for_each(|session| fill(session, at as u64));
                    beside
                        .run_accelerated(&mut Thread::new(declared, at as u64))
                        .expect("it runs");
                    core.run().expect("it runs");
                    assert_eq!(outputs(&beside), outputs(&core), "byte {at} as {value:#x}");
                    right += 1;
                }
            }
        }
    }
    for fault in [Fault::Core, Fault::Race, Fault::Reach, Fault::Handed] {
        let named = |error: &LoadError| matches!(error, LoadError::Step { fault: found, .. } if *found == fault);
        assert!(refused.iter().any(named), "{fault:?}");
    }
    assert!(refused.contains(&LoadError::Header));
    assert!(right > good.cores.len(), "{right}");
    // A section that ends too early, and one with more behind it, which is the next one's.
    for len in 0..good.cores.len() {
        let mut parts = good.clone();
        parts.cores.truncate(len);
        parts.labels.clear();
        parts.state.clear();
        parts.weights.clear();
        parts.steps.clear();
        parts.cores.truncate(1 + len.saturating_sub(good.steps.len()));
        let loaded = Model::load(aligned(&parts.file()).bytes()).map(|model| model.accelerator());
        assert!(
            len == 0 || loaded.is_err() || parts.cores.len() > Declaration::BYTES,
            "{len}: {loaded:?}"
        );
    }
}

/// The step writes over what it reads, which its kernel allows: whether it was written could not be seen.
#[test]
fn a_step_that_is_handed_over_writes_apart_from_what_it_reads() {
    let at = |output: u32, on: u8| {
        let mut parts = copying(64);
        let mut step = parts.decoded().remove(0);
        if let Step::MaxPoolInt(pool) = &mut step {
            pool.output.offset = output;
        }
        parts.replace(0, &step);
        parts.cores[1] = on;
        Model::load(aligned(&parts.file()).bytes()).map(|_| ())
    };
    let refused = |fault| Err(LoadError::Step { step: 0, fault });
    assert_eq!(at(64, 1), Ok(()));
    assert_eq!(at(0, 1), refused(Fault::Race));
    assert_eq!(at(72, 1), refused(Fault::Reach));
    assert_eq!((at(0, 0), at(72, 0)), (Ok(()), Ok(())));
}

/// Memories that the accelerator does not reach hold nothing of its.
#[test]
fn regions_and_alignments_are_the_plans() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let accelerator = || declared(Target::Portable, "'conv2d'", 0, "alignment = 16\nregions = ['far']");
    let mut options = options(&path, folder.path(), Target::Portable);
    let region = |name: &str, size| arenite_host::memory::Region {
        name: name.into(),
        size: Some(size),
    };
    options.regions = vec![region("near", 1 << 20), region("far", 1 << 20)];
    options.accelerator = Some(accelerator());
    let summary = pack(&options, &mut |_, _, _| {})
        .unwrap_or_else(|e| panic!("{e}"))
        .summary;
    assert!(!summary.accelerator.expect("stated").steps.is_empty());
    let file = ModelFile::open(&options.output).expect("a file");
    let model = file.load().expect("it loads");
    assert_eq!(
        model
            .accelerator()
            .map(|declared| (declared.regions, declared.alignment)),
        Some((2, 16))
    );
    let used = [0, 1].map(|region| model.arena_bytes(region) > 0);
    assert_eq!(used, [true, true]);
    options.regions[1].size = Some(64);
    let error = pack(&options, &mut |_, _, _| {}).expect_err("too small");
    assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{error}");
    options.regions.pop();
    let error = pack(&options, &mut |_, _, _| {}).expect_err("no such region");
    assert!(error.to_string().contains("there is no region `far`"), "{error}");
}

#[test]
fn what_does_not_go_with_an_accelerator_is_refused_by_name() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |change: &dyn Fn(&mut arenite_host::pack::Options)| {
        let mut options = options(&input, folder.path(), Target::Portable);
        options.accelerator = Some(declared(Target::Portable, "'conv2d'", 0, ""));
        change(&mut options);
        let error = pack(&options, &mut |_, _, _| {}).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(!options.output.exists());
        error.to_string()
    };
    assert!(refused(&|options| options.cores = 2).contains("--accelerator with --cores"));
    assert!(refused(&|options| options.max_step = Some(9000)).contains("--accelerator with --max-step"));
    assert!(refused(&|options| options.fit = Some(9000)).contains("--accelerator with --fit"));
    assert!(refused(&|options| options.explain = true).contains("--accelerator with --explain"));
}
