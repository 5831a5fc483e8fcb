//! `cargo xtask test` and `cargo xtask long`.

mod reader;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use arenite_host::board::{BOARDS, Board, BoardError, Firmware};
use arenite_xtask::{require, tiers};

use self::reader::Reader;
use super::{Result, bench, cargo, gates, mutants, root, run, setup};

/// What came of a part that did not fail.
pub(super) enum Outcome {
    /// All of it holds.
    Held,
    /// Part of it did not run; the line says which, and why.
    Skipped(String),
    /// Tests ran.
    Tested(Results),
}

impl Outcome {
    pub(super) fn skipped(what: &str, reason: &str) -> Self {
        Outcome::Skipped(format!("skipped: {what}: {reason}"))
    }
}

struct Part {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome>,
    /// Whether the whole command runs it; what is not of the whole is contained in another part.
    of_the_whole: bool,
}

const fn part(name: &'static str, about: &'static str, run: fn() -> Result<Outcome>) -> Part {
    Part {
        name,
        about,
        run,
        of_the_whole: true,
    }
}

/// Everything that must hold, cheapest first; the tests last, so that their results close the output.
const PARTS: [Part; 15] = [
    part("format", "formatting of all workspaces", format),
    part("msrv", "one minimum version of Rust, which CI tests with", gates::msrv),
    part("clippy", "lints of everything that hosts compile", clippy),
    part(
        "clippy-kernels",
        "lints of the runtime for every board's core",
        gates::kernels,
    ),
    part(
        "clippy-firmware",
        "lints of the firmware for every board",
        gates::firmware,
    ),
    part("browser", "lints of the packer for browsers", gates::browser),
    part(
        "systems",
        "the host tools for Windows and macOS, checked by the compiler",
        gates::systems,
    ),
    part("deny", "licences, bans and sources of the dependencies", gates::deny),
    part("package", "the published packages are complete", gates::package),
    part("docs", "documentation without warnings", docs),
    part("python", "the references' and the tracer's own tests", gates::python),
    part("firmware", "programs for every board", firmware),
    part(
        "mutants-changed",
        "a few mutants of the lines that differ from the main branch",
        mutants::changed,
    ),
    Part {
        of_the_whole: false,
        ..part(
            "matrix",
            "targets, features, optimisation at link time: a part of `tests`",
            matrix,
        )
    },
    part("tests", "unit and end-to-end tests", all_tests),
];

/// Files of tests that build programs from nothing in folders of their own, which takes minutes each: they are begun last.
const LATE: [&str; 2] = ["installed", "tasks"];

/// The time after which no file of tests begins.
static UNTIL: OnceLock<Instant> = OnceLock::new();

/// Runs the parts of these names, all where there are none, and says how long each took. With `record`, a whole run that passes is dated; after `within`
/// no file of tests begins.
pub(super) fn test(names: &[String], record: bool, within: Option<Duration>) -> Result<()> {
    let required = require::required();
    require::check(&required)?;
    if let Some(unknown) = names.iter().find(|name| PARTS.iter().all(|part| part.name != *name)) {
        return Err(format!("no part is called `{unknown}`; there are:\n{}", list()).into());
    }
    let start = Instant::now();
    if let Some(until) = within.and_then(|within| start.checked_add(within)) {
        UNTIL.get_or_init(|| until);
    }
    let (mut times, mut results) = (Vec::new(), Results::none());
    for part in &PARTS {
        if !if names.is_empty() {
            part.of_the_whole
        } else {
            names.iter().any(|name| name == part.name)
        } {
            continue;
        }
        let begin = Instant::now();
        let outcome = (part.run)().map_err(|error| format!("{}: {error}", part.name))?;
        times.push((part.name, begin.elapsed()));
        match outcome {
            Outcome::Held => {}
            Outcome::Skipped(line) => results.skipped.push(line),
            Outcome::Tested(of_tests) => results.add(of_tests),
        }
    }
    report(&times);
    results.finish(start, &required)?;
    if record { passed("test") } else { Ok(()) }
}

/// Notes the date of a tier, and rewrites the table of it.
fn passed(tier: &str) -> Result<()> {
    tiers::record(&root().join("tests/results"), tier)?;
    bench::fill()
}

/// The parts with what they are about.
pub(super) fn list() -> String {
    let lines = PARTS.iter().map(|part| format!("  {:16} {}", part.name, part.about));
    lines.collect::<Vec<_>>().join("\n")
}

fn report(times: &[(&str, Duration)]) {
    for (name, time) in times {
        println!("{:>7.1} s  {name}", time.as_secs_f64());
    }
}

fn format() -> Result<Outcome> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for manifest in [
        "firmware/Cargo.toml",
        "firmware/tasks/Cargo.toml",
        "host-tools/qemu-plugin/Cargo.toml",
    ] {
        run(&mut cargo(&["fmt", "--all", "--check", "--manifest-path", manifest]))?;
    }
    Ok(Outcome::Held)
}

