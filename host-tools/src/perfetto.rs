//! A run on a board as Perfetto shows it: trace events in the JSON of Chrome
//! (<https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>), a track for each core.

use arenite::BARRIER;
use serde_json::{Value, json};

use crate::board::{Bench, BenchStep};
use crate::model::ModelView;

/// A run to be shown.
#[derive(Debug)]
pub struct Timeline<'a> {
    bench: &'a Bench,
    unit: Unit,
    cores: u8,
    spans: Vec<Span>,
}

impl<'a> Timeline<'a> {
    /// Steps in their order: each core takes its own one behind the other, and all wait for each other at a barrier. Each takes the time that it took alone.
    pub fn of(bench: &'a Bench, view: &ModelView<'_>) -> Self {
        let (cores, of_steps) = view.cores().unwrap_or((1, &[]));
        let unit = Unit::of(bench);
        let mut ready = vec![0; usize::from(cores).max(1)];
        let place = |step: &BenchStep| {
            let on = of_steps.get(step.index).copied().unwrap_or(0);
            if on & BARRIER != 0 {
                let all = ready.iter().copied().max().unwrap_or(0);
                ready.fill(all);
            }
            let core = usize::from(on & !BARRIER).min(ready.len() - 1);
            let (start, length) = (ready[core], unit.length(step));
            ready[core] += length;
            Span {
                core: core as u8,
                start,
                length,
            }
        };
        Self {
            bench,
            unit,
            cores: cores.max(1),
            spans: bench.steps.iter().map(place).collect(),
        }
    }

    /// When the last step ends, in [`Timeline::unit`]s.
    pub fn end(&self) -> u64 {
        let ends = self.spans.iter().map(|span| span.start + span.length);
        ends.max().unwrap_or(0)
    }

    /// Returns the unit that a microsecond stands for.
    pub fn unit(&self) -> &'static str {
        self.unit.name()
    }

    /// The trace: names of the tracks, then a complete event for each step.
    pub fn json(&self) -> Value {
        let bench = self.bench;
        let named = |what: &str, core: u8, name: String| json!({"ph": "M", "pid": 1, "tid": core, "name": what, "args": {"name": name}});
        let mut events = vec![named(
            "process_name",
            0,
            format!("{} for {}", bench.board, bench.target),
        )];
        events.extend((0..self.cores).map(|core| named("thread_name", core, format!("core {core}"))));
        events.extend(
            bench
                .steps
                .iter()
                .zip(&self.spans)
                .map(|(step, span)| step_event(step, *span)),
        );
        json!({
            "traceEvents": events,
            "otherData": {
                "unit": format!("a microsecond stands for an {}", self.unit()),
                "board": bench.board,
                "target": bench.target,
                "chip": bench.chip,
                "instructions": bench.instructions,
                "load_instructions": bench.load_instructions,
            },
        })
    }
}

/// Unit that a microsecond of the timeline stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Instructions,
    Cycles,
    ChipCycles,
}

impl Unit {
    /// The best that is known of all steps.
    fn of(bench: &Bench) -> Self {
        match bench {
            Bench {
                chip_cycles: Some(_), ..
            } => Self::ChipCycles,
            Bench { cycles: Some(_), .. } => Self::Cycles,
            _ => Self::Instructions,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instruction",
            Self::Cycles | Self::ChipCycles => "estimated cycle",
        }
    }

    fn length(self, step: &BenchStep) -> u64 {
        match self {
            Self::Instructions => step.instructions,
            Self::Cycles => step.cycles.unwrap_or(step.instructions),
            Self::ChipCycles => step.chip_cycles.or(step.cycles).unwrap_or(step.instructions),
        }
    }
}

/// A step on the core that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    core: u8,
    start: u64,
    length: u64,
}

fn step_event(step: &BenchStep, span: Span) -> Value {
    let mut args = json!({
        "step": step.index,
        "kernel": step.kernel,
        "instructions": step.instructions,
        "macs": step.macs,
    });
    let known = [
        ("cycles", step.cycles),
        ("chip_cycles", step.chip_cycles),
        ("bound", step.bound),
        ("at_most", step.at_most),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            args[name] = value.into();
        }
    }
    json!({"ph": "X", "pid": 1, "tid": span.core, "ts": span.start, "dur": span.length, "name": step.name, "cat": step.op, "args": args})
}
