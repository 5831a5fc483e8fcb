//! Errors of the host tools as Python's exceptions, and work without the interpreter's lock that an exception ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use arenite_host::cli::calls::Watch;
use arenite_host::{Error, ErrorKind, Result};
use pyo3::prelude::*;

/// The exception that ends work which is being watched.
struct Ended(PyErr);

/// Does `work` without the interpreter's lock. Its progress goes to `progress`, if that is given; at the same times signals are looked for, so that
/// KeyboardInterrupt, as any exception of `progress`, ends the work.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Watch) -> Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(|| {
        let watch = Box::new(move |stage: &str, done: u64, of: u64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress
                    .as_ref()
                    .map_or(Ok(()), |told| told.call1(py, (stage, done, of)).map(drop))
            });
            if let Err(exception) = told {
                resume_unwind(Box::new(Ended(exception)));
            }
        });
        catch_unwind(AssertUnwindSafe(|| work(watch)))
    });
    match result {
        Ok(result) => result.map_err(|e| raised(py, &e)),
        Err(panic) => Err(match panic.downcast::<Ended>() {
            Ok(ended) => ended.0,
            Err(panic) => raised(py, &defect(panic.as_ref())),
        }),
    }
}

/// The exception `arenite.Error` of an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("arenite._error")?.getattr("Error")?;
        let file = error.file().map(|file| file.display().to_string());
        let fields = (
            kind(error.kind()),
            error.message(),
            file,
            error.place(),
            error.expectation(),
            error.remedy(),
        );
        Ok(PyErr::from_value(class.call1(fields)?))
    };
    made().unwrap_or_else(|exception| exception)
}

/// The word for a kind of error.
fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Input => "input",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Ambiguous => "ambiguous",
        ErrorKind::Weights => "weights",
        ErrorKind::DoesNotFit => "does_not_fit",
        ErrorKind::Io => "io",
        ErrorKind::Usage => "usage",
        ErrorKind::Closed => "closed",
        ErrorKind::Internal => "internal",
    }
}

fn defect(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Error::internal(format!("a defect of Arenite: {}", text.unwrap_or("a panic")))
}
