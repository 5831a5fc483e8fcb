//! Functions of a kernel without its type: the work on a case is compiled once, and not for each kernel.

use core::convert::Infallible;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arena::{Bounds, Mem, Operand, Slot};
use crate::fields::Fields;
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::table::check;
use crate::ops::fault::Fault;
use crate::ops::operator::{Needs, Operator, Placed};

/// Offsets of operands at marked places: a place's index, from 1, above these bits, and what its operand adds to it below.
pub(super) const MARK: u32 = 24;

/// Bytes for the parameters of any operator of a case.
pub(super) const PARAMS: usize = 192;

type VisitOperands = fn(&[u8], Needs, bool, &mut dyn FnMut(Operand)) -> Option<()>;
type Place = fn(&[u8], &mut dyn FnMut(usize, Slot) -> Slot, &mut [u8]) -> Option<usize>;

/// Runs a step of these parameters.
type Run = fn(&[u8], &Mem<'_>) -> Option<()>;

/// Functions of a kernel that take encoded parameters; `None` where these do not decode.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    needs: fn(&[u8]) -> Option<Needs>,
    visit: VisitOperands,
    /// Encodes the parameters with other places, which are given for the index of each, from 0, and what it was: their length.
    pub(super) place: Place,
    /// Runs the step.
    pub(super) run: Run,
    /// Runs the step by the pieces of the kernel's code that it takes, as a compiled model does; `None` where the code has none.
    pub(super) run_pieces: Option<Run>,
    /// Whether the step refuses an index: [`Kernel::out_of_range`].
    pub(super) refuses: fn(&[u8], &Mem<'_>) -> bool,
    /// Checks the step as load does.
    pub(super) check: fn(&[u8], &Bounds<'_>) -> Result<(), Fault>,
    /// Smallest distance of the output to an operand: [`Kernel::distance`] and [`Kernel::in_place`].
    pub(super) near: fn(&[u8], usize) -> [Option<i64>; 2],
    /// [`Candidate::varies`].
    pub(super) varies: fn(&[u8], usize) -> bool,
}

impl Functions {
    pub(super) fn of<K: Candidate>() -> Self {
        Self {
            needs: needs::<K>,
            visit: visit::<K::Op>,
            place: place::<K::Op>,
            run: run::<K>,
            run_pieces: if K::PIECES { Some(run_pieces::<K>) } else { None },
            refuses: refuses::<K>,
            check: |params, bounds| check::<K>((0, params), bounds),
            near: near::<K>,
            varies: varies::<K>,
        }
    }

    /// Visits the operands; with marked places, where so wanted.
    pub(super) fn operands(&self, params: &[u8], marked: bool, visit: &mut dyn FnMut(Operand)) -> Option<()> {
        (self.visit)(params, (self.needs)(params)?, marked, visit)
    }
}

fn decoded<O: DeserializeOwned>(params: &[u8]) -> Option<O> {
    Fields::only::<O>(params).ok()
}

#[inline(never)]
fn needs<K: Kernel>(params: &[u8]) -> Option<Needs> {
    decoded::<K::Op>(params).as_ref().map(K::needs)
}

#[inline(never)]
fn run<K: Kernel>(params: &[u8], mem: &Mem<'_>) -> Option<()> {
    K::run(decoded(params).as_ref()?, mem)
}

#[inline(never)]
fn run_pieces<K: Candidate>(params: &[u8], mem: &Mem<'_>) -> Option<()> {
    let op = decoded(params)?;
    let pieces = K::pieces(&op, mem.weights);
    K::run_pieces(&op, mem, pieces)
}

#[inline(never)]
fn refuses<K: Kernel>(params: &[u8], mem: &Mem<'_>) -> bool {
    K::INDEXED && decoded(params).is_some_and(|op| K::out_of_range(&op, mem).is_some())
}

#[inline(never)]
fn near<K: Kernel>(params: &[u8], operand: usize) -> [Option<i64>; 2] {
    match decoded::<K::Op>(params) {
        Some(op) => [K::distance(&op, operand), K::in_place(&op, operand).then_some(0)],
        None => [None; 2],
    }
}

#[inline(never)]
fn varies<K: Candidate>(params: &[u8], at: usize) -> bool {
    decoded::<K::Op>(params).is_none_or(|op| K::varies(&op, at))
}

#[inline(never)]
fn visit<O>(params: &[u8], needs: Needs, marked: bool, visit: &mut dyn FnMut(Operand)) -> Option<()>
where
    O: Operator<Place = Slot, Over<Slot> = O> + DeserializeOwned,
{
    let op = decoded::<O>(params)?;
    visit_op(op, needs, marked, visit);
    Some(())
}

/// Visits the operands of an operator; with marked places, where so wanted.
pub(super) fn visit_op<O>(op: O, needs: Needs, marked: bool, visit: &mut dyn FnMut(Operand))
where
    O: Operator<Place = Slot, Over<Slot> = O>,
{
    if !marked {
        op.operands(needs, visit);
        return;
    }
    let marks = moved(op, &mut |index, slot| Slot {
        offset: (index as u32 + 1) << MARK,
        ..slot
    });
    marks.operands(needs, visit);
}

/// The operator with other places, by their indices.
pub(super) fn moved<O>(op: O, to: &mut dyn FnMut(usize, Slot) -> Slot) -> O
where
    O: Placed<Place = Slot, Over<Slot> = O>,
{
    let mut index = 0;
    let Ok(op) = op.map(&mut |slot: Slot| {
        index += 1;
        Ok::<_, Infallible>(to(index - 1, slot))
    });
    op
}

#[inline(never)]
fn place<O>(params: &[u8], to: &mut dyn FnMut(usize, Slot) -> Slot, room: &mut [u8]) -> Option<usize>
where
    O: Placed<Place = Slot, Over<Slot> = O> + Serialize + DeserializeOwned,
{
    encode(&moved(decoded::<O>(params)?, to), room)
}

/// Encodes an operator: its length.
#[inline(never)]
pub(super) fn encode<O: Serialize>(op: &O, room: &mut [u8]) -> Option<usize> {
    postcard::to_slice(op, room).ok().map(|params| params.len())
}
