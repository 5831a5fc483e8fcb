//! The memory of a case, and where its operands lie there.

use core::convert::Infallible;

use super::cases::Random;
use crate::arena::Slot;
use crate::ops::operator::Operator;

/// An output that is not the scalar kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Its index; `u32::MAX` where the kernel did not run, or wrote beside its operands.
    pub at: u32,
    /// What the kernel computed: the number, or the bits of an f32.
    pub found: u32,
    /// What the scalar kernel computed.
    pub expected: u32,
}

/// A case that did not run, or wrote beside its operands.
pub(super) const BROKEN: Difference = Difference {
    at: u32::MAX,
    found: 0,
    expected: 0,
};

const ARENA: usize = 3072;
const CONSTANTS: usize = 2304;
const PLAIN: usize = 1152;
const EXPECTED: usize = 1472;
const FLOATS: usize = 384;
pub(super) const CHANNELS: usize = 16;
/// What memory is filled with that must not change.
pub(super) const GUARD: u8 = 0x55;
pub(super) const GUARD_BYTES: usize = 16;

#[repr(C, align(16))]
pub(super) struct Aligned<const N: usize>(pub(super) [u8; N]);

/// The memory of [`compare`](super::compare()), some 10 KiB.
pub struct Workspace {
    pub(super) arena: Aligned<ARENA>,
    pub(super) constants: Aligned<CONSTANTS>,
    pub(super) plain: Aligned<PLAIN>,
    pub(super) expected: Aligned<EXPECTED>,
    pub(super) floats: [f32; FLOATS],
    pub(super) channels: [[i32; 3]; CHANNELS],
    pub(super) records: [[i32; 3]; CHANNELS],
}

impl Workspace {
    /// Memory for any case.
    pub const fn new() -> Self {
        Self {
            arena: Aligned([0; ARENA]),
            constants: Aligned([0; CONSTANTS]),
            plain: Aligned([0; PLAIN]),
            expected: Aligned([0; EXPECTED]),
            floats: [0.0; FLOATS],
            channels: [[0; 3]; CHANNELS],
            records: [[0; 3]; CHANNELS],
        }
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes of a step's operands.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) output: usize,
    pub(super) inputs: usize,
    /// Of a second operand; 0 for none, and the third slot is then scratch.
    pub(super) second: usize,
    /// Whether they hold f32, and not int8.
    pub(super) float: bool,
}

impl Sizes {
    pub(super) fn of(output: Option<u32>, input: Option<u32>, float: bool) -> Self {
        let bytes = |len: Option<u32>| len.map_or(usize::MAX / 8, |len| len as usize * if float { 4 } else { 1 });
        Self {
            output: bytes(output),
            inputs: bytes(input),
            second: 0,
            float,
        }
    }

    /// Every operand behind a guard of its own.
    pub(super) fn apart(self, scratch: usize) -> Places {
        Places::new(self, scratch, (self.output.next_multiple_of(16) + GUARD_BYTES) as i64)
    }

    /// Three tensors of `count` bytes.
    pub(super) fn sum(count: usize) -> Self {
        Self {
            output: count,
            inputs: count,
            second: count,
            float: false,
        }
    }
}

/// Where the operands lie: scratch first, then, behind a guard, output and inputs, and a guard.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) output: usize,
    pub(super) input: usize,
    pub(super) second: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Places {
    /// With the output `distance` bytes below the input.
    pub(super) fn new(sizes: Sizes, scratch: usize, distance: i64) -> Self {
        let start = scratch.next_multiple_of(16) + GUARD_BYTES;
        let gap = distance.unsigned_abs() as usize;
        let (output, input) = if distance >= 0 {
            (start, start + gap)
        } else {
            (start + gap, start)
        };
        let end = (output + sizes.output).max(input + sizes.inputs);
        Self {
            output,
            input,
            second: 0,
            start,
            end,
        }
        .with_last(sizes.second, |places| &mut places.second)
    }

    /// With the output `distance` bytes below the second operand, and the input behind both.
    pub(super) fn over_second(sizes: Sizes, scratch: usize, distance: i64) -> Self {
        let swapped = Sizes {
            inputs: sizes.second,
            second: 0,
            ..sizes
        };
        let places = Self::new(swapped, scratch, distance);
        Self {
            second: places.input,
            ..places
        }
        .with_last(sizes.inputs, |places| &mut places.input)
    }

    /// With an operand of so many bytes behind all others; with none of no bytes.
    fn with_last(mut self, bytes: usize, place: fn(&mut Self) -> &mut usize) -> Self {
        if bytes > 0 {
            let at = self.end.next_multiple_of(16);
            *place(&mut self) = at;
            self.end = at + bytes;
        }
        self
    }
}

/// The operator with its places: output, input, a second operand where there is one, then scratch.
pub(super) fn assign<O: Operator>(op: O, sizes: Sizes, places: Places) -> O::Over<Slot> {
    let third = if sizes.second > 0 { places.second } else { 0 };
    let mut offsets = [places.output, places.input, third].into_iter();
    let mut next = |_| {
        let offset = offsets.next().unwrap_or(0) as u32;
        Ok::<_, Infallible>(Slot { region: 0, offset })
    };
    match op.map(&mut next) {
        Ok(op) => op,
    }
}

/// Fills the arena with the guard's byte and the operands; `None` where they do not fit.
pub(super) fn fill(arena: &mut [u8], sizes: Sizes, places: Places, data: &[Random; 2]) -> Option<()> {
    arena.get(..places.end.checked_add(GUARD_BYTES)?)?;
    arena.fill(GUARD);
    let operands = [(places.input, sizes.inputs), (places.second, sizes.second)];
    for ((at, len), random) in operands.into_iter().zip(data) {
        let mut random = random.clone();
        let bytes = arena.get_mut(at..)?.get_mut(..len)?;
        if sizes.float {
            bytes
                .as_chunks_mut()
                .0
                .iter_mut()
                .for_each(|value| *value = random.float().to_le_bytes())
        } else {
            bytes.iter_mut().for_each(|byte| *byte = random.byte() as u8)
        }
    }
    Some(())
}
