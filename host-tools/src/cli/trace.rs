//! `arenite trace`: a run as Perfetto shows it, a track for each core.

use std::path::PathBuf;

use super::bench;
use super::machine::Machine;
use super::program::Verdict;
use crate::files::{self, Output, Print};
use crate::model::ModelFile;
use crate::perfetto::Timeline;
use crate::report::grouped;
use crate::{Error, Result};

/// Arguments of `arenite trace`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// The board that counts the steps.
    #[arg(long, value_name = "qemu:BOARD")]
    on: Machine,
    /// The trace to write, in the JSON of Chrome's trace events, for <https://ui.perfetto.dev>; `-` is standard output.
    #[arg(long, value_name = "FILE.json")]
    perfetto: PathBuf,
    /// Estimates cycles with this chip's flash as well: its wait states and caches.
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    chip: Option<String>,
    /// Counts instructions alone, in place of estimated cycles.
    #[arg(long)]
    quick: bool,
    /// The wall time that the board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let output = Output::to(&args.perfetto)?;
    output.differs_from(&args.model)?;
    let print = Print::beside([&output], false)?;
    let file = ModelFile::open(&args.model)?;
    let view = file.view()?;
    view.refuse_rolling("`trace`")?;
    if view.accelerator().is_some() {
        return Err(
            Error::unsupported("steps that an accelerator has are not counted one by one")
                .in_file(&args.model)
                .help("`arenite bench` counts the whole run; trace the model packed without --accelerator"),
        );
    }
    let counted = bench::counted(&file, &view, &args.bench())?;
    let timeline = Timeline::of(&counted, &view);
    let draft = output.draft_of(timeline.json().to_string().as_bytes());
    let draft = draft.map_err(|e| Error::io(output.path(), "write the trace", &e))?;
    print.text(&format!(
        "{} steps, {} {}s: a microsecond of the trace stands for an {}\n",
        counted.steps.len(),
        grouped(timeline.end()),
        timeline.unit(),
        timeline.unit()
    ))?;
    files::publish(vec![draft])?;
    Ok(Verdict::Good)
}

impl Args {
    /// The same for `arenite bench`.
    fn bench(&self) -> bench::Args {
        bench::Args {
            model: self.model.clone(),
            on: vec![self.on],
            all: false,
            json: false,
            state: None,
            chip: self.chip.clone(),
            quick: self.quick,
            timeout: self.timeout,
        }
    }
}
