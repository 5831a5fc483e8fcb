//! Errors as four bytes, for a log, a radio frame or a debugger's register: `arenite explain-code` prints what one means.
//!
//! From the highest byte: the cause, the kernel's number ([`NO_KERNEL`] where none is known), and in the low half the step ([`NO_STEP`] where there is
//! none or it is beyond), or what else the cause counts. A cause keeps its number for ever.

use crate::blob::step_in;
use crate::error::{AcceleratorFault, Lack, LoadError, RunError, SessionError};
#[cfg(feature = "guard")]
use crate::guard::Overrun;
use crate::ops::fault::Fault;
use crate::self_test::SelfTestError;
#[cfg(feature = "slots")]
use crate::slots::SlotError;
#[cfg(feature = "verify")]
use crate::verify::VerifyError;

/// The kernel's byte where no kernel is known.
pub const NO_KERNEL: u8 = 0xFF;

/// The step's half where there is none, or where it has no room.
pub const NO_STEP: u16 = 0xFFFF;

/// A code's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Code {
    /// One of [`CAUSES`].
    pub cause: u8,
    /// The kernel's number, or [`NO_KERNEL`].
    pub kernel: u8,
    /// The step, or what else the cause counts, or [`NO_STEP`].
    pub step: u16,
}

impl Code {
    /// The four bytes.
    pub const fn to_u32(self) -> u32 {
        u32::from_be_bytes([self.cause, self.kernel, (self.step >> 8) as u8, self.step as u8])
    }

    /// The parts of four bytes.
    pub const fn from_u32(code: u32) -> Self {
        let [cause, kernel, high, low] = code.to_be_bytes();
        Self {
            cause,
            kernel,
            step: u16::from_be_bytes([high, low]),
        }
    }

    /// That of a cause alone.
    pub(crate) const fn of(cause: u8) -> Self {
        Self {
            cause,
            kernel: NO_KERNEL,
            step: NO_STEP,
        }
    }

    const fn at(cause: u8, step: u32) -> Self {
        let step = if step < NO_STEP as u32 { step as u16 } else { NO_STEP };
        Self {
            step,
            ..Self::of(cause)
        }
    }

    const fn with(self, kernel: u8) -> Self {
        Self { kernel, ..self }
    }

    /// The same with the kernel of its step, as the file says it; nothing of the file need be right.
    fn in_file(self, file: &[u8]) -> Self {
        match step_in(file, self.step.into()) {
            Some((kernel, _)) if self.kernel == NO_KERNEL && names_step(self.cause) => self.with(kernel),
            _ => self,
        }
    }
}

/// Unit of the low half of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Nothing.
    Nothing,
    /// Steps.
    Step,
    /// Inputs, then outputs.
    Port,
    /// Inputs.
    Input,
    /// Outputs.
    Output,
    /// Regions of the arena.
    Region,
}

/// Meaning of a cause's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// Its number.
    pub number: u8,
    /// The error's type and variant.
    pub name: &'static str,
    /// Unit of the code's low half.
    pub counts: Counts,
    /// The event, and what to do about it.
    pub meaning: &'static str,
}

macro_rules! causes {
    ($($number:literal $constant:ident $name:literal $counts:ident $meaning:literal;)*) => {
        #[allow(dead_code, reason = "some are of features that this build has not")]
        pub(crate) mod number { $(pub(crate) const $constant: u8 = $number;)* }

        /// Every cause, in the order of the numbers.
        pub const CAUSES: &[Cause] = &[$(Cause { number: $number, name: $name, counts: Counts::$counts, meaning: $meaning }),*];
    };
}

