//! `cargo xtask setup`: what is there is left alone, what is missing is named and installed.

use std::path::PathBuf;
use std::process::Command;

use arenite_host::board::{BOARDS, ready};

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
    match missing.is_empty() {
        true => {
            eprintln!("set-up: complete, all {} boards can run", BOARDS.len());
            Ok(())
        }
        false => Err(format!("the set-up is not complete:\n  {}", missing.join("\n  ")).into()),
    }
}

fn rust_targets() -> Result<()> {
    let mut wanted: Vec<_> = BOARDS.iter().map(|board| board.triple).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let lacks = |triple: &&str| {
        let folder = run_quietly("rustc", &["--print", "target-libdir", "--target", triple]);
        !folder.is_some_and(|folder| PathBuf::from(folder.trim()).is_dir())
    };
    wanted.retain(lacks);
    let components: Vec<_> = COMPONENTS
        .into_iter()
        .filter(|&name| {
            let subcommand = if name == "rustfmt" { "fmt" } else { name };
            run_quietly("cargo", &[subcommand, "--version"]).is_none()
        })
        .collect();
    for (what, names) in [("target", wanted), ("component", components)] {
        if names.is_empty() {
            continue;
        }
        eprintln!("set-up: installs the Rust {what}s {}", names.join(", "));
        run(Command::new("rustup").args([what, "add"]).args(&names)).map_err(|error| {
            format!(
                "{error}\nThe Rust {what}s come over the network from static.rust-lang.org. Offline, or with a toolchain that is not \
                 rustup's, install them the way your toolchain came: {}",
                names.join(", ")
            )
        })?;
    }
    Ok(())
}

/// Debian's packages by the programs that they bring.
fn qemu() -> Result<()> {
    let packages = [
        ("qemu-system-arm", &["qemu-system-arm", "qemu-system-aarch64"]),
        ("qemu-system-misc", &["qemu-system-riscv32", "qemu-system-riscv64"]),
    ];
    let lacks = |program: &&str| run_quietly(program, &["--version"]).is_none();
    let missing: Vec<_> = packages
        .iter()
        .filter(|(_, programs)| programs.iter().any(lacks))
        .map(|(package, _)| *package)
        .collect();
    apt(&missing)
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
    let apt_get = |arguments: &[&str]| {
        let mut command = match root_user {
            true => Command::new("apt-get"),
            false => {
                let mut sudo = Command::new("sudo");
                sudo.arg("apt-get");
                sudo
            }
        };
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        run(&mut command)
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    // Package lists may be old or absent; without a network the installation may still find its files in the cache.
    let updated = apt_get(&["update"]);
    apt_get(&install).map_err(|error| {
        let updated = updated.err().map(|e| format!("\n{e}")).unwrap_or_default();
        format!(
            "{error}{updated}\nThe packages come from Debian's mirrors: connect, or copy them over, and run \
             `apt-get install --no-install-recommends {names}` as root"
        )
        .into()
    })
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
    if run_quietly("python3", &["-c", "import venv, ensurepip"]).is_none() {
        apt(&["python3", "python3-venv"])?;
    }
    eprintln!("set-up: makes .venv with {}", PYTHON_PACKAGES.join(", "));
    let folder = root().join(".venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet"];
    run(Command::new(folder.join("bin/python"))
        .args(install)
        .args(PYTHON_PACKAGES))
    .map_err(|error| {
        format!(
            "{error}\nThe packages come from PyPI: connect, or install them into .venv from wheels that you copied over"
        )
        .into()
    })
}
