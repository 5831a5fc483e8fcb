//! The trait of a kernel: one way of computing an operator, with its own weight layout, scratch and overlap rule.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arena::{Mem, Slot};
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::ops::fault::Fault;
use crate::ops::operator::{Needs, Operator};
use crate::ops::position::OutOfRange;

/// One way of computing an operator.
pub trait Kernel {
    /// Its parameters.
    type Op: Operator<Place = Slot, Over<Slot> = Self::Op> + Serialize + DeserializeOwned;

    /// Whether it computes the operator with these parameters, which have passed [`Operator::check`]; load refuses a step where it does not.
    fn supports(op: &Self::Op) -> bool {
        let _ = op;
        true
    }

    /// Whether it makes single rows of tensors that roll.
    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::No;

    /// The scratch and packed weights that it wants; plain arithmetic, the host calls the same function.
    fn needs(op: &Self::Op) -> Needs {
        let _ = op;
        Needs::default()
    }

    /// Allowed overlap of the output (operand 0) with operand `index` (a read one): `output.offset + distance <= operand.offset`, for the smallest such
    /// distance, in bytes, which follows from the loop order; it may be negative. `None` where they must be disjoint.
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

    /// Whether the kernel trusts anything in the weights, such as records that say where to read and write: [`Kernel::trusts`] says whether it may.
    const TRUSTS: bool = false;

    /// Fault that load reports for a step whose constants are not fit.
    const UNFIT: Fault = Fault::Weights;

    /// Whether what the kernel trusts in its constants is fit to be trusted. Load asks where there is such ([`Kernel::TRUSTS`]), after it has checked the
    /// operands. Takes instructions in proportion to the constants among them, which load has paid for by then. The answer goes by the operator's parameters
    /// and the constants alone, neither by places nor by whether an optional operand is there: load asks once for all steps that are equal but for these.
    fn trusts(op: &Self::Op, weights: &[u8]) -> bool {
        let _ = (op, weights);
        true
    }

    /// Whether it takes indices that a run is given and refuses those out of their range: [`Kernel::out_of_range`] says which.
    const INDEXED: bool = false;

    /// The index that is out of its range, where [`Kernel::run`] has refused one; nothing of the state was changed then.
    fn out_of_range(op: &Self::Op, mem: &Mem<'_>) -> Option<OutOfRange> {
        let _ = (op, mem);
        None
    }

    /// Computes the step. `None` where an index is refused, and where an operand is out of bounds, which a successful load excludes.
    fn run(op: &Self::Op, mem: &Mem<'_>) -> Option<()>;

    /// Whether its code is in pieces: [`Kernel::run_pieces`] can do with some of them. The test kit runs such kernels by pieces too, and compiled models take
    /// those of no others.
    const PIECES: bool = false;

    /// As [`Kernel::run`], by the pieces of its code whose bits are set: those that `Candidate::pieces` says. A compiled model gives the same constant to all
    /// steps of a kernel, so that the linker's optimiser sees what none of them takes.
    #[inline(always)]
    fn run_pieces(op: &Self::Op, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        let _ = pieces;
        Self::run(op, mem)
    }
}
