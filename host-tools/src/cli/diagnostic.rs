//! Errors as a terminal shows them: the line of the file, with what is meant underlined, in colours unless `NO_COLOR` asks for none. Whatever is no terminal
//! gets the plain text, so that records of it stay the same.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::ops::Range;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::Error;
use crate::error::one_line;
use crate::files::json::Json;

/// The largest file that is read again for one of its lines.
const LARGEST: u64 = 64 << 20;

const RED: &str = "\u{1b}[1;91m";
const BOLD: &str = "\u{1b}[0;1m";
const RESET: &str = "\u{1b}[0m";

/// How an error is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// One sentence after the other.
    Plain,
    /// With the line of the file, without colours.
    Drawn,
    /// In colours as well.
    Coloured,
}

impl Style {
    /// Returns the style that suits standard error.
    pub(super) fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    /// Returns the style that suits a stream that is a terminal or not.
    pub(super) fn of(is_terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_dumb = set("TERM").is_some_and(|term| term == "dumb");
        if !is_terminal {
            Self::Plain
        } else if set("NO_COLOR").is_some() || is_dumb {
            Self::Drawn
        } else {
            Self::Coloured
        }
    }
}

/// An error as it is told.
pub(super) fn text(error: &Error, style: Style) -> String {
    let renderer = match style {
        Style::Plain => return format!("error: {error}"),
        Style::Drawn => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let excerpt = error
        .file()
        .zip(error.place())
        .and_then(|(file, place)| excerpt(file, place));
    let Some(excerpt) = excerpt else {
        let whole = format!("error: {error}");
        return match style {
            Style::Coloured => whole
                .replacen("error:", &format!("{RED}error{BOLD}:{RESET}"), 1)
                .replacen("\n  help:", &format!("\n  {BOLD}help{RESET}:"), 1),
            Style::Plain | Style::Drawn => whole,
        };
    };
    let mut meant = AnnotationKind::Primary.span(excerpt.meant.clone());
    if let Some(expected) = error.expectation() {
        meant = meant.label(format!("expected {expected}"));
    }
    // Of a long line, as dumps are that have one, the part around it is shown.
    let snippet = Snippet::source(excerpt.source)
        .line_start(excerpt.line)
        .path(
            error
                .file()
                .map(|file| one_line(&file.display().to_string()).into_owned()),
        )
        .annotation(meant);
    let mut group = Group::with_title(Level::ERROR.primary_title(error.message())).element(snippet);
    if let Some(place) = error.place().filter(|place| place.contains(['(', '`'])) {
        group = group.element(Level::NOTE.message(format!("at {place}")));
    }
    if let Some(help) = error.remedy() {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    source: String,
    /// One-based, in the file.
    line: usize,
    /// Range of the marked text, in bytes of `source`.
    meant: Range<usize>,
}

fn excerpt(file: &Path, place: &str) -> Option<Excerpt> {
    let place = Place::read(place)?;
    // A pipe was read once, and is gone.
    let is_file = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    let mut bytes = Vec::new();
    let opened = is_file.then(|| fs::File::open(file))?.ok()?;
    opened.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let is_table = file.extension().is_some_and(|extension| extension == "csv");
    place.find(&bytes, is_table)
}

/// Position in an error's place: `line 3`, `line 3, column 5`, `line 3 (ops/2)`, `line 3, column 5 (ops/2)`, or a name before that.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    line: usize,
    column: Option<usize>,
    path: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn read(place: &'a str) -> Option<Self> {
        // A name before it may say anything, and so may what is behind.
        let rest = match place.strip_prefix("line ") {
            Some(rest) => rest,
            None => place.rsplit_once(", line ")?.1,
        };
        let (line, rest) = number(rest)?;
        let (column, rest) = match rest.strip_prefix(", column ").and_then(number) {
            Some((column, rest)) => (Some(column), rest),
            None => (None, rest),
        };
        let path = rest.strip_prefix(" (").and_then(|rest| Some(rest.rsplit_once(')')?.0));
        Some(Self { line, column, path })
    }

    fn find(&self, bytes: &[u8], is_table: bool) -> Option<Excerpt> {
        let (start, line) = line_of(bytes, self.line)?;
        let meant = self.value(bytes).map(|range| {
            let within = |at: usize| at.saturating_sub(start).min(line.len());
            within(range.start)..within(range.end)
        });
        let meant = meant.filter(|range| !range.is_empty()).or_else(|| match self.column {
            Some(column) if is_table => field(line, column),
            Some(column) => {
                let at = column.checked_sub(1)?.min(line.len());
                Some(at..(at + 1).min(line.len()))
            }
            None => None,
        });
        // Where only the line is known, all of it.
        let all = || line.len() - line.trim_ascii_start().len()..line.trim_ascii_end().len().max(1).min(line.len());
        Some(shown(line, meant.unwrap_or_else(all), self.line))
    }

    /// The value at the path in a JSON document, where it begins on this line.
    fn value(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let document = str::from_utf8(bytes).ok()?;
        let value = Json::parse(document).ok()?.find(self.path?)?;
        (value.line() == self.line).then(|| value.range())
    }
}

fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// Where a line starts, and its bytes without the end.
fn line_of(bytes: &[u8], number: usize) -> Option<(usize, &[u8])> {
    let mut start = 0;
    for (at, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if at == number {
            return Some((start, line.strip_suffix(b"\r").unwrap_or(line)));
        }
        start += line.len() + 1;
    }
    None
}

/// The field of that number in a line of comma-separated values.
fn field(line: &[u8], number: usize) -> Option<Range<usize>> {
    let mut start = 0;
    for (at, field) in (1..).zip(line.split(|&byte| byte == b',')) {
        if at == number {
            return Some(start..start + field.len());
        }
        start += field.len() + 1;
    }
    None
}

/// A line, and what is meant in it. Bytes that are no text become signs that say so.
fn shown(line: &[u8], meant: Range<usize>, number: usize) -> Excerpt {
    let text = |range: Range<usize>| String::from_utf8_lossy(line.get(range).unwrap_or_default()).into_owned();
    let (before, inside, behind) = (text(0..meant.start), text(meant.clone()), text(meant.end..line.len()));
    let (start, end) = (before.len(), before.len() + inside.len());
    Excerpt {
        source: before + &inside + &behind,
        line: number,
        meant: start..end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line, the column, and what is meant there.
    fn found(document: &str, place: &str) -> (usize, usize, String) {
        let place = Place::read(place).unwrap_or_else(|| panic!("{place}"));
        let excerpt = place.find(document.as_bytes(), false).expect("the line is there");
        let meant = excerpt.source.get(excerpt.meant.clone()).expect("inside").to_string();
        (excerpt.line, excerpt.meant.start + 1, meant)
    }

    #[test]
    fn places_lead_to_what_they_mean() {
        let text = "{\"a\": 1,\n \"b/c\": {\"d\": [1,\n 2, \"xyz\"]}}\n";
        for (place, expected) in [
            ("line 3, column 5 (b/c/d/2)", (3, 5, "\"xyz\"")),
            ("`(n, line 7 (o)`, line 2 (b/c/d)", (2, 15, "[1,")),
            ("line 1, column 7", (1, 7, "1")),
            // A path that leads nowhere, a note in its place: the column, or the line.
            ("line 3, column 5 (conv)", (3, 5, "\"")),
            ("line 2: `conv` (Relu)", (2, 2, "\"b/c\": {\"d\": [1,")),
        ] {
            let (line, column, meant) = expected;
            assert_eq!(found(text, place), (line, column, meant.to_string()), "{place}");
        }
        for place in [
            "`conv1` (conv2d)",
            "offset 4",
            "the header: line 1, column 4",
            "lines 1 to 4",
            "line x",
        ] {
            assert_eq!(Place::read(place), None, "{place}");
        }
        assert!(
            Place::read("line 9")
                .expect("a line")
                .find(text.as_bytes(), false)
                .is_none()
        );
    }

    #[test]
    fn any_place_of_any_bytes_has_an_excerpt_within_it() {
        let documents: [&[u8]; 5] = [
            b"",
            b"\n",
            b"a\xe9b\xff\r\n\xc3\x28",
            "äö€\n\t\u{1b}[31m".as_bytes(),
            &[b'x'; 500],
        ];
        for bytes in documents {
            for line in 0..4 {
                for column in [None, Some(0), Some(1), Some(3), Some(499), Some(usize::MAX)] {
                    for is_table in [false, true] {
                        let place = Place {
                            line,
                            column,
                            path: Some("a/0"),
                        };
                        let Some(excerpt) = place.find(bytes, is_table) else {
                            continue;
                        };
                        assert!(excerpt.source.get(excerpt.meant.clone()).is_some(), "{excerpt:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn columns_of_tables_are_fields() {
        let place = Place::read("line 2, column 3").expect("a place");
        let excerpt = place.find(b"id,lower,upper\n7,8,910\n", true).expect("there");
        assert_eq!(excerpt.source.get(excerpt.meant), Some("910"));
    }

    #[test]
    fn without_a_terminal_the_text_is_plain() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("net.json");
        fs::write(&file, "{\n  \"shape\": [1, -64]\n}\n").expect("written");
        let document = fs::read_to_string(&file).expect("read");
        let value = Json::parse(&document).expect("JSON").find("shape/1").expect("there");
        let error = value.error("found `-64`").expected("an integer").help("write another");
        let error = error.in_file(&file);
        assert_eq!(text(&error, Style::Plain), format!("error: {error}"));
        let drawn = text(&error, Style::Drawn);
        for part in [
            "error: found `-64`\n",
            "net.json:2:16\n",
            "2 |   \"shape\": [1, -64]\n",
            "  |                ^^^ expected an integer\n",
            "note: at line 2, column 16 (shape/1)",
            "help: write another",
        ] {
            assert!(drawn.contains(part), "no {part:?} in\n{drawn}");
        }
        assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
        let coloured = text(&error, Style::Coloured);
        assert!(coloured.contains("\u{1b}[") && coloured.contains("^^^"), "{coloured:?}");
        // A file that is gone, or was a pipe: what is known is said.
        fs::remove_file(&file).expect("removed");
        let drawn = text(&error, Style::Drawn);
        assert!(
            drawn.contains("net.json: line 2, column 16 (shape/1): found `-64`; expected an integer"),
            "{drawn}"
        );
    }
}
