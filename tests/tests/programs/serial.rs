//! Models over a serial line: from a sound one, over one that loses and changes bytes, to the ports of boards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arenite::Target;
use arenite_host::board::protocol::serial::Answer;
use arenite_host::board::{Board, BoardError, Firmware, Link, SerialOptions, find_program, ready};
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::line::{Fault, HostEnd, SLOT, answering, board, line, sound};
use arenite_tests::{digits_options, programs, skip};

const OPTIONS: SerialOptions = SerialOptions {
    reset_each: false,
    profile: false,
    timeout: Duration::from_secs(600),
};

/// A board of that memory behind a sound line.
fn connected(memory: usize, slots: bool) -> Link<HostEnd> {
    let (host, end) = line(sound(), sound());
    board(end, memory, slots);
    let (link, found) = Link::over(host, "a line").expect("an answer");
    assert_eq!((found.name.as_str(), found.slots), ("a-board", slots));
    assert!(found.memory as usize > memory - 16 && found.memory as usize <= memory);
    link
}

/// The digits' small network, with a self-test of so many runs.
fn packed(folder: &Path, self_test: usize) -> ModelFile {
    let path = folder.join("model.bin");
    let samples = folder.join("samples.npy");
    let array = ndarray::Array::from_shape_fn((self_test, 1, 1, 8, 8), |(run, _, _, y, x)| {
        ((7 * (8 * y + x) + run) % 23) as f32 / 8.0
    });
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let options = Options {
        target: Target::Portable,
        self_test: (self_test > 0).then_some(samples),
        ..digits_options("mlp", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a model");
    ModelFile::open(&path).expect("a model")
}

/// Of each of `runs` runs, the bytes of the input.
fn inputs(file: &ModelFile, runs: usize) -> Vec<Vec<Vec<u8>>> {
    let bytes = file.view().expect("a model").header().input_bytes as usize;
    let value = |run: usize, at: usize| ((5 * at + 11 * run) % 17) as f32 / 4.0;
    (0..runs)
        .map(|run| vec![(0..bytes / 4).flat_map(|at| value(run, at).to_le_bytes()).collect()])
        .collect()
}

/// Returns the outputs that the host computes for them.
fn expected(file: &ModelFile, runs: &[Vec<Vec<u8>>], reset_each: bool) -> Vec<Vec<Vec<u8>>> {
    let outputs = model::run(&file.load().expect("it loads"), runs, reset_each, &mut |_, _, _| {});
    outputs.expect("it runs")
}

#[test]
fn runs_over_a_line_are_those_of_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(folder.path(), 0);
    let inputs = inputs(&file, 3);
    let mut link = connected(1 << 20, false);
    let mut told = Vec::new();
    let report = link.run(file.bytes(), &inputs, OPTIONS, &mut |runs| told.push(runs));
    let report = report.expect("it runs");
    assert_eq!(report.outputs, expected(&file, &inputs, false));
    assert_eq!(
        (told, &report.counts[..], &report.steps[..]),
        (vec![1, 2, 3], &[1, 2, 3][..], &[][..])
    );

    // The board counts calls: a step is one.
    let profile = SerialOptions {
        profile: true,
        ..OPTIONS
    };
    let steps = file.view().expect("a model").header().step_count as u64;
    let report = link
        .run(file.bytes(), &inputs[..1], profile, &mut |_| ())
        .expect("it runs");
    assert_eq!(report.steps, (4..4 + steps).collect::<Vec<_>>());
    assert_eq!(report.counts, [report.steps.iter().sum::<u64>()]);
    assert_eq!(report.outputs, expected(&file, &inputs[..1], false));
}

#[test]
fn a_state_is_kept_from_run_to_run_or_begins_anew() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/stateful/accumulator.bin");
    let file = ModelFile::open(&path).expect("a model");
    let inputs = inputs(&file, 3);
    let mut link = connected(4096, false);
    for reset_each in [false, true] {
        let options = SerialOptions { reset_each, ..OPTIONS };
        let report = link.run(file.bytes(), &inputs, options, &mut |_| ()).expect("it runs");
        assert_eq!(report.outputs, expected(&file, &inputs, reset_each), "{reset_each}");
    }
    let outputs = |reset_each| expected(&file, &inputs, reset_each);
    assert_ne!(outputs(true), outputs(false));
}

