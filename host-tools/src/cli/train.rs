//! `arenite train`: gradient descent on labelled samples, here or on a board.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::{DType, Port};
use serde::Serialize;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::machine::Machine;
use super::outcome::{How, execute};
use super::program::{Verdict, print_json};
use super::progress::Shown;
use super::run::{assign, hex};
use crate::array::{Array, Values};
use crate::board::Progress;
use crate::files::npy::{self, Element};
use crate::files::{self, Draft, Output, Print, print};
use crate::model::derived::{self, STATE_OUTPUT};
use crate::model::gradients::{Gradient, Gradients, not_finite};
use crate::model::saved::Saved;
use crate::model::{self, AfterStep, ModelFile, ModelView};
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite train`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A model file that was packed with --train.
    model: PathBuf,
    /// The inputs, one sample for each index of the leading axis.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1.., required = true)]
    inputs: Vec<String>,
    /// The class of each sample as integers, or with --loss mse the target of each; --loss l2 takes none.
    #[arg(long, value_name = "Y.npy")]
    labels: Option<PathBuf>,
    /// The learning rate.
    #[arg(long, value_name = "R")]
    rate: f32,
    /// How often all samples are taken: 1 by default.
    #[arg(long, value_name = "N", conflicts_with = "steps")]
    epochs: Option<usize>,
    /// How many training steps are made.
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Takes the samples of each epoch in an order that follows from this seed; without, in the file's order.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Goes on from a state that was saved; by default training begins with the parameters that the model was packed with.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Where the gradients of the last step go, an array for each trained parameter, by its name.
    #[arg(long, value_name = "FILE.npz")]
    keep_gradients: Option<PathBuf>,
    /// Where the trained state goes.
    #[arg(long, value_name = "FILE")]
    state_out: PathBuf,
    /// Where to train: host, or qemu:BOARD.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host")]
    on: Machine,
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
    /// Steps that were made.
    steps: usize,
    /// Steps that the state has behind it.
    steps_in_all: u64,
    samples: usize,
    /// The loss of each step.
    losses: Vec<f32>,
    /// Samples whose label is no class, over all steps: they had no gradient.
    ignored_labels: u64,
    state_bytes: usize,
    /// Of the state, after training.
    state_sha256: String,
    /// Mean instructions a step; null on the host, which does not count.
    instructions: Option<u64>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    let view = file.view()?;
    let training = view.training()?.ok_or_else(|| {
        Error::input("the file has no steps of training")
            .in_file(&args.model)
            .help("pack it with --train --loss LOSS")
    })?;
    let place = Output::to(&args.state_out)?;
    place.differs_from(file.path())?;
    args.state
        .as_deref()
        .map_or(Ok(()), |state| place.differs_from(state))?;
    let kept = args.keep_gradients.as_deref().map(Output::to).transpose()?;
    if let Some(kept) = &kept {
        kept.differs_from(file.path())?;
        kept.differs_from(&args.state_out)?;
        if !matches!(args.on, Machine::Host) {
            let message = format!("--keep-gradients --on {}: no board holds a gradient", args.on.name());
            return Err(Error::new(ErrorKind::Usage, message)
                .expected("--on host")
                .help("the gradients are the same bits on the host; the state is trained on the board without --keep-gradients"));
        }
    }
    let places: Vec<&Output> = [&place].into_iter().chain(&kept).collect();
    let report = Print::beside(places.iter().copied(), args.json)?;
    let mut samples = Samples::read(args, &places, view.inputs.len(), &training.inputs)?;
    let steps = args
        .steps
        .unwrap_or_else(|| args.epochs.unwrap_or(1).saturating_mul(samples.steps()));
    let before = args.state.as_deref().map(|path| Saved::read(path, &view)).transpose()?;
    let shown = Shown::new(&format!("starting on {}", args.on.name()));
    let told = &mut |now| shown.running(args.on.name(), steps, now);
    let state = before.as_ref().map(|saved| saved.state.as_slice());
    let trained = match args.on {
        Machine::Host => on_host(&file, &training, state, (&mut samples, steps), args, told)?,
        Machine::Board(_) => on_board(&file, &training, state, (&mut samples, steps), args)?,
        Machine::Serial(_) => return Err(args.on.not_over_serial("training wants the state of the device")),
    };
    drop(shown);
    if let Some(name) = not_finite(&training, &trained.state)? {
        return Err(
            Error::input(format!("training left numbers in `{name}` that are not finite"))
                .expected("finite parameters")
                .help("look for NaN and infinity among the inputs, or take a smaller rate; no state was written"),
        );
    }
    let saved = Saved {
        steps: before.map_or(0, |before| before.steps).saturating_add(steps as u64),
        state: trained.state,
    };
    let draft = saved.draft(&view, &place)?;
    let told = Report {
        board: args.on.name(),
        steps,
        steps_in_all: saved.steps,
        samples: samples.count,
        losses: trained.losses,
        ignored_labels: trained.ignored,
        state_bytes: saved.state.len(),
        state_sha256: hex(&Sha256::digest(&saved.state)),
        instructions: trained.instructions,
    };
    if args.json {
        print_json(&told)?
    } else {
        report.text(&text(&told, samples.steps()))?
    }
    let mut drafts = vec![draft];
    if let (Some(place), Some(gradients)) = (&kept, trained.gradients) {
        drafts.push(npz(&gradients, place)?);
    }
    files::publish(drafts)?;
    Ok(Verdict::Good)
}

/// Result of training.
#[derive(Default)]
struct Trained {
    state: Vec<u8>,
    losses: Vec<f32>,
    ignored: u64,
    instructions: Option<u64>,
    gradients: Option<Vec<Gradient>>,
}

impl Trained {
    /// Takes the outputs of a step.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a loss that is not finite: what follows from it is worth nothing.
    fn note(&mut self, ports: &[Port<'_>], outputs: &[Vec<u8>]) -> Result<()> {
        // The loss, and of cross-entropy the count of labels that are no class. By their places: names are the network's.
        let word = |port: usize| outputs.get(port).and_then(|bytes| bytes.first_chunk::<4>()).copied();
        self.losses.extend(word(0).map(f32::from_le_bytes));
        if ports.get(1).is_some_and(|port| port.dtype == DType::I32) {
            self.ignored += word(1).map_or(0, |word| u64::from(u32::from_le_bytes(word)));
        }
        match self.losses.last() {
            Some(loss) if !loss.is_finite() => {
                let message = format!("step {}: the loss is {loss}", self.losses.len() - 1);
                Err(Error::input(message).expected("a finite loss").help(
                    "look for NaN among inputs, parameters and rate, or take a smaller rate; no state was written",
                ))
            }
            _ => Ok(()),
        }
    }
}

fn on_host(
    file: &ModelFile,
    training: &ModelView<'_>,
    state: Option<&[u8]>,
    (samples, steps): (&mut Samples, usize),
    args: &Args,
    told: &mut dyn FnMut(Progress),
) -> Result<Trained> {
    let mut trained = Trained::default();
    let of_steps = training.header().step_count;
    let inputs = &mut |step| (step < steps).then(|| samples.inputs(step, args.rate, args.seed));
    let after: AfterStep<'_> = &mut |step, outputs| {
        told(Progress::Running {
            runs: u32::try_from(step).unwrap_or(u32::MAX),
            steps: of_steps,
            of_steps,
        });
        trained.note(&training.outputs, outputs)
    };
    let model = file.load()?;
    let mut gradients = args
        .keep_gradients
        .is_some()
        .then(|| Gradients::of(training))
        .transpose()?;
    let state = match &mut gradients {
        Some(gradients) => model::train_keeping(&model, state, inputs, after, gradients),
        None => model::train(&model, state, inputs, after),
    };
    trained.state = state.map_err(|e| e.in_file(&args.model))?;
    trained.gradients = gradients.map(Gradients::into_found).transpose()?;
    Ok(trained)
}

/// The board gets the steps of training as a model of their own, whose last output is the state.
fn on_board(
    file: &ModelFile,
    training: &ModelView<'_>,
    state: Option<&[u8]>,
    (samples, steps): (&mut Samples, usize),
    args: &Args,
) -> Result<Trained> {
    let bytes = derived::of_training(training, true)?;
    let mut made = ModelFile::made(&bytes, file.path());
    if let Some(state) = state {
        let bytes = derived::with_state(&made.view()?, state)?;
        made = ModelFile::made(&bytes, file.path());
    }
    let runs: Vec<_> = (0..steps)
        .map(|step| samples.inputs(step, args.rate, args.seed))
        .collect();
    let how = How {
        reset_each: false,
        profile: false,
        timeout: Duration::from_secs(args.timeout),
    };
    let outcome = execute(&made, args.on, &runs, how)?;
    let view = made.view()?;
    let mut trained = Trained::default();
    for outputs in &outcome.outputs {
        trained.note(&view.outputs, outputs)?;
    }
    let at = view.outputs.iter().position(|port| port.name == STATE_OUTPUT);
    let last = outcome.outputs.last().zip(at).and_then(|(outputs, at)| outputs.get(at));
    // Without a step it is as it was.
    trained.state = match last {
        Some(state) => state.clone(),
        None => made.view()?.state_init().bytes().collect(),
    };
    let count = outcome.instructions.len() as u64;
    trained.instructions = (count > 0).then(|| outcome.instructions.iter().sum::<u64>() / count);
    Ok(trained)
}

/// Labelled samples.
struct Samples {
    /// By input of a training step, the learning rate left out, and by sample.
    inputs: Vec<Vec<Vec<u8>>>,
    /// Where among the inputs of a training step the learning rate is.
    rate: usize,
    count: usize,
    batch: usize,
    /// An epoch and its order, where it follows from a seed.
    shuffled: Option<(usize, Vec<usize>)>,
}

impl Samples {
    /// Reads the files of all inputs.
    ///
    /// # Errors
    /// Errors of reading; [`ErrorKind::Input`] for arrays of other shapes or of different lengths; [`ErrorKind::Usage`] for missing ones.
    fn read(args: &Args, places: &[&Output], own: usize, ports: &[Port<'_>]) -> Result<Self> {
        // Behind the network's own: what the loss compares with, where it does, and the learning rate.
        let rate = ports.len().checked_sub(1);
        let rate = rate.ok_or_else(|| Error::input("the training step takes no learning rate").in_file(&args.model))?;
        let wanted = (rate > own).then_some(own);
        let usage = |message: &str| Error::new(ErrorKind::Usage, message.to_string());
        let given = assign(&args.inputs, &ports[..own], "input")?;
        let mut paths = Vec::new();
        for (path, port) in given.into_iter().zip(ports) {
            let missing = || usage(&format!("input `{}` is not given", port.name)).help("pass --inputs NAME=FILE.npy");
            paths.push(path.ok_or_else(missing)?);
        }
        match (wanted, &args.labels) {
            (Some(_), Some(labels)) => paths.push(labels.clone()),
            (Some(_), None) => return Err(usage("--labels is not given").help("pass --labels Y.npy")),
            (None, Some(_)) => return Err(usage("--labels, but the loss of the file takes none").expected("no labels")),
            (None, None) => {}
        }
        let extent = |port: &Port<'_>| port.shape.first().map_or(1, |&n| n as usize).max(1);
        let batch = ports.first().map_or(1, extent);
        let mut inputs = Vec::new();
        for (path, port) in paths.iter().zip(ports) {
            places.iter().try_for_each(|place| place.differs_from(path))?;
            inputs.push(each_sample(path, port, batch)?);
        }
        let count = inputs.first().map_or(0, Vec::len);
        for (input, path) in inputs.iter().zip(&paths) {
            if input.len() != count {
                return Err(Error::input(format!("{} samples", input.len()))
                    .in_file(path)
                    .expected(format!("{count}, as the first input has")));
            }
        }
        if count < batch {
            return Err(Error::input(format!("{count} samples")).expected(format!("at least {batch}, a batch")));
        }
        if count % batch > 0 {
            print::note(format_args!(
                "the last {} samples of each epoch are left out: a batch has {batch}",
                count % batch
            ));
        }
        Ok(Self {
            inputs,
            rate,
            count,
            batch,
            shuffled: None,
        })
    }

    /// Steps of an epoch.
    fn steps(&self) -> usize {
        self.count / self.batch
    }

    /// The inputs of a step.
    fn inputs(&mut self, step: usize, rate: f32, seed: Option<u64>) -> Vec<Vec<u8>> {
        let (epoch, at) = (step / self.steps(), step % self.steps() * self.batch);
        let order: Vec<usize> = match seed {
            None => (at..at + self.batch).collect(),
            Some(seed) => {
                let known = self.shuffled.take().filter(|(of, _)| *of == epoch);
                let of_epoch = || (epoch, shuffled(self.count, seed.wrapping_add(epoch as u64)));
                self.shuffled.insert(known.unwrap_or_else(of_epoch)).1[at..at + self.batch].to_vec()
            }
        };
        let of = |input: &Vec<Vec<u8>>| order.iter().flat_map(|&sample| input[sample].iter().copied()).collect();
        let mut inputs: Vec<Vec<u8>> = self.inputs.iter().map(of).collect();
        inputs.insert(self.rate, rate.to_le_bytes().to_vec());
        inputs
    }
}

/// The bytes of each sample of a file for a port, whose leading axis is the batch.
fn each_sample(path: &Path, port: &Port<'_>, batch: usize) -> Result<Vec<Vec<u8>>> {
    let mut one = port.clone();
    match one.shape.first_mut() {
        Some(extent) if (*extent as usize).is_multiple_of(batch) => *extent /= batch as u32,
        _ => return Err(Error::input(format!("input `{}` has no axis of samples", port.name))),
    }
    let mut array = Array::read(path)?;
    if port.dtype == DType::I32 {
        array = as_i32(&array).map_err(|e| e.in_file(path))?;
    }
    let (runs, note) = array.runs(&one).map_err(|e| e.in_file(path))?;
    if let Some(note) = note {
        print::note(format_args!("{}: {note}", path.display()));
    }
    Ok(runs.runs)
}

/// Integers of any type as int32. One that is beyond is no class of any network, and stays none.
pub(super) fn as_i32(array: &Array) -> Result<Array> {
    if !matches!(array.type_name(), "int8" | "uint8" | "int16" | "int32" | "int64") {
        return Err(Error::input(format!("labels of {}", array.type_name())).expected("integers"));
    }
    let values = array.to_f64();
    Ok(Array {
        shape: array.shape.clone(),
        // Conversions of floats saturate.
        values: Values::I32(values.into_iter().map(|label| label as i32).collect()),
    })
}

/// A draft of an archive with an array for each gradient.
fn npz(gradients: &[Gradient], place: &Output) -> Result<Draft> {
    let wrong = |e: &std::io::Error| Error::io(place.path(), "write the gradients", e);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let plain = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(true);
    for gradient in gradients {
        let values = gradient.values.iter().flat_map(|value| value.to_le_bytes());
        let whole: Vec<u8> = npy::header(Element::F32, &gradient.shape)
            .into_iter()
            .chain(values)
            .collect();
        archive
            .start_file(format!("{}.npy", gradient.name), plain)
            .map_err(|e| wrong(&e.into()))?;
        archive.write_all(&whole).map_err(|e| wrong(&e))?;
    }
    let bytes = archive.finish().map_err(|e| wrong(&e.into()))?.into_inner();
    place.draft_of(&bytes).map_err(|e| wrong(&e))
}

/// A permutation of so many: Fisher and Yates from the last place to the first, by SplitMix64.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    order
}

fn text(report: &Report, epoch: usize) -> String {
    let mut text = format!("{} steps on {}\n", report.steps, report.board);
    for (number, losses) in report.losses.chunks(epoch.max(1)).enumerate() {
        let mean = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / losses.len() as f64;
        text += &format!("epoch {number}: mean loss {mean:.5} of {} steps\n", losses.len());
    }
    if report.ignored_labels > 0 {
        text += &format!("{} labels are no class and had no gradient\n", report.ignored_labels);
    }
    if let Some(instructions) = report.instructions {
        text += &format!("{} instructions a step\n", crate::report::grouped(instructions));
    }
    text + &format!(
        "state of {} bytes, sha256 {}\n",
        report.state_bytes, report.state_sha256
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_permutation_that_follows_from_its_seed() {
        let order = shuffled(1000, 7);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
        assert_eq!(order, shuffled(1000, 7));
        assert_ne!(order, shuffled(1000, 8));
        assert_eq!(shuffled(1, 3), [0]);
        // The first number of SplitMix64 from 0 is 0xe220a8397b1dcdaf, which is odd.
        assert_eq!(shuffled(2, 0), [0, 1]);
    }
}
