//! Debian packages unpacked into a folder of one's own, where installing them would remove what the system has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::reason;
use crate::files::print;

/// Starts a program of the folder with the libraries and the data that were unpacked beside it.
const STARTER: &str = r#"#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
for folder in "$here"/lib/*-linux-gnu "$here"/usr/lib/*-linux-gnu; do
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
exec "$here/usr/bin/$(basename "$0")" -L "$here/usr/share/qemu" "$@"
"#;

/// Downloads `packages` with what they lack, unpacks all of it into `folder` and puts a starter of each of `programs` into its `bin`.
/// Nothing of the system is touched, and no rights are needed. A folder that was begun and not finished is made anew.
///
/// # Errors
/// Which program or file failed, for people.
pub(super) fn unpack(packages: &[&str], programs: &[&str], folder: &Path) -> Result<(), String> {
    let plan = Command::new("apt-get")
        .args(["install", "--no-install-recommends", "--simulate"])
        .args(packages)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("`apt-get` does not start: {}", reason(&error)))?;
    let wanted = to_install(&String::from_utf8_lossy(&plan.stdout));
    if !plan.status.success() || wanted.is_empty() {
        return Err(format!("apt-get knows no way to install {}", packages.join(" ")));
    }
    let written = |error: io::Error| format!("{}: {}", folder.display(), reason(&error));
    let beside = folder.with_extension("part");
    removed(&beside).and_then(|()| removed(folder)).map_err(written)?;
    let archives = beside.join("archives");
    fs::create_dir_all(&archives).map_err(written)?;
    let mut download = Command::new("apt-get");
    run(download
        .args(["download", "--quiet"])
        .args(&wanted)
        .current_dir(&archives))?;
    for archive in fs::read_dir(&archives).map_err(written)? {
        let mut extract = Command::new("dpkg-deb");
        let archive = archive.map_err(written)?.path();
        run(extract.arg("--extract").arg(archive).arg(&beside))?;
    }
    removed(&archives).map_err(written)?;
    for program in programs {
        start(&beside.join("bin"), program).map_err(written)?;
    }
    fs::rename(&beside, folder).map_err(written)
}

/// Runs a command, named on standard error, where what it says goes as well.
fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let line = words.join(" ");
    print::note(format_args!("$ {line}"));
    match command.stdin(Stdio::null()).stdout(io::stderr()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}` does not start: {}", reason(&error))),
    }
}

fn removed(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The packages with versions that a simulated installation names: `Inst NAME [OLD] (VERSION SOURCE [ARCHITECTURE])`.
fn to_install(plan: &str) -> Vec<String> {
    let package = |line: &str| {
        let line = line.strip_prefix("Inst ")?;
        let (name, _) = line.split_once(' ')?;
        let (_, version) = line.split_once('(')?;
        let (version, _) = version.split_once(' ')?;
        Some(format!("{name}={version}"))
    };
    plan.lines().filter_map(package).collect()
}

fn start(folder: &Path, program: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(program);
    fs::write(&path, STARTER)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_packages_with_their_versions() {
        let plan = "Reading package lists...\nRemv old [1:10.0]\nInst one (2.1-3 Debian:12/stable [amd64])\n\
                    Inst two [1.0] (1:2.0 Debian:12/stable, Debian-Security:12 [all])\nConf one (2.1-3 Debian [amd64])\n";
        assert_eq!(to_install(plan), ["one=2.1-3", "two=1:2.0"]);
    }

    #[test]
    fn a_program_starts_with_the_libraries_beside_it() {
        let root = tempfile::tempdir().expect("a folder");
        let inside = root.path().join("usr/lib/here-linux-gnu");
        fs::create_dir_all(&inside).expect("made");
        let started = start(&root.path().join("bin"), "program").expect("written");
        let real = start(&root.path().join("usr/bin"), "program").expect("written");
        // A program written by this process may not be started while another test's child still holds it open for writing: another process writes the program,
        // and a shell reads the starter.
        fs::remove_file(&real).expect("removed");
        let write = r#"printf '#!/bin/sh\necho "$LD_LIBRARY_PATH|$*"\n' > "$0" && chmod 755 "$0""#;
        let written = Command::new("sh").args(["-c", write]).arg(&real).status();
        assert!(written.expect("starts").success());
        let output = Command::new("sh").arg(started).arg("--version").output().expect("runs");
        let said = String::from_utf8(output.stdout).expect("text");
        let (libraries, arguments) = said.trim().split_once('|').expect("both");
        assert!(libraries.contains("/usr/lib/here-linux-gnu"), "{libraries}");
        assert!(arguments.ends_with("/usr/share/qemu --version"), "{arguments}");
    }
}
