//! Training through poolings, from the formulas of [`crate::ops::pool2d_train`].

use super::{clamp, taps};
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::pool2d_train::{AvgPoolGradF32, MaxPoolGradF32, MaxPoolPositionsF32};
use crate::ops::window::{Window2d, three, two};

/// f32 maximum with its positions.
#[derive(Debug)]
pub struct MaxPositions;

/// The gradient of a maximum, f32.
#[derive(Debug)]
pub struct MaxGrad;

/// The gradient of an average, f32.
#[derive(Debug)]
pub struct AvgGrad;

impl Kernel for MaxPositions {
    type Op = MaxPoolPositionsF32;

    /// A channel reads only its own channel, but pixels share rows: the channels written before are the lead.
    fn distance(op: &MaxPoolPositionsF32, index: usize) -> Option<i64> {
        (index == 2).then(|| op.window.consumed_distance(4, u32::from(op.window.output[2]) - 1))
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &MaxPoolPositionsF32, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<f32>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, op.window.output_len()?)?;
        let positions = mem.dst::<u8>(op.positions, op.window.output_len()?)?;
        let channels = usize::from(op.window.output[2]);
        each_pixel(&op.window, |at, under| {
            while under.channel < channels {
                let at = at.wrapping_add(under.channel);
                let (output, positions) = (output.tail(at)?, positions.tail(at)?);
                let done = if channels.wrapping_sub(under.channel) >= LANES {
                    largest::<LANES>(op, under, input, output, positions)?
                } else {
                    largest::<1>(op, under, input, output, positions)?
                };
                under.channel = under.channel.wrapping_add(done);
            }
            Some(())
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for MaxPositions {}

impl Kernel for MaxGrad {
    type Op = MaxPoolGradF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &MaxPoolGradF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, op.window.input_len()?)?;
        let gradient = mem.src::<f32>(op.gradient, op.window.output_len()?)?;
        let positions = mem.src::<u8>(op.positions, op.window.output_len()?)?;
        output.cells().iter().for_each(|dx| dx.set(0.0));
        each_output(&op.window, |at, under| {
            let (dy, position) = (gradient.get(at)?, usize::from(positions.get(at)?));
            // Memory here holds any byte: one that is no tap inside the input takes no part.
            if let Some(element) = under.element(&op.window, position) {
                let dx = output.cells().get(element)?;
                dx.set(dx.get() + dy);
            }
            Some(())
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for MaxGrad {}

impl Kernel for AvgGrad {
    type Op = AvgPoolGradF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &AvgPoolGradF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, op.window.input_len()?)?;
        let gradient = mem.src::<f32>(op.gradient, op.window.output_len()?)?;
        output.cells().iter().for_each(|dx| dx.set(0.0));
        let [kh, kw] = op.window.kernel.map(f32::from);
        each_output(&op.window, |at, under| {
            let whole = if op.count_include_pad { kh * kw } else { under.count() };
            let share = gradient.get(at)? / whole;
            under.each(&op.window, |_, element| {
                let dx = output.cells().get(element)?;
                dx.set(dx.get() + share);
                Some(())
            })
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for AvgGrad {}

/// Neighbouring channels that are compared at a time.
const LANES: usize = 4;

/// Maxima of `N` channels and their positions: how many.
#[inline(always)]
fn largest<const N: usize>(
    op: &MaxPoolPositionsF32,
    under: &Under,
    input: Src<'_, f32>,
    output: Dst<'_, f32>,
    positions: Dst<'_, u8>,
) -> Option<usize> {
    let mut found = [(f32::NEG_INFINITY, under.first(&op.window)); N];
    under.each(&op.window, |tap, element| {
        for (found, x) in found.iter_mut().zip(input.slice(element, N)?.iter()) {
            if x > found.0 || x.is_nan() {
                *found = (x, tap);
            }
        }
        Some(())
    })?;
    let places = output.slice(0, N)?.cells().iter().zip(positions.slice(0, N)?.cells());
    for ((y, place), (max, tap)) in places.zip(found) {
        place.set(tap as u8);
        y.set(clamp(max, op.clamp));
    }
    Some(N)
}

/// The taps of a window that lie inside the input, of one image and channel: along each axis the first tap, how many, and the input index of the first.
struct Under {
    image: usize,
    rows: (usize, usize, usize),
    columns: (usize, usize, usize),
    channel: usize,
}

impl Under {
    /// How many there are.
    fn count(&self) -> f32 {
        self.rows.1.wrapping_mul(self.columns.1) as f32
    }

    /// The index of the first tap.
    fn first(&self, window: &Window2d) -> usize {
        let [_, columns] = two::<_, usize>(window.kernel);
        self.rows.0.wrapping_mul(columns).wrapping_add(self.columns.0)
    }

    /// The element of the input at a row and a column, from the first tap of each.
    #[inline(always)]
    fn at(&self, window: &Window2d, r: usize, k: usize) -> usize {
        let [h, w, c] = three::<_, usize>(window.input);
        let y = self.image.wrapping_mul(h).wrapping_add(self.rows.2).wrapping_add(r);
        let x = y.wrapping_mul(w).wrapping_add(self.columns.2).wrapping_add(k);
        x.wrapping_mul(c).wrapping_add(self.channel)
    }

    /// Calls `element` with each tap's index and its element of the input.
    #[inline(always)]
    fn each(&self, window: &Window2d, mut element: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
        let [_, columns] = two::<_, usize>(window.kernel);
        for r in 0..self.rows.1 {
            let row = self
                .rows
                .0
                .wrapping_add(r)
                .wrapping_mul(columns)
                .wrapping_add(self.columns.0);
            for k in 0..self.columns.1 {
                element(row.wrapping_add(k), self.at(window, r, k))?;
            }
        }
        Some(())
    }

    /// The element of the input at the tap of this index; none where it is no tap inside the input.
    fn element(&self, window: &Window2d, position: usize) -> Option<usize> {
        let [_, columns] = two::<_, usize>(window.kernel);
        let (ky, kx) = (position.checked_div(columns)?, position.checked_rem(columns)?);
        let (r, k) = (ky.checked_sub(self.rows.0)?, kx.checked_sub(self.columns.0)?);
        (r < self.rows.1 && k < self.columns.1).then(|| self.at(window, r, k))
    }
}

/// Calls `output` with the index of each element of the output and what lies under its window.
fn each_output(window: &Window2d, mut output: impl FnMut(usize, &Under) -> Option<()>) -> Option<()> {
    each_pixel(window, |at, under| {
        for channel in 0..usize::from(window.output[2]) {
            under.channel = channel;
            output(at.wrapping_add(channel), under)?;
        }
        Some(())
    })
}

/// Calls `pixel` with the index of the first channel of each pixel of the output and what lies under its window, in the first channel.
fn each_pixel(window: &Window2d, mut pixel: impl FnMut(usize, &mut Under) -> Option<()>) -> Option<()> {
    let [rows, columns, channels] = three::<_, usize>(window.output);
    let mut at = 0usize;
    for image in 0..usize::from(window.batch) {
        for y in 0..rows {
            let rows = taps(y, window, 0)?;
            for x in 0..columns {
                let mut under = Under {
                    image,
                    rows,
                    columns: taps(x, window, 1)?,
                    channel: 0,
                };
                pixel(at, &mut under)?;
                at = at.wrapping_add(channels);
            }
        }
    }
    Some(())
}
