//! Accelerators of this host: one that is right and takes its time, and ones that are wrong in every way.

use std::mem::transmute;
use std::thread::JoinHandle;
use std::time::Duration;

use arenite::{Accelerator, Access, DType, Declaration, Job, MAX_REGIONS, Model, Poll, Session};
use arenite_host::model::Aligned;
use arenite_tests::writers::Random;

/// A thread that dawdles before each step.
pub(crate) struct Thread {
    pub(crate) declared: Declaration,
    seed: u64,
    thread: Option<JoinHandle<bool>>,
}

impl Thread {
    pub(crate) fn new(declared: Declaration, seed: u64) -> Self {
        let thread = None;
        Self { declared, seed, thread }
    }
}

// SAFETY: a thread is joined before its step is said to be done, and before `stop` returns.
unsafe impl Accelerator for Thread {
    fn declaration(&self) -> Declaration {
        self.declared
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        // SAFETY: `poll` and `stop` join the thread before the job ends.
        let job = unsafe { transmute::<Job<'_>, Job<'static>>(job) };
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let nap = self.seed >> 58;
        self.thread = Some(std::thread::spawn(move || {
            if nap > 32 {
                std::thread::sleep(Duration::from_micros(nap));
            }
            job.run()
        }));
        Ok(())
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::yield_now();
            return Ok(Poll::Busy);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(true)) => Ok(Poll::Done),
            _ => Err(77),
        }
    }

    fn stop(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Behaviour at the step at which a mock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Right,
    FailsToStart,
    FailsLater,
    NeverEnds,
    WritesNothing,
    /// All but the last half of the output.
    StopsEarly,
    /// All but the first sixteen bytes.
    BeginsLate,
    IsDoneOnlyOnce,
    ReachesNothing,
}

/// One that does its steps at once, but for one of them.
pub(crate) struct Wrong {
    pub(crate) declared: Declaration,
    pub(crate) does: Does,
    /// How many more steps it does before.
    pub(crate) after: usize,
    pub(crate) started: usize,
    pub(crate) stopped: usize,
    pub(crate) busy: bool,
}

impl Wrong {
    pub(crate) fn new(declared: Declaration, does: Does, after: usize) -> Self {
        Self {
            declared,
            does,
            after,
            started: 0,
            stopped: 0,
            busy: false,
        }
    }

    fn now(&self) -> Does {
        if self.started > self.after {
            self.does
        } else {
            Does::Right
        }
    }
}

/// The bytes that a job writes.
pub(crate) fn output(job: &Job<'_>) -> &'static mut [u8] {
    let mut found = None;
    job.operands(&mut |operand| {
        if operand.access == Access::Write {
            // SAFETY: the session lends the operand to the job, which does not run meanwhile; the bytes are used before it ends.
            found = Some(unsafe { std::slice::from_raw_parts_mut(operand.start, operand.bytes) });
        }
    })
    .expect("as it was loaded");
    found.expect("an output")
}

// SAFETY: `start` computes in its own thread and returns when nothing touches the job any more.
unsafe impl Accelerator for Wrong {
    fn declaration(&self) -> Declaration {
        self.declared
    }

    fn reaches(&self, _: *const u8, _: usize) -> bool {
        !(self.does == Does::ReachesNothing && self.started >= self.after)
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        assert!(!self.busy, "one at a time");
        self.started += 1;
        let before = output(&job).to_vec();
        let all = before.len();
        let kept = match self.now() {
            Does::FailsToStart => return Err(5),
            Does::WritesNothing | Does::NeverEnds => 0..all,
            Does::StopsEarly => all - all.min(31.max(all / 2))..all,
            Does::BeginsLate => 0..if all < 32 { all } else { 16 },
            Does::IsDoneOnlyOnce if self.started == self.after + 2 => 0..all,
            _ => 0..0,
        };
        assert!(job.run());
        output(&job)[kept.clone()].copy_from_slice(&before[kept]);
        self.busy = true;
        Ok(())
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        match self.now() {
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

/// A model in its memory.
pub(crate) struct Held {
    arenas: [Aligned; MAX_REGIONS],
    state: Aligned,
}

impl Held {
    pub(crate) fn of(model: &Model<'_>) -> Self {
        Self {
            arenas: std::array::from_fn(|region| Aligned::new(model.arena_bytes(region))),
            state: Aligned::new(model.state_bytes()),
        }
    }

    pub(crate) fn session<'m, 's>(&'s mut self, model: &Model<'m>) -> Session<'m, 's> {
        let [a, b, c, d] = &mut self.arenas;
        let arenas = [a.bytes(), b.bytes(), c.bytes(), d.bytes()];
        Session::new(*model, arenas, self.state.bytes()).expect("a session")
    }
}

/// Inputs of a run: anything that their types can hold.
pub(crate) fn fill(session: &mut Session<'_, '_>, seed: u64) {
    let mut random = Random::new(seed);
    for index in 0..usize::from(session.model().header().inputs) {
        let float = session.model().input(index).expect("an input").dtype == DType::F32;
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

pub(crate) fn outputs(session: &Session<'_, '_>) -> Vec<Vec<u8>> {
    let count = usize::from(session.model().header().outputs);
    (0..count)
        .map(|index| session.output(index).expect("an output").to_vec())
        .collect()
}
