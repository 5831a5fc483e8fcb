//! The operators: what their parameters mean, what must hold for them, and which kernels compute them.
//!
//! An *operator* is a struct of parameters that travels in the blob ([`Operator`]); a *kernel* is one way of computing it
//! ([`Kernel`]), with its own weight layout, scratch and overlap rule. The table in [`table`] lists every kernel once; the
//! dispatch, the names, the link-time selection and the host's view of a step all come from it.

pub mod arg_max;
pub mod conv2d;
pub mod convert;
mod distance;
pub mod elementwise;
pub mod elementwise_int;
pub mod linear;
pub mod locally_connected;
pub mod lrn;
pub mod lstm;
pub mod movement;
pub mod operator;
pub mod packed_conv2d;
pub mod packed_sum;
pub mod pointwise;
pub mod pool2d;
pub mod reduce;
pub mod resize;
pub mod softmax;
pub mod svdf;
pub mod table;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arena::{Access, Bounds, Mem, Operand, Place, Slot};
use crate::error::Fault;
pub(crate) use distance::furthest_of;
pub use operator::{Needs, Operator, Placed};

/// One way of computing an operator.
pub trait Kernel {
    /// Its parameters.
    type Op: Operator<Place = Slot, Over<Slot> = Self::Op> + Serialize + DeserializeOwned;

    /// Whether it computes the operator with these parameters, which have passed [`Operator::check`]; load refuses a step where it does not.
    fn supports(op: &Self::Op) -> bool {
        let _ = op;
        true
    }

    /// The scratch and packed weights that it wants; plain arithmetic, the host calls the same function.
    fn needs(op: &Self::Op) -> Needs {
        let _ = op;
        Needs::default()
    }

    /// How the output (operand 0) may overlap operand `index` (a read one): allowed where
    /// `output.offset + distance <= operand.offset`, for the smallest such distance, which follows from the loop order; it may be
    /// negative. `None` where they must be disjoint.
    fn distance(op: &Self::Op, index: usize) -> Option<i64> {
        let _ = (op, index);
        None
    }

    /// Whether the output may be operand `index` itself, at the same place, beside what [`Kernel::distance`] allows: loops that consume a channel and not a
    /// pixel at a time.
    fn in_place(op: &Self::Op, index: usize) -> bool {
        let _ = (op, index);
        false
    }

    /// Whether what the kernel trusts in the weights, such as records that say where to read and write, is fit to be trusted. Load asks, after it has checked
    /// the operands.
    fn trusts(op: &Self::Op, weights: &[u8]) -> bool {
        let _ = (op, weights);
        true
    }

    /// Computes the step. `None` where an operand is out of bounds, which a successful load excludes.
    fn run(op: &Self::Op, mem: &Mem<'_>) -> Option<()>;
}

/// What load asks of a step's operands; implemented for every kernel, checked by one function.
pub(crate) trait Operands {
    /// [`Operator::operands`].
    fn each(&self, visit: &mut dyn FnMut(Operand));
    /// [`Kernel::distance`].
    fn distance(&self, index: usize) -> Option<i64>;
    /// [`Kernel::in_place`].
    fn in_place(&self, index: usize) -> bool;
}

/// Everything that load checks of a step's operands. They are visited anew for each one that is written, which takes less code and stack than a list.
#[inline(never)]
pub(crate) fn check_operands(step: &dyn Operands, bounds: &Bounds<'_>) -> Result<(), Fault> {
    let mut result = Ok(());
    let mut index = 0;
    step.each(&mut |operand| {
        if result.is_ok() {
            result = check_operand(&operand, bounds);
        }
        if result.is_ok() && operand.access != Access::Read {
            result = check_overlaps(step, index, &operand);
        }
        index += 1;
    });
    result
}

/// Checks the overlaps of a written operand with all others.
#[inline(never)]
fn check_overlaps(step: &dyn Operands, index: usize, operand: &Operand) -> Result<(), Fault> {
    let mut allowed = true;
    let mut other_index = 0;
    step.each(&mut |other| {
        allowed &= other_index == index
            || !overlap(operand, &other)
            || (index == 0 && other.access == Access::Read && may_overlap(step, operand, other_index, &other));
        other_index += 1;
    });
    match allowed {
        true => Ok(()),
        false => Err(Fault::Overlap),
    }
}

/// Whether the output may overlap a read operand as it does.
#[inline(never)]
fn may_overlap(step: &dyn Operands, output: &Operand, index: usize, other: &Operand) -> bool {
    let behind = i64::from(other.place.offset) - i64::from(output.place.offset);
    step.distance(index).is_some_and(|distance| distance <= behind)
        || (output.place == other.place && step.in_place(index))
}

#[inline(never)]
fn check_operand(operand: &Operand, bounds: &Bounds<'_>) -> Result<(), Fault> {
    let Operand {
        access,
        place,
        bytes,
        align,
    } = *operand;
    if !bounds.contain(place, bytes) || (place.region == Slot::WEIGHTS && access != Access::Read) {
        return Err(Fault::Bounds);
    }
    match align > 0 && place.offset.is_multiple_of(align) {
        true => Ok(()),
        false => Err(Fault::Alignment),
    }
}

/// The product of extents, `None` beyond 32 bits.
pub(crate) fn size(extents: &[u32]) -> Option<u32> {
    extents
        .iter()
        .try_fold(1u32, |product, &extent| product.checked_mul(extent))
}

/// [`size`], as load's error.
pub(crate) fn checked_size(extents: &[u32]) -> Result<u32, Fault> {
    size(extents).filter(|&bytes| bytes > 0).ok_or(Fault::Shape)
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
    pub fn of_type(dtype: crate::tensor::DType, access: Access, place: P, count: u32) -> Self {
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
            align: if bytes == 0 { 1 } else { crate::ARENA_ALIGN as u32 },
        }
    }
}

fn overlap(a: &Operand, b: &Operand) -> bool {
    a.place.region == b.place.region
        && a.bytes > 0
        && b.bytes > 0
        && a.place.offset < b.place.offset.saturating_add(b.bytes)
        && b.place.offset < a.place.offset.saturating_add(a.bytes)
}