#[test]
fn several_inputs_and_outputs_have_their_places() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/typed/several.bin");
    let file = ModelFile::open(&path).expect("a model");
    let view = file.view().expect("a model");
    let ports = (view.inputs.len(), view.outputs.len());
    assert!(ports.0 > 1 && ports.1 > 1, "{ports:?}");
    let value = |run: usize, index: usize, at: usize| ((3 * at + 7 * index + 5 * run) % 61) as u8;
    let bytes = |run, index: usize| {
        let length = view.inputs[index].bytes().expect("a shape") as usize;
        (0..length).map(|at| value(run, index, at)).collect()
    };
    let runs: Vec<Vec<Vec<u8>>> = (0..2)
        .map(|run| (0..ports.0).map(|index| bytes(run, index)).collect())
        .collect();
    let mut link = connected(1 << 16, false);
    let report = link.run(file.bytes(), &runs, OPTIONS, &mut |_| ()).expect("it runs");
    assert_eq!(report.outputs, expected(&file, &runs, false));

    let mut wrong = runs[0].clone();
    wrong[1].push(0);
    let given = wrong[1].len();
    let error = link
        .run(file.bytes(), &[wrong], OPTIONS, &mut |_| ())
        .expect_err("a size")
        .to_string();
    assert_eq!(
        error,
        format!(
            "1 runs of {0} input bytes need {0} bytes, {given} were given",
            given - 1
        )
    );
    let error = link
        .run(file.bytes(), &[runs[0][..1].to_vec()], OPTIONS, &mut |_| ())
        .expect_err("an input")
        .to_string();
    assert!(error.starts_with("a line: the board refused: "), "{error}");
}

/// Loses, changes, doubles and inserts a byte at these places in turn.
fn faulty(places: &'static [usize]) -> Fault {
    Box::new(move |at, byte| match places.iter().position(|&place| place == at) {
        None => vec![byte],
        Some(index) => match index % 4 {
            0 => vec![],
            1 => vec![byte ^ 0x10],
            2 => vec![byte, byte],
            _ => vec![0, byte],
        },
    })
}

/// Each fault costs a second, after which the host asks again; whatever is lost, nothing is done twice: pieces of an update have to come in order.
#[test]
fn what_a_line_loses_or_changes_is_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(folder.path(), 2);
    let inputs = inputs(&file, 2);
    let (host, end) = line(
        faulty(&[3, 700, 1_900, 2_600, 4_500]),
        faulty(&[5, 50, 81, 120, 150, 190]),
    );
    board(end, 1 << 20, true);
    let (mut link, _) = Link::over(host, "a line").expect("an answer");
    let report = link.run(file.bytes(), &inputs, OPTIONS, &mut |_| ()).expect("it runs");
    assert_eq!(report.outputs, expected(&file, &inputs, false));
    assert_eq!(report.counts, [1, 2], "a run was done twice");
    assert_eq!(
        link.update(file.bytes(), OPTIONS.timeout, &mut |_| ())
            .expect("it is installed"),
        2
    );
}

#[test]
fn an_update_is_tested_on_the_board_and_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(folder.path(), 3);
    let inputs = inputs(&file, 2);
    let mut link = connected(1 << 20, true);
    let refused = |error: BoardError| match error {
        BoardError::Declined { text, .. } => text,
        other => panic!("{other}"),
    };
    assert_eq!(
        refused(link.run_stored(&inputs, OPTIONS).expect_err("no model")),
        "neither slot holds a model that loads"
    );
    let mut written = 0;
    let runs = link.update(file.bytes(), OPTIONS.timeout, &mut |bytes| written = bytes);
    assert_eq!((runs.expect("it passes"), written), (3, file.bytes().len()));
    let stored = link.run_stored(&inputs, OPTIONS).expect("it runs");
    assert_eq!(stored.outputs, expected(&file, &inputs, false));

    // Until the trial ends there is no other update.
    let again = |link: &mut Link<HostEnd>, model: &[u8]| link.update(model, OPTIONS.timeout, &mut |_| ());
    let on_trial = refused(again(&mut link, file.bytes()).expect_err("on trial"));
    assert_eq!(on_trial, "the model is on trial: confirm it or roll it back first");
    link.confirm().expect("a model");
    let untested = packed(folder.path(), 0);
    let text = refused(again(&mut link, untested.bytes()).expect_err("no self-test"));
    assert!(text.contains("self-test"), "{text}");
    let mut damaged = file.bytes().to_vec();
    damaged[file.bytes().len() / 2] ^= 4;
    let text = refused(again(&mut link, &damaged).expect_err("damaged"));
    assert!(text.starts_with("the file in the slot: the model is damaged"), "{text}");
    let text = refused(again(&mut link, &vec![0; SLOT as usize + 1]).expect_err("too large"));
    assert_eq!(text, format!("the file has {} bytes, a slot {SLOT}", SLOT + 1));
    // The model that was in use still is.
    assert_eq!(
        link.run_stored(&inputs, OPTIONS).expect("it runs").outputs,
        stored.outputs
    );
}

