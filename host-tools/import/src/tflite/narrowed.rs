//! INT64 tensors that the network computes: indices, which int32 holds.

use super::importer::{Importer, View};
use crate::graph::DType;
use crate::imported::NARROWED;

/// Operators whose result is of the type of this operand.
const MOVES: [(&str, usize); 9] = [
    ("RESHAPE", 0),
    ("SQUEEZE", 0),
    ("EXPAND_DIMS", 0),
    ("TRANSPOSE", 0),
    ("SLICE", 0),
    ("STRIDED_SLICE", 0),
    ("UNPACK", 0),
    ("SPLIT_V", 0),
    ("SPLIT", 1),
];

/// Operators whose result is of the type of all operands.
const JOINS: [&str; 2] = ["CONCATENATION", "PACK"];

impl Importer<'_, '_> {
    /// Takes the INT64 results of an operator for int32 where they are indices or come of such, and says so.
    pub(super) fn narrow_indices(&mut self, view: View<'_, '_>) {
        let is_narrow = |index: Option<usize>| index.is_some_and(|index| self.scope.narrowed.contains(&index));
        let of_narrow = match view.kind {
            "ARG_MAX" | "ARG_MIN" => true,
            kind if JOINS.contains(&kind) => view.inputs.iter().all(|&input| is_narrow(input)),
            kind => MOVES
                .iter()
                .any(|&(moves, at)| moves == kind && is_narrow(view.optional(at))),
        };
        if !of_narrow {
            return;
        }
        for &output in view.outputs {
            if self.info(output).dtype() == Some(DType::I64) && !self.info(output).is_unsigned() {
                self.scope.narrowed.insert(output);
                self.warn(NARROWED.to_string());
            }
        }
    }
}
