//! The runtime's errors: one small enum for each call that can fail.

use core::fmt;

#[cfg(feature = "error-text")]
use crate::align::{ARENA_ALIGN, MODEL_ALIGN};
use crate::kernels::table::KernelId;
use crate::ops::fault::Fault;

/// Why [`crate::Model::load`] refuses a file. Steps, inputs and outputs of training are counted behind those of inference.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes do not start at a multiple of [`crate::align::MODEL_ALIGN`].
    Misaligned,
    /// Fewer bytes than the header states, or than a header has.
    Truncated {
        /// Bytes needed.
        expected: u32,
        /// Bytes given.
        found: u32,
    },
    /// The first bytes are not those of an Arenite blob.
    NotABlob,
    /// A format version that this runtime does not read.
    Version {
        /// The file's version.
        found: u16,
        /// The newest version that this runtime reads.
        supported: u16,
    },
    /// The checksum does not match: the file was damaged.
    Checksum {
        /// As stated in the header.
        expected: u32,
        /// As computed.
        found: u32,
    },
    /// The header is not that of the receipt: another file lies there, or its header was damaged. See [`crate::Model::load_with_receipt`].
    Receipt {
        /// The length that the header says.
        length: u32,
        /// The CRC-32 that the header says.
        crc: u32,
        /// The format version that the header says.
        version: u16,
    },
    /// A header field contradicts another.
    Header,
    /// A section that this version does not know.
    Section {
        /// Its kind, and in the upper 16 bits its number.
        kind: u32,
    },
    /// The file is for a number of cores that no file can be for.
    Cores {
        /// The number.
        found: u8,
    },
    /// The file is for an accelerator, and this build of the runtime hands nothing over.
    Accelerator,
    /// The core that was stated lacks what the file wants: see [`crate::Model::load_on`].
    Cpu {
        /// The missing feature.
        lack: Lack,
    },
    /// The file was packed for a target whose kernels this build of the runtime does not have.
    Kernel {
        /// The step.
        step: u32,
        /// The kernel.
        kernel: KernelId,
        /// The target that the file names.
        target: &'static str,
    },
    /// A kernel number that this version does not know.
    UnknownKernel {
        /// The step.
        step: u32,
        /// The number.
        kernel: u8,
    },
    /// A step whose parameters do not decode or contradict themselves, or an operand that lies outside its memory or overlaps
    /// another one.
    Step {
        /// The step.
        step: u32,
        /// The first check that failed.
        fault: Fault,
    },
    /// The steps up to this one cost more than the caller allows: see [`crate::Model::load_within`].
    Cost {
        /// The step.
        step: u32,
        /// Largest cost of the step and the steps before it.
        cost: u64,
        /// Largest cost that the caller allows.
        budget: u64,
    },
    /// An input or output whose description does not decode, or lies outside its memory.
    Port {
        /// Its index, inputs first.
        port: u32,
    },
}

/// Feature of a core that a file needs and the core lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Lack {
    /// The instructions of a step's kernel.
    Kernel {
        /// The step.
        step: u32,
        /// The kernel.
        kernel: KernelId,
    },
    /// Other cores.
    Cores {
        /// Cores that the file is for.
        needed: u8,
        /// Cores that there are.
        given: u8,
    },
    /// An accelerator.
    Accelerator,
}

/// Why a session cannot be opened on the memory it was given.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SessionError {
    /// An arena is smaller than the model needs.
    ArenaTooSmall {
        /// The region.
        region: u8,
        /// Bytes needed.
        needed: u32,
        /// Bytes given.
        given: u32,
    },
    /// An arena does not start at a multiple of [`crate::align::ARENA_ALIGN`].
    ArenaMisaligned {
        /// The region.
        region: u8,
    },
    /// The state slice has another size than the model needs.
    StateSize {
        /// Bytes needed.
        needed: u32,
        /// Bytes given.
        given: u32,
    },
    /// The state slice does not start at a multiple of [`crate::align::ARENA_ALIGN`].
    StateMisaligned,
    /// The memory of the model's module was taken already.
    MemoryTaken,
}

