//! The one error type of the host tools: what is wrong, where, what was expected, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// Result of every fallible call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Class of an error; scripts and tests match on this, people read the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input file is malformed or contradicts itself.
    Input,
    /// The input is well-formed, but uses something that Arenite does not support.
    Unsupported,
    /// The input leaves a value out that has no safe default; the message says which `--assume` to pass.
    Ambiguous,
    /// The weights file lacks a parameter, or holds one of another shape or dtype.
    Weights,
    /// The network does not fit the memory that it was given.
    DoesNotFit,
    /// A file could not be read or written.
    Io,
    /// A command-line value is wrong.
    Usage,
    /// Whoever read the standard output went away before everything was there; nobody is left to tell.
    Closed,
    /// A pass produced an inconsistent graph: a defect of Arenite, reported instead of a wrong blob.
    Internal,
}

/// An error with its place and its remedy.
#[derive(Debug, Clone)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    place: Option<String>,
    expected: Option<String>,
    help: Option<String>,
}

impl Error {
    /// An error of `kind` with the plain statement of what is wrong.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: lines(message.into()),
            file: None,
            place: None,
            expected: None,
            help: None,
        }))
    }

    /// Malformed or contradictory input.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// Something that Arenite does not support, by name.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A defect of Arenite itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// An I/O failure on `file`.
    pub fn io(file: &Path, doing: &str, error: &std::io::Error) -> Self {
        let told = Self::new(ErrorKind::Io, format!("cannot {doing}: {}", reason(error))).in_file(file);
        match error.kind() {
            std::io::ErrorKind::NotFound if doing.starts_with("read") => {
                told.help("is the name right? A name without a folder is looked for where the command runs")
            }
            _ => told,
        }
    }

    /// Adds the file, unless one is named already.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.0.file.get_or_insert_with(|| crate::files::paths::shown(file));
        self
    }

    /// Adds the place inside the file or the graph (a line, a node, a tensor), unless one is named already.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0
            .place
            .get_or_insert_with(|| one_line(&place.to_string()).into_owned());
        self
    }

    /// Adds what was expected instead.
    #[must_use]
    pub fn expected(mut self, what: impl fmt::Display) -> Self {
        self.0.expected = Some(lines(what.to_string()));
        self
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn help(mut self, what: impl fmt::Display) -> Self {
        self.0.help = Some(lines(what.to_string()));
        self
    }

    /// Adds what the user can do, where nothing says yet what was expected or what to do.
    #[must_use]
    pub fn or_help(self, what: impl fmt::Display) -> Self {
        let told = self.0.expected.is_some() || self.0.help.is_some() || self.0.message.contains('\n');
        if told { self } else { self.help(what) }
    }

    /// The kind of trouble.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The plain statement, without place and remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file, as messages name it.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The place inside it.
    pub fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// Returns the expectation that was not met.
    pub fn expectation(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// Returns advice to the user.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

/// A name in one line, with its control characters escaped: a name is a file's own, and may hold what ends a line or moves a terminal's cursor.
pub fn one_line(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// A message without what moves a terminal's cursor or its colours: names are a file's own, and stand between backticks. Lines stay lines, but for those
/// in a name.
fn lines(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.split('\n').map(one_line).collect::<Vec<_>>().join("\n"),
        _ => one_line(part).into_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The system's reason, without the number that it has for that.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_string()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.0.file {
            write!(f, "{}: ", one_line(&file.display().to_string()))?;
        }
        if let Some(place) = &self.0.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.0.message)?;
        if let Some(expected) = &self.0.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(one_line("conv/1 é"), "conv/1 é");
        assert_eq!(one_line("a\nb\u{1b}[2J\u{9b}\r"), "a\\nb\\u{1b}[2J\\u{9b}\\r");
    }

    #[test]
    fn no_name_moves_a_terminal() {
        let error = Error::input("the mode `\u{1b}[2Jref\0\nect`\nof node 1")
            .at("line\r\n1")
            .expected("\u{9b}3m")
            .help("\tuse\u{7f} é");
        let text = error.to_string();
        assert_eq!(
            text,
            "line\\r\\n1: the mode `\\u{1b}[2Jref\\u{0}\\nect`\nof node 1; expected \\u{9b}3m\n  help: \\tuse\\u{7f} é"
        );
    }
}
