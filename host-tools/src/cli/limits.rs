//! `arenite limits`: figures of a model beside those that a tracked file allows, for a CI.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::program::{Verdict, print_json};
use crate::board::Bench;
use crate::files::{self, print, read_text};
use crate::model::ModelFile;
use crate::report::grouped;
use crate::{Error, Result};

/// Arguments of `arenite limits`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file. Its name without the ending names it among the limits.
    model: PathBuf,
    /// What `arenite bench --json` says of it.
    #[arg(long, value_name = "BENCH.json")]
    bench: PathBuf,
    /// The file of limits.
    #[arg(long, value_name = "LIMITS.json")]
    limits: PathBuf,
    /// Writes the figures into the file of limits as this model's limits; limits of other models and boards stay.
    #[arg(long)]
    record: bool,
    /// Prints the findings as JSON on stdout instead of a table in Markdown.
    #[arg(long)]
    json: bool,
}

/// The file of limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    /// How much a figure may be above its limit, in percent.
    #[serde(default)]
    growth_percent: f64,
    /// Limits by model and board.
    #[serde(default)]
    models: BTreeMap<String, BTreeMap<String, Figures>>,
}

/// Figures of a model on a board, or their limits; what is not there has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    /// Instructions of one inference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    /// Estimated cycles of one inference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
    /// Bytes of the arena.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arena_bytes: Option<u64>,
    /// Bytes of state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state_bytes: Option<u64>,
    /// Bytes of stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack_bytes: Option<u64>,
    /// Bytes of code and constants of the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code_bytes: Option<u64>,
    /// Bytes of the model file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model_bytes: Option<u64>,
}

impl Figures {
    fn of(bench: &Bench, model_bytes: u64) -> Self {
        Self {
            instructions: Some(bench.instructions),
            cycles: bench.cycles,
            arena_bytes: Some(bench.arena_bytes),
            state_bytes: Some(bench.state_bytes),
            stack_bytes: Some(u64::from(bench.stack_bytes)),
            code_bytes: bench.code_bytes,
            model_bytes: Some(model_bytes),
        }
    }

    /// All with their names in the file.
    fn named(self) -> [(&'static str, Option<u64>); 7] {
        [
            ("instructions", self.instructions),
            ("cycles", self.cycles),
            ("arena_bytes", self.arena_bytes),
            ("state_bytes", self.state_bytes),
            ("stack_bytes", self.stack_bytes),
            ("code_bytes", self.code_bytes),
            ("model_bytes", self.model_bytes),
        ]
    }
}

/// State of a figure beside its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Its limit holds.
    Within,
    /// It is above its limit.
    Exceeded,
    /// Its limit cannot be compared: the figure was not measured.
    Unmeasured,
    /// Its limit cannot be compared: there are no figures of its board.
    Missing,
    /// The file has no limit for it.
    Unlimited,
}

/// A figure beside its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    board: String,
    figure: &'static str,
    value: Option<u64>,
    limit: Option<u64>,
    state: State,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    model: &'a str,
    growth_percent: f64,
    /// Whether every limit holds and every board has limits.
    good: bool,
    rows: Vec<Row>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let model = ModelFile::open(&args.model)?;
    let bytes = u64::from(model.view()?.header().total);
    let name = args.model.file_stem().unwrap_or_default().to_string_lossy();
    let benches = benches(&read_text(&args.bench, "read the figures")?).map_err(|e| e.in_file(&args.bench))?;
    let mut limits = if args.record && !args.limits.exists() {
        Limits::default()
    } else {
        parsed(&read_text(&args.limits, "read the limits")?, &args.limits)?
    };
    if args.record {
        let boards = limits.models.entry(name.clone().into_owned()).or_default();
        for bench in &benches {
            boards.insert(bench.board.clone(), Figures::of(bench, bytes));
        }
        let text = serde_json::to_string_pretty(&limits).map_err(|e| Error::internal(format!("JSON: {e}")))?;
        files::write(&args.limits, format!("{text}\n").as_bytes())?;
    }
    let report = report(&limits, &name, &benches, bytes, args.record);
    if args.json {
        print_json(&report)?;
    } else {
        print::out(&table(&report))?;
    }
    if report.good {
        return Ok(Verdict::Good);
    }
    for line in complaints(&report, &benches, &limits, &args.limits) {
        print::note(line);
    }
    Ok(Verdict::Bad)
}

/// The figures beside their limits. Boards without figures stay out where figures are `recorded`.
fn report<'a>(limits: &Limits, model: &'a str, benches: &[Bench], bytes: u64, recorded: bool) -> Report<'a> {
    let mut rows = compared(limits, model, benches, bytes);
    if !recorded {
        rows.extend(missing(limits, model, benches));
    }
    let holds = |row: &Row| matches!(row.state, State::Within | State::Unlimited);
    let has_limits = |bench: &Bench| of_board(limits, model, &bench.board).is_some();
    Report {
        model,
        growth_percent: limits.growth_percent,
        good: rows.iter().all(holds) && benches.iter().all(has_limits),
        rows,
    }
}