fn clippy() -> Result<Outcome> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(&mut cargo(&arguments))?;
    Ok(Outcome::Held)
}

fn docs() -> Result<Outcome> {
    run(cargo(&["doc", "--workspace", "--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Held)
}

/// Each program is linked by one thread; boards of different targets do not wait for each other.
fn firmware() -> Result<Outcome> {
    let mut targets: BTreeMap<&str, Vec<&'static Board>> = BTreeMap::new();
    for board in &BOARDS {
        targets.entry(board.triple).or_default().push(board);
    }
    let rest = Mutex::new(targets.into_values());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    at_once(|| {
        while let Some(boards) = next() {
            for (board, program) in boards.iter().flat_map(|board| PROGRAMS.map(|program| (board, program))) {
                eprintln!("firmware: {program} for {}", board.name);
                Firmware::build(board, program)?;
            }
        }
        Ok::<_, BoardError>(())
    })?;
    Ok(Outcome::Held)
}

/// What tests run on every board.
const PROGRAMS: [&str; 3] = ["infer", "kernels", "selfcheck"];

fn matrix() -> Result<Outcome> {
    let arguments = [
        "test",
        "--package",
        "arenite-tests",
        "--test",
        "matrix",
        "--",
        "--show-output",
    ];
    Ok(Outcome::Tested(watched(cargo(&arguments))?))
}

/// How many files of tests the report names.
const SLOWEST: usize = 20;

/// Comparisons with independent oracles that the tests make with the project's own data alone.
const COMPARISONS: u64 = 5500;

/// Half of these programs wait for one thread, that links firmware or is qemu: as many run at once as there are cores.
fn all_tests() -> Result<Outcome> {
    run(&mut cargo(&["test", "--workspace", "--no-run"]))?;
    let files = gates::test_files()?;
    let is_late = |file: &&String| LATE.contains(&file.as_str());
    let (late, early): (Vec<&String>, Vec<&String>) = files.iter().partition(is_late);
    let of_files = early.into_iter().chain(late).map(|file| vec!["--test", file]);
    let runs: Vec<Vec<&str>> = [vec!["--lib", "--bins"], vec!["--doc"]]
        .into_iter()
        .chain(of_files)
        .collect();
    let (rest, all) = (Mutex::new(runs.into_iter()), Mutex::new(Results::none()));
    let times = Mutex::new(Vec::new());
    let left_out = AtomicBool::new(false);
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    at_once(|| {
        while let Some(of) = next() {
            if let (["--test", file], Some(until)) = (&of[..], UNTIL.get())
                && Instant::now() > *until
            {
                left_out.store(true, Ordering::Relaxed);
                let line =
                    format!("skipped: tests/tests/{file}: the time of --within is over (`cargo test --test {file}`)");
                all.lock().unwrap_or_else(PoisonError::into_inner).skip(line);
                continue;
            }
            let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
            command.args(&of).args(["--", "--show-output"]);
            let mut shown = format!("$ {command:?}\n");
            let begin = Instant::now();
            let results = heard(command, |line| shown += &format!("{line}\n")).map_err(|error| error.to_string())?;
            let time = (begin.elapsed(), of.last().copied().unwrap_or_default());
            times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            println!("{shown}");
            all.add(results);
        }
        Ok::<_, String>(())
    })?;
    let mut times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    times.sort_by(|a, b| b.cmp(a));
    println!("the files of tests that took longest, each beside another:");
    for (time, file) in times.iter().take(SLOWEST) {
        println!("{:>7.1} s  {file}", time.as_secs_f64());
    }
    let results = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if results.good && !left_out.into_inner() && results.compared < COMPARISONS {
        return Err(format!(
            "{} results were compared with independent oracles, expected {COMPARISONS}",
            results.compared
        )
        .into());
    }
    Ok(Outcome::Tested(results))
}

/// Does the work on a thread for each core; the first error, when all have ended.
fn at_once<E: Send>(work: impl Fn() -> std::result::Result<(), E> + Sync) -> std::result::Result<(), E> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let works: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        let mut ends = works
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.try_for_each(|end| end)
    })
}

/// The long tier tries this many cases of a property; [`ProptestConfig::cases`] without it is 256, of which the properties state multiples.
///
/// [`ProptestConfig::cases`]: https://docs.rs/proptest/latest/proptest/test_runner/struct.Config.html
const LONG_CASES: &str = "2560";

