//! Rows that lie apart: those under the windows of one row of a rolled tensor, wherever they are.

use crate::arena::{Mem, Slot};
use crate::cells::{Element, Src};
use crate::ops::window::{Window2d, three};
use crate::rolled::MAX_TURN_ROWS;

/// The rows that a turn reads, each looked up once.
pub(super) struct Rows<'a, T: Element>([Option<Src<'a, T>>; MAX_TURN_ROWS]);

impl<'a, T: Element> Rows<'a, T> {
    /// The rows of a window's input.
    pub(super) fn of(mem: &Mem<'a>, input: Slot, window: &Window2d) -> Option<Self> {
        let [count, columns, channels] = three::<_, u32>(window.input);
        let mut rows = Self([None; MAX_TURN_ROWS]);
        for (row, place) in (0..count).zip(&mut rows.0) {
            *place = Some(mem.row(input, row, columns.checked_mul(channels)?)?);
        }
        Some(rows)
    }

    /// One of them.
    pub(super) fn get(&self, row: usize) -> Option<Src<'a, T>> {
        *self.0.get(row)?
    }
}
