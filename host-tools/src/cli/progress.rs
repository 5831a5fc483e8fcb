//! What long work shows of itself: its stage, how far that is, and about how long it still takes, in a line of standard error that is drawn again and again.
//! On a terminal alone: a pipe or a file gets none of it.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::board;
use crate::files::print;

/// A stage of which nobody knows how long it is.
const OPEN: &str = "{spinner} {msg} {elapsed}";
/// One that is known to end.
const BOUNDED: &str = "{spinner} {msg} {wide_bar} {percent}% {elapsed}, about {eta} left";
/// The line moves in this time even where nothing is told.
const TICK: Duration = Duration::from_millis(100);

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
        if std::io::stderr().is_terminal() {
            shown.draw(stage, 0, 0);
            shown.bar.set_draw_target(ProgressDrawTarget::stderr());
            shown.bar.enable_steady_tick(TICK);
            print::above(Some(shown.bar.clone()));
        }
        shown
    }

    /// Shows how far the work has come, as a [`crate::stage::Progress`] tells it.
    pub(super) fn told(&self, stage: &str, done: u64, of: u64) {
        if !self.bar.is_hidden() {
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
        if self.bar.is_hidden() {
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
