//! The parts of an intact file, before its steps are trusted.

use super::header::{
    self, HEADER_BYTES, Header, Kind, Section, check_head, checksum, checksummed, field, half, tabled, word,
};
#[cfg(feature = "training")]
use super::list::List;
use super::port::{Port, PortPlace};
use super::receipt::{CrcUnit, Receipt};
use super::records::Records;
use super::state::{Run, StateInit};
use crate::align::MODEL_ALIGN;
#[cfg(feature = "accelerators")]
use crate::declared::Declaration;
use crate::error::LoadError;
use crate::fields::Fields;
use crate::target::Target;

/// The number of cores of a file for one core and an accelerator, whose declaration follows the steps.
#[cfg_attr(not(feature = "pack"), expect(unreachable_pub, reason = "packers write it"))]
pub const ACCELERATED: u8 = 0x82;

/// The sections of a file whose header, length and checksum are right. Their contents are not checked: that makes a
/// [`Model`](super::Model).
#[derive(Debug, Clone, Copy)]
pub struct Sections<'a> {
    parts: Parts<'a>,
}

/// Checks alignment, version, length, checksum, and that every section lies inside the file; gives the file without what follows it.
pub(super) fn intact(bytes: &[u8]) -> Result<Parts<'_>, LoadError> {
    let parts = opened(bytes)?;
    parts.with_sum(checksum(parts.bytes))
}

/// As [`intact`]; the checksum is the unit's.
pub(super) fn intact_by<'a>(bytes: &'a [u8], unit: &mut impl CrcUnit) -> Result<Parts<'a>, LoadError> {
    let parts = opened(bytes)?;
    parts.with_sum(unit.crc32(checksummed(parts.bytes)))
}

/// As [`intact`]; instead of the checksum, that the header says what the receipt says.
pub(super) fn receipted<'a>(bytes: &'a [u8], receipt: &Receipt) -> Result<Parts<'a>, LoadError> {
    let parts = opened(bytes)?;
    let stated = parts.stated();
    if stated == *receipt {
        parts.inside()
    } else {
        let Receipt { length, crc, version } = stated;
        Err(LoadError::Receipt { length, crc, version })
    }
}

/// Checks alignment, version and length; gives the file without what follows it.
fn opened(bytes: &[u8]) -> Result<Parts<'_>, LoadError> {
    if !bytes.as_ptr().addr().is_multiple_of(MODEL_ALIGN) {
        return Err(LoadError::Misaligned);
    }
    let head = check_head(bytes)?;
    let (total, found) = (word(head, field::TOTAL), u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    match bytes.get(..total as usize) {
        Some(bytes) => Ok(Parts {
            head,
            bytes,
            #[cfg(feature = "training")]
            list: None,
        }),
        None => Err(LoadError::Truncated { expected: total, found }),
    }
}

impl Receipt {
    /// Takes the checksum of a file, and gives the receipt where it is right: call it when the file was written to its place, on what is read back from there.
    ///
    /// # Errors
    /// See [`LoadError`]; none that names a step or port. Those are found when the file is loaded.
    pub fn of(file: &[u8]) -> Result<Self, LoadError> {
        intact(file).map(|parts| parts.stated())
    }
}

impl<'a> Sections<'a> {
    /// Checks alignment, version, length, checksum, and that every section lies inside the file.
    ///
    /// # Errors
    /// See [`LoadError`]; none that names a step or port.
    pub fn open(bytes: &'a [u8]) -> Result<Self, LoadError> {
        intact(bytes).map(|parts| Self { parts })
    }

    /// The same file with the steps, inputs and outputs of training; `None` for a file without.
    #[cfg(feature = "training")]
    pub fn training(&self) -> Option<Self> {
        Some(Self {
            parts: self.parts.training()?,
        })
    }

    /// The number of the first step: those of training are counted behind those of inference.
    pub fn first_step(&self) -> u32 {
        self.parts.first_step()
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.parts.header()
    }

