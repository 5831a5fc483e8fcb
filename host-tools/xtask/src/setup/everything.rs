//! `cargo xtask setup --all`: all that a test may lack, but for the shared data. Missing programs are listed before any of them is installed.

use std::path::PathBuf;
use std::process::Command;

use arenite_xtask::playground::TRIPLE;
use arenite_xtask::require::BROWSERS;

use super::{Result, apt, lacks_cross, lacks_target, root, run, run_quietly, rustup, venv_with};

/// Targets that no board has: one of the build matrix, the browser, and the systems that the host tools are checked for.
const TARGETS: [&str; 4] = [
    "thumbv7em-none-eabi",
    TRIPLE,
    "x86_64-pc-windows-gnu",
    "aarch64-apple-darwin",
];

/// A target of the build matrix that some mirrors of Rust's components lack. Where it cannot be had, the matrix skips it by name.
const RARE: &str = "thumbv8m.base-none-eabi";

/// Packages of Python: PyTorch with what quantises and tests it, the notebook's digits, the compiler for Ethos-U, what builds wheels. `.ci/run` begins with
/// them, since they are gigabytes.
const PYTHON: &str = include_str!("../../../python/tests/requirements.txt");

/// This checkout's own package, and a module of it.
const OWN: (&str, [&str; 2]) = ("arenite_trace", ["--editable", "host-tools/python"]);

/// Modules and packages of [`PYTHON`].
fn requirements() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = PYTHON.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| match line.split_once('#') {
        Some((package, module)) => (module.trim(), package.trim()),
        None => (line, line),
    })
}

/// Says what is missing, then installs it.
pub(in super::super) fn install() -> Result<()> {
    let targets: Vec<&str> = TARGETS.into_iter().filter(|triple| lacks_target(triple)).collect();
    let rare: &[&str] = if lacks_target(RARE) { &[RARE] } else { &[] };
    let mut debian = lacks_cross();
    if !BROWSERS
        .iter()
        .any(|program| run_quietly(program, &["--version"]).is_some())
    {
        // The lightest has the name of its package.
        debian.push(BROWSERS[0]);
    }
    let environment = environment();
    let lacks = |module: &str| {
        let python = environment.join("bin/python").display().to_string();
        run_quietly(&python, &["-c", &format!("import {module}")]).is_none()
    };
    let missing = requirements().filter(|(module, _)| lacks(module));
    let mut python: Vec<&str> = missing.map(|(_, package)| package).collect();
    if lacks(OWN.0) {
        python.extend(OWN.1);
    }
    let deny = !has_deny();
    let words: Vec<String> = [
        ("Rust targets", [&targets[..], rare].concat().join(", ")),
        ("Debian packages", debian.join(", ")),
        ("Python packages", python.join(", ").replace("--editable, ", "")),
        (
            "programs from crates.io",
            if deny { "cargo-deny" } else { "" }.to_owned(),
        ),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(kind, names)| format!("\n  {kind}: {names}"))
    .collect();
    if words.is_empty() {
        eprintln!("set-up: all that tests need is here");
        return Ok(());
    }
    eprintln!("set-up: what is missing and is installed now:{}", words.concat());
    rustup("target", &targets)?;
    if let Err(error) = rustup("target", rare) {
        eprintln!("{error}\nset-up: goes on without {RARE}");
    }
    apt(&debian)?;
    if !python.is_empty() {
        venv_with(&environment, &python)?;
    }
    if deny { build_deny() } else { Ok(()) }
}

/// The Python environment of this checkout.
fn environment() -> PathBuf {
    root().join(".venv")
}

/// Whether cargo-deny is there.
pub(in super::super) fn has_deny() -> bool {
    run_quietly("cargo", &["deny", "--version"]).is_some()
}

/// cargo-deny, not optimised: it is built longer than it ever runs.
pub(in super::super) fn build_deny() -> Result<()> {
    if has_deny() {
        return Ok(());
    }
    eprintln!("set-up: builds cargo-deny");
    let mut install = Command::new("cargo");
    install
        .args(["install", "cargo-deny", "--locked", "--debug"])
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .current_dir(root());
    run(&mut install)
        .map_err(|error| format!("{error}\ncargo-deny comes from crates.io: connect, or install it from a copy").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_the_modules_that_they_are_imported_by() {
        let all: Vec<_> = requirements().collect();
        assert!(all.contains(&("torch", "torch")) && all.contains(&("maturin", "maturin>=1.9,<2")));
        assert!(all.contains(&("ethosu.vela", "ethos-u-vela")));
        assert!(
            all.iter()
                .all(|(module, package)| !module.is_empty() && !package.contains(' '))
        );
    }
}
