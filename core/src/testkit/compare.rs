//! One kernel against the scalar kernel of its operator, on a generated case.

use super::cases::{self, Form, Random};
use super::guarded::guarded_op;
use super::memory::{BROKEN, CHANNELS, Difference, GUARD, GUARD_BYTES, Places, Sizes, Workspace, assign, fill};
#[cfg(feature = "pack")]
use super::mutate::loads;
use super::mutate::{Case, CaseBed, attack, constants_len};
use super::run::run;
use super::task::Task;
use crate::cells::{Element, cast_slice};
use crate::kernels::api::candidate::{Candidate, GroupsS8, Job, JobKind, Layout, PlainS8};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::pool2d::{AvgInt, MaxInt};
use crate::kernels::table::{KernelId, KernelVisitor};
use crate::kernels::{Backend, portable};
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise;
use crate::ops::operator::Operator;
use crate::ops::pool2d::PoolInt;

/// Relative to values of order one; sums of f32 are fused on some cores.
const TOLERANCE: f32 = 1e-4;

/// `Ok(None)` for cases that the kernel does not compute.
pub(super) type Outcome = Result<Option<()>, Difference>;

pub(super) struct Bench<'w> {
    pub(super) random: Random,
    pub(super) workspace: &'w mut Workspace,
    pub(super) task: Task<'w>,
}

/// The case of a seed for the kernel that it visits.
struct CaseOf<'b, 'w> {
    bench: &'b mut Bench<'w>,
    seed: u32,
}

impl KernelVisitor for CaseOf<'_, '_> {
    type Output = Outcome;

    fn visit<K: Candidate>(self) -> Outcome {
        let Self { bench, seed } = self;
        // Conditions of the type alone: a kernel is compiled with the cases of its own job, which is most of what compiling the test kit takes.
        macro_rules! job {
            ($($kind:ident => $case:expr),* $(,)?) => {
                $(if const { matches!(K::JOB, Some(JobKind::$kind)) } {
                    return $case;
                })*
            };
        }
        job! {
            Conv2dS8 => bench.conv2d_s8::<K>(seed),
            Conv2dS8W4 => bench.conv2d_s8::<K>(seed),
            Conv2dS8Groups => bench.conv2d_s8::<K>(seed),
            Conv2dF32 => bench.conv2d_f32::<K>(seed),
            LinearSumS8 => bench.linear_sum::<K>(),
            BinaryInt => bench.binary::<K>(),
            MaxPoolInt => bench.pool::<K, MaxInt>(Job::MaxPoolInt),
            AvgPoolInt => bench.pool::<K, AvgInt>(Job::AvgPoolInt),
            SvdfS8 => bench.svdf::<K>(),
        }
        Ok(None)
    }
}

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

/// Where the weights of an f32 convolution are: behind its bias.
const WEIGHTS: usize = 4 * CHANNELS;

/// A convolution for kernel `K` and for the scalar one, whose constants are in the workspace.
pub(super) struct Stated<K: Kernel, O> {
    pub(super) step: K::Op,
    pub(super) plain: O,
    pub(super) sizes: Sizes,
}

