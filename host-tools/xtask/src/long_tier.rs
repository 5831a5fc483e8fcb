//! The long tier: its tests with what each takes and when it passed last, `tests/results/long.json`, and the slices that runs of the others take of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arenite_host::{Error, Result, files};
use serde::{Deserialize, Serialize};

use crate::tiers::date;

/// Seconds of processor that a slice may take, and so minutes on any machine that has one.
pub const SLICE: u64 = 4 * 60;

/// File in `tests/results`.
const FILE: &str = "long.json";

/// A test of the long tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// When it passed last: date and time of UTC.
    pub passed: Option<String>,
    /// Seconds of processor that it takes, in the development profile; optimised where only releases run it.
    pub seconds: Option<u64>,
    /// Why only releases run it; in a slice otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

/// A test by the program that holds it and its name there.
pub type Test<'a> = (&'a str, &'a str);

/// All of it: by program, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LongTier(BTreeMap<String, BTreeMap<String, Row>>);

impl LongTier {
    /// Reads the record.
    ///
    /// # Errors
    /// [`arenite_host::ErrorKind::Io`], [`arenite_host::ErrorKind::Input`].
    pub fn read(results: &Path) -> Result<Self> {
        let path = results.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the long tier", &e))?;
        serde_json::from_str(&text).map_err(|e| Error::input(format!("no long tier: {e}")).in_file(&path))
    }

    /// Notes that a test has just passed, and what it took of the processor. One that takes more than a slice is for releases from then on.
    ///
    /// # Errors
    /// As [`LongTier::read`].
    pub fn record(results: &Path, (program, name): Test<'_>, seconds: u64) -> Result<()> {
        // Tests of a slice end beside each other. A panic elsewhere leaves the file whole.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tier = Self::read(results)?;
        let row = tier.0.entry(program.to_owned()).or_default();
        let row = row.entry(name.to_owned()).or_default();
        (row.passed, row.seconds) = (Some(now()), Some(seconds));
        if seconds > SLICE {
            row.release.get_or_insert_with(|| "longer than a slice".to_owned());
        }
        let text = serde_json::to_string_pretty(&tier).unwrap_or_default() + "\n";
        files::write(&results.join(FILE), text.as_bytes())
    }

    /// All tests.
    pub fn tests(&self) -> impl Iterator<Item = (Test<'_>, &Row)> {
        self.0.iter().flat_map(|(program, rows)| {
            rows.iter()
                .map(move |(name, row)| ((program.as_str(), name.as_str()), row))
        })
    }

    /// Those whose program or name contains `filter`, all without one.
    pub fn matching(&self, filter: Option<&str>) -> Vec<(Test<'_>, &Row)> {
        let fits = |(program, name): Test<'_>| filter.is_none_or(|f| name.contains(f) || program.contains(f));
        self.tests().filter(|(test, _)| fits(*test)).collect()
    }

    /// Tests that would be in a slice if it were known what they take.
    pub fn without_cost(&self) -> impl Iterator<Item = Test<'_>> {
        let unknown = |row: &Row| row.release.is_none() && row.seconds.is_none();
        self.tests().filter(move |(_, row)| unknown(row)).map(|(test, _)| test)
    }

    /// The parts of which a run takes one: each test of a known cost in one of them, none longer than [`SLICE`].
    pub fn slices(&self) -> Vec<Vec<Test<'_>>> {
        let of_slices = self.tests().filter(|(_, row)| row.release.is_none());
        let mut tests: Vec<(u64, Test<'_>)> = of_slices.filter_map(|(test, row)| Some((row.seconds?, test))).collect();
        tests.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut slices: Vec<(u64, Vec<Test<'_>>)> = Vec::new();
        for (seconds, test) in tests {
            match slices.iter_mut().find(|(sum, _)| sum + seconds <= SLICE) {
                Some((sum, slice)) => {
                    *sum += seconds;
                    slice.push(test);
                }
                None => slices.push((seconds, vec![test])),
            }
        }
        slices.into_iter().map(|(_, slice)| slice).collect()
    }

    /// The slice of a commit, with its number and how many there are.
    pub fn slice(&self, commit: &str) -> (usize, usize, Vec<Test<'_>>) {
        let mut slices = self.slices();
        let number = commit.bytes().fold(0_usize, |sum, digit| {
            (sum * 16 + (digit as char).to_digit(16).unwrap_or(0) as usize) % slices.len().max(1)
        });
        let count = slices.len();
        let slice = if number < count {
            slices.swap_remove(number)
        } else {
            Vec::new()
        };
        (number, count, slice)
    }

    /// Returns the faults of the record, if `found` are the tests that there are in all programs but those of `waiting`.
    pub fn faults(&self, found: &[(String, String)], waiting: &[String]) -> Vec<String> {
        let mut faults = Vec::new();
        for (program, name) in found {
            if self.0.get(program).is_none_or(|rows| !rows.contains_key(name)) {
                faults.push(format!(
                    "{program}, {name}: tests/results/{FILE} has no row of this long test: `\"{name}\": {{\"passed\": null, \"seconds\": null}}`, then \
                     `cargo xtask long {name} --record`"
                ));
            }
        }
        for ((program, name), row) in self.tests() {
            let waits = waiting.iter().any(|waiting| waiting == program);
            if !waits && !found.iter().any(|(p, n)| p == program && n == name) {
                faults.push(format!(
                    "{program}, {name}: tests/results/{FILE} has a row of a test that is no longer there"
                ));
            }
            if row.release.is_none() && row.seconds.is_some_and(|seconds| seconds > SLICE) {
                faults.push(format!("{program}, {name}: takes more than a slice, {SLICE} s: only releases run it, and `release` says why"));
            }
        }
        faults
    }

    /// The rows as a table.
    pub fn table(&self) -> String {
        let mut text =
            "| program | test | last passed | CPU s | only for releases, because |\n| --- | --- | --- | --: | --- |\n"
                .to_owned();
        for ((program, name), row) in self.tests() {
            let seconds = row.seconds.map_or("-".to_owned(), |seconds| seconds.to_string());
            text += &format!(
                "| `{program}` | `{name}` | {} | {seconds} | {} |\n",
                row.passed.as_deref().unwrap_or("-"),
                row.release.as_deref().unwrap_or("")
            );
        }
        text
    }
}

