//! Several cores: files of `pack --cores`, on threads of this host in whatever order they come and on the boards that have several cores, give the bits of one
//! core; what two cores would touch at one time is refused, and so is everything else that a file can say wrongly of cores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arenite::{BARRIER, Cores, Fault, LoadError, MAX_CORES, MAX_REGIONS, Model, RunError, Section, Session, Target};
use arenite_host::board::{Blob, Board, BoardError, RunOptions, ready, run};
use arenite_host::memory::prove::prove;
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Packed, pack};
use arenite_host::{Error, ErrorKind};
use arenite_tests::blob::{Blob as Parts, aligned};
use arenite_tests::golden::options;
use arenite_tests::writers::Random;
use arenite_tests::{shared, skip};

/// Threads that dawdle: before they begin, and whenever they wait.
struct Threads {
    count: usize,
    seed: AtomicU64,
    waits: AtomicUsize,
}

impl Threads {
    fn new(count: usize, seed: u64) -> Self {
        let (seed, waits) = (AtomicU64::new(seed), AtomicUsize::new(0));
        Self { count, seed, waits }
    }

    fn dawdle(&self) {
        // Weyl's sequence, mixed.
        let next = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (next ^ (next >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 58;
        match mixed {
            0..8 => std::thread::sleep(std::time::Duration::from_micros(mixed * 5)),
            _ => (0..mixed).for_each(|_| std::hint::spin_loop()),
        }
    }
}

// SAFETY: a scope ends when its threads have, each of which has its own index; threads begin and end with acquire and release.
unsafe impl Cores for Threads {
    fn count(&self) -> usize {
        self.count
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for core in 1..self.count {
                scope.spawn(move || {
                    self.dawdle();
                    work(core);
                });
            }
            self.dawdle();
            work(0);
        });
    }

    fn wait(&self, _: &dyn Fn() -> bool) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.dawdle();
        std::thread::yield_now();
    }
}

/// A model in its memory.
struct Held {
    arenas: [Aligned; MAX_REGIONS],
    state: Aligned,
}

impl Held {
    fn of(model: &Model<'_>) -> Self {
        Self {
            arenas: std::array::from_fn(|region| Aligned::new(model.arena_bytes(region))),
            state: Aligned::new(model.state_bytes()),
        }
    }

    fn session<'m, 's>(&'s mut self, model: &Model<'m>) -> Session<'m, 's> {
        let [a, b, c, d] = &mut self.arenas;
        let arenas = [a.bytes(), b.bytes(), c.bytes(), d.bytes()];
        Session::new(*model, arenas, self.state.bytes()).expect("a session")
    }
}

/// Inputs of a run: anything that their types can hold.
fn fill(session: &mut Session<'_, '_>, random: &mut Random) {
    for index in 0..usize::from(session.model().header().inputs) {
        let float = session.model().input(index).expect("an input").dtype == arenite::DType::F32;
        let input = session.input_mut(index).expect("an input");
        if float {
            for value in input.chunks_exact_mut(4) {
                value.copy_from_slice(&((random.below(4096) as f32 - 2048.0) / 512.0).to_le_bytes());
            }
        } else {
            input.fill_with(|| random.below(256) as u8);
        }
    }
}

fn outputs(session: &Session<'_, '_>) -> Vec<Vec<u8>> {
    let count = usize::from(session.model().header().outputs);
    (0..count)
        .map(|index| session.output(index).expect("an output").to_vec())
        .collect()
}

fn packed(input: &Path, folder: &Path, target: Target, cores: usize) -> Result<(Packed, ModelFile), Error> {
    let mut options = options(input, folder, target);
    options.cores = cores;
    let packed = pack(&options, &mut |_, _, _| {})?;
    Ok((packed, ModelFile::open(&options.output)?))
}

