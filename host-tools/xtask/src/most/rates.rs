//! Cycles of generated steps in parts of their bounds of instructions (`host-tools/board/src/worst/cycles.json`), by which `pack` chooses among the kernels of
//! int8 convolutions.

use std::collections::BTreeMap;
use std::path::Path;

use arenite::KernelId;
use arenite::kernels::Backend;
use arenite::kernels::api::candidate::JobKind;
use arenite_host::board::Board;
use arenite_host::worst::cycles::Rates;
use arenite_host::worst::instructions::{TABLE, row};

use super::measure;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Steps of a kernel, and how many a row wants at least.
const STEPS: usize = 120;
const ENOUGH: usize = 4;

/// The boards whose cycles are tabled: a core of each kind that has timings and kernels of several backends, or of fully connected layers.
pub const BOARDS: [&str; 7] = [
    "mps2-an386",
    "mps2-an500",
    "mps2-an505",
    "mps3-an547",
    "mps2-an385",
    "mps2-an385:thumbv6m",
    "riscv32-virt",
];

/// Whether `pack` chooses the kernel by its cycles.
pub fn is_chosen(kernel: KernelId) -> bool {
    kernel.job() == Some(JobKind::Conv2dS8) && !kernel.spends_flash() && kernel.backend() != Backend::Compact
}

/// Rewrites the rows of `boards` in the table at `path`, of `kernels` alone where there are any; `note` hears of each.
///
/// # Errors
/// Where a board does not run the steps.
pub fn update(path: &Path, boards: &[&'static Board], kernels: &[KernelId], note: &mut dyn FnMut(&str)) -> Result<()> {
    for board in boards {
        let wanted = |kernel: &KernelId| kernels.is_empty() || kernels.contains(kernel);
        for kernel in KernelId::ALL.iter().copied().filter(|&kernel| is_chosen(kernel)) {
            if !board.has(kernel) || !wanted(&kernel) {
                continue;
            }
            let made = rates(board, kernel, note)?;
            // Read anew, so that commands for several boards can run at a time.
            let mut table: Rates = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            let rows = table.0.entry(board.name.to_owned()).or_default();
            rows.retain(|name, _| name.split(' ').next() != Some(kernel.name()));
            rows.extend(made);
            table.0.retain(|_, rows| !rows.is_empty());
            let new = path.with_extension(format!("{}", std::process::id()));
            std::fs::write(&new, serde_json::to_string_pretty(&table)? + "\n")?;
            std::fs::rename(new, path)?;
        }
    }
    Ok(())
}

/// The rows of a kernel: the mean over its steps.
fn rates(board: &'static Board, kernel: KernelId, note: &mut dyn FnMut(&str)) -> Result<BTreeMap<String, f64>> {
    let mut found = BTreeMap::<String, Vec<f64>>::new();
    let ((steps, weights), cycles) = measure::cycles(board, kernel, 0xC_0000, STEPS)?;
    for (generated, cycles) in steps.iter().zip(cycles) {
        if let Ok(bound) = TABLE.of(board.counts_as().name, &generated.step, &weights) {
            let rate = cycles as f64 / bound.max(1) as f64;
            found.entry(row(&generated.step, &weights)).or_default().push(rate);
        }
    }
    found.retain(|_, rates| rates.len() >= ENOUGH);
    let mut means = BTreeMap::new();
    for (name, rates) in &found {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let far = rates
            .iter()
            .fold(1.0f64, |far, rate| far.max(rate / mean).max(mean / rate));
        note(&format!(
            "{} {name}: {} steps, {mean:.3} cycles for each instruction of the bound, single ones within a factor of {far:.2}",
            board.name,
            rates.len()
        ));
        means.insert(name.clone(), (mean * 1e3).round() / 1e3);
    }
    Ok(means)
}
