//! The loops over two broadcast operands.

use arenite::ops::elementwise::{Loop, MAX_LOOPS};

use super::context::fit;
use crate::error::{Error, Result};

/// The fewest axes that walk two broadcast operands: neighbours merge where both operands continue from one to the other.
pub(super) fn loops(output: &[usize], a: &[usize], b: &[usize]) -> Result<heapless::Vec<Loop, MAX_LOOPS>> {
    let (strides_a, strides_b) = (strides(output, a), strides(output, b));
    let mut merged: Vec<[usize; 3]> = Vec::new();
    for axis in (0..output.len()).filter(|&axis| output[axis] != 1) {
        let next = [output[axis], strides_a[axis], strides_b[axis]];
        match merged.last_mut() {
            Some(last) if last[1] == next[0] * next[1] && last[2] == next[0] * next[2] => {
                *last = [last[0] * next[0], next[1], next[2]];
            }
            _ => merged.push(next),
        }
    }
    let mut loops = heapless::Vec::new();
    for [count, a, b] in merged {
        let axis = Loop {
            count: fit(count, "an extent")?,
            a: fit(a, "a stride")?,
            b: fit(b, "a stride")?,
        };
        loops
            .push(axis)
            .map_err(|_| Error::unsupported(format!("broadcasting {output:?} needs more than {MAX_LOOPS} axes")))?;
    }
    Ok(loops)
}

/// Elements between neighbours along each axis of the output; 0 where the operand is broadcast.
fn strides(output: &[usize], operand: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; output.len()];
    let mut step = 1;
    for (axis, &extent) in operand.iter().enumerate().rev() {
        if extent != 1 {
            strides[output.len() - operand.len() + axis] = step;
        }
        step *= extent;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(output: &[usize], a: &[usize], b: &[usize]) -> Vec<(u32, u32, u32)> {
        loops(output, a, b)
            .unwrap()
            .iter()
            .map(|l| (l.count, l.a, l.b))
            .collect()
    }

    #[test]
    fn equal_shapes_are_one_loop() {
        assert_eq!(walk(&[1, 8, 8, 4], &[1, 8, 8, 4], &[1, 8, 8, 4]), [(256, 1, 1)]);
    }

    #[test]
    fn a_bias_is_two_loops() {
        assert_eq!(walk(&[1, 8, 8, 4], &[1, 8, 8, 4], &[4]), [(64, 4, 0), (4, 1, 1)]);
    }

    #[test]
    fn an_outer_product_broadcasts_both() {
        assert_eq!(walk(&[3, 5], &[3, 1], &[1, 5]), [(3, 1, 0), (5, 0, 1)]);
    }

    #[test]
    fn scalars_are_no_loop() {
        assert_eq!(walk(&[1], &[1], &[]), []);
    }
}
