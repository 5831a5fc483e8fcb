//! `arenite compare`: two models side by side.

use std::path::PathBuf;
use std::time::Duration;

use arenite::Port;
use serde::Serialize;

use super::inspect::{self, port_text};
use super::machine::Machine;
use super::outcome::{How, Outcome, execute};
use super::program::{Verdict, print_json};
use super::run::{Arrays, assign, read_inputs};
use crate::compare;
use crate::error::{Error, ErrorKind, Result};
use crate::files::print::out as print_out;
use crate::model::ModelFile;
use crate::report::{PortSummary, Summary, grouped};

/// Arguments of `arenite compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first model.
    a: PathBuf,
    /// The second.
    b: PathBuf,
    /// Runs both on these inputs, given as to `arenite run`, and compares their outputs.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1..)]
    input: Vec<String>,
    /// Where they run: host, or qemu:BOARD, which counts instructions.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host", requires = "input")]
    on: Machine,
    /// The wall time that a board gets for each.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Prints the result as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
pub(super) struct Report {
    /// Summary of each file, as `arenite inspect --json`.
    models: [Summary; 2],
    /// Sizes and counts.
    figures: Vec<Figure>,
    /// Steps by kind.
    steps: Vec<Figure>,
    /// Steps by name: those of the first model in their order, then those that the second alone has.
    step_list: Vec<StepPair>,
    /// With --input: each output of the first model and the second's in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<OutputPair>>,
}

/// A figure of both; null where there is none.
#[derive(Serialize)]
pub(super) struct Figure {
    name: String,
    a: Option<u64>,
    b: Option<u64>,
}

/// A step of both; null where a model has none of that name.
#[derive(Serialize)]
struct StepPair {
    name: String,
    a: Option<StepFigures>,
    b: Option<StepFigures>,
}

#[derive(Clone, PartialEq, Serialize)]
struct StepFigures {
    kernel: &'static str,
    macs: u64,
    /// With --on qemu:BOARD: of the last run.
    instructions: Option<u64>,
}

#[derive(Serialize)]
struct OutputPair {
    a: String,
    b: String,
    /// Whether both are the same bytes.
    equal: bool,
    /// The largest difference of their real values, over the first one's largest magnitude; null where the numbers of elements differ.
    relative_error: Option<f64>,
}

/// A model with what runs of it gave.
pub(super) struct Side {
    pub(super) file: ModelFile,
    pub(super) outcome: Option<Outcome>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let mut arrays = Arrays::default();
    let [a, b] = [&args.a, &args.b].map(|path| -> Result<Side> {
        let file = ModelFile::open(path)?;
        let outcome = if args.input.is_empty() {
            None
        } else {
            Some(outcome(args, &file, &mut arrays).map_err(|e| e.in_file(path))?)
        };
        Ok(Side { file, outcome })
    });
    let report = report(&a?, &b?)?;
    if args.json {
        print_json(&report)?
    } else {
        print_out(&text(&report))?
    }
    Ok(Verdict::Good)
}

fn outcome(args: &Args, file: &ModelFile, arrays: &mut Arrays) -> Result<Outcome> {
    let view = file.view()?;
    let given = assign(&args.input, &view.inputs, "input")?;
    let sequence = read_inputs(&given, &view.inputs, arrays)?;
    let how = How {
        reset_each: false,
        profile: matches!(args.on, Machine::Board(_)),
        timeout: Duration::from_secs(args.timeout),
    };
    execute(file, args.on, &sequence.runs, how)
}

/// Returns the comparison of two models: their common parts and their differences.
///
/// # Errors
/// Errors of reading their metadata; outputs that are not as many.
pub(super) fn report(a: &Side, b: &Side) -> Result<Report> {
    let models = [inspect::summary(&a.file)?, inspect::summary(&b.file)?];
    let mut names: Vec<&String> = models.iter().flat_map(|model| model.ops_final.keys()).collect();
    names.sort();
    names.dedup();
    let of_kind = |model: &Summary, kind: &str| model.ops_final.get(kind).map(|&count| count as u64);
    let steps = names.into_iter().map(|kind| Figure {
        name: kind.clone(),
        a: of_kind(&models[0], kind),
        b: of_kind(&models[1], kind),
    });
    let steps = steps.collect();
    let mut figures = figures(&models);
    let instructions = |side: &Side| {
        let counted = &side.outcome.as_ref()?.instructions;
        (!counted.is_empty()).then(|| counted.iter().sum::<u64>() / counted.len() as u64)
    };
    if let (Some(of_a), Some(of_b)) = (instructions(a), instructions(b)) {
        figures.push(Figure {
            name: "instructions".to_string(),
            a: Some(of_a),
            b: Some(of_b),
        });
    }
    Ok(Report {
        figures,
        steps,
        step_list: pairs(step_figures(a)?, step_figures(b)?),
        outputs: outputs(a, b)?,
        models,
    })
}

