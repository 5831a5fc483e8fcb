//! Every message in the program's source stands in `messages.txt`, or in `elsewhere.txt` with who provokes it or why nobody can.
//!
//! A message is a text that its source gives to an error. Its fixed parts, in order, must stand in one line of the record.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions that take the text of an error's statement, beside `#[error("…")]`. Defects of Arenite itself (`Error::internal`) are no messages for users.
const MAKERS: [&str; 12] = [
    "Error::new",
    "Error::input",
    "Error::unsupported",
    "Error::io",
    "#[error",
    ".error",
    "at",
    "invalid",
    "malformed",
    "refused",
    "usage",
    "wrong",
];

/// Folders of sources in `host-tools`, each with what stands in front of its files' names.
const SOURCES: [(&str, &str); 6] = [
    ("src", ""),
    ("board/src", ""),
    ("graph/src", ""),
    ("import/src", "import/"),
    ("plan/src", ""),
    ("quantise/src", ""),
];

/// Letters of fixed text without which a text says nothing by itself.
const LETTERS: usize = 5;

/// A message: the file below `src`, and the text as its source has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Site {
    /// The fixed parts of the text.
    pub(crate) fn parts(&self) -> Vec<String> {
        let text = self.text.replace("{{", "\u{1}").replace("}}", "\u{2}");
        let mut parts = Vec::new();
        for (index, piece) in text.split('{').enumerate() {
            let fixed = match index {
                0 => piece,
                _ => piece.split_once('}').map_or("", |(_, behind)| behind),
            };
            parts.push(fixed.replace('\u{1}', "{").replace('\u{2}', "}"));
        }
        parts.retain(|part| !part.trim().is_empty());
        parts
    }

    /// Whether a line of the record can be this message.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        let mut rest = line;
        self.parts().iter().all(|part| match rest.split_once(part.trim()) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            files(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The source without comments and without its unit tests.
fn code(path: &Path) -> String {
    let source = fs::read_to_string(path).expect("a source");
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the text between the quotes that `code` begins behind, and the code after them.
fn literal(code: &str) -> (String, &str) {
    let (mut text, mut letters) = (String::new(), code.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (text, &code[at + 1..]),
            '\\' => match letters.next().map(|(_, letter)| letter) {
                // A line that goes on in the next one.
                Some('\n') => {
                    while letters.clone().next().is_some_and(|(_, letter)| letter.is_whitespace()) {
                        letters.next();
                    }
                }
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    (text, "")
}

/// The texts in the parentheses that `code` begins behind.
fn texts(mut code: &str) -> Vec<String> {
    let (mut texts, mut depth) = (Vec::new(), 1);
    while depth > 0
        && let Some(at) = code.find(['"', '(', ')', '\''])
    {
        let (sign, behind) = (code.as_bytes()[at], &code[at + 1..]);
        code = behind;
        match sign {
            b'"' => {
                let (text, behind) = literal(behind);
                texts.push(text);
                code = behind;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            // A letter, not a lifetime.
            _ => {
                let escaped = behind.starts_with('\\');
                let end = behind.char_indices().nth(1 + usize::from(escaped));
                if let Some((end, '\'')) = end {
                    code = &behind[end + 1..];
                }
            }
        }
    }
    texts
}

/// The code without what is given to `Error::internal`.
fn without_defects(code: &str) -> String {
    let mut parts = code.split("Error::internal(");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept += "(";
        kept += &part[end_of_call(part)..];
    }
    kept
}

/// Where the parentheses end that `code` begins behind: at the one that closes them.
fn end_of_call(code: &str) -> usize {
    let (mut depth, mut rest) = (1, code);
    while let Some(at) = rest.find(['"', '(', ')']) {
        let (sign, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        match sign {
            b'"' => {
                rest = literal(behind).1;
                continue;
            }
            b'(' => depth += 1,
            _ => depth -= 1,
        }
        if depth == 0 {
            return code.len() - behind.len() - 1;
        }
        rest = behind;
    }
    code.len()
}

/// All messages, in order of files and texts.
pub(crate) fn sites() -> Vec<Site> {
    let mut named = Vec::new();
    for (folder, front) in SOURCES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut paths = Vec::new();
        files(&root, &mut paths);
        named.extend(paths.into_iter().map(|path| {
            let below = path.strip_prefix(&root).expect("below it").display();
            (format!("{front}{below}"), path)
        }));
    }
    let mut sites = BTreeSet::new();
    for (file, path) in named {
        let code = code(&path);
        for maker in MAKERS {
            for (at, _) in code.match_indices(&format!("{maker}(")) {
                let word = |c: char| c.is_alphanumeric() || "_.".contains(c);
                if maker.starts_with(char::is_lowercase) && code[..at].ends_with(word) {
                    continue;
                }
                let given = &code[at + maker.len() + 1..];
                if code[..at].ends_with("fn ") || given.trim_start().starts_with("ErrorKind::Internal") {
                    continue;
                }
                for text in texts(&without_defects(given)) {
                    let text = match maker {
                        "Error::io" => format!("cannot {text}: "),
                        _ => text,
                    };
                    let site = Site {
                        file: file.clone(),
                        text,
                    };
                    let letters: usize = site.parts().iter().map(|part| part.trim().len()).sum();
                    // Words that are put into a text are no text.
                    if letters >= LETTERS && site.text.trim().contains(' ') {
                        sites.insert(site);
                    }
                }
            }
        }
    }
    sites.into_iter().collect()
}

/// The lines of messages in the record.
pub(crate) fn record() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/messages.txt");
    let text = fs::read_to_string(file).expect("the record");
    text.lines()
        .filter_map(|line| line.strip_prefix("! "))
        .map(String::from)
        .collect()
}

/// Messages that no line of the record can be.
pub(crate) fn unprovoked() -> Vec<Site> {
    let record = record();
    let mut sites = sites();
    sites.retain(|site| !record.iter().any(|line| site.is_in(line)));
    sites
}

/// A line of `elsewhere.txt`: a file and a text of it, and who provokes it, or why nobody can.
struct Entry {
    site: Site,
    by: String,
}

/// Stands for all texts of a file.
const ALL: &str = "*";
/// Why no command of the record can.
const REASONS: [&str; 9] = [
    "the system fails",
    "nobody is left to read it",
    "another host, or a program built without all",
    "4,294,967,295 buffers",
    "a board without slots at a serial port",
    "a network of 4 GiB",
    "a network whose rows have no room",
    "a network of 65,536 layers",
    "a defect of Arenite, found by its proof",
];

fn entries() -> Vec<Entry> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/elsewhere.txt");
    let text = fs::read_to_string(file).expect("the list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let entries = lines.map(|line| {
        let (site, by) = line
            .rsplit_once(" <- ")
            .unwrap_or_else(|| panic!("{line}: FILE: TEXT <- BY"));
        let (file, text) = site
            .split_once(": ")
            .unwrap_or_else(|| panic!("{line}: FILE: TEXT <- BY"));
        Entry {
            site: Site {
                file: file.to_owned(),
                text: text.to_owned(),
            },
            by: by.to_owned(),
        }
    });
    entries.collect()
}

/// Whether the test in `file` speaks of a message: the longest of its fixed parts stands in one of the texts there. A record's texts are its lines, and
/// only tests speak: of a source, what follows `#[cfg(test)]`.
fn names(file: &str, source: &str, site: &Site) -> bool {
    let parts = site.parts();
    let Some(longest) = parts.iter().map(|part| part.trim()).max_by_key(|part| part.len()) else {
        return false;
    };
    if file.ends_with(".txt") {
        return source.lines().any(|line| site.is_in(line));
    }
    let is_test = file.contains("/tests/") || file.ends_with("tests.rs");
    let mut rest = match source.split_once("#[cfg(test)]\nmod ") {
        _ if is_test => source,
        Some((_, tests)) => tests,
        None => return false,
    };
    while let Some((_, behind)) = rest.split_once('"') {
        let (text, after) = literal(behind);
        if text.contains(longest) {
            return true;
        }
        rest = after;
    }
    false
}

#[test]
fn every_message_is_provoked_somewhere() {
    let (entries, mut wrong) = (entries(), Vec::new());
    let missing = unprovoked();
    let is_listed = |site: &Site| {
        entries
            .iter()
            .any(|entry| entry.site == *site || entry.site.file == site.file && entry.site.text == ALL)
    };
    for site in missing.iter().filter(|site| !is_listed(site)) {
        wrong.push(format!(
            "no line of messages.txt is `{}` of {}: add a command, or a line to elsewhere.txt",
            site.text, site.file
        ));
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for Entry { site, by } in &entries {
        let (file, text) = (&site.file, &site.text);
        if !missing
            .iter()
            .any(|missing| missing == site || *text == ALL && missing.file == *file)
        {
            wrong.push(format!(
                "elsewhere.txt: `{text}` of {file} is in messages.txt, or is gone: take the line out"
            ));
        }
        if REASONS.contains(&by.as_str()) {
            continue;
        }
        match fs::read_to_string(workspace.join(by)) {
            Ok(source) if *text == ALL || names(by, &source, site) => {}
            Ok(_) => wrong.push(format!("elsewhere.txt: {by} does not speak of `{text}` of {file}")),
            Err(error) => wrong.push(format!("elsewhere.txt: {by}: {error}")),
        }
    }
    println!(
        "{} messages, {} in messages.txt, {} elsewhere",
        sites().len(),
        sites().len() - missing.len(),
        missing.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_new_message_is_missed_and_a_text_finds_its_line() {
    let site = |text: &str| Site {
        file: "cli/new.rs".to_owned(),
        text: text.to_owned(),
    };
    let record = "error: net.json: `conv1` has 3 axes; expected {4}";
    assert!(site("`{name}` has {} axes").is_in(record));
    assert!(site("expected {{{}}}").is_in(record));
    assert!(!site("{} axes, and `{name}` has").is_in(record));
    assert!(!site("`{name}` has {} rows").is_in(record));
    let code = "Err(Error::input(format!(\"a (\\\"{}\\\") b \\\n        c\", ')', x.at(\"d e\"))).help(\"f\"))";
    let (_, given) = code.split_once("Error::input(").expect("a call");
    assert_eq!(texts(given), ["a (\"{}\") b c", "d e"]);
    let code = "it(Error::internal(format!(\"a ) b\", c(d))).help(\"e f\"), \"g h\")";
    assert_eq!(texts(&without_defects(code)), ["e f", "g h"]);
    let long = site("a copy along more than {MAX} axes");
    assert!(names(
        "tests/tests/a.rs",
        "x(\"a copy along more than 6 axes, \\\"b\\\"\")",
        &long
    ));
    assert!(!names("tests/tests/a.rs", "x(\"a copy along\", \"axes\")", &long));
    assert!(!names("src/a.rs", "x(\"a copy along more than 6 axes\")", &long));
    assert!(!names("tests/a.txt", "a copy along more than six", &long));
    assert!(names("tests/a.txt", "a copy along more than six axes", &long));
    assert!(sites().len() > 800);
}
