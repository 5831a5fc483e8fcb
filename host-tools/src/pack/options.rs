//! Options of `pack`, and its answer.

use std::path::{Path, PathBuf};

use arenite::{DType, KernelId, MAX_CORES, Target};

use crate::accelerator::{Accelerator, Sharing};
use crate::error::{Error, ErrorKind, Result};
use crate::gradient;
use crate::graph::{Graph, facts};
use crate::import::ImportOptions;
use crate::memory::{Region, plan};
use crate::preprocess::Preprocess;
use crate::quantize;
use crate::report::Summary;
use crate::sign::Signer;
use crate::spelling::meant;
pub use crate::stage::Progress;
use crate::stage::Stage;

/// Options of `pack`.
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
    /// Options of the importer.
    pub import: ImportOptions,
    /// Target to choose kernels for.
    pub target: Target,
    /// Whether small code and weights are preferred over speed.
    pub size: bool,
    /// Kernels that int8 convolutions and fully connected layers are not to have: what they would take else is seen so. No command has it.
    pub without: Vec<KernelId>,
    /// The planner's search budget in nodes.
    pub plan_nodes: u64,
    /// Whether outputs may overlap inputs.
    pub in_place: bool,
    /// The memories that the arena may use, in order of preference; none stands for one without limit.
    pub regions: Vec<Region>,
    /// The flash that is no memory and takes the model in pieces.
    pub stream: Option<Streamed>,
    /// The arena must fit this many bytes: order, overlaps and bands are searched for it.
    pub fit: Option<u64>,
    /// The input is taken row by row, and the first steps roll.
    pub stream_input: bool,
    /// The file must not be larger than this.
    pub max_flash: Option<u64>,
    /// Greatest cost of a step, in terms of [`arenite::Cost::total`]: longer ones are split by rows of their output.
    pub max_step: Option<u64>,
    /// How many cores share the steps.
    pub cores: usize,
    /// The accelerator that takes some of them.
    pub accelerator: Option<Accelerator>,
    /// Layers that it has and those that it leaves to the core, where it shares. No command has it.
    pub sharing: Sharing,
    /// The element type that is wanted, if not the network's own.
    pub dtype: Option<DType>,
    /// Quantises an f32 network.
    pub quantize: Option<quantize::Request>,
    /// Stores the weights of an f32 network in fewer bits.
    pub weight_only: Option<quantize::WeightOnly>,
    /// Conversion of a picture in front of the first layer.
    pub preprocess: Option<Preprocess>,
    /// Element type of the inputs of a quantised network, where not its own.
    pub input_dtype: Option<DType>,
    /// Element type of its outputs, where not its own.
    pub output_dtype: Option<DType>,
    /// Whether convolutions may be computed by Winograd's algorithm, whose weights are larger.
    pub winograd: bool,
    /// Whether channels that cannot change the output stay.
    pub keep_dead_channels: bool,
    /// Whether to explain the arena.
    pub explain: bool,
    /// Puts steps of training beside those of inference.
    pub train: Option<gradient::Request>,
    /// Sample inputs, whose outputs go into the file as a self-test.
    pub self_test: Option<PathBuf>,
    /// Who signs the file, if anybody; a bundle is signed as a whole.
    pub sign: Option<Signer>,
    /// The network's name, if not the input's.
    pub name: Option<String>,
    /// Class labels for the metadata.
    pub labels: Vec<String>,
    /// The stage after which the graph is wanted as text.
    pub dump_after: Option<Stage>,
}

/// A flash that is no memory, and how a model is read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// Its name and its bytes.
    pub flash: Region,
    /// Bytes of the buffer for a piece, at most: layers are cut until their pieces fit. As much as the largest layer takes, where nothing is said.
    pub buffer: Option<u64>,
    /// Bytes of memory for pieces that stay there from run to run.
    pub resident: u64,
}

impl From<Region> for Streamed {
    fn from(flash: Region) -> Self {
        Self {
            flash,
            buffer: None,
            resident: 0,
        }
    }
}

impl Options {
    /// The files that they name and packing reads.
    pub fn reads(&self) -> Vec<&Path> {
        let weights = self.weights.as_deref().map(Path::new);
        let samples = self.quantize.as_ref().map(|request| request.samples.as_path());
        let accelerator = self.accelerator.as_ref().map(|accelerator| accelerator.path.as_path());
        let files = [
            Some(self.input.as_path()),
            self.self_test.as_deref(),
            samples,
            weights,
            accelerator,
        ];
        files.into_iter().flatten().collect()
    }

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
            without: Vec::new(),
            plan_nodes: plan::Options::DEFAULT_NODES,
            in_place: true,
            regions: Vec::new(),
            stream: None,
            fit: None,
            stream_input: false,
            max_flash: None,
            max_step: None,
            cores: 1,
            accelerator: None,
            sharing: Sharing::default(),
            dtype: None,
            quantize: None,
            weight_only: None,
            preprocess: None,
            input_dtype: None,
            output_dtype: None,
            winograd: false,
            keep_dead_channels: false,
            explain: false,
            train: None,
            self_test: None,
            sign: None,
            name: None,
            labels: Vec::new(),
            dump_after: None,
        }
    }
}

