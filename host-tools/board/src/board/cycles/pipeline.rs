//! The pipelines: what time an instruction takes behind those before it.

use super::instruction::Instruction;
use super::overlap::Overlapping;
use super::scoreboard::Scoreboard;
use crate::board::table::Core;

/// A core's pipeline, in the course of a sequence.
#[derive(Debug, Clone)]
pub(super) enum Pipeline {
    /// Every instruction takes its time, less what it shares with the one before it: as the manuals of Cortex-M0 to M4 state it.
    Overlapping(Overlapping),
    /// Instructions start in order when operands and units are ready.
    Scoreboard(Box<Scoreboard>),
}

impl Pipeline {
    /// The pipeline of `core`, empty; `None` where there is no model.
    pub(super) fn of(core: Core) -> Option<Self> {
        Overlapping::of(core)
            .map(Self::Overlapping)
            .or_else(|| Scoreboard::of(core).map(Box::new).map(Self::Scoreboard))
    }

    /// Executes an instruction that does not jump.
    pub(super) fn execute(&mut self, instruction: &Instruction) {
        match self {
            Self::Overlapping(pipeline) => pipeline.execute(instruction),
            Self::Scoreboard(pipeline) => pipeline.execute(instruction),
        }
    }

    /// Has `branch`, which was executed last, jump to `target`.
    pub(super) fn jump(&mut self, branch: &Instruction, target: &Instruction) {
        match self {
            Self::Overlapping(pipeline) => pipeline.jump(branch, target),
            Self::Scoreboard(pipeline) => pipeline.jump(branch, target),
        }
    }

    /// Returns the cycles of a conditional branch that goes the way that it rarely goes.
    pub(super) fn mispredicted(&self) -> u64 {
        match self {
            Self::Overlapping(_) => 0,
            Self::Scoreboard(pipeline) => pipeline.mispredicted(),
        }
    }

    /// Cycles until now.
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::Overlapping(pipeline) => pipeline.now(),
            Self::Scoreboard(pipeline) => pipeline.now(),
        }
    }
}
