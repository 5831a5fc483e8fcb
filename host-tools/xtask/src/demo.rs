//! `cargo xtask demo`: the main job from end to end.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use arenite_host::board::{Blob, Board, Progress, RunOptions, RunReport, run_with_progress};
use arenite_host::cli::grouped;
use arenite_host::compare;
use arenite_host::pack::{self, pack};
use arenite_host::report::Summary;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ndarray::ArrayD;

use super::{Result, root};

const BOARD: &str = "mps2-an386";
const CLASSES: usize = 10;

/// Results of the demo.
struct Outcome {
    summary: Summary,
    report: RunReport,
    samples: usize,
    right: usize,
    right_in_pytorch: usize,
    same_choice: usize,
    worst: f64,
}

pub(super) fn run() -> Result<()> {
    let folder = root().join("tests/models/digits");
    let output = root().join("target/demo/digits.bin");
    std::fs::create_dir_all(root().join("target/demo"))?;
    eprintln!("1  pack tests/models/digits/digits.trace.json: a digit classifier traced from PyTorch");
    let mut options = pack::Options::new(folder.join("digits.trace.json"), output.clone());
    options.target = arenite::Target::CortexM4;
    options.labels = (0..CLASSES).map(|class| class.to_string()).collect();
    let summary = pack(&options, &mut |_, _, _| {})?.summary;

    let board = Board::find(BOARD).ok_or("no such board")?;
    eprintln!("2  build the firmware for {BOARD} and run all held-out images on it");
    let images: ArrayD<f32> = read(&folder.join("test_images.npy"))?;
    let labels: ArrayD<i64> = read(&folder.join("test_labels.npy"))?;
    let expected: ArrayD<f32> = read(&folder.join("digits.test_logits.npy"))?;
    let samples = labels.len();
    let inputs: Vec<u8> = images.iter().flat_map(|v| v.to_le_bytes()).collect();
    let options = RunOptions {
        runs: u32::try_from(samples)?,
        timeout: Duration::from_secs(1800),
        ..RunOptions::default()
    };
    let mut shown = Shown::new(samples);
    let report = run_with_progress(board, Blob::File(&output), &inputs, &options, &mut |now| {
        shown.update(now)
    })?;
    shown.finish();

    let logits = compare::to_f64(arenite::DType::F32, &report.outputs);
    let expected: Vec<f64> = expected.iter().map(|&v| f64::from(v)).collect();
    if logits.len() != expected.len() || logits.len() != samples * CLASSES {
        return Err(format!("{} logits instead of {}", logits.len(), expected.len()).into());
    }
    let choices = |logits: &[f64]| -> Vec<usize> { logits.chunks(CLASSES).map(largest).collect() };
    let (ours, theirs) = (choices(&logits), choices(&expected));
    let right = |choices: &[usize]| choices.iter().zip(&labels).filter(|&(&a, &b)| a as i64 == b).count();
    let runs = logits.chunks(CLASSES).zip(expected.chunks(CLASSES));
    let outcome = Outcome {
        right: right(&ours),
        right_in_pytorch: right(&theirs),
        same_choice: ours.iter().zip(&theirs).filter(|(a, b)| a == b).count(),
        worst: runs.map(|(a, b)| compare::relative_f64(a, b)).fold(0.0, f64::max),
        summary,
        report,
        samples,
    };
    println!("{}", text(&outcome));
    if outcome.right == outcome.right_in_pytorch && outcome.same_choice == samples && outcome.worst <= 1e-5 {
        Ok(())
    } else {
        Err("the board's results are not PyTorch's".into())
    }
}

fn text(outcome: &Outcome) -> String {
    let Outcome {
        summary,
        report,
        samples,
        ..
    } = outcome;
    let each = report.instructions.iter().sum::<u64>() / (report.instructions.len() as u64).max(1);
    let percent = |right: usize| 100.0 * right as f64 / (*samples).max(1) as f64;
    let lines = [
        format!("The digit classifier on an emulated Cortex-M4F ({BOARD}), {samples} held-out images:"),
        String::new(),
        format!("  right            {} = {:.2} %", outcome.right, percent(outcome.right)),
        format!(
            "  right in PyTorch {} = {:.2} %",
            outcome.right_in_pytorch,
            percent(outcome.right_in_pytorch)
        ),
        format!(
            "  same choice      {} of {samples}; logits differ by at most {:.1e}",
            outcome.same_choice, outcome.worst
        ),
        format!(
            "  one image        {} instructions; `arenite bench` estimates the cycles",
            grouped(each)
        ),
        format!(
            "  arena            {} bytes (max-live as traced: {})",
            grouped(summary.arena_bytes),
            grouped(summary.liveness_as_traced_bytes)
        ),
        format!("  stack            {} bytes", grouped(u64::from(report.stack_bytes))),
        format!(
            "  model            {} bytes, {} of them weights",
            grouped(summary.model_bytes),
            grouped(summary.weights_bytes)
        ),
    ];
    lines.join("\n")
}

fn read<T: ndarray_npy::ReadableElement>(path: &Path) -> Result<ArrayD<T>> {
    ndarray_npy::read_npy(path).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn largest(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

/// A bar on a terminal, a line now and then elsewhere.
struct Shown {
    bar: ProgressBar,
    terminal: bool,
    samples: usize,
    said: usize,
}

impl Shown {
    fn new(samples: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::new(samples as u64);
        if !terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("   {msg}{wide_bar} {pos} of {len} images") {
            bar.set_style(style);
        }
        Self {
            bar,
            terminal,
            samples,
            said: 0,
        }
    }

    fn update(&mut self, now: Progress) {
        const LINES: usize = 6;
        let done = match now {
            Progress::Building { done, of, .. } => {
                let message = format!("compiling the board's program, once: {done} of {of} parts ");
                return self.bar.set_message(message);
            }
            Progress::Running { runs, .. } => runs as usize,
        };
        self.bar.set_message("");
        self.bar.set_position(done as u64);
        if !self.terminal && done * LINES / self.samples.max(1) > self.said {
            self.said = done * LINES / self.samples.max(1);
            eprintln!("   {done} of {} images", self.samples);
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
        eprintln!("   {0} of {0} images", self.samples);
    }
}
