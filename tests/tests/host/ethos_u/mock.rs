//! An NPU that stands in for one, and the networks that it is given.

use super::*;

/// Behaviour of the mock with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Right,
    FailsToStart,
    FailsLater,
    NeverEnds,
    WritesNothing,
    ReachesNothing,
    /// Leaves all but its outputs as it was.
    IsNeat,
}

/// The bytes of a step's inputs, as it is started.
pub(super) type Given = Vec<Vec<u8>>;

/// Computes outputs from inputs, by the step's number.
pub(super) type Computes<'c> = &'c mut dyn FnMut(u32, &Given) -> Vec<Vec<u8>>;

/// An NPU that computes by other means.
pub(super) struct Npu<'c> {
    pub(super) config: EthosUConfig,
    pub(super) does: Does,
    pub(super) steps: Vec<(u32, Commands)>,
    /// Where the session's scratch begins, region by region.
    pub(super) arenas: Vec<usize>,
    /// The compiled network, which holds payload and constants.
    pub(super) network: Vec<u8>,
    pub(super) computes: Computes<'c>,
    pub(super) started: usize,
    pub(super) stopped: usize,
    pub(super) busy: bool,
}

impl Npu<'_> {
    /// Whether the network's file has these bytes.
    pub(super) fn knows(&self, bytes: &[u8]) -> bool {
        self.network.windows(bytes.len()).any(|window| window == bytes)
    }
}

// SAFETY: all is done when `start` returns, and inside of the regions of the job.
unsafe impl EthosU for Npu<'_> {
    fn config(&self) -> EthosUConfig {
        self.config
    }

    fn reaches(&self, _: *const u8, _: usize) -> bool {
        self.does != Does::ReachesNothing
    }

    fn start(&mut self, job: EthosUJob<'_>) -> Result<(), u32> {
        assert!(!self.busy, "one at a time");
        self.started += 1;
        if self.does == Does::FailsToStart {
            return Err(5);
        }
        let (_, op) = self
            .steps
            .iter()
            .find(|(step, _)| *step == job.step())
            .expect("a step of the model's")
            .clone();
        assert_eq!(job.config(), self.config);
        assert!(self.knows(job.payload()), "another payload");
        assert_eq!(job.payload()[..4], *b"COP1");
        assert!(self.knows(job.commands()));
        let [constants, scratch, fast] = job.regions();
        // SAFETY: the constants are bytes of the model's file, which is borrowed and only read.
        let bytes = unsafe { std::slice::from_raw_parts(constants.start.cast_const(), constants.bytes) };
        assert!(self.knows(bytes), "other constants");
        assert_eq!(constants.bytes, op.constants_bytes as usize);
        let at = |slot: Slot| self.arenas[usize::from(slot.region)] + slot.offset as usize;
        assert_eq!(
            (scratch.start.addr(), scratch.bytes),
            (at(op.scratch), op.scratch_bytes as usize)
        );
        assert_eq!(fast.bytes, op.fast_bytes as usize);
        if op.fast_bytes > 0 {
            assert_eq!(fast.start.addr(), at(op.fast));
        }
        for start in [constants.start, scratch.start, fast.start] {
            assert!(start.addr().is_multiple_of(16));
        }
        assert!(job.commands().as_ptr().addr().is_multiple_of(16));
        // SAFETY: the session lends its scratch to the job, and touches it no more before this is done.
        let scratch = unsafe { std::slice::from_raw_parts_mut(scratch.start, scratch.bytes) };
        // SAFETY: the session lends this memory to the job as well; it lies apart from the scratch.
        let fast = unsafe { std::slice::from_raw_parts_mut(fast.start, fast.bytes) };
        if !matches!(self.does, Does::WritesNothing | Does::NeverEnds) {
            let given: Given = op
                .inputs
                .each()
                .map(|(slot, bytes)| {
                    assert_eq!(slot.region, op.scratch.region);
                    let from = (slot.offset - op.scratch.offset) as usize;
                    scratch[from..from + bytes as usize].to_vec()
                })
                .collect();
            let outputs = (self.computes)(job.step(), &given);
            if self.does != Does::IsNeat {
                scratch.fill(0x77);
                fast.fill(0x78);
            }
            assert_eq!(outputs.len(), op.outputs.len());
            for (span, output) in op.outputs.iter().zip(outputs) {
                scratch[span.offset as usize..][..span.bytes as usize].copy_from_slice(&output);
            }
        }
        self.busy = true;
        Ok(())
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        match self.does {
            Does::NeverEnds => Ok(Poll::Busy),
            Does::FailsLater => Err(6),
            _ => {
                self.busy = false;
                Ok(Poll::Done)
            }
        }
    }

    fn stop(&mut self) {
        self.stopped += 1;
        self.busy = false;
    }

    fn polls(&self) -> u32 {
        10
    }
}

