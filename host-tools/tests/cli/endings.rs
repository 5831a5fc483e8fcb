//! How a run can end from outside: signals, a full disk, a file system without unnamed files.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{ARENITE, Bench, PACK, digits, done, run};
use crate::outputs::writers;

/// Drafts with names, as on file systems without unnamed files; and whatever this one has.
const MODES: [Option<(&str, &str)>; 2] = [None, Some(("ARENITE_NAMED_DRAFTS", "1"))];

/// Starts a command whose standard output is a full pipe and waits until it is stuck there: the file is complete and has not
/// appeared.
fn stuck(mut command: Command) -> (Child, std::io::PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut filler = writer.try_clone().expect("a descriptor");
    std::thread::spawn(move || while filler.write_all(&[b'x'; 4096]).is_ok() {});
    // A pipe holds 64 KiB; the filler hangs in its next write.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().expect("it starts");
    wait_in(&mut child, "pipe_write");
    (child, reader)
}

/// Waits until a process waits inside a function of the system.
fn wait_in(child: &mut Child, function: &str) {
    let place = format!("/proc/{}/wchan", child.id());
    while !fs::read_to_string(&place).is_ok_and(|place| place.contains(function)) {
        assert!(child.try_wait().expect("asked").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, name: &str) {
    done(run("kill", &[format!("-{name}"), child.id().to_string()]));
}

fn drafts(names: &[String]) -> usize {
    names.iter().filter(|name| name.starts_with(".arenite-")).count()
}

#[test]
fn a_signal_leaves_no_file_and_the_status_of_its_number() {
    if !Path::new("/proc/self/wchan").exists() {
        eprintln!("skipped: signals: this system does not say where a process waits");
        return;
    }
    let bench = Bench::new();
    for mode in MODES {
        for writer in writers(&bench).iter().filter(|writer| writer.name != "weights") {
            let file = bench.path("out");
            for (name, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
                fs::write(&file, "the old one").expect("written");
                let names = bench.names();
                let mut command = writer.to(&file);
                command.envs(mode);
                let (mut child, reader) = stuck(command);
                let during = drafts(&bench.names());
                assert!(
                    during == 0 || mode.is_some(),
                    "unnamed where the file system allows: {}",
                    writer.name
                );
                signal(&child, name);
                let ended = child.wait().expect("ended");
                drop(reader);
                match status {
                    Some(_) => assert_eq!(ended.code(), status, "{}: {name}", writer.name),
                    None => assert_eq!(ended.signal(), Some(9)),
                }
                assert_eq!(
                    fs::read(&file).expect("there"),
                    b"the old one",
                    "{}: {name}",
                    writer.name
                );
                let left = drafts(&bench.names());
                assert_eq!(
                    left,
                    if status.is_none() { during } else { 0 },
                    "{}: {name}",
                    writer.name
                );
                // The files of a killed process are removed by the next run, whatever it writes there.
                fs::remove_file(&file).expect("removed");
                done(writer.to(&file).envs(mode).output().expect("it starts"));
                assert_eq!(bench.names(), names, "{}: {name}", writer.name);
            }
        }
    }
}

#[test]
fn a_named_draft_is_seen_while_it_is_written_so_the_tests_above_mean_something() {
    if !Path::new("/proc/self/wchan").exists() {
        return;
    }
    let bench = Bench::new();
    let mut command = Command::new(PACK);
    command
        .arg(digits("mlp.trace.json"))
        .arg("-o")
        .arg(bench.path("m.bin"))
        .envs(MODES[1]);
    let (mut child, _reader) = stuck(command);
    assert_eq!(drafts(&bench.names()), 1);
    // Another run in the same folder leaves a draft in use alone.
    let mut other = Command::new(PACK);
    other
        .arg(digits("mlp.trace.json"))
        .arg("-o")
        .arg(bench.path("n.bin"))
        .envs(MODES[1]);
    done(other.output().expect("it starts"));
    assert_eq!(drafts(&bench.names()), 1);
    child.kill().expect("killed");
    child.wait().expect("ended");
}

#[test]
fn a_signal_ends_a_run_that_waits_for_its_input() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    done(run("mkfifo", &[&pipe]));
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let mut command = Command::new(PACK);
        command.arg(&pipe).arg("-o").arg(bench.path("m.bin"));
        let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
        // Open for reading as well, so that this does not wait for the program.
        let writer = File::options().read(true).write(true).open(&pipe).expect("a pipe");
        wait_in(&mut child, "pipe_read");
        signal(&child, name);
        assert_eq!(child.wait().expect("ended").code(), Some(status));
        drop(writer);
        assert_eq!(bench.names(), ["pipe"]);
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    let bench = Bench::new();
    for mode in MODES {
        for writer in writers(&bench) {
            let file = bench.path("out");
            fs::write(&file, "the old one").expect("written");
            let names = bench.names();
            let command = writer.to(&file);
            let mut shell = Command::new("sh");
            // A limit of no bytes at all; without the signal, a write beyond it fails as on a full disk.
            shell
                .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
                .arg(command.get_program())
                .args(command.get_args())
                .envs(mode);
            let output = shell.output().expect("it starts");
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{}: {message}", writer.name);
            assert!(message.contains("out: cannot write"), "{}: {message}", writer.name);
            assert_eq!(fs::read(&file).expect("there"), b"the old one", "{}", writer.name);
            assert_eq!(bench.names(), names, "{}", writer.name);
        }
    }
}

#[test]
fn boards_stop_and_leave_nothing_when_a_signal_ends_the_run() {
    let board = arenite_host::board::Board::find("mps2-an386").expect("a board");
    if arenite_host::board::ready(board).is_err() {
        eprintln!("skipped: signals on boards: mps2-an386 is not installed");
        return;
    }
    let bench = Bench::new();
    let model = bench.packed("mlp");
    let scratch = bench.path("tmp");
    fs::create_dir(&scratch).expect("made");
    let mut command = Command::new(ARENITE);
    command
        .arg("run")
        .arg(&model)
        .arg("--input")
        .arg(digits("test_images.npy"))
        .args(["--on", "qemu:mps2-an386", "--profile"])
        .env("TMPDIR", &scratch)
        .stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    // The first build of the firmware may come before; its cargo is a child, too.
    let qemu = loop {
        assert!(child.try_wait().expect("asked").is_none(), "it ended by itself");
        let ids = fs::read_to_string(&children).unwrap_or_default();
        let is_qemu =
            |id: &&str| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("qemu"));
        if let Some(id) = ids.split_whitespace().find(is_qemu) {
            break id.to_string();
        }
        std::thread::yield_now();
    };
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("ended").code(), Some(143));
    // A killed orphan is there until init has waited for it.
    let gone = || !fs::read_to_string(format!("/proc/{qemu}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while !gone() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_dir(&scratch).expect("a folder").count(), 0);
}
