//! Locally connected layers with trained filters, from the formulas of [`crate::ops::locally_connected_train`].
//!
//! All go along rows of outputs, eight columns at a time, as weights and activations lie in memory. Long sums are sums of sums.

use super::clamp;
use crate::arena::{Mem, Slot};
use crate::cells::Src;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::locally_connected_train::{
    LocallyConnectedGainGradF32, LocallyConnectedInputGradF32, LocallyConnectedWeightSgdF32, TrainedLocallyConnectedF32,
};
use crate::ops::window::{three, two};

/// Columns whose sums are made together.
const COLUMNS: usize = 8;

/// The layer, f32.
#[derive(Debug)]
pub struct Forward;

/// The gradient of the input, f32.
#[derive(Debug)]
pub struct InputGrad;

/// Gradient descent on the weights, f32.
#[derive(Debug)]
pub struct WeightSgd;

/// The gradient of the gain, f32.
#[derive(Debug)]
pub struct GainGrad;

impl Kernel for Forward {
    type Op = TrainedLocallyConnectedF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &TrainedLocallyConnectedF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let output = mem.dst::<f32>(op.output, shape.output_len()?)?;
        let input = mem.src::<f32>(op.input, shape.input_len()?)?;
        let weights = mem.src::<f32>(op.weights, shape.weights_len()?)?;
        let bias = match op.bias {
            Some(bias) => Some(mem.src::<f32>(bias, shape.bias_len()?)?),
            None => None,
        };
        let gain = gain(op.gain, mem)?;
        let layer = Layer::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
        let [_, rows, columns] = layer.output;
        for row in 0..layer.rows() {
            let line = layer.line(row);
            let biases = line
                .filter
                .wrapping_mul(rows)
                .wrapping_add(line.y)
                .wrapping_mul(columns);
            let mut first = 0;
            while first < columns {
                let count = COLUMNS.min(columns.wrapping_sub(first));
                let sums = layer.sums(&line, [first, count], input, weights)?;
                let place = output.slice(row.wrapping_mul(columns).wrapping_add(first), count)?;
                match bias {
                    Some(bias) => {
                        let bias = bias.slice(biases.wrapping_add(first), count)?;
                        for ((y, sum), bias) in place.cells().iter().zip(sums).zip(bias.iter()) {
                            y.set(clamp(sum * gain + bias, op.clamp));
                        }
                    }
                    None => {
                        let cells = place.cells().iter();
                        cells.zip(sums).for_each(|(y, sum)| y.set(clamp(sum * gain, op.clamp)));
                    }
                }
                first = first.wrapping_add(count);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Forward {}

impl Kernel for InputGrad {
    type Op = LocallyConnectedInputGradF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LocallyConnectedInputGradF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let output = mem.dst::<f32>(op.output, shape.input_len()?)?;
        let gradient = mem.src::<f32>(op.gradient, shape.output_len()?)?;
        let weights = mem.src::<f32>(op.weights, shape.weights_len()?)?;
        let gain = gain(op.gain, mem)?;
        let layer = Layer::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
        let [channels, height, width] = layer.input;
        for row in 0..layer.batch.wrapping_mul(channels).wrapping_mul(height) {
            let y = row.checked_rem(height)?;
            let channel = row.checked_div(height)?.checked_rem(channels)?;
            let image = row.checked_div(height)?.checked_div(channels)?;
            let mut first = 0;
            while first < width {
                let count = COLUMNS.min(width.wrapping_sub(first));
                let mut sums = [0.0f32; COLUMNS];
                for filter in 0..layer.output[0] {
                    let from = Below {
                        image,
                        filter,
                        channel,
                        y,
                        first,
                        count,
                    };
                    let part = layer.back(&from, gradient, weights)?;
                    sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                }
                let place = output.slice(row.wrapping_mul(width).wrapping_add(first), count)?;
                place.cells().iter().zip(sums).for_each(|(dx, sum)| dx.set(gain * sum));
                first = first.wrapping_add(count);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for InputGrad {}

impl Kernel for WeightSgd {
    type Op = LocallyConnectedWeightSgdF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LocallyConnectedWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let weights = mem.dst::<f32>(op.weights, shape.weights_len()?)?;
        let gradient = mem.src::<f32>(op.gradient, shape.output_len()?)?;
        let input = mem.src::<f32>(op.input, shape.input_len()?)?;
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        let gain = gain(op.gain, mem)?;
        let layer = Layer::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
        let ([filters, rows, columns], [channels, height, width]) = (layer.output, layer.input);
        let [kernel_rows, kernel_columns] = layer.kernel;
        let images = (
            filters.wrapping_mul(rows).wrapping_mul(columns),
            channels.wrapping_mul(height).wrapping_mul(width),
        );
        // Rows of weights, in their order.
        let mut w = 0usize;
        for filter in 0..filters {
            for channel in 0..channels {
                for tap in 0..kernel_rows.wrapping_mul(kernel_columns) {
                    let (ky, kx) = (tap.checked_div(kernel_columns)?, tap.checked_rem(kernel_columns)?);
                    for y in 0..rows {
                        let dy = filter.wrapping_mul(rows).wrapping_add(y).wrapping_mul(columns);
                        let place = channel.wrapping_mul(height).wrapping_add(y).wrapping_add(ky);
                        let x = place.wrapping_mul(width).wrapping_add(kx);
                        let mut first = 0;
                        while first < columns {
                            let count = COLUMNS.min(columns.wrapping_sub(first));
                            let mut sums = [0.0f32; COLUMNS];
                            for image in 0..layer.batch {
                                let at = |of: usize, from: usize| {
                                    image.wrapping_mul(of).wrapping_add(from).wrapping_add(first)
                                };
                                let dy = gradient.slice(at(images.0, dy), count)?;
                                let x = input.slice(at(images.1, x), count)?;
                                for ((sum, dy), x) in sums.iter_mut().zip(dy.iter()).zip(x.iter()) {
                                    *sum += dy * x;
                                }
                            }
                            for (w, sum) in weights.slice(w, count)?.cells().iter().zip(sums) {
                                w.set(w.get() - rate * (gain * sum));
                            }
                            w = w.wrapping_add(count);
                            first = first.wrapping_add(count);
                        }
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for WeightSgd {}

impl Kernel for GainGrad {
    type Op = LocallyConnectedGainGradF32;

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LocallyConnectedGainGradF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape();
        let output = mem.dst::<f32>(op.output, 1)?;
        let gradient = mem.src::<f32>(op.gradient, shape.output_len()?)?;
        let input = mem.src::<f32>(op.input, shape.input_len()?)?;
        let weights = mem.src::<f32>(op.weights, shape.weights_len()?)?;
        let layer = Layer::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
        let [_, rows, columns] = layer.output;
        // Of all, of a filter's image, and of a row.
        let (mut all, mut of_filter) = (0.0f32, 0.0f32);
        for row in 0..layer.rows() {
            let line = layer.line(row);
            let (mut of_row, mut first) = (0.0f32, 0);
            while first < columns {
                let count = COLUMNS.min(columns.wrapping_sub(first));
                let sums = layer.sums(&line, [first, count], input, weights)?;
                let dy = gradient.slice(row.wrapping_mul(columns).wrapping_add(first), count)?;
                dy.iter().zip(sums).for_each(|(dy, sum)| of_row += dy * sum);
                first = first.wrapping_add(count);
            }
            of_filter += of_row;
            if line.y.wrapping_add(1) == rows {
                all += of_filter;
                of_filter = 0.0;
            }
        }
        output.set(0, all)
    }
}

#[cfg(any(test, packing))]
impl Candidate for GainGrad {}

/// The factor of a layer's sums.
fn gain(slot: Option<Slot>, mem: &Mem<'_>) -> Option<f32> {
    match slot {
        Some(slot) => mem.src::<f32>(slot, 1)?.get(0),
        None => Some(1.0),
    }
}

/// A layer's extents.
struct Layer {
    batch: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 2],
}

/// A row of the output.
struct Line {
    image: usize,
    filter: usize,
    y: usize,
}

/// Neighbours in a row of the input, and the filter whose products with them are summed.
struct Below {
    image: usize,
    filter: usize,
    channel: usize,
    y: usize,
    first: usize,
    count: usize,
}

impl Layer {
    fn new(batch: u16, input: [u16; 3], output: [u16; 3], kernel: [u16; 2]) -> Self {
        Self {
            batch: batch.into(),
            input: three(input),
            output: three(output),
            kernel: two(kernel),
        }
    }

    /// Rows of the output, of all images and filters.
    fn rows(&self) -> usize {
        self.batch.wrapping_mul(self.output[0]).wrapping_mul(self.output[1])
    }

    fn line(&self, row: usize) -> Line {
        let [filters, rows, _] = self.output;
        let of_filter = row.checked_div(rows).unwrap_or(0);
        Line {
            image: of_filter.checked_div(filters).unwrap_or(0),
            filter: of_filter.checked_rem(filters).unwrap_or(0),
            y: row.checked_rem(rows).unwrap_or(0),
        }
    }

    /// Index of the first weight of a row of outputs at a tap.
    #[inline(always)]
    fn weight(&self, filter: usize, channel: usize, [ky, kx]: [usize; 2], y: usize) -> usize {
        let ([channels, ..], [rows, columns]) = (self.input, self.kernel);
        let tap = filter.wrapping_mul(channels).wrapping_add(channel).wrapping_mul(rows);
        let tap = tap.wrapping_add(ky).wrapping_mul(columns).wrapping_add(kx);
        let row = tap.wrapping_mul(self.output[1]).wrapping_add(y);
        row.wrapping_mul(self.output[2])
    }

    /// The sums of `count` neighbours of a row of outputs from `first` on.
    #[inline(always)]
    fn sums(
        &self,
        line: &Line,
        [first, count]: [usize; 2],
        input: Src<'_, f32>,
        weights: Src<'_, f32>,
    ) -> Option<[f32; COLUMNS]> {
        let [channels, height, width] = self.input;
        let mut sums = [0.0f32; COLUMNS];
        for channel in 0..channels {
            let mut part = [0.0f32; COLUMNS];
            let plane = line
                .image
                .wrapping_mul(channels)
                .wrapping_add(channel)
                .wrapping_mul(height);
            for ky in 0..self.kernel[0] {
                let row = plane
                    .wrapping_add(line.y)
                    .wrapping_add(ky)
                    .wrapping_mul(width)
                    .wrapping_add(first);
                for kx in 0..self.kernel[1] {
                    let x = input.slice(row.wrapping_add(kx), count)?;
                    let w = self.weight(line.filter, channel, [ky, kx], line.y).wrapping_add(first);
                    let w = weights.slice(w, count)?;
                    for ((sum, x), w) in part.iter_mut().zip(x.iter()).zip(w.iter()) {
                        *sum += x * w;
                    }
                }
            }
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        Some(sums)
    }

    /// Contributions of one filter to the gradients of neighbours in a row of the input.
    #[inline(always)]
    fn back(&self, from: &Below, gradient: Src<'_, f32>, weights: Src<'_, f32>) -> Option<[f32; COLUMNS]> {
        let [filters, rows, columns] = self.output;
        let mut sums = [0.0f32; COLUMNS];
        let end = from.first.wrapping_add(from.count);
        for ky in 0..self.kernel[0] {
            let Some(oy) = from.y.checked_sub(ky).filter(|&oy| oy < rows) else {
                continue;
            };
            let plane = from
                .image
                .wrapping_mul(filters)
                .wrapping_add(from.filter)
                .wrapping_mul(rows);
            let line = plane.wrapping_add(oy).wrapping_mul(columns);
            for kx in 0..self.kernel[1] {
                // Columns of the input that an output has at this tap.
                let (low, high) = (from.first.max(kx), end.min(kx.wrapping_add(columns)));
                if low >= high {
                    continue;
                }
                let (ox, count) = (low.wrapping_sub(kx), high.wrapping_sub(low));
                let dy = gradient.slice(line.wrapping_add(ox), count)?;
                let w = self.weight(from.filter, from.channel, [ky, kx], oy).wrapping_add(ox);
                let w = weights.slice(w, count)?;
                let places = sums.iter_mut().skip(low.wrapping_sub(from.first));
                for ((sum, dy), w) in places.zip(dy.iter()).zip(w.iter()) {
                    *sum += dy * w;
                }
            }
        }
        Some(sums)
    }
}
