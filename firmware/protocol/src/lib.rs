//! Messages between the firmware under test and the host's runner.
//!
//! The two share a directory through semihosting. The host writes [`REQUEST_FILE`] (one postcard-encoded [`Request`])
//! and [`INPUT_FILE`]; the firmware appends postcard-encoded [`Record`]s to [`RECORD_FILE`] as things happen, so that
//! the last one says how far it came whatever stopped it, and raw output bytes to [`OUTPUT_FILE`]. Nothing is ever
//! mixed into the stream of log frames on standard output.
#![no_std]

mod generate;
pub mod serial;
mod text;

use serde::{Deserialize, Serialize};

pub use generate::{Ended, Generate};
pub use text::{TEXT_MAX, Text, cut};

/// Raised whenever a type of this file or of `generate.rs` changes; both sides compare it before anything else.
pub const PROTOCOL_VERSION: u32 = 9;

/// One [`Request`], postcard.
pub const REQUEST_FILE: &str = "request";
/// Per run, the network's inputs in order, raw little-endian bytes.
pub const INPUT_FILE: &str = "input";
/// [`Record`]s, postcard, one after another.
pub const RECORD_FILE: &str = "record";
/// Per run, the network's outputs in order, raw little-endian bytes.
pub const OUTPUT_FILE: &str = "output";
/// With [`Infer::dump_steps`]: the [`DumpEntry`]s to dump in the first run, in step order.
pub const PLACES_FILE: &str = "places";
/// With [`Infer::dump_steps`]: the bytes of those places, each read when its step was done.
pub const DUMP_FILE: &str = "dump";

/// Longest encoded [`Request`] that the firmware reads.
pub const REQUEST_MAX: usize = 128;
/// Longest encoded [`Record`] that the firmware writes.
pub const RECORD_MAX: usize = 384;

/// Exit statuses, chosen apart from qemu's own (0 and 1) and from a shell's (above 125).
pub mod exit {
    /// The request was carried out.
    pub const DONE: i32 = 0;
    /// The request was refused; the last record says why.
    pub const REFUSED: i32 = 70;
    /// A processor fault; the last record holds the registers.
    pub const FAULT: i32 = 71;
    /// A Rust panic; the last record holds message and place.
    pub const PANIC: i32 = 72;
    /// Memory that must not change did: an arena's canary, the stack's end, the flash or the blob.
    pub const CORRUPTED: i32 = 73;
    /// A file of the exchange could not be read or written.
    pub const IO: i32 = 74;
}

/// Request of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// [`PROTOCOL_VERSION`] of the sender.
    pub version: u32,
    /// The work.
    pub command: Command,
}

/// The work asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Count a loop of two instructions a round, this many rounds, and report it.
    CountLoop {
        /// Rounds, at least 1.
        rounds: u32,
    },
    /// Fail on purpose, so that the runner's handling of failures is tested on every board.
    Fail(Failure),
    /// Load a blob and run it.
    Infer(Infer),
    /// Compare every kernel of the build, or one of them, with the reference of its operator.
    Kernels {
        /// The one kernel's number; all without it.
        only: Option<u8>,
        /// The first seed of the generated cases.
        first: u32,
        /// Cases for each kernel.
        cases: u32,
    },
    /// Change the constants and parameters of generated cases of every kernel of the build at random: load's checks refuse each, or it runs within
    /// its operands.
    Mutations {
        /// The first seed of the generated cases.
        first: u32,
        /// Cases for each kernel.
        cases: u32,
        /// Changes of each case.
        changes: u32,
    },
    /// Start the model of the slots in the board's flash, and update it.
    Slots(Slots),
    /// Run kernels with each operand in turn between bytes that nothing may touch.
    Guards(Guards),
    /// Load a blob of a language model and let it write: text goes to [`OUTPUT_FILE`] as it comes.
    Generate(Generate),
}

/// Ways to fail on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Execute an undefined instruction.
    Fault,
    /// Panic with a known message.
    Panic,
    /// Never return.
    Hang,
    /// Write below the stack's end.
    OverrunStack,
    /// Write to the flash image (where the board lets that succeed).
    WriteFlash,
    /// Write one byte beside a piece of memory that was handed out.
    WriteBeside {
        /// Which piece: an arena and a state are handed out.
        purpose: Purpose,
        /// Where: counted from the piece's first byte, if below 0, otherwise from its end.
        offset: i8,
    },
}

