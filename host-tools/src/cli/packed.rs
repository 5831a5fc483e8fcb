//! Output of `pack` on its work, for people.

use std::path::Path;

use crate::bundle::BundleSummary;
use crate::channels::Removed;
use crate::pack::Packed;
use crate::report::Summary;

/// Returns the text on the results of packing, for people.
pub(super) fn text(packed: &[Packed], bundled: Option<&BundleSummary>, output: &Path) -> String {
    let mut text = String::new();
    for packed in packed {
        text += &match &packed.dump {
            Some(dump) => dump.clone(),
            None => figures(&packed.summary, output),
        };
    }
    if let Some(bundle) = bundled {
        text += &format!(
            "bundle of {} models: arena {} bytes, state {} bytes, file {} bytes\n",
            bundle.models.len(),
            bundle.arena_bytes,
            bundle.state_bytes,
            bundle.model_bytes
        );
    }
    text
}

fn figures(summary: &Summary, output: &Path) -> String {
    let proof = if summary.plan_proven_optimal {
        "proven minimal for this order".to_string()
    } else {
        format!("lower bound {}", summary.plan_lower_bound_bytes)
    };
    let mut text = format!(
        "{} ({}, {}) -> {}\n",
        summary.name,
        summary.dialect,
        summary.target,
        output.display()
    );
    text += &format!(
        "  parameters {}, MACs {} per element, batch {}\n",
        summary.params, summary.macs, summary.batch
    );
    if let Some(removed) = summary.dead_channels.filter(|&removed| removed != Removed::default()) {
        text += &format!(
            "  removed    {} dead channels, {} bytes of weights, {} MACs\n",
            removed.channels, removed.bytes, removed.macs
        );
    }
    if let Some(stream) = summary.stream {
        text += &format!(
            "  stream     {} pieces, a buffer of {} bytes, {} read in a run\n",
            stream.pieces, stream.buffer_bytes, stream.read_bytes
        );
    }
    if let Some(winograd) = summary.winograd {
        text += &format!(
            "  Winograd   {} layer{}, {} bytes of flash\n",
            winograd.layers,
            if winograd.layers == 1 { "" } else { "s" },
            winograd.extra_bytes
        );
    }
    if let Some(report) = &summary.quantization {
        let snr = report
            .snr_db
            .map_or(String::new(), |snr| format!(", {snr:.1} dB on them"));
        let left = match report.left_range.len() {
            0 => "none left its range".to_string(),
            left => format!("{left} of {} left their range", left + report.never_left_range.len()),
        };
        text += &format!(
            "  quantised  on {} samples{snr}; of the activations {left}\n",
            report.samples
        );
        if let Some(estimate) = &report.estimate {
            text += &format!(
                "    {:.1} dB expected on others, ± {:.1}\n",
                estimate.snr_db, estimate.spread_db
            );
        }
        if report.int16_inside > 0 {
            text += &format!(
                "    {} steps of normalisations or recurrent layers are of int16: the answers are nearer so\n",
                report.int16_inside
            );
        }
        for point in &report.front {
            let layers: Vec<String> = point
                .layers
                .iter()
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            let snr = point.snr_db.map_or("no noise".into(), |snr| format!("{snr:.1} dB"));
            let chosen = if point.chosen { " <- taken" } else { "" };
            text += &format!(
                "    {:>9} bytes, {snr}: {}{chosen}\n",
                point.model_bytes,
                layers.join(", ")
            );
        }
    }
    if let Some(report) = &summary.weight_only {
        let snr = report
            .weights_snr_db
            .map_or(String::new(), |snr| format!(", {snr:.1} dB of the weights"));
        text += &format!(
            "  weights    of {} layers in {} bits{snr}\n",
            report.layers, report.bits
        );
    }
    text += &format!("  steps      {}\n", summary.steps);
    text += &format!("  arena      {} bytes, {proof}\n", summary.arena_bytes);
    if let Some(sums) = &summary.sums_by_rows {
        text += &format!(
            "    {} sum{} by rows, in {} more steps: at least {} bytes without\n",
            sums.sums,
            if sums.sums == 1 { "" } else { "s" },
            sums.more_steps,
            sums.whole_arena_bytes
        );
    }
    text += &summary.cores_text();
    text += &summary.accelerator_text();
    let twice = summary.training.is_some() && summary.extra_macs > 0;
    if summary.pareto.len() > 1 || twice {
        text += &format!("  extra MACs {}\n", summary.extra_macs);
        for point in &summary.pareto {
            text += &format!(
                "    {:>9} bytes with {} extra MACs: {}\n",
                point.arena_bytes, point.extra_macs, point.cuts
            );
        }
    }
    text += &summary.training_text();
    text += &format!("  state      {} bytes\n", summary.state_bytes);
    text += &format!(
        "  model      {} bytes ({} weights, {} plan)\n",
        summary.model_bytes, summary.weights_bytes, summary.plan_bytes
    );
    text += &summary
        .stack_text()
        .map_or(String::new(), |stack| format!("  stack      {stack}\n"));
    text
}
