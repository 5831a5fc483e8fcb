//! Whether a model fits a chip, and about how long it takes there.

use arenite::kernels::Backend;
use arenite::{DType, KernelId, Target};
use serde::Serialize;

use super::chip::Chip;
use crate::board::tell_worst;
use crate::error::Result;
use crate::model::ModelView;

/// Capacity of a chip beside the needs of a model, and the shortages.
#[derive(Debug, Clone, Serialize)]
pub struct Fit {
    /// The chip.
    pub chip: &'static str,
    /// Whether the model fits.
    pub fits: bool,
    /// Why not; empty where it fits.
    pub reasons: Vec<String>,
    /// The model file, and about as much code as the runtime takes.
    pub flash_bytes: u64,
    /// Flash of the chip.
    pub flash_capacity_bytes: u64,
    /// Arena, state, and the stack of a run and a load.
    pub ram_bytes: u64,
    /// RAM of the chip.
    pub ram_capacity_bytes: u64,
    /// About how long a run takes at the chip's highest clock; none of emulated boards, and where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
}

/// Code and constants of the runtime for one network: the largest of those in docs/footprint.md, rounded up.
const CODE_BYTES: u64 = 24 << 10;

/// A stack for run and load where that of the model's kernels is not known: more than any tracked model's.
const STACK_BYTES: u64 = 2 << 10;

/// Cycles of a multiply-accumulate, of all a network does: the middle of the tracked models (`tests/results`), for int8 and f32, the latter with
/// the core's own unit where the target has one.
fn cycles_per_mac(target: Target, f32: bool) -> Option<f64> {
    Some(match (target, f32) {
        (Target::CortexM0, false) => 4.5,
        (Target::CortexM0, true) => 320.0,
        (Target::CortexM3, false) => 2.9,
        (Target::CortexM3, true) => 194.0,
        (Target::CortexM4 | Target::CortexM33, false) => 1.45,
        (Target::CortexM4 | Target::CortexM33, true) => 5.5,
        (Target::CortexM7, false) => 1.0,
        (Target::CortexM7, true) => 2.7,
        (Target::CortexM55, false) => 0.3,
        (Target::CortexM55, true) => 1.1,
        (Target::Riscv32imac, false) => 3.3,
        (Target::Riscv32imac, true) => 148.0,
        (Target::Riscv64gc, false) => 3.9,
        _ => return None,
    })
}

/// Whether a model fits a chip.
///
/// # Errors
/// Those of the file's metadata.
pub fn fit(model: &ModelView<'_>, chip: &Chip) -> Result<Fit> {
    let (header, metadata, mut summary) = (model.header(), model.metadata()?, model.summary()?);
    tell_worst(&mut summary, model.target_name(), &model.steps()?, model.weights());
    let mut reasons = Vec::new();
    // No chip of the list has the features behind which AArch64's and hosts' kernels would stand.
    for (feature, backend) in [
        ("dsp", Backend::Dsp),
        ("mve", Backend::Mve),
        ("rvv", Backend::Rvv),
        ("neon", Backend::Neon),
        ("dotprod", Backend::Dotprod),
        ("i8mm", Backend::I8mm),
        ("sme", Backend::Sme),
    ] {
        let wants = |kernel: &&KernelId| header.kernels.has(**kernel as u8) && kernel.backend() == backend;
        if !chip.features.contains(&feature) && KernelId::ALL.iter().any(|kernel| wants(&kernel)) {
            reasons.push(format!(
                "it has {} kernels, which a {} cannot run: pack it with --target {}",
                backend.name(),
                chip.core,
                chip.target
            ));
        }
    }
    let regions = header.arena.iter().filter(|&&bytes| bytes > 0).count();
    let arena: u64 = header.arena.iter().map(|&bytes| u64::from(bytes)).sum();
    let stack = [&summary.stack_bytes, &summary.load_stack_bytes]
        .into_iter()
        .flat_map(|stacks| stacks.values());
    let stack = stack.copied().max().unwrap_or(STACK_BYTES);
    let flash = u64::from(header.total) + CODE_BYTES;
    let ram = arena + u64::from(header.state_init.len) + stack;
    if flash > chip.flash.size {
        reasons.push(format!(
            "it takes {flash} bytes of flash with the runtime, the chip has {}: --max-flash, --size, or int8 weights",
            chip.flash.size
        ));
    }
    if ram > chip.ram.size {
        reasons.push(format!(
            "it takes {ram} bytes of RAM, the chip has {} in one piece: `pack --fit ram={}` searches for a smaller arena{}",
            chip.ram.size,
            chip.ram.size.saturating_sub(ram - arena),
            if regions > 1 { "; its regions may lie in other memories" } else { "" }
        ));
    }
    let macs: u64 = (0..metadata.steps.len()).map(|step| metadata.computed_macs(step)).sum();
    let f32 = model.inputs.iter().all(|port| port.dtype == DType::F32);
    let target = Target::ALL.get(usize::from(header.target)).copied();
    let rate = target.and_then(|target| cycles_per_mac(target, f32));
    // A hard-float target's figure is not that of a core without the unit.
    let rate = rate.filter(|_| !f32 || chip.has_fpu() || target.is_some_and(soft));
    Ok(Fit {
        chip: chip.name,
        fits: reasons.is_empty(),
        milliseconds: rate
            .zip(chip.mhz)
            .map(|(rate, mhz)| rate * macs as f64 / (1e3 * f64::from(mhz))),
        reasons,
        flash_bytes: flash,
        flash_capacity_bytes: chip.flash.size,
        ram_bytes: ram,
        ram_capacity_bytes: chip.ram.size,
    })
}

fn soft(target: Target) -> bool {
    matches!(target, Target::CortexM0 | Target::CortexM3 | Target::Riscv32imac)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tracked models' cycles are within a factor of two of the estimate.
    #[test]
    fn estimates_are_near_what_was_measured() {
        let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/results");
        let mut compared = 0;
        for (name, f32) in [
            ("ad01_int8", false),
            ("kws_ref_model", false),
            ("vww_96_int8", false),
            ("pretrainedResnet_quant", false),
            ("ad01_fp32", true),
            ("digits", true),
            ("vww_96_float", true),
        ] {
            let text = std::fs::read(results.join(format!("{name}.json"))).expect("a tracked file");
            let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
            for row in rows.iter().filter(|row| row["size"] == false) {
                let target = Target::ALL.into_iter().find(|target| row["target"] == target.name());
                let rate = target.and_then(|target| cycles_per_mac(target, f32));
                let macs: u64 = row["steps"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|step| step["macs"].as_u64())
                    .sum();
                if let (Some(rate), Some(cycles), true) = (rate, row["cycles"].as_f64(), macs > 0) {
                    let ratio = cycles / (rate * macs as f64);
                    assert!((0.5..2.0).contains(&ratio), "{name} on {}: {ratio:.2}", row["board"]);
                    compared += 1;
                }
            }
        }
        assert!(compared > 25, "{compared}");
    }
}
