//! Pixels made of others, and places of largest elements, at addresses that are checked once and not for each element.

use super::strided_copy::line;
use crate::cells::{Dst, Element, Src};
use crate::ops::size::size;

/// Pixels of all channels and where each comes from.
pub(crate) struct Pixels<'a, T> {
    pub(crate) input: Src<'a, T>,
    pub(crate) output: Dst<'a, T>,
    pub(crate) batch: u32,
    /// Rows and columns of the input.
    pub(crate) from: [u32; 2],
    pub(crate) channels: u32,
    /// Two indices into the input and the second one's weight, for each row of the output.
    pub(crate) rows: &'a [[i32; 3]],
    /// Likewise.
    pub(crate) columns: &'a [[i32; 3]],
}

impl<T: Element> Pixels<'_, T> {
    /// Copies the first of the corners.
    pub(crate) fn nearest(&self) -> Option<()> {
        // SAFETY: `each` calls the closure with corners and an output of `count` elements inside the operands.
        self.each(|[from, ..], _, to, count| unsafe { line(to, from, count) })
    }

    /// Writes what `make` makes of the fractions gives of four elements.
    #[inline(always)]
    pub(crate) fn means<F: Fn([T; 4]) -> T>(&self, make: impl Fn([i32; 2]) -> F) -> Option<()> {
        self.each(|corners, fractions, to, count| {
            let mean = make(fractions);
            for i in 0..count {
                // SAFETY: `i < count`, the elements of each corner and of the output with which `each` calls the closure.
                unsafe { to.add(i).write(mean(corners.map(|corner| corner.add(i).read()))) };
            }
        })
    }

    /// Calls `pixel([low low, low high, high low, high high], [row fraction, column fraction], output, channels)`, corners named row first: each the first of
    /// as many elements as there are channels, and so is the output. `None` where an operand is too short.
    #[inline(always)]
    fn each(&self, pixel: impl Fn([*const T; 4], [i32; 2], *mut T, usize)) -> Option<()> {
        let [h, w] = self.from;
        let [rows, columns] = [self.rows, self.columns].map(|lines| lines.len() as u32);
        let lens = [[h, w], [rows, columns]].map(|[h, w]| size(&[self.batch, h, w, self.channels]));
        if lens[0]? as usize > self.input.len() || lens[1]? as usize > self.output.cells().len() {
            return None;
        }
        // The table is data: an index beyond the image means its edge. Of no pixels there is none.
        let edges = [h.checked_sub(1)?, w.checked_sub(1)?];
        let within = |index: i32, edge: u32| (index.max(0) as u32).min(edge) as usize;
        let channels = self.channels as usize;
        let pitch = channels.wrapping_mul(w as usize);
        let (mut image, mut to) = (self.input.as_ptr(), self.output.as_mut_ptr());
        for _ in 0..self.batch {
            for &[y0, y1, y] in self.rows {
                let [low, high] = [y0, y1].map(|y| image.wrapping_add(within(y, edges[0]).wrapping_mul(pitch)));
                for &[x0, x1, x] in self.columns {
                    let [x0, x1] = [x0, x1].map(|x| within(x, edges[1]).wrapping_mul(channels));
                    let corners = [(low, x0), (low, x1), (high, x0), (high, x1)].map(|(line, x)| line.wrapping_add(x));
                    pixel(corners, [y, x], to, channels);
                    to = to.wrapping_add(channels);
                }
            }
            image = image.wrapping_add(pitch.wrapping_mul(h as usize));
        }
        Some(())
    }
}

/// Writes where along the middle axis of `[outer, extent, inner]` the first of the largest elements are. `None` where an operand is too short.
#[inline(never)]
pub(crate) fn places<T: Element + PartialOrd>(input: Src<'_, T>, output: Dst<'_, i32>, shape: [u32; 3]) -> Option<()> {
    let [outer, extent, inner] = shape;
    if size(&shape)? as usize > input.len() || size(&[outer, inner])? as usize > output.cells().len() {
        return None;
    }
    // Of no elements none is the largest.
    let extent = i32::try_from(extent).ok().filter(|&extent| extent > 0)?;
    let inner = inner as usize;
    let (mut line, mut to) = (input.as_ptr(), output.as_mut_ptr());
    for _ in 0..outer {
        for k in 0..inner {
            let mut x = line.wrapping_add(k);
            // SAFETY: `x` goes over a line of `extent` elements, `inner` apart, and `to` has an element for each line: both lengths were compared.
            unsafe {
                let mut largest = (0, x.read());
                for j in 1..extent {
                    x = x.wrapping_add(inner);
                    let next = x.read();
                    if next > largest.1 {
                        largest = (j, next);
                    }
                }
                to.write(largest.0);
            }
            to = to.wrapping_add(1);
        }
        line = line.wrapping_add(inner.wrapping_mul(extent as usize));
    }
    Some(())
}
