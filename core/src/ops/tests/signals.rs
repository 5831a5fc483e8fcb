//! As its parent: signal operators.

use super::{AT, accepted, broken};
use crate::ops::fault::Fault;
use crate::ops::fft::SignalFft;
use crate::ops::frames::SignalFramer;
use crate::ops::signal::{SignalEnergy, SignalPcan, SignalSubtraction, Subtraction};
use crate::tensor::DType;

#[test]
fn signals() {
    let fft = SignalFft {
        output: AT,
        input: AT,
        dtype: DType::I16,
        rows: 2,
        samples: 20,
        length: 20,
        inverse: false,
        twiddles: 0,
    };
    broken(
        &fft,
        Fault::Unsupported,
        &[|op| op.dtype = DType::I8, |op| op.length = 21, |op| op.length = 22],
    );
    broken(
        &fft,
        Fault::Shape,
        &[
            |op| op.samples = 0,
            |op| op.samples = 21,
            |op| (op.samples, op.inverse) = (19, true),
            |op| op.rows = 1 << 30,
        ],
    );
    accepted(
        &fft,
        &[
            |op| op.samples = 19,
            |op| op.inverse = true,
            |op| op.dtype = DType::I32,
            |op| op.dtype = DType::F32,
        ],
    );
    let framer = SignalFramer {
        output: AT,
        input: AT,
        valid: AT,
        state: AT,
        rows: 2,
        frames: 1,
        size: 0x8000,
        step: 1,
        prefill: false,
    };
    broken(
        &framer,
        Fault::Shape,
        &[
            |op| op.size = 0x8001,
            |op| (op.rows, op.frames, op.size, op.step) = (1 << 16, 0, 0x8000, 1),
        ],
    );
    let energy = SignalEnergy {
        output: AT,
        input: AT,
        bins: 9,
        start: 4,
        end: 9,
    };
    broken(&energy, Fault::Shape, &[|op| op.start = 10, |op| op.end = 10]);
    accepted(&energy, &[|op| op.start = 9]);
    let subtraction = SignalSubtraction {
        output: AT,
        input: AT,
        noise: AT,
        state: AT,
        count: 3,
        constants: Subtraction {
            smoothing: [1, 2],
            rest: [3, 4],
            floor: 5,
            smoothing_bits: 31,
            bits: 63,
            clamping: false,
        },
    };
    broken(
        &subtraction,
        Fault::Quantisation,
        &[|op| op.constants.smoothing_bits = 32, |op| op.constants.bits = 64],
    );
    let pcan = SignalPcan {
        output: AT,
        input: AT,
        noise: AT,
        count: 3,
        shift: 63,
        table: 0,
    };
    broken(&pcan, Fault::Quantisation, &[|op| op.shift = 64]);
}
