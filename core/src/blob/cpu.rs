//! Instructions of the core on which a model is to run, where a program is built for more than every core that it may run on has.

use super::sections::Parts;
use crate::error::{Lack, LoadError};
use crate::kernels::Backend;
use crate::kernels::table::KernelId;

/// Those instruction sets of this build of the runtime that a core has. A board reads it from its identification registers and gives it to
/// [`Model::load_on`](super::Model::load_on): instructions that the core has not are then never reached, whatever the file.
///
/// ```
/// use arenite::{Backend, Cpu};
///
/// let cpu = Cpu::COMPILED.without(Backend::Sme).with_cores(2);
/// assert!(!cpu.has(Backend::Sme) && cpu.has(Backend::Dotprod));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cpu {
    /// A bit for each backend, by its number, that the core has no instructions for.
    lacks: u32,
    cores: u8,
    accelerator: bool,
}

impl Cpu {
    /// Everything that the build is compiled with, as many cores as a file asks for, and whatever accelerator.
    pub const COMPILED: Self = Self {
        lacks: 0,
        cores: u8::MAX,
        accelerator: true,
    };

    /// The same without the instructions of a backend. Portable backends need none: to leave them out refuses their kernels all the same.
    #[must_use]
    pub const fn without(self, backend: Backend) -> Self {
        Self {
            lacks: self.lacks | bit(backend),
            ..self
        }
    }

    /// The same with so many cores: what is for more is refused.
    #[must_use]
    pub const fn with_cores(self, cores: u8) -> Self {
        Self { cores, ..self }
    }

    /// The same where there is no accelerator.
    #[must_use]
    pub const fn without_accelerator(self) -> Self {
        Self {
            accelerator: false,
            ..self
        }
    }

    /// Whether the core has the instructions of a backend, as far as was stated.
    pub const fn has(self, backend: Backend) -> bool {
        self.lacks & bit(backend) == 0
    }

    /// Whether this core can run a file that was checked. Steps that are handed over count as well where this build has their kernels: a run without the
    /// accelerator would compute them here.
    pub(super) fn check(self, parts: Parts<'_>) -> Result<(), LoadError> {
        let lack = |lack| Err(LoadError::Cpu { lack });
        // Without the feature they run on one core.
        #[cfg(feature = "cores")]
        if let Some((needed, _)) = parts.cores().filter(|&(needed, _)| needed > self.cores) {
            let given = self.cores;
            return lack(Lack::Cores { needed, given });
        }
        if !self.accelerator && parts.is_accelerated() {
            return lack(Lack::Accelerator);
        }
        if self.lacks == 0 {
            return Ok(());
        }
        for (step, record) in (parts.first_step()..).zip(parts.steps()) {
            let kernel = record.and_then(|(kernel, _)| KernelId::from_u8(kernel));
            let missing = |kernel: &KernelId| kernel.backend().available() && !self.has(kernel.backend());
            if let Some(kernel) = kernel.filter(missing) {
                return lack(Lack::Kernel { step, kernel });
            }
        }
        Ok(())
    }
}

const fn bit(backend: Backend) -> u32 {
    1 << backend as u32
}
