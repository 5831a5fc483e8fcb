//! The program `pack`: a traced network in, a model file out.

use std::path::{Path, PathBuf};

use arenite::DType;

use crate::accelerator::{Accelerator, Sharing};
use crate::bundle;
use crate::files::{Draft, Output, Print, print, publish, read_text};
use crate::gradient;
use crate::import::{DIALECTS, ImportOptions};
use crate::memory::plan;
use crate::model::ModelFile;
use crate::pack::{self, Options, Packed};
use crate::page::Extra;
use crate::preprocess::Preprocess;
use crate::sign::Signer;
use crate::stage::Stage;
use crate::{Error, ErrorKind, Result};

use super::borders::BorderOptions;
use super::element_type::{ElementType, ElementTypeOptions};
use super::emit::Emit;
use super::packed::text;
use super::planned::refused_value;
use super::program::Verdict;
use super::progress::Shown;
use super::regions::{Regions, parse_regions, parse_size};

/// Packs a traced network into one file for the Arenite runtime.
#[derive(clap::Parser)]
#[command(name = "pack", version, term_width = super::examples::COLUMNS)]
pub(super) struct Args {
    /// The network: a .tflite, .onnx, .pt2 or .gguf file, a model of llama2.c, trace.json, or any trace dialect; several make a bundle; `-` is standard input.
    #[arg(required = true)]
    input: Vec<PathBuf>,
    /// The model file to write; `-` is standard output.
    #[arg(short, long)]
    output: PathBuf,
    #[arg(long, help = dialects())]
    dialect: Option<String>,
    /// A .safetensors or .npz file, or seeded:N for reproducible random weights.
    #[arg(long)]
    weights: Option<String>,
    /// A value that the trace does not state; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    assume: Vec<String>,
    #[command(flatten)]
    borders: BorderOptions,
    #[command(flatten)]
    element_type: ElementTypeOptions,
    /// From a camera's picture to the network's input, such as 'u8 size=240x320 crop=240x240 resize=96x96 mean=127.5 scale=0.00784314'.
    #[arg(long, value_name = "SPEC")]
    preprocess: Option<Preprocess>,
    /// What the inputs of a quantised network are: f32, u8 or int8; its own type by default.
    #[arg(long, value_name = "TYPE")]
    input_dtype: Option<PortType>,
    /// What the outputs of a quantised network are: f32, u8 or int8; its own type by default.
    #[arg(long, value_name = "TYPE")]
    output_dtype: Option<PortType>,
    /// The batch is rebuilt to N: by default .tflite, .onnx, .pt2 and trace.json keep the batch that they state, other traces get 1.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// For traces without shapes.
    #[arg(long, value_name = "D,D,D,D", value_delimiter = ',')]
    input_shape: Vec<usize>,
    /// Chooses kernels and weight layouts.
    #[arg(long, default_value = "portable")]
    target: String,
    /// Prefers small code and weights over speed.
    #[arg(long)]
    size: bool,
    /// The search budget in nodes: of the order of steps, and of the plan of each region.
    #[arg(long, value_name = "N", default_value_t = plan::Options::DEFAULT_NODES)]
    plan_nodes: u64,
    /// A memory for the arena; repeatable, in order of preference. SIZE takes K, M and G. With `:stream`, a flash that is no memory: it takes the model in
    /// pieces, through a buffer of `,buffer=SIZE` where that follows, those apart that stay in `,resident=SIZE`.
    #[arg(long, value_name = "NAME=SIZE[:stream]")]
    region: Vec<String>,
    /// Searches for a way to run the network in this region: order, overlaps, bands of rows; with --train, activations that are computed again.
    #[arg(long, value_name = "NAME=SIZE")]
    fit: Option<String>,
    /// Takes the input row by row (`Session::feed_rows`): of it and of what is made of it, only rows that are still needed are in the arena. Alone for the
    /// least arena, with --fit for one that fits. Each row is fed once.
    #[arg(long)]
    stream_input: bool,
    /// The largest model file. SIZE takes K, M and G.
    #[arg(long, value_name = "SIZE")]
    max_flash: Option<String>,
    /// Says what makes the arena's peak, and the cheapest ways to shrink it.
    #[arg(long)]
    explain: bool,
    /// Separate buffers only, for comparison.
    #[arg(long)]
    no_in_place: bool,
    /// Computes 3x3 convolutions by Winograd's algorithm where no arena grows by it: fewer instructions, more flash.
    #[arg(long)]
    winograd: bool,
    /// Keeps channels that cannot change the output.
    #[arg(long)]
    keep_dead_channels: bool,
    /// The network's name.
    #[arg(long)]
    name: Option<String>,
    /// Class labels, one a line.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Splits steps that cost more (products, elements read and written: `Model::costs`) by rows of their output.
    #[arg(long, value_name = "COST")]
    max_step: Option<u64>,
    /// Splits steps over so many cores that share the arena, 1 to 4: `Session::run_on` runs them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    cores: usize,
    /// Hands steps to the accelerator that this file (TOML) declares: `Session::run_accelerated` runs them.
    #[arg(long, value_name = "FILE")]
    accelerator: Option<PathBuf>,
    /// Puts steps of training into the file, over the memory of inference: gradient descent on the network's f32 parameters.
    #[arg(long, requires = "loss")]
    train: bool,
    /// The loss of training: cross-entropy (labels), l2, or mse (a target).
    #[arg(long, value_name = "LOSS", requires = "train")]
    loss: Option<String>,
    /// Parameters that are trained, by name with `*` for any characters, `biases`, or `lora:RANK` for narrow layers beside those that stay; repeatable. The
    /// others stay as they are. Default: all.
    #[arg(long, value_name = "PATTERN", requires = "train")]
    trainable: Vec<String>,
    /// A training step goes through its batch in so many parts and updates once: activations are those of a part.
    #[arg(long, value_name = "K", requires = "train", default_value_t = 1)]
    micro_batches: usize,
    /// The optimiser of training: sgd, `momentum[=SHARE]` or `adam[=B1,B2,EPSILON]`. All but sgd store gradients, and keep their moments in the state.
    #[arg(long, value_name = "OPTIMISER", requires = "train", default_value = "sgd")]
    optimiser: String,
    /// Sample inputs, .npz or .npy, that a device runs as a self-test: the file gets them and digests of their outputs.
    #[arg(long, value_name = "FILE")]
    self_test: Option<PathBuf>,
    /// Signs the file with this Ed25519 key (PKCS#8 in PEM); a bundle is signed as a whole.
    #[arg(long, value_name = "KEYFILE", requires = "sign_counter")]
    sign: Option<PathBuf>,
    /// The counter of a signed file: devices refuse one that is smaller than what they ask for.
    #[arg(long, value_name = "N", requires = "sign")]
    sign_counter: Option<u64>,
    /// Prints the graph after a stage.
    #[arg(long, value_name = "STAGE")]
    dump_after: Option<Stage>,
    /// Writes the model as one HTML page: graph, arena over time, steps, what was assumed.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Writes the model as C too, a header and a source file named after the model file, for programs that link the prebuilt library.
    #[arg(long, value_names = ["c", "FOLDER"], num_args = 2)]
    emit: Vec<PathBuf>,
    /// Prints the summary as JSON on stdout, and nothing else there.
    #[arg(long)]
    json: bool,
}