pub(super) fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/ethos_u")
}

/// The compiled network of this name.
pub(super) fn compiled(name: &str, configuration: &str) -> PathBuf {
    models().join(format!("{name}.{configuration}.tflite"))
}

/// A network packed, proven, in a folder of its own.
pub(super) fn file(network: &Path) -> (tempfile::TempDir, ModelFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(network, folder.path(), Target::Portable).unwrap_or_else(|e| panic!("{e}"));
    prove(&file.view().expect("a view")).expect("it holds");
    (folder, file)
}

/// The steps that are the NPU's.
pub(super) fn commands(file: &ModelFile) -> Vec<(u32, Commands)> {
    let steps = file.view().expect("a view").steps().expect("steps");
    let own = steps.into_iter().zip(0..).filter_map(|(step, index)| match step {
        Step::EthosU(op) => Some((index, op)),
        _ => None,
    });
    own.collect()
}

/// A model in its memory.
pub(super) struct Held {
    pub(super) arenas: [Aligned; 4],
    pub(super) state: Aligned,
}

impl Held {
    pub(super) fn of(model: &Model<'_>) -> Self {
        Self {
            arenas: std::array::from_fn(|region| Aligned::new(model.arena_bytes(region))),
            state: Aligned::new(model.state_bytes()),
        }
    }

    pub(super) fn starts(&mut self) -> Vec<usize> {
        self.arenas
            .iter_mut()
            .map(|arena| arena.bytes().as_ptr().addr())
            .collect()
    }

    pub(super) fn session<'m, 's>(&'s mut self, model: &Model<'m>) -> Session<'m, 's> {
        let [a, b, c, d] = &mut self.arenas;
        let arenas = [a.bytes(), b.bytes(), c.bytes(), d.bytes()];
        Session::new(*model, arenas, self.state.bytes()).expect("a session")
    }
}

pub(super) fn fill(session: &mut Session<'_, '_>, seed: u64) {
    let mut random = Random::new(seed);
    for index in 0..usize::from(session.model().header().inputs) {
        let input = session.input_mut(index).expect("an input");
        input.fill_with(|| random.below(256) as u8);
    }
}

pub(super) fn outputs(session: &Session<'_, '_>) -> Vec<Vec<u8>> {
    let count = usize::from(session.model().header().outputs);
    (0..count)
        .map(|index| session.output(index).expect("an output").to_vec())
        .collect()
}

/// Outputs that follow from the inputs, and from nothing else.
pub(super) fn mixed_up(step: u32, given: &Given, sizes: &[usize]) -> Vec<Vec<u8>> {
    let seed = given.iter().flatten().fold(u64::from(step) + 1, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut random = Random::new(seed);
    let output = |&bytes: &usize| (0..bytes).map(|_| random.below(256) as u8).collect();
    sizes.iter().map(output).collect()
}

pub(super) fn sizes(op: &Commands) -> Vec<usize> {
    op.outputs.iter().map(|span| span.bytes as usize).collect()
}
