//! The form of sentences in documents and comments: they begin with the noun that they are about.

use std::fs;
use std::path::PathBuf;

use regex::Regex;

use crate::structure::{root, shown, sources};

const FOLDERS: [&str; 6] = ["core", "docs", "firmware", "host-tools", "template", "tests"];

/// Documents beside the folders. The changelog is a record.
const DOCUMENTS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// The beginning of a sentence with this word: of a line, a heading, a cell of a table, or behind another sentence.
fn pattern() -> Regex {
    Regex::new(r#"(?m)(?:^|[.!?:|][*_")]*\s)[\s#>|*_("0-9.-]*(What )"#).expect("a pattern")
}

/// Lines of the text whose sentence begins so and is no question.
fn statements(text: &str, begins: &Regex) -> Vec<usize> {
    let mut lines = Vec::new();
    for found in begins.captures_iter(text) {
        let at = found.get(1).map_or(0, |word| word.start());
        let paragraph = text[at..].split("\n\n").next().unwrap_or_default();
        let end = paragraph.find(['.', '!', '?']).map(|end| &paragraph[end..=end]);
        if end != Some("?") {
            lines.push(text[..at].matches('\n').count() + 1);
        }
    }
    lines
}

/// A document with empty lines for its generated tables.
fn written(document: &str) -> String {
    let mut generated = false;
    let mut text = String::new();
    for line in document.lines() {
        generated = (generated || line.contains("<!-- table: ")) && !line.contains("<!-- end -->");
        text.push_str(if generated { "" } else { line });
        text.push('\n');
    }
    text
}

/// The comments of a source, with empty lines for code and for the texts of options that clap prints.
fn comments(source: &str) -> String {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let code = lines[at..].iter().find(|line| !line.starts_with("//"));
        if line.starts_with("//") && !code.is_some_and(|code| code.starts_with("#[arg(")) {
            text.push_str(line.trim_start_matches(['/', '!', ' ']));
        }
        text.push('\n');
    }
    text
}

fn files(ending: &str) -> Vec<PathBuf> {
    let found = FOLDERS.iter().flat_map(|folder| sources(&root().join(folder), ending));
    found.collect()
}

#[test]
fn no_sentence_begins_with_what() {
    let begins = pattern();
    let mut found = Vec::new();
    let (mut documents, rust) = (files("md"), files("rs"));
    documents.extend(DOCUMENTS.map(|name| root().join(name)));
    assert!(
        documents.len() > 40 && rust.len() > 1000,
        "{} {}",
        documents.len(),
        rust.len()
    );
    for path in documents.iter().chain(&rust) {
        let text = fs::read_to_string(path).expect("a text");
        let is_rust = path.extension().is_some_and(|ending| ending == "rs");
        let text = if is_rust { comments(&text) } else { written(&text) };
        let lines = statements(&text, &begins);
        found.extend(lines.iter().map(|line| format!("{}:{line}", shown(path, &root()))));
    }
    assert!(found.is_empty(), "begin with the noun:\n{}", found.join("\n"));
}

#[test]
fn beginnings_are_found() {
    let begins = pattern();
    for (text, lines) in [
        ("## What it costs\n", vec![1]),
        ("One.\nTwo. What is left\nis said.\n", vec![2]),
        (
            "- **What is kept**: all.\n| What | who |\n| --- | --- |\n| he | What he does |\n",
            vec![1, 2, 4],
        ),
        ("What is it for?\n\nAll of\nwhat is said. What is\na board?\n", vec![]),
        ("The list *What this page lacks* names it.\n", vec![]),
    ] {
        assert_eq!(statements(text, &begins), lines, "{text}");
    }
    let document = "<!-- table: size -->\n| What |\n<!-- end -->\nWhat is left.\n";
    assert_eq!(statements(&written(document), &begins), [4]);
    let source = "/// What it takes.\n#[arg(long)]\ntakes: u8,\n// What it gives.\nlet text = \"What else.\";\n";
    assert_eq!(statements(&comments(source), &begins), [4]);
}
