//! Steps of the int8 models one by one, which no document holds: `cargo xtask layers`.

use std::fmt::Write as _;
use std::path::Path;

use super::table::{Table, grouped, ratio};
use super::{Data, INT8, TARGETS};
use arenite_host::board::BenchStep;
use arenite_host::{Error, Result};

/// The steps of the int8 models on the boards that have limits, as tables; with names, those of these models and boards.
///
/// # Errors
/// [`arenite_host::ErrorKind::Input`] for a name that is neither a model's nor a board's; as reading a record.
pub fn layers(results: &Path, names: &[String]) -> Result<String> {
    let data = Data::read(results)?;
    let models = INT8.map(|(model, _)| model);
    let boards = TARGETS.map(|(board, _)| board);
    let known = |name: &&String| models.contains(&name.as_str()) || boards.contains(&name.as_str());
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let known = [&models[..], &boards[..]].concat().join(", ");
        return Err(Error::input(format!("there are no steps of `{name}`")).expected(format!("one of {known}")));
    }
    let wanted = |all: &[&str], name: &str| {
        let mut of_these = names.iter().filter(|name| all.contains(&name.as_str())).peekable();
        of_these.peek().is_none() || of_these.any(|wanted| wanted == name)
    };
    let mut text = String::new();
    for board in boards.into_iter().filter(|board| wanted(&boards, board)) {
        for model in models.into_iter().filter(|model| wanted(&models, model)) {
            let table = data.layers(model, board).unwrap_or_default();
            write!(text, "{model} on {board}\n\n{table}\n\n").map_err(|e| Error::internal(e.to_string()))?;
        }
    }
    Ok(text.trim_end().to_owned())
}

impl Data {
    /// The layers of a model on a board, beside those of TensorFlow Lite Micro, which has steps that Arenite does not need.
    fn layers(&self, model: &str, board: &str) -> Option<String> {
        let layers = &self.reference.get(model)?.layers;
        let heads = [
            "layer",
            "shape",
            "MACs",
            "instructions",
            "per MAC",
            "TFLM",
            "ratio",
            "bound",
            "over",
            "cycles",
        ];
        let mut table = Table::new(&heads, 2);
        let mut steps = self.find(model, board, false, false).map(|bench| bench.steps.iter());
        for layer in layers {
            let step = match layer.op.as_str() {
                "RESHAPE" => None,
                _ => steps.as_mut().and_then(Iterator::next),
            };
            let theirs = layer.instructions.get(board).copied();
            let ours = step.map(|step| step.instructions);
            let cell = |n: Option<u64>| n.map_or("-".to_owned(), grouped);
            table.row([
                layer.op.clone(),
                layer.shape.clone(),
                grouped(layer.macs),
                cell(ours),
                ours.map_or("-".to_owned(), |ours| ratio(ours, layer.macs)),
                cell(theirs),
                ours.zip(theirs)
                    .map_or("-".to_owned(), |(ours, theirs)| ratio(ours, theirs)),
                cell(step.and_then(|step| step.bound)),
                step.map_or(String::new(), over_bound),
                cell(step.and_then(|step| step.cycles)),
            ]);
        }
        Some(table.text)
    }
}

fn over_bound(step: &BenchStep) -> String {
    match step.bound {
        Some(bound) if bound > 0 => {
            format!("{:+.0} %", 100.0 * (step.instructions as f64 / bound as f64 - 1.0))
        }
        _ => String::new(),
    }
}