/// Element type of values that a caller gives or gets.
#[derive(Clone, Copy, clap::ValueEnum)]
enum PortType {
    F32,
    U8,
    Int8,
}

impl PortType {
    fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::U8 => DType::U8,
            Self::Int8 => DType::I8,
        }
    }
}

/// The help of `--dialect`.
fn dialects() -> String {
    let names: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.name).collect();
    format!("Overrides recognition: {}", names.join(", "))
}

/// The program's work.
pub(super) fn run(args: Args) -> Result<Verdict> {
    let (json, dump) = (args.json, args.dump_after.is_some());
    if json && dump {
        return Err(Error::new(ErrorKind::Usage, "--dump-after and --json both want stdout").help("pass one of them"));
    }
    let output = Output::to(&args.output)?;
    let page = args.report.as_deref().map(Output::to).transpose()?;
    let report = Print::beside(page.iter().chain([&output]), json || dump)?;
    Output::all_differ(page.iter().chain([&output]))?;
    if page.is_some() && (args.input.len() > 1 || args.borders.signatures()?.len() > 1) {
        return Err(
            Error::new(ErrorKind::Usage, "--report with several inputs or signatures")
                .expected("one input, and one signature of it")
                .help("pack each network by itself with --report, then the bundle"),
        );
    }
    if page.is_some() && dump {
        let message = "--report and --dump-after both want the graph's text";
        return Err(Error::new(ErrorKind::Usage, message).help("pass one of them"));
    }
    let read_first = args.labels.iter().chain(&args.sign).chain(&args.accelerator);
    let mut read_first = read_first.chain(args.borders.tokenizer());
    read_first.try_for_each(|input| outputs_differ(&output, page.as_ref(), input))?;
    let emit = Emit::of(&args.emit)?;
    let mut networks = options(args)?;
    emit.iter().try_for_each(|emit| emit.check(&networks))?;
    if page.is_some() {
        // The page shows the trace as it was imported.
        networks
            .iter_mut()
            .for_each(|network| network.dump_after = Some(Stage::Import));
    }
    let shown = Shown::new("reading the network");
    let mut progress = |stage: &str, done, of| shown.told(stage, done, of);
    let result = match &networks[..] {
        [network] => pack::draft(network, &mut progress).map(|(packed, draft)| (None, vec![packed], draft)),
        networks => bundle::draft(networks, &networks[0].output, &mut progress)
            .map(|(summary, packed, draft)| (Some(summary), packed, draft)),
    };
    drop(shown);
    let (bundled, mut packed, draft) = result?;
    packed.iter().for_each(tell);
    let mut drafts = vec![];
    if let (Some(page), [packed]) = (&page, &mut packed[..]) {
        drafts.push(page_of(&draft, packed, &networks[0], page)?);
    }
    if let (Some(emit), [packed]) = (&emit, &packed[..]) {
        let io = |e: std::io::Error| Error::io(output.path(), "read the model", &e);
        let file = ModelFile::of(draft.file(), output.path()).map_err(io)?;
        let others: Vec<&Output> = page.iter().chain([&output]).collect();
        drafts.extend(emit.drafts(&file.view()?, &packed.summary.name, &networks[0], &others)?);
    }
    drafts.push(draft);
    if json {
        let text = match (&bundled, &packed[..]) {
            (Some(bundle), _) => serde_json::to_string_pretty(bundle),
            (None, packed) => serde_json::to_string_pretty(&packed[0].summary),
        };
        print::out(&format!("{}\n", text.map_err(|e| Error::internal(e.to_string()))?))?;
    } else {
        report.text(&text(&packed, bundled.as_ref(), output.path()))?
    }
    // The file comes last: where the report could not be told there is no file.
    publish(drafts)?;
    Ok(Verdict::Good)
}

