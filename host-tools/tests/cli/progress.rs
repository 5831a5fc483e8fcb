//! Progress of long work on a terminal: its stage and how far it is, on standard error alone; a pipe gets none of it, and the results are the same.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use arenite_host::memory::plan::generate;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::common::{ARENITE, Bench, PACK, digits};

/// Runs a command whose standard error is a terminal of 120 columns; returns its output and the text drawn there.
pub(crate) fn on_a_terminal(command: &mut Command) -> (Output, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let size = Winsize {
        ws_row: 40,
        ws_col: 120,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).expect("its size is set");
    let name = ptsname(&master, Vec::new())
        .expect("a name")
        .into_string()
        .expect("UTF-8");
    let slave = File::options()
        .read(true)
        .write(true)
        .open(name)
        .expect("its other end");
    let child = command
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(slave)
        .spawn()
        .expect("it starts");
    // The command holds the other end as well as its child.
    command.stderr(Stdio::null());
    let drawing = std::thread::spawn(move || {
        let (mut master, mut drawn, mut chunk) = (File::from(master), Vec::new(), [0; 4096]);
        // Ends with an error once nobody has the other end open.
        while let Ok(read @ 1..) = master.read(&mut chunk) {
            drawn.extend_from_slice(&chunk[..read]);
        }
        String::from_utf8_lossy(&drawn).into_owned()
    });
    let output = child.wait_with_output().expect("it ends");
    (output, drawing.join().expect("read"))
}

/// Text without the sequences that set colours.
pub(crate) fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => plain.push_str(rest),
            None => plain.extend(["\u{1b}[", part]),
        }
    }
    plain
}

/// Runs a command on a terminal and without: `stages` are drawn, each behind the one before, and wiped; a pipe gets no trace of them. Returns what stays.
fn shows(program: &str, arguments: &[&str], folder: &Bench, stages: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder.path(""));
    let (seen, drawn) = on_a_terminal(&mut command);
    let mut rest = drawn.as_str();
    for stage in stages {
        let (_, behind) = rest
            .split_once(stage)
            .unwrap_or_else(|| panic!("{arguments:?}: no `{stage}` in {rest:?}"));
        rest = behind;
    }
    // Text left on the terminal's last line.
    let last = rest.rsplit(['\r', '\n']).next().unwrap_or_default();
    assert!(last.trim_start_matches("\u{1b}[2K").trim().is_empty(), "{last:?} stays");
    let piped = command.stderr(Stdio::piped()).output().expect("it starts");
    let text = String::from_utf8_lossy(&piped.stderr);
    assert_eq!(piped.status.code(), seen.status.code(), "{text}");
    assert_eq!(
        String::from_utf8_lossy(&piped.stdout),
        String::from_utf8_lossy(&seen.stdout)
    );
    assert!(!text.contains(['\r', '\u{1b}']), "{text:?}");
    for stage in stages {
        assert!(!text.contains(stage), "{text}");
    }
    // Messages are the same, but that terminals end lines with both, and have colours.
    let drawn = without_colours(&drawn);
    for line in text.lines() {
        assert!(drawn.contains(line), "no {line:?} in {drawn:?}");
    }
    piped
}

