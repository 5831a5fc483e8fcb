//! `cargo xtask setup`: what is there is left alone, what is missing is named and installed.

pub(super) mod everything;

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_host::board::{BOARDS, install, ready, remedies, take_qemus};

use super::{Result, root, run};

const COMPONENTS: [&str; 2] = ["rustfmt", "clippy"];
const PYTHON_PACKAGES: [&str; 2] = ["numpy", "safetensors"];

fn run_quietly(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn prepare(python: bool) -> Result<()> {
    rust_targets()?;
    qemu()?;
    if python {
        venv()?;
    }
    let missing: Vec<_> = BOARDS
        .iter()
        .filter_map(|board| ready(board).err().map(|e| format!("{}: {e}", board.name)))
        .collect();
    if missing.is_empty() {
        eprintln!("set-up: complete, all {} boards can run", BOARDS.len());
        Ok(())
    } else {
        Err(format!("the set-up is not complete:\n  {}", missing.join("\n  ")).into())
    }
}

fn rust_targets() -> Result<()> {
    let mut wanted: Vec<_> = BOARDS.iter().map(|board| board.triple).collect();
    // Of programs that run on a board of the table, without compare-and-swap: firmware/tasks.
    wanted.push("riscv32imc-unknown-none-elf");
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|triple| lacks_target(triple));
    let components: Vec<_> = COMPONENTS
        .into_iter()
        .filter(|&name| {
            let subcommand = if name == "rustfmt" { "fmt" } else { name };
            run_quietly("cargo", &[subcommand, "--version"]).is_none()
        })
        .collect();
    rustup("target", &wanted)?;
    rustup("component", &components)
}

fn lacks_target(triple: &str) -> bool {
    let folder = run_quietly("rustc", &["--print", "target-libdir", "--target", triple]);
    !folder.is_some_and(|folder| PathBuf::from(folder.trim()).is_dir())
}

/// A target that no board has.
pub(super) fn rust_target(triple: &str) -> Result<()> {
    let missing: &[&str] = if lacks_target(triple) { &[triple] } else { &[] };
    rustup("target", missing)
}

/// A component that not every command needs.
pub(super) fn component(name: &str) -> Result<()> {
    rustup("component", &[name])
}

/// The machine that programs are built for where no target is stated.
pub(super) fn host_triple() -> Option<String> {
    let said = run_quietly("rustc", &["--version", "--verbose"])?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(line.to_string())
}

/// Installs targets or components.
fn rustup(what: &str, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    eprintln!("set-up: installs the Rust {what}s {}", names.join(", "));
    run(Command::new("rustup").args([what, "add"]).args(names)).map_err(|error| {
        format!(
            "{error}\nThe Rust {what}s come over the network from static.rust-lang.org. Offline, or with a toolchain that is not \
             rustup's, install them the way your toolchain came: {}",
            names.join(", ")
        )
        .into()
    })
}

/// Installs the qemus that are missing, as `arenite doctor --fix` does. [`prepare`] names all that no step brings.
fn qemu() -> Result<()> {
    let steps = remedies().qemus;
    if steps.is_empty() {
        return Ok(());
    }
    eprintln!("set-up: installs qemu");
    Ok(take_qemus(&steps)?)
}

/// Programs for C on a Cortex-M, and Debian's packages that bring them. The compiler's C library has none.
const CROSS: [(&str, &str); 4] = [
    ("gcc-arm-none-eabi", "arm-none-eabi-gcc"),
    ("libnewlib-arm-none-eabi", ""),
    ("cmake", "cmake"),
    ("make", "make"),
];

/// Installs what the tests of the library for C want, and skip without.
pub(super) fn cross() -> Result<()> {
    apt(&lacks_cross())
}

/// The packages of [`CROSS`] that are missing.
fn lacks_cross() -> Vec<&'static str> {
    let library = || run_quietly("arm-none-eabi-gcc", &["-print-file-name=rdimon.specs"]);
    let is_there = |program: &str| match program {
        // A file that the compiler has not is named as it was asked for.
        "" => library().is_some_and(|path| path.contains('/')),
        program => run_quietly(program, &["--version"]).is_some(),
    };
    let missing = CROSS.iter().filter(|(_, program)| !is_there(program));
    missing.map(|(package, _)| *package).collect()
}

