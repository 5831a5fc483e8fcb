//! `arenite flash`: a program or a model onto a chip, by probe-rs.

use std::path::PathBuf;
use std::process::Command;

use arenite::{Bundle, Header};

use super::program::Verdict;
use crate::board::find_program;
use crate::chips;
use crate::files::print;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite flash`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An ELF file, or a model file for a partition of its own.
    file: PathBuf,
    /// The chip, by its whole name or part number.
    #[arg(long, value_name = "NAME")]
    chip: String,
    /// Where a model goes: a multiple of 16.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    address: Option<u64>,
    /// Prints the commands instead of running them.
    #[arg(long)]
    dry_run: bool,
}

fn address(text: &str) -> std::result::Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| "expected an address like 0x08060000".to_string())
}

/// The beginning of an ELF file.
const ELF: &[u8] = b"\x7fELF";

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let chip = chips::named(&args.chip)?;
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    let Some(probe) = chip.probe else {
        return Err(
            usage(format!("{} is emulated: there is nothing to flash", chip.name)).help(format!(
                "`arenite run MODEL --on qemu:{}`, or `cargo run` in a project of `arenite new`",
                chip.name
            )),
        );
    };
    let io = |e: std::io::Error| Error::io(&args.file, "read the file", &e);
    let bytes = std::fs::read(&args.file).map_err(io)?;
    let mut download = vec!["download".to_string(), "--chip".into(), probe.into(), "--verify".into()];
    if bytes.starts_with(ELF) {
        if args.address.is_some() {
            return Err(usage(
                "--address with an ELF file, which says itself where it goes".into(),
            ));
        }
    } else {
        let content = arenite::content(&bytes);
        if !Bundle::is_bundle(content) && Header::parse(content).is_err() {
            return Err(Error::input("it is neither a program nor a model")
                .in_file(&args.file)
                .expected("an ELF file or a model file")
                .help("cargo build writes the one, pack the other"));
        }
        let address = args.address.ok_or_else(|| {
            usage("a model goes to the partition that the program reads it from".into())
                .expected("--address ADDRESS")
                .help("docs/firmware.md says how to lay a partition out")
        })?;
        let (len, flash) = (bytes.len() as u64, chip.flash);
        let inside = address >= flash.start
            && address
                .checked_add(len)
                .is_some_and(|end| end <= flash.start + flash.size);
        if !inside || address % 16 != 0 {
            return Err(
                Error::new(ErrorKind::DoesNotFit, format!("{len} bytes at {address:#x}"))
                    .in_file(&args.file)
                    .expected(format!(
                        "a multiple of 16, in the flash of {}: {:#x} to {:#x}",
                        chip.name,
                        flash.start,
                        flash.start + flash.size
                    )),
            );
        }
        download.extend([
            "--binary-format".into(),
            "bin".into(),
            "--base-address".into(),
            format!("{address:#x}"),
        ]);
    }
    download.push(args.file.display().to_string());
    let reset = vec!["reset".to_string(), "--chip".into(), probe.into()];
    if args.dry_run {
        let line = |arguments: &[String]| format!("probe-rs {}\n", arguments.join(" "));
        print::out(&format!("{}{}", line(&download), line(&reset)))?;
        return Ok(Verdict::Good);
    }
    let program = find_program("probe-rs").ok_or_else(|| {
        Error::new(ErrorKind::Io, "probe-rs is not installed")
            .help("get it from https://probe.rs; --dry-run prints what it would be told")
    })?;
    for arguments in [download, reset] {
        let failed = |why: String| {
            Error::new(ErrorKind::Io, format!("probe-rs {} failed: {why}", arguments[0]))
                .in_file(&args.file)
                .help("its own messages are above; is the board connected, and the chip the right one?")
        };
        let status = Command::new(&program)
            .args(&arguments)
            .status()
            .map_err(|e| failed(e.to_string()))?;
        if !status.success() {
            return Err(failed(status.to_string()));
        }
    }
    print::out(&format!("{}: on the {}\n", args.file.display(), chip.name))?;
    Ok(Verdict::Good)
}
