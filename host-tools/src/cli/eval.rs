//! `arenite eval`: accuracy on labelled inputs, of each model in each place.

mod statistics;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use self::statistics::{Pair, wilson};
use super::machine::Machine;
use super::opened::with_state;
use super::outcome::{How, execute};
use super::program::{Verdict, print_json};
use super::run::{Arrays, assign, read_inputs, stack};
use crate::array::Array;
use crate::files::paths::shown;
use crate::files::print::out as print_out;
use crate::model::ModelFile;
use crate::page::Accuracy;
use crate::report::grouped;
use crate::{Error, Result};

/// Name that stands for a place where answers were given.
const REFERENCE: &str = "reference";
/// The most classes that a confusion matrix is made for.
const MAX_CLASSES: usize = 1 << 12;
/// The most classes whose confusion matrix is printed.
const SHOWN_CLASSES: usize = 40;

/// Arguments of `arenite eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model files; the first output has a score for each class along its last axis.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// The inputs, one sample for each index of the leading axis.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1.., required = true)]
    inputs: Vec<String>,
    /// The right class of each sample: integers, one for each sample.
    #[arg(long, value_name = "Y.npy")]
    labels: PathBuf,
    /// Where to run, each model in each of them: host, or qemu:BOARD.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host")]
    on: Vec<Machine>,
    /// Answers to compare with, such as PyTorch's: scores by sample and class, or the classes chosen as integers.
    #[arg(long, value_name = "PYTORCH.npy")]
    reference: Option<PathBuf>,
    /// Starts with a state that `arenite train` saved; of one model.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
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
    /// The one evaluation, where there is one: its fields stand here as well.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    only: Option<Evaluation>,
    /// Each model in each place, then the reference.
    evaluations: Vec<Evaluation>,
    /// Each two of them.
    pairs: Vec<Pair>,
}

