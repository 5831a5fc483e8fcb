//! The programs, a folder to run them in, and what came of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PACK: &str = env!("CARGO_BIN_EXE_pack");
pub(crate) const ARENITE: &str = env!("CARGO_BIN_EXE_arenite");

pub(crate) fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models")
}

pub(crate) fn digits(file: &str) -> PathBuf {
    models().join("digits").join(file)
}

/// A folder to work in.
pub(crate) struct Bench(TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    /// Packs one of the digit networks.
    pub(crate) fn packed(&self, network: &str) -> PathBuf {
        let model = self.path(&format!("{network}.bin"));
        done(run(
            PACK,
            &[&digits(&format!("{network}.trace.json")), Path::new("-o"), &model],
        ));
        model
    }
}

pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(program: &str, arguments: &[S]) -> Output {
    Command::new(program).args(arguments).output().expect("it starts")
}

/// Standard output of a command that must have done its work.
pub(crate) fn done(output: Output) -> String {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Standard error of a command that must end with `status`, with nothing on standard output.
pub(crate) fn refused(output: Output, status: i32) -> String {
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{message}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(!message.contains("panicked"), "{message}");
    message
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON value")
}