/// The summary's numbers.
fn figures([a, b]: &[Summary; 2]) -> Vec<Figure> {
    let of = |model: &Summary| {
        [
            ("arena_bytes", Some(model.arena_bytes)),
            ("state_bytes", Some(model.state_bytes)),
            ("model_bytes", Some(model.model_bytes)),
            ("weights_bytes", Some(model.weights_bytes)),
            ("plan_bytes", Some(model.plan_bytes)),
            // The most of any board that runs the model's target.
            ("stack_bytes", model.stack_bytes.values().max().copied()),
            ("load_stack_bytes", model.load_stack_bytes.values().max().copied()),
            ("params", Some(model.params)),
            ("macs", Some(model.macs)),
            ("steps", Some(model.steps as u64)),
        ]
    };
    let both = of(a).into_iter().zip(of(b));
    both.map(|((name, a), (_, b))| Figure {
        name: name.to_string(),
        a,
        b,
    })
    .collect()
}

fn step_figures(side: &Side) -> Result<Vec<(String, StepFigures)>> {
    let view = side.file.view()?;
    let metas = view.metadata()?.steps;
    let counted = side
        .outcome
        .as_ref()
        .map(|outcome| outcome.step_instructions.as_slice());
    let steps = view.steps()?.into_iter().zip(metas).enumerate();
    let figures = steps.map(|(index, (step, meta))| {
        let figures = StepFigures {
            kernel: step.kernel().name(),
            macs: meta.macs,
            instructions: counted.and_then(|counted| counted.get(index).copied()),
        };
        (meta.name, figures)
    });
    Ok(figures.collect())
}

/// Steps of one name are paired in their order.
fn pairs(a: Vec<(String, StepFigures)>, b: Vec<(String, StepFigures)>) -> Vec<StepPair> {
    let mut rest = b;
    let mut pairs: Vec<StepPair> = a
        .into_iter()
        .map(|(name, a)| {
            let other = rest.iter().position(|(other, _)| *other == name);
            StepPair {
                name,
                a: Some(a),
                b: other.map(|index| rest.remove(index).1),
            }
        })
        .collect();
    pairs.extend(rest.into_iter().map(|(name, b)| StepPair {
        name,
        a: None,
        b: Some(b),
    }));
    pairs
}

fn outputs(a: &Side, b: &Side) -> Result<Option<Vec<OutputPair>>> {
    let (Some(of_a), Some(of_b)) = (&a.outcome, &b.outcome) else {
        return Ok(None);
    };
    let (ports_a, ports_b) = (a.file.view()?.outputs, b.file.view()?.outputs);
    if ports_a.len() != ports_b.len() || of_a.outputs.len() != of_b.outputs.len() {
        let count = |ports: usize, runs: usize| format!("{ports} outputs in {runs} runs");
        let message = format!(
            "the models cannot be compared: {} and {}",
            count(ports_a.len(), of_a.outputs.len()),
            count(ports_b.len(), of_b.outputs.len())
        );
        return Err(Error::new(ErrorKind::Input, message).help("leave --input out to compare sizes and steps alone"));
    }
    let pairs = ports_a.iter().zip(&ports_b).enumerate().map(|(index, (a, b))| {
        let bytes = |outcome: &Outcome| -> Vec<u8> {
            let runs = outcome.outputs.iter();
            runs.flat_map(|run| run[index].iter().copied()).collect()
        };
        let (bytes_a, bytes_b) = (bytes(of_a), bytes(of_b));
        let (real_a, real_b) = (real(a, &bytes_a), real(b, &bytes_b));
        OutputPair {
            a: a.name.to_string(),
            b: b.name.to_string(),
            equal: bytes_a == bytes_b,
            relative_error: (real_a.len() == real_b.len()).then(|| compare::relative_f64(&real_b, &real_a)),
        }
    });
    Ok(Some(pairs.collect()))
}

