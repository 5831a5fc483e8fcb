//! From version 1 to 2: the kernel set grows to 256 bits, and the cores move from a fixed field to the table of sections behind the fixed fields. All sections
//! keep their bytes, but for the metadata of the first files, which were plain.

use std::ops::Range;

use arenite::blob::{Lengths, seal};
use arenite::{Header, KernelSet, Section};

use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::self_test;

/// Where version 1 has its fields.
mod field {
    pub(super) const TARGET: usize = 12;
    pub(super) const INPUTS: usize = 13;
    pub(super) const OUTPUTS: usize = 14;
    pub(super) const STATE_RUNS: usize = 15;
    pub(super) const PORTS: usize = 24;
    pub(super) const STEPS: usize = 32;
    pub(super) const STEP_COUNT: usize = 40;
    pub(super) const META: usize = 44;
    pub(super) const WEIGHTS: usize = 52;
    pub(super) const STATE_INIT: usize = 60;
    pub(super) const ARENA: usize = 68;
    pub(super) const INPUT_BYTES: usize = 84;
    pub(super) const OUTPUT_BYTES: usize = 88;
    pub(super) const CORES: usize = 92;
    pub(super) const KERNELS: usize = 96;
    pub(super) const SELF_TEST: usize = 112;
    pub(super) const LABELS: usize = 120;
}

/// Bytes of version 1's header.
const HEADER_BYTES: usize = 128;

/// The number of cores that stands for an accelerator, whose declaration follows the steps.
const ACCELERATED: u8 = 0x82;

/// Bytes of that declaration.
const DECLARATION_BYTES: usize = 21;

/// The same model as a file of version 2.
///
/// # Errors
/// [`crate::ErrorKind::Input`] where a section lies outside of the file.
pub(super) fn to_2(file: &[u8]) -> Result<Vec<u8>> {
    let old = Old { file };
    let steps = old.word(field::STEP_COUNT)?;
    let cores = old.cores(steps as usize)?;
    let [ports, records, meta, labels, weights, self_test] = [
        field::PORTS,
        field::STEPS,
        field::META,
        field::LABELS,
        field::WEIGHTS,
        field::SELF_TEST,
    ]
    .map(|at| old.section(at));
    let (ports, records, labels) = (ports?, records?, labels?);
    let inputs = old.byte(field::INPUTS)?;
    let meta = meta?;
    let meta = match Metadata::plain(meta, inputs.into()) {
        Some(plain) => plain.encode()?,
        None => meta.to_vec(),
    };
    let (weights, self_test) = (weights?, self_test?);
    let state_runs = old.byte(field::STATE_RUNS)?;
    let state_bytes = old.word(field::STATE_INIT + 4)? as usize;
    let stored = match state_runs {
        0 => state_bytes,
        runs => 4 * usize::from(runs),
    };
    let from = old.word(field::STATE_INIT)? as usize;
    let state = old.bytes(from..from.saturating_add(stored))?;
    let mut arena = [0; arenite::MAX_REGIONS];
    for (region, bytes) in arena.iter_mut().enumerate() {
        *bytes = old.word(field::ARENA + 4 * region)?;
    }
    let mut kernels = KernelSet::EMPTY;
    for (at, word) in kernels.0.iter_mut().take(4).enumerate() {
        *word = old.word(field::KERNELS + 4 * at)?;
    }
    let mut header = Header {
        target: old.byte(field::TARGET)?,
        inputs,
        outputs: old.byte(field::OUTPUTS)?,
        step_count: steps,
        arena,
        input_bytes: old.word(field::INPUT_BYTES)?,
        output_bytes: old.word(field::OUTPUT_BYTES)?,
        kernels,
        ..Header::default()
    };
    let lengths = Lengths {
        ports: ports.len(),
        steps: records.len(),
        meta: meta.len(),
        labels: labels.len(),
        cores: cores.len(),
        tokenizer: 0,
        training: 0,
        rolling: 0,
        state_init: state_bytes,
        state_runs,
        weights: weights.len(),
    };
    let too_large = || Error::input("the model has no room for a larger header: it is 4 GiB");
    header.place(lengths).ok_or_else(too_large)?;
    let mut bytes = vec![0; header.bytes()];
    for section in [ports, records, &meta, labels, cores, state] {
        bytes.extend(section);
    }
    bytes.resize(header.weights.offset as usize, 0);
    bytes.extend(weights);
    if !self_test.is_empty() {
        bytes.resize(bytes.len().next_multiple_of(self_test::ALIGN), 0);
        header.self_test = Section {
            offset: u32::try_from(bytes.len()).map_err(|_| too_large())?,
            len: self_test.len() as u32,
        };
        bytes.extend(self_test);
        header.total = u32::try_from(bytes.len()).map_err(|_| too_large())?;
    }
    let mut head = Vec::new();
    header.write(&mut head);
    bytes[..head.len()].copy_from_slice(&head);
    seal(&mut bytes);
    Ok(bytes)
}

/// A file of version 1.
#[derive(Clone, Copy)]
struct Old<'a> {
    file: &'a [u8],
}

impl<'a> Old<'a> {
    fn bytes(self, range: Range<usize>) -> Result<&'a [u8]> {
        let outside = || Error::input("a section lies outside of the file");
        // No section begins within the header; one that is not there begins at 0 and is empty.
        let behind = |range: &Range<usize>| range.is_empty() || range.start >= HEADER_BYTES;
        let range = Some(range).filter(behind).ok_or_else(outside)?;
        self.file.get(range).ok_or_else(outside)
    }

    fn byte(self, at: usize) -> Result<u8> {
        let byte = self.file.get(at).copied();
        byte.ok_or_else(|| Error::input("the header is cut"))
    }

    fn word(self, at: usize) -> Result<u32> {
        let word = self.file.get(at..).and_then(|from| from.first_chunk());
        word.copied()
            .map(u32::from_le_bytes)
            .ok_or_else(|| Error::input("the header is cut"))
    }

    /// The section whose offset and length are at `at`.
    fn section(self, at: usize) -> Result<&'a [u8]> {
        let (offset, len) = (self.word(at)? as usize, self.word(at + 4)? as usize);
        self.bytes(offset..offset.saturating_add(len))
    }

    /// The number of cores and the steps' bytes, of which version 1 states no length; empty in a file of one core.
    fn cores(self, steps: usize) -> Result<&'a [u8]> {
        let offset = self.word(field::CORES)? as usize;
        if offset == 0 {
            return Ok(&[]);
        }
        let declared = match self.bytes(offset..offset.saturating_add(1))? {
            [ACCELERATED] => DECLARATION_BYTES,
            _ => 0,
        };
        self.bytes(offset..offset.saturating_add(1 + steps + declared))
    }
}
