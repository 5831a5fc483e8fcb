//! The pipeline: a traced network in, a model file out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::Target;
use sha2::{Digest, Sha256};

use crate::emit::{self, Written};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output};
use crate::graph::{self, Graph, facts};
use crate::import::{self, ImportOptions, Imported, Samples};

use crate::memory::{self, Placed, Region, Request, fit, in_place, lifetimes, prove, schedule};
use crate::metadata::Metadata;
use crate::model::{self, ModelFile};

use crate::passes::{self, Stage};
use crate::program::{self, Program};

use crate::explain;
use crate::summary::{PortSummary, RegionSummary, Summary};
use crate::weights::Weights;

/// What `pack` is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The traced network.
    pub input: PathBuf,
    /// The model file to write.
    pub output: PathBuf,
    /// Overrides recognition.
    pub dialect: Option<String>,
    /// `--weights`: a file or `seeded:N`.
    pub weights: Option<String>,
    /// What the importer takes.
    pub import: ImportOptions,
    /// What to choose kernels for.
    pub target: Target,
    /// Whether small code and weights are preferred over speed.
    pub size: bool,
    /// The planner's search budget in nodes.
    pub plan_nodes: u64,
    /// Whether outputs may overlap inputs.
    pub in_place: bool,
    /// The memories that the arena may use, in order of preference; none stands for one without limit.
    pub regions: Vec<Region>,
    /// The arena must fit this many bytes: order, overlaps and bands are searched for it.
    pub fit: Option<u64>,
    /// The file must not be larger than this.
    pub max_flash: Option<u64>,
    /// Whether to explain the arena.
    pub explain: bool,
    /// The network's name, if not the input's.
    pub name: Option<String>,
    /// Class labels for the metadata.
    pub labels: Vec<String>,
    /// The stage after which the graph is wanted as text.
    pub dump_after: Option<DumpStage>,
}

impl Options {
    /// Every option at its default.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            output: output.into(),
            dialect: None,
            weights: None,
            import: ImportOptions::default(),
            target: Target::Portable,
            size: false,
            plan_nodes: crate::memory::plan::Options::DEFAULT_NODES,
            in_place: true,
            regions: Vec::new(),
            fit: None,
            max_flash: None,
            explain: false,
            name: None,
            labels: Vec::new(),
            dump_after: None,
        }
    }
}

/// Stages of `--dump-after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "named by the stage")]
pub enum DumpStage {
    Import,
    Fold,
    Fuse,
    Schedule,
    Plan,
}

/// What `pack` did.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The figures.
    pub summary: Summary,
    /// Repairs, unused weights and other oddities.
    pub warnings: Vec<String>,
    /// The text of `--dump-after`.
    pub dump: Option<String>,
    /// The text of `--explain`.
    pub explanation: Option<String>,
}

/// Told how far packing has come: a phase, and how much of how much of it is done.
pub type Progress<'a> = dyn FnMut(&str, u64, u64) + 'a;

/// Packs a network: import, prune, fold, fuse, lower, plan, write, and (where the trace has samples) replay.
///
/// # Errors
/// See [`Error`]; the output file is then as it was before.
pub fn pack(options: &Options, progress: &mut Progress<'_>) -> Result<Packed> {
    let (packed, draft) = draft(options, progress)?;
    draft.publish()?;
    Ok(packed)
}