causes! {
    0x01 MISALIGNED "LoadError::Misaligned" Nothing "the model does not start at a multiple of 16 bytes: align what holds it";
    0x02 TRUNCATED "LoadError::Truncated" Nothing "the model is cut: give all of its bytes";
    0x03 NOT_A_BLOB "LoadError::NotABlob" Nothing "these bytes are no model, or a signed one that is loaded without its signature";
    0x04 VERSION "LoadError::Version" Nothing "another format version: `arenite migrate` converts an older file, a newer one wants a newer runtime";
    0x05 CHECKSUM "LoadError::Checksum" Nothing "the model was damaged: write it anew";
    0x06 HEADER "LoadError::Header" Nothing "the header contradicts itself: pack the model again";
    0x07 KERNEL "LoadError::Kernel" Step "this build has not the kernel: turn its feature on, or pack for a target whose kernels it has";
    0x08 UNKNOWN_KERNEL "LoadError::UnknownKernel" Step "a kernel that this version does not know: update the runtime";
    0x09 PORT "LoadError::Port" Port "the description of an input or output is wrong: pack the model again";
    0x0A COST "LoadError::Cost" Step "the steps up to this one cost more than `load_within` allows: allow more, or take a smaller network";
    0x0B RECEIPT "LoadError::Receipt" Nothing "another file than the receipt's, or a damaged one: load it without the receipt, and keep its new one";
    0x0C CORES "LoadError::Cores" Nothing "the file names a number of cores that no file has: pack the model again";
    0x0D LOAD_ACCELERATOR "LoadError::Accelerator" Nothing "the model is for an accelerator: turn the feature `accelerators` on";
    0x0E CPU "LoadError::Cpu" Step "the core lacks what the model is for (instructions, cores, an accelerator): pack the model for what it has";
    0x0F SECTION "LoadError::Section" Nothing "the file has a section that this version does not know: update the runtime";
    0x10 ENCODING "Fault::Encoding" Step "the step's parameters do not decode: pack the model again";
    0x11 SHAPE "Fault::Shape" Step "the step's shapes contradict each other: pack the model again";
    0x12 BOUNDS "Fault::Bounds" Step "an operand lies outside its memory: pack the model again";
    0x13 ALIGNMENT "Fault::Alignment" Step "an operand is misaligned: pack the model again";
    0x14 OVERLAP "Fault::Overlap" Step "the step's output overlaps an operand: pack the model again";
    0x15 QUANTISATION "Fault::Quantisation" Step "a quantisation parameter is out of range: pack the model again";
    0x16 UNSUPPORTED "Fault::Unsupported" Step "the kernel does not compute these parameters: pack the model again";
    0x17 WEIGHTS "Fault::Weights" Step "a record among the step's weights is wrong: pack the model again";
    0x18 SHARED "Fault::Shared" Step "weights that load checks are shared by too many steps: pack the model again";
    0x19 CORE "Fault::Core" Step "the step runs on a core that the file does not have: pack the model again";
    0x1A RACE "Fault::Race" Step "two cores would touch the same bytes at one time: pack the model again";
    0x1B GROUP "Fault::Group" Step "the steps between two barriers have too many operands: pack the model again";
    0x1C REACH "Fault::Reach" Step "the step's accelerator does not reach an operand, by region or alignment: pack the model again";
    0x1D HANDED "Fault::Handed" Step "the step's accelerator has not its kernel: pack the model again";
    0x1E COMMANDS "Fault::Commands" Step "commands for an NPU are not known, or touch what is not the step's: compile and pack the model again";
    0x1F ROWS "Fault::Rows" Step "a row that the step reads is not made yet, or its kernel does not read rows that lie apart: pack the model again";
    0x20 ARENA_TOO_SMALL "SessionError::ArenaTooSmall" Region "an arena is too small: give what `arena_bytes` says";
    0x21 ARENA_MISALIGNED "SessionError::ArenaMisaligned" Region "an arena does not start at a multiple of 16 bytes";
    0x22 STATE_SIZE "SessionError::StateSize" Nothing "the state has the wrong size: give what `state_bytes` says";
    0x23 STATE_MISALIGNED "SessionError::StateMisaligned" Nothing "the state does not start at a multiple of 16 bytes";
    0x24 MEMORY_TAKEN "SessionError::MemoryTaken" Nothing "the memory of the model's module was taken already: open one session, or pass memory of your own";
    0x30 NO_SUCH_PORT "RunError::NoSuchPort" Port "there is no input or output of this index";
    0x31 INPUT_SIZE "RunError::InputSize" Input "an input was given with the wrong size";
    0x32 INPUT_MISSING "RunError::InputMissing" Input "a run was started before this input was set";
    0x33 CORRUPT "RunError::Corrupt" Step "the memory that holds the model was overwritten after it was loaded";
    0x34 PORT_TYPE "RunError::PortType" Port "an input or output was asked for as other numbers than it holds";
    0x35 RUN_CORES "RunError::Cores" Nothing "the model is for more cores than the board gives: `run` takes one";
    0x36 OTHER_NAME "AcceleratorFault::Name" Step "the model is for an accelerator of another name: pack it for this one";
    0x37 OTHER_VERSION "AcceleratorFault::Version" Step "the model is for another version of the accelerator: pack it for this one";
    0x38 OTHER_LAYOUT "AcceleratorFault::Layout" Step "the accelerator has the kernels of another target than the model's: pack it for this one";
    0x39 OTHER_REGIONS "AcceleratorFault::Regions" Step "the accelerator states other regions than the model: pack it for this one";
    0x3A OTHER_ALIGNMENT "AcceleratorFault::Alignment" Step "the accelerator wants another alignment than the model's: pack it for this one";
    0x3B NOT_REACHED "AcceleratorFault::Reach" Step "the accelerator does not reach an operand: give the session memory that it reaches";
    0x3C TIMED_OUT "AcceleratorFault::TimedOut" Step "the accelerator was not done in time: set the inputs anew, and run on the core";
    0x3D FAILED "AcceleratorFault::Failed" Step "the accelerator says that it failed: set the inputs anew, and run on the core";
    0x3E UNWRITTEN "AcceleratorFault::Unwritten" Step "the accelerator said that it was done and its output is not written: its driver is wrong";
    0x3F NEEDED "AcceleratorFault::Needed" Step "this build has not the kernel of a step that an accelerator is to have: run with the accelerator";
    0x40 NOT_SIGNED "VerifyError::NotSigned" Nothing "the file has no signature";
    0x41 SIGNED_TRUNCATED "VerifyError::Truncated" Nothing "the signed file is cut: give all of its bytes";
    0x42 SIGNED_VERSION "VerifyError::Version" Nothing "another version of the signature's envelope: update the runtime";
    0x43 ENVELOPE "VerifyError::Envelope" Nothing "the signature's envelope contradicts itself: sign the file again";
    0x44 UNKNOWN_KEY "VerifyError::UnknownKey" Nothing "the file is signed by a key that is not trusted";
    0x45 SIGNATURE "VerifyError::Signature" Nothing "the file was changed after it was signed, or never signed by its key";
    0x46 OLD_COUNTER "VerifyError::OldCounter" Nothing "the file is older than the one before it";
    0x48 OTHER_NPU "AcceleratorFault::Npu" Step "the model's commands are for another NPU: compile it for this one";
    0x49 OUT_OF_RANGE "RunError::OutOfRange" Step "a token or a position that was given is out of its range: give one that is within";
    0x4A ROW_SIZE "RunError::RowSize" Input "an input was fed other bytes than whole rows";
    0x4B ROWS_OVER "RunError::RowsOver" Input "an input was fed more rows than its run has left: `restart` begins with the next run";
    0x4C ROWS_MISSING "RunError::RowsMissing" Input "a run cannot go on before more rows of this input are fed";
    0x4D FED_BY_ROWS "RunError::FedByRows" Input "the input lies nowhere as a whole: feed its rows, or set all of it at once";
    0x4E NOT_BY_ROWS "RunError::NotByRows" Input "the model takes this input as a whole: set it";
    0x50 SELF_TEST_MISSING "SelfTestError::Missing" Nothing "the model has no self-test: pack it with `--self-test`";
    0x51 SELF_TEST_MALFORMED "SelfTestError::Malformed" Nothing "the model's self-test does not decode: pack the model again";
    0x52 SELF_TEST_OUTPUT "SelfTestError::Output" Output "this output of the self-test is not what the packer computed: a broken core, memory or build";
    0x58 OVERRUN_ARENA "Overrun::Arena" Region "something wrote behind this arena: a DMA, a stack, another part of the program";
    0x59 OVERRUN_STATE "Overrun::State" Nothing "something wrote behind the state: a DMA, a stack, another part of the program";
    0x60 SLOT_LAYOUT "SlotError::Layout" Nothing "slots and journal are not whole sectors of this flash, or overlap, or there are no trials";
    0x61 SLOT_FLASH "SlotError::Flash" Nothing "the flash refused to read, write or erase";
    0x62 SLOT_EMPTY "SlotError::Empty" Nothing "neither slot holds a model that loads: write one";
    0x63 SLOT_ON_TRIAL "SlotError::OnTrial" Nothing "the model in use is on trial: confirm it or roll it back before the next update";
    0x64 SLOT_TOO_LARGE "SlotError::TooLarge" Nothing "the file is larger than a slot";
    0x65 SLOT_LENGTH "SlotError::Length" Nothing "other than the stated number of bytes were written: begin the update anew";
    0x66 SLOT_STALE "SlotError::Stale" Nothing "another update or a start came in between, or the flash failed: begin the update anew";
    0x68 NO_TOKENIZER "TextError::NoTokenizer" Nothing "the model has no tokenizer: pack it with `--tokenizer FILE`";
    0x69 TOKENIZER "TextError::Tokenizer" Nothing "the model's tokenizer contradicts itself: pack the model again";
    0x6A NO_PIECE "TextError::NoPiece" Nothing "a character has no token, and the tokenizer has none for bytes: leave it out";
    0x6B TEXT_TOO_LONG "TextError::TooLong" Nothing "the text has more tokens than there is room for: give a shorter one, or pack with a larger `--context`";
    0x6C NO_TEXT "TextError::Empty" Nothing "the text is empty, and the tokenizer has no token that begins one: give a text";
    0x6D NO_LANGUAGE_MODEL "TextError::Model" Nothing "the model does not go from tokens to logits: load a language model";
    0x6E LOGITS "TextError::Logits" Nothing "the model's logits are not numbers: its weights are damaged";
    0x6F NO_CHAT "TextError::NoChat" Nothing "the tokenizer has no template of a talk: give a plain text";
}

