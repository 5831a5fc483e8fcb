//! The table of what every model cost, and costs.

use super::table::{Table, grouped};
use crate::counts::{Cost, Counts};

/// What every model cost at the commit before, and costs today.
pub(super) fn before_and_after(counts: &Counts) -> String {
    let heads = [
        "model",
        "board, packed for",
        "instructions before",
        "after",
        "%",
        "arena before",
        "after",
        "file before",
        "after",
    ];
    let mut table = Table::new(&heads, 2);
    for row in &counts.rows {
        let cell =
            |cost: Option<Cost>, what: fn(Cost) -> u64| cost.map_or_else(|| "-".to_owned(), |cost| grouped(what(cost)));
        let change = match (row.before, row.after) {
            (Some(was), Some(is)) => {
                let ratio = is.instructions as f64 / was.instructions as f64;
                format!("{:+.2}", 100.0 * (ratio - 1.0))
            }
            _ => "-".to_owned(),
        };
        let size = if row.size { ", `--size`" } else { "" };
        table.row([
            row.model.clone(),
            format!("`{}`, {}{size}", row.board, row.target),
            cell(row.before, |cost| cost.instructions),
            cell(row.after, |cost| cost.instructions),
            change,
            cell(row.before, |cost| cost.arena_bytes),
            cell(row.after, |cost| cost.arena_bytes),
            cell(row.before, |cost| cost.model_bytes),
            cell(row.after, |cost| cost.model_bytes),
        ]);
    }
    table.text
}
