//! The arena over time: who has which bytes during which steps.

use arenite::{Access, Slot};
use serde::Serialize;

use super::model::PageStep;

/// A tensor, or a step's scratch, as a box: steps across, bytes upwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Block {
    /// The tensor; none for scratch.
    pub(super) owner: Option<usize>,
    pub(super) region: u8,
    /// The first byte and one past the last.
    pub(super) bytes: [u32; 2],
    /// The first and the last step that need it.
    pub(super) steps: [usize; 2],
}

/// A network input or output: its tensor, place and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct PagePort {
    pub(super) owner: usize,
    pub(super) place: Slot,
    pub(super) bytes: u32,
    /// Inputs are there before the first step, outputs after the last.
    pub(super) output: bool,
}

/// The blocks of the arena: tensors by their number, then scratch by step.
pub(super) fn blocks(steps: &[PageStep], ports: &[PagePort]) -> Vec<Block> {
    let mut tensors: Vec<Option<Block>> = Vec::new();
    let mut scratch = Vec::new();
    let mut touch = |owner: usize, place: Slot, bytes: u32, step: usize| {
        if tensors.len() <= owner {
            tensors.resize(owner + 1, None);
        }
        let end = place.offset.saturating_add(bytes);
        match &mut tensors[owner] {
            // Parts of a tensor, or all of it again.
            Some(block) if block.region == place.region => {
                block.bytes = [block.bytes[0].min(place.offset), block.bytes[1].max(end)];
                block.steps = [block.steps[0].min(step), block.steps[1].max(step)];
            }
            Some(_) => {}
            free @ None => {
                *free = Some(Block {
                    owner: Some(owner),
                    region: place.region,
                    bytes: [place.offset, end],
                    steps: [step, step],
                });
            }
        }
    };
    let in_arena = |place: Slot| place.region < Slot::STATE;
    let last = steps.len().saturating_sub(1);
    for port in ports.iter().filter(|port| in_arena(port.place)) {
        touch(port.owner, port.place, port.bytes, if port.output { last } else { 0 });
    }
    for (index, step) in steps.iter().enumerate() {
        for operand in step.operands.iter().filter(|operand| in_arena(operand.place)) {
            match operand.owner {
                Some(owner) => touch(owner, operand.place, operand.bytes, index),
                None if operand.access == Access::Scratch && operand.bytes > 0 => scratch.push(Block {
                    owner: None,
                    region: operand.place.region,
                    bytes: [operand.place.offset, operand.place.offset.saturating_add(operand.bytes)],
                    steps: [index, index],
                }),
                None => {}
            }
        }
    }
    tensors.into_iter().flatten().chain(scratch).collect()
}

#[cfg(test)]
mod tests {
    use super::super::model::PageOperand;
    use super::*;

    fn operand(owner: Option<usize>, offset: u32, bytes: u32, access: Access) -> PageOperand {
        let place = Slot { region: 0, offset };
        PageOperand {
            place,
            bytes,
            access,
            owner,
        }
    }

    #[test]
    fn a_tensor_lives_from_its_first_to_its_last_use_and_scratch_for_a_step() {
        let step = |operands: Vec<PageOperand>| PageStep {
            operands,
            ..PageStep::default()
        };
        let steps = [
            step(vec![
                operand(Some(1), 40, 30, Access::Write),
                operand(Some(0), 0, 40, Access::Read),
                operand(None, 80, 16, Access::Scratch),
            ]),
            // A second part of tensor 1.
            step(vec![
                operand(Some(1), 70, 10, Access::Write),
                operand(Some(0), 8, 32, Access::Read),
            ]),
            step(vec![
                operand(Some(2), 0, 8, Access::Write),
                operand(Some(1), 40, 40, Access::Read),
            ]),
            step(vec![operand(Some(3), 8, 8, Access::Write)]),
        ];
        let port = |owner, offset, bytes, output| PagePort {
            owner,
            place: Slot { region: 0, offset },
            bytes,
            output,
        };
        let found = blocks(&steps, &[port(0, 0, 40, false), port(2, 0, 8, true)]);
        let block = |owner, bytes, steps| Block {
            owner,
            region: 0,
            bytes,
            steps,
        };
        let expected = [
            block(Some(0), [0, 40], [0, 1]),
            block(Some(1), [40, 80], [0, 2]),
            block(Some(2), [0, 8], [2, 3]),
            block(Some(3), [8, 16], [3, 3]),
            block(None, [80, 96], [0, 0]),
        ];
        assert_eq!(found, expected);
    }
}