impl Fault {
    const fn cause(self) -> u8 {
        match self {
            Fault::Encoding => number::ENCODING,
            Fault::Shape => number::SHAPE,
            Fault::Bounds => number::BOUNDS,
            Fault::Alignment => number::ALIGNMENT,
            Fault::Overlap => number::OVERLAP,
            Fault::Quantisation => number::QUANTISATION,
            Fault::Unsupported => number::UNSUPPORTED,
            Fault::Weights => number::WEIGHTS,
            Fault::Shared => number::SHARED,
            Fault::Core => number::CORE,
            Fault::Race => number::RACE,
            Fault::Group => number::GROUP,
            Fault::Reach => number::REACH,
            Fault::Handed => number::HANDED,
            Fault::Commands => number::COMMANDS,
            Fault::Rows => number::ROWS,
        }
    }
}

impl AcceleratorFault {
    const fn cause(self) -> u8 {
        match self {
            AcceleratorFault::Name => number::OTHER_NAME,
            AcceleratorFault::Version => number::OTHER_VERSION,
            AcceleratorFault::Layout => number::OTHER_LAYOUT,
            AcceleratorFault::Regions => number::OTHER_REGIONS,
            AcceleratorFault::Alignment => number::OTHER_ALIGNMENT,
            AcceleratorFault::Reach => number::NOT_REACHED,
            AcceleratorFault::TimedOut => number::TIMED_OUT,
            AcceleratorFault::Failed { .. } => number::FAILED,
            AcceleratorFault::Needed => number::NEEDED,
            AcceleratorFault::Unwritten => number::UNWRITTEN,
            AcceleratorFault::Npu => number::OTHER_NPU,
        }
    }
}

