//! Convolution with trained weights, from the formulas of [`crate::ops::conv2d_train`]. Weights OHWI.
//!
//! Sums have one order on every core, and are rounded after every product. Gradients are summed by rows, so that none is a sum of more than a row's terms
//! and as many rows: a single sum of all terms would lose digits.

use super::{clamp, taps};
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::tiles_f32::{LANES, Pixels, Rows, TILE, Windows};
use crate::ops::conv2d_train::{Conv2dInputGradF32, Conv2dWeightSgdF32, TrainedConv2dF32, group_channels, weights_len};
use crate::ops::window::{Window2d, three, two};

/// f32, any groups.
#[derive(Debug)]
pub struct Forward;

/// The gradient of the input, f32, any groups.
#[derive(Debug)]
pub struct InputGrad;

/// Gradient descent on the weights, f32, any groups.
#[derive(Debug)]
pub struct WeightSgd;

impl Kernel for Forward {
    type Op = TrainedConv2dF32;

    /// A pixel reads all channels of its group: the channels written before are the lead.
    fn distance(op: &TrainedConv2dF32, index: usize) -> Option<i64> {
        (index == 1).then(|| op.window.consumed_distance(4, u32::from(op.window.output[2]) - 1))
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &TrainedConv2dF32, mem: &Mem<'_>) -> Option<()> {
        let layer = Layer::new(&op.window, op.groups);
        let input = mem.src::<f32>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, op.window.output_len()?)?;
        let weights = mem.src::<f32>(op.weights, weights_len(&op.window, op.groups)?)?;
        let bias = match op.bias {
            Some(bias) => Some(mem.src::<f32>(bias, layer.output[2] as u32)?),
            None => None,
        };
        let mut at = 0usize;
        for image in 0..layer.batch {
            for y in 0..layer.output[0] {
                let ky = taps(y, &op.window, 0)?;
                for x in 0..layer.output[1] {
                    let kx = taps(x, &op.window, 1)?;
                    for group in 0..layer.groups {
                        let mut o = group.wrapping_mul(layer.filters);
                        let mut window = layer.window(image, [group, o], [ky, kx], input, weights)?;
                        let end = o.wrapping_add(layer.filters);
                        while o < end {
                            let put = |sums: &[f32]| {
                                for (i, sum) in sums.iter().enumerate() {
                                    let first = match bias {
                                        Some(bias) => bias.get(o.wrapping_add(i))?,
                                        None => 0.0,
                                    };
                                    output.set(at.wrapping_add(i), clamp(first + sum, op.clamp))?;
                                }
                                Some(sums.len())
                            };
                            let done = if end.wrapping_sub(o) >= TILE {
                                put(&window.sums::<TILE>()?)?
                            } else {
                                put(&window.sums::<1>()?)?
                            };
                            o = o.wrapping_add(done);
                            at = at.wrapping_add(done);
                            if o < end {
                                window.first.w = window.first.w.tail(done.wrapping_mul(window.first.filter))?;
                            }
                        }
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Forward {}

impl Kernel for InputGrad {
    type Op = Conv2dInputGradF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &Conv2dInputGradF32, mem: &Mem<'_>) -> Option<()> {
        let layer = Layer::new(&op.window, op.groups);
        let output = mem.dst::<f32>(op.output, op.window.input_len()?)?;
        let gradient = mem.src::<f32>(op.gradient, op.window.output_len()?)?;
        let weights = mem.src::<f32>(op.weights, weights_len(&op.window, op.groups)?)?;
        let mut at = 0usize;
        for image in 0..layer.batch {
            for y in 0..layer.input[0] {
                for x in 0..layer.input[1] {
                    for group in 0..layer.groups {
                        let mut channel = 0;
                        while channel < layer.channels {
                            let block = output.tail(at)?;
                            let from = Pixel {
                                image,
                                at: [y, x],
                                group,
                                channel,
                            };
                            let done = if layer.channels - channel >= LANES {
                                layer.input_grad::<LANES>(&from, gradient, weights, block)?
                            } else {
                                layer.input_grad::<1>(&from, gradient, weights, block)?
                            };
                            channel = channel.wrapping_add(done);
                            at = at.wrapping_add(done);
                        }
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for InputGrad {}

impl Kernel for WeightSgd {
    type Op = Conv2dWeightSgdF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &Conv2dWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
        let layer = Layer::new(&op.window, op.groups);
        let weights = mem.dst::<f32>(op.weights, weights_len(&op.window, op.groups)?)?;
        let gradient = mem.src::<f32>(op.gradient, op.window.output_len()?)?;
        let input = mem.src::<f32>(op.input, op.window.input_len()?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        for ky in 0..layer.kernel[0] {
            let Some(rows) = layer.under(0, ky)? else { continue };
            for kx in 0..layer.kernel[1] {
                let Some(columns) = layer.under(1, kx)? else { continue };
                let tap = ky.wrapping_mul(layer.kernel[1]).wrapping_add(kx);
                let from = Meeting { tap, rows, columns };
                let mut o = 0;
                while o < layer.output[2] {
                    o = o.wrapping_add(if layer.filters.wrapping_sub(layer.filter(o)) >= TILE {
                        layer.descend_all::<TILE>(o, &from, gradient, input, rate, weights)?
                    } else {
                        layer.descend_all::<1>(o, &from, gradient, input, rate, weights)?
                    });
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for WeightSgd {}

/// A convolution's extents.
struct Layer<'o> {
    window: &'o Window2d,
    batch: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 2],
    groups: usize,
    /// Input channels of a group.
    channels: usize,
    /// Output channels of a group.
    filters: usize,
}

/// Channels of a pixel of the input: `channel` counts from the group's first one.
struct Pixel {
    image: usize,
    at: [usize; 2],
    group: usize,
    channel: usize,
}

/// Rows of runs under a window, with their filters.
struct Window<'a> {
    first: Windows<'a>,
    /// How many of them: rows of the window, where its columns are the runs.
    again: usize,
    /// Elements between them, of the window and of a filter.
    rows: [usize; 2],
}

/// Rows or columns of the output whose tap lies inside the input: the first one, how many, and where in the input the first one's tap is.
#[derive(Clone, Copy)]
struct Under {
    out: usize,
    count: usize,
    place: usize,
}

/// A tap, and the pixels of the output that have it inside the input.
struct Meeting {
    tap: usize,
    rows: Under,
    columns: Under,
}

/// The first tap inside the input, how many there are, and where in the input the first one is.
type Taps = (usize, usize, usize);

impl<'o> Layer<'o> {
    fn new(window: &'o Window2d, groups: u16) -> Self {
        let output = three::<_, usize>(window.output);
        let groups = usize::from(groups.max(1));
        Self {
            window,
            batch: window.batch.into(),
            input: three(window.input),
            output,
            kernel: two(window.kernel),
            groups,
            channels: group_channels(window, groups as u16) as usize,
            filters: output[2].checked_div(groups).unwrap_or(0),
        }
    }

    /// The first input channel of the group of output channel `o`.
    fn first_channel(&self, o: usize) -> usize {
        o.checked_div(self.filters).unwrap_or(0).wrapping_mul(self.channels)
    }

    /// Index of the first channel of a pixel of the input.
    #[inline(always)]
    fn input_at(&self, image: usize, place: [usize; 2]) -> usize {
        pixel_at(self.input, image, place)
    }

    /// The same of the output.
    #[inline(always)]
    fn output_at(&self, image: usize, place: [usize; 2]) -> usize {
        pixel_at(self.output, image, place)
    }

    /// The window at a place whose taps these are, and the filters from output channel `o` on.
    #[inline(always)]
    fn window<'a>(
        &self,
        image: usize,
        [group, o]: [usize; 2],
        [(ky, rows, iy), (kx, columns, ix)]: [Taps; 2],
        input: Src<'a, f32>,
        weights: Src<'a, f32>,
    ) -> Option<Window<'a>> {
        let [dh, dw] = two::<_, usize>(self.window.dilation);
        let [_, width, channels] = self.input;
        let x = self
            .input_at(image, [iy, ix])
            .wrapping_add(group.wrapping_mul(self.channels));
        let of_row = self.kernel[1].wrapping_mul(self.channels);
        let w = o
            .wrapping_mul(self.kernel[0])
            .wrapping_add(ky)
            .wrapping_mul(of_row)
            .wrapping_add(kx.wrapping_mul(self.channels));
        let filter = self.kernel[0].wrapping_mul(of_row);
        let x_row = dh.wrapping_mul(width).wrapping_mul(channels);
        // Neighbouring taps of all channels are one run of elements.
        let (runs, x_stride, w_stride, len, again) = if dw == 1 && self.groups == 1 {
            (rows, x_row, of_row, columns.wrapping_mul(self.channels), 1)
        } else {
            (columns, dw.wrapping_mul(channels), self.channels, self.channels, rows)
        };
        let inside = rows > 0 && columns > 0;
        Some(Window {
            first: Windows {
                x: input.tail(if inside { x } else { 0 })?,
                w: weights.tail(if inside { w } else { 0 })?,
                x_stride,
                w_stride,
                filter,
                rows: if inside { runs } else { 0 },
                len,
            },
            again: if inside { again } else { 0 },
            rows: [x_row, of_row],
        })
    }

    /// Gradients of `N` channels of a pixel: how many.
    #[inline(always)]
    fn input_grad<const N: usize>(
        &self,
        from: &Pixel,
        gradient: Src<'_, f32>,
        weights: Src<'_, f32>,
        block: Dst<'_, f32>,
    ) -> Option<usize> {
        let [y, x] = from.at;
        let filter = self.kernel[0].wrapping_mul(self.kernel[1]).wrapping_mul(self.channels);
        let first = from.group.wrapping_mul(self.filters);
        let mut sums = [0.0f32; N];
        for ky in 0..self.kernel[0] {
            let Some(oy) = self.output_under(0, y, ky) else {
                continue;
            };
            for kx in 0..self.kernel[1] {
                let Some(ox) = self.output_under(1, x, kx) else {
                    continue;
                };
                let dy = gradient.slice(self.output_at(from.image, [oy, ox]).wrapping_add(first), self.filters)?;
                let tap = ky
                    .wrapping_mul(self.kernel[1])
                    .wrapping_add(kx)
                    .wrapping_mul(self.channels);
                let w = first.wrapping_mul(filter).wrapping_add(tap).wrapping_add(from.channel);
                Rows {
                    factors: dy,
                    rows: weights.tail(w)?,
                    stride: filter,
                }
                .add(&mut sums)?;
            }
        }
        let place = block.slice(0, N)?;
        place.cells().iter().zip(sums).for_each(|(dx, sum)| dx.set(sum));
        Some(N)
    }

    /// A step of gradient descent on the weights of `N` output channels from `o` on at a tap: how many.
    #[inline(always)]
    fn descend_all<const N: usize>(
        &self,
        o: usize,
        from: &Meeting,
        gradient: Src<'_, f32>,
        input: Src<'_, f32>,
        rate: f32,
        weights: Dst<'_, f32>,
    ) -> Option<usize> {
        let mut channel = 0;
        while channel < self.channels {
            channel = channel.wrapping_add(if self.channels.wrapping_sub(channel) >= TILE {
                self.descend::<N, TILE>([o, channel], from, gradient, input, rate, weights)?
            } else {
                self.descend::<N, 1>([o, channel], from, gradient, input, rate, weights)?
            });
        }
        Some(N)
    }

    /// The same of `C` input channels of the group.
    #[inline(always)]
    fn descend<const N: usize, const C: usize>(
        &self,
        [o, channel]: [usize; 2],
        from: &Meeting,
        gradient: Src<'_, f32>,
        input: Src<'_, f32>,
        rate: f32,
        weights: Dst<'_, f32>,
    ) -> Option<usize> {
        let [sh, sw] = two::<_, usize>(self.window.stride);
        let (rows, columns) = (&from.rows, &from.columns);
        let ([_, width, channels], [_, out_width, outputs]) = (self.input, self.output);
        let c = self.first_channel(o).wrapping_add(channel);
        let mut sums = [[0.0f32; C]; N];
        for image in 0..self.batch {
            let dy = self.output_at(image, [rows.out, columns.out]).wrapping_add(o);
            let x = self.input_at(image, [rows.place, columns.place]).wrapping_add(c);
            Pixels {
                dy: gradient.tail(dy)?,
                x: input.tail(x)?,
                rows: rows.count,
                columns: columns.count,
                dy_stride: [out_width.wrapping_mul(outputs), outputs],
                x_stride: [sh.wrapping_mul(width).wrapping_mul(channels), sw.wrapping_mul(channels)],
            }
            .add(&mut sums)?;
        }
        let filter = self.kernel[0].wrapping_mul(self.kernel[1]).wrapping_mul(self.channels);
        let tap = from.tap.wrapping_mul(self.channels).wrapping_add(channel);
        for (i, sums) in sums.into_iter().enumerate() {
            let at = o.wrapping_add(i).wrapping_mul(filter).wrapping_add(tap);
            for (w, sum) in weights.slice(at, C)?.cells().iter().zip(sums) {
                w.set(w.get() - rate * sum);
            }
        }
        Some(C)
    }

    /// Which filter of its group output channel `o` is.
    #[inline(always)]
    fn filter(&self, o: usize) -> usize {
        o.checked_rem(self.filters).unwrap_or(0)
    }

    /// The rows or columns of the output whose tap `tap` lies inside the input; none where there are none.
    fn under(&self, axis: usize, tap: usize) -> Option<Option<Under>> {
        let of = |pair: &[u8; 2]| pair.get(axis).copied().map(usize::from);
        let (stride, padding) = (of(&self.window.stride)?, of(&self.window.padding)?);
        let reach = tap.wrapping_mul(of(&self.window.dilation)?);
        let out = padding.saturating_sub(reach).div_ceil(stride.max(1));
        let room = self.input.get(axis)?.wrapping_add(padding);
        let end = room.saturating_sub(reach).div_ceil(stride.max(1));
        let end = end.min(*self.output.get(axis)?);
        Some(end.checked_sub(out).filter(|&count| count > 0).map(|count| Under {
            out,
            count,
            place: out.wrapping_mul(stride).wrapping_add(reach).wrapping_sub(padding),
        }))
    }

    /// The row or column of the output whose tap `tap` lies at `place` of the input.
    #[inline(always)]
    fn output_under(&self, axis: usize, place: usize, tap: usize) -> Option<usize> {
        let of = |pair: &[u8; 2]| pair.get(axis).copied().map(usize::from);
        let reach = tap.wrapping_mul(of(&self.window.dilation)?);
        let start = place.wrapping_add(of(&self.window.padding)?).checked_sub(reach)?;
        let stride = of(&self.window.stride)?;
        let out = start.checked_div(stride)?;
        let whole = out.wrapping_mul(stride) == start;
        (whole && out < *self.output.get(axis)?).then_some(out)
    }
}

impl Window<'_> {
    /// The sums of the products of `N` filters.
    #[inline(always)]
    fn sums<const N: usize>(&self) -> Option<[f32; N]> {
        let mut sums = [0.0f32; N];
        let mut windows = self.first;
        for row in 0..self.again {
            sums.iter_mut()
                .zip(windows.dots::<N>()?)
                .for_each(|(sum, dot)| *sum += dot);
            if row.wrapping_add(1) < self.again {
                windows.x = windows.x.tail(self.rows[0])?;
                windows.w = windows.w.tail(self.rows[1])?;
            }
        }
        Some(sums)
    }
}

/// Index of the first channel of a pixel of an NHWC tensor whose images have this shape.
#[inline(always)]
fn pixel_at([height, width, channels]: [usize; 3], image: usize, [y, x]: [usize; 2]) -> usize {
    let row = image.wrapping_mul(height).wrapping_add(y);
    row.wrapping_mul(width).wrapping_add(x).wrapping_mul(channels)
}
