//! The front: from a file to the graph that is lowered.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arenite::DType;
use sha2::{Digest, Sha256};

use super::back;
use super::dump::Dump;
use super::finish;
use super::norms;
use super::options::{Options, Progress};
use crate::channels::{self, Removed};
use crate::describe;
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::gradient::traced::{self, Traced};
use crate::graph::{Graph, LowBits, check, facts};
use crate::import::{self, Imported, Samples};
use crate::lower::select;
use crate::pairs;
use crate::passes;
use crate::preprocess;
use crate::quantize::{self, Grid};
use crate::report::{Quantization, Summary};
use crate::stage::{Stage, unwatched};
use crate::weights::Weights;

/// A network behind all passes.
pub struct Front {
    /// The network.
    pub graph: Graph,
    /// The network with all of its channels, where some went.
    pub whole: Option<Graph>,
    /// The values of its parameters.
    pub weights: Weights,
    /// The files that the trace names besides.
    pub files: Vec<PathBuf>,
    /// Runs to replay.
    pub samples: Option<Samples>,
    /// Other keys under which reference data holds a tensor, by the tensor's name.
    pub keys: BTreeMap<String, String>,
    /// Repairs, unused weights and other oddities.
    pub warnings: Vec<String>,
    /// Summary of the facts known by now.
    pub summary: Summary,
    /// The training step that a trace states, where one is packed.
    pub traced: Option<Traced>,
    /// The hash of the input file.
    pub input_sha256: String,
}

/// Reads the input and runs all passes.
///
/// # Errors
/// Errors of the importer, the weights file, the check of the graph or a pass.
pub fn run(options: &Options, dump: &mut Dump, progress: &mut Progress<'_>) -> Result<Front> {
    of(import::read(&options.input)?, options, dump, progress)
}

/// The network of a micro-batch: that of the same input, at the batch that `--micro-batches` makes of `batch`.
///
/// # Errors
/// [`ErrorKind::Usage`] for a batch that is no multiple; errors of [`of`].
pub(super) fn part(content: Vec<u8>, batch: usize, options: &Options, progress: &mut Progress<'_>) -> Result<Graph> {
    let parts = options.micro_batches();
    if !batch.is_multiple_of(parts) {
        let message = format!("--micro-batches {parts} of a batch of {batch}");
        return Err(Error::new(ErrorKind::Usage, message)
            .expected(format!("a batch that is a multiple of {parts}"))
            .help(format!("pass --batch {}", batch.next_multiple_of(parts))));
    }
    let import = import::ImportOptions {
        batch: Some(batch / parts),
        ..options.import.clone()
    };
    let options = Options {
        import,
        dump_after: None,
        ..options.clone()
    };
    Ok(of(content, &options, &mut Dump::default(), progress)?.graph)
}

