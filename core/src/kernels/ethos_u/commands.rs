//! The walk over a command stream: what it reads and what it writes, command by command, by the registers that hold at that time.
//!
//! A payload of Vela's (`COP1`) is words: the configuration that it is compiled for, the length of the command stream, then the stream itself. A command sets a
//! register of 16 bits, in one word, or of up to 48, in two, or starts an operation with what the registers say. Operations read and write feature maps, read
//! weights and scales, and copy bytes; each is followed to the last byte that it reaches from the start of its region. Wherever a register could be read
//! in several ways, the walk takes what reaches farthest.

use core::fmt;

use super::maps::{Extent, Map, NOWHERE, UNSET};
use super::ranges::Constants;
pub use super::why::Why;
use crate::ops::ethos_u::EthosU;

/// The memory that a stream may touch: bytes of its regions 0, 1 and 2, of which the first is only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    /// Constants.
    pub constants: u32,
    /// Scratch.
    pub scratch: u32,
    /// Fast scratch.
    pub fast: u32,
}

impl Own {
    /// Of a step.
    pub fn of<P>(op: &EthosU<P>) -> Self {
        Self {
            constants: op.constants_bytes,
            scratch: op.scratch_bytes,
            fast: op.fast_bytes,
        }
    }

    /// Whether region `region` has so many bytes, and may be written where that is asked.
    fn has(&self, region: u32, end: u64, written: bool) -> Result<(), Why> {
        let bytes = match region {
            0 if written => return Err(Why::Constants),
            0 => self.constants,
            1 => self.scratch,
            2 => self.fast,
            _ => return Err(Why::Region),
        };
        if end <= u64::from(bytes) {
            Ok(())
        } else {
            Err(Why::Outside)
        }
    }
}

/// Contents of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The configuration of the NPU that it is for, as its register `CONFIG` has it.
    pub config: Config,
    /// The version of the architecture, as the register `ID` has it.
    pub id: u32,
    /// The command stream, at a multiple of 16 bytes from the payload's start.
    pub commands: &'a [u8],
    /// The word of the payload that it begins with.
    pub first: u32,
}

/// The register `CONFIG` of an Ethos-U.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config(pub u32);

impl Config {
    /// 0 for an Ethos-U55, 1 for an U65, 2 for an U85.
    pub fn product(self) -> u32 {
        self.0 >> 28
    }

    /// Multiply-accumulates of a cycle.
    pub fn macs(self) -> u32 {
        1 << (self.0 & 15)
    }

    /// Bytes of its own memory.
    fn shram(self) -> u64 {
        u64::from(self.0 >> 8 & 255) << 10
    }

    /// Whether an NPU of this configuration runs streams for `other`: product, size, version of the stream and own memory are the same.
    pub fn runs(self, other: Self) -> bool {
        (self.0 ^ other.0) & 0xF000_FFFF == 0
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.product() {
            0 => write!(f, "ethos-u55-{}", self.macs()),
            1 => write!(f, "ethos-u65-{}", self.macs()),
            2 => write!(f, "ethos-u85-{}", self.macs()),
            product => write!(f, "Ethos-U product {product}"),
        }
    }
}

/// Why a payload is refused, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The word of the payload.
    pub word: u32,
    /// Why.
    pub why: Why,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "word {} of the command stream: {}", self.word, self.why)
    }
}

/// `COP1`.
const MAGIC: u32 = 0x3150_4F43;
/// Tags of the driver's actions.
const CONFIG: u32 = 1;
const STREAM: u32 = 2;
const NOTHING: u32 = 5;

/// Words of a payload.
struct Words<'a> {
    bytes: &'a [u8],
    /// Number of words read.
    read: u32,
}

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        self.read = self.read.saturating_add(1);
        Some(u32::from_le_bytes(*word))
    }
}

/// Reads a payload without looking at its commands.
///
/// # Errors
/// [`Why::Payload`], [`Why::Product`].
pub fn payload(bytes: &[u8]) -> Result<Payload<'_>, Refused> {
    let mut words = Words { bytes, read: 0 };
    let found = parse(&mut words);
    found.map_err(|why| Refused {
        word: words.read.saturating_sub(1),
        why,
    })
}

