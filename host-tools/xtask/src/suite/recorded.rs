//! Parts that a recorded run of everything has seen pass so far, `target/recorded.json`: a run that was ended goes on where it stopped.
//!
//! A part counts as long as nothing but results differs from the commit that it passed at.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arenite_xtask::long_tier::now;
use serde::{Deserialize, Serialize};

use super::jobs::Job;
use super::long::git;
use super::results::Time;
use super::{Result, Results, root};

/// A part that passed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    commit: String,
    /// When it began: date and time of UTC.
    began: String,
    seconds: f64,
    cpu_seconds: f64,
    passed: u64,
    ignored: u64,
    compared: u64,
    skipped: Vec<String>,
    long: Vec<(String, String)>,
}

/// Contribution of parts of earlier runs to this one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Earlier {
    pub(super) parts: usize,
    /// When the first of them began.
    pub(super) began: Option<String>,
    /// As long as each had one core of the machine.
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
}

/// The record of a run under way.
pub(super) struct Recorded {
    path: PathBuf,
    commit: String,
    parts: Mutex<BTreeMap<String, Kept>>,
    earlier: Mutex<Earlier>,
}

impl Recorded {
    /// The record of the checkout. Changes that no commit has are an error: nothing would say what was tested.
    pub(super) fn open() -> Result<Arc<Self>> {
        let dirty = git(&["status", "--porcelain", "--", ".", ":!tests/results"]);
        if let Some(files) = dirty {
            return Err(format!("a recorded run is of a commit, and these files differ from it:\n{files}").into());
        }
        let commit = git(&["rev-parse", "HEAD"]).ok_or("a recorded run is of a commit, and git names none")?;
        Self::read(root().join("target/recorded.json"), commit)
    }

    fn read(path: PathBuf, commit: String) -> Result<Arc<Self>> {
        let parts = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| format!("{}: {e}: remove it", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        let (parts, earlier) = (Mutex::new(parts), Mutex::default());
        Ok(Arc::new(Self {
            path,
            commit,
            parts,
            earlier,
        }))
    }

    /// The same work, done where no earlier run has seen it pass, and kept where it passes.
    pub(super) fn job(self: &Arc<Self>, job: Job) -> Job {
        let record = Arc::clone(self);
        job.around(move |name, work| record.part(name, &is_as_at, work))
    }

    fn part(&self, name: &str, is_as_at: &dyn Fn(&str) -> bool, work: impl FnOnce() -> Results) -> Results {
        let earlier = lock(&self.parts).get(name).cloned();
        if let Some(kept) = earlier.filter(|kept| is_as_at(&kept.commit)) {
            println!("{name}: passed on {}, and nothing has changed since", kept.began);
            lock(&self.earlier).add(&kept);
            return kept.results(name);
        }
        let (began, begin) = (now(), Instant::now());
        let results = work();
        if results.good && results.failed == 0 {
            let kept = Kept {
                commit: self.commit.clone(),
                began,
                ..Kept::of(&results, begin.elapsed())
            };
            let mut parts = lock(&self.parts);
            parts.insert(name.to_owned(), kept);
            let text = serde_json::to_string_pretty(&*parts).unwrap_or_default() + "\n";
            let draft = self.path.with_extension("new");
            let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &self.path));
            if let Err(error) = written {
                println!("{}: {error}", self.path.display());
            }
        }
        results
    }

    /// Contribution of earlier runs.
    pub(super) fn earlier(&self) -> Earlier {
        lock(&self.earlier).clone()
    }

    /// The next recorded run begins anew.
    pub(super) fn end(&self) -> Result<()> {
        Ok(std::fs::remove_file(&self.path)?)
    }
}

impl Kept {
    fn of(results: &Results, wall: Duration) -> Self {
        let cpu: Duration = results.times.iter().map(|time| time.cpu).sum();
        Self {
            seconds: wall.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            passed: results.passed,
            ignored: results.ignored,
            compared: results.compared,
            skipped: results.skipped.clone(),
            long: results.long.clone(),
            ..Self::default()
        }
    }

    fn results(self, name: &str) -> Results {
        Results {
            passed: self.passed,
            ignored: self.ignored,
            compared: self.compared,
            skipped: self.skipped,
            long: self.long,
            times: vec![Time {
                name: name.to_owned(),
                wall: Duration::from_secs_f64(self.seconds),
                cpu: Duration::from_secs_f64(self.cpu_seconds),
            }],
            ..Results::none()
        }
    }
}

impl Earlier {
    /// The day when the first of them began.
    pub(super) fn day(&self) -> Option<String> {
        Some(self.began.as_ref()?.get(..10)?.to_owned())
    }

    fn add(&mut self, kept: &Kept) {
        self.parts += 1;
        self.wall += Duration::from_secs_f64(kept.seconds);
        self.cpu += Duration::from_secs_f64(kept.cpu_seconds);
        let began = self.began.get_or_insert_with(|| kept.began.clone());
        if kept.began < *began {
            began.clone_from(&kept.began);
        }
    }
}

/// Whether all but results is as it was at a commit: tests read each other's files, and documents.
fn is_as_at(commit: &str) -> bool {
    let mut diff = Command::new("git");
    diff.args(["diff", "--quiet", commit, "HEAD", "--", ".", ":!tests/results"]);
    diff.current_dir(root()).status().is_ok_and(|status| status.success())
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_is_not_there_is_like_no_other() {
        assert!(!is_as_at("0000000000000000000000000000000000000000"));
        assert!(git(&["rev-parse", "HEAD"]).is_none_or(|head| is_as_at(&head)));
    }

    fn passing(compared: u64) -> Results {
        Results {
            passed: 3,
            compared,
            ..Results::none()
        }
    }

    #[test]
    fn a_run_that_was_ended_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorded.json");
        let record = Recorded::read(path.clone(), "1".into()).unwrap();
        assert_eq!(record.part("one", &|commit| commit == "1", || passing(7)).compared, 7);
        let failed = || Results {
            failed: 1,
            ..Results::none()
        };
        record.part("two", &|commit| commit == "1", failed);
        assert_eq!(record.earlier(), Earlier::default());

        let again = Recorded::read(path.clone(), "1".into()).unwrap();
        let one = again.part("one", &|commit| commit == "1", || unreachable!("it passed"));
        assert_eq!((one.passed, one.compared, one.good), (3, 7, true));
        assert_eq!(again.part("two", &|commit| commit == "1", || passing(5)).compared, 5);
        let earlier = again.earlier();
        assert_eq!(earlier.parts, 1);
        assert!(earlier.day().unwrap().as_str() > "2026-11-30");

        // The code that it tests has changed since.
        let changed = Recorded::read(path.clone(), "1".into()).unwrap();
        assert_eq!(changed.part("one", &|_| false, || passing(9)).compared, 9);
        assert_eq!(changed.part("two", &|_| false, || passing(11)).compared, 11);
        changed.end().unwrap();
        assert!(
            Recorded::read(path, "1".into())
                .unwrap()
                .parts
                .lock()
                .unwrap()
                .is_empty()
        );
    }
}
