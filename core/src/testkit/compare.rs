//! One kernel against the scalar kernel of its operator, on a generated case.

use super::cases::{self, Form, Random};
use super::memory::{BROKEN, CHANNELS, Difference, GUARD, GUARD_BYTES, Places, Sizes, Workspace, assign, fill};
#[cfg(feature = "pack")]
use super::mutate::{Attack, Case, Mutations, attack, constants_len, loads};
use super::run::run;
use crate::cells::{Element, cast_slice};
use crate::kernels::kernel::Kernel;
use crate::kernels::table::KernelId;
use crate::kernels::{compact, dsp, fpu, int, mve, scalar};
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise;
use crate::ops::elementwise_int::BinaryInt;
use crate::ops::operator::Operator;
use crate::ops::packed_conv2d::{Form as Packing, PackedConv2dS8};
use crate::ops::packed_sum::PackedSumS8;
use crate::ops::pool2d::PoolInt;

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The outputs are those of the scalar kernel, wherever output and input may lie.
    Equal,
    /// The kernel does not compute this case, or it is not in this build, or nothing computes it but the kernel itself.
    NotComputed,
}

/// Relative to values of order one; sums of f32 are fused on some cores.
const TOLERANCE: f32 = 1e-4;

/// Runs `kernel` and the scalar kernel on the case of `seed`: with the output apart from the input, as close to it as the kernel allows, and in its place
/// where that is allowed.
///
/// # Errors
/// The first output that differs: by a bit for integers, by more than 1e-4 for f32.
pub fn compare(kernel: KernelId, seed: u32, workspace: &mut Workspace) -> Result<Verdict, Difference> {
    let mut bench = Bench {
        random: Random::new(seed),
        workspace,
        #[cfg(feature = "pack")]
        task: Task::Compare,
    };
    let done = bench.each(kernel, seed);
    done.map(|computed| computed.map_or(Verdict::NotComputed, |()| Verdict::Equal))
}

/// The case of `seed` with its constants and parameters changed, as [`Attack`] says: each is refused by load's checks or runs within its operands. Counts up
/// `tally`.
///
/// # Errors
/// A changed case that load accepts and that does not run, or writes beside its operands.
#[cfg(feature = "pack")]
pub fn mutate(
    kernel: KernelId,
    seed: u32,
    attack: Attack,
    tally: &mut Mutations,
    workspace: &mut Workspace,
) -> Result<(), Difference> {
    let mut bench = Bench {
        random: Random::new(seed),
        workspace,
        task: Task::Mutate(kernel, attack, tally),
    };
    bench.each(kernel, seed).map(|_| ())
}

/// A step for a blob, of [`packed`].
#[cfg(feature = "pack")]
#[derive(Debug, Clone, Copy)]
pub struct Packed<'w> {
    /// The encoded operator.
    pub params: &'w [u8],
    /// The weights.
    pub constants: &'w [u8],
    /// Bytes of arena.
    pub arena: usize,
}

/// The case of `seed` as a step of a blob; `None` where the kernel does not compute it.
#[cfg(feature = "pack")]
pub fn packed<'w>(
    kernel: KernelId,
    seed: u32,
    params: &'w mut [u8],
    workspace: &'w mut Workspace,
) -> Option<Packed<'w>> {
    let mut lens = [0; 3];
    let mut bench = Bench {
        random: Random::new(seed),
        workspace,
        task: Task::Export(params, &mut lens),
    };
    bench.each(kernel, seed).ok()??;
    let [params_len, constants_len, arena] = lens;
    Some(Packed {
        params: params.get(..params_len)?,
        constants: workspace.constants.0.get(..constants_len)?,
        arena,
    })
}

/// What is done with a case; boards only compare.
#[cfg(feature = "pack")]
enum Task<'t> {
    Compare,
    Mutate(KernelId, Attack, &'t mut Mutations),
    /// Encoded parameters; their length, the constants' and the arena's.
    Export(&'t mut [u8], &'t mut [usize; 3]),
}

/// `Ok(None)` for cases that the kernel does not compute.
type Outcome = Result<Option<()>, Difference>;

/// Packs a channel's weights and record for kernels that keep them apart.
type PackRecords = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8], &mut [[i32; 3]]) -> Option<()>;

/// Packs both into one stream.
type Pack = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<()>;

/// As [`Pack`], and gives the operator that reads it.
type PackStream = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<PackedConv2dS8>;

