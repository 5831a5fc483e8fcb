//! How a compiled model's steps end: always well, or with an index of the inputs that one of them refuses.

use crate::arena::Mem;
use crate::error::RunError;
use crate::errors::Error;
use crate::kernels::api::kernel::Kernel;
use crate::ops::position::OutOfRange;

/// A token or a position that was given is out of its range: the one error that a compiled model's typed run can have. The run is over; the state is as the
/// steps before this one left it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct IndexError {
    /// The step that refused it.
    pub step: u32,
    /// The index.
    pub index: i32,
    /// Indices that there are, from 0.
    pub count: u32,
}

impl IndexError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        self.of_run().code()
    }

    const fn of_run(self) -> RunError {
        let Self { step, index, count } = self;
        RunError::OutOfRange { step, index, count }
    }
}

impl From<IndexError> for RunError {
    fn from(error: IndexError) -> Self {
        error.of_run()
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        Error::Run(error.of_run())
    }
}

impl core::fmt::Debug for IndexError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.of_run(), f)
    }
}

impl core::fmt::Display for IndexError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.of_run(), f)
    }
}

impl core::error::Error for IndexError {}

/// End of a step that may refuse an index, and of a run with one.
pub type Indexed = Result<(), IndexError>;

/// The index that a step has refused.
#[cold]
#[inline(never)]
pub fn refused<K: Kernel>(step: u32, op: &K::Op, mem: &Mem<'_>) -> IndexError {
    let OutOfRange { index, count } = K::out_of_range(op, mem).unwrap_or(OutOfRange { index: 0, count: 0 });
    IndexError { step, index, count }
}

/// End of a model's steps: `()` where none of them takes an index, or [`Indexed`].
pub trait Ended: Sized {
    /// Result of a run with typed inputs: its outputs, or those in a `Result`.
    type Run<O>;

    /// The error, where there is one.
    fn error(&self) -> Option<RunError>;

    /// Behind a run, the outputs that `find` gives.
    fn with<O>(self, find: impl FnOnce() -> O) -> Self::Run<O>;
}

impl Ended for () {
    type Run<O> = O;

    #[inline(always)]
    fn error(&self) -> Option<RunError> {
        None
    }

    #[inline(always)]
    fn with<O>(self, find: impl FnOnce() -> O) -> O {
        find()
    }
}

impl Ended for Indexed {
    type Run<O> = Result<O, IndexError>;

    #[inline(always)]
    fn error(&self) -> Option<RunError> {
        self.err().map(RunError::from)
    }

    #[inline(always)]
    fn with<O>(self, find: impl FnOnce() -> O) -> Result<O, IndexError> {
        self.map(|()| find())
    }
}
