//! As its parent: cells of a quantised LSTM.

use super::{AT, FAR, accepted, broken};
use crate::ops::fault::Fault;
use crate::ops::lstm::{LstmInt, LstmShape};
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;

/// Not negative, and to the right.
const NARROW: Multiplier = Multiplier {
    mantissa: 1 << 30,
    shift: -1,
};

#[test]
fn lstms() {
    let lstm = LstmInt {
        shape: LstmShape {
            output: AT,
            input: AT,
            hidden: AT,
            cell: AT,
            batch: 2,
            time: 3,
            features: 5,
            cells: 4,
            time_major: false,
            gates: Default::default(),
        },
        dtype: DType::I8,
        zero: [3, -4],
        gates: [[Multiplier::ONE; 2]; 4],
        products: [NARROW; 3],
        tanh: SigmoidI16::power_of_two(1),
        clip: 0,
    };
    broken(
        &lstm,
        Fault::Quantisation,
        &[
            |op| op.gates[3][1] = FAR,
            |op| op.products[0].shift = 0,
            |op| op.products[1].shift = -31,
            |op| op.products[2].mantissa = -1,
            |op| op.clip = -1,
            |op| op.dtype = DType::I32,
            |op| op.dtype = DType::I16,
            |op| (op.dtype, op.zero) = (DType::I16, [0, 1]),
            |op| (op.dtype, op.zero) = (DType::I16, [1, 0]),
            |op| op.tanh = SigmoidI16::below_table(32),
        ],
    );
    accepted(
        &lstm,
        &[
            |op| op.products[1].shift = -30,
            |op| op.products[2].mantissa = 0,
            |op| op.clip = i16::MAX,
            |op| (op.dtype, op.zero) = (DType::I16, [0; 2]),
            |op| op.tanh = SigmoidI16::below_table(31),
            |op| op.tanh = SigmoidI16::power_of_two(15),
        ],
    );
}
