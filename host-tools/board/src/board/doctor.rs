//! Programs and targets that boards need, and whether this machine has them.

use std::process::Command;

use arenite::KernelId;
use arenite::kernels::Backend;
use serde::Serialize;

use super::error::BoardError;
use super::install::{Manager, Step, remedy, rust_targets, take};
use super::qemu::find_program;
use super::table::{BOARDS, Board};
use super::unpack::unpack;
use super::{qemu, toolchain, workshop};
use crate::files::print;

/// One thing that is needed, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The thing: a program, a Rust target, a board.
    pub what: String,
    /// Its version or place; `None` where it is missing.
    pub found: Option<String>,
    /// How to get it; empty for what is there.
    pub remedy: String,
}

/// Whether everything is there to build for `board` and run on it.
///
/// # Errors
/// [`BoardError::ToolMissing`] or [`BoardError::TargetMissing`]: the first thing that is not there.
pub fn ready(board: &Board) -> Result<(), BoardError> {
    find_program(board.qemu).ok_or_else(|| qemu::missing(board))?;
    if workshop::at_hand(&board.slug(), "infer").is_some() {
        return Ok(());
    }
    match toolchain::has_target(board.triple) {
        Some(false) => Err(BoardError::TargetMissing {
            triple: board.triple.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Before this version qemu's 32-bit `SMOPA` mixes rows and columns up: it computes two sums at once of elements that are not neighbours
/// (<https://gitlab.com/qemu-project/qemu/-/issues/2083>).
const OUTER_PRODUCTS: [u32; 3] = [8, 2, 1];

/// Returns the backend whose kernels the board's emulator is known to compute wrongly, with the reason: its results prove nothing for these. The instructions
/// that they take are counted all the same.
pub fn miscomputes(board: &Board) -> Option<(Backend, String)> {
    if !board.runtime.contains(&"sme") {
        return None;
    }
    let line = program(board.qemu, "").found?;
    let numbers = line
        .split(' ')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let version: Vec<u32> = numbers.split('.').map_while(|number| number.parse().ok()).collect();
    (version.as_slice() < &OUTER_PRODUCTS[..]).then(|| {
        let mended = OUTER_PRODUCTS.map(|number| number.to_string()).join(".");
        let reason = format!("the emulator, of version {numbers}, computes SMOPA wrongly, mended in {mended}");
        (Backend::Sme, reason)
    })
}

/// Why the outputs of a file with these kernels prove nothing on `board`, where its emulator [miscomputes](miscomputes) one of them.
pub fn doubted(board: &Board, kernels: impl IntoIterator<Item = KernelId>) -> Option<String> {
    let (backend, reason) = miscomputes(board)?;
    let used = |kernel: KernelId| kernel.backend() == backend;
    kernels.into_iter().any(used).then_some(reason)
}

/// Looks for everything: the toolchain, its targets, the qemus, the firmware's sources, and per board whether it can run.
pub fn doctor() -> Vec<Finding> {
    let mut findings = vec![
        program("rustc", "get Rust from https://rustup.rs"),
        program("cargo", "get Rust from https://rustup.rs"),
    ];
    findings.extend(triples().into_iter().map(|triple| {
        let found = toolchain::has_target(triple) == Some(true);
        finding(
            format!("target {triple}"),
            found.then(|| "installed".to_owned()),
            &format!("rustup target add {triple}"),
        )
    }));
    let manager = Manager::here();
    findings.extend(qemus().into_iter().map(|name| program(name, &remedy(manager, name))));
    let sources = workshop::place();
    let remedy = sources.as_ref().err().map(ToString::to_string).unwrap_or_default();
    findings.push(finding("firmware sources".to_owned(), sources.ok(), &remedy));
    findings.extend(BOARDS.iter().map(|board| {
        let state = ready(board);
        let remedy = state.as_ref().err().map(ToString::to_string).unwrap_or_default();
        finding(
            format!("board {}", board.name),
            state.ok().map(|()| board.core.to_owned()),
            &remedy,
        )
    }));
    findings
}

/// The targets of all boards.
fn triples() -> Vec<&'static str> {
    let mut triples: Vec<_> = BOARDS.iter().map(|board| board.triple).collect();
    triples.sort_unstable();
    triples.dedup();
    triples
}

/// The qemus of all boards.
fn qemus() -> Vec<&'static str> {
    let mut qemus: Vec<_> = BOARDS.iter().map(|board| board.qemu).collect();
    qemus.sort_unstable();
    qemus.dedup();
    qemus
}

/// Steps that bring everything that is missing.
#[derive(Debug, Default)]
pub struct Remedies {
    /// The steps that install Rust's targets.
    pub targets: Vec<Step>,
    /// The steps that install the qemus, for [`take_qemus`].
    pub qemus: Vec<Step>,
    /// Findings that no step mends, with what to do about them.
    pub left: Vec<Finding>,
}

/// The steps that install what is missing, and what no step brings.
pub fn remedies() -> Remedies {
    let findings = doctor();
    let lacks = |what: &str| {
        findings
            .iter()
            .any(|finding| finding.what == what && finding.found.is_none())
    };
    let mut remedies = Remedies::default();
    let missing: Vec<_> = triples()
        .into_iter()
        .filter(|triple| lacks(&format!("target {triple}")))
        .collect();
    let has_rustup = starts("rustup", "--version");
    if has_rustup {
        remedies.targets = rust_targets(&missing);
    }
    let missing: Vec<_> = qemus().into_iter().filter(|qemu| lacks(qemu)).collect();
    let manager = Manager::here();
    remedies.qemus = manager.map_or_else(Vec::new, |manager| manager.steps(&missing, is_root()));
    for finding in &findings {
        let fixed = match finding.what.split_once(' ') {
            Some(("target", _)) => has_rustup,
            // A board lacks what is named before.
            Some(("board", _)) => true,
            _ => manager.is_some() && missing.contains(&finding.what.as_str()),
        };
        if finding.found.is_none() && !fixed {
            remedies.left.push(finding.clone());
        }
    }
    remedies
}

/// Takes the steps that install qemus. Where apt refuses, as it does where packages of this system would have to go, Debian's are unpacked into the cache's
/// own folder for them instead, where boards look as well.
///
/// # Errors
/// As [`super::install::take`], and why nothing could be unpacked.
pub fn take_qemus(steps: &[Step]) -> Result<(), String> {
    let Err(refused) = take(steps) else { return Ok(()) };
    let is_apt = steps
        .iter()
        .any(|step| step.command.iter().any(|word| word == "apt-get"));
    if !is_apt || !starts("dpkg-deb", "--version") {
        return Err(refused);
    }
    let folder = workshop::qemu_folder().map_err(|error| format!("{refused}\n{error}"))?;
    print::note(format_args!(
        "{refused}\nunpacks them into {} instead, which touches nothing of this system",
        folder.display()
    ));
    let programs = qemus();
    let mut packages: Vec<&str> = programs.iter().map(|qemu| Manager::Apt.package(qemu)).collect();
    packages.sort_unstable();
    packages.dedup();
    unpack(&packages, &programs, &folder).map_err(|error| format!("{refused}\nNor can they be unpacked: {error}"))
}

fn starts(program: &str, argument: &str) -> bool {
    Command::new(program)
        .arg(argument)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Whether this user may install programs for all. A system without that word has no `sudo` either.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.map_or(true, |output| String::from_utf8_lossy(&output.stdout).trim() == "0")
}

fn finding(what: String, found: Option<String>, remedy: &str) -> Finding {
    let remedy = if found.is_some() {
        String::new()
    } else {
        remedy.to_owned()
    };
    Finding { what, found, remedy }
}

/// A program with the first line of its `--version`.
fn program(name: &str, remedy: &str) -> Finding {
    let version = find_program(name)
        .and_then(|path| Command::new(path).arg("--version").output().ok())
        .filter(|output| output.status.success());
    let version = version.map(|output| {
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    finding(name.to_owned(), version, remedy)
}
