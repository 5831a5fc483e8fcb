//! `arenite report`: a model, or two side by side, as one HTML page.

use std::path::PathBuf;
use std::time::Duration;

use arenite::Target;

use super::borders::BorderOptions;
use super::eval;
use super::machine::Machine;
use super::outcome::{How, execute};
use super::program::Verdict;
use crate::board::tell_worst;
use crate::files::{self, Output, Print};
use crate::import::ImportOptions;
use crate::model::{ModelFile, ModelView};
use crate::pack::{Options, dump::Dump, front};
use crate::page::{Extra, Subject, pages};
use crate::report::grouped;
use crate::stage::Stage;
use crate::{Error, ErrorKind, Result, sign};

/// Arguments of `arenite report`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// The page to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
    /// The network that the model was packed from: the page gets its operators as they were imported.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// As of `pack`, for the trace.
    #[arg(long, value_name = "FILE", requires = "trace")]
    weights: Option<String>,
    /// As of `pack`, for the trace.
    #[arg(long, value_name = "KEY=VALUE", requires = "trace")]
    assume: Vec<String>,
    /// As of `pack`, for the trace.
    #[arg(long, value_name = "D,D,D,D", value_delimiter = ',', requires = "trace")]
    input_shape: Vec<usize>,
    #[command(flatten)]
    borders: BorderOptions,
    /// A board that counts the instructions of each step: qemu:BOARD.
    #[arg(long, value_name = "qemu:BOARD")]
    on: Option<Machine>,
    /// The wall time that a board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Another model, which the page shows side by side with the first.
    #[arg(long, value_name = "MODEL")]
    beside: Option<PathBuf>,
    /// Inputs of both models, one sample for each index of the leading axis: the page tells the accuracy on this host.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1.., requires = "labels")]
    inputs: Vec<String>,
    /// The right class of each sample: integers, one for each sample.
    #[arg(long, value_name = "Y.npy", requires = "inputs")]
    labels: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let output = Output::to(&args.output)?;
    output.differs_from(&args.model)?;
    let mut read = args.trace.iter().chain(&args.beside).chain(&args.labels);
    read.try_for_each(|path| output.differs_from(path))?;
    if args.trace.is_none() && !args.borders.is_empty() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--signature, --set, --from, --until and --state without --trace",
        )
        .expected("the network that they are of"));
    }
    if args.borders.signatures()?.len() > 1 {
        return Err(Error::new(ErrorKind::Usage, "--signature is given more than once")
            .expected("the one that the model was packed from"));
    }
    let print = Print::beside([&output], false)?;
    let files = [Some(&args.model), args.beside.as_ref()].into_iter().flatten();
    let files = files.map(|path| Ok((path, ModelFile::open(path)?)));
    let files = files.collect::<Result<Vec<_>>>()?;
    let views = files.iter().map(|(_, file)| file.view()).collect::<Result<Vec<_>>>()?;
    views.iter().try_for_each(|view| view.refuse_rolling("`report`"))?;
    let mut known = Vec::new();
    for (index, ((path, file), view)) in files.iter().zip(&views).enumerate() {
        let mut summary = view.summary()?;
        summary.model_bytes += file.envelope().map_or(0, |_| sign::ENVELOPE_BYTES);
        tell_worst(&mut summary, view.target_name(), &view.steps()?, view.weights());
        let trace = args.trace.as_ref().filter(|_| index == 0);
        let extra = Extra {
            trace: trace.map(|_| trace_of(args, &output, view)).transpose()?,
            counted: args.on.map(|on| counted(args, file, view, on)).transpose()?,
            accuracy: args
                .labels
                .as_ref()
                .map(|labels| eval::accuracy(path, file, &args.inputs, labels))
                .transpose()?,
        };
        known.push((summary, extra));
    }
    let subjects = views.iter().zip(&known);
    let subjects = subjects.map(|(view, (summary, extra))| Subject { view, summary, extra });
    let page = pages(&subjects.collect::<Vec<_>>())?;
    let draft = output.draft_of(page.as_bytes());
    let draft = draft.map_err(|e| Error::io(output.path(), "write the page", &e))?;
    print.text(&format!(
        "{}: a page of {} bytes\n",
        known[0].0.name,
        grouped(page.len() as u64)
    ))?;
    files::publish(vec![draft])?;
    Ok(Verdict::Good)
}

/// The trace as it was imported; it must be the one that the model was packed from.
fn trace_of(args: &Args, output: &Output, view: &ModelView<'_>) -> Result<String> {
    let input = args.trace.clone().unwrap_or_default();
    let mut options = Options::new(&input, &args.output);
    let assume = args.assume.iter().map(|text| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(Error::new(ErrorKind::Usage, format!("--assume {text}")).expected("KEY=VALUE")),
    });
    options.import = args.borders.added_to(ImportOptions {
        batch: Some(view.summary()?.batch.max(1)),
        input_shape: (!args.input_shape.is_empty()).then(|| args.input_shape.clone()),
        assume: assume.collect::<Result<_>>()?,
        ..ImportOptions::default()
    })?;
    (options.weights, options.target) = (args.weights.clone(), Target::Portable);
    options.dump_after = Some(Stage::Import);
    let mut dump = Dump::of(&options)?;
    let front = front::run(&options, &mut dump, &mut |_, _, _| {})?;
    front.files.iter().try_for_each(|file| output.differs_from(file))?;
    let packed_from = view.metadata()?.input_sha256;
    if front.input_sha256 != packed_from {
        return Err(Error::input(format!("its sha256 is {}", front.input_sha256))
            .in_file(&input)
            .expected(format!("{packed_from}, of the input that the model was packed from"))
            .help("pass that file, or leave --trace out"));
    }
    dump.text
        .ok_or_else(|| Error::internal("the trace was imported and not dumped"))
}

/// One run on a board with inputs of zeros, step by step.
fn counted(args: &Args, file: &ModelFile, view: &ModelView<'_>, on: Machine) -> Result<(String, Vec<u64>)> {
    if let Machine::Serial(_) = on {
        return Err(on.not_over_serial("instructions are counted in qemu"));
    }
    if on == Machine::Host {
        return Err(
            Error::new(ErrorKind::Usage, "--on host: this host does not count instructions").expected("qemu:BOARD"),
        );
    }
    let zeros = view
        .inputs
        .iter()
        .map(|port| vec![0; port.bytes().unwrap_or(0) as usize]);
    let how = How {
        reset_each: false,
        profile: true,
        timeout: Duration::from_secs(args.timeout),
    };
    let outcome = execute(file, on, &[zeros.collect()], how)?;
    Ok((on.name().to_string(), outcome.step_instructions))
}
