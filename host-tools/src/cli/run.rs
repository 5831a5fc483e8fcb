//! `arenite run`: a model on NumPy files.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::Port;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::machine::Machine;
use super::opened::Opened;
use super::outcome::{How, Outcome, StepFigures};
use super::program::{Verdict, print_json};
use crate::array::{Array, Runs, Sequence};
use crate::error::one_line;
use crate::files::{self, Output, Print};
use crate::report::grouped;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// A NumPy file for each input, in order or by name. One more leading axis than the input's makes a sequence of runs.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1.., required = true)]
    input: Vec<String>,
    /// Where each output goes, in order or by name; stacked where the inputs were.
    #[arg(long, value_name = "[NAME=]Y.npy", num_args = 1..)]
    output: Vec<String>,
    /// Where to run: host, qemu:BOARD, or a board at a serial port: serial:PORT or serial:PORT:BAUD.
    #[arg(long, value_name = "host|qemu:BOARD|serial:PORT", default_value = "host")]
    on: Machine,
    /// Starts with a state that `arenite train` saved.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Starts each run of a sequence with fresh state.
    #[arg(long)]
    reset_each: bool,
    /// Counts every step: instructions on a board, nanoseconds on the host; of the last run.
    #[arg(long)]
    profile: bool,
    /// Prints the result as JSON on stdout.
    #[arg(long)]
    json: bool,
    /// The wall time that a board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

#[derive(Serialize)]
struct Report {
    board: &'static str,
    outputs: Vec<OutputReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Vec<u64>>,
    /// Of a board at a serial port: what it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepFigures>>,
}

#[derive(Serialize)]
struct OutputReport {
    name: String,
    shape: Vec<usize>,
    dtype: &'static str,
    sha256: String,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let model = Opened::open_with(&args.model, args.state.as_deref())?;
    let [file, last] = model.ends();
    let (first, last) = (file.view()?, last.view()?);
    if args.profile {
        first.refuse_rolling("`--profile`")?;
    }
    let (inputs, outputs) = (&first.inputs, &last.outputs);
    let paths = assign(&args.output, outputs, "output")?;
    no_archive(&paths)?;
    let places: Vec<Option<Output>> = paths
        .iter()
        .map(|path| path.as_deref().map(Output::to).transpose())
        .collect::<Result<_>>()?;
    let given = assign(&args.input, inputs, "input")?;
    for place in places.iter().flatten() {
        let read = given.iter().flatten().map(PathBuf::as_path).chain([file.path()]);
        read.into_iter().try_for_each(|input| place.differs_from(input))?;
    }
    Output::all_differ(places.iter().flatten())?;
    let print = Print::beside(places.iter().flatten(), args.json)?;
    let sequence = read_inputs(&given, inputs, &mut Arrays::default())?;

    let how = How {
        reset_each: args.reset_each,
        profile: args.profile,
        timeout: Duration::from_secs(args.timeout),
    };
    let outcome = model.execute(args.on, &sequence.runs, how)?;

    let stacked = stack(&outcome, outputs, sequence.stacked);
    let drafts = stacked.iter().zip(&places).filter_map(|(array, place)| {
        let place = place.as_ref()?;
        Some(array.draft(place))
    });
    let drafts = drafts.collect::<Result<_>>()?;
    let steps = if args.profile {
        Some(outcome.steps(&model.steps()?))
    } else {
        None
    };
    let report = Report {
        board: args.on.name(),
        outputs: stacked
            .iter()
            .zip(outputs)
            .map(|(array, port)| OutputReport {
                name: port.name.to_string(),
                shape: array.shape.clone(),
                dtype: port.dtype.name(),
                sha256: hex(&Sha256::digest(array.bytes())),
            })
            .collect(),
        instructions: (!outcome.instructions.is_empty()).then_some(outcome.instructions),
        counts: (!outcome.counts.is_empty()).then_some(outcome.counts),
        steps,
    };
    if args.json {
        print_json(&report)?
    } else {
        print.text(&text(&report, &stacked, sequence.runs.len()))?
    }
    files::publish(drafts)?;
    Ok(Verdict::Good)
}

/// Arrays that were read: several models may want the same one, and a pipe gives it once.
#[derive(Default)]
pub(super) struct Arrays(BTreeMap<PathBuf, Array>);

impl Arrays {
    /// The array of a file.
    ///
    /// # Errors
    /// As [`Array::read`].
    fn read(&mut self, path: &Path) -> Result<&Array> {
        match self.0.entry(path.to_path_buf()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => Ok(unknown.insert(Array::read(path)?)),
        }
    }
}

