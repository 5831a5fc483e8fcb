//! The memory of a case, where its operands lie there, and what they hold.

use super::functions::{Functions, MARK, PARAMS};
use super::random::Random;
use crate::arena::{Access, Operand, Slot};

/// An output that is not the reference's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Its index; `u32::MAX` where the kernel did not run, or wrote beside its operands.
    pub at: u32,
    /// The kernel's result: the byte, or the bits of an f32.
    pub found: u32,
    /// The reference's result.
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
/// Fill of memory that must not change.
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
    /// The encoded operator, its places anywhere, and behind it the same with its places.
    pub(super) params: [[u8; PARAMS]; 2],
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
            params: [[0; PARAMS]; 2],
        }
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

/// Values of an operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    /// Any bits: integers of any type.
    Bytes,
    /// Truth values: 0 and 1, and now and then another byte, which holds as well.
    Truths,
    /// Words within limits.
    Words([i32; 2]),
    /// Words of any size, each as often as its neighbours.
    Scaled,
    /// The same of 64 bits.
    LongScaled,
    /// Signed halves of words, of so many bits.
    Halves(u32),
    /// f32 from 0 to 1 in steps of an eighth: some are equal.
    Steps,
    /// f32 from -1 to 1, times this.
    Floats(f32),
    /// f32 from 0 to this.
    Positive(f32),
    /// f32 as the others, and now and then ends of the range, zeros of both signs, infinities and NaN.
    Special(f32),
    /// f32 as the others, and now and then an infinity or a NaN.
    Infinite(f32),
}

/// Special values of f32.
const SPECIAL: [f32; 8] = [
    0.0,
    -0.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
];

impl Numbers {
    fn fill(self, bytes: &mut [u8], random: &mut Random) {
        let mut words = |next: &mut dyn FnMut(&mut Random) -> u32| {
            let words = bytes.as_chunks_mut::<4>().0;
            words.iter_mut().for_each(|word| *word = next(random).to_le_bytes());
        };
        match self {
            Numbers::Words([low, high]) => {
                let count = high.wrapping_sub(low).wrapping_add(1) as u32;
                words(&mut |random| low.wrapping_add(random.below(count) as i32) as u32);
            }
            Numbers::Scaled => words(&mut Random::scaled),
            Numbers::Floats(most) => words(&mut |random| (random.float() * most).to_bits()),
            Numbers::Positive(most) => words(&mut |random| (random.float().abs() * most).to_bits()),
            Numbers::Special(most) => words(&mut |random| {
                let special = SPECIAL.get(random.below(100) as usize);
                special.copied().unwrap_or(random.float() * most).to_bits()
            }),
            Numbers::Infinite(most) => words(&mut |random| {
                let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN]
                    .get(random.below(300) as usize)
                    .copied();
                infinite.unwrap_or(random.float() * most).to_bits()
            }),
            Numbers::LongScaled => {
                for word in bytes.as_chunks_mut::<8>().0 {
                    let [low, high] = [random.next(), random.next()].map(u64::from);
                    *word = ((high << 32 | low) >> random.below(64)).to_le_bytes();
                }
            }
            Numbers::Steps => words(&mut |random| (random.below(9) as f32 / 8.0).to_bits()),
            Numbers::Halves(bits) => {
                for half in bytes.as_chunks_mut::<2>().0 {
                    let any = random.next() as i32;
                    *half = (any.checked_shr(32 - bits).unwrap_or(0) as i16).to_le_bytes();
                }
            }
            Numbers::Truths => bytes.iter_mut().for_each(|byte| {
                let other = random.byte() as u8;
                *byte = random.one_of([0, 0, 1, if other < 32 { other } else { 1 }]);
            }),
            Numbers::Bytes => bytes.iter_mut().for_each(|byte| *byte = random.byte() as u8),
        }
    }
}

/// Comparison of outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Alike {
    /// By their bits.
    Bytes,
    /// f32 that differ by no more than the first number, nor by more of the largest output than the second says.
    Floats([f32; 2]),
}

impl Alike {
    /// f32 of the same bits; any two NaN are the same.
    pub(super) const EXACT_FLOATS: Self = Self::Floats([0.0; 2]);
    /// f32 of sums in another order, or of functions: sums whose terms are of order one may cancel.
    pub(super) const NEAR_FLOATS: Self = Self::Floats([1e-6, 1e-5]);
}

