//! The noise of layers, for people.

use super::float::Report;
use super::options::{Options, Tried};

pub(super) fn text(report: &Report) -> String {
    let mut text = String::from("step  op                  SNR dB  alone  clipped    share  tensor\n");
    for layer in &report.layers {
        text += &format!(
            "{:4}  {:<18}  {}   {}  {:6.3} %  {:5.1} %  {}\n",
            layer.step,
            layer.op,
            decibels(layer.snr_db),
            decibels(layer.alone_db),
            100.0 * layer.clipped,
            100.0 * layer.share,
            layer.name
        );
    }
    text += &format!("answers: {} dB on {} samples\n", short(report.snr_db), report.samples);
    if report.deviations_db.is_some() {
        text += &format!(
            "answers less their mean: {} dB; each sample answered as the one before: {} dB\n",
            short(report.deviations_db),
            short(report.another_db)
        );
    }
    if report.equalised > 0 {
        let pairs = if report.equalised == 1 { "pair" } else { "pairs" };
        text += &format!(
            "packing equalised channels between {} {pairs} of layers: they are compared in the float model's sizes\n",
            report.equalised
        );
    }
    if report.inputs_share > 0.005 {
        text += &format!(
            "the inputs' rounding makes {:.1} % of the noise\n",
            100.0 * report.inputs_share
        );
    }
    for advice in &report.worst {
        text += &format!(
            "`{}` makes {:.1} % of the noise of the answers, {:.1} dB: {}\n",
            advice.name,
            100.0 * advice.share,
            advice.gain_db,
            advice.reason
        );
    }
    for weak in &report.weak {
        text += &weak.text();
    }
    if !report.not_in_float.is_empty() {
        text += &format!(
            "steps that the float model has not: {}\n",
            report.not_in_float.join(", ")
        );
    }
    match &report.options {
        Some(options) => text += &tried(options),
        None if report.worst.is_empty() => {}
        None => text += "--packed-by 'NETWORK OPTIONS', the words of its `pack`, tries what would help\n",
    }
    text
}

fn tried(options: &Options) -> String {
    let mut text = format!(
        "tried, beside {} dB, {} bytes",
        short(options.snr_db),
        options.model_bytes
    );
    if let (Some(board), Some(most)) = (&options.board, options.instructions_at_most) {
        text += &format!(", at most {most} instructions on {board}");
    }
    text += ":\n";
    for tried in &options.tried {
        text += &line(tried);
    }
    text
}

fn line(tried: &Tried) -> String {
    let Tried { option, refused, .. } = tried;
    if let Some(refused) = refused {
        let first = refused.lines().next().unwrap_or_default();
        return format!("  {option}: refused: {first}\n");
    }
    let gain = tried.gain_db.map_or("-".to_owned(), |gain| format!("{gain:+.1}"));
    let mut text = format!("  {option}: {gain} dB, {:+} bytes", tried.more_bytes);
    if let Some(more) = tried.more_instructions {
        text += &format!(", {more:+} instructions");
    }
    text + "\n"
}

fn decibels(snr: Option<f64>) -> String {
    snr.map_or("    -".to_string(), |snr| format!("{snr:5.1}"))
}

fn short(snr: Option<f64>) -> String {
    decibels(snr).trim().to_owned()
}
