//! Processes under watch: what they say, what they take of the processor, and an end where they take too long.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use super::reader::Reader;
use super::{Result, Results};

/// Silence after which a test hangs: no file of tests takes a third of it.
const HANGS: Duration = Duration::from_secs(45 * 60);

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The time of `--within`: what runs then is ended, and nothing else begins.
static UNTIL: OnceLock<Instant> = OnceLock::new();

/// Sets the time after which [`is_over`] holds.
pub(in super::super) fn end_at(until: Instant) {
    UNTIL.get_or_init(|| until);
}

/// Whether the time of `--within` is over.
pub(in super::super) fn is_over() -> bool {
    left().is_some_and(|left| left.is_zero())
}

/// Returns the time left of `--within`, where there is one.
pub(super) fn left() -> Option<Duration> {
    UNTIL.get().map(|until| until.saturating_duration_since(Instant::now()))
}

thread_local! {
    /// Of the processor, by processes that this thread waited for.
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The processor's time, user's and system's, of all processes that this thread has waited for.
pub(super) fn spent() -> Duration {
    SPENT.get()
}

/// The processor's time of a process and of its children that have ended, where the system tells it.
pub(super) fn processor_time(process: &str) -> Duration {
    /// Ticks of `/proc` in a second, on every Linux.
    const TICKS: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything; user, system and the same of children are the 12th to 15th field behind it.
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let ticks = |field: &str| field.parse::<u64>().unwrap_or(0);
    let sum: u64 = fields.split_whitespace().skip(11).take(4).map(ticks).sum();
    Duration::from_millis(sum * 1000 / TICKS)
}

/// Waits for a process to end. One that runs when the time of `--within` is over is ended.
pub(in super::super) fn wait(child: &mut Child) -> Result<ExitStatus> {
    let process = child.id().to_string();
    loop {
        let taken = processor_time(&process);
        if let Some(status) = child.try_wait()? {
            SPENT.set(SPENT.get() + taken);
            return Ok(status);
        }
        if is_over() {
            child.kill()?;
            child.wait()?;
            SPENT.set(SPENT.get() + taken);
            return Err("was running when the time of --within was over".into());
        }
        std::thread::sleep(LOOK);
    }
}

/// Runs tests and passes their output on, but for what passing tests print: of that the `skipped:` lines are collected. A run that says
/// nothing for [`HANGS`] is ended, and the tests that libtest last called slow are named.
pub(in super::super) fn watched(command: Command) -> Result<Results> {
    eprintln!("$ {command:?}");
    heard(command, |line| println!("{line}"))
}

/// As [`watched`]; each line that is to be shown is given to `show`.
pub(super) fn heard(mut command: Command, mut show: impl FnMut(&str)) -> Result<Results> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("the tests have no output")?;
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
        match lines.recv_timeout(left().map_or(HANGS, |left| left.min(HANGS))) {
            Ok(line) => {
                if reader.read(&line) {
                    show(&line);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                let why = if is_over() {
                    "was running when the time of --within was over".to_owned()
                } else {
                    format!("the tests say nothing for {} minutes", HANGS.as_secs() / 60)
                };
                return Err(format!("{why}; slow so far: [{}]", reader.slow.join(", ")).into());
            }
        }
    }
    reader.results.good = wait(&mut child)?.success();
    Ok(reader.results)
}
