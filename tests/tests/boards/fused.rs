//! `Session::allow_fused` holds for every way in which a session runs: on one core, step by step, on several cores, beside an accelerator in this program or in
//! another one, and beside an Ethos-U. All of them give the bits of `Session::run`.

use std::path::Path;

use arenite::{
    Accelerator, Cores, Declaration, EthosU, EthosUConfig, EthosUJob, Job, Model, Poll, Progress, Session, Target,
};
use arenite_host::accelerator::Accelerator as Declared;
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::golden::options;

/// Threads of this host.
struct Threads(usize);

// SAFETY: a scope ends when its threads have, each of which has its own index.
unsafe impl Cores for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for core in 1..self.0 {
                scope.spawn(move || work(core));
            }
            work(0);
        });
    }
}

/// Computes a step where it is started: by the job, or by the parts that go to another program.
struct Beside {
    declared: Declaration,
    by_parts: bool,
    started: usize,
}

// SAFETY: `start` computes in its own thread and returns when nothing touches the job any more.
unsafe impl Accelerator for Beside {
    fn declaration(&self) -> Declaration {
        self.declared
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        self.started += 1;
        let done = if self.by_parts {
            // SAFETY: the parts are of this job, which lends its memory until this returns; nobody else has them.
            unsafe { job.parts().run() }
        } else {
            job.run()
        };
        if done { Ok(()) } else { Err(1) }
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        Ok(Poll::Done)
    }

    fn stop(&mut self) {}
}

/// An NPU that no step is for.
struct Idle;

// SAFETY: `start` refuses every job and touches nothing.
unsafe impl EthosU for Idle {
    fn config(&self) -> EthosUConfig {
        EthosUConfig(0)
    }

    fn start(&mut self, _: EthosUJob<'_>) -> Result<(), u32> {
        Err(1)
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        Err(1)
    }

    fn stop(&mut self) {}
}

/// One way of running a session.
type Way<'w> = &'w mut dyn FnMut(&mut Session<'_, '_>);

/// The first output of a run.
fn output(file: &ModelFile, fused: bool, way: Way<'_>) -> Vec<u8> {
    let model = file.load().expect("it loads");
    let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
    let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("a session");
    if fused {
        session.allow_fused();
    }
    let input = session.input_mut(0).expect("an input");
    for (at, value) in input.chunks_exact_mut(4).enumerate() {
        // Sums of numbers with all of their digits: rounding shows.
        value.copy_from_slice(&((at * 7919 % 1013) as f32 / 337.0 - 1.5).to_le_bytes());
    }
    way(&mut session);
    session.output(0).expect("an output").to_vec()
}

fn packed(folder: &Path, change: &dyn Fn(&mut Options)) -> ModelFile {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/residual.trace.json");
    let mut options = options(&input, folder, Target::X8664);
    change(&mut options);
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    ModelFile::open(&options.output).expect("a file")
}

#[cfg(target_arch = "x86_64")]
fn this_host_fuses() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn this_host_fuses() -> bool {
    false
}

fn run(session: &mut Session<'_, '_>) {
    session.run().expect("it runs");
}

#[test]
fn every_way_of_running_fuses_where_that_is_allowed() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let [alone, of_two, beside] = &folders;
    let alone = packed(alone.path(), &|_| {});
    let of_two = packed(of_two.path(), &|options| options.cores = 2);
    let text =
        "name = \"second\"\nversion = 1\nkernels = \"x86-64\"\noperators = [\"conv2d\", \"linear\"]\nleast_work = 0";
    let declared = Declared::parse(text, Path::new("second.toml")).expect("a declaration");
    let beside = packed(beside.path(), &|options| options.accelerator = Some(declared.clone()));
    assert_eq!(of_two.load().expect("it loads").cores(), 2);
    let declared = beside
        .load()
        .map(|model: Model<'_>| model.accelerator())
        .expect("it loads");
    let declared = declared.expect("an accelerator");

    let plain = output(&alone, false, &mut run);
    for fused in [false, true] {
        let expected = output(&alone, fused, &mut run);
        // Where the host can, fusing changes bits of this network: the rest is no empty comparison.
        assert_eq!(expected != plain, fused && this_host_fuses());
        let same = |name: &str, file: &ModelFile, way: Way<'_>| {
            assert_eq!(output(file, fused, way), expected, "{name}, fused: {fused}");
        };
        same("step", &alone, &mut |session| {
            while session.step().expect("a step") != Progress::Done {}
        });
        same("run_with", &alone, &mut |session| {
            session.run_with(|_| {}).expect("it runs")
        });
        same("run of two cores' file", &of_two, &mut run);
        same("run_on", &of_two, &mut |session| {
            session.run_on(&mut Threads(2)).expect("it runs")
        });
        same("run_on of one core's file", &alone, &mut |session| {
            session.run_on(&mut Threads(1)).expect("it runs")
        });
        same("run_on after a step", &of_two, &mut |session| {
            session.step().expect("a step");
            session.run_on(&mut Threads(2)).expect("it runs");
        });
        for by_parts in [false, true] {
            same("run_accelerated", &beside, &mut |session| {
                let (declared, started) = (declared, 0);
                let mut other = Beside {
                    declared,
                    by_parts,
                    started,
                };
                session.run_accelerated(&mut other).expect("it runs");
                assert!(other.started > 1, "steps are handed over");
            });
        }
        same("run_ethos_u", &alone, &mut |session| {
            session.run_ethos_u(&mut Idle).expect("it runs")
        });
    }
}
