//! `cargo xtask long`: the tests that take minutes, which `tests/results/long.json` lists, and the slice of them that each run of the others takes.

use std::process::Command;
use std::time::{Duration, Instant};

use arenite_xtask::long_tier::{LongTier, Test};
use arenite_xtask::{require, suites};

use super::jobs::Job;
use super::programs::{Program, built, shown};
use super::watch::{left, spent, watched};
use super::{Outcome, Result, Results, cargo, gates, passed, results_folder, root};

/// The long tier tries this many cases of a property; [`ProptestConfig::cases`] without it is 256, of which the properties state multiples.
///
/// [`ProptestConfig::cases`]: https://docs.rs/proptest/latest/proptest/test_runner/struct.Config.html
const LONG_CASES: &str = "2560";

/// A test of a slice takes so many times what is on record where the programs that it runs are not built yet, beside another test.
const BUILT_TOO: u64 = 4;

/// Property tests, ten times as long and from another seed, which is printed.
fn properties() -> Result<Results> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| since.as_secs().to_string());
    println!("properties: PROPTEST_RNG_SEED={seed} PROPTEST_CASES={LONG_CASES} repeats this");
    let mut results = Results::none();
    let package = ["--package", "arenite-tests"].map(String::from).into_iter();
    let of_tests: Vec<String> = package.chain(suites::targets(&root(), &require::PROPERTIES)).collect();
    let units = ["--package", "arenite", "--package", "arenite-plan", "--lib"].map(String::from);
    for (of, filters) in [
        (units.into(), vec![]),
        (of_tests, suites::filters(&require::PROPERTIES)),
    ] {
        let mut command = cargo(&["test", "--release", "--no-fail-fast"]);
        command.args(of).args(["--", "--show-output"]).args(filters);
        command
            .env("PROPTEST_RNG_SEED", &seed)
            .env("PROPTEST_CASES", LONG_CASES);
        results.add(watched(command)?);
    }
    Ok(results)
}

/// The tests of the long tier whose program or name contains `filter`; all of them, and then the property tests, without one. With `record` each that
/// passes is dated, and so is the tier where all do.
pub(in super::super) fn long(filter: Option<&str>, record: bool) -> Result<()> {
    let required = require::required();
    require::check(&required)?;
    let start = Instant::now();
    if filter == Some("properties") {
        return properties()?.finish(start, &required).map(drop);
    }
    let tier = LongTier::read(&results_folder())?;
    let chosen = tier.matching(filter);
    if chosen.is_empty() {
        let names: Vec<_> = tier
            .tests()
            .map(|((program, name), _)| format!("  {program}: {name}"))
            .collect();
        return Err(format!(
            "no test of the long tier is called `{}`; there are:\n{}",
            filter.unwrap_or_default(),
            names.join("\n")
        )
        .into());
    }
    let mut results = Results::none();
    if filter.is_none() {
        super::super::setup::everything::build_deny()?;
        for gate in [gates::deny, gates::advisories] {
            results.take(gate()?);
        }
    }
    for optimised in [false, true] {
        let tests = chosen.iter().filter(|(_, row)| row.release.is_some() == optimised);
        let tests: Vec<Test> = tests.map(|(test, _)| *test).collect();
        if tests.is_empty() {
            continue;
        }
        let mut of: Vec<&str> = tests.iter().map(|(program, _)| *program).collect();
        of.dedup();
        let targets = suites::targets(&root(), &of);
        let mut arguments = vec!["--package", "arenite-tests", "--package", "arenite-host"];
        arguments.extend(targets.iter().map(String::as_str));
        arguments.extend(optimised.then_some("--release"));
        let programs = built(&arguments)?;
        for test in tests {
            let run = run_one(&programs, test, record, |program, arguments| {
                watched(program.command(&[arguments, &["--nocapture"]].concat()))
            });
            match run {
                Ok(of) => results.add(of),
                Err(error) => results.fail(format!("{}: {}: {error}", test.0, test.1)),
            }
        }
    }
    if filter.is_none() {
        results.add(properties()?);
    }
    results.finish(start, &required)?;
    match filter {
        None if record => passed("long"),
        _ if record => super::bench::fill(),
        _ => Ok(()),
    }
}