impl LoadError {
    const fn parts(&self) -> Code {
        match *self {
            LoadError::Misaligned => Code::of(number::MISALIGNED),
            LoadError::Truncated { .. } => Code::of(number::TRUNCATED),
            LoadError::NotABlob => Code::of(number::NOT_A_BLOB),
            LoadError::Version { .. } => Code::of(number::VERSION),
            LoadError::Checksum { .. } => Code::of(number::CHECKSUM),
            LoadError::Receipt { .. } => Code::of(number::RECEIPT),
            LoadError::Header => Code::of(number::HEADER),
            LoadError::Section { .. } => Code::of(number::SECTION),
            LoadError::Cores { .. } => Code::of(number::CORES),
            LoadError::Accelerator => Code::of(number::LOAD_ACCELERATOR),
            LoadError::Cpu {
                lack: Lack::Kernel { step, kernel },
            } => Code::at(number::CPU, step).with(kernel as u8),
            LoadError::Cpu { .. } => Code::of(number::CPU),
            LoadError::Kernel { step, kernel, .. } => Code::at(number::KERNEL, step).with(kernel as u8),
            LoadError::UnknownKernel { step, kernel } => Code::at(number::UNKNOWN_KERNEL, step).with(kernel),
            LoadError::Step { step, fault } => Code::at(fault.cause(), step),
            LoadError::Cost { step, .. } => Code::at(number::COST, step),
            LoadError::Port { port } => Code::at(number::PORT, port),
        }
    }

    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        self.parts().to_u32()
    }

    /// [`LoadError::code`] with the kernel of the step, which `file` tells.
    pub fn code_in(&self, file: &[u8]) -> u32 {
        self.parts().in_file(file).to_u32()
    }
}