/// Why a run stops. Steps of training are counted behind those of inference, as in [`LoadError`].
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RunError {
    /// There is no input or output of this index.
    NoSuchPort {
        /// The index.
        index: u32,
    },
    /// An input was given with another size than the model's.
    InputSize {
        /// The input.
        input: u32,
        /// Bytes needed.
        needed: u32,
        /// Bytes given.
        given: u32,
    },
    /// A run was started before this input was set. Inputs share the arena with everything else: each run wants them anew.
    InputMissing {
        /// The input.
        input: u32,
    },
    /// An input or output was asked for as numbers that it does not hold, or as another number of them: the session runs another model than meant.
    PortType {
        /// Its index, inputs first.
        port: u32,
    },
    /// The step's bytes are not those that were checked when loading: the memory that holds the model was overwritten.
    Corrupt {
        /// The step.
        step: u32,
    },
    /// An index that was given as an input is out of its range: a token beyond the vocabulary, a position beyond the capacity or ahead of the lines that are
    /// written. The run is over; the state is as the steps before this one left it.
    OutOfRange {
        /// The step that refused it.
        step: u32,
        /// The index.
        index: i32,
        /// Indices that there are, from 0.
        count: u32,
    },
    /// An input was fed something else than one or several whole rows; none of it was taken.
    RowSize {
        /// The input.
        input: u32,
        /// Bytes of a row.
        needed: u32,
        /// Bytes given.
        given: u32,
    },
    /// An input was fed more rows than its run has left; none of them was taken. Behind the last one, and behind the run,
    /// `Session::restart` begins with the rows of the next run.
    RowsOver {
        /// The input.
        input: u32,
        /// Rows that are left.
        left: u32,
        /// Rows given.
        given: u32,
    },
    /// The run goes on when more rows of this input are fed: `Session::feed_rows`, or `Session::restart` to give it up.
    RowsMissing {
        /// The input.
        input: u32,
        /// Rows fed so far.
        fed: u32,
        /// Rows of the input.
        needed: u32,
    },
    /// The input lies nowhere as a whole, as the model takes it row by row: `Session::feed_rows`, or `Session::set_input` with all of it.
    FedByRows {
        /// The input.
        input: u32,
    },
    /// The model takes this input as a whole: `Session::set_input`.
    NotByRows {
        /// The input.
        input: u32,
    },
    /// The model is for more cores than it was to run on; nothing was run, and [`crate::Session::run`] takes one core.
    Cores {
        /// Cores that the file is for.
        needed: u32,
        /// Cores that were given.
        given: u32,
    },
    /// The accelerator is another one than the model is for, or did not do a step.
    Accelerator {
        /// The step; the first one that is handed over, where nothing was run.
        step: u32,
        /// The first check that failed.
        fault: AcceleratorFault,
    },
}

/// Fault of an accelerator. Nothing was run with the first five: [`crate::Session::run`] takes the core alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AcceleratorFault {
    /// It has another name than the model's.
    Name,
    /// It is of another version.
    Version,
    /// Its kernels and layouts of weights are of another target.
    Layout,
    /// It states other regions.
    Regions,
    /// It wants another alignment.
    Alignment,
    /// It does not reach an operand of the step, where the memory lies that this session was given.
    Reach,
    /// It was not done after as many polls as it allows.
    TimedOut,
    /// It says that it failed.
    Failed {
        /// As it says.
        code: u32,
    },
    /// There is none, and the step's kernel is not in this build: `Session::run_accelerated` runs the model, the core alone does not. Or the step has commands
    /// for an NPU, which no core computes: `Session::run_ethos_u` runs the model.
    Needed,
    /// It said that it was done, and a part of the output is as it was.
    Unwritten,
    /// It is an NPU of another configuration than the step's commands are for; nothing was run.
    Npu,
}

#[cfg(feature = "error-text")]
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Misaligned => write!(f, "the model does not start at a multiple of {} bytes", MODEL_ALIGN),
            LoadError::Truncated { expected, found } => write!(f, "the model has {found} bytes of {expected}"),
            LoadError::NotABlob => write!(
                f,
                "these bytes are no Arenite model, or a signed one whose envelope was not taken off"
            ),
            LoadError::Version { found, supported } => {
                let remedy = if found > supported {
                    "update the runtime, or pack it with this version's `pack`"
                } else {
                    "`arenite migrate` converts it or says how to pack it again"
                };
                write!(
                    f,
                    "the model has format version {found}, this runtime reads version {supported}: {remedy}"
                )
            }
            LoadError::Checksum { expected, found } => {
                write!(f, "the model is damaged: CRC-32 {found:08x}, expected {expected:08x}")
            }
            LoadError::Receipt { length, crc, version } => write!(
                f,
                "the model is not the one of the receipt: its header says {length} bytes, CRC-32 {crc:08x}, format version {version}; load it without the \
                 receipt, and keep its new one"
            ),
            LoadError::Header => write!(f, "the model's header contradicts itself"),
            LoadError::Section { kind } => write!(
                f,
                "the model has a section of kind {}, which this version does not know: update the runtime",
                kind & 0xFFFF
            ),
            LoadError::Cores { found } => write!(
                f,
                "the model is for {found} cores: models are for 2 to 4, or say nothing"
            ),
            LoadError::Accelerator => {
                f.write_str("the model is for an accelerator, to which this build of the runtime hands nothing: its feature `accelerators` is off")
            }
            LoadError::Cpu { lack } => lack.fmt(f),
            LoadError::Kernel { step, kernel, target } => write!(
                f,
                "step {step} needs the kernel {}, which this build of the runtime does not have; the model was packed for {target}",
                kernel.name()
            ),
            LoadError::UnknownKernel { step, kernel } => write!(f, "step {step} names the unknown kernel {kernel}"),
            LoadError::Step { step, fault } => write!(f, "step {step}: {fault}"),
            LoadError::Cost { step, cost, budget } => {
                write!(
                    f,
                    "the steps up to step {step} cost up to {cost}, of {budget} that are allowed"
                )
            }
            LoadError::Port { port } => write!(f, "the description of input or output {port} is wrong"),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Kernel { step, kernel } => write!(
                f,
                "step {step} needs the kernel {}, and this core has not the instructions of `{}`: pack the model for a target without them",
                kernel.name(),
                kernel.backend().name()
            ),
            Lack::Cores { needed, given } => write!(
                f,
                "the model is for {needed} cores, and {given} are there: pack it with `--cores {given}`, or for one"
            ),
            Lack::Accelerator => {
                f.write_str("the model is for an accelerator, and there is none: pack it without `--accelerator`")
            }
        }
    }
}