/// Reads the inputs' files; all must hold as many runs. Conversions are said on stderr.
///
/// # Errors
/// Errors of reading; [`ErrorKind::Input`] for missing inputs and for sequences of different lengths.
pub(super) fn read_inputs(given: &[Option<PathBuf>], inputs: &[Port<'_>], arrays: &mut Arrays) -> Result<Sequence> {
    let mut all: Vec<Runs> = Vec::new();
    for (path, port) in given.iter().zip(inputs) {
        let Some(path) = path else {
            return Err(
                Error::new(ErrorKind::Usage, format!("input `{}` is not given", port.name))
                    .help(format!("pass --input {}=FILE.npy", port.name)),
            );
        };
        let (runs, note) = arrays.read(path)?.runs(port).map_err(|e| e.in_file(path))?;
        if let Some(note) = note {
            files::print::note(format_args!("{}: {note}", path.display()));
        }
        all.push(runs);
    }
    Sequence::of(inputs, all, |index, error| match given.get(index) {
        Some(Some(path)) => error.in_file(path),
        _ => error,
    })
}

/// Assigns `[NAME=]FILE` arguments to ports: by name where the argument starts with a port's name, otherwise in order.
///
/// # Errors
/// [`ErrorKind::Usage`] for too many, for two of one port, for an unknown name.
pub(super) fn assign(given: &[String], ports: &[Port<'_>], what: &str) -> Result<Vec<Option<PathBuf>>> {
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    let names = || {
        ports
            .iter()
            .map(|p| format!("`{}`", p.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut paths: Vec<Option<PathBuf>> = vec![None; ports.len()];
    let mut next = 0;
    for text in given {
        // Names of ports may hold `=`, so the names decide where one ends.
        let named = ports.iter().enumerate().filter_map(|(index, port)| {
            let path = text.strip_prefix(port.name)?.strip_prefix('=')?;
            Some((index, path, port.name.len()))
        });
        let (index, path) = match named.max_by_key(|&(_, _, len)| len) {
            Some((index, path, _)) => (index, path),
            None => {
                if let Some((name, _)) = text.split_once('=')
                    && !Path::new(text).exists()
                    && !name.contains('/')
                {
                    return Err(usage(format!("the model has no {what} `{name}`")).expected(names()));
                }
                next += 1;
                (next - 1, text.as_str())
            }
        };
        match paths.get_mut(index) {
            Some(place @ None) => *place = Some(PathBuf::from(path)),
            Some(Some(_)) => return Err(usage(format!("{what} `{}` is given twice", ports[index].name))),
            None => {
                return Err(usage(format!("{} {what}s are given", given.len())).expected(format!(
                    "at most {}: {}",
                    ports.len(),
                    names()
                )));
            }
        }
    }
    Ok(paths)
}

/// Refuses the name of an archive: each output is a file of its own.
fn no_archive(paths: &[Option<PathBuf>]) -> Result<()> {
    let archive = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("npz"))
    };
    let Some(path) = paths.iter().flatten().find(archive) else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Usage,
        format!(
            "--output {}: an output is one array, and no archive of arrays",
            path.display()
        ),
    )
    .expected("a .npy file for each output"))
}

/// The outputs as arrays, with an axis for the runs where the inputs had one.
pub(super) fn stack(outcome: &Outcome, outputs: &[Port<'_>], stacked: bool) -> Vec<Array> {
    let arrays = outputs.iter().enumerate().map(|(index, port)| {
        let mut shape: Vec<usize> = port.shape.iter().map(|&n| n as usize).collect();
        if stacked {
            shape.insert(0, outcome.outputs.len());
        }
        let bytes: Vec<u8> = outcome
            .outputs
            .iter()
            .flat_map(|run| run[index].iter().copied())
            .collect();
        Array::of_bytes(&shape, port.dtype, &bytes)
    });
    arrays.collect()
}

fn text(report: &Report, outputs: &[Array], runs: usize) -> String {
    const SHOWN: usize = 8;
    let mut text = format!("{} run{} on {}\n", runs, if runs == 1 { "" } else { "s" }, report.board);
    for (output, array) in report.outputs.iter().zip(outputs) {
        let values = array.to_f64();
        let first: Vec<String> = values.iter().take(SHOWN).map(|v| format!("{v}")).collect();
        let more = if values.len() > SHOWN { ", …" } else { "" };
        text += &format!(
            "{} {} {:?}: [{}{more}]\n",
            one_line(&output.name),
            output.dtype,
            output.shape,
            first.join(", ")
        );
        text += &format!("  sha256 {}\n", output.sha256);
    }
    let mean = |figures: &[u64]| grouped(figures.iter().sum::<u64>() / figures.len().max(1) as u64);
    if let Some(instructions) = &report.instructions {
        text += &format!("{} instructions a run\n", mean(instructions));
    }
    if let Some(counts) = &report.counts {
        text += &format!("{} counted a run by the board\n", mean(counts));
    }
    if let Some(steps) = &report.steps {
        text += &super::bench::step_table(steps);
    }
    text
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite::{DType, Slot};

    fn ports() -> Vec<Port<'static>> {
        let port = |name| Port {
            name,
            slot: Slot::default(),
            dtype: DType::F32,
            shape: [1].into_iter().collect(),
            scale: 0.0,
            zero_point: 0,
        };
        vec![port("a"), port("a=b"), port("c")]
    }

    fn assigned(given: &[&str]) -> Result<Vec<Option<PathBuf>>> {
        let given: Vec<String> = given.iter().map(|s| s.to_string()).collect();
        assign(&given, &ports(), "input")
    }

    #[test]
    fn files_go_to_ports_by_name_or_in_order() {
        let path = |s: &str| Some(PathBuf::from(s));
        assert_eq!(assigned(&["x", "y"]).unwrap(), [path("x"), path("y"), None]);
        assert_eq!(assigned(&["c=x", "y"]).unwrap(), [path("y"), None, path("x")]);
        assert_eq!(assigned(&["a=b=x"]).unwrap(), [None, path("x"), None]);
        assert_eq!(assigned(&["a=x"]).unwrap(), [path("x"), None, None]);
    }

    #[test]
    fn wrong_assignments_are_usage_errors() {
        for given in [&["d=x"][..], &["a=x", "a=y"], &["1", "2", "3", "4"]] {
            assert_eq!(assigned(given).unwrap_err().kind(), ErrorKind::Usage, "{given:?}");
        }
    }
}
