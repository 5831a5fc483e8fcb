//! Steps by the numbers that errors have.

use super::header::{Header, Section};
#[cfg(feature = "training")]
use super::list::List;
use super::records::Records;
use super::sections::Parts;
use crate::error::LoadError;
use crate::kernels::table::KernelId;

/// The step of this number, as errors count: those of training behind those of inference. Nothing of the file need be right.
pub(crate) fn step_in(file: &[u8], number: u32) -> Option<(u8, &[u8])> {
    let header = Header::parse(file).ok()?;
    match number.checked_sub(header.step_count) {
        None => record_of(file, header.steps, number),
        #[cfg(feature = "training")]
        Some(number) => {
            let [_, steps] = List::of(file, header.training)?.places();
            record_of(file, steps, number)
        }
        #[cfg(not(feature = "training"))]
        Some(_) => None,
    }
}

fn record_of(file: &[u8], Section { offset, len }: Section, number: u32) -> Option<(u8, &[u8])> {
    let steps = file.get(offset as usize..)?.get(..len as usize)?;
    Records(steps).nth(number as usize)?
}

impl Parts<'_> {
    /// The fault of a step whose kernel this build does not have.
    pub(super) fn unknown_kernel(self, step: u32, id: u8) -> LoadError {
        match KernelId::from_u8(id) {
            None => LoadError::UnknownKernel { step, kernel: id },
            Some(kernel) => LoadError::Kernel {
                step,
                kernel,
                target: self.target_name(),
            },
        }
    }
}
