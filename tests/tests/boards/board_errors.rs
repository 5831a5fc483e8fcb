//! Each reason for which a board refuses or fails, and each kind of error of the host tools, provoked on purpose.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use arenite_host::board::protocol::serial::Answer;
use arenite_host::board::protocol::{Command, Failure, Guarded};
use arenite_host::board::{
    Blob, Board, BoardError, Firmware, Link, RunOptions, SerialOptions, connect, ready, run, selfcheck,
};
use arenite_host::cli::regions::parse_size;
use arenite_host::memory::Region;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, ErrorKind, files};
use arenite_tests::blob::{Blob as File, Tensor, at};
use arenite_tests::line::{answering, board as board_at_a_line, line, sound};
use arenite_tests::variants::unprovoked;
use arenite_tests::writers::{Chain, Layer, tf_shapes};
use arenite_tests::{digits_options, skip};

/// The smallest board: what fits it is soon too large for it.
fn board() -> &'static Board {
    Board::find("microbit").expect("a board")
}

/// A file that is its output and `weights` bytes of constants.
fn file(arena: u32, weights: usize) -> Vec<u8> {
    File {
        arena: [arena, 0, 0, 0],
        inputs: vec![Tensor::new("x", at(0), arenite::DType::F32, &[3])],
        outputs: vec![Tensor::new("y", at(0), arenite::DType::F32, &[3])],
        weights: vec![0; weights],
        ..File::default()
    }
    .file()
}

fn infer(blob: &[u8], inputs: usize, options: &RunOptions) -> BoardError {
    let inputs = vec![0; inputs];
    run(board(), Blob::Bytes(blob), &inputs, options).expect_err("an error")
}

/// Returns the error that this file's child reports of building the firmware, with another checkout.
fn building(root: &Path) -> String {
    let child = Process::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "board_errors::builds_in_another_checkout", "--nocapture"])
        .env("ARENITE_ROOT", root)
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let line = said.lines().find_map(|line| line.split_once("board error: "));
    line.unwrap_or_else(|| panic!("{said}")).1.to_string()
}

/// The other half of [`building`]; by itself it has nothing to do.
#[test]
fn builds_in_another_checkout() {
    let elsewhere = std::env::var_os("ARENITE_ROOT").is_some_and(|root| Path::new(&root).is_absolute());
    if elsewhere && let Err(error) = Firmware::build(board(), "selfcheck") {
        println!("board error: {error:?}");
    }
}

