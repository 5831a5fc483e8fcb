//! Int8 networks that were made of float ones, here and elsewhere.

use std::collections::BTreeSet;

use super::table::{Table, grouped};
use crate::quantise::{Row, SUBJECTS};
use crate::quantisers::{OURS, Row as Peer};

/// Beside the published int8 files.
pub(super) fn published(rows: &[Row]) -> String {
    let heads = [
        "network",
        "published, dB",
        "Arenite, dB",
        "with `--optimise-rounding`",
        "random inputs, the three",
        "instructions, published",
        "ours",
        "arena, published",
        "ours",
    ];
    let mut table = Table::new(&heads, 1);
    for row in rows {
        table.row([
            row.model.clone(),
            decibels(row.published_db),
            decibels(row.ours_db),
            decibels(row.optimised_db),
            row.random_db.map(decibels).join(", "),
            grouped(row.instructions[0]),
            grouped(row.instructions[1]),
            grouped(row.arena_bytes[0]),
            grouped(row.arena_bytes[1]),
        ]);
    }
    table.text
}

/// Beside other quantisers: dB, and of 360 images how many are right.
pub(super) fn peers(rows: &[Peer], published: &[Row]) -> String {
    let has_peers = |row: &&Row| rows.iter().any(|peer| peer.network == row.model);
    let ours = published.iter().filter(has_peers).flat_map(|row| {
        OURS.map(|(quantiser, optimised)| Peer {
            network: row.model.clone(),
            quantiser: quantiser.to_owned(),
            snr_db: Some(if optimised { row.optimised_db } else { row.ours_db }),
            right: None,
        })
    });
    let rows: Vec<Peer> = rows.iter().cloned().chain(ours).collect();
    let quantisers: BTreeSet<&str> = rows.iter().map(|row| row.quantiser.as_str()).collect();
    let heads: Vec<&str> = ["network"].into_iter().chain(quantisers.iter().copied()).collect();
    let mut table = Table::new(&heads, 1);
    let of_files = SUBJECTS.iter().map(|subject| subject.float);
    let has_rows = |network: &&str| rows.iter().any(|row| row.network == *network);
    for network in of_files.chain(["digits", "residual", "mlp"]).filter(has_rows) {
        let cells = quantisers.iter().map(|quantiser| {
            let row = rows
                .iter()
                .find(|row| row.network == network && row.quantiser == *quantiser);
            row.map_or_else(|| "-".to_owned(), cell)
        });
        table.row([network.to_owned()].into_iter().chain(cells));
    }
    table.text
}

fn cell(row: &Peer) -> String {
    let parts = [row.snr_db.map(decibels), row.right.map(|right| right.to_string())];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join("; ")
    }
}

fn decibels(value: f64) -> String {
    format!("{value:.1}")
}
