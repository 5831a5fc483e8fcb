//! Generators of random valid cases, and their sources of numbers.
//!
//! A generator makes parameters and constants, and says what the operands hold. Shapes are odd, not square, and now and then of extent 1; every type,
//! attribute and mode has its turn; one multiplier and zero point of eight is at an end of its range.

use serde::Serialize;

use super::compare::{Bench, Constants, Outcome, Reference};
use super::functions::{Functions, encode};
use super::memory::Data;
use super::random::Random;
use crate::arena::Slot;
use crate::kernels::api::candidate::Candidate;
use crate::kernels::table::KernelId;
use crate::ops::ethos_u::EthosU;
use crate::ops::operator::Operator;
use crate::quant::Multiplier;
use crate::tensor::DType;

/// An operator that the kit makes cases of. A kernel of another one does not compile with the kit.
pub(super) trait Sampled: Operator<Place = Slot, Over<Slot> = Self> {
    /// The task on the case of `seed`, for a kernel of this operator.
    fn case<K: Candidate<Op = Self>>(bench: &mut Bench<'_>, seed: u32) -> Outcome;
}

/// An operator whose kernels take its constants in their plain form.
pub(super) trait Generated: Operator<Place = Slot, Over<Slot> = Self> + Serialize {
    /// Parameters, and what the operands hold; `None` where the constants have no room.
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)>;

    /// The oracle of a kernel.
    fn reference(kernel: KernelId) -> Reference<Self>;
}

/// Cases that are generated until a kernel supports one.
const TRIES: u32 = 12;

impl<O: Generated> Sampled for O {
    fn case<K: Candidate<Op = Self>>(bench: &mut Bench<'_>, _: u32) -> Outcome {
        match generated(bench, K::supports) {
            Some(data) => bench.placements(Functions::of::<K>(), data),
            None => Ok(None),
        }
    }
}

/// Commands for an NPU: no core computes them.
impl Sampled for EthosU<Slot> {
    fn case<K: Candidate<Op = Self>>(_: &mut Bench<'_>, _: u32) -> Outcome {
        Ok(None)
    }
}

/// A case that the kernel supports, its constants and parameters in the workspace; where it and the outputs of the reference have room.
#[inline(never)]
fn generated<O: Generated>(bench: &mut Bench<'_>, supports: fn(&O) -> bool) -> Option<(usize, Data)> {
    for _ in 0..TRIES {
        let mut draw = Draw {
            kernel: bench.kernel,
            random: &mut bench.random,
            constants: &mut bench.workspace.constants.0,
            used: 0,
        };
        let Some((op, data)) = O::generate(&mut draw) else {
            continue;
        };
        if op.check().is_err() || !supports(&op) {
            continue;
        }
        let len = encode(&op, &mut bench.workspace.params[0])?;
        if bench
            .expect(op, O::reference(bench.kernel), Constants::Shared, &data)
            .is_some()
        {
            return Some((len, data));
        }
    }
    None
}

/// Source of a generator: random numbers, and room for constants.
pub(super) struct Draw<'d> {
    /// The kernel that the case is for.
    pub(super) kernel: KernelId,
    pub(super) random: &'d mut Random,
    constants: &'d mut [u8],
    used: usize,
}

impl<'d> Draw<'d> {
    /// For a case without constants.
    pub(super) fn without_constants(kernel: KernelId, random: &'d mut Random) -> Self {
        Self {
            kernel,
            random,
            constants: &mut [],
            used: 0,
        }
    }

    /// So many constants of N bytes each: their offset.
    pub(super) fn constants<const N: usize>(
        &mut self,
        count: u32,
        mut next: impl FnMut(&mut Random) -> [u8; N],
    ) -> Option<u32> {
        let at = self.used.next_multiple_of(8);
        let places = self.constants.get_mut(at..)?.get_mut(..count as usize * N)?;
        for place in places.as_chunks_mut::<N>().0 {
            *place = next(self.random);
        }
        self.used = at + count as usize * N;
        Some(at as u32)
    }

    /// int8 weights: of any size, or all small.
    pub(super) fn weights(&mut self, count: u32) -> Option<u32> {
        let shift = self.random.one_of([0, 0, 2, 5]);
        self.constants(count, |random| [(random.byte() >> shift) as u8])
    }

    /// f32 from -1 to 1.
    pub(super) fn floats(&mut self, count: u32) -> Option<u32> {
        self.constants(count, |random| random.float().to_le_bytes())
    }

    /// int32 biases, now and then of any size.
    pub(super) fn biases(&mut self, count: u32) -> Option<u32> {
        let shift = self.random.one_of([18, 16, 20, 0]);
        self.constants(count, |random| (random.next() as i32 >> shift).to_le_bytes())
    }