/// Date and time of UTC, as `2026-11-26 21:30`.
pub fn now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let minute = seconds / 60 % (24 * 60);
    format!("{} {:02}:{:02}", date(seconds / 86_400), minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(rows: &[(&str, Option<u64>, bool)]) -> LongTier {
        let rows = rows.iter().map(|&(name, seconds, release)| {
            let row = Row {
                passed: None,
                seconds,
                release: release.then(|| "too long".to_owned()),
            };
            (name.to_owned(), row)
        });
        LongTier([("program".to_owned(), rows.collect())].into())
    }

    #[test]
    fn each_test_is_in_one_slice_that_is_no_longer_than_it_may_be() {
        let costs: Vec<(String, u64)> = (1..40).map(|i| (format!("t{i}"), i * 37 % (SLICE - 10) + 1)).collect();
        let rows: Vec<_> = costs
            .iter()
            .map(|(name, cost)| (name.as_str(), Some(*cost), false))
            .collect();
        let tier = tier(&rows);
        let slices = tier.slices();
        let cost = |name: &str| costs.iter().find(|(of, _)| of == name).expect("a test").1;
        for slice in &slices {
            assert!(slice.iter().map(|(_, name)| cost(name)).sum::<u64>() <= SLICE);
        }
        let mut names: Vec<_> = slices.concat().into_iter().map(|(_, name)| name.to_owned()).collect();
        names.sort();
        let mut all: Vec<_> = costs.iter().map(|(name, _)| name.clone()).collect();
        all.sort();
        assert_eq!(names, all);
    }

    #[test]
    fn every_slice_has_commits_and_a_commit_has_one() {
        let tier = tier(&[
            ("a", Some(SLICE * 5 / 6), false),
            ("b", Some(SLICE * 5 / 8), false),
            ("c", Some(SLICE / 5), false),
            ("e", None, false),
            ("d", Some(5), true),
        ]);
        let count = tier.slices().len();
        assert_eq!(count, 2);
        assert_eq!(tier.without_cost().collect::<Vec<_>>(), [("program", "e")]);
        let mut seen = vec![0; count];
        for n in 0_u64..300 {
            let commit = format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (number, of, slice) = tier.slice(&commit);
            assert_eq!((of, tier.slice(&commit).0), (count, number));
            assert!(!slice.is_empty() && slice.iter().all(|(_, name)| !["d", "e"].contains(name)));
            seen[number] += 1;
        }
        assert!(seen.iter().all(|&times| times > 50), "{seen:?}");
    }

    #[test]
    fn tests_without_rows_and_rows_without_tests_are_faults() {
        let tier = tier(&[
            ("a", Some(SLICE * 5 / 6), false),
            ("b", Some(SLICE + 1), false),
            ("c", Some(SLICE + 1), true),
        ]);
        let found = ["a", "b", "x"].map(|name| ("program".to_owned(), name.to_owned()));
        let faults = tier.faults(&found, &[]);
        let of = |name: &str| {
            faults
                .iter()
                .filter(|fault| fault.starts_with(&format!("program, {name}: ")))
                .count()
        };
        assert_eq!([of("a"), of("b"), of("c"), of("x")], [0, 1, 1, 1], "{faults:?}");
        // A program whose turn it is not names none: its rows stay.
        let waits = tier.faults(&[], &["program".to_owned()]);
        let gone = |faults: &[String]| faults.iter().filter(|fault| fault.contains("no longer there")).count();
        assert_eq!([gone(&waits), gone(&tier.faults(&[], &[]))], [0, 3], "{waits:?}");
    }

    #[test]
    fn a_filter_is_of_programs_and_of_tests() {
        let tier = tier(&[("resnet50", None, true), ("vgg19", None, true)]);
        assert_eq!(tier.matching(Some("resnet")).len(), 1);
        assert_eq!(tier.matching(Some("program")).len(), 2);
        assert_eq!(tier.matching(None).len(), 2);
        assert!(tier.matching(Some("no such test")).is_empty());
    }

    #[test]
    fn a_test_that_passed_is_recorded_and_the_others_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = r#"{"program": {"a": {"passed": null, "seconds": 7, "release": "why"}}}"#;
        std::fs::write(folder.path().join(FILE), text).expect("written");
        LongTier::record(folder.path(), ("program", "b"), 12).expect("recorded");
        LongTier::record(folder.path(), ("program", "a"), 9).expect("recorded");
        LongTier::record(folder.path(), ("program", "c"), SLICE + 1).expect("recorded");
        let tier = LongTier::read(folder.path()).expect("a tier");
        let rows: Vec<_> = tier
            .tests()
            .map(|(test, row)| (test, row.seconds, row.release.as_deref()))
            .collect();
        assert_eq!(
            rows,
            [
                (("program", "a"), Some(9), Some("why")),
                (("program", "b"), Some(12), None),
                (("program", "c"), Some(SLICE + 1), Some("longer than a slice"))
            ]
        );
        assert!(tier.tests().all(|(_, row)| row.passed.as_deref() > Some("2026")));
    }
}