/// Result of `pack`.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The figures.
    pub summary: Summary,
    /// The files that the input names besides.
    pub files: Vec<PathBuf>,
    /// Repairs, unused weights and other oddities.
    pub warnings: Vec<String>,
    /// The text of `--dump-after`.
    pub dump: Option<String>,
    /// The text of `--explain`.
    pub explanation: Option<String>,
}

impl Options {
    /// Refuses what does not go with several cores or an accelerator.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub(super) fn refuse_beside_cores(&self) -> Result<()> {
        if self.cores == 0 || self.cores > MAX_CORES {
            return Err(
                Error::new(ErrorKind::Usage, format!("--cores {}", self.cores)).expected(format!("1 to {MAX_CORES}"))
            );
        }
        let beside = [
            (self.stream.is_some(), "--region NAME=SIZE:stream"),
            (self.fit.is_some(), "--fit"),
            (self.max_step.is_some(), "--max-step"),
            (self.explain, "--explain"),
        ];
        let found = beside.into_iter().find(|&(given, _)| given);
        if self.accelerator.is_some() {
            let found = found.or((self.cores > 1).then_some((true, "--cores")));
            return match found {
                None => Ok(()),
                Some((_, option)) => Err(Error::new(ErrorKind::Usage, format!("--accelerator with {option}"))
                    .expected("one of them")
                    .help("steps are handed to an accelerator beside one core, whole: leave one of the options out")),
            };
        }
        match found.filter(|_| self.cores > 1) {
            None => Ok(()),
            Some((_, option)) => Err(Error::new(ErrorKind::Usage, format!("--cores {} with {option}", self.cores))
                .expected("one of them")
                .help("steps are shared by cores or planned for one that has little memory or time: leave one of the options out")),
        }
    }
}

impl Options {
    /// Refuses what does not go with steps that roll.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub(super) fn refuse_beside_rolling(&self) -> Result<()> {
        let beside = [
            (self.cores > 1, "--cores"),
            (self.accelerator.is_some(), "--accelerator"),
            (self.stream.is_some(), "--region NAME=SIZE:stream"),
            (self.max_step.is_some(), "--max-step"),
            (self.explain, "--explain"),
            (self.train.is_some(), "--train"),
            (self.winograd, "--winograd"),
            (self.self_test.is_some(), "--self-test"),
        ];
        match beside.into_iter().find(|&(given, _)| given && self.stream_input) {
            None => Ok(()),
            Some((_, option)) => Err(Error::new(ErrorKind::Usage, format!("--stream-input with {option}"))
                .expected("one of them")
                .help("rows are made on one core, in one memory: leave one of the options out")),
        }
    }

    /// Parts in which a training step goes through its batch.
    pub(super) fn micro_batches(&self) -> usize {
        self.train.as_ref().map_or(1, |asked| asked.micro_batches.max(1))
    }

    /// Refuses what does not go with steps of training.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub(super) fn refuse_beside_training(&self) -> Result<()> {
        let is_float = self.quantize.is_none();
        let beside = [
            (self.cores > 1, "--cores"),
            (self.accelerator.is_some(), "--accelerator"),
            (self.stream.is_some(), "--region NAME=SIZE:stream"),
            (self.max_step.is_some(), "--max-step"),
            (self.explain, "--explain"),
            (self.winograd, "--winograd"),
            (self.weight_only.is_some(), "--weight-bits"),
            (is_float && self.input_dtype.is_some(), "--input-dtype"),
            (is_float && self.output_dtype.is_some(), "--output-dtype"),
        ];
        match beside.into_iter().find(|&(given, _)| given && self.train.is_some()) {
            None => Ok(()),
            Some((_, option)) => Err(Error::new(ErrorKind::Usage, format!("--train with {option}"))
                .expected("one of them")
                .help("layers are trained in f32, in one arena, on one core: leave one of the options out")),
        }
    }

    /// Refuses what does not go with a network that was compiled for an Ethos-U.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub(super) fn refuse_beside_ethos_u(&self, graph: &Graph) -> Result<()> {
        if !facts::has_commands(graph) {
            return Ok(());
        }
        let beside = [
            (self.accelerator.is_some(), "--accelerator"),
            (self.cores > 1, "--cores"),
            (self.max_step.is_some(), "--max-step"),
            (self.stream.is_some(), "--region NAME=SIZE:stream"),
            (self.self_test.is_some(), "--self-test"),
            (self.quantize.is_some(), "--quantize"),
        ];
        match beside.into_iter().find(|&(given, _)| given) {
            None => Ok(()),
            Some((_, option)) => Err(Error::new(
                ErrorKind::Usage,
                format!("{option} with a network that is compiled for an Ethos-U"),
            )
            .in_file(&self.input)
            .expected("one of them")
            .help("its steps are the NPU's, whole, and nothing here computes them: leave the option out, or pack the network that was compiled")),
        }
    }
}

/// The target of this name.
///
/// # Errors
/// [`ErrorKind::Usage`] with all names, and the nearest.
pub fn target_named(name: &str) -> Result<Target> {
    let names = Target::ALL.map(Target::name);
    Target::ALL
        .into_iter()
        .find(|target| target.name() == name)
        .ok_or_else(|| {
            let error = Error::new(ErrorKind::Usage, format!("--target {name}: there is no such target"));
            let error = error.expected(names.join(", "));
            match meant(name, names) {
                Some(near) => error.help(near),
                None => error,
            }
        })
}