/// Neither of the outputs is `input`.
fn outputs_differ(output: &Output, page: Option<&Output>, input: &Path) -> Result<()> {
    output.differs_from(input)?;
    page.map_or(Ok(()), |page| page.differs_from(input))
}

/// The page of a model that is written and not yet published.
fn page_of(draft: &Draft, packed: &mut Packed, network: &Options, page: &Output) -> Result<Draft> {
    let read = network.reads().into_iter();
    read.chain(packed.files.iter().map(PathBuf::as_path))
        .try_for_each(|input| page.differs_from(input))?;
    let io = |e: std::io::Error| Error::io(page.path(), "write the page", &e);
    let file = ModelFile::of(draft.file(), &network.output).map_err(io)?;
    let extra = Extra {
        trace: packed.dump.take(),
        ..Extra::default()
    };
    let text = crate::page::page(&file.view()?, &packed.summary, &extra)?;
    page.draft_of(text.as_bytes()).map_err(io)
}

/// Warnings, assumptions and explanations, on stderr.
fn tell(packed: &Packed) {
    for warning in &packed.warnings {
        print::note(format_args!("warning: {warning}"));
    }
    for a in &packed.summary.assumptions {
        print::note(format_args!(
            "assumed: {}={} for {} ({})",
            a.key, a.value, a.applies_to, a.reason
        ));
    }
    if let Some(text) = &packed.explanation {
        print::note(text.trim_end());
    }
}

