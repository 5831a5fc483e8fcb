//! Runs the firmware's programs on a board and reads what they report.

use std::fs;
use std::io::Read;
use std::time::Duration;

use arenite::{Access, Header, KernelId, Model, Slot, Step};
use arenite_protocol::{Command, DUMP_FILE, DumpEntry, INPUT_FILE, Infer, OUTPUT_FILE, PLACES_FILE, Record};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::Firmware;
use super::flash::Flash;
use super::progress::Progress;
use super::qemu::{self, LogLine};
use super::table::{AddressRange, Board};
use super::trace::{self, ExecutionTrace};
use crate::model::Blob;

/// Up to this size the tools have blobs compared before and after a run: summing gigabytes twice takes longer than running them.
pub const GUARDED_BYTES: usize = 64 << 20;

/// How to run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How many sets of inputs there are.
    pub runs: u32,
    /// Whether each run starts with fresh state.
    pub reset_each: bool,
    /// Whether every step is counted by itself.
    pub profile: bool,
    /// Whether the steps' outputs of the first run are wanted.
    pub dump_steps: bool,
    /// Whether the blob is compared before and after; on by default, worth switching off for gigabytes.
    pub guard_blob: bool,
    /// Whether qemu's plugin records every executed instruction and stack write; several times slower.
    pub trace: bool,
    /// When tracing: a flash whose reads are counted, in which code and blob lie.
    pub flash: Option<&'static Flash>,
    /// The run is stopped after this much wall time.
    pub timeout: Duration,
    /// Arguments for qemu beside the runner's own.
    pub qemu_arguments: Vec<String>,
}

/// Report of a board on a blob and its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Instructions of the checked load.
    pub load_instructions: u64,
    /// Stack bytes of the checked load.
    pub load_stack_bytes: u32,
    /// Instructions of each run; of its steps together when profiling.
    pub instructions: Vec<u64>,
    /// When profiling: instructions by run and step.
    pub steps: Vec<Vec<u64>>,
    /// Outputs of all runs, in order, raw little-endian bytes.
    pub outputs: Vec<u8>,
    /// Output bytes of one run.
    pub output_bytes: u64,
    /// When dumping: what each step of the first run wrote, in step order.
    pub dumps: Vec<Dump>,
    /// Bytes of all arena regions.
    pub arena_bytes: u64,
    /// Arena bytes from each region's start to the last that was written.
    pub arena_touched_bytes: u64,
    /// Bytes of state.
    pub state_bytes: u64,
    /// Stack bytes of the deepest run.
    pub stack_bytes: u32,
    /// When tracing: what was executed.
    pub trace: Option<ExecutionTrace>,
    /// Lines that the program logged.
    pub logs: Vec<LogLine>,
}

/// Bytes that a step wrote to one of its places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The step.
    pub step: u32,
    /// Where.
    pub slot: Slot,
    /// The bytes, raw little-endian.
    pub bytes: Vec<u8>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            runs: 1,
            reset_each: false,
            profile: false,
            dump_steps: false,
            guard_blob: true,
            trace: false,
            flash: None,
            timeout: Duration::from_secs(60),
            qemu_arguments: Vec::new(),
        }
    }
}

/// State of reading the records of a run.
pub(super) struct Told {
    pub(super) report: RunReport,
    /// The steps of the run that is under way.
    done: Vec<u64>,
    profile: bool,
}

impl Told {
    pub(super) fn new(profile: bool) -> Self {
        Self {
            report: RunReport::default(),
            done: Vec::new(),
            profile,
        }
    }

    pub(super) fn note(&mut self, record: &Record<'_>) {
        let report = &mut self.report;
        match *record {
            Record::Loaded {
                instructions,
                stack,
                output_bytes,
                arena_bytes,
                state_bytes,
                ..
            } => {
                report.load_instructions = instructions;
                report.load_stack_bytes = stack;
                report.output_bytes = output_bytes;
                report.arena_bytes = arena_bytes;
                report.state_bytes = state_bytes;
            }
            Record::Step { instructions, .. } => self.done.push(instructions),
            Record::Ran { instructions } => {
                report.instructions.push(instructions);
                if self.profile {
                    report.steps.push(std::mem::take(&mut self.done));
                }
            }
            Record::Finished { stack, arena_touched } => {
                report.stack_bytes = stack;
                report.arena_touched_bytes = arena_touched;
            }
            _ => (),
        }
    }
}

/// Loads `blob` on `board` and runs it on `inputs`: for each run the network's inputs in order, raw little-endian bytes,
/// one run after another.
///
/// # Errors
/// See [`BoardError`]: what is missing to build or start, what does not fit, what the runtime refused, how the firmware
/// died, that it took too long.
pub fn run(
    board: &'static Board,
    blob: Blob<'_>,
    inputs: &[u8],
    options: &RunOptions,
) -> Result<RunReport, BoardError> {
    run_with_progress(board, blob, inputs, options, &mut |_| ())
}

