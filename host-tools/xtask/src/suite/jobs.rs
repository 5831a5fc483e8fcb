//! Pieces of work, as many at once as there are cores.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::results::Time;
use super::watch::spent;
use super::{Outcome, Results};

/// A piece of work: its name, and the function that does it.
pub(super) struct Job {
    name: String,
    work: Box<dyn FnOnce(&str) -> Results + Send>,
}

impl Job {
    /// Work that ends with an outcome, or with what is wrong.
    pub(super) fn new(name: impl Into<String>, work: impl FnOnce() -> super::Result<Outcome> + Send + 'static) -> Self {
        let work = move |name: &str| {
            let mut results = Results::none();
            let (begin, before) = (Instant::now(), spent());
            match work() {
                Ok(outcome) => results.take(outcome),
                Err(error) => results.fail(format!("{name}: {error}")),
            }
            results.times.push(Time {
                name: name.to_owned(),
                wall: begin.elapsed(),
                cpu: spent().saturating_sub(before),
            });
            results
        };
        Self {
            name: name.into(),
            work: Box::new(work),
        }
    }

    /// The same, done by `around`, which is given its name and what does it.
    pub(super) fn around(
        self,
        around: impl FnOnce(&str, &mut dyn FnMut() -> Results) -> Results + Send + 'static,
    ) -> Self {
        let mut inner = Some(self.work);
        Self {
            name: self.name,
            work: Box::new(move |name| {
                around(name, &mut || inner.take().map_or_else(Results::none, |work| work(name)))
            }),
        }
    }

    /// Several, one behind the other: they would wait for the same folder of cargo's.
    pub(super) fn chain(name: impl Into<String>, jobs: Vec<Job>) -> Self {
        Self {
            name: name.into(),
            work: Box::new(|_| in_turn(jobs, 1, &super::watch::is_over)),
        }
    }
}

/// Does them in their order. A job that would begin when `is_over` holds is left out, which is a failure.
pub(super) fn in_turn(jobs: Vec<Job>, threads: usize, is_over: &(dyn Fn() -> bool + Sync)) -> Results {
    let (rest, all) = (Mutex::new(jobs.into_iter()), Mutex::new(Results::none()));
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(Job { name, work }) = next() {
            let results = if is_over() {
                let mut left_out = Results::none();
                left_out.fail(format!(
                    "{name}: left out, the time of --within was over before it began"
                ));
                left_out
            } else {
                work(&name)
            };
            all.lock().unwrap_or_else(PoisonError::into_inner).add(results);
        }
    };
    if threads == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            let works: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            for thread in works {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
    }
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::watch::heard;
    use super::*;

    /// A file of tests that says what libtest says.
    fn file(name: &str, lines: &str, ran: &Arc<AtomicUsize>) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("printf '{lines}'")]);
        let ran = Arc::clone(ran);
        Job::new(name, move || {
            let results = heard(command, |_| ())?;
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(Outcome::Tested(results))
        })
    }

    fn suite(limit: usize) -> Results {
        let ran = Arc::new(AtomicUsize::new(0));
        let lines = "test a ... ok\\ncompared: 7 with an oracle\\ntest result: ok. 1 passed; 0 failed; 0 ignored;\\n";
        let files = ["one", "two", "three"].map(|name| file(name, lines, &ran));
        in_turn(files.into(), 1, &|| ran.load(Ordering::SeqCst) >= limit)
    }

    #[test]
    fn a_suite_that_leaves_a_file_out_for_want_of_time_fails_and_names_it() {
        let whole = suite(4);
        assert_eq!((whole.passed, whole.compared), (3, 21));
        whole.finish(Instant::now(), "").map(drop).expect("all three ran");
        let cut = suite(2);
        assert_eq!((cut.passed, cut.compared), (2, 14));
        assert_eq!(
            cut.failures,
            ["three: left out, the time of --within was over before it began"]
        );
        assert!(cut.finish(Instant::now(), "").is_err());
    }

    #[test]
    fn a_part_that_fails_is_named_and_the_others_still_run() {
        let jobs = vec![
            Job::new("lints", || Err("a lint".into())),
            Job::new("documents", || Ok(Outcome::skipped("documents", "no reader"))),
        ];
        let results = in_turn(jobs, 2, &|| false);
        assert_eq!(results.failures, ["lints: a lint"]);
        assert_eq!(results.skipped, ["skipped: documents: no reader"]);
        assert_eq!(results.times.len(), 2);
        assert!(!results.good);
    }

    #[test]
    fn the_processor_time_of_a_job_is_that_of_its_processes() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
        let job = Job::new("busy", move || Ok(Outcome::Tested(heard(command, |_| ())?)));
        let results = in_turn(vec![job], 1, &|| false);
        if std::path::Path::new("/proc/self/stat").exists() {
            assert!(!results.times[0].cpu.is_zero());
        }
    }
}