/// An output's real values.
fn real(port: &Port<'_>, bytes: &[u8]) -> Vec<f64> {
    let values = compare::to_f64(port.dtype, bytes);
    // Elements that are no quantised numbers have a scale of 0.
    if port.scale == 0.0 {
        return values;
    }
    let (scale, zero_point) = (f64::from(port.scale), f64::from(port.zero_point));
    values.into_iter().map(|q| (q - zero_point) * scale).collect()
}

fn text(report: &Report) -> String {
    let [a, b] = &report.models;
    let head =
        |name: &str, model: &Summary| format!("{name}: {} (target {}, {})\n", model.name, model.target, model.dtype);
    let mut text = head("A", a) + &head("B", b);
    for (what, a, b) in [("inputs", &a.inputs, &b.inputs), ("outputs", &a.outputs, &b.outputs)] {
        let ports = |of: &[PortSummary]| of.iter().map(port_text).collect::<Vec<_>>().join("; ");
        text += &format!("  {what:<8} A  {}\n  {:<8} B  {}\n", ports(a), "", ports(b));
    }
    text += &table(report, ["A", "B"], |_| true);
    text += &steps(report, ["A", "B"]);
    match &report.outputs {
        None => text += "\noutputs: not computed; --input X.npy runs both models\n",
        Some(outputs) => {
            text += "\noutputs\n";
            for pair in outputs {
                let verdict = match (pair.equal, pair.relative_error) {
                    (true, _) => "the same bytes".to_string(),
                    (false, Some(error)) => format!("relative error {error:.3e}"),
                    (false, None) => "different shapes".to_string(),
                };
                text += &format!("  {} and {}: {verdict}\n", pair.a, pair.b);
            }
        }
    }
    text
}

/// The figures and counts that are to be shown, a row each, under two names.
pub(super) fn table(report: &Report, names: [&str; 2], shown: impl Fn(&Figure) -> bool) -> String {
    let mut text = format!("\n{:<18} {:>14} {:>14} {:>9}\n", "", names[0], names[1], "ratio");
    let figures = report
        .figures
        .iter()
        .map(|figure| (figure.name.replace('_', " "), figure));
    let kinds = report.steps.iter().map(|figure| (format!("  {}", figure.name), figure));
    for (name, figure) in figures.chain(kinds).filter(|(_, figure)| shown(figure)) {
        let Figure { a, b, .. } = figure;
        text += &format!(
            "{name:<18} {:>14} {:>14} {:>9}\n",
            number(*a),
            number(*b),
            ratio(*a, *b)
        );
    }
    text
}

/// The steps that are not the same.
pub(super) fn steps(report: &Report, names: [&str; 2]) -> String {
    let differing: Vec<&StepPair> = report.step_list.iter().filter(|pair| pair.a != pair.b).collect();
    let same = report.step_list.len() - differing.len();
    let mut text = format!("\nsteps: {same} the same, {} differ\n", differing.len());
    for StepPair { name, a, b } in differing {
        text += &format!("  {name}\n");
        for (side, step) in names.into_iter().zip([a, b]) {
            let step = step.as_ref().map_or("-".to_string(), |step| {
                let cost = step.instructions.map(|n| format!(", {} instructions", grouped(n)));
                format!(
                    "{} of {} MACs{}",
                    step.kernel,
                    grouped(step.macs),
                    cost.unwrap_or_default()
                )
            });
            text += &format!("    {side:<8} {step}\n");
        }
    }
    text
}

impl Report {
    /// Whether no figure and no count differs.
    pub(super) fn same_figures(&self) -> bool {
        self.figures.iter().chain(&self.steps).all(Figure::same)
    }
}

impl Figure {
    /// Whether both models have the same.
    pub(super) fn same(&self) -> bool {
        self.a == self.b
    }
}

fn number(value: Option<u64>) -> String {
    value.map_or("-".to_string(), grouped)
}

fn ratio(a: Option<u64>, b: Option<u64>) -> String {
    match (a, b) {
        (Some(a @ 1..), Some(b)) => format!("{:.3}", b as f64 / a as f64),
        _ => String::new(),
    }
}