/// As [`run`], of what has been read: a pipe has nothing to give a second time.
pub(super) fn of(content: Vec<u8>, options: &Options, dump: &mut Dump, progress: &mut Progress<'_>) -> Result<Front> {
    let name = files::paths::shown(&options.input);
    let (asked, momentum) = norms::asked(options)?;
    let (dialect, imported) = import::import_content(&name, &content, options.dialect.as_deref(), &asked)?;
    if let Some(spec) = &options.weights {
        import::refuse_weights(spec, dialect).map_err(|e| e.in_file(&options.input))?;
    }
    let input_sha256 = sha256(&content);
    drop(content);
    let Imported {
        mut graph,
        in_pairs,
        assumptions,
        mut warnings,
        constants,
        weights: sidecar,
        samples,
        keys,
        files,
    } = imported;
    let at_input = |e: Error| import::remedied(e, dialect).in_file(&options.input);
    options.refuse_beside_ethos_u(&graph)?;
    let traced = match &options.train {
        Some(_) if options.import.is_whole() => traced::of(&graph).map_err(at_input)?,
        _ => None,
    };
    if let Some(name) = &options.name {
        graph.name.clone_from(name);
    }
    let weights = match (&options.weights, &sidecar) {
        (Some(spec), _) => Weights::open(spec, &graph)?,
        (None, Some(path)) => Weights::file(path, &graph).map_err(|e| match e.kind() {
            ErrorKind::Io => e.help("the trace names this file: put it there, or pass --weights FILE"),
            _ => e,
        })?,
        (None, None) => Weights::nothing(&graph).map_err(at_input)?,
    };
    // Of the trace's own file, the importer knows every entry.
    let unused = match options.weights {
        Some(_) => weights.unused(&graph),
        None => Vec::new(),
    };
    warnings.extend((unused.iter()).map(|key| format!("the weights file's `{key}` is not a parameter")));
    check::check(&graph).map_err(at_input)?;
    let mut ops = facts::operators(&graph);
    for (kind, count) in constants {
        *ops.entry(kind).or_insert(0) += count;
    }

    passes::run(&mut graph, Stage::Import)?;
    facts::check_ports(graph.inputs.len(), graph.outputs.len()).map_err(at_input)?;
    dump.graph(Stage::Import, &graph);
    let mut summary = Summary {
        ops,
        assumptions,
        dead_channels: Some(Removed::default()),
        ..describe::of_import(&graph, dialect, options.target)
    };
    let mut quantizing = options.quantize.clone();
    if let Some(request) = &mut quantizing {
        request.float_ports = [options.input_dtype, options.output_dtype].map(|dtype| dtype == Some(DType::F32));
        request.integer_inputs = options.input_dtype.is_some_and(|dtype| dtype != DType::F32);
    }
    if let Some(spec) = &options.preprocess {
        let inserted = preprocess::insert(&mut graph, spec, quantizing.is_some()).map_err(at_input)?;
        warnings.extend(inserted.warnings);
        if let Some(request) = &mut quantizing {
            request.grid = inserted.grid;
        }
        check::check(&graph)?;
        summary.set_ports(&graph);
    }
    if quantizing.is_some() {
        graph.low_bits.clear();
    }
    let fuse = match &quantizing {
        // Sums in front of a gradient stay operators of their own.
        None if options.train.is_some() => {
            quantize::refuse_other(&graph, options.dtype).map_err(at_input)?;
            passes::run_before_training
        }
        None => {
            quantize::refuse_other(&graph, options.dtype).map_err(at_input)?;
            passes::run
        }
        Some(request) => {
            summary.liveness_as_traced_bytes = quantize::max_live(&graph, request.activations);
            passes::run_before_quantising
        }
    };
    let momentum = norms::keep(&mut graph, options, momentum).map_err(at_input)?;
    summary.assumptions.extend(momentum);
    let in_pairs = in_pairs && quantizing.is_none();
    if in_pairs {
        pairs::arrange(&mut graph);
        passes::name_apart(&mut graph);
        check::check(&graph)?;
    }
    passes::run(&mut graph, Stage::Fold)?;
    if options.preprocess.is_some() {
        preprocess::fold(&mut graph, &weights).map_err(at_input)?;
        check::check(&graph)?;
    }
    dump.graph(Stage::Fold, &graph);
    fuse(&mut graph, Stage::Fuse)?;
    if in_pairs {
        warnings.extend(pairs::fold(&mut graph, &weights).map_err(at_input)?);
        passes::name_apart(&mut graph);
        check::check(&graph)?;
    }
    let last = if let Some(request) = &quantizing {
        dump.graph(Stage::Fuse, &graph);
        passes::run(&mut graph, Stage::Quantize)?;
        let said = |report: &Quantization| Summary {
            dtype: request.activations.dtype().name().to_string(),
            quantization: Some(report.clone()),
            ..summary.clone()
        };
        let file_bytes = |graph: &Graph, report: &Quantization| {
            let (mut graph, mut summary) = (graph.clone(), said(report));
            last_passes(&mut graph, request.grid, options, &mut summary)?;
            measured(graph, &weights, (&keys, &input_sha256), options, &mut summary)
        };
        let quantized = quantize::run(&graph, &weights, request, &file_bytes, progress).map_err(at_input)?;
        check::check(&quantized.graph)?;
        warnings.extend(quantized.warnings);
        (graph, summary) = (quantized.graph, said(&quantized.report));
        Stage::Quantize
    } else {
        Stage::Fuse
    };
    if quantizing.is_none() {
        quantize::keep_bytes(&mut graph, &weights).map_err(at_input)?;
    }
    if options.weight_only.is_some() {
        graph.low_bits.clear();
    }
    let fewer_bits = options.weight_only.as_ref().filter(|asked| asked.bits != LowBits::WIDE);
    if let Some(request) = fewer_bits {
        let report = quantize::store_weights(&mut graph, &weights, request, &mut warnings).map_err(at_input)?;
        summary.weight_only = Some(report);
    }
    let grid = quantizing.as_ref().and_then(|request| request.grid);
    let (retyped, whole) = last_passes(&mut graph, grid, options, &mut summary)?;
    dump.graph(last, &graph);
    Ok(Front {
        whole,
        graph,
        weights,
        files,
        // They state what the network computes in its own types, with its own weights.
        samples: samples.filter(|_| !retyped && options.preprocess.is_none() && fewer_bits.is_none()),
        keys,
        warnings,
        summary,
        traced,
        input_sha256,
    })
}

/// Runs the passes behind the choice of element types: those of the network's inputs and outputs, and dead channels go. Returns whether the former were
/// changed, and the network with all of its channels where some went.
fn last_passes(
    graph: &mut Graph,
    grid: Option<Grid>,
    options: &Options,
    summary: &mut Summary,
) -> Result<(bool, Option<Graph>)> {
    let input_dtype = options.input_dtype.or(grid.map(|_| DType::U8));
    let retyped = options.quantize.is_some() || input_dtype.is_some() || options.output_dtype.is_some();
    if retyped {
        quantize::ports::retype(graph, input_dtype, options.output_dtype, grid)
            .map_err(|e| e.in_file(&options.input))?;
        passes::name_apart(graph);
        check::check(graph)?;
        summary.set_ports(graph);
    }
    let mut whole = None;
    // Factors are of parts of whole filters.
    let cut = graph.low_bits.values().all(|bits| bits.group.is_none());
    // A network with removed channels is compared with the whole one by runs of both.
    if !options.keep_dead_channels && cut && !facts::has_commands(graph) {
        whole = Some(graph.clone());
        let block = select::channels_at_a_time(options.target, options.size);
        summary.dead_channels = Some(channels::remove(graph, block)?);
    }
    Ok((retyped, whole.filter(|_| !graph.channels.is_empty())))
}

/// The bytes of the file that a network behind all passes becomes.
fn measured(
    graph: Graph,
    weights: &Weights,
    stated: (&BTreeMap<String, String>, &str),
    options: &Options,
    summary: &mut Summary,
) -> Result<u64> {
    let options = Options {
        explain: false,
        fit: None,
        stream_input: false,
        dump_after: None,
        ..options.clone()
    };
    let told = (&mut Dump::default(), &mut *summary);
    let back = back::run(graph, weights, &options, None, told, &mut unwatched)?;
    finish::bytes(&back, stated, weights, &options, summary)
}

fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