    /// Input `index`.
    pub fn input(&self, index: usize) -> Option<Port<'a>> {
        self.parts.input(index)
    }

    /// Output `index`.
    pub fn output(&self, index: usize) -> Option<Port<'a>> {
        self.parts.output(index)
    }

    /// The metadata.
    pub fn metadata(&self) -> &'a [u8] {
        self.parts.metadata()
    }

    /// The steps in order.
    pub fn steps(&self) -> Records<'a> {
        self.parts.steps()
    }

    /// The class labels: an encoded sequence of strings, empty where there are none.
    pub fn labels(&self) -> &'a [u8] {
        self.parts.section(field::LABELS)
    }

    /// Number of cores that the file is for, and a byte for each step; `None` for one core.
    #[cfg(feature = "cores")]
    pub fn cores(&self) -> Option<(u8, &'a [u8])> {
        self.parts.cores()
    }

    /// The accelerator that the file is for, and a byte for each step: 1 is the accelerator's, as of several cores.
    #[cfg(feature = "accelerators")]
    pub fn accelerator(&self) -> Option<(Declaration, &'a [u8])> {
        self.parts.accelerator()
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> StateInit<'a> {
        self.parts.state_init()
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        self.parts.target_name()
    }
}

/// A file that is [`intact`], as models and [`Sections`] hold it. The header is read in place: a copy of it would be moved about with every model and
/// session, by a `memcpy` that nothing else of a small program needs (0.9 KB).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    head: &'a [u8; HEADER_BYTES],
    /// All of the file.
    pub(super) bytes: &'a [u8],
    /// The list whose steps and ports stand for the file's own.
    #[cfg(feature = "training")]
    pub(super) list: Option<List<'a>>,
}

