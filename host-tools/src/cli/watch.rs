//! `arenite watch`: packs again when a file changes, counts on a board, and says what became of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use super::compare::{self, Side};
use super::machine::Machine;
use super::outcome::{How, execute};
use super::program::Verdict;
use crate::error::{Error, ErrorKind, Result};
use crate::files::print;
use crate::files::scratch::Scratch;
use crate::model::ModelFile;

/// How often the files are looked at. A change counts once they have kept still for as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of `arenite watch`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The network, as `pack` takes it.
    input: PathBuf,
    /// Where each model is run, on zeros: qemu:BOARD counts instructions. Without it sizes and steps are compared alone.
    #[arg(long, value_name = "qemu:BOARD")]
    on: Option<Machine>,
    /// The wall time that a board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Options of `pack`, after `--`. Files among them are watched too. The target is the board's where none is given.
    #[arg(last = true, value_name = "OPTIONS OF PACK")]
    options: Vec<OsString>,
}

/// Goes on until a signal ends it.
pub(super) fn run(args: &Args) -> Result<Verdict> {
    if let Some(option) = args.options.iter().find(|&option| is_output(option)) {
        let message = format!("{}: the models that are compared are temporary files", option.display());
        return Err(Error::new(ErrorKind::Usage, message).help("run `pack` for a file to keep"));
    }
    if !args.input.is_file() {
        let message = format!("{} is no file that could change", args.input.display());
        return Err(Error::new(ErrorKind::Input, message).expected("a trace, or a .tflite, .onnx or .pt2 file"));
    }
    let pack = pack_program()?;
    let scratch = Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a temporary folder", &e))?;
    let mut last: Option<Side> = None;
    for turn in 0u64.. {
        let seen = stamps(args);
        let output = scratch.path().join(format!("{turn}.bin"));
        match packed(&pack, args, &output) {
            Ok(Some(side)) => {
                print::out(&told(last.as_ref(), &side)?)?;
                last = Some(side);
            }
            // `pack` has said why.
            Ok(None) => {}
            Err(error) => print::note(&error),
        }
        // Mapped, or not there: its name is not needed any more.
        let _ = fs::remove_file(&output);
        print::out(&format!("\nwaiting for a change of {}\n", args.input.display()))?;
        wait(args, seen);
    }
    Ok(Verdict::Good)
}

fn is_output(option: &OsStr) -> bool {
    let text = option.to_string_lossy();
    text == "--output" || text.starts_with("--output=") || (text.starts_with("-o") && !text.starts_with("--"))
}

/// The program `pack`, which lies beside this one.
fn pack_program() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| Error::io(Path::new("arenite"), "find this program", &e))?;
    let pack = own
        .with_file_name("pack")
        .with_extension(std::env::consts::EXE_EXTENSION);
    if pack.is_file() {
        return Ok(pack);
    }
    let message = format!("{} is missing", pack.display());
    Err(Error::new(ErrorKind::Input, message).help("`cargo install --path host-tools` installs both programs"))
}

/// The model of the files as they are; none where `pack` refuses them.
fn packed(pack: &Path, args: &Args, output: &Path) -> Result<Option<Side>> {
    let mut command = Command::new(pack);
    command.arg(&args.input).arg("-o").arg(output).args(&args.options);
    let asked = args.options.iter().any(|option| {
        let text = option.to_string_lossy();
        text == "--target" || text.starts_with("--target=")
    });
    if let (Some(Machine::Board(board)), false) = (args.on, asked) {
        // The last is the one with most of the board's instructions.
        command.args(board.targets.last().map(|target| format!("--target={target}")));
    }
    let done = command.output().map_err(|e| Error::io(pack, "start", &e))?;
    // Its errors and warnings; what it says on success is in the figures.
    print::note(String::from_utf8_lossy(&done.stderr).trim_end());
    if !done.status.success() {
        return Ok(None);
    }
    let file = ModelFile::open(output)?;
    let outcome = match args.on {
        None => None,
        Some(machine) => {
            let view = file.view()?;
            let zeros = view
                .inputs
                .iter()
                .map(|port| vec![0; port.bytes().unwrap_or(0) as usize]);
            let how = How {
                reset_each: false,
                profile: matches!(machine, Machine::Board(_)),
                timeout: Duration::from_secs(args.timeout),
            };
            Some(execute(&file, machine, &[zeros.collect()], how)?)
        }
    };
    Ok(Some(Side { file, outcome }))
}

/// All figures of the first model, what is new of later ones.
fn told(last: Option<&Side>, now: &Side) -> Result<String> {
    let Some(last) = last else {
        let report = compare::report(now, now)?;
        return Ok(compare::table(&report, ["", "now"], |_| true));
    };
    let report = compare::report(last, now)?;
    let names = ["before", "now"];
    let steps = compare::steps(&report, names);
    if report.same_figures() {
        return Ok(format!("\nno figure has changed\n{steps}"));
    }
    Ok(compare::table(&report, names, |figure| !figure.same()) + &steps)
}

/// When the input and the files among the options changed last, and how long they are; none of what is not there.
fn stamps(args: &Args) -> Vec<Option<(SystemTime, u64)>> {
    let values = args.options.iter().map(|option| {
        let text = option.to_string_lossy();
        PathBuf::from(text.split_once('=').map_or(text.as_ref(), |(_, value)| value))
    });
    let files = std::iter::once(args.input.clone()).chain(values);
    files
        .map(|file| {
            let about = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
            Some((about.modified().ok()?, about.len()))
        })
        .collect()
}

/// Until the files are not as they were, and are not being written.
fn wait(args: &Args, seen: Vec<Option<(SystemTime, u64)>>) {
    let mut last = seen.clone();
    loop {
        thread::sleep(PAUSE);
        let now = stamps(args);
        // One that is gone is about to be replaced.
        if now != seen && now == last && now.first().is_some_and(Option::is_some) {
            return;
        }
        last = now;
    }
}
