//! The arena planner on instances: capacities, proofs, time over size, and MiniMalloc beside it; as Markdown tables.
//!
//! `cargo xtask plan-bench [--instances FOLDER] [--minimalloc PROGRAM] [--nodes N] [--update FILE.md]`
//!
//! FOLDER holds `NAME.CAPACITY.csv`, and `small/` and `lifetimes/` beside them. PROGRAM is MiniMalloc's own command; the two take turns on
//! each instance, each as a process of its own, and what is compared is the processor time that the system charged for it. With `--update`, the
//! tables replace what stands between the markers in FILE.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use arenite_host::memory::plan::{Options, Plan, PlanArgs, Problem, check, command, csv, generate, lower_bound, solve};
use clap::Parser;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SIZES: [usize; 6] = [30, 100, 300, 1000, 3000, 10_000];
/// Bytes and steps of generated packings: sizes and times on a coarse grid, as in the published instances.
const PACKING: (u64, u64) = (1 << 10, 1 << 8);
/// How far variants' sizes are reduced, in thousandths.
const SHRINK: u64 = 3;
/// By how many steps a third of variants' lifetimes are shortened, at most.
const SHORTEN: u64 = 2;
const SEEDS: u64 = 2;
const BEGIN: &str = "<!-- plan-bench: begin -->\n";
const END: &str = "<!-- plan-bench: end -->";

/// Name and generator of each kind of instance; the argument is the number of buffers.
type Kind = (&'static str, fn(usize) -> Problem);

const KINDS: [Kind; 5] = [
    ("chain", |count| generate::chain(count, 1)),
    ("wide", |count| generate::wide(count, 1)),
    ("adversarial", |count| generate::adversarial(count, 1)),
    ("loose packing", |count| {
        generate::loose(count, PACKING.0, PACKING.1, 30, 1)
    }),
    ("perfect packing", |count| {
        generate::perfect(count, PACKING.0, PACKING.1, 1)
    }),
];

#[derive(Parser)]
struct Cli {
    /// Folder of instances
    #[arg(long)]
    instances: Option<PathBuf>,
    /// MiniMalloc's command, to run beside the planner
    #[arg(long, value_name = "PROGRAM")]
    minimalloc: Option<PathBuf>,
    /// Search budget of the planner
    #[arg(long, default_value_t = Options::DEFAULT_NODES)]
    nodes: u64,
    /// Put the tables between the markers of this Markdown file
    #[arg(long, value_name = "FILE.md")]
    update: Option<PathBuf>,
    /// Plan this file within the capacity and print nothing: what the comparison runs
    #[arg(long, hide = true, num_args = 2, value_names = ["FILE", "CAPACITY"])]
    one: Option<Vec<String>>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    if let Some([file, capacity]) = cli.one.as_deref() {
        return one(file, capacity.parse()?, cli.nodes);
    }
    let folder = cli.instances.clone().unwrap_or_else(instances);
    let mut text = String::new();
    if folder.is_dir() {
        text += &capacities(&cli, &folder)?;
        text += &variants(&cli, &folder)?;
        text += &minimised(&cli, &folder)?;
    } else {
        eprintln!("skipped: {} is no folder of instances", folder.display());
    }
    text += &over_size(&cli)?;
    println!("{text}");
    if let Some(path) = &cli.update {
        let old = std::fs::read_to_string(path)?;
        let marked = old.split_once(BEGIN).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(END)?;
            Some(format!("{before}{BEGIN}{text}{END}{after}"))
        });
        let new = marked.ok_or_else(|| format!("{} lacks the markers {BEGIN:?} and {END:?}", path.display()))?;
        std::fs::write(path, new)?;
    }
    Ok(())
}

fn instances() -> PathBuf {
    let shared = std::env::var_os("ARENITE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    shared.join("data/planner")
}

/// The instances of a folder with the number in their names, in order.
fn files(folder: &Path) -> Result<Vec<(PathBuf, Option<u64>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "csv") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let capacity = stem.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
            files.push((path, capacity));
        }
    }
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.split('.').next().unwrap_or_default().to_string()
}