    /// Any number of 32 bits.
    pub(super) fn next(&mut self) -> u32 {
        self.random.next()
    }

    pub(super) fn coin(&mut self) -> bool {
        self.random.coin()
    }

    /// Whether it is one time of so many.
    pub(super) fn one_in(&mut self, times: u32) -> bool {
        self.random.below(times) == 0
    }

    /// 1 to `most`, and 1 more often than others.
    pub(super) fn extent(&mut self, most: u32) -> u32 {
        if self.one_in(6) { 1 } else { 1 + self.random.below(most) }
    }

    /// An extent of some that go together: so many elements are left for it.
    pub(super) fn share(&mut self, most: u32, left: &mut u32) -> u32 {
        let extent = self.extent(most.min(*left).max(1));
        *left = left.checked_div(extent).unwrap_or(1);
        extent
    }

    /// One of a list.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        self.random.pick(choices)
    }

    /// A multiplier with one of the shifts from `low` to `high`; now and then any.
    pub(super) fn multiplier(&mut self, [low, high]: [i8; 2]) -> Multiplier {
        let shift = low + self.random.below((high - low) as u32 + 1) as i8;
        let mantissa = (1 << 30) + self.random.below(1 << 30) as i32;
        if !self.one_in(8) {
            return Multiplier { mantissa, shift };
        }
        let any = self.next() as i32;
        let wild = (any & 31) as i8 * if self.coin() { 1 } else { -1 };
        let mantissas = [mantissa, i32::MAX, -mantissa, i32::MIN, 0, 1, any];
        let shifts = [shift, shift, -31, 31, 0, wild];
        Multiplier {
            mantissa: self.pick(&mantissas).unwrap_or(mantissa),
            shift: self.pick(&shifts).unwrap_or(shift),
        }
    }

    /// A record of a channel, `[multiplier, shift]`, of sums that are mostly within their outputs; `wild`: some are at the ends of their range.
    pub(super) fn record(random: &mut Random, shift: i32, wild: bool) -> [i32; 2] {
        let mantissa = (1 << 30) + random.below(1 << 30) as i32;
        let any = random.next() as i32;
        let usual = shift - random.below(4) as i32;
        if !wild {
            return [mantissa, usual];
        }
        [
            random
                .pick(&[mantissa, mantissa, mantissa, mantissa, i32::MAX, any])
                .unwrap_or(mantissa),
            random
                .pick(&[usual, usual, usual, usual, usual, -(any & 31), any & 7])
                .unwrap_or(usual),
        ]
    }

    /// A zero point of int8, often at an end.
    pub(super) fn zero(&mut self) -> i32 {
        let any = i32::from(self.random.byte());
        self.random.one_of([any, any, -128, 127])
    }

    /// A zero point of a quantised type, now and then any number.
    pub(super) fn any_zero(&mut self, dtype: DType) -> i32 {
        let any = self.next() as i32;
        let wild = self.pick(&[any, any >> 8, i32::MIN, i32::MAX, 0]).unwrap_or(any);
        match dtype {
            _ if self.one_in(10) => wild,
            DType::U8 | DType::Bool => self.zero() + 128,
            DType::I16 => self.random.one_of([0, 0, any >> 16, 0]),
            DType::I32 => self.random.one_of([0, 0, any >> 8, any]),
            _ => self.zero(),
        }
    }

    /// Limits within a type: those of the type, or closer ones.
    pub(super) fn limits(&mut self, dtype: DType) -> [i32; 2] {
        let [low, high] = match dtype {
            DType::I8 => [-128, 127],
            DType::U8 | DType::Bool => [0, 255],
            DType::I16 => [-32768, 32767],
            _ => [i32::MIN, i32::MAX],
        };
        let bits = match dtype {
            DType::I16 => 16,
            DType::I32 => 0,
            _ => 24,
        };
        let offset = if matches!(dtype, DType::U8 | DType::Bool) {
            128
        } else {
            0
        };
        let mut near = || (self.random.next() as i32 >> bits) + offset;
        let [a, b] = [near(), near()];
        self.random
            .one_of([[low, high], [low, high], [0, high], [a.min(b), a.max(b)]])
    }

    /// Limits of f32: none, those of ReLU6, or others.
    pub(super) fn float_limits(&mut self) -> [f32; 2] {
        self.random.one_of([
            [f32::NEG_INFINITY, f32::INFINITY],
            [0.0, f32::INFINITY],
            [0.0, 6.0],
            [-0.25, 0.5],
        ])
    }

    /// A seed of the operands.
    pub(super) fn seed(&mut self) -> u32 {
        self.next() >> 8
    }
}