struct Bench<'w> {
    random: Random,
    workspace: &'w mut Workspace,
    #[cfg(feature = "pack")]
    task: Task<'w>,
}

impl Bench<'_> {
    /// The case of `seed`.
    fn each(&mut self, kernel: KernelId, seed: u32) -> Outcome {
        if !kernel.backend().available() {
            return Ok(None);
        }
        match kernel {
            KernelId::IntConv2dS8 => self.records::<int::conv2d::S8>(Form::Convolution, int::conv2d::pack),
            KernelId::IntDepthwiseS8 => self.records::<int::depthwise::S8>(Form::Depthwise, int::depthwise::pack),
            KernelId::IntDenseS8 => self.records::<int::dense::S8>(Form::Dense, int::dense::pack),
            KernelId::IntSumS8 => self.packed_sum::<int::sum::S8>(),
            KernelId::IntAddS8 => self.sum::<int::elementwise::S8>(),
            KernelId::IntAvgPoolS8 => self.pool::<int::pool2d::Average, scalar::pool2d::AvgInt>(),
            KernelId::IntMaxPoolS8 => self.pool::<int::pool2d::Max, scalar::pool2d::MaxInt>(),
            KernelId::DspConv2dS8 => {
                self.stream::<dsp::conv2d::S8>(Form::Convolution, dsp::conv2d::supports, dsp::conv2d::pack)
            }
            KernelId::DspDepthwiseS8 => {
                self.stream::<dsp::depthwise::S8>(Form::Depthwise, dsp::depthwise::supports, dsp::depthwise::pack)
            }
            KernelId::DspSumS8 => self.packed_sum::<dsp::sum::S8>(),
            KernelId::DspAvgPoolS8 => self.pool::<dsp::pool2d::Average, scalar::pool2d::AvgInt>(),
            KernelId::DspMaxPoolS8 => self.pool::<dsp::pool2d::Max, scalar::pool2d::MaxInt>(),
            KernelId::FpuConv2dF32 => {
                self.float::<fpu::conv2d::F32>(Form::Convolution, fpu::conv2d::supports, fpu::conv2d::pack)
            }
            KernelId::FpuDepthwiseF32 => {
                self.float::<fpu::depthwise::F32>(Form::Depthwise, fpu::depthwise::supports, fpu::depthwise::pack)
            }
            KernelId::MveConv2dS8 => {
                self.packed::<mve::conv2d::S8>(Form::Convolution, mve::conv2d::supports, mve::conv2d::pack)
            }
            KernelId::MveDepthwiseS8 => {
                self.packed::<mve::depthwise::S8>(Form::Depthwise, mve::depthwise::supports, mve::depthwise::pack)
            }
            KernelId::MveConv2dF32 => {
                self.float::<mve::conv2d::F32>(Form::Convolution, mve::conv2d::supports_f32, mve::conv2d::pack_f32)
            }
            KernelId::MveDepthwiseF32 => self.float::<mve::depthwise_f32::F32>(
                Form::Depthwise,
                mve::depthwise_f32::supports,
                mve::depthwise_f32::pack,
            ),
            KernelId::MveSumS8 => self.sum::<mve::elementwise::SumS8>(),
            KernelId::MveMaxPoolS8 => self.pool::<mve::pool2d::MaxS8, scalar::pool2d::MaxInt>(),
            KernelId::MveAvgPoolS8 => self.pool::<mve::pool2d::AvgS8, scalar::pool2d::AvgInt>(),
            KernelId::CompactConv2dS8 => {
                let form = match seed % 3 {
                    0 => Form::Convolution,
                    1 => Form::Depthwise,
                    _ => Form::Dense,
                };
                self.records::<compact::conv2d::S8>(form, compact::conv2d::pack)
            }
            KernelId::CompactMaxPoolS8 => self.pool::<compact::pool2d::Max, scalar::pool2d::MaxInt>(),
            KernelId::CompactAvgPoolS8 => self.pool::<compact::pool2d::Average, scalar::pool2d::AvgInt>(),
            // The scalar kernels are what the others are compared with.
            _ => Ok(None),
        }
    }

    fn records<K: Kernel<Op = Conv2dS8>>(&mut self, form: Form, pack: PackRecords) -> Outcome {
        self.conv2d_s8::<K>(form, |op, plain, channels, constants, records| {
            let mut op = *op;
            let (weights, count) = (K::needs(&op).weights as usize, channels.len());
            op.channels = weights.next_multiple_of(4) as u32;
            let records = records.get_mut(..count)?;
            pack(&op, plain, channels, constants.get_mut(..weights)?, records)?;
            write(
                constants.get_mut(op.channels as usize..)?,
                records.as_flattened(),
                i32::to_le_bytes,
            )?;
            Some(op)
        })
    }

    fn packed<K: Kernel<Op = Conv2dS8>>(&mut self, form: Form, supports: fn(&Conv2dS8) -> bool, pack: Pack) -> Outcome {
        self.conv2d_s8::<K>(form, |op, plain, channels, constants, _| {
            if !supports(op) {
                return None;
            }
            pack(op, plain, channels, constants.get_mut(..K::needs(op).weights as usize)?)?;
            Some(*op)
        })
    }

    fn stream<K: Kernel<Op = PackedConv2dS8>>(
        &mut self,
        form: Form,
        supports: fn(&Conv2dS8) -> bool,
        pack: PackStream,
    ) -> Outcome {
        self.conv2d_s8::<K>(form, |op, plain, channels, constants, _| {
            if !supports(op) {
                return None;
            }
            // As many bytes as the form takes that packing chooses: the first that it accepts.
            let forms = [Packing::Folded, Packing::Positive, Packing::Signed, Packing::General];
            forms.into_iter().find_map(|form| {
                let sizing = PackedConv2dS8 {
                    output: op.output,
                    input: op.input,
                    scratch: op.scratch,
                    weights: 0,
                    window: op.window,
                    input_zero_point: op.input_zero_point,
                    form,
                };
                pack(
                    op,
                    plain,
                    channels,
                    constants.get_mut(..K::needs(&sizing).weights as usize)?,
                )
            })
        })
    }

    /// A convolution; `prepare` packs the constants and gives the operator that reads them.
    fn conv2d_s8<K: Kernel>(
        &mut self,
        form: Form,
        prepare: impl Fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8], &mut [[i32; 3]]) -> Option<K::Op>,
    ) -> Outcome {
        let op = cases::conv2d_s8(&mut self.random, form);
        let random = &mut self.random;
        let Workspace {
            plain,
            channels,
            records,
            constants,
            ..
        } = &mut *self.workspace;
        let len = op.weights_len().map_or(usize::MAX, |len| len as usize);
        let count = usize::from(op.window.output[2]);
        let (Some(weights), Some(channels)) = (plain.0.get_mut(..len), channels.get_mut(..count)) else {
            return Ok(None);
        };
        for weights in weights.chunks_mut((len / count.max(1)).max(1)) {
            let limit = cases::limit(random);
            for weight in weights {
                *weight = (random.below(2 * limit + 1) as i32 - limit as i32) as u8;
            }
        }
        channels.fill_with(|| cases::channel(random));
        let weights: &[i8] = cast_slice(weights).unwrap_or(&[]);
        let Some(step) = prepare(&op, weights, channels, &mut constants.0, records) else {
            return Ok(None);
        };
        let mut plain_op = op;
        plain_op.channels = len.next_multiple_of(4) as u32;
        let behind = plain.0.get_mut(plain_op.channels as usize..).unwrap_or(&mut []);
        if write(behind, channels.as_flattened(), i32::to_le_bytes).is_none() {
            return Ok(None);
        }
        let sizes = Sizes::of(op.window.output_len(), op.window.input_len(), false);
        self.against::<K, scalar::conv2d::S8>(step, plain_op, sizes)
    }

    fn float<K: Kernel<Op = Conv2dF32>>(
        &mut self,
        form: Form,
        supports: fn(&Conv2dF32) -> bool,
        pack: fn(&Conv2dF32, &[f32], &mut [f32]) -> Option<()>,
    ) -> Outcome {
        let op = cases::conv2d_f32(&mut self.random, form);
        let random = &mut self.random;
        let Workspace {
            plain,
            constants,
            floats,
            ..
        } = &mut *self.workspace;
        let count = usize::from(op.window.output[2]);
        let len = op.weights_len().map_or(usize::MAX, |len| len as usize);
        let packed_len = K::needs(&op).weights as usize / 4;
        let (Some(values), true) = (floats.get_mut(..len), supports(&op)) else {
            return Ok(None);
        };
        values.fill_with(|| random.float());
        let mut bias = [0.0; CHANNELS];
        bias.fill_with(|| random.float());
        let bias = bias.get(..count).unwrap_or(&[]);
        let place = |memory: &mut [u8], weights: &[f32]| {
            write(memory, weights, f32::to_le_bytes)?;
            write(memory.get_mut(4 * weights.len()..)?, bias, f32::to_le_bytes)
        };
        let mut step = op;
        let plain_written = place(&mut plain.0, values);
        let prepared = plain_written.and_then(|()| {
            let weights: &[f32] = cast_slice(plain.0.get(..4 * len)?)?;
            let packed = floats.get_mut(..packed_len)?;
            pack(&op, weights, packed)?;
            place(&mut constants.0, packed)
        });
        if prepared.is_none() {
            return Ok(None);
        }
        let mut plain_op = op;
        (plain_op.bias, step.bias) = (op.bias.map(|_| 4 * len as u32), op.bias.map(|_| 4 * packed_len as u32));
        let sizes = Sizes::of(op.window.output_len(), op.window.input_len(), true);
        self.against::<K, scalar::conv2d::F32>(step, plain_op, sizes)
    }

    fn pool<K: Kernel<Op = PoolInt>, S: Kernel<Op = PoolInt>>(&mut self) -> Outcome {
        let op = cases::pool(&mut self.random);
        let sizes = Sizes::of(op.window.output_len(), op.window.input_len(), false);
        self.against::<K, S>(op, op, sizes)
    }

    fn sum<K: Kernel<Op = BinaryInt>>(&mut self) -> Outcome {
        let op = cases::binary(&mut self.random);
        let count = elementwise::output_len(&op.loops).unwrap_or(0) as usize;
        let sizes = Sizes::sum(count);
        self.against::<K, scalar::elementwise_int::Binary>(op.clone(), op, sizes)
    }

    /// The linear form has no scalar kernel: it is compared with its definition.
    fn packed_sum<K: Kernel<Op = PackedSumS8>>(&mut self) -> Outcome {
        let op = cases::packed_sum(&mut self.random);
        let count = op.count as usize;
        let (a, b) = (Random::new(self.random.next()), Random::new(self.random.next()));
        let (mut left, mut right) = (a.clone(), b.clone());
        let Some(expected) = self.workspace.expected.0.get_mut(..count) else {
            return Ok(None);
        };
        for y in expected {
            let [a, b] = [left.byte(), right.byte()].map(i64::from);
            let [fa, fb] = op.factors.map(i64::from);
            let sum = ((fa * a) >> 8) + ((fb * b) >> 8) + i64::from(op.offset);
            *y = (sum >> 20).clamp(-128, 127) as u8;
        }
        self.placements::<K>(op, Sizes::sum(count), [a, b])
    }

    /// The scalar kernel's outputs, then the kernel's in every placement.
    fn against<K: Kernel, S: Kernel>(&mut self, op: K::Op, plain: S::Op, sizes: Sizes) -> Outcome {
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

    fn placements<K: Kernel>(&mut self, op: K::Op, sizes: Sizes, data: [Random; 2]) -> Outcome {
        let scratch = K::needs(&op).scratch as usize;
        #[cfg(feature = "pack")]
        match &mut self.task {
            Task::Compare => {}
            Task::Mutate(kernel, how, tally) => {
                let case = Case {
                    kernel: *kernel,
                    sizes,
                    data: &data,
                };
                return attack::<K>(&case, op, *how, self.workspace, &mut self.random, tally);
            }
            Task::Export(params, lens) => {
                let places = sizes.apart(scratch);
                let op = assign(op, sizes, places);
                let params = postcard::to_slice(&op, params).ok().map(|params| params.len());
                return Ok(params.map(|params| **lens = [params, constants_len::<K>(&op), places.end]));
            }
        }
        let apart = sizes.output.next_multiple_of(16) as i64;
        let near = K::distance(&op, 1);
        let in_place = K::in_place(&op, 1).then_some(0);
        let mut ran = None;
        for distance in [Some(apart), near, in_place].into_iter().flatten() {
            let places = Places::new(sizes, scratch, distance);
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
            match sizes.float {
                true => same::<f32>(found, expected, |a, b| (a - b).abs() <= TOLERANCE, f32::to_bits),
                false => same::<u8>(found, expected, |a, b| a == b, u32::from),
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
fn write<T: Copy>(memory: &mut [u8], values: &[T], bytes: fn(T) -> [u8; 4]) -> Option<()> {
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
