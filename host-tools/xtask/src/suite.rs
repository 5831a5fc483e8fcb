//! `cargo xtask test` and `cargo xtask long`.

mod firmware;
mod jobs;
mod kernel;
mod long;
mod programs;
mod reader;
mod recorded;
mod results;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arenite_xtask::long_tier::LongTier;
use arenite_xtask::require;
use arenite_xtask::suites::{self, SUITES};
use arenite_xtask::tiers::{self, Passed};

use self::jobs::{Job, in_turn};
use self::programs::Program;
use self::recorded::Recorded;
use self::results::Time;
use super::{Result, bench, cargo, gates, mutants, root, run};

pub(super) use self::firmware::build as build_firmware;
pub(super) use self::kernel::kernel;
pub(super) use self::long::{due, long};
pub(super) use self::programs::tell;
pub(super) use self::results::{Outcome, Results};
pub(super) use self::watch::{end_at, is_over, wait, watched};

struct Part {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome>,
    when: When,
}

/// When the whole command runs a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before all else: it takes seconds.
    First,
    /// Behind the other lints, while tests run: all of them want the same folder of cargo's.
    Lint,
    /// As those, but one is this commit's turn.
    LintByTurns,
    /// While tests run.
    Beside,
    /// With the tests, in an order of its own.
    Tests,
    /// Not: another part holds it.
    Held,
}

const fn part(name: &'static str, about: &'static str, when: When, run: fn() -> Result<Outcome>) -> Part {
    Part { name, about, run, when }
}

/// Everything that must hold.
const PARTS: [Part; 18] = [
    part("format", "formatting of all workspaces", When::First, gates::format),
    part(
        "msrv",
        "one minimum version of Rust, which CI tests with",
        When::First,
        gates::msrv,
    ),
    part(
        "clippy",
        "lints of everything that hosts compile",
        When::Lint,
        gates::clippy,
    ),
    part(
        "clippy-kernels",
        "lints of the runtime for every board's core",
        When::LintByTurns,
        gates::kernels,
    ),
    part(
        "clippy-firmware",
        "lints of the firmware for every board",
        When::LintByTurns,
        gates::firmware,
    ),
    part(
        "browser",
        "lints of the packer for browsers",
        When::LintByTurns,
        gates::browser,
    ),
    part(
        "systems",
        "the host tools for Windows and macOS, checked by the compiler",
        When::LintByTurns,
        gates::systems,
    ),
    part(
        "deny",
        "licences, bans and sources of the dependencies",
        When::First,
        gates::deny,
    ),
    part(
        "package",
        "the published packages are complete",
        When::LintByTurns,
        gates::package,
    ),
    part("docs", "documentation without warnings", When::Lint, gates::docs),
    part(
        "python",
        "the references' and the tracer's own tests",
        When::Beside,
        gates::python,
    ),
    part("firmware", "programs for every board", When::Tests, firmware::all),
    part(
        "mutants-changed",
        "a few mutants of the lines that differ from the main branch",
        When::Beside,
        mutants::changed,
    ),
    part(
        "host",
        "unit tests, and all others that neither build nor emulate: a part of `tests`",
        When::Held,
        || tests_of("host"),
    ),
    part(
        "boards",
        "tests of boards and a slice of the long tier: parts of `tests` and `slice`",
        When::Held,
        boards,
    ),
    part(
        "programs",
        "targets, features, packages, projects of users: a part of `tests`",
        When::Held,
        || tests_of("programs"),
    ),
    part("tests", "unit and end-to-end tests", When::Tests, tests),
    part(
        "slice",
        "those tests of the long tier that are this commit's turn",
        When::Tests,
        slice,
    ),
];

/// Files of tests that build programs from nothing in folders of their own, which takes minutes each: begun early, lest one of them ends long behind all
/// others.
const BUILDERS: [&str; 8] = [
    "matrix",
    "new",
    "installed",
    "tasks",
    "panics",
    "signed_boards",
    "include",
    "c",
];

/// Comparisons with independent oracles that the tests make with the project's own data alone.
const COMPARISONS: u64 = 5500;

/// How many pieces of work the report names.
const DEAREST: usize = 60;

/// How a whole run goes.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Everything, where a run takes what is its commit's turn.
    pub(super) all: bool,
    /// Dated where it passes.
    pub(super) record: bool,
}