/// Returns the errors that need neither qemu nor a target.
fn without_a_board(folder: &Path) -> Vec<String> {
    let leaked = |board: Board| -> &'static Board { Box::leak(Box::new(board)) };
    let nowhere = leaked(Board {
        qemu: "qemu-system-nowhere",
        ..board().clone()
    });
    let Err(tool) = ready(nowhere) else {
        panic!("no such qemu")
    };
    assert!(
        matches!(&tool, BoardError::ToolMissing { tool, .. } if tool == "qemu-system-nowhere"),
        "{tool:?}"
    );
    let foreign = leaked(Board {
        qemu: "sh",
        triple: "pdp11-none-eabi",
        ..board().clone()
    });
    let Err(target) = ready(foreign) else {
        panic!("no such target")
    };
    assert!(
        matches!(&target, BoardError::TargetMissing { triple } if triple == "pdp11-none-eabi"),
        "{target:?}"
    );

    let Err(absent) = Firmware::open(board(), &folder.join("absent")) else {
        panic!("no such file")
    };
    assert!(
        matches!(&absent, BoardError::File { path, .. } if path.ends_with("absent")),
        "{absent:?}"
    );
    let text = folder.join("text");
    std::fs::write(&text, "no program").expect("written");
    let Err(elf) = Firmware::open(board(), &text) else {
        panic!("no program")
    };
    assert!(matches!(&elf, BoardError::Elf { path, .. } if *path == text), "{elf:?}");

    let kinds = [&tool, &target, &absent, &elf].map(|error| format!("{error:?}"));
    for (error, kind, remedy) in [
        (tool, ErrorKind::Internal, "doctor --fix"),
        (target, ErrorKind::Internal, "rustup target add"),
        (absent, ErrorKind::Io, "absent"),
        (elf, ErrorKind::Internal, "text"),
    ] {
        let error = Error::from(error);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
    kinds.into()
}

/// Returns the errors that need qemu and the target of one board.
fn on_the_board(folder: &Path) -> Vec<String> {
    let mut provoked = Vec::new();
    let mut check = |error: BoardError, right: fn(&BoardError) -> bool| {
        assert!(right(&error), "{error:?}");
        provoked.push(format!("{error:?}"));
    };
    let options = RunOptions::default;
    let mut damaged = file(16, 0);
    damaged[20] ^= 1;
    check(
        infer(&damaged, 12, &options()),
        |e| matches!(e, BoardError::Refused { name, .. } if name == "Checksum"),
    );
    check(infer(&file(16, 0), 11, &options()), |e| {
        matches!(
            e,
            BoardError::InputSize {
                runs: 1,
                each: 12,
                given: 11
            }
        )
    });
    check(infer(&file(15_000, 0), 12, &options()), |e| {
        matches!(
            e,
            BoardError::OutOfMemory {
                needed: 15_000,
                available: 1..15_000,
                ..
            }
        )
    });
    check(infer(&file(16, 260_000), 12, &options()), |e| {
        matches!(
            e,
            BoardError::BlobTooLarge {
                place: "flash",
                needed: 260_000..,
                available: 1..260_000,
                ..
            }
        )
    });
    let arguments = |argument: &str| RunOptions {
        qemu_arguments: vec![argument.into()],
        ..options()
    };
    check(
        infer(&file(16, 0), 12, &arguments("--no-such-argument")),
        |e| matches!(e, BoardError::Qemu { status, stderr, .. } if status.contains('1') && stderr.contains("no-such-argument")),
    );
    // It says its version, and runs nothing: there is no record.
    check(
        infer(&file(16, 0), 12, &arguments("--version")),
        |e| matches!(e, BoardError::Protocol { reason, .. } if reason.contains("record")),
    );

    let seconds = Duration::from_secs;
    for (failure, timeout, right) in [
        (
            Failure::Fault,
            20,
            (|e| matches!(e, BoardError::Fault { .. })) as fn(&BoardError) -> bool,
        ),
        (
            Failure::Panic,
            20,
            |e| matches!(e, BoardError::Panicked { text, .. } if text == "asked to panic"),
        ),
        (
            Failure::Hang,
            1,
            |e| matches!(e, BoardError::Timeout { seconds: 1, reached, .. } if reached.starts_with("Boot")),
        ),
        (Failure::OverrunStack, 20, |e| {
            matches!(
                e,
                BoardError::Corrupted {
                    what: Guarded::Stack,
                    ..
                }
            )
        }),
    ] {
        check(
            selfcheck(board(), Command::Fail(failure), seconds(timeout)).expect_err("asked to fail"),
            right,
        );
    }

    let empty = folder.join("empty");
    std::fs::create_dir_all(&empty).expect("made");
    let broken = folder.join("broken");
    std::fs::create_dir_all(broken.join("firmware")).expect("made");
    std::fs::write(broken.join("firmware/Cargo.toml"), "no manifest").expect("written");
    // Its packages are not there, and no registry is asked.
    let lacking = folder.join("lacking");
    std::fs::create_dir_all(lacking.join("firmware/src/bin")).expect("made");
    let manifest = "[package]\nname = \"arenite-firmware\"\n[features]\nmicrobit = []\n[dependencies]\narenite-no-such-package = \"1\"\n";
    std::fs::write(lacking.join("firmware/Cargo.toml"), manifest).expect("written");
    std::fs::write(lacking.join("firmware/src/bin/selfcheck.rs"), "fn main() {}").expect("written");
    // A file is where the folder of its builds would be.
    let blocked = folder.join("blocked");
    std::fs::create_dir_all(blocked.join("firmware")).expect("made");
    std::fs::write(blocked.join("firmware/Cargo.toml"), "").expect("written");
    std::fs::write(blocked.join("target"), "").expect("written");
    for (root, what, names) in [
        (&empty, "NoSources", "empty"),
        (&broken, "Build", "selfcheck"),
        (&lacking, "NoNetwork", "arenite-no-such-package"),
        (&blocked, "Cache", "blocked/target"),
    ] {
        let error = building(root);
        assert!(error.starts_with(what) && error.contains(names), "{error}");
        provoked.push(error);
    }
    provoked
}

/// Returns the errors at a serial port.
fn over_a_line() -> Vec<String> {
    let nowhere = "/nowhere/tty".parse().expect("a port");
    let absent = connect(&nowhere).map(|_| ()).expect_err("no such port");
    assert!(
        matches!(&absent, BoardError::Port { port, .. } if port == "/nowhere/tty"),
        "{absent:?}"
    );

    // Its other end is there, and says nothing.
    let (host, _end) = line(sound(), sound());
    let silent = Link::over(host, "a line").map(|_| ()).expect_err("nobody");
    assert!(matches!(&silent, BoardError::Silent { seconds: 10, .. }), "{silent:?}");

    let other = Link::over(answering(Answer::Done), "a line")
        .map(|_| ())
        .expect_err("no board");
    assert!(
        matches!(&other, BoardError::Line { reason, .. } if reason.ends_with("Done")),
        "{other:?}"
    );

    let (host, end) = line(sound(), sound());
    board_at_a_line(end, 64, false);
    let (mut link, _) = Link::over(host, "a line").expect("a board");
    let refused = link.confirm().expect_err("no slots");
    assert!(
        matches!(&refused, BoardError::Declined { text, .. } if text.contains("slots")),
        "{refused:?}"
    );
    let seconds = Duration::from_secs(10);
    let options = SerialOptions {
        reset_each: false,
        profile: false,
        timeout: seconds,
    };
    let large = link.run(&[0; 65], &[], options, &mut |_| ()).expect_err("no room");
    assert!(matches!(&large, BoardError::NoRoom { needed: 65, .. }), "{large:?}");
    [absent, silent, other, refused, large]
        .map(|error| format!("{error:?}"))
        .to_vec()
}

#[test]
fn every_failure_of_a_board_is_provoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut provoked = without_a_board(folder.path());
    provoked.extend(over_a_line());
    if let Err(reason) = ready(board()) {
        return skip("every_failure_of_a_board_is_provoked", &reason.to_string());
    }
    provoked.extend(on_the_board(folder.path()));
    assert_eq!(
        unprovoked("host-tools/board/src/board/error.rs", "BoardError", provoked),
        [""; 0]
    );
}

