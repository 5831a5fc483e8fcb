//! Interface between packing and a kernel, beside the trait [`Kernel`]: the job it is a candidate for, the parameters it is meant for, the layout of its
//! constants, and its least cost. A kernel says so in its own file; the host's selection, the test kit, the bounds and the documents ask all kernels of the
//! table.

use core::any::TypeId;

use super::kernel::Kernel;
use crate::arena::{Place, Slot};
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise_int::BinaryInt;
use crate::ops::linear::LinearF32;
use crate::ops::operator::Placed;
use crate::ops::packed_sum::PackedSumS8;
use crate::ops::pool2d::PoolInt;
use crate::ops::svdf::PackedSvdfS8;
use crate::target::Target;

/// A kernel's operator over places `P`.
pub type Over<K, P> = <<K as Kernel>::Op as Placed>::Over<P>;

/// A job that several kernels can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// An int8 convolution, depthwise convolution or, as a convolution of one row of pixels, fully connected layer.
    Conv2dS8,
    /// One of int8 whose weights are -7 to 7, which four bits hold.
    Conv2dS8W4,
    /// One of int8 whose weights are products of such numbers and of factors that groups of them share.
    Conv2dS8Groups,
    /// The same as [`JobKind::Conv2dS8`] of f32.
    Conv2dF32,
    /// A fully connected layer of f32 whose weights are as they are, computed or constant.
    LinearF32,
    /// An int8 sum in its linear form, where it has one; it goes before the same sum as [`JobKind::BinaryInt`].
    LinearSumS8,
    /// An integer operator of two operands.
    BinaryInt,
    /// An integer maximum over windows.
    MaxPoolInt,
    /// An integer average over windows.
    AvgPoolInt,
    /// An int8 SVDF.
    SvdfS8,
}

impl JobKind {
    /// All jobs.
    pub const ALL: [JobKind; 10] = [
        JobKind::Conv2dS8,
        JobKind::Conv2dS8W4,
        JobKind::Conv2dS8Groups,
        JobKind::Conv2dF32,
        JobKind::LinearF32,
        JobKind::LinearSumS8,
        JobKind::BinaryInt,
        JobKind::MaxPoolInt,
        JobKind::AvgPoolInt,
        JobKind::SvdfS8,
    ];
}

/// The constants of an int8 convolution in their plain form.
#[derive(Debug, Clone, Copy)]
pub struct PlainS8<'a> {
    /// OHWI.
    pub weights: &'a [i8],
    /// `[bias, mantissa, shift]` of each output channel; the bias is the model's own.
    pub channels: &'a [[i32; 3]],
}

/// Groups of weights that are products of a number of -7 to 7 and a factor of their own.
#[derive(Debug, Clone, Copy)]
pub struct GroupsS8<'a> {
    /// Weights of a group, neighbours in a filter, at whose end there may be fewer.
    pub share: u32,
    /// `[out, groups of an output]`.
    pub factors: &'a [u8],
}

impl GroupsS8<'_> {
    /// The factor of weight `at` of a channel, whose filter has so many.
    pub fn of(&self, channel: usize, at: usize, filter: usize) -> Option<i8> {
        let share = self.share as usize;
        let group = at.checked_div(share).filter(|_| at < filter)?;
        let index = channel.checked_mul(filter.div_ceil(share))?.checked_add(group)?;
        i8::try_from(*self.factors.get(index)?).ok()
    }

    /// Whether all weights are such products.
    pub fn fit(&self, plain: &PlainS8<'_>) -> bool {
        let filter = plain
            .weights
            .len()
            .checked_div(plain.channels.len())
            .unwrap_or(0)
            .max(1);
        let mut filters = plain.weights.chunks(filter).enumerate();
        filters.all(|(channel, weights)| {
            weights.iter().enumerate().all(|(at, weight)| {
                let number = self.of(channel, at, filter).and_then(|factor| {
                    let whole = weight.checked_rem(factor)? == 0;
                    weight.checked_div(factor).filter(|_| whole)
                });
                number.is_some_and(|number| (-7..=7).contains(&number))
            })
        })
    }
}

/// The constants of an int8 SVDF in their plain form.
#[derive(Debug, Clone, Copy)]
pub struct PlainSvdf<'a> {
    /// `[filters, features]`, and a record for each filter: no bias, and the multiplier into the state.
    pub features: PlainS8<'a>,
    /// `[filters, memory]`.
    pub times: &'a [i8],
    /// `[units]`.
    pub bias: &'a [i32],
}

