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

/// Packages of Python by their modules: PyTorch with what quantises and tests it, the notebook's digits, the compiler for Ethos-U, what builds wheels, this
/// checkout's own package.
const PYTHON: [(&str, &[&str]); 8] = [
    ("torch", &["torch"]),
    ("torchao", &["torchao"]),
    ("pytest", &["pytest"]),
    ("sklearn", &["scikit-learn"]),
    ("ethosu.vela", &["ethos-u-vela"]),
    ("maturin", &["maturin>=1.9,<2"]),
    ("arenite_trace", &["--editable", "host-tools/python"]),
    // Packages that a new environment has, and an old one may not.
    ("numpy, safetensors", &["numpy", "safetensors"]),
];

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
    let python: Vec<&[&str]> = PYTHON
        .into_iter()
        .filter(|(module, _)| {
            let python = environment.join("bin/python").display().to_string();
            run_quietly(&python, &["-c", &format!("import {module}")]).is_none()
        })
        .map(|(_, packages)| packages)
        .collect();
    let deny = !has_deny();
    let words: Vec<String> = [
        ("Rust targets", [&targets[..], rare].concat().join(", ")),
        ("Debian packages", debian.join(", ")),
        (
            "Python packages",
            python
                .iter()
                .filter_map(|packages| packages.last())
                .copied()
                .collect::<Vec<_>>()
                .join(", "),
        ),
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
        venv_with(&environment, &python.concat())?;
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
