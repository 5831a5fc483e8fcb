//! The caller's bytes, viewed at planned offsets.

use core::cell::Cell;
#[cfg(feature = "rolling")]
use core::mem::MaybeUninit;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::align::ARENA_ALIGN;
use crate::cells::{Dst, Element, Src, cast_slice};
#[cfg(feature = "cores")]
use crate::groups::{Groups, Reach};
#[cfg(feature = "rolling")]
use crate::rolled::CheckedTurn;
use crate::rolled::Turning;
use crate::tensor::DType;
use crate::trusted::Trusted;

/// The most memories that a plan can spread its arena over.
pub const MAX_REGIONS: usize = 4;

/// Start of an operand. Its size follows from the step's shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slot {
    /// An arena region, [`Slot::STATE`] or [`Slot::WEIGHTS`].
    pub region: u8,
    /// Bytes from its start.
    pub offset: u32,
}

/// As derived, but inlined: every step has two or three, each of which would be returned through memory.
impl<'de> Deserialize<'de> for Slot {
    #[inline(always)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Slot", &["region", "offset"], SlotVisitor)
    }
}

struct SlotVisitor;

impl<'de> Visitor<'de> for SlotVisitor {
    type Value = Slot;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a region and an offset")
    }

    #[inline(always)]
    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Slot, A::Error> {
        let missing = || A::Error::custom("a number is missing");
        Ok(Slot {
            region: fields.next_element()?.ok_or_else(missing)?,
            offset: fields.next_element()?.ok_or_else(missing)?,
        })
    }
}

impl Slot {
    /// The state slice.
    pub const STATE: u8 = 0x80;
    /// The blob's weights, for constant operands; never written.
    pub const WEIGHTS: u8 = 0x81;
    /// Tensors of which rows alone are in the arena: the offset is the tensor's index in the section of rolled tensors.
    pub const ROLLED: u8 = 0x82;
}

/// Position of an operand: a [`Slot`] in the blob and on devices, a place of the host's own until memory is planned.
pub trait Place: Copy {
    /// A constant at `offset` of the weights.
    fn constant(offset: u32) -> Self;
}

impl Place for Slot {
    fn constant(offset: u32) -> Self {
        Self {
            region: Slot::WEIGHTS,
            offset,
        }
    }
}

/// Access of a step to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Access {
    /// Read only.
    Read,
    /// Written; every byte of it.
    Write,
    /// Read and written, as state is.
    Update,
    /// Written and read within the step, worthless before and after.
    Scratch,
}

/// One operand of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Operand<P = Slot> {
    /// Access of the step.
    pub access: Access,
    /// Position of the operand.
    pub place: P,
    /// Its bytes.
    pub bytes: u32,
    /// Alignment of its offset, in bytes.
    pub align: u32,
}

impl<P: Place> Operand<P> {
    /// `count` elements of `T` at `place`.
    pub fn of<T>(access: Access, place: P, count: u32) -> Self {
        Self {
            access,
            place,
            bytes: count.saturating_mul(size_of::<T>() as u32),
            align: size_of::<T>() as u32,
        }
    }

    /// `count` elements of `dtype` at `place`.
    pub fn of_type(dtype: DType, access: Access, place: P, count: u32) -> Self {
        let bytes = dtype.bytes() as u32;
        Self {
            access,
            place,
            bytes: count.saturating_mul(bytes),
            align: bytes,
        }
    }

    /// `count` constant elements of `T` at `offset` of the weights.
    pub fn constant<T>(offset: u32, count: u32) -> Self {
        Self::of::<T>(Access::Read, P::constant(offset), count)
    }

    /// `bytes` of scratch; aligned for any kernel.
    pub fn scratch(place: P, bytes: u32) -> Self {
        Self {
            access: Access::Scratch,
            place,
            bytes,
            align: if bytes == 0 { 1 } else { ARENA_ALIGN as u32 },
        }
    }
}

/// Rounding of f32 sums. By default after every product, in one order: the same bits on every host. A session may allow a host's kernels to fuse
/// products with their sums; devices, whose kernels do so always, keep nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Rounding {
    #[cfg(target_arch = "x86_64")]
    pub(crate) fused: bool,
}

impl Rounding {
    /// With fusing allowed or not, where kernels have the choice.
    pub(crate) fn of(fused: bool) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = fused;
        Self {
            #[cfg(target_arch = "x86_64")]
            fused,
        }
    }

    /// Whether fusing is allowed; never where kernels have no choice.
    #[cfg(feature = "accelerators")]
    pub(crate) fn is_fused(self) -> bool {
        self != Self::default()
    }
}

/// All memory that a step can reach, and how it computes.
pub struct Mem<'a> {
    pub(crate) regions: [&'a [Cell<u8>]; MAX_REGIONS],
    pub(crate) state: &'a [Cell<u8>],
    pub(crate) weights: &'a [u8],
    // Nothing, but on hosts whose kernels have a choice.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) rounding: Rounding,
    #[cfg_attr(not(feature = "rolling"), allow(dead_code))]
    pub(crate) turning: Turning<'a>,
}

impl<'a> Mem<'a> {
    /// No memory but the weights: all that there is when a model is loaded.
    pub(crate) fn of_weights(weights: &'a [u8]) -> Self {
        Self {
            regions: [&[]; MAX_REGIONS],
            state: &[],
            weights,
            rounding: Rounding::default(),
            turning: Turning::default(),
        }
    }

