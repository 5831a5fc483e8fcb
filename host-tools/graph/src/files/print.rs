//! Standard output and standard error. Neither ever ends the program with a panic.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
#[cfg(feature = "tools")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "tools")]
use indicatif::ProgressBar;

use crate::error::{Error, ErrorKind, Result};

/// Printed texts, where a caller wants them instead of the process's streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// All of standard output.
    pub out: String,
    /// The notes of standard error, without their ends of line.
    pub notes: Vec<String>,
}

thread_local! {
    /// Where this thread's texts go, while they are captured.
    static CAPTURED: RefCell<Option<Captured>> = const { RefCell::new(None) };
}

/// Does `work`, and returns what this thread printed meanwhile, which the process's streams do not get. Calls within calls capture their own.
/// Threads that `work` starts print as ever.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, Captured) {
    /// Puts back what was there, even where `work` unwinds.
    struct Restored(Option<Captured>);
    impl Drop for Restored {
        fn drop(&mut self) {
            CAPTURED.replace(self.0.take());
        }
    }
    let before = Restored(CAPTURED.replace(Some(Captured::default())));
    let result = work();
    let captured = CAPTURED.take().unwrap_or_default();
    drop(before);
    (result, captured)
}

/// Gives `add` what this thread captures; whether it captures anything.
fn held(add: impl FnOnce(&mut Captured)) -> bool {
    CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(add).is_some())
}

/// A text without what moves a terminal's cursor or its colours, but for ends of lines and tabs; escaped as JSON has it, which may be printed so as well.
fn plain(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| {
        if hidden(c) {
            format!("\\u{:04x}", u32::from(c))
        } else {
            c.to_string()
        }
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Prints on standard output, escaped by `plain`. A reader that has seen enough (`| head`) is no failure.
///
/// # Errors
/// [`ErrorKind::Io`] where it cannot be written, such as on a full disk.
pub fn out(text: &str) -> Result<()> {
    styled(&plain(text))
}

/// Prints on standard output as it is, with the colours of a page that is the programs' own.
///
/// # Errors
/// As [`out`].
pub fn styled(text: &str) -> Result<()> {
    if held(|captured| captured.out.push_str(text)) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(refused(&e)),
        _ => Ok(()),
    }
}

/// That standard output takes no more.
pub(super) fn refused(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write to the standard output: {error}"))
}

/// Progress bar at the end of standard error while long work goes on.
#[cfg(feature = "tools")]
static BELOW: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on lines come above `bar`, until there is none.
#[cfg(feature = "tools")]
pub fn above(bar: Option<ProgressBar>) {
    *BELOW.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// A line on standard error, escaped by `plain`. Where that cannot be written there is nobody to tell.
pub fn note(line: impl fmt::Display) {
    styled_note(plain(&line.to_string()));
}

/// A line on standard error as it is, with colours: of an error, whose texts are escaped.
pub fn styled_note(line: impl fmt::Display) {
    if held(|captured| captured.notes.push(line.to_string())) {
        return;
    }
    let write = || {
        let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
    };
    #[cfg(not(feature = "tools"))]
    write();
    #[cfg(feature = "tools")]
    match &*BELOW.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_but_for_lines_and_tabs() {
        assert_eq!(plain("a\tb\n é"), "a\tb\n é");
        assert_eq!(plain("\u{1b}[2J\"\u{9b}\r\""), "\\u001b[2J\"\\u009b\\u000d\"");
    }

    #[test]
    fn captured_texts_are_those_of_the_work_alone() {
        let ((), outer) = captured(|| {
            out("a").expect("kept");
            let (result, inner) = captured(|| {
                out("b\n").expect("kept");
                note(format_args!("n{}", 1));
                7
            });
            assert_eq!(
                (result, inner.out.as_str(), &inner.notes[..]),
                (7, "b\n", &["n1".to_string()][..])
            );
            let unwound = std::panic::catch_unwind(|| captured(|| std::panic::resume_unwind(Box::new(()))));
            assert!(unwound.is_err());
            out("c").expect("kept");
        });
        assert_eq!((outer.out.as_str(), outer.notes.len()), ("ac", 0));
        assert!(!held(|_| ()), "nothing is captured any more");
    }
}