/// The most operands of a case that hold something before it.
const READ: usize = 5;

/// Values of a case's operands, and expectations of its outputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// Of the operands that are read or updated and no constants, in their order.
    pub(super) numbers: [Numbers; READ],
    /// Of the numbers.
    pub(super) seed: u32,
    pub(super) alike: Alike,
    /// Whether outputs keep bytes between those that are written.
    pub(super) gaps: bool,
    /// Whether changed parameters give the same outputs on every core.
    pub(super) exact: bool,
    /// A bit for each operand that is written, in their order: whether it is compared by its bytes, for it holds no f32.
    pub(super) whole: u8,
}

impl Data {
    /// Integers.
    pub(super) fn integers(seed: u32) -> Self {
        Self {
            numbers: [Numbers::Bytes; READ],
            seed,
            alike: Alike::Bytes,
            gaps: false,
            exact: true,
            whole: 0,
        }
    }

    /// f32 from -1 to 1.
    pub(super) fn floats(seed: u32, alike: Alike) -> Self {
        Self {
            numbers: [Numbers::Floats(1.0); READ],
            alike,
            exact: false,
            ..Self::integers(seed)
        }
    }

    /// With other numbers for the operands, in order.
    pub(super) fn of(mut self, numbers: &[Numbers]) -> Self {
        self.numbers.iter_mut().zip(numbers).for_each(|(own, &of)| *own = of);
        self
    }

    /// With these of the operands that are written, in their order from 0, compared by their bytes.
    pub(super) fn by_bytes(mut self, written: &[u8]) -> Self {
        written.iter().for_each(|&index| self.whole |= 1 << (index & 7));
        self
    }

    /// Comparison of the written operand of this index.
    pub(super) fn alike_of(&self, written: usize) -> Alike {
        match self.whole >> (written & 7) & 1 {
            0 => self.alike,
            _ => Alike::Bytes,
        }
    }
}

/// The most places of an operator.
const PLACES: usize = 10;

/// A place of a step, with the operands that lie there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// Its index among the operator's places, from 0.
    place: u8,
    /// The index of its first operand.
    operand: u8,
    access: Access,
    align: u8,
    bytes: u32,
    /// Offset in the arena.
    at: u32,
}

impl Spot {
    pub(super) fn range(&self) -> core::ops::Range<usize> {
        let start = self.at as usize;
        start..start + self.bytes as usize
    }

    fn is_read(&self) -> bool {
        matches!(self.access, Access::Read | Access::Update)
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self.access, Access::Write | Access::Update)
    }
}

/// Visits the operands of a step.
pub(super) type VisitOperands<'v> = dyn FnMut(&mut dyn FnMut(Operand)) -> Option<()> + 'v;

/// Offsets of all operands of a step that are no constants.
#[derive(Clone)]
pub(super) struct Spots {
    spots: heapless::Vec<Spot, PLACES>,
    /// Behind the last one.
    pub(super) end: usize,
}

impl Spots {
    /// Each behind a guard of its own, in the order of the operands, which `operands` visits at marked places; scratch lies before all others.
    #[inline(never)]
    pub(super) fn new(operands: &mut VisitOperands<'_>) -> Option<Self> {
        let (mut spots, mut index, mut whole) = (heapless::Vec::<Spot, PLACES>::new(), 0, true);
        operands(&mut |operand: Operand| {
            let (mark, delta) = (operand.place.offset >> MARK, operand.place.offset & ((1 << MARK) - 1));
            let (bytes, place) = (delta.saturating_add(operand.bytes), mark as u8);
            if operand.place.region != Slot::WEIGHTS && place > 0 {
                match spots.iter_mut().find(|spot| spot.place + 1 == place) {
                    Some(spot) => {
                        spot.bytes = spot.bytes.max(bytes);
                        spot.align = spot.align.max(operand.align as u8);
                    }
                    None => {
                        let spot = Spot {
                            place: place - 1,
                            operand: index,
                            access: operand.access,
                            bytes,
                            align: operand.align.max(1) as u8,
                            at: 0,
                        };
                        whole &= spots.push(spot).is_ok();
                    }
                }
            }
            index += 1;
        })?;
        let mut this = Self { spots, end: 0 };
        this.arrange(|spot| spot.access == Access::Scratch)?;
        this.arrange(|spot| spot.access != Access::Scratch)?;
        whole.then_some(this)
    }

