//! Buffers as CSV: a header `id,lower,upper,size`, then one row per buffer.
//!
//! The columns may come in any order; `alignment` is optional. `lower` and `upper` are steps, `upper` exclusive; `size` and
//! `alignment` are bytes. There is no quoting. Written files have one more column, `offset`, in bytes.

use std::collections::HashMap;
use std::fmt::Write;

use super::problem::{Buffer, Problem};

const COLUMNS: [&str; 5] = ["id", "lower", "upper", "size", "alignment"];

/// A fault of a CSV file, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct CsvError {
    /// Line in the file, from 1.
    pub line: usize,
    /// Field in the line, from 1.
    pub column: usize,
    /// Expected text at the position.
    pub expected: String,
    /// Text found at the position.
    pub found: String,
}

impl CsvError {
    fn new(line: usize, column: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        CsvError {
            line,
            column,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// Reads buffers.
///
/// # Errors
/// The first place where the text is not as described above: missing, unknown or repeated columns, rows of another length, numbers that
/// are none or too large, lifetimes that do not end after they begin, repeated ids.
pub fn read(text: &str) -> Result<Problem, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let header = lines.by_ref().find(|(_, line)| !line.trim().is_empty());
    let Some((line, header)) = header else {
        return Err(CsvError::new(1, 1, "the header `id,lower,upper,size`", "an empty file"));
    };
    let places = read_header(line, header)?;
    let width = header.split(',').count();
    let mut problem = Problem::default();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (line, row) in lines.filter(|(_, row)| !row.trim().is_empty()) {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        if fields.len() != width {
            let column = fields.len().min(width) + 1;
            return Err(CsvError::new(
                line,
                column,
                format!("{width} fields"),
                format!("{} fields", fields.len()),
            ));
        }
        let field = |name: &str| {
            places
                .get(name)
                .and_then(|&at| fields.get(at).map(|&text| (at + 1, text)))
        };
        let number = |name: &str, least: u64| -> Result<u64, CsvError> {
            let Some((column, text)) = field(name) else {
                return Ok(least);
            };
            text.parse::<u64>().ok().filter(|&value| value >= least).ok_or_else(|| {
                let expected = format!("{name}, a whole number from {least} to {}", u64::MAX);
                CsvError::new(line, column, expected, format!("{text:?}"))
            })
        };
        let (column, id) = field("id").unwrap_or((1, ""));
        if id.is_empty() {
            return Err(CsvError::new(line, column, "an id", "an empty field"));
        }
        if let Some(first) = seen.insert(id, line) {
            return Err(CsvError::new(
                line,
                column,
                "an id of its own",
                format!("{id:?}, which line {first} has"),
            ));
        }
        let (lower, upper) = (number("lower", 0)?, number("upper", 0)?);
        if upper <= lower {
            let column = field("upper").map_or(1, |(column, _)| column);
            let expected = format!("an upper (exclusive) above the lower {lower}");
            return Err(CsvError::new(line, column, expected, upper.to_string()));
        }
        problem
            .buffers
            .push(Buffer::new(id, lower, upper, number("size", 0)?).aligned(number("alignment", 1)?));
    }
    Ok(problem)
}

/// Writes the buffers with their offsets; `alignment` only where some buffer has one above 1.
///
/// Only the first part of each buffer is written: this is the inverse of [`read`], which makes buffers of one part.
pub fn write(problem: &Problem, offsets: &[u64]) -> String {
    let aligned = problem.buffers.iter().any(|buffer| buffer.align != 1);
    let mut text = String::from(if aligned {
        "id,lower,upper,size,alignment,offset\n"
    } else {
        "id,lower,upper,size,offset\n"
    });
    for (buffer, offset) in problem.buffers.iter().zip(offsets) {
        let Some(part) = buffer.parts.first() else {
            continue;
        };
        let _ = write!(text, "{},{},{},{}", buffer.name, part.lower, part.upper, part.size);
        if aligned {
            let _ = write!(text, ",{}", buffer.align);
        }
        let _ = writeln!(text, ",{offset}");
    }
    text
}

fn read_header(line: usize, header: &str) -> Result<HashMap<&str, usize>, CsvError> {
    let mut places = HashMap::new();
    for (index, name) in header.split(',').map(str::trim).enumerate() {
        if !COLUMNS.contains(&name) {
            let expected = "one of the columns id, lower, upper, size, alignment";
            return Err(CsvError::new(line, index + 1, expected, format!("{name:?}")));
        }
        if places.insert(name, index).is_some() {
            return Err(CsvError::new(
                line,
                index + 1,
                "each column once",
                format!("{name:?} again"),
            ));
        }
    }
    for name in &COLUMNS[..4] {
        if !places.contains_key(name) {
            let column = places.len() + 1;
            return Err(CsvError::new(
                line,
                column,
                format!("a column {name:?}"),
                format!("the header {header:?}"),
            ));
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let problem = read("id,lower,upper,size\r\na,0,3,4\r\n\r\nb,3,9,0\n").unwrap();
        assert_eq!(problem.buffers, [Buffer::new("a", 0, 3, 4), Buffer::new("b", 3, 9, 0)]);
        assert_eq!(
            write(&problem, &[0, 4]),
            "id,lower,upper,size,offset\na,0,3,4,0\nb,3,9,0,4\n"
        );
        let aligned = read("size,id,alignment,upper,lower\n4,a,16,3,0\n").unwrap();
        assert_eq!(aligned.buffers, [Buffer::new("a", 0, 3, 4).aligned(16)]);
        assert_eq!(
            write(&aligned, &[32]),
            "id,lower,upper,size,alignment,offset\na,0,3,4,16,32\n"
        );
        assert_eq!(read("id,lower,upper,size\n").unwrap(), Problem::default());
    }

    #[test]
    fn names_the_place_of_an_error() {
        let header = "id,lower,upper,size\n";
        let cases = [
            ("", 1, 1),
            ("\n \n", 1, 1),
            ("id,lower,upper\na,0,1\n", 1, 4),
            ("id,lower,upper,bytes\n", 1, 4),
            ("id,lower,upper,size,size\n", 1, 5),
            ("a,0,3,4\n", 1, 1),
            ("{h}a,0,3\n", 2, 4),
            ("{h}a,0,3,4,5\n", 2, 5),
            ("{h}a,0,3,4\nb,x,3,4\n", 3, 2),
            ("{h}a,0,3.5,4\n", 2, 3),
            ("{h}a,0,3,-4\n", 2, 4),
            ("{h}a,0,3,18446744073709551616\n", 2, 4),
            ("{h}a,0,,4\n", 2, 3),
            ("{h}a,3,3,4\n", 2, 3),
            ("{h}a,4,3,4\n", 2, 3),
            ("{h},0,3,4\n", 2, 1),
            ("{h}a,0,3,4\na,1,2,3\n", 3, 1),
            ("id,lower,upper,size,alignment\na,0,3,4,0\n", 2, 5),
        ];
        for (text, line, column) in cases {
            let text = text.replace("{h}", header);
            let error = read(&text).expect_err(&text);
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }
}