impl SessionError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let code = match *self {
            SessionError::ArenaTooSmall { region, .. } => Code::at(number::ARENA_TOO_SMALL, region as u32),
            SessionError::ArenaMisaligned { region } => Code::at(number::ARENA_MISALIGNED, region as u32),
            SessionError::StateSize { .. } => Code::of(number::STATE_SIZE),
            SessionError::StateMisaligned => Code::of(number::STATE_MISALIGNED),
            SessionError::MemoryTaken => Code::of(number::MEMORY_TAKEN),
        };
        code.to_u32()
    }
}

impl RunError {
    const fn parts(&self) -> Code {
        match *self {
            RunError::NoSuchPort { index } => Code::at(number::NO_SUCH_PORT, index),
            RunError::InputSize { input, .. } => Code::at(number::INPUT_SIZE, input),
            RunError::InputMissing { input } => Code::at(number::INPUT_MISSING, input),
            RunError::PortType { port } => Code::at(number::PORT_TYPE, port),
            RunError::Corrupt { step } => Code::at(number::CORRUPT, step),
            RunError::OutOfRange { step, .. } => Code::at(number::OUT_OF_RANGE, step),
            RunError::Cores { .. } => Code::of(number::RUN_CORES),
            RunError::RowSize { input, .. }
            | RunError::RowsOver { input, .. }
            | RunError::RowsMissing { input, .. }
            | RunError::FedByRows { input }
            | RunError::NotByRows { input } => Code::at(self.of_rows(), input),
            RunError::Accelerator { step, fault } => Code::at(fault.cause(), step),
        }
    }