/// Runs the parts of these names, all where there are none, and says what each took. After `within` nothing begins and what runs is ended; what is left out
/// then is a failure.
pub(super) fn test(names: &[String], how: How, within: Option<Duration>) -> Result<()> {
    let required = require::required();
    require::check(&required)?;
    if let Some(unknown) = names.iter().find(|name| PARTS.iter().all(|part| part.name != *name)) {
        return Err(format!("no part is called `{unknown}`; there are:\n{}", list()).into());
    }
    let start = Instant::now();
    if let Some(until) = within.and_then(|within| start.checked_add(within)) {
        end_at(until);
    }
    let whole_run = names.is_empty();
    let recorded = (whole_run && how.all && how.record).then(Recorded::open).transpose()?;
    let results = if whole_run {
        whole(how, recorded.as_ref())
    } else {
        let named = |part: &&Part| names.iter().any(|name| name == part.name);
        in_turn(PARTS.iter().filter(named).map(Part::job).collect(), 1, &is_over)
    };
    report(&results.times);
    let results = results.finish(start, &required)?;
    if !(whole_run && how.record) {
        return Ok(());
    }
    let earlier = recorded.as_ref().map(|recorded| recorded.earlier()).unwrap_or_default();
    let cores = u32::try_from(cores()).unwrap_or(1);
    let passed = Passed {
        // Of the part that passed longest ago.
        date: earlier.day().unwrap_or_else(|| Passed::today().date),
        minutes: Some((start.elapsed() + earlier.wall / cores).as_secs() / 60),
        cpu_minutes: Some((watch::processor_time("self") + earlier.cpu).as_secs() / 60),
        compared: Some(results.compared),
    };
    tiers::record(&results_folder(), if how.all { "test --all" } else { "test" }, passed)?;
    if let Some(recorded) = recorded {
        println!("{} parts passed in an earlier run", earlier.parts);
        recorded.end()?;
    }
    bench::fill()
}

/// Notes the date of a tier, and rewrites the tables.
fn passed(tier: &str) -> Result<()> {
    tiers::record(&results_folder(), tier, Passed::today())?;
    bench::fill()
}

/// Returns the folder of the tracked results.
fn results_folder() -> PathBuf {
    root().join("tests/results")
}

/// The parts with what they are about.
pub(super) fn list() -> String {
    let lines = PARTS.iter().map(|part| format!("  {:16} {}", part.name, part.about));
    lines.collect::<Vec<_>>().join("\n")
}

impl Part {
    fn job(&self) -> Job {
        Job::new(self.name, self.run)
    }
}

fn jobs(when: When) -> Vec<Job> {
    PARTS.iter().filter(|part| part.when == when).map(Part::job).collect()
}

/// Of what a lint that goes by turns looks at, this run's share of so many.
pub(super) fn of_lint<T>(turns: usize, all: impl IntoIterator<Item = T>) -> Vec<T> {
    programs::taken(jobs(When::LintByTurns).len(), turns, all)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// All parts: tests that compare with oracles first, then what takes long, so that nothing is left to run alone at the end.
fn whole(how: How, recorded: Option<&Arc<Recorded>>) -> Results {
    let mut results = in_turn(jobs(When::First), 1, &is_over);
    let (mut programs, begin) = (Vec::new(), Instant::now());
    match programs::built(&["--workspace"]) {
        Ok(built) => programs = built,
        Err(error) => results.fail(format!("tests: {error}")),
    }
    results.times.push(Time {
        name: "build of the tests".into(),
        wall: begin.elapsed(),
        cpu: watch::spent(),
    });
    let mut waiting = Vec::new();
    if !how.all {
        programs::take_turns(long::turn());
        for Program { name, suite, .. } in programs.iter().filter(|program| programs::waits(&program.name)) {
            println!("{name}: another commit's turn (`cargo test --test {suite} {name}::`)");
            waiting.push(name.clone());
        }
        programs.retain(|program| !programs::waits(&program.name));
    }
    let (oracles, builders, others) = ordered(&programs);
    let mut all = oracles;
    all.extend(builders);
    let (mut lints, by_turns) = (jobs(When::Lint), jobs(When::LintByTurns));
    let by_turns = programs::taken(1, by_turns.len(), by_turns);
    println!(
        "{} of the lints that take turns, others are other commits' turn",
        by_turns.len()
    );
    lints.extend(by_turns);
    all.push(Job::chain("lints", lints));
    all.extend(jobs(When::Beside));
    all.extend(firmware::jobs());
    all.extend(others);
    all.push(examples());
    // Last, for what every run has is to be seen first.
    match long::slice(&programs, how.record) {
        Ok(slice) => all.extend(slice),
        Err(error) => results.fail(format!("slice: {error}")),
    }
    if let Some(recorded) = recorded {
        all = all.into_iter().map(|job| recorded.job(job)).collect();
    }
    let mut tested = in_turn(all, cores(), &is_over);
    check(&mut tested, &waiting);
    results.add(tested);
    results
}

/// The tests in the order in which they begin: those with oracles, those that build, and the others.
fn ordered(programs: &[Program]) -> (Vec<Job>, Vec<Job>, Vec<Job>) {
    let place = |program: &Program| BUILDERS.iter().position(|name| *name == program.name);
    let (mut builders, others): (Vec<_>, Vec<_>) = programs.iter().partition(|program| place(program).is_some());
    builders.sort_by_key(|program| place(program));
    let (oracles, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|program| compares(&program.name));
    let jobs = |programs: Vec<&Program>| programs.into_iter().map(Program::job).collect::<Vec<_>>();
    (jobs(oracles), jobs(builders), jobs(others))
}

fn examples() -> Job {
    Job::new("documentation's examples", || {
        // The runtime's sources once more have its examples, for which `--doc` asks though their manifest has `doctest = false`.
        let others = ["--workspace", "--exclude", "arenite-checks"];
        let all = ["--no-fail-fast", "--doc", "--", "--show-output"];
        programs::shown(cargo(&[&["test"], &others[..], &all].concat()))
    })
}

/// Whether a file of tests says how much it compares with an oracle.
fn compares(name: &str) -> bool {
    fn says(path: &Path) -> bool {
        if path.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return entries.into_iter().any(|entry| says(&entry.path()));
        }
        fs::read_to_string(path).is_ok_and(|text| text.contains("compared("))
    }
    suites::find(&root(), name).is_some_and(|(_, path)| says(&path))
}