/// Answers of one model in one place, or those of the reference.
#[derive(Clone, Serialize)]
struct Evaluation {
    /// The file; `reference` for answers that were given.
    model: String,
    /// Where it ran; `reference` too.
    board: &'static str,
    samples: usize,
    correct: usize,
    accuracy: f64,
    /// Both ends of the 95 % interval of the accuracy.
    interval: [f64; 2],
    classes: usize,
    labels: Vec<String>,
    /// Row: the right class. Column: the class that the model chose.
    confusion: Vec<Vec<usize>>,
    /// Mean instructions a run; null on the host, which does not count.
    instructions: Option<u64>,
    #[serde(skip)]
    chosen: Vec<usize>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let right = labels(&args.labels)?;
    let mut arrays = Arrays::default();
    let mut evaluations = Vec::new();
    if args.state.is_some() && args.models.len() > 1 {
        return Err(Error::new(crate::ErrorKind::Usage, "--state with several models").expected("one model"));
    }
    for model in &args.models {
        let file = with_state(ModelFile::open(model)?, args.state.as_deref())?;
        let view = file.view()?;
        let given = assign(&args.inputs, &view.inputs, "input")?;
        let sequence = read_inputs(&given, &view.inputs, &mut arrays)?;
        one_for_each(&sequence.runs, (&args.labels, &right))?;
        for &on in &args.on {
            let how = How {
                reset_each: args.reset_each,
                profile: false,
                timeout: Duration::from_secs(args.timeout),
            };
            evaluations.push(evaluate(
                (model, &file),
                on,
                &sequence.runs,
                how,
                (&args.labels, &right),
            )?);
        }
    }
    if let Some(path) = &args.reference {
        let answers = Answers::given(&Array::read(path)?, right.len()).map_err(|e| e.in_file(path))?;
        let names = evaluations
            .first()
            .map(|first| first.labels.clone())
            .unwrap_or_default();
        evaluations.push(answers.judged(path, REFERENCE, names, (&args.labels, &right))?);
    }
    let pair = |first: usize, second: usize| {
        let chosen = [first, second].map(|index| &evaluations[index].chosen[..]);
        Pair::of([first, second], chosen, &right)
    };
    let pairs = (0..evaluations.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    let pairs = pairs.map(|(first, second)| pair(first, second)).collect();
    let only = match &evaluations[..] {
        [only] => Some(only.clone()),
        _ => None,
    };
    let report = Report {
        only,
        evaluations,
        pairs,
    };
    if args.json {
        print_json(&report)?
    } else {
        print_out(&text(&report))?
    }
    Ok(Verdict::Good)
}

/// The accuracy of a model on this host, for a page.
pub(super) fn accuracy(model: &Path, file: &ModelFile, inputs: &[String], labelled: &Path) -> Result<Accuracy> {
    let right = labels(labelled)?;
    let view = file.view()?;
    let given = assign(inputs, &view.inputs, "input")?;
    let sequence = read_inputs(&given, &view.inputs, &mut Arrays::default())?;
    one_for_each(&sequence.runs, (labelled, &right))?;
    let how = How {
        reset_each: false,
        profile: false,
        timeout: Duration::MAX,
    };
    let found = evaluate((model, file), Machine::Host, &sequence.runs, how, (labelled, &right))?;
    Ok(Accuracy {
        on: found.board.to_string(),
        samples: found.samples,
        correct: found.correct,
        interval: found.interval,
    })
}

/// Labels of a file are as many as samples.
fn one_for_each(runs: &[Vec<Vec<u8>>], (labelled, right): (&Path, &[usize])) -> Result<()> {
    if runs.len() == right.len() {
        return Ok(());
    }
    Err(Error::input(format!("{} labels", right.len()))
        .in_file(labelled)
        .expected(format!("{}, one for each sample", runs.len())))
}

/// One model in one place.
fn evaluate(
    (model, file): (&Path, &ModelFile),
    on: Machine,
    runs: &[Vec<Vec<u8>>],
    how: How,
    labelled: (&Path, &[usize]),
) -> Result<Evaluation> {
    let view = file.view()?;
    let outcome = execute(file, on, runs, how)?;
    let scores = stack(&outcome, &view.outputs, true);
    let scores = scores
        .first()
        .ok_or_else(|| Error::internal("the model has no output").in_file(model))?;
    let answers = Answers::of_scores(scores, labelled.1.len()).map_err(|e| e.in_file(model))?;
    let count = outcome.instructions.len() as u64;
    let mut evaluation = answers.judged(model, on.name(), view.metadata()?.labels, labelled)?;
    evaluation.instructions = (count > 0).then(|| outcome.instructions.iter().sum::<u64>() / count);
    Ok(evaluation)
}

/// The class chosen for each sample.
struct Answers {
    classes: usize,
    chosen: Vec<usize>,
}

impl Answers {
    /// The largest of each sample's scores, which lie along the last axis.
    fn of_scores(scores: &Array, samples: usize) -> Result<Self> {
        let classes = scores.shape.last().copied().unwrap_or(1);
        let chosen: Vec<usize> = scores.to_f64().chunks(classes.max(1)).map(argmax).collect();
        if chosen.len() == samples {
            return Ok(Self { classes, chosen });
        }
        Err(
            Error::input(format!("output shape {:?} for {samples} samples", scores.shape))
                .expected("one score for each class and sample"),
        )
    }

    /// Answers that a file holds: scores, or the classes themselves as integers.
    fn given(array: &Array, samples: usize) -> Result<Self> {
        let integers = matches!(array.type_name(), "int8" | "uint8" | "int16" | "int32" | "int64");
        if !(integers && array.shape == [samples]) {
            return Self::of_scores(array, samples);
        }
        let chosen = classes(array)?;
        let classes = chosen.iter().max().map_or(0, |&most| most + 1);
        Ok(Self { classes, chosen })
    }

