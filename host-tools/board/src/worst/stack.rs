//! The stack of load and run, by board and kernel.
//!
//! `cargo xtask bench --stacks` makes the table from the boards' linked firmware.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arenite::KernelId;
use serde::{Deserialize, Serialize};

/// The table, by the boards' names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stacks(pub BTreeMap<String, Stack>);

/// Stack that the firmware of a board takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Bytes of a load beside its steps.
    pub load_alone: u64,
    /// Bytes of a load that checks a step of this kernel, all of its callers included.
    pub load: BTreeMap<String, u64>,
    /// Bytes of a run of a step of this kernel.
    pub run: BTreeMap<String, u64>,
}

/// Upper bounds of a model's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Bytes of the load.
    pub load: u64,
    /// Bytes of a run.
    pub run: u64,
}

/// The tracked table.
pub static TABLE: LazyLock<Stacks> = LazyLock::new(|| {
    // A test reads it.
    serde_json::from_str(include_str!("stacks.json")).unwrap_or_default()
});

impl Stacks {
    /// The bound for a model of these kernels on `board`; `None` where the table does not know board or kernel.
    pub fn bound(&self, board: &str, kernels: impl IntoIterator<Item = KernelId>) -> Option<Bound> {
        let stack = self.0.get(board)?;
        let mut bound = Bound {
            load: stack.load_alone,
            run: 0,
        };
        for kernel in kernels {
            bound.load = bound.load.max(*stack.load.get(kernel.name())?);
            bound.run = bound.run.max(*stack.run.get(kernel.name())?);
        }
        Some(bound)
    }
}