    /// Those of a kernel's step.
    pub(super) fn of(functions: &Functions, params: &[u8]) -> Option<Self> {
        Self::new(&mut |visit| functions.operands(params, true, visit))
    }

    /// Puts those that are wanted behind the others, each behind a guard.
    fn arrange(&mut self, wanted: impl Fn(&Spot) -> bool) -> Option<()> {
        for spot in self.spots.iter_mut().filter(|spot| wanted(spot)) {
            let at = self.end.checked_next_multiple_of(16)?.checked_add(GUARD_BYTES)?;
            spot.at = u32::try_from(at).ok()?;
            self.end = at.checked_add(spot.bytes as usize)?;
        }
        Some(())
    }

    /// With the output at least `distance` bytes before operand `operand`, and no more than alignment wants; `None` where that is no operand.
    #[inline(never)]
    pub(super) fn near(&self, operand: u8, distance: i64) -> Option<Self> {
        let is = |index: u8| move |spot: &&mut Spot| spot.operand == index;
        let mut this = self.clone();
        let output = *this.spots.iter_mut().find(is(0))?;
        let input = *this.spots.iter_mut().find(is(operand)).filter(|spot| spot.bytes > 0)?;
        let unit = i64::from(output.align.max(input.align));
        // Remainders of numbers below zero are below zero as well.
        let beyond = (unit - distance % unit) % unit;
        let distance = distance.checked_add(beyond)?;
        let gap = usize::try_from(distance.unsigned_abs()).ok()?;
        this.end = 0;
        this.arrange(|spot| spot.access == Access::Scratch)?;
        let start = this.end.checked_next_multiple_of(16)?.checked_add(GUARD_BYTES)?;
        let behind = start.checked_add(gap)?;
        let (to, from) = if distance >= 0 {
            (start, behind)
        } else {
            (behind, start)
        };
        for (index, at) in [(0, to), (operand, from)] {
            let spot = this.spots.iter_mut().find(is(index))?;
            spot.at = u32::try_from(at).ok()?;
            this.end = this.end.max(at.checked_add(spot.bytes as usize)?);
        }
        this.arrange(|spot| spot.access != Access::Scratch && spot.operand != 0 && spot.operand != operand)?;
        Some(this)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Spot> {
        self.spots.iter()
    }

    /// The slot of a place, by its index.
    pub(super) fn slot(&self, place: usize) -> Slot {
        let spot = self.spots.iter().find(|spot| usize::from(spot.place) == place);
        Slot {
            region: 0,
            offset: spot.map_or(0, |spot| spot.at),
        }
    }

    /// Fills the arena with the guard's byte and the operands; `None` where they do not fit.
    #[inline(never)]
    pub(super) fn fill(&self, arena: &mut [u8], data: &Data) -> Option<()> {
        arena.get(..self.end.checked_add(GUARD_BYTES)?)?;
        arena.fill(GUARD);
        let held = self.spots.iter().filter(|spot| spot.is_read());
        for ((spot, numbers), seed) in held.zip(data.numbers).zip(data.seed..) {
            numbers.fill(arena.get_mut(spot.range())?, &mut Random::new(seed));
        }
        Some(())
    }

    /// Whether nothing has been written where no operand lies.
    #[inline(never)]
    pub(super) fn are_guarded(&self, arena: &[u8]) -> bool {
        let (mut at, end) = (0, self.end + GUARD_BYTES);
        while at < end {
            // The operand that covers this byte up to the furthest, or else the next one.
            let covering = self.spots.iter().filter(|spot| spot.range().contains(&at));
            match covering.map(|spot| spot.range().end).max() {
                Some(behind) => at = behind,
                None => {
                    let starts = self.spots.iter().map(|spot| spot.range());
                    let next = starts.filter(|range| range.start > at && !range.is_empty());
                    let next = next.map(|range| range.start).min().unwrap_or(end);
                    let free = arena.get(at..next.min(end));
                    if free.is_none_or(|bytes| bytes.iter().any(|&byte| byte != GUARD)) {
                        return false;
                    }
                    at = next;
                }
            }
        }
        true
    }
}
