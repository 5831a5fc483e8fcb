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
                    for o in 0..layer.output[2] {
                        let mut sum = match bias {
                            Some(bias) => bias.get(o)?,
                            None => 0.0,
                        };
                        layer.dots(image, o, [ky, kx], input, weights, &mut sum)?;
                        output.set(at, clamp(sum, op.clamp))?;
                        at = at.wrapping_add(1);
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

    fn run(op: &Conv2dWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
        let layer = Layer::new(&op.window, op.groups);
        let weights = mem.dst::<f32>(op.weights, weights_len(&op.window, op.groups)?)?;
        let gradient = mem.src::<f32>(op.gradient, op.window.output_len()?)?;
        let input = mem.src::<f32>(op.input, op.window.input_len()?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let mut at = 0usize;
        for o in 0..layer.output[2] {
            let first = layer.first_channel(o);
            for ky in 0..layer.kernel[0] {
                for kx in 0..layer.kernel[1] {
                    let mut channel = 0;
                    while channel < layer.channels {
                        let block = weights.tail(at)?;
                        let c = first.wrapping_add(channel);
                        let done = if layer.channels - channel >= LANES {
                            layer.descend::<LANES>([o, ky, kx, c], gradient, input, rate, block)?
                        } else {
                            layer.descend::<1>([o, ky, kx, c], gradient, input, rate, block)?
                        };
                        channel = channel.wrapping_add(done);
                        at = at.wrapping_add(done);
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for WeightSgd {}

/// Neighbouring channels that are summed at a time.
const LANES: usize = 8;

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
    fn input_at(&self, image: usize, [y, x]: [usize; 2]) -> usize {
        let [h, w, c] = self.input;
        image
            .wrapping_mul(h)
            .wrapping_add(y)
            .wrapping_mul(w)
            .wrapping_add(x)
            .wrapping_mul(c)
    }

    /// The same of the output.
    #[inline(always)]
    fn output_at(&self, image: usize, [y, x]: [usize; 2]) -> usize {
        let [h, w, c] = self.output;
        image
            .wrapping_mul(h)
            .wrapping_add(y)
            .wrapping_mul(w)
            .wrapping_add(x)
            .wrapping_mul(c)
    }

    /// Adds the products of output channel `o` at a place whose taps these are, row by row.
    #[inline(always)]
    fn dots(
        &self,
        image: usize,
        o: usize,
        [(ky, rows, iy), (kx, columns, ix)]: [Taps; 2],
        input: Src<'_, f32>,
        weights: Src<'_, f32>,
        sum: &mut f32,
    ) -> Option<()> {
        let [dh, dw] = two::<_, usize>(self.window.dilation);
        // Neighbouring taps of all channels are one run of elements.
        let joined = dw == 1 && self.groups == 1;
        let (runs, len) = if joined {
            (1, columns.wrapping_mul(self.channels))
        } else {
            (columns, self.channels)
        };
        let first = self.first_channel(o);
        for r in 0..rows {
            let pixel = self
                .input_at(image, [iy.wrapping_add(r.wrapping_mul(dh)), ix])
                .wrapping_add(first);
            let row = o.wrapping_mul(self.kernel[0]).wrapping_add(ky.wrapping_add(r));
            let tap = row
                .wrapping_mul(self.kernel[1])
                .wrapping_add(kx)
                .wrapping_mul(self.channels);
            for k in 0..runs {
                let x = input.slice(pixel.wrapping_add(k.wrapping_mul(dw).wrapping_mul(self.input[2])), len)?;
                let w = weights.slice(tap.wrapping_add(k.wrapping_mul(self.channels)), len)?;
                *sum += dot(x, w);
            }
        }
        Some(())
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
                let mut w = first.wrapping_mul(filter).wrapping_add(tap).wrapping_add(from.channel);
                let mut row = [0.0f32; N];
                for dy in dy.iter() {
                    add_products(&mut row, dy, weights.slice(w, N)?);
                    w = w.wrapping_add(filter);
                }
                add(&mut sums, row);
            }
        }
        let place = block.slice(0, N)?;
        place.cells().iter().zip(sums).for_each(|(dx, sum)| dx.set(sum));
        Some(N)
    }

    /// A step of gradient descent on `N` weights: of output channel `o`, at a tap, from input channel `c` on. How many.
    #[inline(always)]
    fn descend<const N: usize>(
        &self,
        [o, ky, kx, c]: [usize; 4],
        gradient: Src<'_, f32>,
        input: Src<'_, f32>,
        rate: f32,
        block: Dst<'_, f32>,
    ) -> Option<usize> {
        let mut sums = [0.0f32; N];
        for image in 0..self.batch {
            for oy in 0..self.output[0] {
                let Some(iy) = self.input_under(0, oy, ky) else {
                    continue;
                };
                let mut row = [0.0f32; N];
                for ox in 0..self.output[1] {
                    let Some(ix) = self.input_under(1, ox, kx) else {
                        continue;
                    };
                    let dy = gradient.get(self.output_at(image, [oy, ox]).wrapping_add(o))?;
                    let x = self.input_at(image, [iy, ix]).wrapping_add(c);
                    add_products(&mut row, dy, input.slice(x, N)?);
                }
                add(&mut sums, row);
            }
        }
        let place = block.slice(0, N)?;
        place
            .cells()
            .iter()
            .zip(sums)
            .for_each(|(w, sum)| w.set(w.get() - rate * sum));
        Some(N)
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

    /// The row or column of the input at tap `tap` of the window at `out`; none in the padding.
    #[inline(always)]
    fn input_under(&self, axis: usize, out: usize, tap: usize) -> Option<usize> {
        let of = |pair: &[u8; 2]| pair.get(axis).copied().map(usize::from);
        let start = out.wrapping_mul(of(&self.window.stride)?);
        let place = start.wrapping_add(tap.wrapping_mul(of(&self.window.dilation)?));
        let place = place.checked_sub(of(&self.window.padding)?)?;
        (place < *self.input.get(axis)?).then_some(place)
    }
}

/// Adds a factor times as many numbers.
#[inline(always)]
pub(super) fn add_products<const N: usize>(sums: &mut [f32; N], factor: f32, numbers: Src<'_, f32>) {
    sums.iter_mut()
        .zip(numbers.iter())
        .for_each(|(sum, x)| *sum += factor * x);
}

/// Adds one by one.
#[inline(always)]
pub(super) fn add<const N: usize>(sums: &mut [f32; N], row: [f32; N]) {
    sums.iter_mut().zip(row).for_each(|(sum, row)| *sum += row);
}

/// Dot product with eight sums, added one behind the other, and behind them the sum of what is left over.
#[inline(always)]
fn dot(x: Src<'_, f32>, w: Src<'_, f32>) -> f32 {
    let mut sums = [0.0f32; LANES];
    let ((blocks_x, rest_x), (blocks_w, rest_w)) = (x.chunks::<LANES>(), w.chunks::<LANES>());
    let mut block = 0usize;
    while let (Some(x), Some(w)) = (blocks_x.get(block), blocks_w.get(block)) {
        sums.iter_mut()
            .zip(x.iter().zip(w))
            .for_each(|(sum, (x, w))| *sum += x * w);
        block = block.wrapping_add(1);
    }
    let tail = rest_x.iter().zip(rest_w.iter()).map(|(x, w)| x * w).sum::<f32>();
    if block > 0 {
        sums.iter().sum::<f32>() + tail
    } else {
        tail
    }
}