fn parse<'a>(words: &mut Words<'a>) -> Result<Payload<'a>, Why> {
    let next = |words: &mut Words<'a>| words.next().ok_or(Why::Payload);
    if next(words)? != MAGIC {
        return Err(Why::Payload);
    }
    let (mut config, mut stream) = (None, None);
    while !words.bytes.is_empty() {
        let tag = next(words)?;
        match (tag & 255, config, stream) {
            (NOTHING, ..) => {}
            (CONFIG, None, None) => {
                let found = Config(next(words)?);
                if found.product() > 1 {
                    return Err(Why::Product);
                }
                config = Some((found, next(words)?));
            }
            (STREAM, Some(_), None) => {
                let len = (tag >> 16 | (tag & 0xFF00) << 8) as usize * 4;
                // The address from which the NPU fetches.
                let (commands, rest) = words.bytes.split_at_checked(len).ok_or(Why::Payload)?;
                if !words.read.is_multiple_of(4) {
                    return Err(Why::Payload);
                }
                stream = Some((commands, words.read));
                words.bytes = rest;
                words.read = words.read.saturating_add((len / 4) as u32);
            }
            _ => return Err(Why::Payload),
        }
    }
    match (config, stream) {
        (Some((config, id)), Some((commands, first))) => Ok(Payload {
            config,
            id,
            commands,
            first,
        }),
        _ => Err(Why::Payload),
    }
}

/// Follows the commands of a payload. An accepted payload reads and writes nothing outside of `own` and of the NPU itself, on an NPU of the payload's
/// configuration.
///
/// # Errors
/// The first command that is refused.
pub fn walk<'a>(bytes: &'a [u8], own: &Own) -> Result<Payload<'a>, Refused> {
    let found = payload(bytes)?;
    let mut words = Words {
        bytes: found.commands,
        read: found.first,
    };
    let mut state = State::new(found.config, own);
    let mut stopped = false;
    loop {
        let word = words.read;
        let refused = |why| Err(Refused { word, why });
        let Some(command) = words.next() else {
            return if stopped { Ok(found) } else { refused(Why::Stop) };
        };
        if stopped {
            return refused(Why::Stop);
        }
        let (code, param) = (command as u16, (command >> 16) as u16);
        let done = match code {
            STOP => {
                stopped = true;
                Ok(())
            }
            // Of two words.
            0x4000..=0x43FF => match words.next() {
                Some(data) => state.set_long(code & 0x3FF, u64::from(param) << 32 | u64::from(data)),
                None => Err(Why::Command),
            },
            0x100..=0x3FF => state.set_short(code, param.into()),
            _ => state.operate(code, param),
        };
        if let Err(why) = done {
            return refused(why);
        }
    }
}

const STOP: u16 = 0;

/// Bits of the precisions: of inputs sign, size, layout and which operand is scaled; of outputs sign, size, layout, whether there is one scale, and rounding.
const INPUT_BITS: u32 = 0b11_0100_1101;
const OUTPUT_BITS: u32 = 0b1100_0001_0100_0111;
/// Bit position of the size in the precisions.
const INPUT_SIZE: u32 = 2;
const OUTPUT_SIZE: u32 = 1;

/// The operations on feature maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Convolution,
    Depthwise,
    Pooling,
    Elementwise,
}

/// Contents of the registers.
struct State<'o> {
    own: &'o Own,
    config: Config,
    input: Map,
    other: Map,
    output: Map,
    /// Rows and columns of the output, less one.
    rows: u32,
    columns: u32,
    /// Rows and columns of the window, less one, dilated.
    window: [u32; 2],
    strides: u32,
    /// Above, on the left, on the right, below.
    padding: [u32; 4],
    upscale: u32,
    broadcast: u32,
    /// Number of cores that share an operation.
    cores: usize,
    weights: Constants,
    scales: Constants,
    source: u32,
    destination: u32,
    /// Source, destination, length.
    copy: [u64; 3],
}