fn succeeds(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

/// Buffers of which a plan without a gap exists and is hard to find.
fn buffers() -> String {
    let problem = generate::perfect(200, 1 << 20, 1 << 10, 1);
    let parts = problem.buffers.iter().flat_map(|buffer| &buffer.parts);
    let rows = (0..)
        .zip(parts)
        .map(|(id, part)| format!("{id},{},{},{}\n", part.lower, part.upper, part.size));
    format!("id,lower,upper,size\n{}", rows.collect::<String>())
}

#[test]
fn packing_shows_its_stages() {
    let folder = Bench::new();
    let trace = digits("digits.trace.json");
    let images = digits("test_images.npy");
    let (trace, images) = (trace.to_str().expect("UTF-8"), images.to_str().expect("UTF-8"));
    let quantised = [trace, "-o", "d.bin", "--dtype", "int8", "--calibrate", images];
    let stages = [
        "reading the network",
        "calibrating",
        "choosing ranges",
        "choosing kernels",
        "checking the file",
    ];
    succeeds(&shows(PACK, &quantised, &folder, &stages));
    let fitted = [trace, "-o", "d.bin", "--fit", "sram=3500"];
    let stages = [
        "reading the network",
        "trying cut 1",
        "checking the file",
        "replaying the samples",
    ];
    succeeds(&shows(PACK, &fitted, &folder, &stages));
    let failing = [trace, "-o", "d.bin", "--max-flash", "1K"];
    let failed = shows(PACK, &failing, &folder, &["reading the network"]);
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn planning_and_running_show_how_far_they_are() {
    let folder = Bench::new();
    fs::write(folder.path("buffers.csv"), buffers()).expect("written");
    let plan = ["plan", "buffers.csv", "--plan-nodes", "200000", "-o", "plan.csv"];
    let mut command = Command::new(ARENITE);
    let (seen, drawn) = on_a_terminal(command.args(plan).current_dir(folder.path("")));
    assert_eq!(seen.status.code(), Some(0), "{drawn}");
    assert!(
        drawn.contains("planning the arena") && drawn.contains("% "),
        "{drawn:?}"
    );
    folder.packed("digits");
    let (images, labels) = (digits("test_images.npy"), digits("test_labels.npy"));
    let eval = [
        "eval",
        "digits.bin",
        "--inputs",
        images.to_str().expect("UTF-8"),
        "--labels",
    ];
    let eval = [&eval[..], &[labels.to_str().expect("UTF-8")]].concat();
    succeeds(&shows(
        ARENITE,
        &eval,
        &folder,
        &["starting on host", "running on host"],
    ));
}

/// A stand-in for cargo that draws its bar and fails: what the first build for a board shows while it goes on.
#[test]
fn the_first_build_for_a_board_shows_itself() {
    let targets = Command::new("rustup").args(["target", "list", "--installed"]).output();
    if !targets.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).contains("thumbv7m-none-eabi")) {
        println!("skipped: no target thumbv7m-none-eabi");
        return;
    }
    let folder = Bench::new();
    folder.packed("mlp");
    let cargo = folder.path("cargo");
    let bar = "    Building [=====>          ] 12/34: cortex-m";
    let script = format!(
        "#!/bin/sh\nprintf '   Compiling nb v1.1.0\\n{bar}\\r' >&2\nsleep 0.3\necho 'error: it ends here' >&2\nexit 101\n"
    );
    fs::write(&cargo, script).expect("written");
    fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it can be run");
    let checkout = folder.path("checkout/firmware");
    fs::create_dir_all(&checkout).expect("made");
    fs::write(checkout.join("Cargo.toml"), "").expect("written");
    let bench = |command: &mut Command| {
        command
            .args(["bench", "mlp.bin", "--on", "qemu:mps2-an385"])
            .current_dir(folder.path(""))
            .env("CARGO", &cargo)
            .env("ARENITE_ROOT", folder.path("checkout"));
    };
    let mut command = Command::new(ARENITE);
    bench(&mut command);
    let (seen, drawn) = on_a_terminal(&mut command);
    assert_eq!(seen.status.code(), Some(1), "{drawn}");
    let expected = [
        "building `infer` for mps2-an385, once",
        "35%",
        "error: ",
        "it ends here",
    ];
    let drawn = without_colours(&drawn);
    let mut rest = drawn.as_str();
    for part in expected {
        rest = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("no {part:?} in {drawn:?}"))
            .1;
    }
    let piped = command.stderr(Stdio::piped()).output().expect("it starts");
    let text = String::from_utf8_lossy(&piped.stderr);
    assert!(
        text.contains("it ends here") && !text.contains("Building") && !text.contains("once"),
        "{text}"
    );
    assert!(!Path::new(&folder.path("checkout/target/boards/elf")).exists());
}