/// A blob that is in memory already, and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Infer {
    /// Where the blob lies on the board.
    pub blob_address: u64,
    /// Its length in bytes.
    pub blob_length: u64,
    /// How many times to run it; [`INPUT_FILE`] holds as many sets of inputs.
    pub runs: u32,
    /// Whether the state is reset before each run.
    pub reset_each: bool,
    /// Whether each step is counted by itself (the sum of the steps then replaces the count of a whole run).
    pub profile: bool,
    /// Whether the places of [`PLACES_FILE`] are dumped to [`DUMP_FILE`] in the first run.
    pub dump_steps: bool,
    /// Whether the blob is summed before and after (costs about an instruction a byte).
    pub guard_blob: bool,
}

/// Two slots for a model, and behind them a journal of two sectors; see the runtime's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Where in the flash the first slot begins.
    pub start: u32,
    /// Bytes of each.
    pub bytes: u32,
    /// Bytes of [`INPUT_FILE`], which is the new file; 0 where none is to be written.
    pub update: u32,
}

/// Runs between forbidden bytes: a model's steps, or generated cases of every kernel of the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// Bytes of the memory between the forbidden ones.
    pub field: u32,
    /// Touch forbidden bytes on purpose, and nothing else.
    pub probe: Option<Probe>,
    /// Where a model lies on the board, whose steps run on the inputs of [`INPUT_FILE`].
    pub blob_address: u64,
    /// Its bytes; 0 for generated cases.
    pub blob_length: u64,
    /// The first step of the model that is guarded, or the first kernel's place among all of the build: what comes before a finding was done already.
    pub from: u32,
    /// The one kernel's number; all without it.
    pub only: Option<u8>,
    /// The first seed of the generated cases.
    pub first: u32,
    /// Cases for each kernel.
    pub cases: u32,
}

/// A forbidden byte that is touched on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Whether it is the one behind the field's last, and not the one before its first.
    pub behind: bool,
    /// Whether it is written, and not read.
    pub write: bool,
}

