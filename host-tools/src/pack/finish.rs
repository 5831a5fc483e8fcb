//! The finish: from placed steps to a file that is proven, loaded and replayed before it takes its name.

use std::collections::BTreeMap;
use std::path::Path;

use super::back::{Back, TrainingBack};
use super::options::{Options, Progress};
use super::whole;
use crate::board::tell_worst;
use crate::channels::Removed;
use crate::emit::{self, Written};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output, print, system};
use crate::gradient::Parameter;
use crate::graph::Graph;
use crate::import::Samples;
use crate::memory::prove;
use crate::metadata::{ListMeta, Metadata, TrainedMeta};
use crate::model::{self, ModelFile};
use crate::report::{Quantization, Summary};
use crate::weights::Weights;
use crate::{self_test, sign};

/// Sources of a file, beside its steps.
pub(super) struct Sources {
    /// The values of the parameters.
    pub(super) weights: Weights,
    /// Runs to replay.
    pub(super) samples: Option<Samples>,
    /// Other keys under which reference data holds a tensor, by the tensor's name.
    pub(super) keys: BTreeMap<String, String>,
    /// The hash of the input file.
    pub(super) input_sha256: String,
    /// The network with all of its channels, where some went.
    pub(super) whole: Option<Graph>,
}

/// Writes the file, which appears when its draft is published; `summary` hears of its sizes.
pub(super) fn run(
    back: &Back,
    sources: &Sources,
    options: &Options,
    output: &Output,
    summary: &mut Summary,
    progress: &mut Progress<'_>,
) -> Result<Draft> {
    let Back { program, placed, .. } = back;
    let metadata = metadata(back, &sources.keys, &sources.input_sha256, summary)?;
    let mut written = |done, all| progress("writing weights", done, all);
    let io = |e: std::io::Error| Error::io(output.path(), "write the model", &e);
    let draft = output.draft().map_err(io)?;
    let sizes = emit::emit(
        program,
        placed,
        training(back),
        (&metadata, &options.labels),
        &sources.weights,
        draft.file(),
        &mut written,
    )
    .map_err(|e| match e.kind() {
        // Of no file that is known: those in the input.
        ErrorKind::Weights | ErrorKind::Unsupported | ErrorKind::DoesNotFit => e.in_file(&options.input),
        _ => e.in_file(output.path()),
    })?;
    let file = ModelFile::of(draft.file(), output.path()).map_err(io)?;
    progress("checking the file", 0, 0);
    verify(&file, sources.samples.as_ref(), progress).map_err(|e| match e.kind() {
        ErrorKind::Input => e.in_file(&options.input),
        _ => e,
    })?;
    let view = file.view()?;
    tell_worst(summary, options.target.name(), &view.steps()?, view.weights());
    drop(view);
    if let Some(whole) = &sources.whole {
        progress("comparing with the network before its dead channels went", 0, 0);
        whole::compare(whole.clone(), program, &sources.weights, &file, options)?;
    }
    drop(file);
    let draft = match &options.self_test {
        None => draft,
        Some(samples) => {
            progress("computing the self-test", 0, 0);
            self_test::attach(draft, output, samples, &mut |note| {
                print::note(format_args!("{}: {note}", samples.display()));
            })?
        }
    };
    let content = draft.file().metadata().map_err(io)?.len();
    let model = content + envelope(options);
    within(model, sizes.weights, options)?;
    let Written { weights, plan, .. } = sizes;
    (summary.model_bytes, summary.weights_bytes, summary.plan_bytes) = (model, weights, plan);
    match &options.sign {
        Some(signer) => signer.sign_draft(draft, output),
        None => Ok(draft),
    }
}

/// That a file of so many bytes, of which so many are weights, is within the limits that were asked for.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`].
pub(super) fn within(model: u64, weights: u64, options: &Options) -> Result<()> {
    let budget = options.quantize.as_ref().and_then(|request| request.mixed?.flash);
    let limits = [(options.max_flash, "--max-flash"), (budget, "--budget flash")];
    let passed = limits
        .iter()
        .find(|(limit, _)| limit.is_some_and(|limit| model > limit));
    let Some(&(Some(limit), option)) = passed else {
        return Ok(());
    };
    let message = format!("the model needs {model} bytes, {weights} of them weights");
    Err(Error::new(ErrorKind::DoesNotFit, message)
        .in_file(&options.input)
        .expected(format!("at most {limit} ({option})"))
        .help("--size and --target portable keep weights in their plain layout; a smaller network helps most"))
}

/// Bytes that a signature adds.
fn envelope(options: &Options) -> u64 {
    options.sign.as_ref().map_or(0, |_| sign::ENVELOPE_BYTES)
}

/// The bytes of the file that these steps become, but for a self-test.
///
/// # Errors
/// Errors of writing it.
pub(super) fn bytes(
    back: &Back,
    (keys, input_sha256): (&BTreeMap<String, String>, &str),
    weights: &Weights,
    options: &Options,
    summary: &Summary,
) -> Result<u64> {
    let place = Path::new("a temporary file");
    let file = system::unnamed().map_err(|e| Error::io(place, "write a model to measure", &e))?;
    let metadata = metadata(back, keys, input_sha256, summary)?;
    let Back { program, placed, .. } = back;
    let labels = &options.labels;
    let sizes = emit::emit(
        program,
        placed,
        training(back),
        (&metadata, labels),
        weights,
        &file,
        &mut |_, _| {},
    )?;
    Ok(sizes.model + envelope(options))
}