/// The options of each network.
fn options(args: Args) -> Result<Vec<Options>> {
    let ElementType {
        dtype,
        quantize,
        weight_only,
    } = args.element_type.read()?;
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    if args.input.len() > 1
        && (args.preprocess.is_some()
            || args.name.is_some()
            || args.weights.is_some()
            || args.self_test.is_some()
            || !args.borders.is_empty()
            || quantize.is_some())
    {
        return Err(usage(
            "--name, --weights, --signature, --set, --from, --until, --state, --context, --tokenizer, --calibrate, --preprocess and --self-test with \
             several inputs"
                .into(),
        )
        .expected("one input")
        .help("pack a network with its own options by itself; a bundle takes traces that name their weights"));
    }
    args.borders.check_several(
        &args.input,
        [
            ("--name", args.name.is_some()),
            ("--calibrate", quantize.is_some()),
            ("--preprocess", args.preprocess.is_some()),
            ("--self-test", args.self_test.is_some()),
        ],
    )?;
    let target = pack::target_named(&args.target)?;
    args.dialect
        .as_deref()
        .map_or(Ok(()), |name| refused_value("--dialect", name))?;
    let assume = args.assume.iter().map(|text| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(usage(format!("--assume {text}")).expected("KEY=VALUE")),
    });
    let labels = match &args.labels {
        None => Vec::new(),
        Some(path) => {
            let text = read_text(path, "read the labels")?;
            text.lines().map(str::to_string).collect()
        }
    };
    if args.preprocess.as_ref().is_some_and(|spec| spec.bytes) && args.input_dtype.is_some() {
        return Err(usage("--input-dtype with --preprocess u8".into())
            .expected("one of them")
            .help("--preprocess u8 says that the input is unsigned bytes"));
    }
    if args.stream_input && args.report.is_some() {
        return Err(usage("--stream-input with --report".into())
            .expected("one of them")
            .help("the page shows whole tensors: pack it once more without --stream-input for the report"));
    }
    if args.batch == Some(0) {
        return Err(usage("--batch 0".to_string()).expected("at least 1"));
    }
    if args.micro_batches == 0 {
        return Err(usage("--micro-batches 0".to_string()).expected("at least 1"));
    }
    let sign = match (&args.sign, args.sign_counter) {
        (Some(key), Some(counter)) => Some(Signer::read(key, counter)?),
        _ => None,
    };
    let Regions { memories, stream, fit } = parse_regions(&args.region, args.fit.as_deref())?;
    if stream.is_some() && args.report.is_some() {
        return Err(usage("--region NAME=SIZE:stream with --report".into())
            .expected("one of them")
            .help("pack it once more without :stream for the report"));
    }
    let accelerator = match &args.accelerator {
        None => None,
        Some(path) => Some(Accelerator::parse(&read_text(path, "read the accelerator")?, path)?),
    };
    let train = match (&args.loss, args.train) {
        (Some(loss), true) => Some(gradient::Request {
            loss: gradient::Loss::named(loss)?,
            trainable: args.trainable,
            micro_batches: args.micro_batches,
            optimiser: gradient::Optimiser::named(&args.optimiser)?,
        }),
        _ => None,
    };
    if train.is_some() && args.input.len() > 1 {
        return Err(usage("--train with several inputs".into())
            .expected("one input")
            .help("a bundle gives each model a state of its own: pack the network that is trained by itself"));
    }
    let inputs = args.input.clone();
    let options = Options {
        input: PathBuf::new(),
        output: args.output,
        dialect: args.dialect,
        weights: args.weights,
        import: args.borders.added_to(ImportOptions {
            batch: args.batch,
            input_shape: (!args.input_shape.is_empty()).then_some(args.input_shape),
            assume: assume.collect::<Result<_>>()?,
            ..ImportOptions::default()
        })?,
        target,
        size: args.size,
        without: Vec::new(),
        plan_nodes: args.plan_nodes,
        in_place: !args.no_in_place,
        regions: memories,
        stream,
        fit,
        stream_input: args.stream_input,
        max_flash: args
            .max_flash
            .as_deref()
            .map(|size| parse_size("--max-flash", size))
            .transpose()?,
        max_step: args.max_step,
        cores: args.cores,
        accelerator,
        sharing: Sharing::default(),
        dtype,
        quantize,
        weight_only,
        preprocess: args.preprocess,
        input_dtype: args.input_dtype.map(PortType::dtype),
        output_dtype: args.output_dtype.map(PortType::dtype),
        winograd: args.winograd,
        keep_dead_channels: args.keep_dead_channels,
        explain: args.explain,
        train,
        self_test: args.self_test,
        sign,
        name: args.name,
        labels,
        dump_after: args.dump_after,
    };
    let each = |input| Options {
        input,
        ..options.clone()
    };
    Ok(args.borders.each(inputs.into_iter().map(each).collect()))
}