/// Runs of a file on threads, and of another one in order, on the same inputs: three, for state goes from one to the next.
fn same_on_threads(name: &str, file: &ModelFile, alone: &ModelFile, cores: usize, seed: u64) {
    let (model, one) = (file.load().expect("it loads"), alone.load().expect("it loads"));
    assert_eq!((model.cores(), one.cores()), (cores, 1), "{name}");
    let (mut held, mut in_order, mut by_itself) = (Held::of(&model), Held::of(&model), Held::of(&one));
    let mut shared = held.session(&model);
    let mut others = [in_order.session(&model), by_itself.session(&one)];
    // More threads than the file is for do no harm.
    let mut threads = Threads::new(cores + (seed % 2) as usize, seed);
    for run in 0..3 {
        fill(&mut shared, &mut Random::new(seed + run));
        shared.run_on(&mut threads).expect("it runs");
        for other in &mut others {
            fill(other, &mut Random::new(seed + run));
            other.run().expect("it runs");
            assert_eq!(outputs(&shared), outputs(other), "{name}, {cores} cores, run {run}");
        }
    }
}

/// The committed operators, each in another form, and what targets make of them.
#[test]
fn operators_give_the_bits_of_one_core() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(models)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tflite"))
        .collect();
    paths.sort();
    let targets = [
        Target::Portable,
        Target::CortexM4,
        Target::CortexM55,
        Target::Aarch64Dotprod,
        Target::Riscv64gcv,
    ];
    let mut shared = 0;
    for (index, path) in paths.iter().enumerate() {
        let (target, cores) = (targets[index % targets.len()], 2 + index % 3);
        let Ok((_, alone)) = packed(path, folder.path(), target, 1) else {
            continue;
        };
        let alone = ModelFile::open(&kept(&alone, folder.path())).expect("a file");
        let (summary, file) = packed(path, folder.path(), target, cores).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let shares = summary.summary.cores.expect("shares");
        shared += usize::from(shares.busiest_share < 0.99);
        same_on_threads(&path.display().to_string(), &file, &alone, cores, index as u64);
    }
    assert!(shared > 100, "{shared} of {} are shared", paths.len());
}

/// A copy of a file that the next one does not overwrite.
fn kept(file: &ModelFile, folder: &Path) -> PathBuf {
    let path = folder.join("alone.arenite");
    std::fs::write(&path, file.bytes()).expect("written");
    path
}

fn real(name: &str) -> Option<PathBuf> {
    Some(shared()?.join("data/models").join(name).with_extension("tflite"))
}

/// Whole networks, with residual sums by rows, overlapping tensors, state and floats: the same bits, and at most five quarters of the memory.
#[test]
fn networks_give_the_bits_of_one_core_in_little_more_memory() {
    let targets = [Target::Riscv64gc, Target::Aarch64, Target::CortexM4, Target::Riscv64gcv];
    let names = [
        "vww_96_int8",
        "pretrainedResnet_quant",
        "kws_ref_model",
        "ad01_int8",
        "esphome_v2_vad",
        "ad01_fp32",
    ];
    for (index, name) in names.into_iter().enumerate() {
        let Some(path) = real(name) else {
            return skip(
                "networks_give_the_bits_of_one_core_in_little_more_memory",
                "no shared data",
            );
        };
        let folder = tempfile::tempdir().expect("a folder");
        for target in targets {
            let (single, alone) = packed(&path, folder.path(), target, 1).unwrap_or_else(|e| panic!("{e}"));
            let alone = ModelFile::open(&kept(&alone, folder.path())).expect("a file");
            for cores in 2..=MAX_CORES {
                let (summary, file) = packed(&path, folder.path(), target, cores).unwrap_or_else(|e| panic!("{e}"));
                let (more, less) = (summary.summary.arena_bytes, single.summary.arena_bytes);
                assert!(
                    cores > 2 || 4 * more <= 5 * less,
                    "{name}, {target:?}: {more} of {less}"
                );
                prove(&file.view().expect("a file")).expect("it holds");
                same_on_threads(name, &file, &alone, cores, index as u64);
            }
        }
    }
}

