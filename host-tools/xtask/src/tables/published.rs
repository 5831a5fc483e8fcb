//! Cycles that were measured on chips and published, beside the estimate.

use super::table::Table;

/// The chip whose flash the tracked results take into account, and the board that runs its core.
pub(crate) const CHIP: (&str, &str) = ("stm32l4r5", "mps2-an386");

/// Milliseconds times clock of the MLPerf Tiny submissions on the STM32L4R5 at 120 MHz, in Mcycles: ad01, kws, vww_96, resnet8.
const STM32L4R5: [(&str, [f64; 4]); 4] = [
    (
        "X-CUBE-AI (MLPerf Tiny v1.2, v1.3 the same within 1 %)",
        [0.63, 5.18, 10.67, 19.8],
    ),
    ("Plumerai (v1.1)", [0.49, 5.73, 11.85, 20.1]),
    ("Bosch (v1.2)", [0.70, 7.22, 21.7, 21.7]),
    ("TVM with CMSIS-NN (v1.1)", [1.03, 11.98, 36.1, 46.8]),
];

/// Estimates of the four models, without and with the flash, and what others measured.
pub(super) fn chip(estimates: [(Option<u64>, Option<u64>); 4]) -> String {
    let mut table = Table::new(&["Mcycles", "ad01", "kws", "vww_96", "resnet8"], 1);
    let cell = |cycles: Option<u64>| cycles.map_or("-".to_owned(), |cycles| format!("{:.2}", cycles as f64 / 1e6));
    let ours = |head: &str, cells: [Option<u64>; 4]| [head.to_owned()].into_iter().chain(cells.map(cell));
    table.row(ours(
        "Arenite, estimate without wait states",
        estimates.map(|(without, _)| without),
    ));
    table.row(ours(
        "Arenite, estimate with this flash and its caches",
        estimates.map(|(_, with)| with),
    ));
    for (software, cycles) in STM32L4R5 {
        table.row(
            [software.to_owned()]
                .into_iter()
                .chain(cycles.map(|cycles| format!("{cycles:.2}"))),
        );
    }
    table.text
}
