//! The one writer of a model file, for packers and tests (feature `pack`): what [`Header::parse`] and [`Model::load`](super::Model::load) read.
//!
//! Ports, steps, metadata, labels, cores, tokenizer, steps of training, rolled tensors and initial state follow the header in this order; weights come last.

use super::header::{FORMAT_VERSION, HEADER_BYTES, Header, Kind, MAGIC, ROW_BYTES, Section, checksum, field};
use super::port::Port;
use crate::kernels::table::{KernelSet, Step};

/// The weights start at a multiple of this from the file's start: a cache line, and more than any vector unit wants.
pub const WEIGHTS_ALIGN: u32 = 64;

/// The largest encoding of a step's parameters.
pub const MAX_STEP_BYTES: usize = 1024;

/// Lengths of the sections of a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lengths {
    /// Of the encoded ports.
    pub ports: usize,
    /// Of the encoded steps.
    pub steps: usize,
    /// Of the metadata.
    pub meta: usize,
    /// Of the labels.
    pub labels: usize,
    /// Of the steps' cores, with their number; 0 for a file of one core.
    pub cores: usize,
    /// Of the tokenizer; 0 for a file without.
    pub tokenizer: usize,
    /// Of the steps of training, with their ports; 0 for a file without.
    pub training: usize,
    /// Of the section of rolled tensors; 0 for a file without.
    pub rolling: usize,
    /// Of the initial state.
    pub state_init: usize,
    /// The runs that it is written as, see [`StateInit::runs_of`](super::StateInit::runs_of); 0 for its bytes.
    pub state_runs: u8,
    /// Of the weights.
    pub weights: usize,
}

impl Header {
    /// Places the sections; `None` beyond 4 GiB.
    pub fn place(&mut self, lengths: Lengths) -> Option<()> {
        // The header's length follows from the sections that its table has.
        self.cores.len = u32::try_from(lengths.cores).ok()?;
        self.tokenizer.len = u32::try_from(lengths.tokenizer).ok()?;
        self.training.len = u32::try_from(lengths.training).ok()?;
        self.rolling.len = u32::try_from(lengths.rolling).ok()?;
        let mut at = self.bytes() as u32;
        let mut next = |len: usize| {
            let section = Section {
                offset: at,
                len: u32::try_from(len).ok()?,
            };
            at = at.checked_add(section.len)?;
            Some(section)
        };
        self.ports = next(lengths.ports)?;
        self.steps = next(lengths.steps)?;
        self.meta = next(lengths.meta)?;
        // A file without labels is as one of before there were any.
        if lengths.labels > 0 {
            self.labels = next(lengths.labels)?;
        }
        if lengths.cores > 0 {
            self.cores = next(lengths.cores)?;
        }
        if lengths.tokenizer > 0 {
            self.tokenizer = next(lengths.tokenizer)?;
        }
        if lengths.training > 0 {
            self.training = next(lengths.training)?;
        }
        if lengths.rolling > 0 {
            self.rolling = next(lengths.rolling)?;
        }
        let state = match lengths.state_runs {
            0 => lengths.state_init,
            runs => 4 * usize::from(runs),
        };
        self.state_runs = lengths.state_runs;
        self.state_init = Section {
            len: u32::try_from(lengths.state_init).ok()?,
            ..next(state)?
        };
        self.weights = Section {
            offset: at.checked_next_multiple_of(WEIGHTS_ALIGN)?,
            len: u32::try_from(lengths.weights).ok()?,
        };
        self.total = self.weights.offset.checked_add(self.weights.len)?;
        Some(())
    }

    /// The rows of the table of sections.
    fn rows(&self) -> impl Iterator<Item = (Kind, Section)> {
        let all = [
            (Kind::Cores, self.cores),
            (Kind::Rolling, self.rolling),
            (Kind::Tokenizer, self.tokenizer),
            (Kind::Training, self.training),
        ];
        all.into_iter().filter(|(_, section)| section.len > 0)
    }

    /// Bytes of the fixed fields and of the table of sections.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.rows().count() * ROW_BYTES
    }

    /// Appends the header to `out`: the fixed fields and the table of sections; the inverse of [`Header::parse`].
    pub fn write(&self, out: &mut impl Extend<u8>) {
        out.extend(self.fields());
        for (kind, Section { offset, len }) in self.rows() {
            out.extend([kind as u32, offset, len].into_iter().flat_map(u32::to_le_bytes));
        }
    }

    /// The fixed fields.
    fn fields(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(field::MAGIC, &MAGIC);
        put(field::VERSION, &FORMAT_VERSION.to_le_bytes());
        put(field::HEADER_LEN, &(self.bytes() as u16).to_le_bytes());
        put(
            field::TARGET,
            &[self.target, self.inputs, self.outputs, self.state_runs],
        );
        put(field::TOTAL, &self.total.to_le_bytes());
        put(field::CRC, &self.crc.to_le_bytes());
        for (at, section) in [
            (field::PORTS, self.ports),
            (field::STEPS, self.steps),
            (field::META, self.meta),
            (field::WEIGHTS, self.weights),
            (field::STATE_INIT, self.state_init),
            (field::SELF_TEST, self.self_test),
            (field::LABELS, self.labels),
        ] {
            put(at, &section.offset.to_le_bytes());
            put(at + 4, &section.len.to_le_bytes());
        }
        put(field::STEP_COUNT, &self.step_count.to_le_bytes());
        for (region, bytes) in self.arena.iter().enumerate() {
            put(field::ARENA + 4 * region, &bytes.to_le_bytes());
        }
        put(field::INPUT_BYTES, &self.input_bytes.to_le_bytes());
        put(field::OUTPUT_BYTES, &self.output_bytes.to_le_bytes());
        put(field::ROWS, &(self.rows().count() as u32).to_le_bytes());
        for (at, word) in self.kernels.0.iter().enumerate() {
            put(field::KERNELS + 4 * at, &word.to_le_bytes());
        }
        bytes
    }
}

/// Appends a port to `out`; `None` where it does not encode.
pub fn write_port(port: &Port<'_>, out: &mut impl Extend<u8>) -> Option<()> {
    postcard::to_extend(port, Appended(out)).ok().map(|_| ())
}

/// Appends a step's record to `out` and its kernel to the set; `None` where the parameters take more than [`MAX_STEP_BYTES`].
pub fn write_step(step: &Step, out: &mut impl Extend<u8>, kernels: &mut KernelSet) -> Option<()> {
    let mut buffer = [0; MAX_STEP_BYTES];
    let params = step.encode(&mut buffer)?;
    let id = step.kernel() as u8;
    *kernels = kernels.with(id);
    write_record(id, params, out)
}

/// Appends a record of any kernel number and parameters to `out`.
pub fn write_record(kernel: u8, params: &[u8], out: &mut impl Extend<u8>) -> Option<()> {
    postcard::to_extend(&(kernel, params), Appended(out)).ok().map(|_| ())
}

/// Puts the checksum of a whole file right.
pub fn seal(file: &mut [u8]) {
    let crc = checksum(file);
    if let Some(field) = file.get_mut(field::CRC..field::CRC + 4) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
}

/// `Extend` by reference, as postcard takes its writer by value.
struct Appended<'o, E>(&'o mut E);

impl<E: Extend<u8>> Extend<u8> for Appended<'_, E> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.0.extend(bytes);
    }
}
