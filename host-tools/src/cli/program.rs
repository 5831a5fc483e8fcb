//! Common part of the programs: arguments in, an exit status out, and how results are printed.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use super::diagnostic::{self, Style};
use super::examples::helped;
use super::planned;
use crate::files::print;
use crate::{Error, ErrorKind, Result, files};

/// Exit status of the process: the contract's exit status 1 where the command is done but its answer is no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Status 0.
    Good,
    /// Status 1.
    Bad,
}

/// A whole program: signals, arguments, work, and the exit status that the contract gives to what came of it.
pub(super) fn run_to_the_end<A: Parser>(work: impl FnOnce(A) -> Result<Verdict>) -> ExitCode {
    files::signals::watch();
    let result = match parsed::<A>(std::env::args_os()) {
        Ok(arguments) => work(arguments),
        Err((e, command)) if e.use_stderr() => {
            if let Some(planned) = planned::refusal(command.get_name(), &e) {
                print::styled_note(diagnostic::text(&planned, Style::of_stderr()));
                return ExitCode::from(1);
            }
            // Where standard error takes nothing there is nobody to tell.
            match no_number(&e) {
                Some(text) => print::note(text),
                None => drop(e.print()),
            }
            return ExitCode::from(2);
        }
        // Help and version are results.
        Err((e, _)) => {
            let (page, style) = (e.render(), Style::of(std::io::stdout().is_terminal()));
            let text = match style {
                Style::Coloured => page.ansi().to_string(),
                Style::Plain | Style::Drawn => page.to_string(),
            };
            print::styled(&text).map(|()| Verdict::Good)
        }
    };
    match result {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(error) => {
            if error.kind() != ErrorKind::Closed {
                print::styled_note(diagnostic::text(&error, Style::of_stderr()));
            }
            ExitCode::from(if error.kind() == ErrorKind::Usage { 2 } else { 1 })
        }
    }
}

/// The arguments of a command line, its first word the program's name; else what clap says, and the command that says it.
pub(super) fn parsed<A: Parser>(
    words: impl IntoIterator<Item = OsString>,
) -> std::result::Result<A, (clap::Error, Box<clap::Command>)> {
    let mut command = helped(A::command());
    let matches = command.try_get_matches_from_mut(words);
    let arguments = matches.and_then(|matches| A::from_arg_matches(&matches).map_err(|e| e.format(&mut command)));
    arguments.map_err(|error| (error, Box::new(command)))
}

/// As [`parsed`], for callers that want one kind of error; help and version are errors as well.
///
/// # Errors
/// [`ErrorKind::Usage`] with clap's text, [`ErrorKind::Unsupported`] for what is planned.
pub(super) fn read<A: Parser>(words: impl IntoIterator<Item = OsString>) -> Result<A> {
    parsed(words).map_err(|(e, command)| {
        planned::refusal(command.get_name(), &e).unwrap_or_else(|| {
            let text = no_number(&e).unwrap_or_else(|| e.render().to_string());
            Error::new(ErrorKind::Usage, text.trim_start_matches("error: ").trim_end())
        })
    })
}

/// Returns the message for a value that is no number: the standard library's words are for programmers.
fn no_number(error: &clap::Error) -> Option<String> {
    let source = error.source()?;
    let expected = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "a smaller number",
        Some(_) => "a whole number",
        None => source.downcast_ref::<ParseFloatError>().map(|_| "a number")?,
    };
    let [argument, value] = [ContextKind::InvalidArg, ContextKind::InvalidValue].map(|kind| error.get(kind));
    let (ContextValue::String(argument), ContextValue::String(value)) = (argument?, value?) else {
        return None;
    };
    Some(format!(
        "error: {argument}: `{value}`; expected {expected}\n  help: --help says what it is for"
    ))
}

/// Prints JSON on stdout.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::internal(format!("JSON: {e}")))?;
    print::out(&format!("{text}\n"))
}