fn apt(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    if run_quietly("apt-get", &["--version"]).is_none() {
        return Err(
            format!("{names} (Debian's names) are missing; install them with this system's package manager").into(),
        );
    }
    eprintln!("set-up: installs the Debian packages {names}");
    let root_user = run_quietly("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    let apt_get: &[&str] = if root_user { &["apt-get"] } else { &["sudo", "apt-get"] };
    install(apt_get, packages)
}

/// Shows what apt would do, then lets it; nothing that is installed is ever removed. `apt_get` is the program and what comes before
/// its arguments.
fn install(apt_get: &[&str], packages: &[&str]) -> Result<()> {
    Ok(install::take(&install::apt(apt_get, packages))?)
}

/// The Python of the references, where they are to run.
pub(super) fn python() -> Option<PathBuf> {
    let python = root().join(".venv/bin/python");
    let imports = format!("import {}", PYTHON_PACKAGES.join(", "));
    [python, PathBuf::from("python3")]
        .into_iter()
        .find(|python| run_quietly(&python.to_string_lossy(), &["-c", &imports]).is_some())
}

fn venv() -> Result<()> {
    if python().is_some() {
        return Ok(());
    }
    eprintln!("set-up: makes .venv with {}", PYTHON_PACKAGES.join(", "));
    venv_with(&root().join(".venv"), &PYTHON_PACKAGES)
}

/// Installs packages into an environment, which is made where there is none.
fn venv_with(folder: &Path, packages: &[&str]) -> Result<()> {
    let python = folder.join("bin/python");
    if run_quietly(&python.to_string_lossy(), &["-m", "pip", "--version"]).is_none() {
        if run_quietly("python3", &["-c", "import venv, ensurepip"]).is_none() {
            apt(&["python3", "python3-venv"])?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    }
    let mut install = Command::new(python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ]);
    // This checkout's own package, with what the tests compile.
    install.env("MATURIN_PEP517_ARGS", "--features suite");
    run(install.args(packages).current_dir(root())).map_err(|error| {
        format!(
            "{error}
The packages come from PyPI: connect, or install them into .venv from wheels that you copied over"
        )
        .into()
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A stand-in for apt-get that notes its arguments, a line a call, and refuses calls with the argument `refused`. A shell reads it:
    /// a program that this process wrote may not be started while another test's child still holds it open for writing.
    fn calls(refused: &str) -> (Result<()>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (apt_get, notes) = (folder.path().join("apt-get"), folder.path().join("notes"));
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> '{}'\ncase \"$*\" in *{refused}*) exit 100;; esac\n",
            notes.display()
        );
        std::fs::write(&apt_get, script).expect("written");
        let outcome = install(&["sh", &apt_get.to_string_lossy()], &["one", "two"]);
        let notes = std::fs::read_to_string(&notes).expect("apt-get was called");
        (outcome, notes.lines().map(str::to_string).collect())
    }

    #[test]
    fn apt_shows_its_plan_and_may_not_remove() {
        let (outcome, calls) = calls("never");
        outcome.expect("installed");
        let install = "install --no-remove --no-install-recommends";
        assert_eq!(
            calls,
            [
                "update".into(),
                format!("{install} --simulate one two"),
                format!("{install} --yes one two")
            ]
        );
    }

    #[test]
    fn a_plan_that_apt_refuses_is_not_tried() {
        let (outcome, calls) = calls("--simulate");
        assert!(outcome.expect_err("refused").to_string().contains("removed"));
        assert_eq!(calls.len(), 2, "{calls:?}");
    }

    #[test]
    fn without_package_lists_the_installation_is_still_tried() {
        let (outcome, calls) = calls("update");
        outcome.expect("installed");
        assert_eq!(calls.len(), 3, "{calls:?}");
    }
}
