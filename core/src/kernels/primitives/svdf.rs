//! int8 SVDF over a backend's fully connected kernel, which sums over the features and requantises into the state; then one pass over the state: every
//! filter's memory moves on by one, takes the newest value in, and is multiplied.
//!
//! **Constants**: those of the fully connected kernel; the biases of the units; the time weights, filter by filter. Where sums are known to be small the
//! second scale has a short form (`requantize/bounded.rs`): load looks at the biases.

use core::marker::PhantomData;

use super::requantize::bounded::Rescale;
use super::svdf_state::{Times, times};
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::arena::{Mem, Slot};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
#[cfg(any(test, packing))]
use crate::ops::operator::Placed;
use crate::ops::packed_conv2d::Form;
use crate::ops::svdf::{PackedSvdfS8, SvdfShape};
use crate::ops::window::Window2d;

/// No sum of a unit is larger: the short form of the second scale goes by it.
const MAGNITUDE: i64 = 1 << 28;

/// A kernel for fully connected layers that keeps no records of its channels apart.
pub trait Dense: Kernel {
    /// The layer in its form.
    fn of(layer: &Conv2dS8, form: Form) -> Self::Op;

    /// Requantisation form of the operator's layer; always the same for operators that do not store one.
    fn form(op: &Self::Op) -> Form {
        let _ = op;
        Form::General
    }
}

/// int8, over a kernel for fully connected layers.
#[derive(Debug)]
pub struct Over<D>(PhantomData<D>);

impl<D: Dense> Kernel for Over<D> {
    type Op = PackedSvdfS8;

    fn supports(op: &PackedSvdfS8) -> bool {
        let Some(layer) = layer(op, Slot::default()) else {
            return false;
        };
        let dense = D::of(&layer, op.form);
        D::form(&dense) == op.form
            && D::supports(&dense)
            && Rescale::new(op.multiplier, MAGNITUDE, op.zero[1].into()).is_some()
    }

    fn needs(op: &PackedSvdfS8) -> Needs {
        let Some(parts) = Parts::of::<D>(op) else {
            return Needs::UNSUPPORTED;
        };
        Needs {
            scratch: parts.newest.saturating_add(parts.filters),
            weights: parts.times.saturating_add(parts.weights),
        }
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedSvdfS8, weights: &[u8]) -> bool {
        let Some((layer, parts)) = layer(op, Slot::default()).zip(Parts::of::<D>(op)) else {
            return false;
        };
        let bias = op.weights.checked_add(parts.bias);
        let bias = bias.and_then(|at| Mem::of_weights(weights).weights::<i32>(at, op.shape.units));
        D::trusts(&D::of(&layer, op.form), weights) && bias.is_some_and(|bias| are_small(&op.shape, bias))
    }