/// Where the region has less than five quarters of what one core takes, steps are computed in more turns.
#[test]
fn a_smaller_region_is_kept_in_more_turns() {
    let Some(path) = real("vww_96_int8") else {
        return skip("a_smaller_region_is_kept_in_more_turns", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let groups = |size: Option<u64>| {
        let mut options = options(&path, folder.path(), Target::Riscv64gc);
        let name = "sram".to_owned();
        (options.cores, options.regions) = (2, vec![arenite_host::memory::Region { name, size }]);
        let summary = pack(&options, &mut |_, _, _| {})
            .unwrap_or_else(|e| panic!("{e}"))
            .summary;
        assert!(summary.arena_bytes <= size.unwrap_or(u64::MAX));
        summary.cores.expect("shares").groups
    };
    assert!(groups(Some(50_000)) > groups(None));
}

/// A small network of several steps, of which most are shared.
fn small(cores: usize) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let (_, file) = packed(&path, folder.path(), Target::Portable, cores).unwrap_or_else(|e| panic!("{e}"));
    file.bytes().to_vec()
}

/// Whatever a step's byte says: load and the proof refuse it, or threads give the bits of one core.
#[test]
fn whatever_a_file_says_of_cores_is_refused_or_right() {
    let good = Parts::of(&small(2));
    let (mut refused, mut right) = (Vec::new(), 0);
    for at in 1..good.cores.len() {
        for value in [0, 1, BARRIER, BARRIER | 1, 2, BARRIER | 3, 0x7f, 0xff] {
            let mut parts = good.clone();
            parts.cores[at] = value;
            let mut file = aligned(&parts.file());
            match Model::load(file.bytes()) {
                Err(LoadError::Step { fault, .. }) => refused.push(fault),
                Err(error) => panic!("{error}"),
                Ok(model) => {
                    let (mut held, mut in_order) = (Held::of(&model), Held::of(&model));
                    let (mut shared, mut other) = (held.session(&model), in_order.session(&model));
                    for session in [&mut shared, &mut other] {
                        fill(session, &mut Random::new(at as u64));
                    }
                    shared.run_on(&mut Threads::new(2, at as u64)).expect("it runs");
                    other.run().expect("it runs");
                    assert_eq!(outputs(&shared), outputs(&other), "step {at} as {value:#x}");
                    right += 1;
                }
            }
        }
    }
    for fault in [Fault::Core, Fault::Race] {
        assert!(refused.contains(&fault), "{fault:?}");
    }
    assert!(right > good.cores.len(), "{right}");
}

#[test]
fn numbers_of_cores_and_sections_that_cannot_be_are_refused() {
    let good = Parts::of(&small(2));
    let load = |file: Vec<u8>| Model::load(aligned(&file).bytes()).map(|model| model.cores());
    assert_eq!(load(good.file()), Ok(2));
    for found in [0, 1, 5, 0x80, 255] {
        let mut parts = good.clone();
        parts.cores[0] = found;
        assert_eq!(load(parts.file()), Err(LoadError::Cores { found }));
    }
    // A number that is right, of more cores than steps name.
    let mut parts = good.clone();
    parts.cores[0] = 4;
    assert_eq!(load(parts.file()), Ok(4));
    // The section elsewhere, or nowhere.
    let at =
        |change: &dyn Fn(&mut Section, u32)| load(good.file_with(|header| change(&mut header.cores, header.total)));
    assert_eq!(at(&|cores, total| cores.offset = total), Err(LoadError::Header));
    assert_eq!(at(&|cores, _| cores.offset = 1), Err(LoadError::Header));
    assert_eq!(at(&|cores, _| cores.offset = u32::MAX), Err(LoadError::Header));
    assert_eq!(at(&|cores, _| cores.len = u32::MAX), Err(LoadError::Header));
    // Steps for which there is no byte, and bytes for which there is no step.
    assert_eq!(at(&|cores, _| cores.len -= 1), Err(LoadError::Header));
    assert_eq!(at(&|cores, _| cores.len += 1), Err(LoadError::Header));
    // All steps at one time are more than load compares.
    let mut parts = good;
    parts.cores[1..].fill(0);
    let crowd = parts.steps.clone();
    (0..8).for_each(|_| parts.steps.extend(crowd.clone()));
    parts.cores.resize(1 + parts.steps.len(), 0);
    let refused = load(parts.file());
    assert!(
        matches!(
            refused,
            Err(LoadError::Step {
                fault: Fault::Group,
                ..
            })
        ),
        "{refused:?}"
    );
}

/// The proof finds what load finds.
#[test]
fn the_proof_refuses_a_lost_barrier() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lost.bin");
    let good = Parts::of(&small(2));
    let barriers = (1..good.cores.len()).filter(|&at| good.cores[at] & BARRIER != 0);
    let mut found = 0;
    for at in barriers {
        let mut parts = good.clone();
        parts.cores[at] &= !BARRIER;
        let bytes = parts.file();
        std::fs::write(&path, &bytes).expect("written");
        let proof = prove(&ModelFile::open(&path).expect("a file").view().expect("a view"));
        let loaded = Model::load(aligned(&bytes).bytes()).map(|_| ());
        assert_eq!(proof.is_ok(), loaded.is_ok(), "step {at}");
        if let Err(error) = proof {
            assert!(error.to_string().contains("between two barriers"), "{error}");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn fewer_cores_than_the_file_is_for_run_nothing() {
    let mut file = aligned(&small(4));
    let model = Model::load(file.bytes()).expect("it loads");
    let (mut held, mut in_order) = (Held::of(&model), Held::of(&model));
    let (mut session, mut other) = (held.session(&model), in_order.session(&model));
    let missing = session.run_on(&mut Threads::new(4, 1));
    assert_eq!(missing, Err(RunError::InputMissing { input: 0 }));
    for session in [&mut session, &mut other] {
        fill(session, &mut Random::new(5));
    }
    let error = session.run_on(&mut Threads::new(3, 1)).expect_err("too few");
    assert_eq!(error, RunError::Cores { needed: 4, given: 3 });
    assert_eq!(error.to_string(), "the model is for 4 cores, 3 run it: `run` takes one");
    // Its inputs are as they were; a run that was begun on one core ends on several.
    other.run().expect("it runs");
    session.step().expect("a step");
    session.step().expect("another");
    session.run_on(&mut Threads::new(4, 1)).expect("it runs");
    assert_eq!(outputs(&session), outputs(&other));
    assert_eq!(
        session.run_on(&mut Threads::new(4, 2)),
        Err(RunError::InputMissing { input: 0 })
    );
}

/// A core that finds its step changed lets the others go.
#[test]
fn a_file_that_changes_is_seen_by_all_cores() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changing.bin");
    let good = Parts::of(&small(4));
    for step in 0..good.steps.len() {
        let bytes = good.file();
        std::fs::write(&path, &bytes).expect("written");
        // Mapped, so that the file's bytes are the model's.
        let file = ModelFile::open(&path).expect("a file");
        let model = file.load().expect("intact");
        let mut held = Held::of(&model);
        let mut session = held.session(&model);
        let before: usize = good.steps[..step]
            .iter()
            .map(|(_, params)| 1 + 1 + usize::from(params.len() > 127) + params.len())
            .sum();
        let mut changed = bytes.clone();
        changed[model.header().steps.offset as usize + before] = 95;
        std::fs::write(&path, &changed).expect("written");
        fill(&mut session, &mut Random::new(9));
        let error = session
            .run_on(&mut Threads::new(4, step as u64))
            .expect_err("it changed");
        assert_eq!(error, RunError::Corrupt { step: step as u32 });
        std::fs::write(&path, &bytes).expect("written");
        fill(&mut session, &mut Random::new(9));
        session.run_on(&mut Threads::new(4, step as u64)).expect("usable");
    }
}

#[test]
fn what_does_not_go_with_several_cores_is_refused_by_name() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |change: &dyn Fn(&mut arenite_host::pack::Options)| {
        let mut options = options(&input, folder.path(), Target::Portable);
        options.cores = 2;
        change(&mut options);
        let error = pack(&options, &mut |_, _, _| {}).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(!options.output.exists());
        error.to_string()
    };
    assert!(refused(&|options| options.cores = 0).contains("--cores 0"));
    assert!(refused(&|options| options.cores = 5).contains("--cores 5"));
    assert!(refused(&|options| options.max_step = Some(9000)).contains("--cores 2 with --max-step"));
    assert!(refused(&|options| options.fit = Some(9000)).contains("--cores 2 with --fit"));
    assert!(refused(&|options| options.explain = true).contains("--cores 2 with --explain"));
}

/// Compares the results of two files of one network on a board, on the same input.
fn on_board(name: &str, path: &Path, target: Target, cores: usize) -> Result<(), BoardError> {
    let board = Board::find(name).expect("a known board");
    let folder = tempfile::tempdir().expect("a folder");
    let (_, alone) = packed(path, folder.path(), target, 1).unwrap_or_else(|e| panic!("{e}"));
    let alone = ModelFile::open(&kept(&alone, folder.path())).expect("a file");
    let (_, file) = packed(path, folder.path(), target, cores).unwrap_or_else(|e| panic!("{e}"));
    let bytes = file.view().expect("a view").header().input_bytes as usize;
    let mut random = Random::new(3);
    let inputs: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
    let traced = |file: &ModelFile| {
        let options = RunOptions {
            trace: true,
            timeout: std::time::Duration::from_secs(600),
            ..RunOptions::default()
        };
        run(board, Blob::Bytes(file.bytes()), &inputs, &options)
    };
    let (one, several) = (traced(&alone)?, traced(&file)?);
    assert_eq!(one.outputs, several.outputs, "{name}");
    // A build for one core runs the file in order.
    let plain = run(
        board.counts_as(),
        Blob::Bytes(file.bytes()),
        &inputs,
        &RunOptions::default(),
    )?;
    assert_eq!(one.outputs, plain.outputs, "{name}");
    let counts = several.trace.expect("traced").runs[0].cores.clone();
    let one = one.trace.expect("traced").runs[0].cores[0].instructions;
    assert_eq!(counts.len(), board.cores(), "{counts:?}");
    let busiest = counts.iter().map(|core| core.instructions).max().expect("cores");
    let share = busiest as f64 / one as f64;
    println!("{name}, {}: {counts:?} of {one}: {share:.3}", path.display());
    assert!(share <= if cores == 2 { 0.56 } else { 0.32 }, "{name}: {share}");
    Ok(())
}

macro_rules! on_boards {
    ($($test:ident $board:literal $target:ident $cores:literal)*) => {$(
        #[test]
        fn $test() {
            if let Err(reason) = ready(Board::find($board).expect("a known board")) {
                return skip(stringify!($test), &reason.to_string());
            }
            for model in ["vww_96_int8", "pretrainedResnet_quant"] {
                let Some(path) = real(model) else {
                    return skip(stringify!($test), "no shared data");
                };
                on_board($board, &path, Target::$target, $cores).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    )*};
}

on_boards! {
    two_cores_of_riscv64 "riscv64-virt:smp2" Riscv64gc 2
    four_cores_of_riscv64 "riscv64-virt:smp4" Riscv64gc 4
    two_cores_of_aarch64 "aarch64-virt:smp2" Aarch64 2
    four_cores_of_aarch64 "aarch64-virt:smp4" Aarch64 4
}
