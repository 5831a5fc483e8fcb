//! Logs of sessions: an event for each step, over the crate log on the host, over defmt on a board. And the memory that they took.

use std::cell::RefCell;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::{KernelId, Model, RunError, Session, Target};
use arenite_host::board::{Board, Firmware, LogLine, execute, ready};
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::{digits_options, skip};

const TIMEOUT: Duration = Duration::from_secs(600);

/// The digits network with one sample of its own.
fn digits(folder: &Path, target: Target) -> PathBuf {
    let path = folder.join(format!("{}.bin", target.name()));
    let samples = folder.join("samples.npy");
    let array = ndarray::Array::from_shape_fn((1, 1, 1, 8, 8), |(.., y, x)| (3 * y + x) as f32 / 32.0);
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let options = Options {
        target,
        self_test: Some(samples),
        ..digits_options("digits", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a model");
    path
}

/// Returns the events that the steps of a file log in a run.
fn expected(model: &Model<'_>) -> Vec<String> {
    let names = model.steps().map(|record| {
        let (kernel, _) = record.expect("a record");
        KernelId::from_u8(kernel).expect("a known kernel").name()
    });
    let names: Vec<_> = names.collect();
    let count = names.len();
    assert!(count > 4, "{names:?}");
    let steps = names.iter().enumerate();
    let mut lines: Vec<_> = steps
        .map(|(at, name)| format!("step {at} of {count}: {name}"))
        .collect();
    lines.push(format!("done: {count} steps"));
    lines
}

thread_local! {
    /// Events that the runtime logged in this test.
    static LOGGED: RefCell<Vec<(log::Level, String)>> = const { RefCell::new(Vec::new()) };
}

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("arenite::")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LOGGED.with_borrow_mut(|lines| lines.push((record.level(), record.args().to_string())));
        }
    }

    fn flush(&self) {}
}

fn logged() -> Vec<(log::Level, String)> {
    LOGGED.take()
}

#[test]
fn each_step_is_logged_before_it_runs() {
    log::set_logger(&Logger).expect("the first logger");
    log::set_max_level(log::LevelFilter::Trace);
    let folder = tempfile::tempdir().expect("a folder");
    let path = digits(folder.path(), Target::Portable);
    // Mapped, so that the file's bytes are the model's.
    let file = ModelFile::open(&path).expect("a file");
    let model = file.load().expect("a model");
    let lines = expected(&model);
    let count = lines.len() - 1;
    let mut arena = Aligned::new(model.arena_bytes(0));
    // Packing has run the self-test.
    logged();
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("a session");
    session.set_input(0, &[0; 256]).expect("an input");
    session.step().expect("a step");
    let header = model.header();
    let opened = format!(
        "opened: model for portable, {count} steps, arena {:?}, {} bytes",
        header.arena, header.total
    );
    // A step that has not begun is not logged.
    let first = [(log::Level::Debug, opened), (log::Level::Trace, lines[0].clone())];
    assert_eq!(logged(), first);
    session.run().expect("a run");
    let rest: Vec<_> = lines[1..]
        .iter()
        .map(|line| (log::Level::Trace, line.clone()))
        .collect();
    assert_eq!(logged(), rest);

    // A step whose number is no kernel's any more.
    session.set_input(0, &[0; 256]).expect("an input");
    let mut writer = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    writer.seek(SeekFrom::Start(header.steps.offset.into())).expect("seeks");
    writer.write_all(&[0xFE]).expect("writes");
    assert_eq!(session.step(), Err(RunError::Corrupt { step: 0 }));
    let text = "step 0 changed since the model was loaded".to_owned();
    assert_eq!(logged(), [(log::Level::Error, text)]);
}

#[test]
fn a_report_says_what_is_needed_given_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = ModelFile::open(&digits(folder.path(), Target::Portable)).expect("a file");
    let model = file.load().expect("a model");
    let total = model.header().total;
    let (needed, weights) = (model.arena_bytes(0), model.weights().len());
    let mut arena = Aligned::new(4800);
    let session = Session::new(model, arena.bytes(), &mut []).expect("a session");
    let report = session.memory_report();
    assert_eq!(
        report.to_string(),
        format!("file {total} bytes, weights {weights}; arena 0 needs {needed} of 4800")
    );
    let (mut session, _guard) = Session::guarded(model, arena.bytes(), &mut []).expect("a session");
    session.set_input(0, &[1; 256]).expect("an input");
    session.run().expect("a run");
    let marks = session.marks();
    let report = session.memory_report().with_marks(marks);
    let memory = report.arena[0];
    assert_eq!((memory.needed, memory.given), (needed as u32, needed as u32));
    let written = memory.written.expect("a mark");
    assert!(written > 256 && written <= memory.needed, "{report}");
    assert_eq!(report.state.written, Some(0));
    assert!(
        report.to_string().ends_with(&format!("{needed}, {written} written")),
        "{report}"
    );
}

/// defmt's frames hold numbers alone; the strings are in the ELF file. Both give the texts that are logged on the host.
#[test]
fn frames_of_a_board_decode_to_its_steps() {
    const TEST: &str = "frames_of_a_board_decode_to_its_steps";
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = digits(folder.path(), Target::CortexM4);
    let firmware = Firmware::build_logging(board, &path).unwrap_or_else(|error| panic!("{error}"));
    let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{error}"));
    let at = |level: &str| -> Vec<String> {
        let lines = logs.iter().filter(|line| line.level == level);
        lines.map(|LogLine { text, .. }| text.clone()).collect()
    };
    // A run of the self-test, one of the program's own.
    let file = ModelFile::open(&path).expect("a file");
    let model = file.load().expect("a model");
    let lines = expected(&model);
    assert_eq!(at("trace"), [lines.clone(), lines.clone()].concat(), "{logs:?}");
    let opened = at("debug");
    assert_eq!(opened.len(), 3, "{opened:?}");
    let count = lines.len() - 1;
    let text = format!("opened: model for cortex-m4, {count} steps, arena [");
    assert!(opened.iter().all(|line| line.starts_with(&text)), "{opened:?}");
    let report = at("info").pop().expect("a report");
    let text = format!("file {} bytes, weights ", model.header().total);
    assert!(report.starts_with(&text) && report.ends_with(" written"), "{report}");
}