    /// The cause of one of rows. A build without the feature makes none, and has no code that tells them apart.
    #[inline(always)]
    const fn of_rows(&self) -> u8 {
        match *self {
            _ if !cfg!(feature = "rolling") => number::NOT_BY_ROWS,
            RunError::RowSize { .. } => number::ROW_SIZE,
            RunError::RowsOver { .. } => number::ROWS_OVER,
            RunError::RowsMissing { .. } => number::ROWS_MISSING,
            RunError::FedByRows { .. } => number::FED_BY_ROWS,
            _ => number::NOT_BY_ROWS,
        }
    }

    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        self.parts().to_u32()
    }

    /// [`RunError::code`] with the kernel of the step, which `file` tells.
    pub fn code_in(&self, file: &[u8]) -> u32 {
        self.parts().in_file(file).to_u32()
    }
}

#[cfg(feature = "verify")]
impl VerifyError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let cause = match *self {
            VerifyError::NotSigned => number::NOT_SIGNED,
            VerifyError::Truncated { .. } => number::SIGNED_TRUNCATED,
            VerifyError::Version { .. } => number::SIGNED_VERSION,
            VerifyError::Envelope => number::ENVELOPE,
            VerifyError::UnknownKey { .. } => number::UNKNOWN_KEY,
            VerifyError::Signature { .. } => number::SIGNATURE,
            VerifyError::OldCounter { .. } => number::OLD_COUNTER,
            VerifyError::Load(error) => return error.code(),
        };
        Code::of(cause).to_u32()
    }
}

impl SelfTestError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let code = match *self {
            SelfTestError::Missing => Code::of(number::SELF_TEST_MISSING),
            SelfTestError::Malformed => Code::of(number::SELF_TEST_MALFORMED),
            SelfTestError::Session(error) => return error.code(),
            SelfTestError::Run(error) => return error.code(),
            SelfTestError::Output { output, .. } => Code::at(number::SELF_TEST_OUTPUT, output),
        };
        code.to_u32()
    }
}

#[cfg(feature = "guard")]
impl Overrun {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let code = match *self {
            Overrun::Arena { region } => Code::at(number::OVERRUN_ARENA, region as u32),
            Overrun::State => Code::of(number::OVERRUN_STATE),
        };
        code.to_u32()
    }
}

#[cfg(feature = "slots")]
impl SlotError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let cause = match *self {
            SlotError::Layout => number::SLOT_LAYOUT,
            SlotError::Flash(_) => number::SLOT_FLASH,
            SlotError::Empty => number::SLOT_EMPTY,
            SlotError::OnTrial => number::SLOT_ON_TRIAL,
            SlotError::TooLarge { .. } => number::SLOT_TOO_LARGE,
            SlotError::Length { .. } => number::SLOT_LENGTH,
            SlotError::Stale => number::SLOT_STALE,
            SlotError::Load(error) => return error.code(),
            SlotError::SelfTest(error) => return error.code(),
            #[cfg(feature = "verify")]
            SlotError::Verify(error) => return error.code(),
        };
        Code::of(cause).to_u32()
    }
}

/// Whether the low half of a code of this cause is a step.
fn names_step(cause: u8) -> bool {
    let known = CAUSES.iter().find(|known| known.number == cause);
    known.is_some_and(|known| known.counts == Counts::Step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_taken_apart_as_they_are_made() {
        let code = LoadError::UnknownKernel {
            step: 0x1234,
            kernel: 200,
        }
        .code();
        assert_eq!(code, 0x08C8_1234);
        assert_eq!(Code::from_u32(code).to_u32(), code);
        assert_eq!(LoadError::Misaligned.code(), 0x01FF_FFFF);
        for step in [0xFFFE, 0xFFFF, 0x1_0000, u32::MAX] {
            let expected = step.min(0xFFFF);
            assert_eq!(RunError::Corrupt { step }.code() & 0xFFFF, expected);
        }
    }

    #[test]
    fn numbers_ascend() {
        assert!(CAUSES.windows(2).all(|pair| pair[0].number < pair[1].number));
    }
}