/// Returns the error of this file's child when it writes more than a pipe holds, whose reader has gone.
fn written_to_nobody() -> String {
    let mut child = Process::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "board_errors::writes_where_nobody_reads", "--nocapture"])
        .env("ARENITE_TEST_WRITES", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // Behind the test's own first lines.
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("writing") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("it talks") > 0, "it does not write");
    }
    drop(lines);
    drop(child.stdin.take());
    let said = child.wait_with_output().expect("it ends").stderr;
    let said = String::from_utf8_lossy(&said);
    let kind = said.lines().find_map(|line| line.split_once("kind: "));
    kind.unwrap_or_else(|| panic!("{said}")).1.to_string()
}

/// The other half of [`written_to_nobody`]; by itself it has nothing to do.
#[test]
fn writes_where_nobody_reads() {
    if std::env::var_os("ARENITE_TEST_WRITES").is_some() {
        println!("writing");
        // Until the reader has gone.
        std::io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
        let error = files::write(Path::new("-"), &[0; 1 << 20]).expect_err("nobody reads");
        eprintln!("kind: {:?}", error.kind());
    }
}

/// A trace whose shapes leave a pooling's window open.
fn open_window() -> String {
    let window = [2, 2];
    let layers = vec![
        Layer::Conv {
            out: 8,
            kernel: [3, 3],
            stride: [1, 1],
            pad: [1, 1],
            groups: 1,
            dilation: [1, 1],
        },
        Layer::Relu,
        Layer::MaxPool {
            kernel: window,
            stride: window,
            ceiling: false,
        },
    ];
    let (batch, image) = (2, [3, 16, 16]);
    tf_shapes::write(&Chain { batch, image, layers }, None)
}

#[test]
fn every_kind_of_error_is_provoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let digits = |network: &str| digits_options(network, &folder.path().join("model.arenite"));
    let packed = |options: &Options| pack(options, &mut |_, _, _| {}).expect_err("an error");
    let text = folder.path().join("text");
    std::fs::write(&text, "no model").expect("written");
    let no_model = ModelFile::open(&text).and_then(|file| file.view().map(|_| ()));
    let chain = folder.path().join("chain.txt");
    std::fs::write(&chain, open_window()).expect("written");
    let region = Region {
        name: "sram".into(),
        size: Some(16),
    };
    let wrong = Options {
        weights: Some(
            digits("mlp")
                .input
                .with_file_name("mlp.safetensors")
                .display()
                .to_string(),
        ),
        ..digits("digits")
    };
    let small = Options {
        regions: vec![region.clone()],
        ..digits("digits")
    };
    let nowhere = Board {
        qemu: "qemu-system-nowhere",
        ..board().clone()
    };
    let errors = [
        (ErrorKind::Input, no_model.expect_err("no model")),
        (
            ErrorKind::Unsupported,
            packed(&Options {
                stream: Some(region.clone().into()),
                regions: vec![region.clone(); 2],
                ..digits("digits")
            }),
        ),
        (
            ErrorKind::Ambiguous,
            packed(&Options::new(&chain, folder.path().join("chain.arenite"))),
        ),
        (ErrorKind::Weights, packed(&wrong)),
        (ErrorKind::DoesNotFit, packed(&small)),
        (
            ErrorKind::Io,
            ModelFile::open(&folder.path().join("absent")).err().expect("no file"),
        ),
        (ErrorKind::Usage, parse_size("--fit", "K").expect_err("no number")),
        (ErrorKind::Internal, Error::from(ready(&nowhere).expect_err("no qemu"))),
    ];
    let mut provoked = Vec::new();
    for (kind, error) in errors {
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.message().is_empty());
        provoked.push(format!("{kind:?}"));
    }
    assert!(!folder.path().join("model.arenite").exists());
    provoked.push(written_to_nobody());
    assert_eq!(
        unprovoked("host-tools/graph/src/error.rs", "ErrorKind", provoked),
        [""; 0]
    );
}
