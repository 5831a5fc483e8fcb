//! `arenite weights`: seeded weights as a file, for frameworks to evaluate the same network.

use std::path::PathBuf;

use super::program::Verdict;
use crate::files::{Output, print, publish};
use crate::import::{self, ImportOptions};
use crate::report::grouped;
use crate::{Result, graph, weights};

/// Arguments of `arenite weights`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The network, as `pack` takes it.
    input: PathBuf,
    /// The seed: the weights are those of `pack --weights seeded:N`.
    #[arg(long, value_name = "N", required_unless_present = "list")]
    seed: Option<u64>,
    /// The .safetensors file to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE.safetensors", required_unless_present = "list")]
    output: Option<PathBuf>,
    /// Lists the parameters that the network needs instead: name and shape, one a line, separated by a tab.
    #[arg(long, conflicts_with_all = ["seed", "output"])]
    list: bool,
    /// Overrides recognition.
    #[arg(long)]
    dialect: Option<String>,
    /// A value that the trace does not state; repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    assume: Vec<(String, String)>,
    /// For traces without shapes.
    #[arg(long, value_name = "D,D,D,D", value_delimiter = ',')]
    input_shape: Vec<usize>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let output = args.output.as_deref().map(Output::to).transpose()?;
    output.iter().try_for_each(|output| output.differs_from(&args.input))?;
    let options = ImportOptions {
        batch: None,
        input_shape: (!args.input_shape.is_empty()).then(|| args.input_shape.clone()),
        assume: args.assume.clone(),
        ..ImportOptions::default()
    };
    let (_, imported) = import::import(&args.input, args.dialect.as_deref(), &options)?;
    graph::check::check(&imported.graph).map_err(|e| e.in_file(&args.input))?;
    for assumption in &imported.assumptions {
        let (key, value) = (&assumption.key, &assumption.value);
        print::note(format_args!(
            "assumed: {key}={value} for {} ({})",
            assumption.applies_to, assumption.reason
        ));
    }
    let params = weights::params(&imported.graph);
    let (Some(output), Some(seed)) = (output, args.seed) else {
        let lines = params.iter().map(|(key, shape)| format!("{key}\t{shape:?}\n"));
        print::out(&lines.collect::<String>())?;
        return Ok(Verdict::Good);
    };
    imported.files.iter().try_for_each(|file| output.differs_from(file))?;
    let draft = weights::export::draft(&imported.graph, seed, &output)?;
    let scalars: u64 = params
        .values()
        .map(|s| s.iter().map(|&n| n as u64).product::<u64>())
        .sum();
    print::note(format_args!(
        "{}: {} tensors, {} parameters of seed {}",
        output.path().display(),
        params.len(),
        grouped(scalars),
        seed
    ));
    publish(vec![draft])?;
    Ok(Verdict::Good)
}

fn key_value(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err("expected KEY=VALUE".to_string()),
    }
}