/// A job as lowering states it: the operator over places `P`, its constants in their plain form beside it.
#[derive(Debug, Clone)]
pub enum Job<'a, P = Slot> {
    /// [`JobKind::Conv2dS8`].
    Conv2dS8(Conv2dS8<P>, PlainS8<'a>),
    /// [`JobKind::Conv2dS8W4`].
    Conv2dS8W4(Conv2dS8<P>, PlainS8<'a>),
    /// [`JobKind::Conv2dS8Groups`].
    Conv2dS8Groups(Conv2dS8<P>, PlainS8<'a>, GroupsS8<'a>),
    /// [`JobKind::Conv2dF32`], with its OHWI weights. They may be large: until a kernel is to pack them, they are empty.
    Conv2dF32(Conv2dF32<P>, &'a [f32]),
    /// [`JobKind::LinearF32`].
    LinearF32(LinearF32<P>),
    /// [`JobKind::LinearSumS8`].
    LinearSumS8(PackedSumS8<P>),
    /// [`JobKind::BinaryInt`].
    BinaryInt(BinaryInt<P>),
    /// [`JobKind::MaxPoolInt`].
    MaxPoolInt(PoolInt<P>),
    /// [`JobKind::AvgPoolInt`].
    AvgPoolInt(PoolInt<P>),
    /// [`JobKind::SvdfS8`].
    SvdfS8(PackedSvdfS8<P>, PlainSvdf<'a>),
}

impl<'a, P: Place> Job<'a, P> {
    /// Its operator and plain constants, where it is [`JobKind::Conv2dS8`]; the others likewise.
    pub fn conv2d_s8(&self) -> Option<(Conv2dS8<P>, PlainS8<'a>)> {
        match self {
            Job::Conv2dS8(op, plain) => Some((*op, *plain)),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn conv2d_s8_w4(&self) -> Option<(Conv2dS8<P>, PlainS8<'a>)> {
        match self {
            Job::Conv2dS8W4(op, plain) => Some((*op, *plain)),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn conv2d_s8_groups(&self) -> Option<(Conv2dS8<P>, PlainS8<'a>, GroupsS8<'a>)> {
        match self {
            Job::Conv2dS8Groups(op, plain, groups) => Some((*op, *plain, *groups)),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn conv2d_f32(&self) -> Option<(Conv2dF32<P>, &'a [f32])> {
        match self {
            Job::Conv2dF32(op, weights) => Some((*op, weights)),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn linear_f32(&self) -> Option<LinearF32<P>> {
        match self {
            Job::LinearF32(op) => Some(*op),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn linear_sum_s8(&self) -> Option<PackedSumS8<P>> {
        match self {
            Job::LinearSumS8(op) => Some(*op),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn binary_int(&self) -> Option<BinaryInt<P>> {
        match self {
            Job::BinaryInt(op) => Some(op.clone()),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn max_pool_int(&self) -> Option<PoolInt<P>> {
        match self {
            Job::MaxPoolInt(op) => Some(*op),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn avg_pool_int(&self) -> Option<PoolInt<P>> {
        match self {
            Job::AvgPoolInt(op) => Some(*op),
            _ => None,
        }
    }

    /// See [`Job::conv2d_s8`].
    pub fn svdf_s8(&self) -> Option<(PackedSvdfS8<P>, PlainSvdf<'a>)> {
        match self {
            Job::SvdfS8(op, plain) => Some((*op, *plain)),
            _ => None,
        }
    }

    /// The job without its places.
    pub fn parameters(&self) -> Job<'a> {
        match self {
            Job::Conv2dS8(op, plain) => Job::Conv2dS8(op.parameters(), *plain),
            Job::Conv2dS8W4(op, plain) => Job::Conv2dS8W4(op.parameters(), *plain),
            Job::Conv2dS8Groups(op, plain, groups) => Job::Conv2dS8Groups(op.parameters(), *plain, *groups),
            Job::Conv2dF32(op, weights) => Job::Conv2dF32(op.parameters(), weights),
            Job::LinearF32(op) => Job::LinearF32(op.parameters()),
            Job::LinearSumS8(op) => Job::LinearSumS8(op.parameters()),
            Job::BinaryInt(op) => Job::BinaryInt(op.clone().parameters()),
            Job::MaxPoolInt(op) => Job::MaxPoolInt(op.parameters()),
            Job::AvgPoolInt(op) => Job::AvgPoolInt(op.parameters()),
            Job::SvdfS8(op, plain) => Job::SvdfS8(op.parameters(), *plain),
        }
    }
}

/// Layout in which a kernel takes the weights of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As [`Candidate::pack`] writes them.
    Own,
    /// In their plain form; so are the records of the channels.
    Plain,
    /// OHWI in blocks of so many output channels, channel innermost, which a packer can also stream: [`Candidate::pack`] writes the same.
    Blocks(usize),
}

/// Properties of the target that a bound depends on, beside the step.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Target that the model was packed for.
    pub target: Target,
    /// Whether compilers use vectors there by themselves.
    pub vectors: bool,
    /// Bits of a register of vectors whose length the instruction set leaves open; 0 of cores without.
    pub vector_bits: u32,
    /// Multiply-accumulates of the step.
    pub macs: u64,
}

/// A kernel as packing sees it.
pub trait Candidate: Kernel + Sized + 'static {
    /// The job that it is a candidate for; none for the only kernel of an operator, which lowering names.
    const JOB: Option<JobKind> = None;

    /// Whether it keeps a record of three words for each output channel beside its weights; where not, they are in them.
    const RECORDS: bool = false;

    /// Whether its sums start from a bias in memory, which is zero where the model has none.
    const BIAS: bool = false;

    /// Whether it buys speed with constants that are larger than the network's own: packing takes it only where its user lets it.
    const SPENDS_FLASH: bool = false;

    /// The number of channels that it takes at a time: where packing cuts an int8 convolution's channels down, a multiple of it costs less than one or two
    /// fewer.
    const CHANNELS: usize = 1;

    /// The step that does `job`, before its constants are anywhere. `None` where the kernel is not meant for these parameters, or cannot pack these
    /// constants; [`Kernel::supports`] is asked as well, and need not be repeated.
    fn step<P: Place>(job: &Job<'_, P>) -> Option<Over<Self, P>> {
        let _ = job;
        None
    }

    /// The kernel that computes part of a step's output, of the same operator from the same constants, where this one computes all of it alone.
    fn of_parts() -> TypeId {
        TypeId::of::<Self>()
    }

    /// Layout in which the kernel takes the weights of a step.
    fn layout(op: &Self::Op) -> Layout {
        let _ = op;
        Layout::Own
    }

    /// Packs the constants of `job`, of which `op` is the step, into `packed`, of [`Kernel::needs`]'s bytes, and, with [`Candidate::RECORDS`],
    /// `records`, as many as there are output channels. `None` where a length is wrong or these values cannot be packed; the destinations then hold anything.
    fn pack(job: &Job<'_>, op: &Self::Op, packed: &mut [u8], records: &mut [[i32; 3]]) -> Option<()> {
        let _ = (job, op, packed, records);
        Some(())
    }

    /// Pieces of the kernel's code that a step takes, a bit each, where it is known when the program is compiled: see [`Kernel::run_pieces`].
    fn pieces(op: &Self::Op, weights: &[u8]) -> u32 {
        let _ = (op, weights);
        u32::MAX
    }

    /// [`Candidate::pieces`] of a kernel whose code is in pieces, by [`Kernel::PIECES`]; all of another one's, for the test kit does not run its pieces.
    fn pieces_taken(op: &Self::Op, weights: &[u8]) -> u32 {
        if Self::PIECES {
            Self::pieces(op, weights)
        } else {
            u32::MAX
        }
    }

    /// Whether the outputs may differ from core to core when byte `at` of the weights is changed to what no packer writes, within the operands though.
    fn varies(op: &Self::Op, at: usize) -> bool {
        let _ = (op, at);
        false
    }

    /// The fewest instructions that the step's loops could take: its MACs through the inner loop, and the least requantising of every output. `None` for steps
    /// without MACs whose kernel states no other.
    fn bound(op: &Self::Op, on: &Machine) -> Option<u64> {
        let _ = op;
        (on.macs > 0).then(|| plain_loop(on))
    }
}

/// Two loads, a multiplication and an addition for each MAC; integers on a scalar core also subtract the zero point, and multiply and add at once. Where
/// compilers use vectors, they take four at a time.
const fn plain_loop(on: &Machine) -> u64 {
    if on.vectors { on.macs } else { on.macs.saturating_mul(4) }
}
