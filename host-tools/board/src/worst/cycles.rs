//! Cycles of a step before there is a plan: its bound of instructions, times what steps of its row took of the estimate of cycles for each of the bound.
//!
//! `cargo xtask bench --rates` finds these numbers for the kernels that packing chooses among.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arenite::Step;
use serde::{Deserialize, Serialize};

use super::instructions::{self, Instructions};

/// Cycles for an instruction of the bound, by board, by row of the bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rates(pub BTreeMap<String, BTreeMap<String, f64>>);

/// The tracked table.
pub static TABLE: LazyLock<Rates> = LazyLock::new(|| {
    // A test reads it.
    serde_json::from_str(include_str!("cycles.json")).unwrap_or_default()
});

impl Rates {
    /// The cycles of `step`, whose constants are in `weights`, on `board`, whose instructions are bounded as those of `counted`; the bound alone where no
    /// cycles are known of any step on the board. `None` where the step has no bound, or others on the board have cycles and those of its kernel have none.
    pub fn of(&self, most: &Instructions, (board, counted): (&str, &str), step: &Step, weights: &[u8]) -> Option<u64> {
        let bound = most.of(counted, step, weights).ok()?;
        let Some(rows) = self.0.get(board) else {
            return Some(bound);
        };
        let own = rows.get(&instructions::row(step, weights)).copied();
        let rate = own.or_else(|| {
            // Of rows that are too rare: the kernel's mean.
            let of_it = |row: &str| row.split(' ').next() == Some(step.kernel().name());
            let rates: Vec<f64> = rows
                .iter()
                .filter(|(row, _)| of_it(row))
                .map(|(_, rate)| *rate)
                .collect();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        });
        rate.map(|rate| (bound as f64 * rate).round() as u64)
    }
}