/// Returns the metadata of the file; a device does not read it.
fn metadata(back: &Back, keys: &BTreeMap<String, String>, input_sha256: &str, summary: &Summary) -> Result<Metadata> {
    let Back { program, placed, .. } = back;
    let owners = emit::Owners::new(program);
    let summary = in_file(summary);
    let mut steps = emit::step_metadata(program, placed, &owners)?;
    for tensor in steps.iter_mut().filter_map(|step| step.completes.as_mut()) {
        let others: Vec<String> = tensor.names.iter().filter_map(|name| keys.get(name).cloned()).collect();
        tensor.names.extend(others);
    }
    let key = |&id| keys.get(&program.graph.tensor(id).name).cloned().unwrap_or_default();
    Ok(Metadata {
        tool: concat!("pack ", env!("CARGO_PKG_VERSION")).to_string(),
        input_sha256: input_sha256.to_string(),
        summary: serde_json::to_string(&summary).map_err(|e| Error::internal(format!("the summary: {e}")))?,
        labels: Vec::new(),
        cut: emit::cut_steps(program, &steps),
        training: back.training.as_deref().map(list_metadata).transpose()?.map(Box::new),
        steps,
        input_keys: program.graph.inputs.iter().map(key).collect(),
        ports: owners.ports,
        tensors: owners.names,
    })
}

/// The steps of training, for the file.
fn training(back: &Back) -> Option<emit::Training<'_>> {
    back.training.as_deref().map(|training| emit::Training {
        program: &training.program,
        memory: &training.placed,
    })
}

/// Returns the metadata of the file's steps of training.
fn list_metadata(training: &TrainingBack) -> Result<ListMeta> {
    let TrainingBack {
        program,
        placed,
        parameters,
    } = training;
    let owners = emit::Owners::new(program);
    let parameter = |parameter: &Parameter| {
        let tensor = program.graph.tensor(parameter.tensor);
        TrainedMeta {
            name: parameter.name.clone(),
            offset: program.state.offsets.get(&parameter.tensor).copied().unwrap_or(0),
            shape: tensor.shape.iter().map(|&n| n as u32).collect(),
        }
    };
    Ok(ListMeta {
        input_keys: vec![String::new(); program.graph.inputs.len()],
        steps: emit::step_metadata(program, placed, &owners)?,
        parameters: parameters.iter().map(parameter).collect(),
        ports: owners.ports,
        tensors: owners.names,
    })
}

/// Returns the part of a summary that a file holds: it lies in a device's flash.
pub(super) fn in_file(summary: &Summary) -> Summary {
    Summary {
        dead_channels: summary.dead_channels.filter(|&removed| removed != Removed::default()),
        quantization: summary.quantization.as_ref().map(Quantization::brief),
        load_stack_bytes: BTreeMap::new(),
        instructions_at_most: BTreeMap::new(),
        code_bytes_estimate: None,
        ..summary.clone()
    }
}

/// Proves the new file's memory plan as `arenite verify` does, loads it as a device does, where this host has its kernels, and replays the
/// trace's samples.
///
/// # Errors
/// [`ErrorKind::Internal`] where the file is wrong; [`ErrorKind::Input`] where a sample is.
pub fn verify(file: &ModelFile, samples: Option<&Samples>, progress: &mut Progress<'_>) -> Result<()> {
    prove::prove(&file.view()?).map_err(|e| {
        Error::internal(format!("the new model's plan is wrong: {e}"))
            .help("nothing was written; please report it with this input")
    })?;
    let model = match file.load() {
        Ok(model) => model,
        Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
        Err(e) => return Err(Error::internal(format!("the new model does not load: {e}")).help("please report it")),
    };
    match samples {
        Some(samples) => replay(&model, samples, progress),
        None => Ok(()),
    }
}

/// Runs the samples and compares the outputs that they state.
fn replay(model: &arenite::Model<'_>, samples: &Samples, progress: &mut Progress<'_>) -> Result<()> {
    let inputs: Vec<String> = (0..)
        .map_while(|i| model.input(i))
        .map(|p| p.name.to_string())
        .collect();
    let outputs: Vec<String> = (0..)
        .map_while(|i| model.output(i))
        .map(|p| p.name.to_string())
        .collect();
    let mut runs = Vec::new();
    for sample in &samples.runs {
        let find = |name: &String| {
            sample
                .inputs
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, bytes)| bytes.clone())
        };
        let given: Option<Vec<_>> = inputs.iter().map(find).collect();
        runs.push(given.ok_or_else(|| Error::internal("a sample lacks an input of the network"))?);
    }
    let all = runs.len() as u64;
    let results = model::run(model, &runs, false, &mut |run, _, _| {
        progress("replaying the samples", run as u64, all)
    })?;
    for (index, (sample, result)) in samples.runs.iter().zip(&results).enumerate() {
        for (name, expected) in &sample.outputs {
            let Some(port) = outputs.iter().position(|n| n == name) else {
                return Err(Error::internal(format!(
                    "sample {index} states `{name}`, which is no output of the network"
                )));
            };
            let dtype = model.output(port).map_or(arenite::DType::F32, |p| p.dtype);
            let difference = crate::compare::relative(dtype, &result[port], expected);
            if difference.is_nan() || difference > samples.rtol {
                return Err(
                    Error::input(format!("sample {index}: output `{name}` differs by {difference:.3e}"))
                        .expected(format!("at most {:e}, as the trace states", samples.rtol))
                        .help("the trace, its weights and its samples are not of one network, or pack has a defect"),
                );
            }
        }
    }
    Ok(())
}
