//! Another list of steps over the same arena, state and weights, with inputs and outputs of its own: the steps of training.

use super::header::{Section, byte, word};

/// Bytes in front of a list's ports.
pub const LIST_BYTES: usize = 20;

/// Offsets of the fields in front of a list's ports, in bytes from the section's start: the one statement of them.
mod field {
    pub(super) const INPUTS: usize = 0;
    pub(super) const OUTPUTS: usize = 1;
    pub(super) const PORTS_LEN: usize = 4;
    pub(super) const STEP_COUNT: usize = 8;
    pub(super) const INPUT_BYTES: usize = 12;
    pub(super) const OUTPUT_BYTES: usize = 16;
}

/// Numbers in front of a list's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ListHead {
    /// Number of inputs, at most 32.
    pub inputs: u8,
    /// Number of outputs.
    pub outputs: u8,
    /// Bytes of the encoded ports.
    pub ports: u32,
    /// Number of steps.
    pub steps: u32,
    /// Bytes of all inputs.
    pub input_bytes: u32,
    /// Bytes of all outputs.
    pub output_bytes: u32,
}

impl ListHead {
    /// The bytes that stand in front of the ports, which the encoded steps follow.
    #[cfg(feature = "pack")]
    pub fn to_bytes(self) -> [u8; LIST_BYTES] {
        let mut bytes = [0; LIST_BYTES];
        let words = [
            u32::from(self.inputs) | u32::from(self.outputs) << 8,
            self.ports,
            self.steps,
            self.input_bytes,
            self.output_bytes,
        ];
        for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }
}

/// A section that is a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    bytes: &'a [u8],
    /// Of the section, from the file's start.
    offset: u32,
}

impl<'a> List<'a> {
    /// The list that lies at `place` of a whole file; `None` where it contradicts itself.
    pub(super) fn of(file: &'a [u8], place: Section) -> Option<Self> {
        let bytes = file.get(place.offset as usize..)?.get(..place.len as usize)?;
        let list = Self {
            bytes,
            offset: place.offset,
        };
        let rest = bytes.get(LIST_BYTES..)?;
        let reserved = byte(bytes, field::INPUTS + 2) | byte(bytes, field::INPUTS + 3);
        rest.get(..word(bytes, field::PORTS_LEN) as usize)?;
        (list.head().inputs <= 32 && reserved == 0).then_some(list)
    }

    /// Its numbers.
    pub(super) fn head(self) -> ListHead {
        ListHead {
            inputs: byte(self.bytes, field::INPUTS),
            outputs: byte(self.bytes, field::OUTPUTS),
            ports: word(self.bytes, field::PORTS_LEN),
            steps: word(self.bytes, field::STEP_COUNT),
            input_bytes: word(self.bytes, field::INPUT_BYTES),
            output_bytes: word(self.bytes, field::OUTPUT_BYTES),
        }
    }

    /// Where in the file its ports and its steps lie.
    pub(super) fn places(self) -> [Section; 2] {
        let (ports, first) = (self.head().ports, self.offset.saturating_add(LIST_BYTES as u32));
        let rest = (self.bytes.len() as u32).saturating_sub(LIST_BYTES as u32);
        [
            Section {
                offset: first,
                len: ports,
            },
            Section {
                offset: first.saturating_add(ports),
                len: rest.saturating_sub(ports),
            },
        ]
    }

    /// The encoded ports, and the encoded steps.
    pub(super) fn halves(self) -> [&'a [u8]; 2] {
        let rest = self.bytes.get(LIST_BYTES..).unwrap_or_default();
        let ports = self.head().ports as usize;
        let (ports, steps) = rest.split_at_checked(ports).unwrap_or_default();
        [ports, steps]
    }
}
