//! The book (docs/book.toml): every document is in it, every link leads somewhere, and the tutorials' commands run and print what they show.
//!
//! A chapter of docs/tutorials runs in an empty folder, block after block: `sh` and `python` are run, `diff` is applied to a copy of the runtime's
//! sources in `sources`, and the lines of a `text` block stand, in their order, in what the block before it printed. `<!-- needs: torch, qemu -->` above a
//! block names what it wants: without that it is skipped, by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arenite_tests::{programs, skip, turns};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the workspace")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown files below a folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The targets of the links in a text, those in code left out.
fn links(text: &str) -> Vec<String> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || line.starts_with("    ") {
            continue;
        }
        // Every second part stands between backticks; a link's own text may.
        let mut prose = String::new();
        for (index, part) in line.split('`').enumerate() {
            prose.push_str(if index % 2 == 0 { part } else { "code" });
        }
        found.extend(
            prose
                .split("](")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once(')')?.0.to_string())),
        );
    }
    found
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_document_is_in_the_book() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&read(&summary)).into_iter().map(|link| docs.join(link)).collect();
    let written = documents(&docs).into_iter().filter(|path| *path != summary).collect();
    assert_eq!(listed, written);
    let named = read(&docs.join("README.md"));
    assert!(
        named.contains("(SUMMARY.md)") && named.contains("mdbook build docs"),
        "README.md says how to build it"
    );
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let mut texts = documents(&root.join("docs"));
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "host-tools/python/README.md",
    ] {
        texts.push(root.join(name));
    }
    let (mut followed, mut broken) = (0, Vec::new());
    for path in &texts {
        for link in links(&read(path)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a folder").join(file),
            };
            let there = match target.extension() {
                Some(extension) if extension == "md" && target.is_file() => {
                    anchor.is_empty() || anchors(&read(&target)).contains(anchor)
                }
                _ => target.exists(),
            };
            followed += 1;
            if !there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(followed > 100, "{followed} links");
}