    fn run(op: &PackedSvdfS8, mem: &Mem<'_>) -> Option<()> {
        let parts = Parts::of::<D>(op)?;
        let newest = Slot {
            offset: op.scratch.offset.checked_add(parts.newest)?,
            ..op.scratch
        };
        D::run(&D::of(&layer(op, newest)?, op.form), mem)?;
        let newest = mem.src::<i8>(newest, parts.filters)?;
        let (output, state) = (
            mem.dst::<i8>(op.output, op.outputs()?)?,
            mem.dst::<i8>(op.state, op.states()?)?,
        );
        let SvdfShape {
            batch,
            units,
            rank,
            memory,
            ..
        } = op.shape;
        let [units, rank, memory] = [units, rank, memory].map(|extent| extent as usize);
        let filters = op.shape.filters() as usize;
        let bias = mem.weights::<i32>(op.weights.checked_add(parts.bias)?, op.shape.units)?;
        let weights = mem.weights::<i8>(op.weights.checked_add(parts.times)?, parts.weights)?;
        for b in 0..batch as usize {
            times(Times {
                y: output.slice(b * units, units)?,
                state: state.slice(b * filters * memory, filters * memory)?,
                newest: newest.slice(b * filters, filters)?,
                weights,
                bias,
                rank,
                memory,
                multiplier: op.multiplier,
                zero: op.zero[1],
                magnitude: MAGNITUDE,
            })?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl<D: Dense + Candidate> Candidate for Over<D> {
    const JOB: Option<JobKind> = Some(JobKind::SvdfS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedSvdfS8<P>> {
        let (op, plain) = job.svdf_s8()?;
        if !are_small(&op.shape, plain.bias) {
            return None;
        }
        let layer = layer(&op.parameters(), Slot::default())?;
        let dense = D::step::<Slot>(&Job::Conv2dS8(layer, plain.features))?;
        Some(PackedSvdfS8 {
            form: D::form(&dense),
            ..op
        })
    }

    fn pack(job: &Job<'_>, op: &PackedSvdfS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (_, plain) = job.svdf_s8()?;
        let (parts, layer) = (Parts::of::<D>(op)?, layer(op, Slot::default())?);
        let (features, behind) = packed.split_at_mut_checked(parts.bias as usize)?;
        let (bias, times) = behind.split_at_mut_checked((parts.times - parts.bias) as usize)?;
        let dense = D::of(&layer, op.form);
        let features = features.get_mut(..D::needs(&dense).weights as usize)?;
        D::pack(&Job::Conv2dS8(layer, plain.features), &dense, features, &mut [])?;
        if bias.len() != 4 * plain.bias.len() || times.len() != plain.times.len() {
            return None;
        }
        for (place, bias) in bias.chunks_exact_mut(4).zip(plain.bias) {
            place.copy_from_slice(&bias.to_le_bytes());
        }
        for (place, &weight) in times.iter_mut().zip(plain.times) {
            *place = weight as u8;
        }
        Some(())
    }

    fn varies(op: &PackedSvdfS8, at: usize) -> bool {
        layer(op, Slot::default()).is_some_and(|layer| D::varies(&D::of(&layer, op.form), at))
    }

    fn bound(op: &PackedSvdfS8, on: &Machine) -> Option<u64> {
        let features = D::bound(&D::of(&layer(op, Slot::default())?, op.form), on)?;
        Some(features + u64::from(op.states()?))
    }
}

/// Offsets and sizes of the parts of constants and scratch.
struct Parts {
    /// Newest values of all rows.
    filters: u32,
    /// Their offset in scratch, in bytes, behind the scratch of the fully connected kernel.
    newest: u32,
    /// Offset of the biases in the constants, in bytes.
    bias: u32,
    /// Offset of the time weights in the constants, in bytes.
    times: u32,
    /// Time weights.
    weights: u32,
}

impl Parts {
    fn of<D: Dense>(op: &PackedSvdfS8) -> Option<Self> {
        let needs = D::needs(&D::of(&layer(op, Slot::default())?, op.form));
        let bias = needs.weights.checked_next_multiple_of(4)?;
        Some(Self {
            filters: op.shape.filters().checked_mul(op.shape.batch)?,
            newest: needs.scratch.checked_next_multiple_of(4)?,
            bias,
            times: bias.checked_add(op.shape.units.checked_mul(4)?)?,
            weights: op.shape.filters().checked_mul(op.shape.memory)?,
        })
    }
}

/// The fully connected layer of the features, whose output is the newest of every filter's memory. `None` where it is too large for one.
fn layer(op: &PackedSvdfS8, newest: Slot) -> Option<Conv2dS8> {
    let extent = |extent: u32| u16::try_from(extent).ok();
    let (features, filters) = (extent(op.shape.features)?, extent(op.shape.filters())?);
    Some(Conv2dS8 {
        output: newest,
        input: op.input,
        scratch: op.scratch,
        weights: op.weights,
        channels: op.weights,
        window: Window2d {
            batch: extent(op.shape.batch)?,
            input: [1, 1, features],
            output: [1, 1, filters],
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
        },
        groups: 1,
        input_zero_point: op.zero[0],
        output_zero_point: 0,
        clamp: [-128, 127],
        flags: 0,
    })
}

/// Whether no sum of a unit leaves [`MAGNITUDE`], whatever its state and time weights are.
fn are_small(shape: &SvdfShape, bias: &[i32]) -> bool {
    let products = u64::from(shape.rank)
        .saturating_mul(shape.memory.into())
        .saturating_mul(1 << 14);
    let room = (MAGNITUDE as u64).checked_sub(products);
    room.is_some_and(|room| bias.iter().all(|bias| u64::from(bias.unsigned_abs()) <= room))
}
