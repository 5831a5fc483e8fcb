//! The most instructions of each kernel on each board: counts of generated steps, and the linear forms that none exceeds.
//!
//! [`update`] makes the table that `pack` and `bench` tell from (`host-tools/board/src/worst/instructions.json`); `tests/tests/boards/most.rs` compares it
//! with the tracked results and with steps that it was not made from.

pub mod axes;
pub mod fit;
pub mod generate;
pub mod measure;
pub mod rates;

use std::collections::BTreeMap;
use std::path::Path;

use arenite::KernelId;
use arenite_host::board::{BenchStep, Board};
use arenite_host::files;
use arenite_host::worst::instructions::{Form, Instructions, Row, features, row};

use crate::results;
use fit::Point;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Steps of a kernel that a form is made from, and as many fresh ones in each round that looks for exceptions.
const STEPS: usize = 240;
const FRESH: usize = 120;
const ROUNDS: u64 = 6;
/// Rounds at the most, for rows that have fewer than enough steps; of fewer than half of these no form is made.
const MOST_ROUNDS: u64 = 12;
const ENOUGH: usize = 40;

/// Margin of a form above all counts, for shapes that nobody generated: once more than the last round was above the form of those before it.
const MARGIN: f64 = 1.02;
/// More is a feature that is missing.
const LARGEST: f64 = 1.1;
/// And windows that kernels seldom meet have no form where fresh ones are so far above it: it lacks what the loops go by.
const UNRELIABLE: f64 = 1.4;

/// Contents whose counts are so far apart make a count one that depends on the data.
const BY_DATA: f64 = 1.02;