/// Packs a network and leaves it to the caller when the file appears: [`Draft::publish`] comes last, after everything else that
/// can fail.
///
/// # Errors
/// See [`Error`]; nothing is left behind then.
pub fn draft(options: &Options, progress: &mut Progress<'_>) -> Result<(Packed, Draft)> {
    let output = Output::to(&options.output)?;
    refuse_inputs(&output, options)?;
    let io = |e: std::io::Error| Error::io(&options.output, "write the model", &e);
    progress("reading the trace", 0, 0);
    let (dialect, imported) = import::import(&options.input, options.dialect.as_deref(), &options.import)?;
    let Imported {
        mut graph,
        assumptions,
        mut warnings,
        constants,
        weights,
        samples,
        keys,
        files,
    } = imported;
    files.iter().try_for_each(|file| output.differs_from(file))?;
    let at_input = |e: Error| e.in_file(&options.input);
    if let Some(name) = &options.name {
        graph.name.clone_from(name);
    }
    let source = match (&options.weights, &weights) {
        (Some(spec), _) => Weights::open(spec, &graph)?,
        (None, Some(path)) => Weights::file(path, &graph)?,
        (None, None) => Weights::nothing(&graph).map_err(at_input)?,
    };
    warnings.extend(
        source
            .unused(&graph)
            .iter()
            .map(|key| format!("the weights file's `{key}` is not a parameter")),
    );

    graph::check::check(&graph).map_err(at_input)?;
    let operators = facts::operators(&graph);
    passes::recognise_softmax::run(&mut graph)?;
    let pruned = passes::prune::run(&mut graph)?;
    let mut dump = Dump {
        wanted: options.dump_after,
        text: None,
    };
    dump.graph(DumpStage::Import, &graph);
    let mut summary = summary_of_import(&graph, dialect, options.target);
    summary.ops = operators;
    for (kind, count) in constants {
        *summary.ops.entry(kind).or_insert(0) += count;
    }
    summary.pruned = pruned;
    summary.assumptions = assumptions;

    passes::run(&mut graph, Stage::Fold)?;
    dump.graph(DumpStage::Fold, &graph);
    passes::run(&mut graph, Stage::Fuse)?;
    dump.graph(DumpStage::Fuse, &graph);

    progress("planning", 0, 0);
    let preferences = program::Preferences {
        target: options.target,
        size: options.size,
        share: options.in_place,
    };
    let mut program = program::lower(graph, preferences, &source).map_err(at_input)?;
    let found = schedule::schedule(&program);
    schedule::apply(&mut program, &found.order);
    // Merged tensors cannot be cut: a fit starts from separate ones and merges what is left of them.
    let separate = (options.fit.is_some() || options.explain).then(|| program.clone());
    if options.in_place {
        in_place::merge(&mut program);
    }
    dump.program(DumpStage::Schedule, &program, None);
    let whole = || {
        vec![Region {
            name: "arena".into(),
            size: None,
        }]
    };
    let request = Request {
        regions: if options.regions.is_empty() {
            whole()
        } else {
            options.regions.clone()
        },
        in_place: options.in_place,
        nodes: options.plan_nodes,
    };
    let mut explanation = None;
    let memory = match &separate {
        None => memory::place(memory::bodies(&program, options.in_place), &request).map_err(at_input)?,
        Some(separate) => {
            let fitted = fit::fit(separate, &request, options.fit).map_err(at_input)?;
            (program, summary.extra_macs) = (fitted.program, fitted.extra_macs);
            if options.explain {
                explanation = Some(explain::explain(
                    &program,
                    &fitted.memory,
                    &fitted.front,
                    options.in_place,
                ));
            }
            summary.pareto = fitted.front;
            fitted.memory
        }
    };
    dump.program(DumpStage::Plan, &program, Some(&memory));
    summarise_program(&mut summary, &program, &memory);

    let owners = emit::Owners::new(&program);
    let mut steps = emit::step_metadata(&program, &memory, &owners)?;
    for tensor in steps.iter_mut().filter_map(|step| step.completes.as_mut()) {
        let others: Vec<String> = tensor.names.iter().filter_map(|name| keys.get(name).cloned()).collect();
        tensor.names.extend(others);
    }
    let key = |&id| keys.get(&program.graph.tensor(id).name).cloned().unwrap_or_default();
    let input_keys = program.graph.inputs.iter().map(key).collect();
    let metadata = Metadata {
        tool: concat!("pack ", env!("CARGO_PKG_VERSION")).to_string(),
        input_sha256: sha256(&options.input)?,
        summary: serde_json::to_string(&summary).map_err(|e| Error::internal(format!("the summary: {e}")))?,
        labels: options.labels.clone(),
        steps,
        input_keys,
        ports: owners.ports,
        tensors: owners.names,
    };
    let mut written = |done, all| progress("writing weights", done, all);
    let draft = output.draft().map_err(io)?;
    let sizes = emit::emit(&program, &memory, &metadata, &source, draft.file(), &mut written)
        .map_err(|e| e.in_file(&options.output))?;
    if let Some(limit) = options.max_flash.filter(|&limit| sizes.model > limit) {
        let message = format!(
            "the model needs {} bytes, {} of them weights",
            sizes.model, sizes.weights
        );
        return Err(Error::new(ErrorKind::DoesNotFit, message)
            .in_file(&options.input)
            .expected(format!("at most {limit} (--max-flash)"))
            .help("--size and --target portable keep weights in their plain layout; a smaller network helps most"));
    }
    let file = ModelFile::of(draft.file(), &options.output).map_err(io)?;
    verify(&file, samples.as_ref())?;
    let Written {
        model, weights, plan, ..
    } = sizes;
    (summary.model_bytes, summary.weights_bytes, summary.plan_bytes) = (model, weights, plan);
    let packed = Packed {
        summary,
        warnings,
        dump: dump.text,
        explanation,
    };
    Ok((packed, draft))
}

/// Refuses to write over what the options name. What the trace names besides is known only when it is read.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub(crate) fn refuse_inputs(output: &Output, options: &Options) -> Result<()> {
    output.differs_from(&options.input)?;
    match &options.weights {
        Some(spec) => output.differs_from(Path::new(spec)),
        None => Ok(()),
    }
}

