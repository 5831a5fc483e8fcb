//! `arenite eval`: accuracy on labelled inputs.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::machine::Machine;
use super::outcome::{How, bar, execute};
use super::program::{Verdict, grouped, print_json};
use super::run::{assign, read_inputs, stack};
use super::unbuilt::only_one;
use crate::array::Array;
use crate::files::print::out as print_out;
use crate::model::ModelFile;
use crate::{Error, Result};

/// Arguments of `arenite eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file; its first output has a score for each class along its last axis.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// The inputs, one sample for each index of the leading axis.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1.., required = true)]
    inputs: Vec<String>,
    /// The right class of each sample: integers, one for each sample.
    #[arg(long, value_name = "Y.npy")]
    labels: PathBuf,
    /// Where to run: host, or qemu:BOARD.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host")]
    on: Vec<Machine>,
    /// Starts each sample with fresh state.
    #[arg(long)]
    reset_each: bool,
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
    samples: usize,
    correct: usize,
    accuracy: f64,
    classes: usize,
    labels: Vec<String>,
    /// Row: the right class. Column: the class that the model chose.
    confusion: Vec<Vec<usize>>,
    /// Mean instructions a run; null on the host, which does not count.
    instructions: Option<u64>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let model = only_one(
        &args.models,
        "arenite eval of several models",
        "evaluate them one after the other",
    )?;
    let on = *only_one(
        &args.on,
        "several --on of arenite eval",
        "evaluate at one place after the other",
    )?;
    let file = ModelFile::open(model)?;
    let view = file.view()?;
    let labels = labels(&args.labels)?;
    let given = assign(&args.inputs, &view.inputs, "input")?;
    let sequence = read_inputs(&given, &view.inputs)?;
    if sequence.runs.len() != labels.len() {
        return Err(Error::input(format!("{} labels", labels.len()))
            .in_file(&args.labels)
            .expected(format!("{}, one for each sample", sequence.runs.len())));
    }
    let bar = bar(labels.len() as u64, on.name());
    let how = How {
        reset_each: args.reset_each,
        profile: false,
        timeout: Duration::from_secs(args.timeout),
    };
    let outcome = execute(&file, on, &sequence.runs, how, &mut |runs, _| {
        bar.set_position(runs as u64)
    });
    bar.finish_and_clear();
    let outcome = outcome?;

    let scores = stack(&outcome, &view.outputs, true)
        .into_iter()
        .next()
        .ok_or_else(|| Error::input("the model has no output").in_file(model))?;
    let classes = scores.shape.last().copied().unwrap_or(1);
    if let Some(&label) = labels.iter().find(|&&label| label >= classes) {
        return Err(Error::input(format!("label {label}"))
            .in_file(&args.labels)
            .expected(format!("a class below {classes}, as the model's output has")));
    }
    let chosen: Vec<usize> = scores.to_f64().chunks(classes.max(1)).map(argmax).collect();
    if chosen.len() != labels.len() {
        return Err(
            Error::input(format!("output shape {:?} for a sample", &scores.shape[1..]))
                .in_file(model)
                .expected("one score for each class"),
        );
    }
    let mut confusion = vec![vec![0; classes]; classes];
    for (&right, &chosen) in labels.iter().zip(&chosen) {
        confusion[right][chosen] += 1;
    }
    let correct = labels.iter().zip(&chosen).filter(|(a, b)| a == b).count();
    let count = outcome.instructions.len() as u64;
    let report = Report {
        board: on.name(),
        samples: labels.len(),
        correct,
        accuracy: correct as f64 / labels.len().max(1) as f64,
        classes,
        labels: view.metadata()?.labels,
        confusion,
        instructions: (count > 0).then(|| outcome.instructions.iter().sum::<u64>() / count),
    };
    if args.json {
        print_json(&report)?
    } else {
        print_out(&text(&report))?
    }
    Ok(Verdict::Good)
}

fn labels(path: &std::path::Path) -> Result<Vec<usize>> {
    let array = Array::read(path)?;
    let labels = array.to_f64().into_iter().map(|v| {
        let whole = v >= 0.0 && v.fract() == 0.0 && v < f64::from(u32::MAX);
        whole.then_some(v as usize).ok_or_else(|| {
            Error::input(format!("label {v}"))
                .in_file(path)
                .expected("class numbers from 0 on")
        })
    });
    labels.collect()
}

/// The first of the largest scores.
fn argmax(scores: &[f64]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] || scores[best].is_nan() {
            best = index;
        }
    }
    best
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{} of {} right on {}: {:.2} %\n",
        report.correct,
        report.samples,
        report.board,
        100.0 * report.accuracy
    );
    if let Some(instructions) = report.instructions {
        text += &format!("{} instructions a run\n", grouped(instructions));
    }
    let name = |class: usize| report.labels.get(class).cloned().unwrap_or_else(|| class.to_string());
    let width = (0..report.classes)
        .map(|c| name(c).chars().count())
        .max()
        .unwrap_or(1)
        .max(5);
    text += &format!("{:>width$}  chosen (columns); right class (rows)\n", "");
    let cell = |content: String| format!(" {content:>width$}");
    text += &format!("{:>width$} ", "");
    text += &(0..report.classes).map(|c| cell(name(c))).collect::<String>();
    text.push('\n');
    for (class, row) in report.confusion.iter().enumerate() {
        text += &format!("{:>width$} ", name(class));
        let dots = |n: &usize| if *n == 0 { "·".to_string() } else { n.to_string() };
        text += &row.iter().map(|n| cell(dots(n))).collect::<String>();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_is_chosen() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax(&[f64::NAN, -1.0]), 1);
    }
}
