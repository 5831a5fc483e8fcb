//! The model file: a header of fixed offsets, the plan, metadata, and the weights in place. Specified in `docs/format.md`.
//!
//! [`Model::load`] is the one trust boundary: after it nothing in the file can make a run fail or read out of bounds.

use core::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::arena::{Bounds, MAX_REGIONS, Slot};
use crate::crc::Crc32;
use crate::error::{Fault, LoadError};
use crate::fields::Fields;
use crate::ops::table::{All, KernelId, Kernels, check_step};
use crate::tensor::DType;

/// The format version that this runtime reads and the packer writes.
pub const FORMAT_VERSION: u16 = 1;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 128;

/// Alignment of a model in memory, in bytes. Weights lie at multiples of it from the model's start.
pub const MODEL_ALIGN: usize = 16;

/// Alignment of arenas and of the state slice, in bytes.
pub const ARENA_ALIGN: usize = 16;

/// The most axes that an input or output has.
pub const MAX_RANK: usize = 8;

const MAGIC: [u8; 8] = *b"ARENITE\n";
const CRC_OFFSET: usize = 20;

/// What a blob was packed for: it chooses kernels and weight layouts. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
#[expect(missing_docs, reason = "named by their core")]
pub enum Target {
    Portable = 0,
    CortexM0 = 1,
    CortexM3 = 2,
    CortexM4 = 3,
    CortexM7 = 4,
    CortexM33 = 5,
    CortexM55 = 6,
    Riscv32imac = 7,
    Riscv64gc = 8,
    Riscv64gcv = 9,
    Aarch64 = 10,
}

impl Target {
    /// All targets, in the order of their numbers.
    pub const ALL: [Target; 11] = [
        Target::Portable,
        Target::CortexM0,
        Target::CortexM3,
        Target::CortexM4,
        Target::CortexM7,
        Target::CortexM33,
        Target::CortexM55,
        Target::Riscv32imac,
        Target::Riscv64gc,
        Target::Riscv64gcv,
        Target::Aarch64,
    ];

    /// The name that `pack --target` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Portable => "portable",
            Target::CortexM0 => "cortex-m0",
            Target::CortexM3 => "cortex-m3",
            Target::CortexM4 => "cortex-m4",
            Target::CortexM7 => "cortex-m7",
            Target::CortexM33 => "cortex-m33",
            Target::CortexM55 => "cortex-m55",
            Target::Riscv32imac => "riscv32imac",
            Target::Riscv64gc => "riscv64gc",
            Target::Riscv64gcv => "riscv64gcv",
            Target::Aarch64 => "aarch64",
        }
    }
}

/// The header's fields, decoded. Offsets count from the file's start; sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "described in docs/format.md, field by field")]
pub struct Header {
    pub target: u8,
    pub inputs: u8,
    pub outputs: u8,
    pub total: u32,
    pub crc: u32,
    pub ports: Section,
    pub steps: Section,
    pub step_count: u32,
    pub meta: Section,
    pub weights: Section,
    pub state_init: Section,
    pub arena: [u32; MAX_REGIONS],
    pub input_bytes: u32,
    pub output_bytes: u32,
    pub kernels: u128,
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Section {
    /// Bytes from the file's start.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

/// An input or output of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Port<'a> {
    /// The tensor's name in the trace.
    pub name: &'a str,
    /// Where it lies before (input) or after (output) a run.
    pub slot: Slot,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: heapless::Vec<u32, MAX_RANK>,
    /// `real = scale * (stored - zero_point)`; 0 where it is not quantised.
    pub scale: f32,
    /// See `scale`.
    pub zero_point: i32,
}

/// A checked model. It borrows the file; nothing is copied.
///
/// `K` chooses the kernels that are linked: [`All`], or the set that [`crate::include_model!`] derives from the file.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a, K: Kernels = All> {
    pub(crate) bytes: &'a [u8],
    pub(crate) header: Header,
    kernels: PhantomData<K>,
}

impl<'a> Model<'a> {
    /// Checks all of a file, with every kernel of this build linked; see [`Model::load_with`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(bytes: &'a [u8]) -> Result<Self, LoadError> {
        Self::load_with(bytes)
    }
}

