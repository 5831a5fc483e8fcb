//! `cargo xtask`: the project's own commands. Each installs what it needs first, and says what.

mod bench;
mod branches;
mod coverage;
mod demo;
mod fuzz;
mod gates;
mod mutants;
mod on_host;
mod release;
mod setup;
mod suite;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use arenite_host::board::{BOARDS, Board};
use arenite_xtask::places::{self, Core};
use clap::{Parser, Subcommand};

/// An error, for people.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Sets up, shows and tests Arenite.")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs what is missing: qemu, Rust targets and components.
    Setup {
        /// Also a Python environment in .venv with what the references need.
        #[arg(long)]
        python: bool,
        /// Also the cross compiler with its C library, cmake and make, which the tests of the library for C want.
        #[arg(long)]
        c: bool,
        /// All that tests need: besides both of these the matrix' targets, a browser, cargo-deny, PyTorch with the tracer, and Vela.
        #[arg(long)]
        all: bool,
    },
    /// Packs the digit classifier and runs the whole held-out set on an emulated Cortex-M4F.
    Demo,
    /// Counts instructions on every board, rewrites tests/results and the tables of the documents.
    Bench {
        /// Only these models, by the names of their files in tests/results.
        models: Vec<String>,
        /// Measures nothing: rewrites the tables from tests/results.
        #[arg(long, conflicts_with_all = ["models", "peer"])]
        tables: bool,
        /// Counts the crate microflow on the models that it runs instead.
        #[arg(long, conflicts_with = "models")]
        peer: bool,
        /// Makes the table of stacks again from the boards' firmware instead; with names, those boards' rows.
        #[arg(long, conflicts_with_all = ["tables", "peer"])]
        stacks: bool,
        /// Makes the table of bytes of code again from a program with every kernel instead; with names, those boards' rows.
        #[arg(long, conflicts_with_all = ["tables", "peer", "stacks"])]
        code_bytes: bool,
        /// Makes the table of most instructions again from generated steps instead; with names, those of these boards and kernels.
        #[arg(long, conflicts_with_all = ["tables", "peer", "stacks"])]
        most: bool,
        /// Looks for steps of int8 models above what their kind may take instead and rewrites tests/results/cliffs.json; with names, those models alone, and
        /// nothing is written.
        #[arg(long, conflicts_with_all = ["tables", "peer", "stacks", "most"])]
        cliffs: bool,
        /// Makes the table of cycles that kernels are chosen by again from generated steps instead; with names, those of these boards and kernels.
        #[arg(long, conflicts_with_all = ["tables", "peer", "stacks", "most", "cliffs"])]
        rates: bool,
        /// Runs the convolutions and fully connected layers of every int8 model by each kernel that could have been chosen instead, and prints which take the
        /// fewest cycles; with names, those models and boards alone.
        #[arg(long, conflicts_with_all = ["tables", "peer", "stacks", "most", "cliffs", "rates"])]
        choices: bool,
    },
    /// Prints the steps of the int8 models of the benchmarks, from tests/results: instructions beside those of TensorFlow Lite Micro, bound, cycles.
    Layers {
        /// Only these models and boards, by name.
        names: Vec<String>,
    },
    /// Passes all tests: formatting, lints, unit and end-to-end tests, firmware for every board, documentation.
    Test {
        /// Only these parts; `kernel NAME` is one kernel on the host and its boards.
        parts: Vec<String>,
        /// Runs nothing: lists the parts.
        #[arg(long)]
        list: bool,
        /// Everything, without turns by the commit.
        #[arg(long, conflicts_with = "parts")]
        all: bool,
        /// Notes the date in tests/results/tiers.json where all of it passes; with `--all` a run that was ended goes on where it stopped.
        #[arg(long, conflicts_with = "parts")]
        record: bool,
        /// After this time nothing begins and what runs is ended; what is left out is named at the end, and is a failure.
        #[arg(long, value_name = "MINUTES")]
        within: Option<u32>,
    },
    /// Builds the programs that tests run on the boards of a target; on all boards without one.
    Firmware {
        /// As `thumbv7em-none-eabihf`.
        triple: Option<String>,
    },
    /// Makes the archive that people install from, below target/dist: both programs, firmware of the boards with its hashes, the library for C, manuals,
    /// completions; and the archives for Zephyr, ESP-IDF and Arduino.
    Dist {
        /// Firmware of these boards instead of all.
        #[arg(long, value_name = "BOARD")]
        board: Vec<String>,
        /// The library for C for these cores instead of all: firmware/c/cmake/cores.cmake.
        #[arg(long, value_name = "CORE")]
        core: Vec<String>,
    },
    /// Cuts a release: changelog, versions, commit, tag; archive, packages, wheel, checksums and a list of what is in them, below target/release-VERSION.
    Release {
        /// As 0.2.0: later than the one before.
        version: String,
        /// Says what would change, and changes nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Makes the page that packs and runs networks in a browser, target/playground/index.html.
    Playground,
    /// Counts the lines of the runtime and of the host tools that the tests run on the host, and the branches of what load checks.
    Coverage {
        /// Shows these files instead, with how often each line ran.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Runs the arena planner on all instances and prints the tables of docs/planner.md.
    PlanBench {
        /// MiniMalloc's command, to run beside it.
        #[arg(long, value_name = "PROGRAM")]
        minimalloc: Option<PathBuf>,
        /// Writes the tables into docs/planner.md as well.
        #[arg(long)]
        update: bool,
    },
    /// Makes int8 networks of MLPerf Tiny's float ones and measures them beside the published files; writes tests/results/quantise.json and the table of
    /// docs/quantise.md.
    Quantise {
        /// Only these models, by the stems of their files.
        models: Vec<String>,
        /// Measures other quantisers on the same calibration sets, and on the digits, instead: a Python that has what tests/oracle/quantisers.py names.
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
    },
    /// The long tier: full-size networks, on the host and on boards.
    Long {
        /// Only tests whose name contains this. `mutants`: one-line changes to the product instead, of which the tests must notice each. `fuzz`: attacks on
        /// load, runs and importers, in builds that see more. `properties`: random cases, ten times as many as in the tests.
        filter: Option<String>,
        /// Of `fuzz` only this stage: host, address, narrow, miri or guided.
        #[arg(long, value_name = "NAME")]
        stage: Vec<String>,
        /// Of `fuzz`: how long each guided target runs.
        #[arg(long, value_name = "S", default_value_t = 60)]
        seconds: u32,
        /// Of the mutants one shard: K from 0.
        #[arg(long, value_name = "K/N")]
        shard: Option<String>,
        /// Of the mutants those in this file.
        #[arg(long, value_name = "FILE")]
        file: Vec<PathBuf>,
        /// Notes in tests/results/long.json when each test passed and what it took, and in tiers.json the date where all of them pass.
        #[arg(long)]
        record: bool,
        /// Runs nothing: names the tests that have not passed since what they test changed last. A release has none.
        #[arg(long, conflicts_with_all = ["filter", "record"])]
        due: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Task::Setup { all: true, .. } => setup::prepare(false).and_then(|()| setup::everything::install()),
        Task::Setup { python, c, .. } => setup::prepare(python).and_then(|()| if c { setup::cross() } else { Ok(()) }),
        Task::Demo => setup::prepare(false).and_then(|()| demo::run()),
        Task::Bench { tables: true, .. } => bench::fill(),
        Task::Bench { peer: true, .. } => setup::prepare(false).and_then(|()| bench::peers()),
        Task::Bench {
            cliffs: true, models, ..
        } => setup::prepare(false).and_then(|()| bench::cliffs(&models)),
        Task::Bench {
            rates: true, models, ..
        } => setup::prepare(false).and_then(|()| bench::rates(&models)),
        Task::Bench {
            choices: true, models, ..
        } => setup::prepare(false).and_then(|()| bench::choices(&models)),
        Task::Bench { most: true, models, .. } => setup::prepare(false).and_then(|()| bench::most(&models)),
        Task::Bench {
            stacks: true, models, ..
        } => setup::prepare(false)
            // The machine's own disassembler may not know all instructions.
            .and_then(|()| setup::component("llvm-tools"))
            .and_then(|()| bench::stacks(&models)),
        Task::Bench {
            code_bytes: true,
            models,
            ..
        } => setup::prepare(false).and_then(|()| bench::code_bytes(&models)),
        Task::Bench { models, .. } => setup::prepare(false).and_then(|()| bench::run(&models)),
        Task::Layers { names } => bench::layers(&names),
        Task::Test { list: true, .. } => {
            println!("{}", suite::list());
            Ok(())
        }
        Task::Test {
            parts,
            all,
            record,
            within,
            ..
        } => {
            let within = within.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
            setup::prepare(false).and_then(|()| match &parts[..] {
                [part, name] if part == "kernel" => suite::kernel(name),
                [part, ..] if part == "kernel" => Err("expected one name: cargo xtask test kernel NAME".into()),
                _ => suite::test(&parts, suite::How { all, record }, within),
            })
        }
        Task::Firmware { triple } => setup::prepare(false).and_then(|()| suite::build_firmware(triple.as_deref())),
        Task::Dist { board, core } => setup::prepare(false).and_then(|()| dist(&board, &core)),
        Task::Release { version, dry_run } => release::release(&version, dry_run),
        Task::Playground => playground(),
        Task::Coverage { files } => setup::prepare(true).and_then(|()| coverage::measure(&files)),
        Task::PlanBench { minimalloc, update } => plan_bench(minimalloc, update),
        Task::Quantise { models, python } => setup::prepare(false).and_then(|()| quantise(&models, python.as_deref())),
        Task::Long {
            filter,
            stage: stages,
            seconds,
            shard,
            file,
            record,
            due,
        } => match filter.as_deref() {
            _ if due => suite::due(),
            Some("fuzz") => setup::prepare(false).and_then(|()| fuzz::attack(&fuzz::Options { seconds, stages })),
            _ if !stages.is_empty() => Err("--stage goes with `long fuzz`".into()),
            filter => long(filter, shard.as_deref(), &file, record),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn long(filter: Option<&str>, shard: Option<&str>, files: &[PathBuf], record: bool) -> Result<()> {
    setup::prepare(true)?;
    match filter {
        Some("mutants") => mutants::run(shard, files),
        _ if shard.is_some() || !files.is_empty() => Err("--shard and --file go with `long mutants`".into()),
        _ => suite::long(filter, record),
    }
}

/// The page with all that it needs.
fn playground() -> Result<()> {
    setup::rust_target(arenite_xtask::playground::TRIPLE)?;
    // The settings of .cargo/config.toml for vectors and for the stack hold.
    let mut build = cargo(&arenite_xtask::playground::BUILD);
    run(build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let library = arenite_xtask::playground::library(&target());
    let page = arenite_xtask::playground::make(&library, &root().join("target/playground"))?;
    println!("{} ({} bytes)", page.display(), std::fs::metadata(&page)?.len());
    Ok(())
}

/// The archive for this host.
fn dist(names: &[String], cores: &[String]) -> Result<()> {
    let find = |name: &String| Board::find(name).ok_or_else(|| format!("no board is called `{name}`"));
    let boards = match names {
        [] => BOARDS.iter().collect(),
        names => names.iter().map(find).collect::<std::result::Result<Vec<_>, _>>()?,
    };
    let cores = match cores {
        [] => places::CORES.iter().collect(),
        names => names
            .iter()
            .map(|name| Core::named(name))
            .collect::<std::result::Result<Vec<_>, _>>()?,
    };
    for core in &cores {
        setup::rust_target(core.triple)?;
    }
    let triple = setup::host_triple().ok_or("rustc does not name its host")?;
    run(&mut cargo(&[
        "build",
        "--profile",
        "shipped",
        "--locked",
        "--package",
        "arenite-host",
        "--bins",
    ]))?;
    let libraries = places::libraries(&cores)?;
    let parts = arenite_xtask::dist::Parts {
        programs: &target().join("shipped"),
        triple: &triple,
        boards: &boards,
        libraries: &libraries,
    };
    let folder = root().join("target/dist");
    let mut archives = vec![arenite_xtask::dist::archive(&parts, &folder)?];
    archives.extend(arenite_xtask::dist::archives_of_places(&libraries, &folder)?);
    for archive in archives {
        println!("{} ({} bytes)", archive.display(), std::fs::metadata(&archive)?.len());
    }
    Ok(())
}

/// Optimised, whatever xtask itself is built as.
fn plan_bench(minimalloc: Option<PathBuf>, update: bool) -> Result<()> {
    let mut command = cargo(&[
        "run",
        "--release",
        "--package",
        "arenite-xtask",
        "--example",
        "plan_bench",
        "--",
    ]);
    if let Some(program) = minimalloc {
        command.arg("--minimalloc").arg(program.canonicalize()?);
    }
    if update {
        command.arg("--update").arg(root().join("docs/planner.md"));
    }
    run(&mut command)
}

/// Optimised as well: it calibrates many times.
fn quantise(models: &[String], python: Option<&Path>) -> Result<()> {
    let mut command = cargo(&[
        "run",
        "--release",
        "--package",
        "arenite-xtask",
        "--example",
        "quantise",
        "--",
    ]);
    if let Some(python) = python {
        command.arg("--python").arg(std::path::absolute(python)?);
    }
    run(command.args(models))?;
    bench::fill()
}

/// Cargo's folder of outputs.
fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The workspace's root.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().unwrap_or(here)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(root());
    cargo
}

/// Says the command and runs it.
fn run(command: &mut Command) -> Result<()> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown = words.join(" ");
    eprintln!("$ {shown}");
    let ended = match command.spawn() {
        Ok(mut child) => suite::wait(&mut child).map_err(|error| error.to_string()),
        Err(error) => return Err(format!("`{shown}` does not start: {error}").into()),
    };
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}").into()),
        Err(error) => Err(format!("`{shown}` {error}").into()),
    }
}