/// Conditions on all tests together, and on the host's, which compare with oracles. The programs of `waiting` did not run and named none of their long tests.
fn check(results: &mut Results, waiting: &[String]) {
    if results.compared < COMPARISONS {
        results.fail(format!(
            "{} results were compared with independent oracles, expected {COMPARISONS}",
            results.compared
        ));
    }
    check_long(results, waiting);
}

/// That the long tier on record is what the tests call so, but for the programs of `waiting`.
fn check_long(results: &mut Results, waiting: &[String]) {
    match LongTier::read(&results_folder()) {
        // Programs that did not run have named none.
        _ if !results.good => {}
        Ok(tier) => tier
            .faults(&results.long, waiting)
            .into_iter()
            .for_each(|fault| results.fail(fault)),
        Err(error) => results.fail(error.to_string()),
    }
}

/// Half of these programs wait for one thread, that links firmware or is qemu: as many run at once as there are cores.
fn tests() -> Result<Outcome> {
    let mut results = all_of(&programs::built(&["--workspace"])?, vec![examples()]);
    check(&mut results, &[]);
    Ok(Outcome::Tested(results))
}

fn all_of(programs: &[Program], more: Vec<Job>) -> Results {
    let (oracles, builders, others) = ordered(programs);
    let all = oracles.into_iter().chain(builders).chain(others).chain(more);
    in_turn(all.collect(), cores(), &is_over)
}

/// The tests of one suite, for a machine that leaves the others to its neighbours.
fn tests_of(suite: &'static str) -> Result<Outcome> {
    let host = suite == SUITES[0];
    let programs = programs::built(&[if host { "--workspace" } else { "--package=arenite-tests" }])?;
    let mine: Vec<_> = programs.into_iter().filter(|program| program.suite == suite).collect();
    let mut results = all_of(&mine, if host { vec![examples()] } else { vec![] });
    let check = if host { check } else { check_long };
    check(&mut results, &waiting_for(suite)?);
    Ok(Outcome::Tested(results))
}

/// The programs with long tests that a machine with one suite leaves to its neighbours.
fn waiting_for(suite: &str) -> Result<Vec<String>> {
    let tier = LongTier::read(&results_folder())?;
    // Files of no suite, as the command line's tests, are run with the host's.
    let of = |file: &str| suites::find(&root(), file).map_or(SUITES[0], |(suite, _)| suite);
    let others = tier
        .tests()
        .map(|((program, _), _)| program)
        .filter(|program| of(program) != suite);
    Ok(others.map(String::from).collect())
}

fn boards() -> Result<Outcome> {
    let mut results = Results::none();
    results.take(tests_of("boards")?);
    results.take(slice()?);
    Ok(Outcome::Tested(results))
}

fn slice() -> Result<Outcome> {
    let programs = programs::built(&["--workspace"])?;
    Ok(Outcome::Tested(in_turn(
        long::slice(&programs, false)?,
        cores(),
        &is_over,
    )))
}

/// Prints the pieces that took most of the processor, and its total.
fn report(times: &[Time]) {
    let mut times: Vec<&Time> = times.iter().collect();
    times.sort_by_key(|time| std::cmp::Reverse(time.cpu));
    println!("   CPU s   wall s  what took most of the processor, each beside another");
    for Time { name, wall, cpu } in times.iter().take(DEAREST) {
        println!("{:>8.1} {:>8.1}  {name}", cpu.as_secs_f64(), wall.as_secs_f64());
    }
    let all = watch::processor_time("self");
    println!(
        "{:>8.1}           all, which is {} minutes",
        all.as_secs_f64(),
        all.as_secs() / 60
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_of_ci_run_every_part_once() {
        let text = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
        let jobs = text.lines().filter_map(|line| line.strip_prefix("          - "));
        let mut run: Vec<&str> = jobs.flat_map(str::split_whitespace).collect();
        run.sort_unstable();
        // Their tests are those of `host`, `boards` and `programs`.
        let mut parts: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        parts.retain(|name| !["tests", "slice"].contains(name));
        parts.sort_unstable();
        assert_eq!(run, parts);
    }

    #[test]
    fn every_long_test_is_looked_for_by_one_machine() {
        let tier = LongTier::read(&results_folder()).unwrap();
        for ((program, name), _) in tier.tests() {
            let looks = |suite: &&&str| !waiting_for(suite).unwrap().contains(&program.to_owned());
            assert_eq!(SUITES.iter().filter(looks).count(), 1, "{program}: {name}");
        }
        assert!(waiting_for("boards").unwrap().contains(&"cli".to_owned()));
    }
}