fn read(path: &Path) -> Result<Problem> {
    Ok(csv::read(&std::fs::read_to_string(path)?)?)
}

/// The plan, checked, and the processor time in seconds that it took; elapsed time where the system does not tell.
fn timed(problem: &Problem, capacity: Option<u64>, nodes: u64) -> Result<(Plan, f64)> {
    let (start, before) = (Instant::now(), processor_seconds());
    let plan = solve(problem, &Options { capacity, nodes })?;
    let seconds = match (before, processor_seconds()) {
        (Some((before, _)), Some((after, _))) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    check(problem, &plan)?;
    Ok((plan, seconds))
}

fn one(file: &str, capacity: u64, nodes: u64) -> Result<()> {
    let arguments = PlanArgs {
        file: file.into(),
        capacity: Some(capacity),
        output: None,
        json: false,
        plan_nodes: nodes,
    };
    command(&arguments, &mut arenite_host::stage::unwatched)?;
    Ok(())
}

/// User and system time of this process and of its children that have ended, where the system tells (Linux).
fn processor_seconds() -> Option<(f64, f64)> {
    /// Linux reports these times in hundredths on all architectures.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    let own = ticks(11)? + ticks(12)?;
    let children = ticks(13)? + ticks(14)?;
    Some((own / TICKS, children / TICKS))
}

/// Processor seconds of a command; `None` where it fails.
fn child_seconds(command: &mut Command) -> Result<Option<f64>> {
    let (start, before) = (Instant::now(), processor_seconds());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let seconds = match (before, processor_seconds()) {
        (Some((_, before)), Some((_, after))) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    Ok(status.success().then_some(seconds))
}

fn capacities(cli: &Cli, folder: &Path) -> Result<String> {
    let mut text = String::from("Instances with a capacity, each planned within it:\n\n");
    let beside = cli.minimalloc.is_some();
    let extra = if beside { " MiniMalloc, CPU s | ratio |" } else { "" };
    let rule = if beside { " ---: | ---: |" } else { "" };
    writeln!(
        text,
        "| instance | buffers | capacity | height | bound | proven | nodes | CPU s |{extra}"
    )?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |{rule}")?;
    let (mut ours, mut theirs) = (0.0, 0.0);
    for (path, capacity) in files(folder)? {
        let Some(capacity) = capacity else { continue };
        let problem = read(&path)?;
        let (plan, mut seconds) = timed(&problem, Some(capacity), cli.nodes)?;
        let mut columns = String::new();
        if let Some(program) = &cli.minimalloc {
            let mut own = Command::new(std::env::current_exe()?);
            own.args(["--nodes", &cli.nodes.to_string(), "--one"]).arg(&path);
            seconds = child_seconds(own.arg(capacity.to_string()))?.unwrap_or(f64::INFINITY);
            let output = tempfile::NamedTempFile::new()?;
            let mut other = Command::new(program);
            other.arg(format!("--capacity={capacity}"));
            other.arg(format!("--input={}", path.display()));
            other.arg(format!("--output={}", output.path().display()));
            match child_seconds(&mut other)? {
                Some(taken) => {
                    theirs += taken;
                    columns = format!(" {taken:.2} | {:.0} % |", 100.0 * seconds / taken.max(0.01));
                }
                None => columns = " failed | - |".into(),
            }
        }
        ours += seconds;
        let (count, nodes) = (problem.buffers.len(), grouped(plan.nodes));
        writeln!(
            text,
            "| {} | {count} | {} | {} | {} | {} | {nodes} | {seconds:.2} |{columns}",
            name(&path),
            grouped(capacity),
            fits(plan.height, capacity),
            grouped(plan.lower_bound),
            yes(plan.proven_optimal)
        )?;
    }
    if beside {
        let ratio = 100.0 * ours / theirs;
        writeln!(text, "| all | | | | | | | {ours:.2} | {theirs:.2} | {ratio:.1} % |")?;
    }
    Ok(text + "\n")
}

/// Instances that nobody has seen: the same ones with something changed, so that their old plans still fit.
fn variants(cli: &Cli, folder: &Path) -> Result<String> {
    let mut text = format!(
        "Variants of them, {SEEDS} of each kind: rows shuffled; time reversed as well; sizes reduced at random by up to {SHRINK} in a \
         thousand; three in ten lifetimes shortened by up to {SHORTEN} steps:\n\n\
         | instance | shuffled | reversed | sizes reduced | lifetimes shortened | most nodes | most CPU s |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for (path, capacity) in files(folder)? {
        let Some(capacity) = capacity else { continue };
        let problem = read(&path)?;
        let kinds: [&dyn Fn(u64) -> Problem; 4] = [
            &|seed| generate::variant(&problem, false, 0, seed),
            &|seed| generate::variant(&problem, true, 0, seed),
            &|seed| generate::variant(&problem, seed % 2 == 0, SHRINK, seed),
            &|seed| generate::shortened(&problem, 30, SHORTEN, seed),
        ];
        write!(text, "| {} |", name(&path))?;
        let (mut most_nodes, mut most_seconds) = (0, 0.0);
        for kind in kinds {
            let mut placed = 0;
            for seed in 1..=SEEDS {
                let (plan, seconds) = timed(&kind(seed), Some(capacity), cli.nodes)?;
                placed += u64::from(plan.height <= capacity);
                most_nodes = plan.nodes.max(most_nodes);
                most_seconds = f64::max(seconds, most_seconds);
            }
            write!(text, " {placed} of {SEEDS} |")?;
        }
        writeln!(text, " {} | {most_seconds:.2} |", grouped(most_nodes))?;
    }
    Ok(text + "\n")
}

/// Small instances and networks, without a capacity.
fn minimised(cli: &Cli, folder: &Path) -> Result<String> {
    let mut text = String::from(
        "Minimised:\n\n| instance | buffers | max-live | height | proven | nodes | CPU s |\n\
         | --- | ---: | ---: | ---: | --- | ---: | ---: |\n",
    );
    for folder in ["small", "lifetimes"].map(|name| folder.join(name)) {
        if !folder.is_dir() {
            continue;
        }
        for (path, _) in files(&folder)? {
            let problem = read(&path)?;
            let (plan, seconds) = timed(&problem, None, cli.nodes)?;
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {seconds:.2} |",
                name(&path),
                problem.buffers.len(),
                grouped(lower_bound(&problem)?),
                grouped(plan.height),
                yes(plan.proven_optimal),
                grouped(plan.nodes)
            )?;
        }
    }
    Ok(text + "\n")
}

fn over_size(cli: &Cli) -> Result<String> {
    let mut text = String::from(
        "Time over size: CPU seconds, and the height over the bound (1 is proven optimal; a packing's own capacity is the bound):\n\n\
         | buffers |",
    );
    for (kind, _) in KINDS {
        write!(text, " {kind} |")?;
    }
    text += "\n| ---: |";
    text += &" ---: |".repeat(KINDS.len());
    text.push('\n');
    for count in SIZES {
        write!(text, "| {} |", grouped(count as u64))?;
        for (_, generate) in KINDS {
            let problem = generate(count);
            let (plan, seconds) = timed(&problem, None, cli.nodes)?;
            let ratio = plan.height as f64 / plan.lower_bound.max(1) as f64;
            if plan.proven_optimal {
                write!(text, " {seconds:.2}, 1 |")?
            } else {
                write!(text, " {seconds:.2}, {ratio:.4} |")?
            }
        }
        text.push('\n');
    }
    Ok(text + "\n")
}

fn fits(height: u64, capacity: u64) -> String {
    if height <= capacity {
        grouped(height)
    } else {
        format!("{}, does not fit", grouped(height))
    }
}

fn yes(proven: bool) -> &'static str {
    if proven { "yes" } else { "no" }
}

fn grouped(number: u64) -> String {
    arenite_host::cli::grouped(number)
}