#[test]
fn the_list_of_commands_is_that_of_the_programs() {
    let [pack, arenite] = arenite_host::cli::commands();
    let row = |name: String, command: &clap::Command| {
        let about = command.get_about().expect("a line about each command");
        format!("| `{name}` | {}. |", about.to_string().trim_end_matches('.'))
    };
    let mut expected = vec![row("pack".into(), &pack)];
    expected.extend(
        arenite
            .get_subcommands()
            .map(|command| row(format!("arenite {}", command.get_name()), command)),
    );
    let text = read(&root().join("docs/cli.md"));
    let (_, list) = text.split_once("## Commands\n").expect("the list's head");
    let rows = list.lines().skip_while(|line| !line.starts_with("| `"));
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_feature_of_the_runtime_is_in_the_documents() {
    let manifest = read(&root().join("core/Cargo.toml"));
    let (_, features) = manifest.split_once("[features]\n").expect("a list of features");
    let lines = features.lines().take_while(|line| !line.starts_with('['));
    let features: BTreeSet<&str> = lines
        .filter_map(|line| line.split_once(" = ["))
        .map(|(name, _)| name)
        .filter(|&name| name != "default")
        .collect();
    assert!(features.contains("sme"), "{features:?}");
    let table = read(&root().join("docs/features.md"));
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: BTreeSet<&str> = rows
        .map(|(name, _)| name)
        .filter(|name| !name.contains("-none-"))
        .collect();
    assert_eq!(rows, features);
    let page = read(&root().join("core/src/lib.rs"));
    let (_, page) = page
        .split_once("**Features**")
        .expect("the crate's page tells of features");
    let (page, _) = page.split_once("Hosts have all").expect("its end");
    for feature in features {
        assert!(
            page.contains(&format!("`{feature}`")),
            "the crate's page omits `{feature}`"
        );
    }
}

/// The README's figures of the M4F are the tracked results.
#[test]
fn the_readme_has_the_figures_of_the_results() {
    let readme = read(&root().join("README.md"));
    let (_, network) = readme.split_once("| visual wake words").expect("the first table");
    let (network, rest) = network.split_once("\n\n").expect("its end");
    let (_, digits) = rest.split_once("## Measured").expect("the second table");
    for (name, text) in [("vww_96_int8", network), ("digits", digits)] {
        let results = read(&root().join("tests/results").join(name).with_extension("json"));
        let results: serde_json::Value = serde_json::from_str(&results).expect("results");
        let rows = results.as_array().expect("rows").iter();
        let rows: Vec<_> = rows.filter(|row| row["board"] == "mps2-an386").collect();
        let row = |target: &str, size: bool| {
            let found = rows.iter().find(|row| row["target"] == target && row["size"] == size);
            found.unwrap_or_else(|| panic!("{name} for {target}"))
        };
        let mut figures = vec![
            (row("cortex-m4", false), "instructions"),
            (row("cortex-m4", false), "cycles"),
        ];
        figures.push((row("cortex-m4", false), "arena_bytes"));
        if name == "digits" {
            let portable = row("portable", false);
            figures.extend(["instructions", "cycles", "arena_bytes"].map(|figure| (portable, figure)));
        } else {
            figures.push((row("cortex-m4", false), "code_bytes"));
            figures.push((row("cortex-m4", true), "code_bytes"));
        }
        for (row, figure) in figures {
            let number = arenite_host::cli::grouped(row[figure].as_u64().expect("a number"));
            assert!(
                text.contains(&number),
                "README.md, {name}: {figure} are {number} for {}",
                row["target"]
            );
        }
    }
}

/// Rows of a generated table, between its marker and the end.
fn table_rows(document: &str, marker: &str) -> usize {
    let text = read(&root().join("docs").join(document));
    let (_, table) = text.split_once(marker).expect("the table");
    let (table, _) = table.split_once("<!-- end -->").expect("its end");
    // Without head and line.
    table.lines().filter(|line| line.starts_with("| ")).count() - 2
}

#[test]
fn the_comparison_counts_the_operators_of_the_tables() {
    let tflite = table_rows("operators.md", "<!-- beside Micro: generated -->");
    let onnx = table_rows("onnx.md", "<!-- operators: generated -->");
    let compared = read(&root().join("docs/tutorials/compared.md"));
    let expected =
        format!("| operators | {tflite} of [`.tflite`](../operators.md), {onnx} of [ONNX](../onnx.md#operators) |");
    assert!(
        compared.contains(&expected),
        "compared.md says otherwise than: {expected}"
    );
}

#[test]
fn links_and_anchors_are_found() {
    let text = "[a](b.md) and [`c`](d.md#e-f), `[no](x)`\n```sh\n[no](y)\n```\n    [no](z)\n";
    assert_eq!(links(text), ["b.md", "d.md#e-f"]);
    let found = anchors("# One, two\n## `pack`: its options\ntext\n");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["one-two", "pack-its-options"]);
}

/// A fenced block of a chapter.
#[derive(Debug, PartialEq)]
struct Block {
    language: String,
    needs: Vec<String>,
    line: usize,
    text: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut needs) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(words) = line.strip_prefix("<!-- needs: ") {
            let words = words.trim_end_matches(" -->").split(", ");
            needs = words.map(str::to_owned).collect();
        } else if let Some(language) = line.strip_prefix("```") {
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            found.push(Block {
                language: language.to_owned(),
                needs: std::mem::take(&mut needs),
                line: index + 1,
                text: body.flat_map(|line| [line, "\n"]).collect(),
            });
        }
    }
    found
}

#[test]
fn blocks_are_found_with_what_they_need() {
    let text = "a\n<!-- needs: torch, qemu -->\n```sh\nx\ny\n```\nb\n```text\nz\n```\n";
    let block = |language: &str, needs: &[&str], line, text: &str| Block {
        language: language.to_owned(),
        needs: needs.iter().map(ToString::to_string).collect(),
        line,
        text: text.to_owned(),
    };
    assert_eq!(
        blocks(text),
        [
            block("sh", &["torch", "qemu"], 3, "x\ny\n"),
            block("text", &[], 8, "z\n")
        ]
    );
}

/// Place in which a chapter's commands run.
struct Desk {
    folder: tempfile::TempDir,
    path: std::ffi::OsString,
}