/// Rewrites the rows of `boards` in the table at `path`, of `kernels` alone where there are any; `note` hears of each.
///
/// # Errors
/// Where a board does not run the steps.
pub fn update(path: &Path, boards: &[&'static Board], kernels: &[KernelId], note: &mut dyn FnMut(&str)) -> Result<()> {
    for board in boards {
        for &kernel in KernelId::ALL {
            if !board.has(kernel) || !(kernels.is_empty() || kernels.contains(&kernel)) {
                continue;
            }
            let made = rows(board, kernel, note)?;
            if made.is_empty() && !kernels.is_empty() {
                note(&format!("{} {}: no step was generated", board.name, kernel.name()));
            }
            // Read anew, so that commands for several boards can run at a time.
            let mut table: Instructions = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            let rows = table.0.entry(board.name.to_owned()).or_default();
            rows.retain(|name, _| name.split(' ').next() != Some(kernel.name()));
            rows.extend(made);
            write(path, &table)?;
        }
    }
    Ok(())
}

/// Counts of the steps of a row.
#[derive(Default)]
struct Counted {
    points: Vec<Point>,
    /// How far the last round's steps are above the form of those before.
    above: f64,
    /// Ratio of the dearest contents' cost to that of the cheapest.
    spread: f64,
}

/// The rows of a kernel.
fn rows(board: &'static Board, kernel: KernelId, note: &mut dyn FnMut(&str)) -> Result<BTreeMap<String, Row>> {
    let mut all = BTreeMap::<String, Counted>::new();
    for round in 0..MOST_ROUNDS {
        // Rows of which the generator seldom makes a step are waited for.
        if round > ROUNDS && all.values().all(|counted| counted.points.len() >= ENOUGH) {
            break;
        }
        let mut fresh = BTreeMap::<String, Vec<Point>>::new();
        let steps = if round == 0 { STEPS } else { FRESH };
        for sample in measure::count(board, kernel, 1000 * round + 1, steps)? {
            let row = sample.row();
            let counted = all.entry(row.clone()).or_default();
            counted.spread = counted.spread.max(sample.most() / sample.least());
            fresh.entry(row).or_default().push((sample.features(), sample.most()));
        }
        for (row, fresh) in fresh {
            let counted = all.entry(row).or_default();
            if round >= ROUNDS && counted.points.len() >= ENOUGH / 2 {
                // Of a form without a margin: how far steps that it was not made from are above it is what others may be.
                let above = fit::above(&fit::fit(&counted.points), &fresh);
                counted.above = counted.above.max(above);
            }
            counted.points.extend(fresh);
        }
    }
    for (row, point) in tracked(board, kernel)? {
        all.entry(row).or_default().points.push(point);
    }
    all.retain(|name, counted| {
        let seldom = name.ends_with(" dilated") || name.ends_with(" in groups");
        let enough = counted.points.len() >= ENOUGH / 2 && !(seldom && counted.above > UNRELIABLE);
        if !enough {
            note(&format!(
                "{} {name}: no form from {} steps, the last round at most {:.3} times the form before",
                board.name,
                counted.points.len(),
                counted.above
            ));
        }
        enough
    });
    let mut rows = BTreeMap::new();
    for (name, counted) in &all {
        let margin = counted.above.clamp(MARGIN, LARGEST) * MARGIN;
        let form = form(&counted.points, margin);
        let mean = fit::mean(&form, &counted.points);
        note(&format!(
            "{} {name}: {} steps, on average {mean:.3} times the count; the last round at most {:.3} times the form before; by data {:.3}",
            board.name,
            counted.points.len(),
            counted.above,
            counted.spread
        ));
        let by_data = (counted.spread > BY_DATA).then(|| (counted.spread * 1e3).ceil() / 1e3);
        rows.insert(name.clone(), Row { per: form, by_data });
    }
    Ok(rows)
}

/// The steps of the tracked models, of inputs of zeros: shapes of networks, which are larger than most that are generated.
fn tracked(board: &'static Board, kernel: KernelId) -> Result<Vec<(String, Point)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("ARENITE_SHARED").map_or_else(|| root.join("../shared"), Into::into);
    let mut points = Vec::new();
    for subject in &results::SUBJECTS {
        let Some(model) = subject
            .file(&root.join("tests/models"), Some(&shared))
            .filter(|file| file.exists())
        else {
            continue;
        };
        let measured = results::read(&root.join(format!("tests/results/{}.json", subject.name)))?;
        for configuration in subject.configurations() {
            let key = (
                configuration.board.name,
                configuration.target.name(),
                configuration.size,
            );
            let Some(measured) = measured.iter().find(|measured| measured.key() == key) else {
                continue;
            };
            let has = |step: &BenchStep| step.kernel == kernel.name();
            if configuration.board.counts_as().name != board.name || !measured.bench.steps.iter().any(has) {
                continue;
            }
            let folder = files::Scratch::new()?;
            let file = results::packed(&model, configuration, folder.path())?;
            let view = file.view()?;
            for (step, counted) in view.steps()?.iter().zip(&measured.bench.steps) {
                if step.kernel() == kernel {
                    points.push((
                        row(step, view.weights()),
                        (features(step, view.weights()), counted.instructions as f64),
                    ));
                }
            }
        }
    }
    Ok(points)
}

/// The form of these points, with its margin, in few digits.
fn form(points: &[Point], margin: f64) -> Form {
    let found = fit::fit(points);
    // A program that was given up is below some.
    let margin = margin * fit::above(&found, points).max(1.0);
    let upwards = |value: f64| {
        let unit = 10f64.powi(value.abs().log10().floor() as i32 - 4);
        (value * margin / unit).ceil() * unit
    };
    let tidy = |value: f64| format!("{:.5e}", upwards(value)).parse().unwrap_or(value);
    found.into_iter().map(|(name, per)| (name, tidy(per))).collect()
}

fn write(path: &Path, table: &Instructions) -> Result<()> {
    let boards = table.0.iter().map(|(board, rows)| {
        let rows: Vec<String> = rows
            .iter()
            .map(|(name, row)| Ok(format!("    \"{name}\": {}", serde_json::to_string(row)?)))
            .collect::<Result<_>>()?;
        Ok(format!("  \"{board}\": {{\n{}\n  }}", rows.join(",\n")))
    });
    let boards: Vec<String> = boards.collect::<Result<_>>()?;
    // Whole or not at all: commands for several boards read it.
    let new = path.with_extension(format!("{}", std::process::id()));
    std::fs::write(&new, format!("{{\n{}\n}}\n", boards.join(",\n")))?;
    std::fs::rename(new, path)?;
    Ok(())
}