/// A tensor to dump: it lies in a region of the arena (or elsewhere, see the runtime's slots) once a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpEntry {
    /// The step.
    pub step: u32,
    /// The slot's region.
    pub region: u32,
    /// The slot's offset.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl DumpEntry {
    /// Bytes of a place in [`PLACES_FILE`]: four little-endian words.
    pub const BYTES: usize = 16;

    /// Decodes a place.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |index: usize| words.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        Self {
            step: word(0),
            region: word(1),
            offset: word(2),
            length: word(3),
        }
    }

    /// Encodes a place.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes
            .chunks_exact_mut(4)
            .zip([self.step, self.region, self.offset, self.length])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// An event of the firmware; records come in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// The firmware is up.
    Boot {
        /// [`PROTOCOL_VERSION`] of the firmware.
        version: u32,
        /// The board that it was built for.
        board: &'a str,
        /// Bytes of memory between program data and stack, and in the board's further memory, for arenas and state.
        memory: u64,
        /// Bytes of stack.
        stack: u32,
    },
    /// The loop was counted.
    Counted {
        /// As asked.
        rounds: u32,
        /// Instructions of the loop and the few around it.
        instructions: u64,
    },
    /// All cases of a kernel were compared, and were equal.
    Compared {
        /// The kernel's number.
        kernel: u8,
        /// Cases that it computes.
        cases: u32,
    },
    /// The changed cases of a kernel were refused or ran.
    Mutated {
        /// The kernel's number.
        kernel: u8,
        /// Refused as load refuses them.
        refused: u32,
        /// Accepted, and run within their operands.
        ran: u32,
        /// A checksum over the outputs of those that ran, where no core may differ.
        digest: u32,
    },
    /// Cases of a kernel, or a step of a model, ran between forbidden bytes.
    Guarded {
        /// The kernel's number.
        kernel: u8,
        /// Cases that it computes; 1 of a step.
        cases: u32,
        /// Guarded runs.
        runs: u64,
    },
    /// A kernel did not keep to an operand; the next kernel or step follows, or the fault that it was.
    Outside {
        /// The kernel's number.
        kernel: u8,
        /// The case, or the step of a model.
        seed: u32,
        /// The operand's index, and whether its first byte or its last lay against forbidden ones.
        operand: u8,
        /// Its first byte, and not its last.
        start: bool,
        /// The finding, in a word.
        finding: &'a str,
    },
    /// A kernel computed something else than the reference; the next kernel follows.
    Differs {
        /// The kernel's number.
        kernel: u8,
        /// The case.
        seed: u32,
        /// Index of the first output that differs; `u32::MAX` where the kernel did not run or wrote beside its operands.
        at: u32,
        /// The kernel's: the number, or the bits of an f32.
        found: u32,
        /// The scalar kernel's.
        expected: u32,
    },
    /// A kernel's assembly did not restore registers of its caller; the next kernel follows.
    Unsaved {
        /// The kernel's number.
        kernel: u8,
        /// The case.
        seed: u32,
        /// A bit for each register, as the runtime's test kit has them.
        registers: u32,
        /// An address in the function that did not.
        function: u64,
    },
    /// The blob was accepted.
    Loaded {
        /// Instructions of the checked load.
        instructions: u64,
        /// Stack bytes of the checked load.
        stack: u32,
        /// Steps of the network.
        steps: u32,
        /// Bytes of one set of inputs, all inputs together.
        input_bytes: u64,
        /// Bytes of one set of outputs.
        output_bytes: u64,
        /// Bytes of all arena regions.
        arena_bytes: u64,
        /// Bytes of state.
        state_bytes: u64,
    },
    /// One step was counted.
    Step {
        /// Index in the network.
        index: u32,
        /// Instructions.
        instructions: u64,
    },
    /// One run is complete, its outputs are written.
    Ran {
        /// Instructions of the run; of its steps together when profiling.
        instructions: u64,
    },
    /// Everything asked for is done and the memory checks passed.
    Finished {
        /// Stack bytes of the deepest run.
        stack: u32,
        /// Arena bytes that were written at least once, counted from each region's start.
        arena_touched: u64,
    },
    /// The runtime refused.
    Refused {
        /// Which call.
        during: During,
        /// Name of the error, as its type spells it.
        name: &'a str,
        /// The error's own sentence.
        text: &'a str,
    },
    /// The board has too little memory for this network.
    OutOfMemory {
        /// Bytes of the piece that found no place.
        needed: u64,
        /// Bytes of the largest place left.
        available: u64,
        /// Purpose of the piece.
        purpose: Purpose,
    },
    /// The inputs are not as long as the runs need.
    InputSize {
        /// Runs asked for.
        runs: u32,
        /// Bytes of one set of inputs.
        each: u64,
        /// Bytes of [`INPUT_FILE`].
        given: u64,
    },
    /// The request could not be understood.
    BadRequest {
        /// The firmware's protocol version.
        version: u32,
    },
    /// A file of the exchange failed.
    Io {
        /// Its name.
        file: &'a str,
        /// Bytes wanted of it.
        wanted: u64,
        /// Bytes that came.
        got: u64,
    },
    /// Memory that must not change did.
    Corrupted {
        /// Which.
        what: Guarded,
    },
    /// The processor took a fault.
    Fault {
        /// Program counter at the fault.
        pc: u64,
        /// Return address register.
        lr: u64,
        /// Stack pointer.
        sp: u64,
        /// Cause: CFSR on Cortex-M, mcause on RISC-V, ESR_EL1 on AArch64; 0 where the core has none.
        cause: u64,
        /// Address that faulted where the core reports it: BFAR or MMFAR, mtval, FAR_EL1.
        address: u64,
    },
    /// Rust code panicked.
    Panicked {
        /// Source file.
        file: &'a str,
        /// Line in it.
        line: u32,
        /// The message.
        text: &'a str,
    },
    /// The model of a slot is in use, and has passed its self-test.
    InUse {
        /// Which slot.
        slot: u8,
        /// Whether it is on trial.
        trial: bool,
        /// The counter that it was signed with.
        counter: u64,
        /// Runs of its self-test.
        tests: u32,
    },
    /// An update is under way.
    Writing {
        /// Bytes of it that were taken, a unit of writing or less of them not in the flash yet.
        bytes: u32,
    },
    /// The update is written, believed, and has passed its self-test: the next start uses it, on trial.
    Written {
        /// Runs of its self-test.
        tests: u32,
    },
    /// A text is at its end.
    Generated {
        /// Tokens behind the prompt.
        tokens: u32,
        /// Why there are no more.
        ended: Ended,
    },
}

/// Calls of the runtime that can refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum During {
    /// The checked load.
    Load,
    /// Making a session from arena and state.
    Session,
    /// A run.
    Run,
    /// A self-test, or an update of a slot.
    Update,
}

/// Purpose of a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// An arena region.
    Arena,
    /// The state that outlives runs.
    State,
}

/// Memory that must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guarded {
    /// The bytes around an arena region.
    Arena,
    /// The bytes around the state.
    State,
    /// The last words of the stack.
    Stack,
    /// Code and constants.
    Flash,
    /// The blob.
    Blob,
}
