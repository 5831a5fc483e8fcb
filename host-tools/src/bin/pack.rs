//! `pack`: a traced network in, a model file out.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use arenite::Target;
use arenite_host::cli::regions::{parse_regions, parse_size};
use arenite_host::cli::{UnbuiltPackOptions, exit_code};
use arenite_host::import::ImportOptions;
use arenite_host::pack::{DumpStage, Options, Packed, pack};
use arenite_host::summary::Summary;
use arenite_host::{Error, ErrorKind, Result, plan};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Packs a traced network into one file for the Arenite runtime.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The network: trace.json, any trace dialect, or a .tflite file.
    #[arg(required = true)]
    input: Vec<PathBuf>,
    /// The model file to write.
    #[arg(short, long)]
    output: PathBuf,
    /// Overrides recognition: native, chainer, megengine, tf-shapes, keras-order, rects, tflite.
    #[arg(long)]
    dialect: Option<String>,
    /// A .safetensors or .npz file, or seeded:N for reproducible random weights.
    #[arg(long)]
    weights: Option<String>,
    /// A value that the trace does not state; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    assume: Vec<String>,
    /// The traced batch is rebuilt to N.
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// For traces without shapes.
    #[arg(long, value_name = "D,D,D,D", value_delimiter = ',')]
    input_shape: Vec<usize>,
    /// Chooses kernels and weight layouts.
    #[arg(long, default_value = "portable")]
    target: String,
    /// The planner's search budget in nodes.
    #[arg(long, value_name = "N", default_value_t = plan::Options::DEFAULT_NODES)]
    plan_nodes: u64,
    /// A memory for the arena; repeatable, in order of preference. SIZE takes K, M and G.
    #[arg(long, value_name = "NAME=SIZE")]
    region: Vec<String>,
    /// Searches for a way to run the network in this region: order, overlaps, bands of rows.
    #[arg(long, value_name = "NAME=SIZE")]
    fit: Option<String>,
    /// The largest model file. SIZE takes K, M and G.
    #[arg(long, value_name = "SIZE")]
    max_flash: Option<String>,
    /// Says what makes the arena's peak, and the cheapest ways to shrink it.
    #[arg(long)]
    explain: bool,
    /// Separate buffers only, for comparison.
    #[arg(long)]
    no_in_place: bool,
    /// The network's name.
    #[arg(long)]
    name: Option<String>,
    /// Class labels, one a line.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Prints the graph after a stage.
    #[arg(long, value_name = "STAGE")]
    dump_after: Option<DumpStage>,
    /// Prints the summary as JSON on stdout, and nothing else there.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    unbuilt: UnbuiltPackOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            exit_code(&e)
        }
    }
}

fn run(args: Args) -> Result<()> {
    let json = args.json;
    if json && args.dump_after.is_some() {
        return Err(Error::new(ErrorKind::Usage, "--dump-after and --json both want stdout").help("pass one of them"));
    }
    let options = options(args)?;
    let bar = ProgressBar::no_length();
    if std::io::stderr().is_terminal() {
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {wide_bar} {bytes}/{total_bytes}").expect("a valid template"),
        );
    } else {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let packed = pack(&options, &mut |phase, done, all| {
        bar.set_message(phase.to_string());
        if all > 0 {
            bar.set_length(all);
            bar.set_position(done);
        }
    });
    bar.finish_and_clear();
    let Packed {
        summary,
        warnings,
        dump,
        explanation,
    } = packed?;
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    for a in &summary.assumptions {
        eprintln!("assumed: {}={} for {} ({})", a.key, a.value, a.applies_to, a.reason);
    }
    if let Some(text) = explanation {
        eprint!("{text}");
    }
    if json {
        let text = serde_json::to_string_pretty(&summary).map_err(|e| Error::internal(e.to_string()))?;
        println!("{text}");
    } else if let Some(text) = dump {
        print!("{text}");
    } else {
        print(&summary, &options);
    }
    Ok(())
}

fn options(args: Args) -> Result<Options> {
    args.unbuilt.refuse()?;
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    let [input] = &args.input[..] else {
        return Err(Error::unsupported("several inputs in one bundle are not built yet").help("pack them one by one"));
    };
    let target = Target::ALL
        .into_iter()
        .find(|t| t.name() == args.target)
        .ok_or_else(|| {
            let names: Vec<_> = Target::ALL.iter().map(|t| t.name()).collect();
            usage(format!("--target {}: there is no such target", args.target)).expected(names.join(", "))
        })?;
    let assume = args.assume.iter().map(|text| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(usage(format!("--assume {text}")).expected("KEY=VALUE")),
    });
    let labels = match &args.labels {
        None => Vec::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read the labels", &e))?;
            text.lines().map(str::to_string).collect()
        }
    };
    if args.batch == 0 {
        return Err(usage("--batch 0".to_string()).expected("at least 1"));
    }
    let (regions, fit) = parse_regions(&args.region, args.fit.as_deref())?;
    Ok(Options {
        input: input.clone(),
        output: args.output,
        dialect: args.dialect,
        weights: args.weights,
        import: ImportOptions {
            batch: args.batch,
            input_shape: (!args.input_shape.is_empty()).then_some(args.input_shape),
            assume: assume.collect::<Result<_>>()?,
        },
        target,
        plan_nodes: args.plan_nodes,
        in_place: !args.no_in_place,
        regions,
        fit,
        max_flash: args
            .max_flash
            .as_deref()
            .map(|size| parse_size("--max-flash", size))
            .transpose()?,
        explain: args.explain,
        name: args.name,
        labels,
        dump_after: args.dump_after,
    })
}

fn print(summary: &Summary, options: &Options) {
    let proof = match summary.plan_proven_optimal {
        true => "proven minimal for this order".to_string(),
        false => format!("lower bound {}", summary.plan_lower_bound_bytes),
    };
    println!(
        "{} ({}, {}) -> {}",
        summary.name,
        summary.dialect,
        summary.target,
        options.output.display()
    );
    println!(
        "  parameters {}, MACs {} per element, batch {}",
        summary.params, summary.macs, summary.batch
    );
    println!("  steps      {}", summary.steps);
    println!("  arena      {} bytes, {proof}", summary.arena_bytes);
    println!("  state      {} bytes", summary.state_bytes);
    println!(
        "  model      {} bytes ({} weights, {} plan)",
        summary.model_bytes, summary.weights_bytes, summary.plan_bytes
    );
}