/// [`run`], telling now and then how far it has come.
///
/// # Errors
/// As [`run`].
pub fn run_with_progress(
    board: &'static Board,
    blob: Blob<'_>,
    inputs: &[u8],
    options: &RunOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunReport, BoardError> {
    let firmware = if rolls(blob)? {
        if options.profile || options.dump_steps {
            return Err(BoardError::Refused {
                board: board.name,
                during: arenite_protocol::During::Run,
                name: "Rolling".to_owned(),
                text: "the model rolls: its first steps run once for each row, and have no figures or tensors of their own yet; leave the profile out"
                    .to_owned(),
            });
        }
        Firmware::build_rolling(board, progress)?
    } else {
        Firmware::build_watched(board, "infer", progress)?
    };
    let exchange = Exchange::new()?;
    let (blob_address, blob_length, loader) = exchange.place_blob(&firmware, blob)?;
    exchange.write(INPUT_FILE, inputs)?;
    let places = if options.dump_steps {
        written_places(board, blob)?
    } else {
        Vec::new()
    };
    let encoded: Vec<u8> = places.iter().flat_map(|place| place.to_bytes()).collect();
    exchange.write(PLACES_FILE, &encoded)?;
    let infer = Infer {
        blob_address,
        blob_length,
        runs: options.runs,
        reset_each: options.reset_each,
        profile: options.profile,
        dump_steps: options.dump_steps,
        guard_blob: options.guard_blob,
    };
    let mut arguments = loader;
    arguments.extend(options.qemu_arguments.iter().cloned());
    if options.trace {
        let blob = AddressRange {
            start: blob_address,
            size: blob_length,
        };
        let flash = options.flash.map(|flash| flash.argument(&[board.flash, blob]));
        arguments.extend(trace::arguments(&firmware, flash.as_deref())?);
    }
    let mut told = Told::new(options.profile);
    let command = Command::Infer(infer);
    let finished = exchange.carry_out(&firmware, command, &arguments, options.timeout, progress, |record| {
        told.note(record);
    })?;
    let mut report = told.report;
    report.logs = finished;
    report.outputs = exchange.read(OUTPUT_FILE)?;
    if options.trace {
        report.trace = Some(trace::read(board.name, &exchange.path(trace::TRACE_FILE))?);
    }
    if options.dump_steps {
        let dump = exchange.read(DUMP_FILE)?;
        let mut rest = dump.as_slice();
        for place in &places {
            let cut = || BoardError::Protocol {
                board: board.name,
                reason: format!("the dump of step {} is cut short", place.step),
            };
            let (bytes, others) = rest.split_at_checked(place.length as usize).ok_or_else(cut)?;
            let slot = Slot {
                region: place.region as u8,
                offset: place.offset,
            };
            report.dumps.push(Dump {
                step: place.step,
                slot,
                bytes: bytes.to_owned(),
            });
            rest = others;
        }
    }
    Ok(report)
}

/// Whether a model has rolled tensors, by its header.
fn rolls(blob: Blob<'_>) -> Result<bool, BoardError> {
    let mut head = vec![0; arenite::HEADER_BYTES + arenite::MAX_ROWS as usize * arenite::ROW_BYTES];
    let bytes = match blob {
        Blob::Bytes(bytes) => bytes,
        Blob::File(path) => {
            let failed = |source| BoardError::File {
                path: path.to_owned(),
                source,
            };
            let mut file = fs::File::open(path).map_err(failed)?;
            let read = file.by_ref().take(head.len() as u64).read(&mut head).map_err(failed)?;
            &head[..read]
        }
    };
    // One that has no header is refused by the board.
    Ok(Header::parse(bytes).is_ok_and(|header| header.rolling.len > 0))
}

/// Runs a program that was built elsewhere and counts between its marks, which it has as the boards' own programs do; code and constants lie in `flash`.
///
/// # Errors
/// As [`run`]; a program that does not end with status 0 is one.
pub fn trace_program(
    firmware: &Firmware,
    flash: Option<&Flash>,
    timeout: Duration,
) -> Result<ExecutionTrace, BoardError> {
    let (exchange, board) = (Exchange::new()?, firmware.board().name);
    let flash = flash.map(|flash| flash.argument(&[firmware.board().flash]));
    let arguments = trace::arguments(firmware, flash.as_deref())?;
    let ended = qemu::run(firmware, &exchange.path(""), &arguments, timeout, || ())?;
    match ended.status {
        Some(status) if status.success() => trace::read(board, &exchange.path(trace::TRACE_FILE)),
        Some(status) => Err(BoardError::Protocol {
            board,
            reason: format!("{} ended with {status}", firmware.path().display()),
        }),
        None => Err(BoardError::Timeout {
            board,
            seconds: timeout.as_secs(),
            reached: "nothing".to_owned(),
        }),
    }
}

/// Runs the program `selfcheck` with `command`; returns the instructions that it counted, and its log.
///
/// # Errors
/// As [`run`].
pub fn selfcheck(
    board: &'static Board,
    command: Command,
    timeout: Duration,
) -> Result<(Option<u64>, Vec<LogLine>), BoardError> {
    let firmware = Firmware::build(board, "selfcheck")?;
    let mut counted = None;
    let logs = Exchange::new()?.carry_out(&firmware, command, &[], timeout, &mut |_| (), |record| {
        if let Record::Counted { instructions, .. } = record {
            counted = Some(*instructions);
        }
    })?;
    Ok((counted, logs))
}

/// Everything that a blob's steps write, in step order.
fn written_places(board: &'static Board, blob: Blob<'_>) -> Result<Vec<DumpEntry>, BoardError> {
    let mapped;
    let bytes = match blob {
        Blob::Bytes(bytes) => bytes,
        Blob::File(path) => {
            let failed = |source| BoardError::File {
                path: path.to_owned(),
                source,
            };
            let file = fs::File::open(path).map_err(failed)?;
            // SAFETY: the file is only read; whoever changes it meanwhile changes what qemu loads as well.
            mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
            &mapped
        }
    };
    // A blob that the host's reader refuses is refused by the board too; this says it earlier.
    let refused = |name: &str, text: String| BoardError::Refused {
        board: board.name,
        during: arenite_protocol::During::Load,
        name: name.to_owned(),
        text,
    };
    let aligned = AlignedCopy::of(bytes);
    let model = Model::load(aligned.bytes()).map_err(|error| refused("LoadError", error.to_string()))?;
    let mut places = Vec::new();
    for (index, record) in (0..).zip(model.steps()) {
        let step = record
            .and_then(|(kernel, params)| Step::decode(KernelId::from_u8(kernel)?, params).ok())
            .ok_or_else(|| refused("Step", format!("step {index} does not decode")))?;
        step.operands(&mut |operand| {
            if matches!(operand.access, Access::Write | Access::Update) {
                let (region, offset) = (operand.place.region.into(), operand.place.offset);
                places.push(DumpEntry {
                    step: index,
                    region,
                    offset,
                    length: operand.bytes,
                });
            }
        });
    }
    Ok(places)
}

/// A blob's bytes at the alignment that the reader wants, copied only where they are not already.
enum AlignedCopy<'a> {
    InPlace(&'a [u8]),
    Copied(Vec<u128>, usize),
}

impl<'a> AlignedCopy<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        if bytes.as_ptr().addr().is_multiple_of(arenite::MODEL_ALIGN) {
            return Self::InPlace(bytes);
        }
        let word = |chunk: &[u8]| {
            let mut word = [0; size_of::<u128>()];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            u128::from_ne_bytes(word)
        };
        Self::Copied(bytes.chunks(size_of::<u128>()).map(word).collect(), bytes.len())
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Copied(words, len) => {
                // SAFETY: initialised words, and u8 has no alignment of its own; they hold at least `len` bytes.
                unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), *len) }
            }
        }
    }
}

