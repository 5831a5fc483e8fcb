//! Installs what boards need, in steps that are named before they are taken.

use std::fmt;
use std::io;
use std::process::{Command, Stdio};

use crate::files::print;

/// Package managers that install programs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// Debian's and Ubuntu's.
    Apt,
    /// Fedora's.
    Dnf,
    /// Arch Linux's.
    Pacman,
    /// Of macOS.
    Homebrew,
    /// Of Windows.
    Winget,
}

/// A command that changes this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub(super) command: Vec<String>,
    /// Whether what follows is tried even where this fails.
    may_fail: bool,
    /// Advice for when the step fails.
    help: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command.join(" "))
    }
}

const APT: [&str; 3] = ["install", "--no-remove", "--no-install-recommends"];

impl Manager {
    /// Of this system; `None` for one that nothing is known of.
    pub fn here() -> Option<Self> {
        let starts = |program: &&str| {
            let mut command = Command::new(program);
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
            command
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let of_linux = [("apt-get", Self::Apt), ("dnf", Self::Dnf), ("pacman", Self::Pacman)];
        match std::env::consts::OS {
            "windows" => Some(Self::Winget),
            "macos" => Some(Self::Homebrew),
            _ => of_linux
                .into_iter()
                .find(|(program, _)| starts(program))
                .map(|(_, manager)| manager),
        }
    }

    /// The package that brings a qemu.
    pub(super) fn package(self, qemu: &str) -> &str {
        match (self, qemu) {
            (Self::Homebrew, _) => "qemu",
            (Self::Winget, _) => "SoftwareFreedomConservancy.QEMU",
            (Self::Apt, "qemu-system-riscv32" | "qemu-system-riscv64") => "qemu-system-misc",
            (Self::Apt, _) => "qemu-system-arm",
            (Self::Dnf, "qemu-system-riscv32" | "qemu-system-riscv64") => "qemu-system-riscv",
            (Self::Dnf | Self::Pacman, other) => other,
        }
    }

    /// Returns the steps that install programs which bring `qemus`; `as_root` where the user is root already.
    pub fn steps(self, qemus: &[&str], as_root: bool) -> Vec<Step> {
        let mut packages: Vec<&str> = qemus.iter().map(|qemu| self.package(qemu)).collect();
        packages.sort_unstable();
        packages.dedup();
        if packages.is_empty() {
            return Vec::new();
        }
        let sudo: &[&str] = if as_root { &[] } else { &["sudo"] };
        let plain: &[&str] = match self {
            Self::Apt => return apt(&[sudo, &["apt-get"]].concat(), &packages),
            Self::Dnf => &["dnf", "install", "--assumeyes"],
            Self::Pacman => &["pacman", "--sync", "--needed", "--noconfirm"],
            Self::Homebrew => &["brew", "install"],
            Self::Winget => &["winget", "install", "--exact", "--id"],
        };
        let sudo = if matches!(self, Self::Homebrew | Self::Winget) {
            &[]
        } else {
            sudo
        };
        vec![step(
            &[sudo, plain, &packages].concat(),
            "qemu is at https://www.qemu.org/download",
        )]
    }
}

/// How to get a qemu here; without a known manager, how everywhere.
pub(super) fn remedy(manager: Option<Manager>, qemu: &str) -> String {
    let command = |manager: Manager| {
        let last = manager.steps(&[qemu], true).pop();
        last.map(|step| step.to_string().replace(" --yes", ""))
            .unwrap_or_default()
    };
    match manager {
        Some(manager) => command(manager),
        None => format!(
            "Debian: {}; Fedora: {}; macOS: {}; Windows: {}",
            command(Manager::Apt),
            command(Manager::Dnf),
            command(Manager::Homebrew),
            command(Manager::Winget)
        ),
    }
}

fn step(command: &[&str], help: &str) -> Step {
    Step {
        command: command.iter().map(ToString::to_string).collect(),
        may_fail: false,
        help: help.to_owned(),
    }
}

/// apt shows what it would do, then does it; nothing that is installed is ever removed. `apt_get` is the program and what comes before its arguments.
pub fn apt(apt_get: &[&str], packages: &[&str]) -> Vec<Step> {
    let with = |last: &'static str| [apt_get, &APT, &[last], packages].concat();
    let help = format!(
        "The packages come from Debian's mirrors: connect, or copy them over, and run `apt-get {} {}` as root. \
         Where apt says that packages need to be removed, this system's own come from elsewhere: nothing was changed",
        APT.join(" "),
        packages.join(" ")
    );
    // Package lists may be old or absent; without a network the installation may still find its files in the cache.
    let update = Step {
        may_fail: true,
        ..step(&[apt_get, &["update"]].concat(), "")
    };
    vec![update, step(&with("--simulate"), &help), step(&with("--yes"), &help)]
}

/// Installs Rust's targets.
pub fn rust_targets(triples: &[&str]) -> Vec<Step> {
    let help = format!(
        "The Rust targets come over the network from static.rust-lang.org. Offline, or with a toolchain that is not rustup's, install them the way \
         your toolchain came: {}",
        triples.join(", ")
    );
    let command = [&["rustup", "target", "add"], triples].concat();
    if triples.is_empty() {
        Vec::new()
    } else {
        vec![step(&command, &help)]
    }
}

/// Takes the steps, each named on standard error, where what they say goes as well.
///
/// # Errors
/// Which step failed and what to do then, for people.
pub fn take(steps: &[Step]) -> Result<(), String> {
    for step in steps {
        print::note(format_args!("$ {step}"));
        let [program, arguments @ ..] = &step.command[..] else {
            continue;
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(io::stderr());
        let failed = match command.env("DEBIAN_FRONTEND", "noninteractive").status() {
            Ok(status) if status.success() => continue,
            Ok(status) => format!("`{step}` ended with {status}"),
            Err(error) => format!("`{step}` does not start: {}", crate::error::reason(&error)),
        };
        if !step.may_fail {
            return Err(format!("{failed}\n{}", step.help));
        }
        print::note(failed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(steps: &[Step]) -> Vec<String> {
        steps.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_system_has_its_command() {
        let both = ["qemu-system-arm", "qemu-system-riscv32", "qemu-system-riscv64"];
        let install = "sudo apt-get install --no-remove --no-install-recommends";
        let packages = "qemu-system-arm qemu-system-misc";
        assert_eq!(
            told(&Manager::Apt.steps(&both, false)),
            [
                "sudo apt-get update".to_owned(),
                format!("{install} --simulate {packages}"),
                format!("{install} --yes {packages}")
            ]
        );
        assert_eq!(
            told(&Manager::Dnf.steps(&both, true)),
            ["dnf install --assumeyes qemu-system-arm qemu-system-riscv"]
        );
        assert_eq!(told(&Manager::Homebrew.steps(&both, false)), ["brew install qemu"]);
        assert_eq!(
            told(&Manager::Winget.steps(&both, false)),
            ["winget install --exact --id SoftwareFreedomConservancy.QEMU"]
        );
        assert_eq!(told(&Manager::Apt.steps(&[], true)), [""; 0]);
        assert_eq!(told(&rust_targets(&["a", "b"])), ["rustup target add a b"]);
    }

    #[test]
    fn an_unknown_system_hears_of_all() {
        let text = remedy(None, "qemu-system-arm");
        for part in ["apt-get", "dnf", "brew", "winget"] {
            assert!(text.contains(part), "{text}");
        }
        let debian = remedy(Some(Manager::Apt), "qemu-system-riscv64");
        assert_eq!(
            debian,
            "apt-get install --no-remove --no-install-recommends qemu-system-misc"
        );
    }

    #[test]
    fn a_step_that_fails_ends_the_work_and_says_what_to_do() {
        let error = take(&[step(&["false"], "help it"), step(&["never-started"], "")]).expect_err("refused");
        assert!(
            error.starts_with("`false` ended with ") && error.ends_with("\nhelp it"),
            "{error}"
        );
        let absent = take(&[step(&["arenite-no-such-program"], "help")]).expect_err("refused");
        assert!(absent.contains("does not start"), "{absent}");
        let update = Step {
            may_fail: true,
            ..step(&["false"], "")
        };
        take(&[update, step(&["true"], "")]).expect("goes on");
    }
}
