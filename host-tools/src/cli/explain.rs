//! `arenite explain-code`: what the four bytes of an error mean.

use std::path::PathBuf;

use arenite::codes::{CAUSES, Code, Counts, NO_KERNEL, NO_STEP};
use arenite::{KernelId, LoadError};
use serde::Serialize;

use super::program::{Verdict, print_json};
use crate::files::print;
use crate::model::ModelFile;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite explain-code`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The code: 0x and eight hexadecimal digits, or a decimal number.
    #[arg(value_name = "CODE", value_parser = parse)]
    code: u32,
    /// The model that was loaded: names the step and its kernel.
    model: Option<PathBuf>,
    /// Prints the meaning as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    code: String,
    error: &'static str,
    meaning: &'static str,
    /// Unit of the code's count: `step`, `port`, `input`, `region`.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The step's name in the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_name: Option<String>,
}

fn parse(text: &str) -> std::result::Result<u32, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected a number of 32 bits, such as 0x12ff0003".to_string())
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let code = Code::from_u32(args.code);
    let cause = CAUSES.iter().find(|cause| cause.number == code.cause).ok_or_else(|| {
        let message = format!("0x{:08x}: there is no cause 0x{:02x}", args.code, code.cause);
        Error::new(ErrorKind::Input, message).help("codes of a newer runtime want newer tools")
    })?;
    let counts = match cause.counts {
        Counts::Nothing => None,
        Counts::Step => Some("step"),
        Counts::Port => Some("port"),
        Counts::Input => Some("input"),
        Counts::Output => Some("output"),
        Counts::Region => Some("region"),
    };
    let index = counts.and((code.step != NO_STEP).then_some(code.step));
    let step = index.filter(|_| cause.counts == Counts::Step);
    let (in_model, step_name) = match (&args.model, step) {
        (Some(path), Some(step)) => step_of(path, step)?,
        _ => (None, None),
    };
    let stated = (code.kernel != NO_KERNEL).then_some(code.kernel);
    let kernel = stated.or(in_model).map(|number| match KernelId::from_u8(number) {
        Some(kernel) => kernel.name().to_string(),
        None => format!("unknown kernel {number}"),
    });
    let report = Report {
        code: format!("0x{:08x}", args.code),
        error: cause.name,
        meaning: cause.meaning,
        counts,
        index,
        kernel,
        step_name,
    };
    if args.json {
        print_json(&report)?;
    } else {
        print::out(&text(&report))?;
    }
    Ok(Verdict::Good)
}

/// The kernel's number and the name of a step in a model, as far as they are known there.
fn step_of(path: &std::path::Path, step: u16) -> Result<(Option<u8>, Option<String>)> {
    let file = ModelFile::open(path)?;
    let code = LoadError::Step {
        step: step.into(),
        fault: arenite::Fault::Encoding,
    };
    let kernel = Code::from_u32(code.code_in(file.bytes())).kernel;
    let metadata = file.view().and_then(|view| view.metadata());
    let name = metadata.ok().and_then(|metadata| {
        // Steps of training are counted behind those of inference.
        let training = metadata.training.iter().flat_map(|list| &list.steps);
        let mut steps = metadata.steps.iter().chain(training);
        Some(steps.nth(usize::from(step))?.name.clone())
    });
    Ok(((kernel != NO_KERNEL).then_some(kernel), name))
}

fn text(report: &Report) -> String {
    let mut text = format!("{} {}\n  {}\n", report.code, report.error, report.meaning);
    if let (Some(counts), Some(index)) = (report.counts, report.index) {
        let name = report.step_name.as_deref().map(|name| format!(" ({name})"));
        text += &format!("  {counts} {index}{}\n", name.unwrap_or_default());
    }
    if let Some(kernel) = &report.kernel {
        text += &format!("  kernel {kernel}\n");
    }
    text
}
