//! The window of a convolution or pooling: shapes, strides and padding.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::ops::fault::Fault;
use crate::ops::size::{checked_size, size};

/// Shapes and window of a convolution or pooling, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Window2d {
    /// Images.
    pub batch: u16,
    /// Rows, columns and channels of the input.
    pub input: [u16; 3],
    /// Rows, columns and channels of the output.
    pub output: [u16; 3],
    /// Rows and columns of the kernel.
    pub kernel: [u16; 2],
    /// Rows and columns between windows.
    pub stride: [u8; 2],
    /// Rows and columns between taps.
    pub dilation: [u8; 2],
    /// Rows above and columns to the left of the input; what lies below and to the right follows from the output's extents.
    pub padding: [u8; 2],
}

/// As derived, but inlined: returned from a function of its own, a window would be copied twice, by a `memcpy` that nothing else of a small model
/// needs (0.9 KB).
impl<'de> Deserialize<'de> for Window2d {
    #[inline(always)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Window2d", WINDOW_FIELDS, WindowVisitor)
    }
}

/// The numbers of a window in the file; `padding` is above and to the left.
const WINDOW_FIELDS: &[&str] = &[
    "batch",
    "input.rows",
    "input.columns",
    "input.channels",
    "output.rows",
    "output.columns",
    "output.channels",
    "kernel.rows",
    "kernel.columns",
    "stride.rows",
    "stride.columns",
    "dilation.rows",
    "dilation.columns",
    "padding.rows",
    "padding.columns",
];

struct WindowVisitor;

impl<'de> Visitor<'de> for WindowVisitor {
    type Value = Window2d;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a window of 15 numbers")
    }

    #[inline(always)]
    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Window2d, A::Error> {
        let fields = &mut fields;
        Ok(Window2d {
            batch: next(fields)?,
            input: [next(fields)?, next(fields)?, next(fields)?],
            output: [next(fields)?, next(fields)?, next(fields)?],
            kernel: [next(fields)?, next(fields)?],
            stride: [next(fields)?, next(fields)?],
            dilation: [next(fields)?, next(fields)?],
            padding: [next(fields)?, next(fields)?],
        })
    }
}

#[inline(always)]
fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(fields: &mut A) -> Result<T, A::Error> {
    let missing = || serde::de::Error::custom("a number is missing");
    fields.next_element()?.ok_or_else(missing)
}

impl Window2d {
    /// Checks the output's extents against input, kernel, stride and padding.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let extents = self
            .input
            .iter()
            .chain(&self.output)
            .chain(&self.kernel)
            .all(|&e| e > 0);
        let steps = self.stride.iter().chain(&self.dilation).all(|&s| s > 0);
        if !extents || !steps || self.batch == 0 {
            return Err(Fault::Shape);
        }
        // The first window must reach into the input and the last must start before its end: none lies in the padding alone. Nor do they need
        // more padding behind the input than before it can be stated: no window is much longer than the input.
        for axis in 0..2 {
            let at = |pair: &[u8; 2]| u32::from(pair.get(axis).copied().unwrap_or(0));
            let wide = |pair: &[u16]| u32::from(pair.get(axis).copied().unwrap_or(0));
            let last = (wide(&self.output) - 1) * at(&self.stride);
            let reach = at(&self.dilation) * (wide(&self.kernel) - 1);
            let end = wide(&self.input) + at(&self.padding);
            if at(&self.padding) > reach || last >= end || last + reach >= end + u32::from(u8::MAX) {
                return Err(Fault::Shape);
            }
        }
        checked_size(&[self.input_len().ok_or(Fault::Shape)?, 4])?;
        checked_size(&[self.output_len().ok_or(Fault::Shape)?, 4])?;
        Ok(())
    }

    /// Positions under the kernel, in the input and in its padding, which load limits.
    #[inline]
    pub(crate) fn taps(&self) -> u32 {
        let [rows, columns] = self.kernel.map(u32::from);
        rows * columns
    }

    /// Elements of all channels under the kernel; saturates.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.taps().saturating_mul(u32::from(self.input[2]))
    }

    /// Elements of the input.
    pub fn input_len(&self) -> Option<u32> {
        let [h, w, c] = three::<_, u32>(self.input);
        size(&[u32::from(self.batch), h, w, c])
    }

    /// Elements of the output.
    pub fn output_len(&self) -> Option<u32> {
        let [h, w, c] = three::<_, u32>(self.output);
        size(&[u32::from(self.batch), h, w, c])
    }
}

/// Of the window at `out` along an axis, without dilation: where in the input it begins, and how many of its places lie there.
#[inline(always)]
pub(crate) fn inside(out: usize, window: &Window2d, axis: usize) -> Option<(usize, usize)> {
    let extent = usize::from(*window.input.get(axis)?);
    let kernel = usize::from(*window.kernel.get(axis)?);
    let padding = usize::from(*window.padding.get(axis)?);
    let start = out * usize::from(*window.stride.get(axis)?);
    let (from, to) = (start.max(padding), (start + kernel).min(padding + extent));
    Some((from - padding, to.saturating_sub(from)))
}

/// Extents as wider integers. Not `map`, of which builds optimised for size make a loop over the stack.
#[inline(always)]
pub(crate) fn three<A, B: From<A>>([a, b, c]: [A; 3]) -> [B; 3] {
    [a.into(), b.into(), c.into()]
}

/// [`three`] for rows and columns.
#[inline(always)]
pub(crate) fn two<A, B: From<A>>([a, b]: [A; 2]) -> [B; 2] {
    [a.into(), b.into()]
}