impl<'o> State<'o> {
    fn new(config: Config, own: &'o Own) -> Self {
        Self {
            own,
            config,
            input: Map::NOTHING,
            other: Map::NOTHING,
            output: Map::NOTHING,
            rows: UNSET,
            columns: UNSET,
            window: [UNSET; 2],
            strides: UNSET,
            padding: [UNSET; 4],
            upscale: UNSET,
            broadcast: UNSET,
            cores: 1,
            weights: Constants::NOTHING,
            scales: Constants::NOTHING,
            source: UNSET,
            destination: UNSET,
            copy: [NOWHERE; 3],
        }
    }

    /// A register of 16 bits.
    fn set_short(&mut self, code: u16, value: u32) -> Result<(), Why> {
        match code {
            0x100..=0x103 => {
                if let Some(side) = self.padding.get_mut(usize::from(code & 3)) {
                    *side = value;
                }
            }
            0x104 => self.input.depth = value,
            0x105 => self.input.precision = value,
            0x107 => self.upscale = value,
            0x10A..=0x10C => self.input.set_tile(code - 0x10A, value),
            0x10F => self.input.region = value,
            0x111 => self.columns = value,
            0x112 => self.rows = value,
            0x113 => self.output.depth = value,
            0x114 => self.output.precision = value,
            0x11A..=0x11C => self.output.set_tile(code - 0x11A, value),
            0x11F => self.output.region = value,
            0x120 => self.window[1] = value,
            0x121 => self.window[0] = value,
            0x122 => self.strides = value,
            0x123 => match (value, self.config.product()) {
                (0, _) => self.cores = 1,
                (1, 1) => self.cores = 2,
                _ => return Err(Why::Parameter),
            },
            0x128 => self.weights.region = value,
            0x129 => self.scales.region = value,
            0x130 => self.source = value,
            0x131 => self.destination = value,
            0x180 => self.broadcast = value,
            0x185 => self.other.precision = value,
            0x18A..=0x18C => self.other.set_tile(code - 0x18A, value),
            0x18F => self.other.region = value,
            // Numbers that are computed with, places in the NPU's own memory, the order of blocks, and what copies of more dimensions than one go by.
            0x109 | 0x10D | 0x115..=0x118 | 0x124..=0x127 | 0x12D | 0x12F | 0x132 | 0x133 | 0x181 | 0x189 | 0x18D => {}
            _ => return Err(Why::Command),
        }
        Ok(())
    }

    /// A register of more bits.
    fn set_long(&mut self, code: u16, value: u64) -> Result<(), Why> {
        match code {
            0x00..=0x06 => self.input.set_address(code, value),
            0x10..=0x16 => self.output.set_address(code & 15, value),
            0x80..=0x86 => self.other.set_address(code & 15, value),
            0x20 | 0x21 => self.weights.set(0, code & 1, value),
            0x22 | 0x23 => self.scales.set(0, code & 1, value),
            0x90 | 0x91 => self.weights.set(1, code & 1, value),
            0x92 | 0x93 => self.scales.set(1, code & 1, value),
            0x30..=0x32 => {
                if let Some(place) = self.copy.get_mut(usize::from(code & 3)) {
                    *place = value;
                }
            }
            // Scales, and what copies of more dimensions than one go by.
            0x24..=0x26 | 0x33 | 0x34 => {}
            _ => return Err(Why::Command),
        }
        Ok(())
    }

    fn operate(&self, code: u16, param: u16) -> Result<(), Why> {
        match (code, param) {
            (0x02, 0) => self.on_maps(Operation::Convolution),
            (0x03, 0) => self.on_maps(Operation::Depthwise),
            // Maximum, average, sum of the channels.
            (0x05, 0..=2) => self.on_maps(Operation::Pooling),
            (0x06, 0..=9) => {
                self.on_maps(Operation::Elementwise)?;
                // A leaky ReLU, an absolute value and leading zeros are of one operand.
                if (5..=7).contains(&param) {
                    Ok(())
                } else {
                    self.on_other()
                }
            }
            (0x10, 0) => self.on_bytes(),
            // Waits for copies, and for operations.
            (0x11 | 0x12, _) => Ok(()),
            (0x02 | 0x03 | 0x05 | 0x06 | 0x10, _) => Err(Why::Parameter),
            _ => Err(Why::Command),
        }
    }