#[cfg(feature = "error-text")]
impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::ArenaTooSmall { region, needed, given } => {
                write!(f, "arena {region} has {given} bytes, the model needs {needed}")
            }
            SessionError::ArenaMisaligned { region } => {
                write!(
                    f,
                    "arena {region} does not start at a multiple of {} bytes",
                    ARENA_ALIGN
                )
            }
            SessionError::StateSize { needed, given } => {
                write!(f, "the state has {given} bytes, the model needs {needed}")
            }
            SessionError::StateMisaligned => {
                write!(f, "the state does not start at a multiple of {} bytes", ARENA_ALIGN)
            }
            SessionError::MemoryTaken => write!(f, "the memory of the model's module was taken already"),
        }
    }
}

#[cfg(feature = "error-text")]
impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::NoSuchPort { index } => write!(f, "the model has no input or output {index}"),
            RunError::InputSize { input, needed, given } => {
                write!(f, "input {input} was given {given} bytes, the model needs {needed}")
            }
            RunError::InputMissing { input } => write!(f, "input {input} was not set since the last run"),
            RunError::PortType { port } => write!(
                f,
                "input or output {port} (inputs first) holds other numbers than were asked for"
            ),
            RunError::Corrupt { step } => write!(f, "step {step} changed since the model was loaded"),
            RunError::OutOfRange { step, index, count } => write!(
                f,
                "step {step} was given index {index} of {count}, counted from 0: give a token of the vocabulary, and the next position or one before it"
            ),
            RunError::RowSize { input, needed, given } => write!(
                f,
                "input {input} was fed {given} bytes, a row has {needed}: give one row or several whole ones"
            ),
            RunError::RowsOver { input, left, given } => write!(
                f,
                "input {input} was fed {given} rows where {left} are left: `restart` begins with the rows of the next run"
            ),
            RunError::RowsMissing { input, fed, needed } => write!(
                f,
                "input {input} was fed {fed} of its {needed} rows: feed the others, or give the run up with `restart`"
            ),
            RunError::FedByRows { input } => write!(
                f,
                "input {input} is taken row by row: `feed_rows`, or `set_input` with all of it"
            ),
            RunError::NotByRows { input } => write!(f, "input {input} is taken as a whole: `set_input`"),
            RunError::Cores { needed, given } => {
                write!(f, "the model is for {needed} cores, {given} run it: `run` takes one")
            }
            RunError::Accelerator { step, fault } => write!(f, "step {step}, which an accelerator has: {fault}"),
        }
    }
}

impl fmt::Display for AcceleratorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AcceleratorFault::Name => "the model is for one of another name",
            AcceleratorFault::Version => "the model is for another version of it",
            AcceleratorFault::Layout => "the model's weights for it are in the layout of another target",
            AcceleratorFault::Regions => "the model says that it reaches other regions",
            AcceleratorFault::Alignment => "the model's operands for it are aligned to something else",
            AcceleratorFault::Reach => "it does not reach an operand",
            AcceleratorFault::TimedOut => "it was not done in time",
            AcceleratorFault::Failed { code } => return write!(f, "it failed with code {code:#x}"),
            AcceleratorFault::Needed => "this core has not its kernel, and nothing was to take it over",
            AcceleratorFault::Unwritten => "it said that it was done, and its output is not written",
            AcceleratorFault::Npu => "the model's commands are for an NPU of another configuration",
        })
    }
}

impl core::error::Error for LoadError {}
impl core::error::Error for SessionError {}
impl core::error::Error for RunError {}
