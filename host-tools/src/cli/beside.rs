//! An accelerator on this host: a thread that runs the steps of a file that is for one, whichever it is, beside those of the core.

use std::mem::transmute;
use std::thread::{self, JoinHandle};

use arenite::{Accelerator, Declaration, Job, Poll};

/// The thread, while it has a step.
pub(super) struct Beside {
    declared: Declaration,
    thread: Option<JoinHandle<bool>>,
}

impl Beside {
    /// The accelerator that a file declares.
    pub(super) fn new(declared: Declaration) -> Self {
        Self { declared, thread: None }
    }
}

// SAFETY: a job is touched by its thread alone, and by none any more when that was joined, before a step is said to be done and before `stop` returns. Threads
// begin with an acquire of what was written before, and joining one acquires what it wrote.
unsafe impl Accelerator for Beside {
    fn declaration(&self) -> Declaration {
        self.declared
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        // SAFETY: the thread has ended before the job does.
        let job = unsafe { transmute::<Job<'_>, Job<'static>>(job) };
        let thread = thread::Builder::new().spawn(move || job.run());
        self.thread = Some(thread.map_err(|_| 1u32)?);
        Ok(())
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            thread::yield_now();
            return Ok(Poll::Busy);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(true)) => Ok(Poll::Done),
            _ => Err(2),
        }
    }

    fn stop(&mut self) {
        // It ends by itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }

    fn polls(&self) -> u32 {
        u32::MAX
    }
}