    /// `count` elements to read at `slot`; `None` where they are out of bounds or misaligned.
    pub fn src<T: Element>(&self, slot: Slot, count: u32) -> Option<Src<'a, T>> {
        match slot.region {
            Slot::WEIGHTS => self.weights(slot.offset, count).map(Src::from_slice),
            _ => self.cells::<T>(slot, count).and_then(Src::from_cells),
        }
    }

    /// `count` elements to write at `slot`; `None` where they are out of bounds or misaligned.
    pub fn dst<T: Element>(&self, slot: Slot, count: u32) -> Option<Dst<'a, T>> {
        self.cells::<T>(slot, count).and_then(Dst::from_cells)
    }

    /// `count` constant elements at `offset` of the weights; `None` where they are out of bounds or misaligned.
    pub fn weights<T: Element>(&self, offset: u32, count: u32) -> Option<&'a [T]> {
        let bytes = (count as usize).checked_mul(size_of::<T>())?;
        cast_slice(self.weights.get(offset as usize..)?.get(..bytes)?)
    }

    /// Row `row` of those that a turn reads of a rolled tensor: `count` elements.
    #[cfg(feature = "rolling")]
    pub(crate) fn row<T: Element>(&self, slot: Slot, row: u32, count: u32) -> Option<Src<'a, T>> {
        let bytes = (count as usize).checked_mul(size_of::<T>())?;
        Src::from_cells(self.rolled(slot.offset, row)?.get(..bytes)?)
    }

    /// The region that the first rows of those that a turn reads lie in; where in it each of them begins is written to all of `offsets`, and `bytes` of it are
    /// there.
    #[cfg(feature = "rolling")]
    pub(crate) fn rows(&self, slot: Slot, bytes: u32, offsets: &mut [MaybeUninit<u32>]) -> Option<Src<'a, i8>> {
        let (region, furthest) = self.turning.turn?.places(slot.offset, offsets)?;
        let memory = *self.regions.get(usize::from(region))?;
        let end = furthest.checked_add(bytes)? as usize;
        if end <= memory.len() {
            Src::from_cells(memory)
        } else {
            None
        }
    }

    /// The arena from row `row` on of those that a turn touches of a rolled tensor.
    #[cfg(feature = "rolling")]
    fn rolled(&self, index: u32, row: u32) -> Option<&'a [Cell<u8>]> {
        let (region, offset) = self.turning.turn?.place(index, row)?;
        self.regions.get(usize::from(region))?.get(offset as usize..)
    }

    fn cells<T: Element>(&self, slot: Slot, count: u32) -> Option<&'a [Cell<u8>]> {
        let memory = match slot.region {
            Slot::STATE => self.state,
            #[cfg(feature = "rolling")]
            Slot::ROLLED => {
                return self
                    .rolled(slot.offset, 0)?
                    .get(..(count as usize).checked_mul(size_of::<T>())?);
            }
            region => self.regions.get(usize::from(region)).copied()?,
        };
        let bytes = (count as usize).checked_mul(size_of::<T>())?;
        memory.get(slot.offset as usize..)?.get(..bytes)
    }
}

/// Sizes that operands are checked against when loading.
#[derive(Debug)]
pub struct Bounds<'a> {
    pub(crate) regions: [u32; MAX_REGIONS],
    pub(crate) state: u32,
    pub(crate) weights: &'a [u8],
    pub(crate) trusted: Trusted<'a>,
    #[cfg(feature = "cores")]
    pub(crate) groups: Groups,
    /// The turn that is checked, and the rows of each tensor that are made before it.
    #[cfg(feature = "rolling")]
    pub(crate) turn: Cell<Option<CheckedTurn<'a>>>,
}

impl<'a> Bounds<'a> {
    /// The memory that a file states, its constants, and the records of its steps.
    pub(crate) fn new(regions: [u32; MAX_REGIONS], state: u32, weights: &'a [u8], steps: &'a [u8]) -> Self {
        Self {
            regions,
            state,
            weights,
            trusted: Trusted::new(weights, steps),
            #[cfg(feature = "cores")]
            groups: Groups::new(0, None),
            #[cfg(feature = "rolling")]
            turn: Cell::new(None),
        }
    }

    /// The same for so many cores that share the memory, and for what the last of them reaches, where it is an accelerator.
    #[cfg(feature = "cores")]
    pub(crate) fn shared_by(self, cores: u8, reach: Option<Reach>) -> Self {
        Self {
            groups: Groups::new(cores, reach),
            ..self
        }
    }

    /// Whether `bytes` from `slot` lie inside their memory.
    pub(crate) fn contain(&self, slot: Slot, bytes: u32) -> bool {
        let size = match slot.region {
            Slot::STATE => self.state,
            Slot::WEIGHTS => self.weights.len() as u32,
            region => match self.regions.get(usize::from(region)) {
                Some(&size) => size,
                None => return false,
            },
        };
        // Sizes beyond 32 bits saturate near their end, whatever the arena claims to be.
        let size = size.min(u32::MAX - 64);
        slot.offset.checked_add(bytes).is_some_and(|end| end <= size)
    }
}
