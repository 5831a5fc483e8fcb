//! The core's own unit of outer products as an accelerator: a step that is handed over is computed when it is started, by kernels that enter and leave
//! streaming mode themselves.

use arenite::Backend;
use arenite::{Accelerator, Declaration, Job, Name, Poll, Target};

use crate::board::cpu;

/// Codes of [`arenite::AcceleratorFault::Failed`]: the core has no such unit; the file changed since it was loaded.
pub const ABSENT: u32 = 1;
const CHANGED: u32 = 2;

/// The unit, whether this core has it or not.
pub struct Sme {
    present: bool,
}

impl Sme {
    /// Asks the core.
    pub fn find() -> Self {
        Self {
            present: cpu().has(Backend::Sme),
        }
    }
}

// SAFETY: a step is over when `start` returns, on the core that runs the session.
unsafe impl Accelerator for Sme {
    fn declaration(&self) -> Declaration {
        Declaration {
            name: const { Name::new("sme").unwrap() },
            version: 1,
            layout: Target::Aarch64Sme,
            alignment: 1,
            regions: 1,
        }
    }

    fn start(&mut self, job: Job<'_>) -> Result<(), u32> {
        // Its instructions are undefined on other cores.
        if !self.present {
            return Err(ABSENT);
        }
        if job.run() { Ok(()) } else { Err(CHANGED) }
    }

    fn poll(&mut self) -> Result<Poll, u32> {
        Ok(Poll::Done)
    }

    fn stop(&mut self) {}
}