/// The figures of one board, or of several.
fn benches(text: &str) -> Result<Vec<Bench>> {
    let parsed = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|bench| vec![bench])
    };
    let found: Vec<Bench> = parsed.map_err(|e| {
        Error::input(format!("these are no figures of a model: {e}"))
            .expected("the output of `arenite bench MODEL --json`")
    })?;
    if found.is_empty() {
        return Err(Error::input("there are figures of no board")
            .expected("the output of `arenite bench MODEL --json`")
            .help("a board that the model does not fit is left out by `--all`"));
    }
    Ok(found)
}

fn parsed(text: &str, path: &Path) -> Result<Limits> {
    let limits: Limits = serde_json::from_str(text).map_err(|e| {
        let names: Vec<_> = Figures::default().named().map(|(name, _)| name).into();
        Error::input(format!("these are no limits: {e}"))
            .in_file(path)
            .expected(format!(
                "{{\"growth_percent\": 2, \"models\": {{\"NAME\": {{\"BOARD\": {{…}}}}}}}} with limits for {}",
                names.join(", ")
            ))
            .help("`arenite limits … --record` writes such a file")
    })?;
    let growth = limits.growth_percent;
    if !(growth.is_finite() && growth >= 0.0) {
        return Err(Error::input(format!("growth_percent is {growth}"))
            .in_file(path)
            .expected("a number of percent, 0 or more"));
    }
    Ok(limits)
}

fn of_board<'a>(limits: &'a Limits, model: &str, board: &str) -> Option<&'a Figures> {
    limits.models.get(model)?.get(board)
}

/// Each figure beside its limit.
fn compared(limits: &Limits, model: &str, benches: &[Bench], bytes: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for bench in benches {
        let allowed = of_board(limits, model, &bench.board).copied().unwrap_or_default();
        let pairs = Figures::of(bench, bytes).named().into_iter().zip(allowed.named());
        for ((figure, value), (_, limit)) in pairs {
            let state = match (value, limit) {
                (Some(value), Some(limit)) if value as f64 > limit as f64 * (1.0 + limits.growth_percent / 100.0) => {
                    State::Exceeded
                }
                (Some(_), Some(_)) => State::Within,
                (None, Some(_)) => State::Unmeasured,
                (Some(_), None) => State::Unlimited,
                (None, None) => continue,
            };
            rows.push(Row {
                board: bench.board.clone(),
                figure,
                value,
                limit,
                state,
            });
        }
    }
    rows
}

/// Limits of boards without figures: a board that the model no longer fits is left out by `arenite bench --all`.
fn missing(limits: &Limits, model: &str, benches: &[Bench]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (board, allowed) in limits.models.get(model).into_iter().flatten() {
        if benches.iter().any(|bench| bench.board == *board) {
            continue;
        }
        // A board without a limit is to be fitted all the same.
        let mut named: Vec<_> = allowed.named().into();
        named.retain(|(_, limit)| limit.is_some());
        if named.is_empty() {
            named.push(("instructions", None));
        }
        rows.extend(named.into_iter().map(|(figure, limit)| Row {
            board: board.clone(),
            figure,
            value: None,
            limit,
            state: State::Missing,
        }));
    }
    rows
}

/// The table in Markdown.
fn table(report: &Report<'_>) -> String {
    let mut text = format!(
        "### {}\n\n| board | figure | now | limit | change | |\n| --- | --- | ---: | ---: | ---: | --- |\n",
        report.model
    );
    let shown = |figure: Option<u64>| figure.map_or("-".to_owned(), grouped);
    for row in &report.rows {
        let change = match (row.value, row.limit) {
            (Some(value), Some(limit)) if limit > 0 => {
                format!("{:+.1} %", (value as f64 / limit as f64 - 1.0) * 100.0)
            }
            _ => "-".to_owned(),
        };
        let said = match row.state {
            State::Within => "",
            State::Exceeded => "**exceeded**",
            State::Unmeasured => "**not measured**",
            State::Missing => "**no figures**",
            State::Unlimited => "no limit",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {change} | {said} |",
            row.board,
            row.figure,
            shown(row.value),
            shown(row.limit)
        );
    }
    text + "\n"
}

