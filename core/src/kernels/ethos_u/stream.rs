//! The step that holds a command stream.

use super::commands::{Own, walk};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::ethos_u::EthosU;
use crate::ops::fault::Fault;
use crate::ops::operator::Needs;

/// Commands of an Ethos-U55 or U65.
#[derive(Debug)]
pub struct Stream;

/// The inputs lie in the scratch, wherever its commands want them.
const ANYWHERE: i64 = -(u32::MAX as i64);

impl Kernel for Stream {
    type Op = EthosU;

    const TRUSTS: bool = true;
    const UNFIT: Fault = Fault::Commands;

    fn needs(op: &EthosU) -> Needs {
        Needs {
            scratch: op.fast_bytes,
            weights: 0,
        }
    }

    fn distance(op: &EthosU, index: usize) -> Option<i64> {
        // Behind the scratch and the fast scratch.
        (2..2 + op.inputs.bytes.len()).contains(&index).then_some(ANYWHERE)
    }

    fn trusts(op: &EthosU, weights: &[u8]) -> bool {
        let payload = weights.get(op.payload as usize..);
        let payload = payload.and_then(|rest| rest.get(..op.payload_bytes as usize));
        payload.is_some_and(|payload| walk(payload, &Own::of(op)).is_ok())
    }

    /// The core has nothing that it could run: a session says so before.
    fn run(_: &EthosU, _: &Mem<'_>) -> Option<()> {
        None
    }
}

#[cfg(any(test, packing))]
impl Candidate for Stream {}