    /// Held against the right classes.
    fn judged(
        self,
        model: &Path,
        board: &'static str,
        labels: Vec<String>,
        (labelled, right): (&Path, &[usize]),
    ) -> Result<Evaluation> {
        let Self { mut classes, chosen } = self;
        if board == REFERENCE {
            // Classes that it never chose are classes all the same.
            classes = right.iter().fold(classes, |classes, &label| classes.max(label + 1));
        }
        if let Some(&label) = right.iter().find(|&&label| label >= classes) {
            let expected = format!(
                "a class below {classes}, as the output of {} has",
                shown(model).display()
            );
            return Err(Error::input(format!("label {label}"))
                .in_file(labelled)
                .expected(expected));
        }
        if classes > MAX_CLASSES {
            return Err(Error::unsupported(format!("{classes} classes"))
                .in_file(model)
                .expected(format!("at most {MAX_CLASSES}")));
        }
        let mut confusion = vec![vec![0; classes]; classes];
        for (&right, &chosen) in right.iter().zip(&chosen) {
            confusion[right][chosen] += 1;
        }
        let correct = right.iter().zip(&chosen).filter(|(a, b)| a == b).count();
        Ok(Evaluation {
            model: match board {
                REFERENCE => REFERENCE.to_string(),
                _ => shown(model).display().to_string(),
            },
            board,
            samples: right.len(),
            correct,
            accuracy: correct as f64 / right.len().max(1) as f64,
            interval: wilson(correct, right.len()),
            classes,
            labels,
            confusion,
            instructions: None,
            chosen,
        })
    }
}

fn labels(path: &Path) -> Result<Vec<usize>> {
    classes(&Array::read(path)?).map_err(|e| e.in_file(path))
}

/// An array of class numbers.
fn classes(array: &Array) -> Result<Vec<usize>> {
    let classes = array.to_f64().into_iter().map(|v| {
        // Confusion is counted in a table of all classes.
        let whole = v >= 0.0 && v.fract() == 0.0 && v < MAX_CLASSES as f64;
        whole.then_some(v as usize).ok_or_else(|| {
            Error::input(format!("class {v}")).expected(format!("class numbers from 0 to {}", MAX_CLASSES - 1))
        })
    });
    classes.collect()
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
    let several = report.evaluations.len() > 1;
    let mut text = String::new();
    for (number, evaluation) in (1..).zip(&report.evaluations) {
        if several {
            text += &format!("[{number}] {}\n", evaluation.model);
        }
        text += &one(evaluation);
    }
    for pair in &report.pairs {
        let [first, second] = pair.between.map(|index| index + 1);
        text += &format!(
            "[{first}] and [{second}] agree on {:.2} %; right alone: {} and {}; McNemar's p = {:.3}\n",
            100.0 * pair.agreement,
            pair.only_first,
            pair.only_second,
            pair.p_value
        );
    }
    text
}

fn one(evaluation: &Evaluation) -> String {
    let mut text = format!(
        "{} of {} right on {}: {:.2} % (95 % interval {:.2} to {:.2} %)\n",
        evaluation.correct,
        evaluation.samples,
        evaluation.board,
        100.0 * evaluation.accuracy,
        100.0 * evaluation.interval[0],
        100.0 * evaluation.interval[1]
    );
    if let Some(instructions) = evaluation.instructions {
        text += &format!("{} instructions a run\n", grouped(instructions));
    }
    if evaluation.classes > SHOWN_CLASSES {
        text += &format!("{} classes: the confusion matrix is in --json\n", evaluation.classes);
        return text;
    }
    let name = |class: usize| {
        evaluation
            .labels
            .get(class)
            .cloned()
            .unwrap_or_else(|| class.to_string())
    };
    let width = (0..evaluation.classes)
        .map(|c| name(c).chars().count())
        .max()
        .unwrap_or(1)
        .max(5);
    text += &format!("{:>width$}  chosen (columns); right class (rows)\n", "");
    let cell = |content: String| format!(" {content:>width$}");
    text += &format!("{:>width$} ", "");
    text += &(0..evaluation.classes).map(|c| cell(name(c))).collect::<String>();
    text.push('\n');
    for (class, row) in evaluation.confusion.iter().enumerate() {
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