impl<'a, K: Kernels> Model<'a, K> {
    /// Checks all of a file: alignment, version, checksum, every section, every step with all its operands and their overlaps,
    /// every input and output. Bytes after the file's own length are ignored, so that a flash partition can be passed whole.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_with(bytes: &'a [u8]) -> Result<Self, LoadError> {
        // All of it is compiled once; the kernels are behind one call.
        let (bytes, header) = check_file(bytes, check_step::<K>)?;
        Ok(Self {
            bytes,
            header,
            kernels: PhantomData,
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of arena that a session needs in `region`; 0 for a region that the model does not use.
    pub fn arena_bytes(&self, region: usize) -> usize {
        self.header.arena.get(region).map_or(0, |&bytes| bytes as usize)
    }

    /// Bytes of state that a session needs; 0 for a stateless model.
    pub fn state_bytes(&self) -> usize {
        self.header.state_init.len as usize
    }

    /// Input `index`.
    pub fn input(&self, index: usize) -> Option<Port<'a>> {
        if index < usize::from(self.header.inputs) {
            self.ports_from(index)?.value()
        } else {
            None
        }
    }

    /// Output `index`.
    pub fn output(&self, index: usize) -> Option<Port<'a>> {
        if index < usize::from(self.header.outputs) {
            self.ports_from(usize::from(self.header.inputs) + index)?.value()
        } else {
            None
        }
    }

    /// The metadata: postcard, written and read by the host tools alone.
    pub fn metadata(&self) -> &'a [u8] {
        section(self.bytes, self.header.meta)
    }

    /// The steps in order: a kernel's number and its parameters.
    pub fn steps(&self) -> Records<'a> {
        Records(section(self.bytes, self.header.steps))
    }

    /// The weights.
    pub fn weights(&self) -> &'a [u8] {
        section(self.bytes, self.header.weights)
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> &'a [u8] {
        section(self.bytes, self.header.state_init)
    }

    /// Where input `index` lies.
    pub(crate) fn input_place(&self, index: usize) -> Option<Place> {
        match index < usize::from(self.header.inputs) {
            true => Place::read(&mut self.ports_from(index)?),
            false => None,
        }
    }

    /// Where output `index` lies.
    pub(crate) fn output_place(&self, index: usize) -> Option<Place> {
        match index < usize::from(self.header.outputs) {
            true => Place::read(&mut self.ports_from(usize::from(self.header.inputs) + index)?),
            false => None,
        }
    }

    /// The fields of port `index` and of those after it.
    fn ports_from(&self, index: usize) -> Option<Fields<'a>> {
        let mut fields = Fields::new(section(self.bytes, self.header.ports));
        for _ in 0..index {
            Place::read(&mut fields)?;
        }
        Some(fields)
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        target_name(&self.header)
    }
}

