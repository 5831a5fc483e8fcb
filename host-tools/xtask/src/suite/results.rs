//! Results of tests.

use std::time::{Duration, Instant};

use arenite_xtask::require;

use super::Result;

/// Outcome of a part that did not fail.
pub(in super::super) enum Outcome {
    /// All of it holds.
    Held,
    /// Part of it did not run; the line says which, and why.
    Skipped(String),
    /// Tests ran.
    Tested(Results),
}

impl Outcome {
    pub(in super::super) fn skipped(what: &str, reason: &str) -> Self {
        Outcome::Skipped(format!("skipped: {what}: {reason}"))
    }
}

/// Sums over tests.
#[derive(Default)]
pub(in super::super) struct Results {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
    /// Results that tests compared with an independent oracle.
    pub(super) compared: u64,
    pub(super) skipped: Vec<String>,
    pub(super) failures: Vec<String>,
    /// Tests of the long tier, by program and name: a run of the others names them.
    pub(super) long: Vec<(String, String)>,
    /// Whether nothing failed that is in none of these sums.
    pub(super) good: bool,
    pub(super) times: Vec<Time>,
}

/// Time of a piece of work.
pub(super) struct Time {
    pub(super) name: String,
    pub(super) wall: Duration,
    /// Of processor, user's and system's, by all processes that it started.
    pub(super) cpu: Duration,
}

impl Results {
    /// Of nothing yet.
    pub(in super::super) fn none() -> Self {
        Self {
            good: true,
            ..Self::default()
        }
    }

    /// Notes what could not run: a line that begins with `skipped: `.
    pub(in super::super) fn skip(&mut self, line: String) {
        self.skipped.push(line);
    }

    /// Notes what is wrong beside tests.
    pub(super) fn fail(&mut self, line: String) {
        self.good = false;
        self.failures.push(line);
    }

    /// Adds what came of a piece of work.
    pub(super) fn take(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Held => {}
            Outcome::Skipped(line) => self.skip(line),
            Outcome::Tested(results) => self.add(results),
        }
    }

    pub(in super::super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.compared += other.compared;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self.long.extend(other.long);
        self.times.extend(other.times);
        self.good &= other.good;
    }

    /// The closing lines. A test skipped for lack of something that is `required` fails.
    pub(in super::super) fn finish(mut self, start: Instant, required: &str) -> Result<Self> {
        self.skipped.sort();
        self.skipped.dedup();
        self.skipped.iter().for_each(|line| println!("{line}"));
        for line in &self.skipped {
            if let Some(what) = require::violated(required, line) {
                self.failed += 1;
                self.failures.push(format!("{line} (ARENITE_REQUIRE has `{what}`)"));
            }
        }
        for remedy in require::remedies(self.skipped.iter().map(String::as_str)) {
            println!("{remedy}");
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
            "ok" => Ok(self),
            _ => Err("tests failed".into()),
        }
    }
}
