//! Standard streams: `-o -`, streams that are full, and streams that nobody reads.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ARENITE, Bench, PACK, digits, done, refused};
use crate::outputs::writers;

#[test]
fn a_dash_is_standard_output_and_all_else_goes_to_standard_error() {
    let bench = Bench::new();
    for writer in writers(&bench) {
        let file = bench.path("out");
        let said = writer.to(&file).output().expect("it starts");
        let report = [said.stdout.clone(), said.stderr.clone()].concat();
        done(said);
        let names = bench.names();
        let piped = writer
            .to(Path::new("-"))
            .current_dir(bench.path(""))
            .output()
            .expect("it starts");
        assert_eq!(piped.status.code(), Some(0), "{}", writer.name);
        assert_eq!(piped.stdout, fs::read(&file).expect("written"), "{}", writer.name);
        assert!(!report.is_empty() && piped.stderr.len() > 20, "{}", writer.name);
        assert_eq!(bench.names(), names, "{}", writer.name);
        fs::remove_file(&file).expect("removed");
    }
}

/// Commands that print no report as JSON.
const SILENT: [&str; 3] = ["weights", "migrate", "report"];

#[test]
fn two_things_are_never_both_on_standard_output() {
    let bench = Bench::new();
    for writer in writers(&bench).iter().filter(|writer| !SILENT.contains(&writer.name)) {
        let mut command = writer.to(Path::new("-"));
        let message = refused(command.arg("--json").output().expect("it starts"), 2);
        assert!(message.contains("standard output"), "{}: {message}", writer.name);
    }
    let mut command = Command::new(PACK);
    command
        .arg(digits("mlp.trace.json"))
        .args(["--dump-after", "plan", "-o", "-"]);
    refused(command.output().expect("it starts"), 2);
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("a device").into()
}

/// The end of a pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Every way to a report on standard output.
fn reports(bench: &Bench) -> Vec<Command> {
    let model = bench.packed("mlp");
    let (inputs, labels) = (digits("test_images.npy"), digits("test_labels.npy"));
    let arenite = |arguments: &[&str]| {
        let mut command = Command::new(ARENITE);
        command.args(arguments);
        command
    };
    let mut all = vec![
        arenite(&["doctor"]),
        arenite(&["--help"]),
        arenite(&["plan", "--help"]),
        arenite(&["--version"]),
    ];
    all.push(Command::new(PACK));
    all.last_mut().expect("pushed").arg("--help");
    for name in ["inspect", "verify"] {
        all.push(arenite(&[name]));
        all.last_mut().expect("pushed").arg(&model);
    }
    let mut run = arenite(&["run"]);
    run.arg(&model).arg("--input").arg(&inputs);
    let mut eval = arenite(&["eval"]);
    eval.arg(&model)
        .arg("--inputs")
        .arg(&inputs)
        .arg("--labels")
        .arg(&labels);
    all.extend([run, eval]);
    for name in ["inspect", "verify", "doctor"] {
        all.push(arenite(&[name, "--json"]));
        if name != "doctor" {
            all.last_mut().expect("pushed").arg(&model);
        }
    }
    all
}

#[test]
fn a_full_standard_output_is_an_error_and_leaves_no_file() {
    let bench = Bench::new();
    for mut command in reports(&bench) {
        let message = refused(command.stdout(full()).output().expect("it starts"), 1);
        assert!(
            message.contains("cannot write to the standard output"),
            "{command:?}: {message}"
        );
    }
    for writer in writers(&bench) {
        let file = bench.path("out");
        fs::write(&file, "the old one").expect("written");
        let names = bench.names();
        let mut plain = writer.to(&file);
        if !SILENT.contains(&writer.name) {
            let mut json = writer.to(&file);
            json.arg("--json");
            for command in [&mut plain, &mut json] {
                let message = refused(command.stdout(full()).output().expect("it starts"), 1);
                assert!(
                    message.contains("cannot write to the standard output"),
                    "{}: {message}",
                    writer.name
                );
                assert_eq!(fs::read(&file).expect("there"), b"the old one", "{}", writer.name);
            }
        }
        let piped = writer.to(Path::new("-")).stdout(full()).output().expect("it starts");
        refused(piped, 1);
        assert_eq!(bench.names(), names, "{}", writer.name);
    }
}

#[test]
fn a_standard_output_that_nobody_reads_ends_the_program_quietly() {
    let bench = Bench::new();
    for mut command in reports(&bench) {
        let output = command.stdout(unread()).output().expect("it starts");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            !message.contains("panicked") && !message.contains("error"),
            "{command:?}: {message}"
        );
    }
    for writer in writers(&bench) {
        // The report is lost, the file is not.
        let file = bench.path("out");
        done(writer.to(&file).stdout(unread()).output().expect("it starts"));
        assert!(file.exists(), "{}", writer.name);
        fs::remove_file(&file).expect("removed");
        // The file is lost.
        let names = bench.names();
        let output = writer.to(Path::new("-")).stdout(unread()).output().expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {message}", writer.name);
        assert!(
            !message.contains("error") && !message.contains("panicked"),
            "{}: {message}",
            writer.name
        );
        assert_eq!(bench.names(), names, "{}", writer.name);
    }
}

#[test]
fn a_standard_error_that_takes_nothing_changes_nothing() {
    let bench = Bench::new();
    for stderr in [full, unread] {
        let mut command = Command::new(PACK);
        command.arg(digits("mlp.trace.json")).arg("-o").arg(bench.path("m.bin"));
        let status = command.stderr(stderr()).stdout(Stdio::null()).status();
        assert_eq!(status.expect("it starts").code(), Some(0));
        for (arguments, status) in [(&["weights", "none", "--seed", "1", "-o", "w"][..], 1), (&["fly"], 2)] {
            let mut command = Command::new(ARENITE);
            command.args(arguments).current_dir(bench.path("")).stderr(stderr());
            assert_eq!(
                command.status().expect("it starts").code(),
                Some(status),
                "{arguments:?}"
            );
        }
    }
}
