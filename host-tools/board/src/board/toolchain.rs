//! Tools that build the firmware: cargo, the compiler's targets, the sources.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use super::error::BoardError;
use crate::error::reason;

/// Whether the toolchain that the firmware is built with has `triple`; `None` where that cannot be told.
pub(super) fn has_target(triple: &str) -> Option<bool> {
    let output = Command::new(rustc())
        .args(["--print", "target-libdir", "--target", triple])
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(output.status.success() && folder.is_dir())
}

/// The compiler that cargo calls.
fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The compiler's release, commit and host, as a part of a folder's name.
///
/// # Errors
/// [`BoardError::ToolMissing`].
pub fn compiler() -> Result<String, BoardError> {
    static SAID: OnceLock<Result<String, String>> = OnceLock::new();
    let ask = || {
        let output = Command::new(rustc())
            .arg("-vV")
            .output()
            .map_err(|error| reason(&error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let known = named(&said).filter(|_| output.status.success());
        known.ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    SAID.get_or_init(ask)
        .clone()
        .map_err(|reason| missing("rustc", &reason))
}

/// Returns the output of `rustc -vV`, as a part of a folder's name.
fn named(said: &str) -> Option<String> {
    let field = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    let commit = field("commit-hash: ").unwrap_or_default();
    let commit = commit.get(..9).unwrap_or(commit);
    Some(format!("rustc-{}-{commit}-{}", field("release: ")?, field("host: ")?))
}

/// cargo, for the firmware's sources and with nothing of an outer cargo's settings.
pub(super) fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder);
    for variable in [
        "RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_TARGET_DIR",
    ] {
        cargo.env_remove(variable);
    }
    cargo
}

/// Runs `work` while no other process builds: boards that share a target triple share the place of the linked file.
pub(super) fn exclusively<T>(folder: &Path, work: impl FnOnce() -> Result<T, BoardError>) -> Result<T, BoardError> {
    let failed = |source| BoardError::Cache {
        path: folder.to_owned(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(folder.join("build.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    // Dropping the file releases the lock.
    work()
}

pub(super) fn cargo_missing(error: &io::Error) -> BoardError {
    missing("cargo", &reason(error))
}

fn missing(tool: &str, reason: &str) -> BoardError {
    BoardError::ToolMissing {
        tool: tool.to_owned(),
        how: format!("get it from https://rustup.rs ({reason})"),
    }
}

/// That `program` does not build for `board`: for lack of packages which only a network has, or what the compiler `said`.
pub(super) fn not_built(board: &'static str, program: &str, said: String) -> BoardError {
    // Messages of cargo where it would ask a registry and cannot.
    let asked = [
        "--offline was specified",
        "offline mode (--offline)",
        "failed to download",
        "unable to update registry",
        "download of config.json failed",
        "network failure",
    ];
    let program = program.to_owned();
    if asked.iter().any(|part| said.to_lowercase().contains(part)) {
        return BoardError::NoNetwork {
            program,
            output: said.trim().to_owned(),
        };
    }
    BoardError::Build {
        board,
        program,
        output: said,
    }
}

/// Runs a build of cargo to its end; `told` hears how many of its parts are compiled and of how many, where there are any to compile. Returns what
/// compiler and cargo had to say, but for the parts' names.
pub(super) fn watched(cargo: &mut Command, told: &mut dyn FnMut(u32, u32)) -> io::Result<(ExitStatus, String)> {
    let cargo = cargo
        // cargo draws its bar where it writes into a pipe, too, if it is told how wide that is.
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "80")
        .env("CARGO_TERM_VERBOSE", "false")
        .env("CARGO_TERM_QUIET", "false")
        .env("CARGO_TERM_COLOR", "never")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = cargo.spawn()?;
    let mut said = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        let (mut line, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let read = match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for &byte in chunk.get(..read).unwrap_or_default() {
                match byte {
                    b'\r' | b'\n' => heard(&std::mem::take(&mut line), &mut said, told),
                    _ => line.push(byte),
                }
            }
        }
        heard(&line, &mut said, told);
    }
    Ok((child.wait()?, said))
}

/// A line of cargo's: its bar is told, its status lines are dropped, the rest is kept.
fn heard(line: &[u8], said: &mut String, told: &mut dyn FnMut(u32, u32)) {
    let line = String::from_utf8_lossy(line);
    if let Some((done, of)) = counted(&line) {
        told(done, of);
    } else if !is_status(&line) {
        said.push_str(&line);
        said.push('\n');
    }
}

/// The figures of cargo's bar, such as `    Building [====>    ] 12/34: arenite, heapless`.
fn counted(line: &str) -> Option<(u32, u32)> {
    let (_, figures) = line.trim_start().strip_prefix("Building [")?.split_once(']')?;
    let (done, of) = figures.trim_start().split_once('/')?;
    let of = of.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((done.parse().ok()?, of.parse().ok()?))
}

/// Whether a line is a verb of cargo's, which end at the twelfth column, and what it does that to; or blank, as what wipes the bar is.
fn is_status(line: &str) -> bool {
    let (verb, rest) = line.split_at_checked(12).unwrap_or((line, ""));
    let verb = verb.trim_start();
    let is_verb = verb.starts_with(|c: char| c.is_ascii_uppercase()) && verb.chars().all(|c| c.is_ascii_alphabetic());
    (line.starts_with("  ") && is_verb && rest.starts_with(' ')) || (!line.is_empty() && line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_of_cargo_is_read_and_the_compilers_words_are_kept() {
        let text = "   Compiling cortex-m v0.7.7\n    Building [==>      ] 3/17: cortex-m(build), nb\r\
            error: no such thing\n  --> src/main.rs:3:1\n   |\n 3 | Thing   Building\n\n            \r    Finished `release` profile\n";
        let (mut said, mut told) = (String::new(), Vec::new());
        for line in text.split(['\r', '\n']) {
            heard(line.as_bytes(), &mut said, &mut |done, of| told.push((done, of)));
        }
        assert_eq!(told, [(3, 17)]);
        let kept = "error: no such thing\n  --> src/main.rs:3:1\n   |\n 3 | Thing   Building\n\n\n";
        assert_eq!(said, kept);
    }

    #[test]
    fn compilers_are_told_apart() {
        let said = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\ncommit-hash: 59807616e1234567890\n\
                    host: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        let name = named(said);
        assert_eq!(name.as_deref(), Some("rustc-1.95.0-59807616e-x86_64-unknown-linux-gnu"));
        assert_eq!(named("something else"), None);
        assert!(compiler().expect("there is one").starts_with("rustc-1."));
    }

    #[test]
    fn a_build_ends_with_its_status_and_its_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write(
            "Cargo.toml",
            "[package]\nname = \"shown\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n",
        );
        write("lib.rs", "pub fn f() {}\n");
        let mut told = Vec::new();
        let mut build = || {
            watched(cargo(folder.path()).args(["build", "--offline"]), &mut |done, of| {
                told.push((done, of))
            })
        };
        let (status, said) = build().expect("it starts");
        assert!(status.success(), "{said}");
        assert_eq!(said.trim(), "");
        write("lib.rs", "pub fn f() -> u8 {}\n");
        let (status, said) = build().expect("it starts");
        assert!(!status.success());
        assert!(said.contains("mismatched types"), "{said}");
        assert!(!said.contains("Compiling"), "{said}");
        assert!(
            told.iter().all(|(done, of)| done <= of) && told.contains(&(0, 1)),
            "{told:?}"
        );
    }
}
