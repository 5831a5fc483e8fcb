//! Cleanup after an interrupt, which leaves nothing behind. A thread waits for SIGINT and SIGTERM, removes the names that are not complete files yet, stops the
//! processes that were started, and ends the process with 130 or 143.
//!
//! On systems without these signals the process ends as that system ends it, and what is left is removed by the next run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names and processes that end with this process.
static HELD: Mutex<Held> = Mutex::new(Held {
    names: Vec::new(),
    children: Vec::new(),
    done: false,
});

struct Held {
    /// Files and folders.
    names: Vec<PathBuf>,
    /// Process ids.
    children: Vec<u32>,
    /// Whether the outputs are in place: from then on the process ends by itself.
    done: bool,
}

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches for SIGINT and SIGTERM from now on; for a program's `main`.
pub fn watch() {
    #[cfg(all(unix, feature = "tools"))]
    if let Ok(mut signals) =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
    {
        std::thread::spawn(move || {
            for signal in &mut signals {
                // Whoever completes an output holds the lock: the signal comes before that or after it.
                let held = held();
                if held.done {
                    continue;
                }
                held.children.iter().for_each(|&child| stop(child));
                for name in &held.names {
                    // A name that cannot be removed now is removed by the next run.
                    let _ = if name.is_dir() {
                        std::fs::remove_dir_all(name)
                    } else {
                        std::fs::remove_file(name)
                    };
                }
                signal_hook::low_level::exit(128 + signal);
            }
        });
    }
}

/// Ends a child and waits until it writes no more. It may have ended by itself.
#[cfg(all(unix, feature = "tools"))]
fn stop(child: u32) {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    if let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        let _ = kill_process(child, Signal::KILL);
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
}

/// Completes outputs: no signal ends the process while `work` runs, nor afterwards if it is done and was the `last`.
pub(super) fn complete<T, E>(last: bool, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let mut held = held();
    let result = work();
    held.done |= last && result.is_ok();
    result
}

/// A file or folder that a signal removes for as long as this lives; dropping it leaves the name alone.
#[derive(Debug)]
pub struct Name(PathBuf);

impl Name {
    /// Registers what `make` makes, by the path that `named` tells; no signal comes between.
    ///
    /// # Errors
    /// The error of `make`; nothing is registered then.
    pub fn of_new<T, E>(
        make: impl FnOnce() -> Result<T, E>,
        named: impl FnOnce(&T) -> PathBuf,
    ) -> Result<(T, Self), E> {
        let mut held = held();
        let made = make()?;
        let path = named(&made);
        held.names.push(path.clone());
        Ok((made, Self(path)))
    }

    /// The name.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        held().names.retain(|name| *name != self.0);
    }
}

/// A process that a signal stops for as long as this lives.
#[derive(Debug)]
pub struct Child(u32);

impl Child {
    /// Registers the process that `start` starts; no signal comes between.
    ///
    /// # Errors
    /// The error of `start`.
    pub fn of_new<E>(start: impl FnOnce() -> Result<std::process::Child, E>) -> Result<(std::process::Child, Self), E> {
        let mut held = held();
        let started = start()?;
        held.children.push(started.id());
        let id = started.id();
        Ok((started, Self(id)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        held().children.retain(|&child| child != self.0);
    }
}