// Functions of their own for each kernel and job, so that a case takes the stack of its own alone: boards have little.
impl Bench<'_> {
    /// The case of `seed`.
    pub(super) fn each(&mut self, kernel: KernelId, seed: u32) -> Outcome {
        // The scalar kernels are what the others are compared with; they are guarded like them.
        if kernel.backend() == Backend::Scalar && !matches!(self.task, Task::Guard(_)) {
            return Ok(None);
        }
        kernel.visit_available(CaseOf { bench: self, seed }).unwrap_or(Ok(None))
    }

    #[inline(never)]
    fn conv2d_s8<K: Candidate>(&mut self, seed: u32) -> Outcome {
        match forms(seed).find_map(|form| self.state_s8::<K>(form)) {
            Some(Stated { step, plain, sizes }) => self.against::<K, portable::conv2d::S8>(step, plain, sizes),
            None => Ok(None),
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
        let sizes = Sizes::of(op.window.output_len(), op.window.input_len(), false);
        Some(Stated { step, plain, sizes })
    }

    #[inline(never)]
    fn conv2d_f32<K: Candidate>(&mut self, seed: u32) -> Outcome {
        match forms(seed).find_map(|form| self.state_f32::<K>(form)) {
            Some(Stated { step, plain, sizes }) => self.against::<K, portable::conv2d::F32>(step, plain, sizes),
            None => Ok(None),
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
        let mut sizes = Sizes::of(op.window.output_len(), op.window.input_len(), true);
        if op.residual.is_some() {
            sizes.second = sizes.output;
        }
        Some(Stated { step, plain, sizes })
    }

    #[inline(never)]
    fn pool<K: Candidate, S: Kernel<Op = PoolInt>>(&mut self, state: fn(PoolInt) -> Job<'static>) -> Outcome {
        let op = cases::pool(&mut self.random);
        let sizes = Sizes::of(op.window.output_len(), op.window.input_len(), false);
        match K::step(&state(op)) {
            Some(step) => self.against::<K, S>(step, op, sizes),
            None => Ok(None),
        }
    }

    #[inline(never)]
    fn binary<K: Candidate>(&mut self) -> Outcome {
        let op = cases::binary(&mut self.random);
        let count = elementwise::output_len(&op.loops).unwrap_or(0) as usize;
        let sizes = Sizes::sum(count);
        match K::step(&Job::BinaryInt(op.clone())) {
            Some(step) => self.against::<K, portable::elementwise_s8_s16::Binary>(step, op, sizes),
            None => Ok(None),
        }
    }

    /// The linear form has no scalar kernel: it is compared with its definition.
    #[inline(never)]
    fn linear_sum<K: Candidate>(&mut self) -> Outcome {
        let op = cases::packed_sum(&mut self.random);
        let count = op.count as usize;
        let (a, b) = (Random::new(self.random.next()), Random::new(self.random.next()));
        let (mut left, mut right) = (a.clone(), b.clone());
        let (Some(expected), Some(step)) = (
            self.workspace.expected.0.get_mut(..count),
            K::step(&Job::LinearSumS8(op)).filter(K::supports),
        ) else {
            return Ok(None);
        };
        for y in expected {
            let [a, b] = [left.byte(), right.byte()].map(i64::from);
            let [fa, fb] = op.factors.map(i64::from);
            let sum = ((fa * a) >> 8) + ((fb * b) >> 8) + i64::from(op.offset);
            *y = (sum >> 20).clamp(-128, 127) as u8;
        }
        self.placements::<K>(step, Sizes::sum(count), [a, b])
    }

    /// The scalar kernel's outputs, then the kernel's in every placement.
    #[inline(never)]
    pub(super) fn against<K: Candidate, S: Kernel>(&mut self, op: K::Op, plain: S::Op, sizes: Sizes) -> Outcome {
        if op.check().is_err() || plain.check().is_err() || !K::supports(&op) {
            return Ok(None);
        }
        let data = [Random::new(self.random.next()), Random::new(self.random.next())];
        let Workspace {
            arena,
            plain: constants,
            expected,
            ..
        } = &mut *self.workspace;
        let places = Places::new(sizes, 0, sizes.output.next_multiple_of(16) as i64);
        let outputs = (|| {
            fill(&mut arena.0, sizes, places, &data)?;
            run::<S>(&assign(plain, sizes, places), &mut arena.0, &constants.0)?;
            let outputs = arena.0.get(places.output..)?.get(..sizes.output)?;
            expected.0.get_mut(..sizes.output)?.copy_from_slice(outputs);
            Some(())
        })();
        match outputs {
            Some(()) => self.placements::<K>(op, sizes, data),
            // Larger than the workspace.
            None => Ok(None),
        }
    }

    fn placements<K: Candidate>(&mut self, op: K::Op, sizes: Sizes, data: [Random; 2]) -> Outcome {
        let scratch = K::needs(&op).scratch as usize;
        match &mut self.task {
            Task::Compare => {}
            Task::Mutate(how, tally, guard) => {
                let case = Case { sizes, data: &data };
                let guard = guard.as_mut();
                return attack::<K>(&case, op, (*how, guard), self.workspace, &mut self.random, tally);
            }
            Task::Guard(guard) => {
                let places = sizes.apart(scratch);
                let op = assign(op, sizes, places);
                let Workspace { arena, constants, .. } = &mut *self.workspace;
                let mut bed = CaseBed {
                    case: Case { sizes, data: &data },
                    places,
                    arena: &mut arena.0,
                    constants: constants.0.get(..constants_len::<K>(&op)).ok_or(BROKEN)?,
                };
                if bed.fill().is_none() {
                    return Ok(None);
                }
                return guarded_op::<K>(&op, &mut bed, guard).map(Some).map_err(|_| BROKEN);
            }
            Task::Export(params, lens) => {
                let places = sizes.apart(scratch);
                let op = assign(op, sizes, places);
                let params = postcard::to_slice(&op, params).ok().map(|params| params.len());
                return Ok(params.map(|params| **lens = [params, constants_len::<K>(&op), places.end]));
            }
        }
        let apart = sizes.output.next_multiple_of(16) as i64;
        let near = |operand| [K::distance(&op, operand), K::in_place(&op, operand).then_some(0)];
        let over_input = near(1).map(|distance| distance.map(|distance| Places::new(sizes, scratch, distance)));
        let over_second = near(2).map(|distance| {
            let distance = distance.filter(|_| sizes.second > 0)?;
            Some(Places::over_second(sizes, scratch, distance))
        });
        let mut ran = None;
        let all = [Some(Places::new(sizes, scratch, apart))]
            .into_iter()
            .chain(over_input)
            .chain(over_second);
        for places in all.flatten() {
            let Workspace {
                arena,
                constants,
                expected,
                ..
            } = &mut *self.workspace;
            if fill(&mut arena.0, sizes, places, &data).is_none() {
                continue;
            }
            let op = assign(op.clone(), sizes, places);
            // What a packer writes, load accepts.
            #[cfg(feature = "pack")]
            loads::<K>(&op, places.end, &constants.0).map_err(|_| BROKEN)?;
            run::<K>(&op, &mut arena.0, &constants.0).ok_or(BROKEN)?;
            let found = arena
                .0
                .get(places.output..)
                .and_then(|rest| rest.get(..sizes.output))
                .ok_or(BROKEN)?;
            let expected = expected.0.get(..sizes.output).ok_or(BROKEN)?;
            if sizes.float {
                same::<f32>(found, expected, |a, b| (a - b).abs() <= TOLERANCE, f32::to_bits)
            } else {
                same::<u8>(found, expected, |a, b| a == b, u32::from)
            }?;
            let untouched = |range: core::ops::Range<usize>| {
                arena
                    .0
                    .get(range)
                    .is_some_and(|bytes| bytes.iter().all(|&b| b == GUARD))
            };
            let guards = [
                places.start - GUARD_BYTES..places.start,
                places.end..places.end + GUARD_BYTES,
            ];
            if !guards.into_iter().all(untouched) {
                return Err(BROKEN);
            }
            ran = Some(());
        }
        Ok(ran)
    }
}

/// Writes values, little-endian; `None` where they do not fit.
pub(super) fn write<T: Copy>(memory: &mut [u8], values: &[T], bytes: fn(T) -> [u8; 4]) -> Option<()> {
    let places = memory.get_mut(..4 * values.len())?.as_chunks_mut().0;
    places
        .iter_mut()
        .zip(values)
        .for_each(|(place, &value)| *place = bytes(value));
    Some(())
}

/// The first pair that differs.
fn same<T: Element>(
    found: &[u8],
    expected: &[u8],
    equal: fn(T, T) -> bool,
    bits: fn(T) -> u32,
) -> Result<(), Difference> {
    let (Some(found), Some(expected)) = (cast_slice::<T>(found), cast_slice::<T>(expected)) else {
        return Err(BROKEN);
    };
    let differs = (0..)
        .zip(found.iter().zip(expected))
        .find(|(_, (a, b))| !equal(**a, **b));
    differs.map_or(Ok(()), |(at, (&found, &expected))| {
        Err(Difference {
            at,
            found: bits(found),
            expected: bits(expected),
        })
    })
}
