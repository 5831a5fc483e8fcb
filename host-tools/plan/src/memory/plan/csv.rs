//! Buffers as CSV: a header `id,lower,upper,size`, then one row per buffer.
//!
//! The columns may come in any order; `alignment` is optional. `lower` and `upper` are steps, `upper` exclusive; `size` and
//! `alignment` are bytes. Written files have one more column, `offset`, in bytes.
//!
//! MiniMalloc's other names are read as well: `buffer` and `buffer_id` for `id`, `start` and `begin` for `lower`, and `end`, which is the last step itself, for
//! `upper`. A field may stand between quotes, in which a quote is written twice; it ends in the line in which it begins.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use super::problem::{Buffer, Part, Problem};

const COLUMNS: [&str; 5] = ["id", "lower", "upper", "size", "alignment"];

/// MiniMalloc's other names of columns.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("buffer", "id"),
    ("buffer_id", "id"),
    ("start", "lower"),
    ("begin", "lower"),
    ("end", "upper"),
];

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
    let names = split(line, header)?;
    let places = read_header(line, header, &names)?;
    let width = names.len();
    // The last step, where that is what the column has, and not the one behind it.
    let inclusive = names.iter().any(|name| name == "end");
    let mut problem = Problem::default();
    let mut seen: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for (line, row) in lines.filter(|(_, row)| !row.trim().is_empty()) {
        let fields = split(line, row)?;
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
                .and_then(|&at| fields.get(at).map(|text| (at + 1, text)))
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
        let (column, id) = field("id").map_or((1, Cow::Borrowed("")), |(column, id)| (column, id.clone()));
        if id.is_empty() {
            return Err(CsvError::new(line, column, "an id", "an empty field"));
        }
        if let Some(first) = seen.insert(id.clone(), line) {
            return Err(CsvError::new(
                line,
                column,
                "an id of its own",
                format!("{id:?}, which line {first} has"),
            ));
        }
        let (lower, last) = (number("lower", 0)?, number("upper", 0)?);
        let upper = last.saturating_add(u64::from(inclusive));
        if upper <= lower {
            let column = field("upper").map_or(1, |(column, _)| column);
            let expected = if inclusive {
                format!("an end (inclusive) from the start {lower} on")
            } else {
                format!("an upper (exclusive) above the lower {lower}")
            };
            return Err(CsvError::new(line, column, expected, last.to_string()));
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
        let (name, Part { lower, upper, size, .. }) = (quoted(&buffer.name), part);
        let _ = write!(text, "{name},{lower},{upper},{size}");
        if aligned {
            let _ = write!(text, ",{}", buffer.align);
        }
        let _ = writeln!(text, ",{offset}");
    }
    text
}

/// A name as a field: between quotes where it would not be read as it is.
fn quoted(name: &str) -> Cow<'_, str> {
    if name.contains([',', '"']) || name.trim() != name {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(name)
    }
}

/// The fields of a row, without what stands around them.
fn split(line: usize, row: &str) -> Result<Vec<Cow<'_, str>>, CsvError> {
    if !row.contains('"') {
        return Ok(row.split(',').map(|field| Cow::Borrowed(field.trim())).collect());
    }
    let (mut fields, mut rest) = (Vec::new(), row);
    loop {
        let column = fields.len() + 1;
        let start = rest.trim_start();
        let Some(mut behind) = start.strip_prefix('"') else {
            let (field, next) = start
                .split_once(',')
                .map_or((start, None), |(field, next)| (field, Some(next)));
            fields.push(Cow::Borrowed(field.trim()));
            match next {
                Some(next) => rest = next,
                None => return Ok(fields),
            }
            continue;
        };
        let mut field = String::new();
        loop {
            let Some((text, next)) = behind.split_once('"') else {
                return Err(CsvError::new(
                    line,
                    column,
                    "a quote that ends the field",
                    format!("{start:?}"),
                ));
            };
            field.push_str(text);
            behind = next;
            let Some(next) = behind.strip_prefix('"') else {
                break;
            };
            behind = next;
            field.push('"');
        }
        fields.push(Cow::Owned(field));
        let behind = behind.trim_start();
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(fields),
            None => {
                let expected = "a comma behind the quoted field";
                return Err(CsvError::new(line, column, expected, format!("{behind:?}")));
            }
        }
    }
}

/// Where each of the columns is, by our names.
fn read_header(line: usize, header: &str, names: &[Cow<'_, str>]) -> Result<HashMap<&'static str, usize>, CsvError> {
    let mut places = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        let known = COLUMNS.into_iter().find(|column| column == name);
        let other = || OTHER_NAMES.into_iter().find(|(other, _)| other == name);
        let Some(column) = known.or_else(|| other().map(|(_, column)| column)) else {
            let expected = "one of the columns id, lower, upper, size, alignment";
            return Err(CsvError::new(line, index + 1, expected, format!("{name:?}")));
        };
        if places.insert(column, index).is_some() {
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
    fn reads_the_columns_of_minimalloc() {
        let expected = [Buffer::new("a", 0, 3, 4), Buffer::new("b", 3, 9, 8)];
        for (header, ends) in [
            ("id,lower,upper,size", [3, 9]),
            ("buffer,begin,upper,size", [3, 9]),
            ("buffer_id,start,end,size", [2, 8]),
        ] {
            let text = format!("{header}\na,0,{},4\nb,3,{},8\n", ends[0], ends[1]);
            assert_eq!(read(&text).unwrap().buffers, expected, "{header}");
        }
        // A buffer of one step; one that ends before it begins.
        assert_eq!(
            read("id,start,end,size\na,3,3,4\n").unwrap().buffers,
            [Buffer::new("a", 3, 4, 4)]
        );
        let error = read("id,start,end,size\na,3,2,4\n").expect_err("it ends before it begins");
        assert_eq!((error.line, error.column), (2, 3), "{error}");
    }

    #[test]
    fn reads_and_writes_quoted_ids() {
        let text = "\"id\",lower,upper,size\n\"a,b\",0,3,4\n \"say \"\"c\"\"\" ,3,\"9\",0\nd,1,2,3\n";
        let problem = read(text).unwrap();
        let names: Vec<&str> = problem.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        assert_eq!(names, ["a,b", "say \"c\"", "d"]);
        assert_eq!(problem.buffers[1].life(), 3..9);
        let written = write(&problem, &[0, 4, 8]);
        assert_eq!(
            written,
            "id,lower,upper,size,offset\n\"a,b\",0,3,4,0\n\"say \"\"c\"\"\",3,9,0,4\nd,1,2,3,8\n"
        );
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
            ("id,lower,upper,end,size\n", 1, 4),
            ("{h}\"a,0,3,4\n", 2, 1),
            ("{h}\"a\"b,0,3,4\n", 2, 1),
            ("{h}a,0,3,\"4\n", 2, 4),
            ("{h}\"a\",0,3,4\na,1,2,3\n", 3, 1),
            ("{h}\"\",0,3,4\n", 2, 1),
        ];
        for (text, line, column) in cases {
            let text = text.replace("{h}", header);
            let error = read(&text).expect_err(&text);
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }
}
