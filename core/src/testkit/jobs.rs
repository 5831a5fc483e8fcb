//! Cases of the jobs that several kernels can do: each packs the constants in its own layout, the reference takes them in their plain one.

use super::cases::{self, Form};
use super::compare::{Bench, Constants, Outcome, Prepared, Reference, write};
use super::functions::Functions;
use super::generate::{Draw, Sampled};
use super::memory::{Alike, CHANNELS, Data, Numbers, Workspace};
use super::sampled::binary_int;
use crate::cells::cast_slice;
use crate::kernels::api::candidate::{Candidate, GroupsS8, Job, JobKind, Layout, PlainS8};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::table::KernelId;
use crate::kernels::{Backend, reference};
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise_int::BinaryInt;
use crate::ops::low_bit::GroupsConv2dS8;
use crate::ops::operator::Operator;
use crate::ops::packed_conv2d::{PackedConv2dS8, PackedGroupsS8};
use crate::ops::packed_sum::PackedSumS8;
use crate::ops::pool2d::PoolInt;
use crate::ops::svdf::PackedSvdfS8;
use crate::tensor::DType;

/// f32 relative to values of order one; sums are fused on some cores.
const TOLERANCE: Alike = Alike::Floats([1e-4, 0.0]);

/// Forms of a convolution. A case is of the first, from its seed's on, that the kernel is meant for; where that is none, of neighbouring windows, or a layer
/// of one pixel that few kernels are for.
const FORMS: [Form; 4] = [Form::Convolution, Form::Depthwise, Form::Dense, Form::Long];

fn forms(seed: u32) -> impl Iterator<Item = Form> {
    let first = seed as usize % FORMS.len();
    let usual = FORMS.into_iter().cycle().skip(first).take(FORMS.len());
    let last = if seed & 4 == 0 {
        [Form::Alike, Form::Tiles]
    } else {
        [Form::Tiles, Form::Alike]
    };
    usual.chain([Form::Neighbours]).chain(last)
}

/// Factors of groups of weights, at most.
const FACTORS: usize = 160;

/// Offset of an f32 convolution's weights: behind its bias.
const WEIGHTS: usize = 4 * CHANNELS;

/// A step of kernel `K`, and the same operator for the reference; the constants of both are in the workspace.
pub(super) struct Stated<K: Kernel, O> {
    pub(super) step: K::Op,
    pub(super) plain: O,
}

macro_rules! jobs {
    ($($operator:ty => $case:ident;)*) => {$(
        impl Sampled for $operator {
            fn case<K: Candidate<Op = Self>>(bench: &mut Bench<'_>, seed: u32) -> Outcome {
                // The generator of the case is off the stack when the case runs.
                match bench.$case::<K>(seed) {
                    Some(case) => bench.placements(Functions::of::<K>(), case),
                    None => Ok(None),
                }
            }
        }
    )*};
}
jobs! {
    Conv2dS8 => conv2d_s8;
    GroupsConv2dS8 => conv2d_s8;
    PackedConv2dS8 => conv2d_s8;
    PackedGroupsS8 => conv2d_s8;
    Conv2dF32 => conv2d_f32;
    PackedSumS8 => linear_sum;
    BinaryInt => binary;
    PoolInt => pool;
    PackedSvdfS8 => svdf;
}