/// [`check_step`] for a set of kernels.
type CheckStep = fn(u8, &[u8], &Bounds<'_>) -> Option<Result<(), Fault>>;

fn check_file(bytes: &[u8], check_step: CheckStep) -> Result<(&[u8], Header), LoadError> {
    if !bytes.as_ptr().addr().is_multiple_of(MODEL_ALIGN) {
        return Err(LoadError::Misaligned);
    }
    let header = Header::parse(bytes)?;
    let found = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let Some(bytes) = bytes.get(..header.total as usize) else {
        return Err(LoadError::Truncated {
            expected: header.total,
            found,
        });
    };
    let crc = checksum(bytes);
    if crc != header.crc {
        return Err(LoadError::Checksum {
            expected: header.crc,
            found: crc,
        });
    }
    check_sections(&header)?;
    let bounds = Bounds {
        regions: header.arena,
        state: header.state_init.len,
        weights: section(bytes, header.weights),
    };
    check_steps(bytes, &header, &bounds, check_step)?;
    check_ports(bytes, &header, &bounds)?;
    Ok((bytes, header))
}

fn check_sections(header: &Header) -> Result<(), LoadError> {
    let Header {
        ports,
        steps,
        meta,
        weights,
        state_init,
        total,
        ..
    } = *header;
    for section in [ports, steps, meta, weights, state_init] {
        let fits = section.offset.checked_add(section.len).is_some_and(|end| end <= total);
        if !fits || (section.len > 0 && (section.offset as usize) < HEADER_BYTES) {
            return Err(LoadError::Header);
        }
    }
    match (weights.offset as usize).is_multiple_of(MODEL_ALIGN) && header.inputs <= 32 {
        true => Ok(()),
        false => Err(LoadError::Header),
    }
}

fn check_steps(bytes: &[u8], header: &Header, bounds: &Bounds<'_>, check_step: CheckStep) -> Result<(), LoadError> {
    let mut step = 0;
    for record in Records(section(bytes, header.steps)) {
        let Some((id, params)) = record else {
            let fault = Fault::Encoding;
            return Err(LoadError::Step { step, fault });
        };
        match check_step(id, params, bounds) {
            Some(Ok(())) => {}
            Some(Err(fault)) => return Err(LoadError::Step { step, fault }),
            None => return Err(unknown_kernel(header, step, id)),
        }
        step += 1;
    }
    match step == header.step_count {
        true => Ok(()),
        false => Err(LoadError::Header),
    }
}

fn unknown_kernel(header: &Header, step: u32, id: u8) -> LoadError {
    match KernelId::from_u8(id) {
        None => LoadError::UnknownKernel { step, kernel: id },
        Some(kernel) => LoadError::Kernel {
            step,
            kernel,
            target: target_name(header),
        },
    }
}

fn check_ports(bytes: &[u8], header: &Header, bounds: &Bounds<'_>) -> Result<(), LoadError> {
    let mut fields = Fields::new(section(bytes, header.ports));
    let count = u32::from(header.inputs) + u32::from(header.outputs);
    let (mut inputs, mut outputs) = (0u32, 0u32);
    for index in 0..count {
        let wrong = LoadError::Port { port: index };
        let place = Place::read(&mut fields).ok_or(wrong)?;
        let input = index < u32::from(header.inputs);
        let constant = place.slot.region == Slot::WEIGHTS;
        let aligned = place.slot.offset.is_multiple_of(place.dtype.bytes() as u32);
        if !bounds.contain(place.slot, place.bytes) || !aligned || (input && constant) {
            return Err(wrong);
        }
        let total = if input { &mut inputs } else { &mut outputs };
        *total = total.checked_add(place.bytes).ok_or(wrong)?;
    }
    match fields.finish() && inputs == header.input_bytes && outputs == header.output_bytes {
        true => Ok(()),
        false => Err(LoadError::Header),
    }
}

fn section(bytes: &[u8], section: Section) -> &[u8] {
    let from = bytes.get(section.offset as usize..);
    from.and_then(|bytes| bytes.get(..section.len as usize))
        .unwrap_or_default()
}

/// What load and sessions need of a [`Port`], in much less code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) slot: Slot,
    /// Of all elements.
    pub(crate) bytes: u32,
    dtype: DType,
}

impl Place {
    /// Reads the fields of [`Port`].
    #[inline(never)]
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.skip_str();
        let slot = fields.value()?;
        let dtype: DType = fields.value()?;
        let bytes = fields.product(MAX_RANK as u32, dtype.bytes() as u32);
        let _: (f32, i32) = fields.value()?;
        match fields.intact() {
            true => Some(Self {
                slot,
                bytes: bytes?,
                dtype,
            }),
            false => None,
        }
    }
}

fn target_name(header: &Header) -> &'static str {
    Target::ALL
        .get(usize::from(header.target))
        .map_or("an unknown target", |target| target.name())
}

impl Port<'_> {
    /// Bytes of all elements; `None` beyond 32 bits.
    pub fn bytes(&self) -> Option<u32> {
        let element = self.dtype.bytes() as u32;
        self.shape
            .iter()
            .try_fold(element, |bytes, &extent| bytes.checked_mul(extent))
    }
}

/// Iterates over step records: `None` inside for one that does not decode, after which the iteration ends.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut fields = Fields::new(self.0);
        let record = fields.record();
        self.0 = if record.is_some() { fields.rest() } else { &[] };
        Some(record)
    }
}

