//! The table of steps above what their kind may take.

use std::collections::BTreeMap;

use super::table::Table;
use crate::cliffs::{BOARDS, Cliffs};

/// Of 1,320 steps, those above their limit when they were first counted, on each of [`BOARDS`].
const FIRST: [usize; 5] = [61, 83, 73, 88, 74];

/// By board: how many were and are above, and whose they are.
pub(super) fn cliffs(found: &Cliffs) -> String {
    let mut table = Table::new(&["board", "kernels, steps above their limit", "first", "today"], 2);
    for (board, first) in BOARDS.into_iter().zip(FIRST) {
        let mut kernels = BTreeMap::<&str, usize>::new();
        for cliff in found.above.iter().filter(|cliff| cliff.board == board) {
            *kernels.entry(&cliff.kernel).or_default() += 1;
        }
        let mut kernels: Vec<(&str, usize)> = kernels.into_iter().collect();
        kernels.sort_by_key(|&(_, steps)| std::cmp::Reverse(steps));
        let listed: Vec<String> = kernels
            .iter()
            .map(|(kernel, steps)| format!("{kernel} {steps}"))
            .collect();
        let today: usize = kernels.iter().map(|(_, steps)| steps).sum();
        table.row([
            format!("`{board}`"),
            listed.join(", "),
            first.to_string(),
            today.to_string(),
        ]);
    }
    table.row([
        "all".to_owned(),
        format!("of {} steps", found.steps),
        FIRST.iter().sum::<usize>().to_string(),
        found.above.len().to_string(),
    ]);
    table.text
}