/// Runs a program that asks nothing of the host, such as the example with an embedded model; returns its log.
///
/// # Errors
/// As [`run`].
pub fn execute(firmware: &Firmware, timeout: Duration) -> Result<Vec<LogLine>, BoardError> {
    let nothing = Command::CountLoop { rounds: 1 };
    Exchange::new()?.carry_out(firmware, nothing, &[], timeout, &mut |_| (), |_| ())
}

/// Report of a program that runs something of its own, such as another runtime, over the firmware's protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Instructions of its run.
    pub instructions: u64,
    /// Its stack bytes.
    pub stack_bytes: u32,
    /// Its outputs, raw little-endian bytes.
    pub outputs: Vec<u8>,
}

/// Runs a program that counts one run of its own.
///
/// # Errors
/// As [`run`].
pub fn count(firmware: &Firmware, timeout: Duration) -> Result<Counted, BoardError> {
    let (exchange, nothing) = (Exchange::new()?, Command::CountLoop { rounds: 1 });
    let mut counted = Counted::default();
    exchange.carry_out(firmware, nothing, &[], timeout, &mut |_| (), |record| match *record {
        Record::Ran { instructions } => counted.instructions = instructions,
        Record::Finished { stack, .. } => counted.stack_bytes = stack,
        _ => {}
    })?;
    counted.outputs = exchange.read(OUTPUT_FILE)?;
    Ok(counted)
}