impl Header {
    /// Reads the header's fields; checks magic, version and length, nothing else.
    ///
    /// # Errors
    /// [`LoadError::Truncated`], [`LoadError::NotABlob`], [`LoadError::Version`], [`LoadError::Header`].
    pub fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        let Some((head, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(LoadError::Truncated {
                expected: HEADER_BYTES as u32,
                found: bytes.len() as u32,
            });
        };
        if head.first_chunk() != Some(&MAGIC) {
            return Err(LoadError::NotABlob);
        }
        let version = half(head, 8);
        if version != FORMAT_VERSION {
            return Err(LoadError::Version {
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        if usize::from(half(head, 10)) != HEADER_BYTES || head[15] != 0 || (word(head, 16) as usize) < HEADER_BYTES {
            return Err(LoadError::Header);
        }
        let section = |at: usize| Section {
            offset: word(head, at),
            len: word(head, at + 4),
        };
        Ok(Self {
            target: head[12],
            inputs: head[13],
            outputs: head[14],
            total: word(head, 16),
            crc: word(head, CRC_OFFSET),
            ports: section(24),
            steps: section(32),
            step_count: word(head, 40),
            meta: section(44),
            weights: section(52),
            state_init: section(60),
            arena: [word(head, 68), word(head, 72), word(head, 76), word(head, 80)],
            input_bytes: word(head, 84),
            output_bytes: word(head, 88),
            kernels: kernel_set(head),
        })
    }

    /// Writes the header's fields; the inverse of [`Header::parse`].
    pub fn write(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0, &MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        put(10, &(HEADER_BYTES as u16).to_le_bytes());
        put(12, &[self.target, self.inputs, self.outputs, 0]);
        put(16, &self.total.to_le_bytes());
        put(CRC_OFFSET, &self.crc.to_le_bytes());
        for (at, section) in [
            (24, self.ports),
            (32, self.steps),
            (44, self.meta),
            (52, self.weights),
            (60, self.state_init),
        ] {
            put(at, &section.offset.to_le_bytes());
            put(at + 4, &section.len.to_le_bytes());
        }
        put(40, &self.step_count.to_le_bytes());
        for (region, bytes) in self.arena.iter().enumerate() {
            put(68 + 4 * region, &bytes.to_le_bytes());
        }
        put(84, &self.input_bytes.to_le_bytes());
        put(88, &self.output_bytes.to_le_bytes());
        put(96, &self.kernels.to_le_bytes());
        bytes
    }
}

/// The arena bytes of `region` from a file's header, for constants; 0 where this is no blob.
pub const fn arena_bytes(file: &[u8], region: usize) -> usize {
    if file.len() < HEADER_BYTES || region >= MAX_REGIONS {
        0
    } else {
        word(file, 68 + 4 * region) as usize
    }
}

/// The state bytes from a file's header, for constants; 0 where this is no blob.
pub const fn state_bytes(file: &[u8]) -> usize {
    if file.len() < HEADER_BYTES {
        0
    } else {
        word(file, 64) as usize
    }
}

/// The set of kernels that the file's steps use, from its header: bit `n` for kernel number `n`.
pub const fn kernel_set(file: &[u8]) -> u128 {
    if file.len() < HEADER_BYTES {
        return 0;
    }
    let mut set = 0;
    let mut byte = 16;
    while byte > 0 {
        byte -= 1;
        set = (set << 8) | file[96 + byte] as u128;
    }
    set
}

/// The CRC-32 over all bytes of a file but the checksum's own four.
pub fn checksum(file: &[u8]) -> u32 {
    let (before, rest) = file.split_at_checked(CRC_OFFSET).unwrap_or((file, &[]));
    let after = rest.get(4..).unwrap_or_default();
    Crc32::new().update(before).update(after).finish()
}

#[cfg(feature = "defmt")]
impl<K: Kernels> defmt::Format for Model<'_, K> {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Header {
            step_count,
            arena,
            total,
            ..
        } = self.header;
        defmt::write!(
            f,
            "model for {=str}, {} steps, arena {=[?]}, {} bytes",
            self.target_name(),
            step_count,
            arena,
            total
        );
    }
}

/// A little-endian word; 0 out of bounds, which callers exclude.
const fn word(bytes: &[u8], at: usize) -> u32 {
    if at + 4 > bytes.len() {
        return 0;
    }
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    word(bytes, at) as u16
}