#[test]
fn a_board_says_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(folder.path(), 1);
    let run = |link: &mut Link<HostEnd>, model: &[u8], bytes: usize| {
        link.run(model, &[vec![vec![0; bytes]]], OPTIONS, &mut |_| ())
            .expect_err("an error")
            .to_string()
    };
    let mut none = connected(1 << 20, false);
    let text = none
        .update(file.bytes(), OPTIONS.timeout, &mut |_| ())
        .expect_err("no slots")
        .to_string();
    assert_eq!(
        text,
        "a line: the board refused: this board's program keeps no models in slots"
    );
    assert_eq!(
        run(&mut none, file.bytes(), 3),
        "1 runs of 256 input bytes need 256 bytes, 3 were given"
    );
    let text = run(&mut none, &file.bytes()[..100], 256);
    assert!(text.starts_with("a line: the board refused: "), "{text}");

    let length = file.bytes().len();
    let mut small = connected(length - 8, false);
    let text = run(&mut small, file.bytes(), 256);
    let room = |needed: usize| format!("a line: model, arena and state need {needed} bytes of memory, ");
    assert!(text.starts_with(&room(length)), "{text}");
    // The model has room, its arena has none.
    let mut tight = connected(length + 64, false);
    let text = run(&mut tight, file.bytes(), 256);
    assert!(
        text.contains("bytes of memory, ") && !text.starts_with(&room(length)),
        "{text}"
    );
}

#[test]
fn other_programs_at_the_line_are_told() {
    let over = |host| {
        Link::over(host, "a line")
            .map(|_| ())
            .expect_err("an error")
            .to_string()
    };
    let board = |version| Answer::Board {
        version,
        name: "b",
        memory: 0,
        slots: false,
    };
    assert_eq!(
        over(answering(board(9))),
        "a line: the board's program speaks version 9 of the protocol, these tools version 1: build it anew"
    );
    assert_eq!(
        over(answering(Answer::Done)),
        "a line: the board gave another answer than the one to what it was asked: Done"
    );
    let (mut link, _) = Link::over(answering(board(1)), "a line").expect("a board");
    let error = link.confirm().expect_err("no answer to that").to_string();
    assert!(error.starts_with("a line: the board gave another answer"), "{error}");
    // Nobody: the other end has gone.
    let (host, end) = line(sound(), sound());
    drop(end);
    assert_eq!(over(host), "cannot use the serial port a line: unexpected end of file");
}

/// A port at which something prints without pause.
struct Chatter;

impl std::io::Read for Chatter {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_millis(1));
        bytes[0] = b'x';
        Ok(1)
    }
}

impl std::io::Write for Chatter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_program_that_prints_without_pause_is_no_board() {
    let error = Link::over(Chatter, "a line").map(|_| ()).expect_err("no answer");
    assert!(matches!(error, BoardError::Silent { .. }), "{error}");
}

/// A board in qemu whose port is a terminal of this host; ends with it.
struct Emulated {
    qemu: Child,
    port: String,
    _folder: tempfile::TempDir,
}