// Functions of their own for each kernel and job, so that a case takes the stack of its own alone: boards have little.
impl Bench<'_> {
    #[inline(never)]
    fn conv2d_s8<K: Candidate>(&mut self, seed: u32) -> Prepared {
        match forms(seed).find_map(|form| self.state_s8::<K>(form)) {
            Some(Stated { step, plain }) => {
                let data = self.integers();
                self.against::<K, _>(&step, plain, reference::conv2d::s8, Constants::Plain, &data)
            }
            None => None,
        }
    }

    #[inline(never)]
    fn state_s8<K: Candidate>(&mut self, form: Form) -> Option<Stated<K, Conv2dS8>> {
        let op = cases::conv2d_s8(&mut self.random, form);
        let of_groups = const { matches!(K::JOB, Some(JobKind::Conv2dS8Groups)) };
        let of_four_bits = const { matches!(K::JOB, Some(JobKind::Conv2dS8W4 | JobKind::Conv2dS8Groups)) };
        let random = &mut self.random;
        let Workspace {
            plain,
            channels,
            records,
            constants,
            ..
        } = &mut *self.workspace;
        let (len, count) = (op.weights_len()? as usize, usize::from(op.window.output[2]));
        let at = len.next_multiple_of(4);
        let (weights, behind) = plain.0.split_at_mut_checked(at)?;
        let (weights, channels, records) = (
            weights.get_mut(..len)?,
            channels.get_mut(..count)?,
            records.get_mut(..count)?,
        );
        for weights in weights.chunks_mut((len / count.max(1)).max(1)) {
            let limit = if of_four_bits {
                cases::limit_of_four_bits(random)
            } else {
                cases::limit(random)
            };
            for weight in weights {
                *weight = (random.below(2 * limit + 1) as i32 - limit as i32) as u8;
            }
        }
        let (mut factors, filter) = ([1; FACTORS], len / count.max(1));
        let (mut share, mut used) = (filter.max(1), 0);
        if of_groups {
            (share, used) = cases::grouped(random, weights, filter, &mut factors);
            (used == count * filter.div_ceil(share)).then_some(())?;
        }
        channels.fill_with(|| cases::channel(random));
        if let (Form::Alike, Some(&[_, mantissa, shift])) = (form, channels.first()) {
            for [_, own, own_shift] in &mut *channels {
                (*own, *own_shift) = (mantissa, shift);
            }
        }
        write(behind, channels.as_flattened(), i32::to_le_bytes)?;
        let plain_s8 = PlainS8 {
            weights: cast_slice(weights)?,
            channels,
        };
        let groups = GroupsS8 {
            share: share as u32,
            factors: factors.get(..used)?,
        };
        let job = if of_groups {
            Job::Conv2dS8Groups(op, plain_s8, groups)
        } else if of_four_bits {
            Job::Conv2dS8W4(op, plain_s8)
        } else {
            Job::Conv2dS8(op, plain_s8)
        };
        let mut step = K::step(&job).filter(K::supports)?;
        let (packed, behind) = constants.0.split_at_mut_checked(K::needs(&step).weights as usize)?;
        let padding = packed.len().next_multiple_of(4) - packed.len();
        match K::layout(&step) {
            Layout::Plain => {
                packed.copy_from_slice(weights);
                records.copy_from_slice(channels);
            }
            Layout::Own | Layout::Blocks(_) => K::pack(&job, &step, packed, records)?,
        }
        let records_at = if K::RECORDS {
            write(behind.get_mut(padding..)?, records.as_flattened(), i32::to_le_bytes)?;
            packed.len() + padding
        } else {
            0
        };
        step.set_constants(0, records_at as u32);
        let mut plain = op;
        plain.set_constants(0, at as u32);
        Some(Stated { step, plain })
    }

    #[inline(never)]
    fn conv2d_f32<K: Candidate>(&mut self, seed: u32) -> Prepared {
        match forms(seed).find_map(|form| self.state_f32::<K>(form)) {
            Some(Stated { step, plain }) => {
                let data = Data::floats(self.seed(), TOLERANCE);
                let data = match self.random.below(4) {
                    // Bounds leave a NaN as it is.
                    0 => data.of(&[Numbers::Infinite(1.0); 2]),
                    _ => data,
                };
                self.against::<K, _>(&step, plain, reference::conv2d::f32, Constants::Plain, &data)
            }
            None => None,
        }
    }

    #[inline(never)]
    fn state_f32<K: Candidate>(&mut self, form: Form) -> Option<Stated<K, Conv2dF32>> {
        let mut op = cases::conv2d_f32(&mut self.random, form);
        op.bias = op.bias.map(|_| 0);
        let random = &mut self.random;
        let Workspace {
            plain,
            constants,
            floats,
            ..
        } = &mut *self.workspace;
        let weights = floats.get_mut(..op.weights_len()? as usize)?;
        weights.fill_with(|| random.float());
        let mut bias = [0.0; CHANNELS];
        bias.fill_with(|| random.float());
        let job = Job::Conv2dF32(op, weights);
        let mut step = K::step(&job).filter(K::supports)?;
        write(&mut plain.0, &bias, f32::to_le_bytes)?;
        write(plain.0.get_mut(WEIGHTS..)?, weights, f32::to_le_bytes)?;
        write(&mut constants.0, &bias, f32::to_le_bytes)?;
        let packed = constants.0.get_mut(WEIGHTS..)?;
        match K::layout(&step) {
            Layout::Plain => write(packed, weights, f32::to_le_bytes)?,
            Layout::Own | Layout::Blocks(_) => {
                let packed = packed.get_mut(..K::needs(&step).weights as usize)?;
                K::pack(&job, &step, packed, &mut [])?;
            }
        }
        let mut plain = op;
        plain.set_constants(WEIGHTS as u32, 0);
        step.set_constants(WEIGHTS as u32, 0);
        Some(Stated { step, plain })
    }

    #[inline(never)]
    fn pool<K: Candidate>(&mut self, _: u32) -> Prepared {
        let mut op = cases::pool(&mut self.random);
        if self.kernel.backend() == Backend::Scalar && self.random.coin() {
            op.dtype = DType::I16;
            op.clamp = self
                .random
                .one_of([[-32768, 32767], [-32768, 32767], [0, 32767], [-900, 20_000]]);
        }
        let (job, reference): (_, Reference<PoolInt>) = if const { matches!(K::JOB, Some(JobKind::MaxPoolInt)) } {
            (Job::MaxPoolInt(op), reference::pool2d::max_int)
        } else {
            (Job::AvgPoolInt(op), reference::pool2d::average_int)
        };
        let data = self.integers();
        match K::step(&job) {
            Some(step) => self.against::<K, _>(&step, op, reference, Constants::Plain, &data),
            None => None,
        }
    }

    #[inline(never)]
    fn binary<K: Candidate>(&mut self, _: u32) -> Prepared {
        // The portable kernel computes every type and operation.
        let op = if self.kernel == KernelId::BinaryInt && self.random.below(4) > 0 {
            binary_int(&mut Draw::without_constants(self.kernel, &mut self.random))
        } else {
            Some(cases::binary(&mut self.random))
        };
        let op = op?;
        let data = self.integers();
        let reference = reference::elementwise_s8_s16::binary;
        match K::step(&Job::BinaryInt(op.clone())) {
            Some(step) => self.against::<K, _>(&step, op, reference, Constants::Plain, &data),
            None => None,
        }
    }

    #[inline(never)]
    fn linear_sum<K: Candidate>(&mut self, _: u32) -> Prepared {
        let op = cases::packed_sum(&mut self.random);
        let data = self.integers();
        match K::step(&Job::LinearSumS8(op)) {
            Some(step) => self.against::<K, _>(&step, op, reference::add_s8_linear::s8, Constants::Plain, &data),
            None => None,
        }
    }

    /// A seed of operands.
    pub(super) fn seed(&mut self) -> u32 {
        self.random.next() >> 8
    }

    pub(super) fn integers(&mut self) -> Data {
        Data::integers(self.seed())
    }
}