/// Property tests, ten times as long and from another seed, which is printed.
fn properties() -> Result<Results> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| since.as_secs().to_string());
    println!("properties: PROPTEST_RNG_SEED={seed} PROPTEST_CASES={LONG_CASES} repeats this");
    let mut results = Results::none();
    let files = require::PROPERTIES.iter().flat_map(|file| ["--test", file]);
    let of_tests: Vec<&str> = ["--package", "arenite-tests"].into_iter().chain(files).collect();
    let units = vec!["--package", "arenite", "--package", "arenite-host", "--lib"];
    for of in [units, of_tests] {
        let mut command = cargo(&["test", "--release", "--no-fail-fast"]);
        command.args(of).args(["--", "--show-output"]);
        command
            .env("PROPTEST_RNG_SEED", &seed)
            .env("PROPTEST_CASES", LONG_CASES);
        results.add(watched(command)?);
    }
    Ok(results)
}

/// Tests that take minutes: they are marked `ignore = "long: …"`. Then the property tests; `properties` is these alone.
pub(super) fn long(filter: Option<&str>, record: bool) -> Result<()> {
    let required = require::required();
    require::check(&required)?;
    let start = Instant::now();
    if filter == Some("properties") {
        return properties()?.finish(start, &required);
    }
    let mut skipped = Vec::new();
    if filter.is_none() {
        setup::deny()?;
        for gate in [gates::deny, gates::advisories] {
            if let Outcome::Skipped(line) = gate()? {
                skipped.push(line);
            }
        }
    }
    let mut arguments = vec![
        "test",
        "--release",
        "--package",
        "arenite-tests",
        "--no-fail-fast",
        "--",
    ];
    arguments.extend(["--ignored", "--nocapture", "--test-threads", "1"]);
    arguments.extend(filter);
    let python = setup::python().ok_or("the references need Python with NumPy and safetensors")?;
    let mut command = cargo(&arguments);
    command.env("ARENITE_PYTHON", python);
    let mut results = watched(command)?;
    results.skipped.extend(skipped);
    if filter.is_none() {
        results.add(properties()?);
    }
    results.finish(start, &required)?;
    if record { passed("long") } else { Ok(()) }
}

/// What tests came to.
#[derive(Default)]
pub(super) struct Results {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Results that tests compared with an independent oracle.
    compared: u64,
    skipped: Vec<String>,
    failures: Vec<String>,
    good: bool,
}

impl Results {
    /// Of nothing yet.
    pub(super) fn none() -> Self {
        Self {
            good: true,
            ..Self::default()
        }
    }

    /// Notes what could not run: a line that begins with `skipped: `.
    pub(super) fn skip(&mut self, line: String) {
        self.skipped.push(line);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.compared += other.compared;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self.good &= other.good;
    }

    /// The closing lines. What is skipped for lack of something that is `required` fails.
    pub(super) fn finish(mut self, start: Instant, required: &str) -> Result<()> {
        self.skipped.sort();
        self.skipped.dedup();
        self.skipped.iter().for_each(|line| println!("{line}"));
        for line in &self.skipped {
            if let Some(what) = require::violated(required, line) {
                self.failed += 1;
                self.failures.push(format!("{line} (ARENITE_REQUIRE has `{what}`)"));
            }
        }
        self.failures.iter().for_each(|name| println!("failed: {name}"));
        if self.compared > 0 {
            println!("{} results compared with independent oracles", self.compared);
        }
        let verdict = if self.good && self.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {verdict}. {} passed; {} failed; {} ignored; {} skipped; finished in {:.0}s",
            self.passed,
            self.failed,
            self.ignored,
            self.skipped.len(),
            start.elapsed().as_secs_f64()
        );
        match verdict {
            "ok" => Ok(()),
            _ => Err("tests failed".into()),
        }
    }
}

/// Silence after which a test hangs: no file of tests takes a third of it. The one limit in time that there is.
const HANGS: Duration = Duration::from_secs(45 * 60);

/// Runs cargo test and passes its output on, but for what passing tests print: of that the `skipped:` lines are collected. A run that says
/// nothing for [`HANGS`] is ended, and the tests that libtest last called slow are named.
pub(super) fn watched(command: Command) -> Result<Results> {
    eprintln!("$ {command:?}");
    heard(command, |line| println!("{line}"))
}

/// As [`watched`]; each line that is to be shown is given to `show`.
fn heard(mut command: Command, mut show: impl FnMut(&str)) -> Result<Results> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("cargo test has no output")?;
    let (said, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout)
            .lines()
            .map_while(std::io::Result::ok)
            .for_each(|line| {
                // The reader may have given up.
                let _ = said.send(line);
            });
    });
    let mut reader = Reader::default();
    loop {
        match lines.recv_timeout(HANGS) {
            Ok(line) => {
                if reader.read(&line) {
                    show(&line);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill()?;
                return Err(format!(
                    "the tests say nothing for {} minutes; still running: {}",
                    HANGS.as_secs() / 60,
                    reader.slow.join(", ")
                )
                .into());
            }
        }
    }
    reader.results.good = child.wait()?.success();
    Ok(reader.results)
}
