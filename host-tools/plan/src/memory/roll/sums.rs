//! Poolings over all rows, which keep sums and not the rows.

use arenite::ops::global_pool::GlobalAvgPoolS8;
use arenite::ops::pool2d::PoolInt;
use arenite::{DType, Step};

use crate::program::Place;

/// The step that sums rows up, where that takes less memory than the rows.
pub(super) fn by_sums(step: &Step<Place>) -> Option<Step<Place>> {
    let (Step::AvgPoolInt(op)
    | Step::IntAvgPoolS8(op)
    | Step::DspAvgPoolS8(op)
    | Step::MveAvgPoolS8(op)
    | Step::CompactAvgPoolS8(op)) = step
    else {
        return None;
    };
    let PoolInt { window, clamp, .. } = op;
    let [rows, columns, channels] = window.input;
    let is_whole = window.kernel == [rows, columns] && window.output == [1, 1, channels] && window.padding == [0, 0];
    let saves = 4 + u32::from(columns) < u32::from(rows) * u32::from(columns);
    if op.dtype != DType::I8 || window.batch != 1 || !is_whole || !saves {
        return None;
    }
    let [low, high] = clamp.map(|limit| i8::try_from(limit).ok());
    let sums = Step::GlobalAvgPoolS8(GlobalAvgPoolS8 {
        output: op.output,
        input: op.input,
        scratch: Place::Scratch,
        extents: window.input,
        clamp: [low?, high?],
    });
    sums.check().is_ok().then_some(sums)
}
