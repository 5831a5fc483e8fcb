//! The programs as functions, for callers in this process: the words of a command line in, what the program prints out. Of it
//! nothing goes to the process's own streams, but an output that is called `-`; results are the programs', byte for byte.

use std::ffi::OsString;
use std::time::Duration;

use arenite::Port;

use super::machine::Machine;
use super::outcome::{How, execute};
use super::program::{Verdict, read};
pub use super::progress::Watch;
use super::progress::watched;
use super::run::stack;
use super::{Cli, Command, pack};
pub use crate::array::{Array, Sequence};
use crate::files::print::{captured, note};
use crate::model::ModelFile;
use crate::{Error, ErrorKind, Result};

/// Everything that a program printed, and how it ended.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// All of standard output.
    pub text: String,
    /// The lines of standard error: assumptions, warnings, conversions.
    pub notes: Vec<String>,
    /// Whether it ended with 0; where not, what was asked is done and its answer is no.
    pub good: bool,
}

/// Carries out a command line: `words` are those of `pack` or `arenite`, the program's name first. `watch` is told how far it has come;
/// where it unwinds, the work ends there and leaves no output file behind.
///
/// # Errors
/// Those of the program; [`ErrorKind::Usage`] for words that it does not take.
pub fn call(words: Vec<OsString>, watch: Watch) -> Result<Answer> {
    let program = words.first().cloned().unwrap_or_default();
    let work = || match program.to_str() {
        Some("pack") => read(words).and_then(pack::run),
        Some("arenite") => match read::<Cli>(words)? {
            Cli {
                command: Command::Watch(_),
            } => Err(
                Error::new(ErrorKind::Usage, "`arenite watch` goes on until somebody interrupts it")
                    .help("run it in a terminal"),
            ),
            cli => super::work(cli),
        },
        _ => {
            Err(Error::new(ErrorKind::Usage, format!("no program `{}`", program.display())).expected("pack or arenite"))
        }
    };
    let (verdict, printed) = captured(|| watched(watch, work));
    Ok(Answer {
        good: verdict? == Verdict::Good,
        text: printed.out,
        notes: printed.notes,
    })
}

/// Outputs of a model's runs.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Each output, with one more leading axis where the inputs had it.
    pub outputs: Vec<Array>,
    /// Instructions of each run on a board; empty on the host.
    pub instructions: Vec<u64>,
    /// Conversions of inputs, and known faults of the board's emulator.
    pub notes: Vec<String>,
}

/// Runs a model as `arenite run` does. `inputs` are in the order of the model's; `on` is as of `--on`; a board gets `timeout` of wall time.
///
/// # Errors
/// Those of `arenite run`.
pub fn run(
    file: &ModelFile,
    inputs: &[Array],
    on: &str,
    reset_each: bool,
    timeout: Duration,
    watch: Watch,
) -> Result<Ran> {
    let machine = on
        .parse::<Machine>()
        .map_err(|e| Error::new(ErrorKind::Usage, format!("--on {on}: {e}")))?;
    let work = || -> Result<_> {
        let view = file.view()?;
        let sequence = sequence(&view.inputs, inputs)?;
        let how = How {
            reset_each,
            profile: false,
            timeout,
        };
        let outcome = execute(file, machine, &sequence.runs, how)?;
        let outputs = stack(&outcome, &view.outputs, sequence.stacked);
        Ok((outputs, outcome.instructions))
    };
    let (result, printed) = captured(|| watched(watch, work));
    let (outputs, instructions) = result?;
    Ok(Ran {
        outputs,
        instructions,
        notes: printed.notes,
    })
}

/// The runs that arrays hold for these inputs. Conversions are noted.
///
/// # Errors
/// [`ErrorKind::Input`] for another number of arrays, their shapes and element types, and different numbers of runs.
pub fn sequence(ports: &[Port<'_>], inputs: &[Array]) -> Result<Sequence> {
    if inputs.len() != ports.len() {
        return Err(Error::input(format!("{} inputs", inputs.len())).expected(ports.len()));
    }
    let mut all = Vec::with_capacity(ports.len());
    for (array, port) in inputs.iter().zip(ports) {
        let (runs, converted) = array.runs(port)?;
        if let Some(text) = converted {
            note(text);
        }
        all.push(runs);
    }
    Sequence::of(ports, all, |_, error| error)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/models/digits/digits.trace.json");

    fn called(words: &[&str]) -> Result<Answer> {
        call(words.iter().map(OsString::from).collect(), Box::new(|_, _, _| {}))
    }

    fn packed(path: &Path) -> ModelFile {
        let output = path.to_str().expect("a name");
        let answer = called(&["pack", DIGITS, "-o", output]).expect("packed");
        assert!(answer.good && answer.text.starts_with("digits"), "{answer:?}");
        ModelFile::open(path).expect("a model")
    }

    #[test]
    fn commands_answer_instead_of_printing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.bin");
        packed(&path);
        let path = path.to_str().expect("a name");
        let answer = called(&["arenite", "inspect", path, "--json"]).expect("inspected");
        assert!(answer.text.contains("\"arena_bytes\": 4472"), "{}", answer.text);
        for (words, kind, text) in [
            (
                &["tar", "x"][..],
                ErrorKind::Usage,
                "no program `tar`; expected pack or arenite",
            ),
            (&[], ErrorKind::Usage, "no program ``"),
            (
                &["arenite", "watch", DIGITS],
                ErrorKind::Usage,
                "`arenite watch` goes on until somebody interrupts it",
            ),
            (
                &["pack", DIGITS],
                ErrorKind::Usage,
                "the following required arguments were not provided",
            ),
            (
                &["pack", DIGITS, "-o", "m", "--cores", "x"],
                ErrorKind::Usage,
                "expected a whole number",
            ),
            (
                &["pack", DIGITS, "-o", "m", "--stream-output"],
                ErrorKind::Unsupported,
                "--stream-output is not built yet",
            ),
            (
                &["arenite", "inspect", "none.bin"],
                ErrorKind::Io,
                "cannot read the model",
            ),
        ] {
            let error = called(words).expect_err(text);
            assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn runs_are_checked_as_the_program_checks_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = packed(&folder.path().join("m.bin"));
        let run = |inputs: &[Array], on: &str| {
            let hour = Duration::from_secs(3600);
            run(&file, inputs, on, false, hour, Box::new(|_, _, _| {}))
        };
        let image = |runs: usize| Array::of_bytes(&[runs, 1, 1, 8, 8], arenite::DType::F32, &vec![0; runs * 256]);
        let ran = run(&[image(3)], "host").expect("runs");
        assert_eq!((ran.outputs[0].shape.as_slice(), ran.notes.len()), (&[3, 1, 10][..], 0));
        let two = [image(1), image(1)];
        for (inputs, on, text) in [
            (&two[..], "host", "2 inputs; expected 1"),
            (&two[..1], "qemu:x", "--on qemu:x: expected host, serial:PORT, qemu:"),
        ] {
            let error = run(inputs, on).expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