impl Emulated {
    fn start(board: &'static Board) -> Self {
        let firmware = Firmware::build_serial(board).unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a folder");
        let mut qemu = Command::new(find_program(board.qemu).expect("it is installed"))
            .args(board.machine)
            .args(["-display", "none", "-serial", "pty", "-monitor", "none"])
            .args(["-icount", &format!("shift={},sleep=off", board.icount_shift)])
            .args(["-semihosting-config", "enable=on,target=native"])
            .arg("-kernel")
            .arg(firmware.path())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(qemu.stdout.take().expect("a pipe"));
        let port = said.lines().map_while(Result::ok).find_map(|line| {
            let (_, path) = line.split_once("redirected to ")?;
            Some(path.split(' ').next()?.to_string())
        });
        Self {
            qemu,
            port: port.expect("qemu says where its port is"),
            _folder: folder,
        }
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

#[test]
fn boards_run_and_update_over_their_ports() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(folder.path(), 2);
    let input = folder.path().join("x.npy");
    let array = ndarray::Array::from_shape_fn((2, 1, 1, 8, 8), |(run, _, _, y, x)| ((3 * x + 5 * y + run) % 16) as f32);
    ndarray_npy::write_npy(&input, &array).expect("written");
    let arenite = |arguments: &[&str]| {
        let done = Command::new(programs().join("arenite"))
            .args(arguments)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), String::from_utf8(done.stdout).expect("text"), said)
    };
    let model = file.path().to_str().expect("a path");
    let run = |on: &str| {
        let (status, out, error) = arenite(&[
            "run",
            model,
            "--input",
            input.to_str().expect("a path"),
            "--on",
            on,
            "--json",
        ]);
        assert_eq!(status, Some(0), "{on}: {error}");
        serde_json::from_str::<serde_json::Value>(&out).expect("JSON")
    };
    for name in ["mps2-an386", "riscv32-virt", "aarch64-virt"] {
        let board = Board::find(name).expect("a known board");
        if let Err(reason) = ready(board) {
            skip(
                &format!("boards_run_and_update_over_their_ports on {name}"),
                &reason.to_string(),
            );
            continue;
        }
        let emulated = Emulated::start(board);
        let over = run(&format!("serial:{}", emulated.port));
        let counted = run(&format!("qemu:{name}"));
        assert_eq!(over["outputs"], counted["outputs"], "{name}");
        // The programs differ in how their code has been laid out and inlined around the same kernels.
        let [over, counted] = [&over["counts"], &counted["instructions"]].map(|of| {
            let of = of.as_array().expect("a count of each run").iter();
            of.map(|count| count.as_u64().expect("a count")).collect::<Vec<_>>()
        });
        assert_eq!(over.len(), counted.len(), "{name}");
        for (over, counted) in over.iter().zip(&counted) {
            assert!(
                over.abs_diff(*counted) * 100 <= *counted,
                "{name}: {over} instructions over the port, {counted}"
            );
        }
        let update = |more: &[&str]| arenite(&[&["update", model, "--serial", &emulated.port], more].concat());
        let said = |then: &str| {
            let bytes = file.bytes().len();
            format!(
                "{}: {bytes} bytes written, 2 runs of the self-test passed, {then}\n",
                board.feature
            )
        };
        assert_eq!(update(&["--confirm"]), (Some(0), said("confirmed"), String::new()));
        assert_eq!(
            update(&[]),
            (Some(0), said("on trial until the program confirms it"), String::new())
        );
        let (status, _, error) = update(&[]);
        assert!(
            status == Some(1) && error.contains("the model is on trial"),
            "{status:?} {error}"
        );
    }
}

/// Before anything is said to a board.
#[test]
fn updates_that_no_board_takes_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let untested = packed(folder.path(), 0);
    let update = |model: &Path| {
        let done = Command::new(programs().join("arenite"))
            .args(["update", model.to_str().expect("a path"), "--serial", "/no/such/port"])
            .output()
            .expect("it starts");
        (done.status.code(), String::from_utf8(done.stderr).expect("text"))
    };
    let (status, said) = update(untested.path());
    assert!(
        status == Some(1) && said.contains("no self-test") && said.contains("--self-test"),
        "{status:?} {said}"
    );
    let mut bytes = untested.bytes().to_vec();
    bytes[untested.bytes().len() / 2] ^= 4;
    let damaged = folder.path().join("damaged.bin");
    std::fs::write(&damaged, bytes).expect("written");
    let (status, said) = update(&damaged);
    assert!(status == Some(1) && said.contains("damaged"), "{status:?} {said}");
    let (status, said) = update(packed(folder.path(), 1).path());
    assert!(status == Some(1) && said.contains("/no/such/port"), "{status:?} {said}");
}