impl Desk {
    fn new() -> Self {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let ours = [programs(), root().join(".venv/bin")];
        let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&before))).expect("a path");
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            path,
        }
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("ARENITE", root())
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null());
        command
    }

    /// Returns a need of a block that this machine lacks.
    fn lacks(&self, need: &str) -> Option<&'static str> {
        let succeeds = |program: &str, arguments: &[&str]| {
            self.command(program, arguments)
                .output()
                .is_ok_and(|output| output.status.success())
        };
        match need {
            "torch" if !succeeds("python3", &["-c", "import torch, arenite_trace"]) => {
                Some("PyTorch, or arenite_trace, is not there")
            }
            "numpy" if !succeeds("python3", &["-c", "import numpy"]) => Some("NumPy is not there"),
            "qemu"
                if arenite_host::board::ready(arenite_host::board::Board::find("mps2-an386").expect("a board"))
                    .is_err() =>
            {
                Some("qemu for mps2-an386 is not installed")
            }
            "diff" if !self.folder.path().join("sources").is_dir() => Some("git is not there to apply a patch"),
            "torch" | "numpy" | "qemu" | "diff" => None,
            other => panic!("a block needs `{other}`, which this test does not know"),
        }
    }

    /// Applies a change to a copy of the runtime's sources; not where git is missing.
    fn apply(&self, change: &str) {
        let sources = self.folder.path().join("sources");
        copy(&root().join("core"), &sources.join("core"));
        let manifest = read(&root().join("Cargo.toml"));
        let members = manifest.lines().find(|line| line.starts_with("members = "));
        let members = members.expect("members of the workspace, in a line");
        fs::write(
            sources.join("Cargo.toml"),
            manifest.replace(members, "members = [\"core\"]"),
        )
        .expect("written");
        fs::copy(root().join("Cargo.lock"), sources.join("Cargo.lock")).expect("copied");
        let patch = self.folder.path().join("change.diff");
        fs::write(&patch, change).expect("written");
        match self
            .command("git", &["apply", "../change.diff"])
            .current_dir(&sources)
            .output()
        {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => fs::remove_dir_all(&sources).expect("removed"),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).expect("copied")),
        }
    }
}

/// Whether the lines of `shown` stand in `printed` in their order, each within a line there; the first that does not.
fn missing<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines();
    shown
        .lines()
        .find(|line| !printed.any(|found| found.contains(line.trim())))
}

#[test]
fn outputs_are_found_in_their_order() {
    assert_eq!(missing("  b\nc\n", "a b\nx\n c d\n"), None);
    assert_eq!(missing("c\nb\n", "a b\nx\n c d\n"), Some("b"));
}

#[test]
fn the_tutorials_run_and_print_what_they_show() {
    let all = documents(&root().join("docs/tutorials"));
    let (count, mut ran) = (all.len(), 0);
    // Some build for boards, or the runtime from nothing.
    let mine = turns("the_tutorials_run_and_print_what_they_show", 4, all);
    let whole = mine.len() == count;
    for chapter in mine {
        let name = chapter.strip_prefix(root()).expect("below it").display().to_string();
        let found = blocks(&read(&chapter));
        if found.is_empty() {
            continue;
        }
        let desk = Desk::new();
        let mut printed: Option<String> = None;
        for block in found {
            let place = format!("{name}, line {}", block.line);
            let lacking = block.needs.iter().find_map(|need| desk.lacks(need));
            if let Some(reason) = lacking {
                skip(&place, reason);
                printed = None;
                continue;
            }
            let output = match block.language.as_str() {
                "sh" => desk.command("bash", &["-euo", "pipefail", "-c", &block.text]),
                "python" => desk.command("python3", &["-c", &block.text]),
                "diff" => {
                    desk.apply(&block.text);
                    continue;
                }
                "text" => {
                    let lacks = printed.as_deref().and_then(|printed| missing(&block.text, printed));
                    assert_eq!(lacks, None, "{place}, not in:\n{}", printed.unwrap_or_default());
                    continue;
                }
                other => panic!("{place}: `{other}` is run by nothing"),
            }
            .output()
            .expect("it starts");
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(output.status.success(), "{place}: {}\n{said}", output.status);
            printed = Some(said);
            ran += 1;
        }
    }
    assert!(!whole || ran >= 12, "{ran} blocks");
}