/// Returns the complaints about the figures, a line each.
fn complaints(report: &Report<'_>, benches: &[Bench], limits: &Limits, path: &Path) -> Vec<String> {
    let model = report.model;
    let mut lines: Vec<String> = benches
        .iter()
        .filter(|bench| of_board(limits, model, &bench.board).is_none())
        .map(|bench| {
            format!(
                "{}: no limits for {model} on {}; `--record` writes them",
                path.display(),
                bench.board
            )
        })
        .collect();
    for row in &report.rows {
        let (value, limit) = (row.value.unwrap_or_default(), row.limit.unwrap_or_default());
        match row.state {
            State::Exceeded => lines.push(format!(
                "{model} on {}: {} is {}, above its limit {} by more than {} %; if it is meant, `--record` writes the new one",
                row.board,
                row.figure,
                grouped(value),
                grouped(limit),
                report.growth_percent
            )),
            State::Unmeasured => lines.push(format!(
                "{model} on {}: {} has the limit {} and was not measured; run `arenite bench` without --quick",
                row.board,
                row.figure,
                grouped(limit)
            )),
            State::Within | State::Unlimited | State::Missing => {}
        }
    }
    let mut boards: Vec<&str> = report
        .rows
        .iter()
        .filter(|row| row.state == State::Missing)
        .map(|row| row.board.as_str())
        .collect();
    boards.dedup();
    lines.extend(boards.into_iter().map(|board| {
        format!(
            "{model} on {board}: it has limits and no figures; `arenite bench` with --on qemu:{board} says whether the model still fits; \
             if it need not, take the board out of {}",
            path.display()
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(board: &str, instructions: u64) -> Bench {
        let text = format!(
            r#"{{"board": "{board}", "target": "cortex-m4", "instructions": {instructions}, "load_instructions": 7, "steps": [], "arena_bytes": 512,
                "arena_touched_bytes": 500, "state_bytes": 0, "stack_bytes": 300, "load_stack_bytes": 20, "code_bytes": null}}"#
        );
        benches(&text).expect("figures").remove(0)
    }

    fn states(limits: &str, instructions: u64) -> Vec<(&'static str, State)> {
        let limits = parsed(limits, Path::new("limits.json")).expect("limits");
        let rows = compared(&limits, "net", &[bench("b", instructions)], 900);
        rows.into_iter().map(|row| (row.figure, row.state)).collect()
    }

    #[test]
    fn a_figure_may_grow_by_so_many_percent_and_no_more() {
        let limits = r#"{"growth_percent": 2, "models": {"net": {"b": {"instructions": 1000, "arena_bytes": 511, "code_bytes": 5}}}}"#;
        let expected = |first| {
            vec![
                ("instructions", first),
                ("arena_bytes", State::Within),
                ("state_bytes", State::Unlimited),
                ("stack_bytes", State::Unlimited),
                ("code_bytes", State::Unmeasured),
                ("model_bytes", State::Unlimited),
            ]
        };
        assert_eq!(states(limits, 1020), expected(State::Within));
        assert_eq!(states(limits, 1021), expected(State::Exceeded));
        let strict = limits.replace("\"growth_percent\": 2, ", "");
        assert_eq!(
            states(&strict, 1000)[..2],
            [("instructions", State::Within), ("arena_bytes", State::Exceeded)]
        );
        assert_eq!(states(&strict, 1001)[0].1, State::Exceeded);
    }

    #[test]
    fn boards_without_figures_fail_by_name() {
        let limits = r#"{"models": {"net": {"a": {"instructions": 9, "arena_bytes": 512}, "b": {"instructions": 1000}, "c": {}}, "other": {"d": {}}}}"#;
        let path = Path::new("limits.json");
        let limits = parsed(limits, path).expect("limits");
        let benches = [bench("b", 1000)];
        let report = report(&limits, "net", &benches, 900, false);
        let absent: Vec<_> = report
            .rows
            .iter()
            .filter(|row| row.board != "b")
            .map(|row| (row.board.as_str(), row.figure, row.limit, row.state))
            .collect();
        let expected = [
            ("a", "instructions", Some(9), State::Missing),
            ("a", "arena_bytes", Some(512), State::Missing),
            ("c", "instructions", None, State::Missing),
        ];
        assert_eq!(absent, expected);
        assert!(!report.good);
        assert!(table(&report).contains("| a | arena_bytes | - | 512 | - | **no figures** |"));
        let lines = complaints(&report, &benches, &limits, path);
        let of = |board| {
            lines
                .iter()
                .filter(|line| line.starts_with(&format!("net on {board}: it has limits")))
                .count()
        };
        assert_eq!((of("a"), of("b"), of("c"), lines.len()), (1, 0, 1, 2), "{lines:?}");
        // Limits of boards that are recorded one after the other.
        assert!(super::report(&limits, "net", &benches, 900, true).good);
    }

    #[test]
    fn what_is_no_file_of_limits_is_refused_by_what_is_wrong() {
        for (text, why) in [
            ("", "these are no limits:"),
            (r#"{"models": {"net": {"b": {"instrucions": 1}}}}"#, "instrucions"),
            (r#"{"growth": 1}"#, "growth"),
            (r#"{"growth_percent": -1}"#, "growth_percent is -1"),
            (r#"{"models": {"net": {"b": {"instructions": -1}}}}"#, "-1"),
        ] {
            let error = parsed(text, Path::new("l.json")).expect_err(text);
            assert!(error.message().contains(why), "{text}: {}", error.message());
        }
        assert!(
            benches("[]")
                .expect_err("none")
                .message()
                .contains("there are figures of no board")
        );
        assert!(
            benches("{}")
                .expect_err("none")
                .message()
                .contains("these are no figures of a model:")
        );
    }
}