    fn on_maps(&self, operation: Operation) -> Result<(), Why> {
        let output = Extent {
            height: u64::from(self.rows) + 1,
            width: u64::from(self.columns) + 1,
            depth: u64::from(self.output.depth) + 1,
        };
        let end = self.output.end(output, OUTPUT_SIZE, OUTPUT_BITS)?;
        self.own.has(self.output.region, end, true)?;
        let end = self
            .input
            .end(self.input_of(operation, output)?, INPUT_SIZE, INPUT_BITS)?;
        self.own.has(self.input.region, end, false)?;
        let wanted = match operation {
            Operation::Convolution | Operation::Depthwise => self.cores,
            Operation::Pooling | Operation::Elementwise => 0,
        };
        let inside = |region, end| self.own.has(region, end, false);
        self.weights.check(wanted, inside)?;
        self.scales.check(wanted, inside)
    }

    /// The part of the input that is read: no register says how large it is, but for its channels.
    fn input_of(&self, operation: Operation, output: Extent) -> Result<Extent, Why> {
        let own = u64::from(self.input.depth) + 1;
        let depth = match operation {
            Operation::Convolution => own,
            // Of which the NPU takes one or the other.
            _ => own.max(output.depth),
        };
        if operation == Operation::Elementwise {
            // It is not upscaled.
            return match self.upscale {
                0 => Ok(Extent { depth, ..output }),
                _ => Err(Why::Parameter),
            };
        }
        let [above, left, right, below] = self.padding;
        // As many bits as the registers have.
        if above > 127 || left > 127 || right > 255 || below > 255 || self.strides == UNSET || self.upscale > 2 {
            return Err(Why::Parameter);
        }
        // A bit of each stride comes first, more follow.
        let stride = |low: u32, high: u32| u64::from((self.strides >> low & 1) + (self.strides >> high & 7) * 2) + 1;
        let [rows, columns] = self.window.map(u64::from);
        let along = |count: u64, stride: u64, window: u64, padding: u32| {
            let last = (count - 1)
                .saturating_mul(stride)
                .saturating_add(window)
                .checked_sub(padding.into())
                .ok_or(Why::Parameter)?;
            // Upscaled twice, by repetition or with zeros between.
            Ok((if self.upscale == 0 { last } else { last / 2 }) + 1)
        };
        Ok(Extent {
            height: along(output.height, stride(1, 9), rows, above + below)?,
            width: along(output.width, stride(0, 6), columns, left + right)?,
            depth,
        })
    }

    /// The second operand of what is computed element by element; smaller than the output where it is repeated.
    fn on_other(&self) -> Result<(), Why> {
        const SCALAR: u32 = 1 << 7;
        let repeated = |bit: u32, less: u32| match self.broadcast >> bit & 1 {
            0 => u64::from(less) + 1,
            _ => 1,
        };
        if self.broadcast & !0b1100_0111 != 0 {
            return Err(Why::Parameter);
        }
        if self.broadcast & SCALAR != 0 {
            return Ok(());
        }
        let extent = Extent {
            height: repeated(0, self.rows),
            width: repeated(1, self.columns),
            depth: repeated(2, self.output.depth),
        };
        let end = self.other.end(extent, INPUT_SIZE, INPUT_BITS)?;
        self.own.has(self.other.region, end, false)
    }

    /// A copy of one dimension.
    fn on_bytes(&self) -> Result<(), Why> {
        /// The destination is the NPU's own memory.
        const INSIDE: u32 = 1 << 8;
        let [from, to, length] = self.copy;
        if length == 0 {
            return Ok(());
        }
        // An Ethos-U55 copies whole units.
        if self.config.product() == 0 && !length.is_multiple_of(16) {
            return Err(Why::Parameter);
        }
        self.own.has(self.source, from.saturating_add(length), false)?;
        let end = to.saturating_add(length);
        if self.destination != UNSET && self.destination & INSIDE != 0 {
            return match self.destination & !(INSIDE | 7) {
                0 if end <= self.config.shram() => Ok(()),
                0 => Err(Why::Outside),
                _ => Err(Why::Region),
            };
        }
        self.own.has(self.destination, end, true)
    }
}
