//! The pipeline: a traced network in, a model file out.
//!
//! [`front`] reads the input and runs the passes over its graph; [`back`] makes steps of the graph and gives all that they touch its place;
//! `finish` writes the file, proves and replays it.

pub mod back;
mod cost;
mod cuts;
pub mod dump;
mod finish;
pub mod front;
mod norms;
mod options;
mod shares;
mod stream;
mod whole;
mod winograd;

pub use cost::board_of;
pub use finish::verify;
pub use options::{Options, Packed, Progress, Streamed, target_named};
pub use whole::portable;

use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output};
use crate::gradient;
use crate::import;
use dump::Dump;
use finish::Sources;

use crate::report::Summary;

/// Packs a network; where the trace has samples, the new file computes what they state.
///
/// # Errors
/// See [`crate::Error`]; the output file is then as it was before.
pub fn pack(options: &Options, progress: &mut Progress<'_>) -> Result<Packed> {
    let (packed, draft) = draft(options, progress)?;
    draft.publish()?;
    Ok(packed)
}

/// Packs a network and leaves it to the caller when the file appears: [`Draft::publish`] comes last, after everything else that
/// can fail.
///
/// # Errors
/// See [`crate::Error`]; nothing is left behind then.
pub fn draft(options: &Options, progress: &mut Progress<'_>) -> Result<(Packed, Draft)> {
    let output = Output::to(&options.output)?;
    refuse_inputs(&output, options)?;
    options.refuse_beside_cores()?;
    options.refuse_beside_training()?;
    options.refuse_beside_rolling()?;
    // Whole first, in any case.
    let flash = options.stream.as_ref();
    if flash.is_some() {
        stream::refuse(options)?;
    }
    let asked = options;
    let whole = flash.map(|_| Options {
        stream: None,
        ..options.clone()
    });
    let options = whole.as_ref().unwrap_or(options);
    let mut dump = Dump::of(options)?;

    progress("reading the network", 0, 0);
    let at_input = |e: Error| match e.kind() {
        ErrorKind::Input | ErrorKind::Unsupported => e.in_file(&options.input),
        _ => e,
    };
    let content = import::read(&options.input).map_err(at_input)?;
    let again = (options.micro_batches() > 1).then(|| content.clone());
    let mut front = front::of(content, options, &mut dump, progress).map_err(at_input)?;
    let part = again.map(|content| front::part(content, front.summary.batch, options, progress));
    let part = part.transpose().map_err(at_input)?;
    asked.refuse_beside_ethos_u(&front.graph)?;
    front.files.iter().try_for_each(|file| output.differs_from(file))?;
    let mut summary = front.summary;

    let stated = (&front.keys, front.input_sha256.as_str());
    let bytes = |back: &back::Back, summary: &Summary| finish::bytes(back, stated, &front.weights, options, summary);
    let shared = match shares::choose(&front.graph, &front.weights, options, &summary, bytes, progress)? {
        Some((graph, sharing)) => {
            front.graph = graph;
            Options {
                sharing,
                ..options.clone()
            }
        }
        None => options.clone(),
    };
    let options = &shared;
    let spent = winograd::choose(&front.graph, &front.weights, options, &summary, bytes, progress)?;
    let (spend, warning) = winograd::told(spent, options, &mut summary);
    let in_pieces = flash.map(|flash| (front.graph.clone(), flash));
    let trained = options.train.as_ref().map(|asked| {
        let trained = gradient::differentiate(front.graph.clone(), asked, part);
        trained.map_err(|e| e.in_file(&options.input))
    });
    let trained = trained.transpose()?;
    if let Some(trained) = &trained {
        front.graph = trained.inference.clone();
    }
    let told = (&mut dump, &mut summary);
    let mut back = back::run(front.graph, &front.weights, options, spend.as_ref(), told, progress)?;
    if let (Some(trained), Some(asked)) = (trained, &options.train) {
        let asked = (options, asked);
        back::train(&mut back, trained, &front.weights, asked, &mut summary, progress)?;
    }
    if let (Some(report), Some(traced)) = (&mut summary.training, front.traced) {
        report.train_liveness_as_traced_bytes = Some(traced.live_bytes);
        report.matched = traced
            .matched
            .into_iter()
            .map(|(kind, count)| (kind.into(), count))
            .collect();
    }

    let sources = Sources {
        weights: front.weights,
        samples: front.samples,
        keys: front.keys,
        input_sha256: front.input_sha256,
        whole: front.whole,
    };
    let mut draft = finish::run(&back, &sources, options, &output, &mut summary, progress)?;
    if let Some(in_pieces) = in_pieces {
        let made = (&back, &sources, spend.as_ref());
        draft = stream::cut(in_pieces, made, (options, &output), draft, &mut summary, progress)?;
    }
    let packed = Packed {
        summary,
        files: front.files,
        warnings: front.warnings.into_iter().chain(warning).collect(),
        dump: dump.text,
        explanation: back.explanation,
    };
    Ok((packed, draft))
}

/// Refuses to write over what the options name. Further files that the trace names are known only when it is read.
///
/// # Errors
/// [`crate::ErrorKind::Usage`].
pub(crate) fn refuse_inputs(output: &Output, options: &Options) -> Result<()> {
    options
        .reads()
        .into_iter()
        .try_for_each(|input| output.differs_from(input))
}
