//! The tracked results against fresh measurements, and the tables of the documents against the tracked results.

use std::path::{Path, PathBuf};

use arenite_host::board::{BenchOptions, ready};
use arenite_tests::{shared, skip};
use arenite_xtask::results::{Configuration, SUBJECTS, Subject, grown, measure, quick, read};
use arenite_xtask::tables;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Measures a subject where it can be, and says what has grown.
fn growth(
    test: &str,
    subject: &Subject,
    wanted: fn(&Subject, &Configuration) -> bool,
    options: &BenchOptions,
) -> Vec<String> {
    let mut configurations = subject.configurations();
    configurations.retain(|configuration| wanted(subject, configuration));
    if configurations.is_empty() {
        return Vec::new();
    }
    let Some(model) = subject.file(&root().join("tests/models"), shared().as_deref()) else {
        skip(&format!("{test}: {}", subject.name), "no shared data");
        return Vec::new();
    };
    let tracked = read(&root().join(format!("tests/results/{}.json", subject.name))).unwrap_or_else(|e| panic!("{e}"));
    let mut found = Vec::new();
    for configuration in configurations {
        let board = configuration.board;
        if let Err(reason) = ready(board) {
            skip(&format!("{test}: {}", board.name), &reason.to_string());
            continue;
        }
        let options = BenchOptions {
            // Only there are sizes tracked.
            code: options.code && board.name == "mps2-an386",
            ..options.clone()
        };
        let measured = measure(&model, configuration, &options).unwrap_or_else(|e| panic!("{}: {e}", subject.name));
        let more = measured.map(|measured| grown(&tracked, &measured)).unwrap_or_default();
        found.extend(more.into_iter().map(|text| format!("{}: {text}", subject.name)));
    }
    found
}

/// Counts without the plugin: the estimates of cycles come with `cargo xtask bench`.
fn nothing_has_grown(test: &str, wanted: fn(&Subject, &Configuration) -> bool, code: bool) {
    let options = BenchOptions {
        trace: false,
        code,
        ..BenchOptions::default()
    };
    let subjects = SUBJECTS.iter();
    let found: Vec<String> = subjects
        .flat_map(|subject| growth(test, subject, wanted, &options))
        .collect();
    assert!(
        found.is_empty(),
        "{}\n`cargo xtask bench` measures again and rewrites tests/results and the tables of the documents",
        found.join("\n")
    );
}

#[test]
fn no_quick_count_has_grown_by_more_than_two_per_cent() {
    nothing_has_grown("no_quick_count_has_grown_by_more_than_two_per_cent", quick, false);
}

#[test]
#[ignore = "long: every model on every board, with code sizes"]
fn no_count_has_grown_by_more_than_two_per_cent() {
    nothing_has_grown("no_count_has_grown_by_more_than_two_per_cent", |_, _| true, true);
}

/// Among them the table of kernels, which comes from the runtime's own. `ARENITE_BLESS=1` writes them instead.
#[test]
fn the_tables_of_the_documents_are_those_of_the_results() {
    for document in tables::DOCUMENTS {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).expect(document);
        let fresh = tables::fill(&text, &root().join("tests/results")).unwrap_or_else(|e| panic!("{e}"));
        if std::env::var_os("ARENITE_BLESS").is_some() {
            std::fs::write(&path, &fresh).expect("docs is writable");
            continue;
        }
        assert!(
            text == fresh,
            "{document} is not what tests/results says; `cargo xtask bench --tables` rewrites its tables"
        );
    }
}
