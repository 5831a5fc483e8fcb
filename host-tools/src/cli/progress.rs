//! Progress of long work: its stage, how far that is, and about how long it still takes, in a line of standard error that is drawn again and again. On a
//! terminal alone: a pipe or a file gets none of it. A caller in this process is told the same instead.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::board;
use crate::files::print;

/// A stage of which nobody knows how long it is.
const OPEN: &str = "{spinner} {msg} {elapsed}";
/// One that is known to end.
const BOUNDED: &str = "{spinner} {msg} {wide_bar} {percent}% {elapsed}, about {eta} left";
/// The line moves in this time even where nothing is told.
const TICK: Duration = Duration::from_millis(100);

/// Told of long work in this process, as a [`crate::stage::Progress`]: at every new stage, and within one about twenty times a second.
pub type Watch = Box<dyn FnMut(&str, u64, u64)>;

/// How often a watch is told within a stage.
const TOLD: Duration = Duration::from_millis(50);

/// Who is told in place of a terminal.
struct Watched {
    watch: Watch,
    stage: String,
    last: Instant,
}

thread_local! {
    static WATCHED: RefCell<Option<Watched>> = const { RefCell::new(None) };
}

/// Does `work`, of whose progress in this thread `watch` is told; no line is drawn. `watch` may unwind, which ends the work.
pub(super) fn watched<T>(watch: Watch, work: impl FnOnce() -> T) -> T {
    /// Puts back who was told before, even where `work` unwinds.
    struct Restored(Option<Watched>);
    impl Drop for Restored {
        fn drop(&mut self) {
            WATCHED.replace(self.0.take());
        }
    }
    let _before = Restored(WATCHED.replace(Some(Watched {
        watch,
        stage: String::new(),
        last: Instant::now(),
    })));
    work()
}

/// Tells who watches this thread, if anybody does and it is time; whether anybody does. While somebody is told, nobody watches: what a watch itself
/// does is not told.
fn tell(now: impl FnOnce() -> (String, u64, u64), is_new: bool) -> bool {
    let Some(mut watched) = WATCHED.take() else {
        return false;
    };
    if is_new || watched.last.elapsed() >= TOLD {
        let (stage, done, of) = now();
        (watched.watch)(&stage, done, of);
        (watched.stage, watched.last) = (stage, Instant::now());
    }
    WATCHED.replace(Some(watched));
    true
}

/// Whether a stage of this name is another than the one that was last told.
fn is_new(stage: &str) -> bool {
    WATCHED.with_borrow(|watched| watched.as_ref().is_some_and(|watched| watched.stage != stage))
}

/// The line, from the start of the work to its end, which is when this is dropped.
#[derive(Debug)]
pub(super) struct Shown {
    bar: ProgressBar,
    stage: RefCell<Option<(String, bool)>>,
}

impl Shown {
    /// The line of a work that begins with `stage`.
    pub(super) fn new(stage: &str) -> Self {
        let shown = Self {
            bar: ProgressBar::hidden(),
            stage: RefCell::default(),
        };
        if !tell(|| (stage.to_string(), 0, 0), true) && std::io::stderr().is_terminal() {
            shown.draw(stage, 0, 0);
            shown.bar.set_draw_target(ProgressDrawTarget::stderr());
            shown.bar.enable_steady_tick(TICK);
            print::above(Some(shown.bar.clone()));
        }
        shown
    }

    /// Shows how far the work has come, as a [`crate::stage::Progress`] tells it.
    pub(super) fn told(&self, stage: &str, done: u64, of: u64) {
        if !tell(|| (stage.to_string(), done, of), is_new(stage)) && !self.bar.is_hidden() {
            self.draw(stage, done, of);
        }
    }

    fn draw(&self, stage: &str, done: u64, of: u64) {
        let now = (stage, of > 0);
        let last = self.stage.replace(None);
        let goes_on = last.is_some_and(|(name, bounded)| (name.as_str(), bounded) == now);
        self.stage.replace(Some((stage.to_string(), of > 0)));
        if !goes_on {
            // The estimate of a stage goes by its own pace.
            self.bar.reset();
            let style = ProgressStyle::with_template(if of > 0 { BOUNDED } else { OPEN });
            style.into_iter().for_each(|style| self.bar.set_style(style));
            self.bar.set_message(stage.to_string());
            // A short stage is seen as well.
            self.bar.force_draw();
        }
        if of > 0 {
            self.bar.set_length(of);
            self.bar.set_position(done.min(of));
        }
    }

    /// Shows how far `runs` runs on `place` have come.
    pub(super) fn running(&self, place: &str, runs: usize, now: board::Progress) {
        // Of a short run's every step: what nobody sees takes no time.
        let is_watched = WATCHED.with_borrow(|watched| watched.as_ref().map(|watched| watched.last.elapsed() >= TOLD));
        if is_watched == Some(false) || (is_watched.is_none() && self.bar.is_hidden()) {
            return;
        }
        match now {
            board::Progress::Building {
                program,
                kept,
                done,
                of,
            } => {
                let once = if kept { ", once" } else { "" };
                self.told(
                    &format!("building `{program}` for {place}{once}"),
                    done.into(),
                    of.into(),
                );
            }
            board::Progress::Running {
                runs: done,
                steps,
                of_steps,
            } => {
                // Steps of the current run count as well, where they are told.
                let each = u64::from(of_steps.max(1));
                let done = u64::from(done) * each + u64::from(steps);
                self.told(&format!("running on {place}"), done, runs as u64 * each);
            }
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        print::above(None);
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_watch_is_told_of_every_stage_and_may_end_the_work() {
        let heard = Rc::new(RefCell::new(Vec::new()));
        let to = heard.clone();
        let watch = move |stage: &str, done, of| {
            to.borrow_mut().push((stage.to_string(), done, of));
            if stage == "end" {
                std::panic::resume_unwind(Box::new(7));
            }
        };
        let work = || {
            watched(Box::new(watch), || {
                let shown = Shown::new("a");
                (0..1000).for_each(|done| shown.told("b", done, 1000));
                shown.told("end", 0, 0);
            });
        };
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("it ends");
        assert_eq!(unwound.downcast_ref(), Some(&7));
        let heard = heard.borrow();
        let told = |stage: &str| heard.iter().filter(|(name, ..)| name == stage).count();
        assert_eq!((told("a"), told("end")), (1, 1));
        assert!((1..100).contains(&told("b")), "{heard:?}");
        assert!(!tell(|| (String::new(), 0, 0), true), "nobody is told any more");
    }
}