/// Proves the new file's memory plan as `arenite verify` does, loads it as a device does, where this host has its kernels, and replays the
/// trace's samples.
///
/// # Errors
/// [`ErrorKind::Internal`] where the file is wrong; [`ErrorKind::Input`] where a sample is.
pub fn verify(file: &ModelFile, samples: Option<&Samples>) -> Result<()> {
    prove::prove(&file.view(false)?)
        .map_err(|e| Error::internal(format!("the new model's plan is wrong: {e}")).help("please report it"))?;
    let model = match file.load() {
        Ok(model) => model,
        Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
        Err(e) => return Err(Error::internal(format!("the new model does not load: {e}")).help("please report it")),
    };
    match samples {
        Some(samples) => replay(&model, samples),
        None => Ok(()),
    }
}

/// Runs the samples and compares the outputs that they state.
fn replay(model: &arenite::Model<'_>, samples: &Samples) -> Result<()> {
    let inputs: Vec<String> = (0..)
        .map_while(|i| model.input(i))
        .map(|p| p.name.to_string())
        .collect();
    let outputs: Vec<String> = (0..)
        .map_while(|i| model.output(i))
        .map(|p| p.name.to_string())
        .collect();
    let mut runs = Vec::new();
    for sample in &samples.runs {
        let find = |name: &String| {
            sample
                .inputs
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, bytes)| bytes.clone())
        };
        let given: Option<Vec<_>> = inputs.iter().map(find).collect();
        runs.push(given.ok_or_else(|| Error::input("a sample lacks an input of the network"))?);
    }
    let results = model::run(model, &runs, false, &mut |_, _, _| {})?;
    for (index, (sample, result)) in samples.runs.iter().zip(&results).enumerate() {
        for (name, expected) in &sample.outputs {
            let Some(port) = outputs.iter().position(|n| n == name) else {
                return Err(Error::input(format!(
                    "sample {index} states `{name}`, which is no output of the network"
                )));
            };
            let dtype = model.output(port).map_or(arenite::DType::F32, |p| p.dtype);
            let difference = crate::compare::relative(dtype, &result[port], expected);
            if difference.is_nan() || difference > samples.rtol {
                return Err(
                    Error::input(format!("sample {index}: output `{name}` differs by {difference:.3e}"))
                        .expected(format!("at most {:e}, as the trace states", samples.rtol))
                        .help("the trace, its weights and its samples are not of one network, or pack has a defect"),
                );
            }
        }
    }
    Ok(())
}

fn summary_of_import(graph: &Graph, dialect: &str, target: Target) -> Summary {
    let ports = |ids: &[graph::TensorId]| ids.iter().map(|&id| PortSummary::of(graph.tensor(id))).collect();
    let first = graph.inputs.first().map(|&id| graph.tensor(id));
    Summary {
        dialect: dialect.to_string(),
        target: target.name().to_string(),
        dtype: first.map_or("f32", |t| t.dtype.name()).to_string(),
        batch: first.and_then(|t| t.shape.first().copied()).unwrap_or(1),
        name: graph.name.clone(),
        inputs: ports(&graph.inputs),
        outputs: ports(&graph.outputs),
        params: facts::params(graph),
        macs: facts::macs_per_element(graph),
        liveness_as_traced_bytes: lifetimes::max_live(graph),
        ..Summary::default()
    }
}

fn summarise_program(summary: &mut Summary, program: &Program, memory: &Placed) {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for step in &program.steps {
        *kinds.entry(step.kind.to_string()).or_insert(0) += 1;
    }
    summary.ops_final = kinds;
    summary.steps = program.steps.len();
    summary.liveness_bound_bytes = memory.bodies.max_live();
    summary.arena_bytes = memory.arena_bytes();
    summary.state_bytes = program.state.initial.len() as u64;
    summary.plan_proven_optimal = memory.proven_optimal();
    summary.plan_lower_bound_bytes = memory.lower_bound();
    let regions = memory.plans.iter().map(|(region, plan)| RegionSummary {
        name: region.name.clone(),
        bytes: memory::whole_words(plan.height),
    });
    summary.regions = regions.collect();
}

fn sha256(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(|e| Error::io(path, "read the input", &e))?;
    let mut hash = Sha256::new();
    std::io::copy(&mut file, &mut hash).map_err(|e| Error::io(path, "read the input", &e))?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Dump {
    wanted: Option<DumpStage>,
    text: Option<String>,
}

impl Dump {
    fn graph(&mut self, stage: DumpStage, graph: &Graph) {
        if self.wanted == Some(stage) {
            self.text = Some(crate::dump::graph(graph));
        }
    }

    fn program(&mut self, stage: DumpStage, program: &Program, memory: Option<&Placed>) {
        if self.wanted == Some(stage) {
            self.text = Some(crate::dump::program(program, memory));
        }
    }
}
