//! As its parent: rows divided by their length.

use super::{AT, accepted, broken};
use crate::ops::fault::Fault;
use crate::ops::l2_norm::{L2NormS8, MOST_CHANNELS};

#[test]
fn l2_norms() {
    let norm = L2NormS8 {
        output: AT,
        input: AT,
        rows: 3,
        channels: 5,
        zero: 0,
    };
    broken(
        &norm,
        Fault::Shape,
        &[|op| op.rows = 0, |op| op.channels = 0, |op| op.rows = 1 << 31],
    );
    broken(&norm, Fault::Unsupported, &[|op| op.channels = MOST_CHANNELS + 1]);
    broken(&norm, Fault::Quantisation, &[|op| op.zero = -129, |op| op.zero = 128]);
    accepted(
        &norm,
        &[
            |op| op.channels = MOST_CHANNELS,
            |op| op.zero = -128,
            |op| op.zero = 127,
        ],
    );
}
