//! A package of a user's, made and checked by cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package in a folder of its own that depends on the runtime.
pub(super) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// Of this name, with these features of the runtime, and further lines of `Cargo.toml`. Packages of one name share what cargo keeps of them, so each test
    /// has its own.
    pub(super) fn new(name: &str, features: &[&str], further: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let core = root.join("core").canonicalize().expect("the runtime");
        fs::create_dir(folder.path().join("src")).expect("made");
        let manifest = format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             arenite = {{ path = {core:?}, features = {features:?} }}\n{further}\n"
        );
        fs::write(folder.path().join("Cargo.toml"), manifest).expect("written");
        // The versions that everything else here is built with.
        fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("copied");
        Self { folder }
    }

    /// Puts a file next to `Cargo.toml`.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    /// Writes settings of cargo for the package.
    pub(super) fn config(&self, text: &str) {
        let folder = self.folder.path().join(".cargo");
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("config.toml"), text).expect("written");
    }

    /// Checks a library of this text: what cargo and the compiler say, an error where it does not compile.
    pub(super) fn check(&self, library: &str, target: Option<&str>) -> Result<String, String> {
        self.cargo(&["check"], library, target)
    }

    /// Runs a command of cargo on a library of this text.
    pub(super) fn cargo(&self, command: &[&str], library: &str, target: Option<&str>) -> Result<String, String> {
        fs::write(self.folder.path().join("src/lib.rs"), format!("#![no_std]\n{library}")).expect("written");
        self.command(command, target)
    }

    /// Runs a program of this text: what cargo and the compiler say, an error where it does not compile or fails.
    pub(super) fn run(&self, program: &str) -> Result<String, String> {
        fs::write(self.folder.path().join("src/main.rs"), program).expect("written");
        self.command(&["run"], None)
    }

    fn command(&self, command: &[&str], target: Option<&str>) -> Result<String, String> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        for inherited in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(inherited);
        }
        cargo.args(command).args(["--color", "never", "--target-dir"]);
        cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/include"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
        if let Some(target) = target {
            cargo.args(["--target", target]);
        }
        let output = cargo.current_dir(self.folder.path()).output().expect("cargo starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    }
}

/// Whether this machine can build for a target.
pub(super) fn installed(target: &str) -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output();
    output.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    })
}
