//! The budget of an import: bytes of values that it computes because they are known already, and holds until the file is packed; and nodes that it makes.
//!
//! Constant folding makes of a few bytes what a shape says. The budget is one for a file, over all of its operators: each value is paid for before it is
//! computed, and nothing is paid back, so that the budget bounds the time of folding as well as its memory.

use std::cell::Cell;
use std::fmt::Display;

use crate::error::{Error, Result};

/// Bytes of known values that every file may have computed.
pub(super) const ALWAYS: u64 = 128 << 20;

/// Bytes of known values for each byte of the file and of its external data: weights of int8 are held as numbers of 8 bytes, and moved several times.
pub(super) const TIMES: u64 = 128;

/// Bytes that a value costs beside its elements: a chain of many small ones is bounded too.
const EACH: u64 = 64;

/// Nodes that every file may become: a sequence is unrolled, a cumulative sum takes one for each doubling.
const NODES: u64 = 1 << 15;

/// Bytes of a file for each further node.
const BYTES_OF_NODE: u64 = 8;

/// Work of folding that is left for one file.
#[derive(Debug)]
pub(super) struct FoldBudget {
    whole: Cell<u64>,
    left: Cell<u64>,
}

impl FoldBudget {
    /// The budget of a file of so many bytes.
    pub(super) fn of(file: usize) -> Self {
        let whole = (file as u64).saturating_mul(TIMES).saturating_add(ALWAYS);
        Self {
            whole: Cell::new(whole),
            left: Cell::new(whole),
        }
    }

    /// Adds what bytes of another file of the network allow.
    pub(super) fn add(&self, bytes: usize) {
        let more = (bytes as u64).saturating_mul(TIMES);
        self.whole.set(self.whole.get().saturating_add(more));
        self.left.set(self.left.get().saturating_add(more));
    }

    /// Pays for a value of this shape and element type before it is computed: its elements.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unsupported`] where less is left: what would be computed, the budget, and what to do.
    pub(super) fn take(&self, kind: &dyn Display, shape: &[usize], element: usize) -> Result<usize> {
        let elements = shape.iter().try_fold(1_usize, |n, &extent| n.checked_mul(extent));
        let bytes = elements.and_then(|n| (n as u64).checked_mul(element as u64)?.checked_add(EACH));
        let paid = bytes.and_then(|bytes| self.left.get().checked_sub(bytes));
        let (Some(left), Some(elements)) = (paid, elements) else {
            let size = bytes.map_or_else(
                || "more than 2^64 bytes".to_string(),
                |bytes| format!("{} bytes", bytes - EACH),
            );
            return Err(Error::unsupported(format!(
                "folding would compute a constant of shape {shape:?} ({kind}), {size}"
            ))
            .expected(format!(
                "at most {} bytes of folded constants in the whole file ({} MiB, and {TIMES} times its size), of which {} are left",
                self.whole.get(),
                ALWAYS >> 20,
                self.left.get()
            ))
            .help("make an operand of it an input of the network, or have the exporter store the result as a constant (onnxsim, do_constant_folding)"));
        };
        self.left.set(left);
        Ok(elements)
    }

    /// Whether the file may become so many nodes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] where these are too many: how many, and how many are allowed.
    pub(super) fn allow_nodes(&self, nodes: usize) -> Result<()> {
        let most = NODES + (self.whole.get() - ALWAYS) / TIMES / BYTES_OF_NODE;
        if nodes as u64 <= most {
            return Ok(());
        }
        Err(Error::unsupported(format!("the network becomes {nodes} nodes or more"))
            .expected(format!(
                "at most {most} for a file of this size ({NODES}, and one for each {BYTES_OF_NODE} bytes)"
            ))
            .help("export a shorter sequence, and call the network again with its state for the rest"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_paid_for_is_gone() {
        let budget = FoldBudget::of(0);
        let half = [ALWAYS as usize / 8 - 100];
        assert_eq!(budget.take(&"float", &half, 4).unwrap(), half[0]);
        let text = budget.take(&"float", &[2, half[0]], 4).unwrap_err().to_string();
        assert!(
            text.contains("a constant of shape [2, 16777116] (float), 134216928 bytes"),
            "{text}"
        );
        assert!(
            text.contains("at most 134217728 bytes") && text.contains("of which 67109200 are left"),
            "{text}"
        );
        // A refused request costs nothing.
        budget.take(&"float", &half, 4).unwrap();
        assert!(budget.take(&"float", &half, 4).is_err());
        budget.add(1 << 20);
        budget.take(&"float", &half, 4).unwrap();
        let text = budget.take(&"float", &[usize::MAX, 2], 4).unwrap_err().to_string();
        assert!(text.contains("more than 2^64 bytes"), "{text}");
    }

    #[test]
    fn nodes_are_allowed_by_the_bytes_of_the_file() {
        let budget = FoldBudget::of(80);
        budget.allow_nodes(32_778).unwrap();
        let text = budget.allow_nodes(32_779).unwrap_err().to_string();
        assert!(text.contains("32779 nodes") && text.contains("at most 32778"), "{text}");
    }

    #[test]
    fn many_small_values_are_bounded() {
        let budget = FoldBudget::of(0);
        let count = (0..).take_while(|_| budget.take(&"int64", &[], 8).is_ok()).count();
        assert_eq!(count as u64, ALWAYS / (8 + EACH));
    }
}