impl<'a> Parts<'a> {
    /// The header.
    #[inline(always)]
    pub(crate) fn header(self) -> Header {
        let header = Header::of(self.head, self.bytes);
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            let (head, [ports, steps]) = (list.head(), list.places());
            return Header {
                inputs: head.inputs,
                outputs: head.outputs,
                ports,
                steps,
                step_count: head.steps,
                input_bytes: head.input_bytes,
                output_bytes: head.output_bytes,
                ..header
            };
        }
        header
    }

    /// The same file with the steps of training in place of its own; `None` for a file without them, or where their section contradicts itself.
    #[cfg(feature = "training")]
    pub(crate) fn training(self) -> Option<Self> {
        let list = List::of(self.bytes, tabled(self.bytes, Kind::Training))?;
        Some(Self {
            list: Some(list),
            ..self
        })
    }

    /// The same file with its own steps.
    #[cfg(feature = "training")]
    pub(crate) fn inference(self) -> Self {
        Self { list: None, ..self }
    }

    /// Whether there is a section of steps of training, whatever is in it.
    #[cfg(feature = "training")]
    pub(super) fn has_training(self) -> bool {
        tabled(self.bytes, Kind::Training).len > 0
    }

    /// The number of the first step: those of training are counted behind the file's own.
    pub(crate) fn first_step(self) -> u32 {
        #[cfg(feature = "training")]
        if self.list.is_some() {
            return word(self.head, field::STEP_COUNT);
        }
        0
    }

    /// Number of inputs.
    pub(crate) fn inputs(self) -> usize {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            return list.head().inputs.into();
        }
        header::byte(self.head, field::INPUTS).into()
    }

    /// Number of outputs.
    pub(crate) fn outputs(self) -> usize {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            return list.head().outputs.into();
        }
        header::byte(self.head, field::OUTPUTS).into()
    }

    /// Bytes of all inputs, and of all outputs, as the header has them.
    pub(super) fn port_bytes(self) -> [u32; 2] {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            return [list.head().input_bytes, list.head().output_bytes];
        }
        [
            word(self.head, field::INPUT_BYTES),
            word(self.head, field::OUTPUT_BYTES),
        ]
    }

    /// Number of steps.
    pub(crate) fn step_count(self) -> u32 {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            return list.head().steps;
        }
        word(self.head, field::STEP_COUNT)
    }

    /// Bytes of arena in `region`.
    pub(crate) fn arena_bytes(self, region: usize) -> u32 {
        header::arena_bytes(self.head, region) as u32
    }

    /// Bytes of state.
    pub(crate) fn state_bytes(self) -> u32 {
        header::state_bytes(self.head) as u32
    }

    /// Input `index`.
    pub(crate) fn input(self, index: usize) -> Option<Port<'a>> {
        if index < self.inputs() {
            self.ports_from(index)?.value()
        } else {
            None
        }
    }

    /// Output `index`.
    pub(crate) fn output(self, index: usize) -> Option<Port<'a>> {
        if index < self.outputs() {
            self.ports_from(self.inputs() + index)?.value()
        } else {
            None
        }
    }

    /// The metadata: postcard, written and read by the host tools alone.
    pub(crate) fn metadata(self) -> &'a [u8] {
        self.section(field::META)
    }

    /// The steps in order: a kernel's number and its parameters.
    pub(crate) fn steps(self) -> Records<'a> {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            let [_, steps] = list.halves();
            return Records(steps);
        }
        Records(self.section(field::STEPS))
    }

    /// The weights.
    pub(crate) fn weights(self) -> &'a [u8] {
        self.section(field::WEIGHTS)
    }

    /// The state's value after a reset.
    pub(crate) fn state_init(self) -> StateInit<'a> {
        match header::byte(self.head, field::STATE_RUNS) {
            0 => StateInit::Bytes(self.section(field::STATE_INIT)),
            runs => StateInit::Runs(self.runs(runs).unwrap_or_default()),
        }
    }

    /// The runs of the initial state, so many; `None` where they are not in the file.
    fn runs(self, count: u8) -> Option<&'a [Run]> {
        let from = self.bytes.get(word(self.head, field::STATE_INIT) as usize..)?;
        from.as_chunks().0.get(..count.into())
    }

    /// Inputs, and what the outputs must be; empty in a file without a self-test.
    pub(crate) fn self_test(self) -> &'a [u8] {
        #[cfg(feature = "training")]
        if self.list.is_some() {
            return &[];
        }
        self.section(field::SELF_TEST)
    }

    /// The tokenizer; empty in a file without.
    pub(crate) fn tokenizer(self) -> &'a [u8] {
        let Section { offset, len } = tabled(self.bytes, Kind::Tokenizer);
        let from = self.bytes.get(offset as usize..);
        from.and_then(|bytes| bytes.get(..len as usize)).unwrap_or_default()
    }

    /// Place of input `index`.
    pub(crate) fn input_place(self, index: usize) -> Option<PortPlace> {
        if index < self.inputs() {
            PortPlace::read(&mut self.ports_from(index)?)
        } else {
            None
        }
    }

    /// Place of output `index`.
    pub(crate) fn output_place(self, index: usize) -> Option<PortPlace> {
        if index < self.outputs() {
            PortPlace::read(&mut self.ports_from(self.inputs() + index)?)
        } else {
            None
        }
    }

    /// The encoded ports.
    pub(super) fn ports(self) -> &'a [u8] {
        #[cfg(feature = "training")]
        if let Some(list) = self.list {
            let [ports, _] = list.halves();
            return ports;
        }
        self.section(field::PORTS)
    }

    /// The receipt of this file, by its header.
    pub(super) fn stated(self) -> Receipt {
        Receipt {
            length: word(self.head, field::TOTAL),
            crc: word(self.head, field::CRC),
            version: half(self.head, field::VERSION),
        }
    }

    /// Checks the checksum against the one that was found, and [`Parts::inside`].
    fn with_sum(self, found: u32) -> Result<Self, LoadError> {
        let expected = word(self.head, field::CRC);
        if expected == found {
            self.inside()
        } else {
            Err(LoadError::Checksum { expected, found })
        }
    }

    /// Checks where the sections lie, and that all of them are known.
    fn inside(self) -> Result<Self, LoadError> {
        match header::unknown_kind(self.bytes) {
            Some(kind) => Err(LoadError::Section { kind }),
            None if self.are_inside() => Ok(self),
            None => Err(LoadError::Header),
        }
    }

    /// Whether every section lies inside the file and behind the header, and inputs and weights are as sessions and kernels want them.
    fn are_inside(self) -> bool {
        let inside = |at: usize| header::is_inside(self.bytes, header::stored(self.head, at));
        let weights = word(self.head, field::WEIGHTS) as usize;
        field::SECTIONS.into_iter().all(inside)
            && header::is_table_right(self.bytes)
            && self.is_state_whole()
            && weights.is_multiple_of(MODEL_ALIGN)
            && self.inputs() <= 32
    }

    /// Whether the initial state is as long as the state: of one in the file as it is, that it lies there says so.
    fn is_state_whole(self) -> bool {
        let Section { offset, len } = header::section(self.head, field::STATE_INIT);
        match header::byte(self.head, field::STATE_RUNS) {
            0 => true,
            runs => are_whole(self.bytes, offset as usize, runs.into(), len),
        }
    }

    /// The number of cores that the file is for, and a byte for each step; `None` for one core. A section outside of the file is empty.
    #[cfg(feature = "cores")]
    pub(crate) fn cores(self) -> Option<(u8, &'a [u8])> {
        let (cores, steps) = self.shared().filter(|&(cores, _)| cores != ACCELERATED)?;
        let whole = steps.len() == self.step_count() as usize;
        Some((cores, if whole { steps } else { &[] }))
    }

    /// The accelerator that the file is for, and a byte for each step; `None` for one that needs none, or declares none that can be.
    #[cfg(feature = "accelerators")]
    pub(crate) fn accelerator(self) -> Option<(Declaration, &'a [u8])> {
        let (steps, declared) = self.accelerated()?;
        Declaration::of(declared).map(|declared| (declared, steps))
    }

    /// Whether the file is for an accelerator.
    pub(super) fn is_accelerated(self) -> bool {
        matches!(self.shared(), Some((ACCELERATED, _)))
    }

    /// A byte for each step, and the bytes behind them, in a file that is for an accelerator.
    #[cfg(feature = "accelerators")]
    pub(super) fn accelerated(self) -> Option<(&'a [u8], &'a [u8])> {
        let (_, steps) = self.shared().filter(|&(cores, _)| cores == ACCELERATED)?;
        Some(steps.split_at_checked(self.step_count() as usize).unwrap_or_default())
    }

    /// The number of those that share the steps, and what follows it.
    pub(super) fn shared(self) -> Option<(u8, &'a [u8])> {
        #[cfg(feature = "training")]
        if self.list.is_some() {
            return None;
        }
        let Section { offset, len } = tabled(self.bytes, Kind::Cores);
        if offset == 0 {
            return None;
        }
        let bytes = self
            .bytes
            .get(offset as usize..)
            .and_then(|from| from.get(..len as usize));
        let (&cores, rest) = bytes.and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
        Some((cores, rest))
    }

    /// The bytes of the section whose offset and length are at `at` of the header.
    #[inline(never)]
    fn section(self, at: usize) -> &'a [u8] {
        let Section { offset, len } = header::section(self.head, at);
        let from = self.bytes.get(offset as usize..);
        from.and_then(|bytes| bytes.get(..len as usize)).unwrap_or_default()
    }

    /// The fields of port `index` and of those after it.
    fn ports_from(self, index: usize) -> Option<Fields<'a>> {
        let mut fields = Fields::new(self.ports());
        for _ in 0..index {
            PortPlace::read(&mut fields)?;
        }
        Some(fields)
    }

    /// The name of the target that the file states.
    pub(crate) fn target_name(self) -> &'static str {
        Target::ALL
            .get(usize::from(header::byte(self.head, field::TARGET)))
            .map_or("an unknown target", |target| target.name())
    }
}

/// Whether so many runs at `offset` are `len` bytes, and none of them no byte. With what it reads and not the file's parts, which stay in registers then, and
/// constants where the file is one.
#[cold]
#[inline(never)]
fn are_whole(file: &[u8], offset: usize, runs: usize, len: u32) -> bool {
    let Some(runs) = file.get(offset..).and_then(|from| from.as_chunks().0.get(..runs)) else {
        return false;
    };
    StateInit::Runs(runs).len() == u64::from(len) && StateInit::Runs(runs).has_no_empty_run()
}
