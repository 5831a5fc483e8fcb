//! The graph of steps: who reads what whom wrote.

use arenite::{Access, Slot};

use super::model::PageStep;
use super::timeline::PagePort;

/// Edges between inputs, steps and outputs, numbered in this order; without doubles, sorted.
pub(super) fn edges(steps: &[PageStep], inputs: &[PagePort], outputs: &[PagePort]) -> Vec<[usize; 2]> {
    let mut written: Vec<Written> = Vec::new();
    let mut edges = Vec::new();
    for (node, port) in inputs.iter().enumerate() {
        written.push(Written::new(port.owner, port.place, port.bytes, node));
    }
    for (index, step) in steps.iter().enumerate() {
        let node = inputs.len() + index;
        let owned = || {
            step.operands
                .iter()
                .filter_map(|operand| Some((operand.owner?, operand)))
        };
        for (owner, operand) in owned().filter(|(_, o)| matches!(o.access, Access::Read | Access::Update)) {
            let read = Written::new(owner, operand.place, operand.bytes, node);
            edges.extend(written.iter().filter(|w| w.meets(&read)).map(|w| [w.node, node]));
        }
        for (owner, operand) in owned().filter(|(_, o)| matches!(o.access, Access::Write | Access::Update)) {
            let new = Written::new(owner, operand.place, operand.bytes, node);
            // An overwritten value is read by nobody.
            written.retain(|w| !new.covers(w));
            written.push(new);
        }
    }
    for (index, port) in outputs.iter().enumerate() {
        let node = inputs.len() + steps.len() + index;
        let read = Written::new(port.owner, port.place, port.bytes, node);
        edges.extend(written.iter().filter(|w| w.meets(&read)).map(|w| [w.node, node]));
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Bytes of a tensor that a node wrote last.
struct Written {
    owner: usize,
    region: u8,
    from: u64,
    to: u64,
    node: usize,
}

impl Written {
    fn new(owner: usize, place: Slot, bytes: u32, node: usize) -> Self {
        let from = u64::from(place.offset);
        Self {
            owner,
            region: place.region,
            from,
            to: from + u64::from(bytes),
            node,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.owner == other.owner && self.region == other.region && self.from < other.to && other.from < self.to
    }

    /// Of the same tensor, or where another one lies now.
    fn covers(&self, other: &Self) -> bool {
        self.region == other.region && self.from <= other.from && other.to <= self.to
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::PageOperand;
    use super::*;

    #[test]
    fn readers_hang_on_the_last_writers_of_their_bytes() {
        let operand = |owner, offset, bytes, access| PageOperand {
            place: Slot { region: 0, offset },
            bytes,
            access,
            owner: Some(owner),
        };
        let step = |operands: &[PageOperand]| PageStep {
            operands: operands.to_vec(),
            ..PageStep::default()
        };
        use Access::{Read, Write};
        let steps = [
            step(&[operand(1, 16, 8, Write), operand(0, 0, 16, Read)]),
            step(&[operand(1, 24, 8, Write), operand(0, 0, 16, Read)]),
            // In place of the input; then both parts of tensor 1, then one.
            step(&[
                operand(2, 0, 16, Write),
                operand(1, 16, 16, Read),
                operand(0, 0, 16, Read),
            ]),
            step(&[operand(3, 32, 8, Write), operand(1, 16, 8, Read)]),
        ];
        let port = |owner, offset, bytes, output| PagePort {
            owner,
            place: Slot { region: 0, offset },
            bytes,
            output,
        };
        let found = edges(
            &steps,
            &[port(0, 0, 16, false)],
            &[port(2, 0, 16, true), port(3, 32, 8, true)],
        );
        assert_eq!(found, [[0, 1], [0, 2], [0, 3], [1, 3], [1, 4], [2, 3], [3, 5], [4, 6]]);
    }
}