/// Runs one test by its whole name. One that passes, and did not skip anything, is dated where `record` says so.
fn run_one(
    programs: &[Program],
    (program, name): Test<'_>,
    record: bool,
    run: impl Fn(&Program, &[&str]) -> Result<Results>,
) -> Result<Results> {
    let of = programs.iter().find(|of| of.name == program);
    let of = of.ok_or_else(|| format!("there is no program `{program}`"))?;
    let before = spent();
    let test = of.test(name);
    let mut results = run(of, &["--ignored", "--exact", &test, "--test-threads", "1"])?;
    if !results.good {
        results.fail(format!("{program}: {name}"));
    } else if results.passed == 0 {
        results.fail(format!("{program}: there is no test `{name}`"));
    } else if record && results.skipped.is_empty() {
        let seconds = spent().saturating_sub(before).as_secs();
        LongTier::record(&results_folder(), (program, name), seconds)?;
    }
    Ok(results)
}

/// A number of this commit, whose rest by a count says which of so many parts is its turn; 0 without a commit.
pub(super) fn turn() -> usize {
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_default();
    usize::from_str_radix(commit.get(..7).unwrap_or_default(), 16).unwrap_or_default()
}

/// The tests of the slice that is this commit's turn. Without a commit there is none, which is said.
pub(super) fn slice(programs: &[Program], record: bool) -> Result<Vec<Job>> {
    let Some(commit) = git(&["rev-parse", "HEAD"]) else {
        return Ok(vec![Job::new("slice", || {
            Ok(Outcome::skipped("a slice of the long tier", "no commit says which"))
        })]);
    };
    let tier = LongTier::read(&results_folder())?;
    let (number, count, tests) = tier.slice(&commit);
    println!(
        "slice {} of {count} of the long tier: {} tests",
        number + 1,
        tests.len()
    );
    let seconds = |test: Test| {
        let row = tier.tests().find(|(other, _)| *other == test);
        row.and_then(|(_, row)| row.seconds).unwrap_or_default()
    };
    let job = |(program, name): Test| {
        let (programs, test) = (programs.to_vec(), (program.to_owned(), name.to_owned()));
        let what = format!("{program}: {name} (long)");
        let needed = Duration::from_secs(BUILT_TOO * seconds((program, name)));
        Job::new(what.clone(), move || {
            if left().is_some_and(|left| left < needed) {
                let reason = "the time of --within has no room for more than the tests that every run has";
                return Ok(Outcome::skipped(&what, reason));
            }
            let run = |program: &Program, arguments: &[&str]| match shown(
                program.command(&[arguments, &["--show-output"]].concat()),
            )? {
                Outcome::Tested(results) => Ok(results),
                _ => Ok(Results::none()),
            };
            run_one(&programs, (&test.0, &test.1), record, run).map(Outcome::Tested)
        })
    };
    let unknown = |(program, name): Test| {
        let what = format!("{program}: {name}");
        let reason = format!("no slice has it, what it takes is not on record (`cargo xtask long {name} --record`)");
        Job::new(what.clone(), move || Ok(Outcome::skipped(&what, &reason)))
    };
    Ok(tests
        .into_iter()
        .map(job)
        .chain(tier.without_cost().map(unknown))
        .collect())
}

/// Names the tests of the long tier that have not passed since what they test changed last; an error where there is one, which a release must not have.
pub(in super::super) fn due() -> Result<()> {
    let tier = LongTier::read(&results_folder())?;
    let mut due = Vec::new();
    for ((program, name), row) in tier.tests() {
        let file = suites::find(&root(), program).map(|(_, path)| path.display().to_string());
        let mut log = vec!["log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M", "--"];
        log.extend(["core", "firmware", "host-tools", "tests/src"]);
        log.extend(file.as_deref());
        let changed = git(&log).ok_or("git does not tell when files changed")?;
        let passed = row.passed.as_deref().unwrap_or("-");
        if row.passed.as_ref().is_none_or(|passed| *passed < changed) {
            due.push(format!("{program}: {name}: passed {passed}, changed {changed}"));
        }
    }
    due.iter().for_each(|line| println!("{line}"));
    match due.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} tests of the long tier have not passed since the last change: `cargo xtask long --record`"
        )
        .into()),
    }
}

/// Returns the output of git, in UTC; nothing where there is no git or no repository.
pub(super) fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    let output = command
        .args(arguments)
        .current_dir(root())
        .env("TZ", "UTC")
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
