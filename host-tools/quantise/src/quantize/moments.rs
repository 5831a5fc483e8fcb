//! Moments of the inputs of the quantised network's layers on the samples: first and second moments of the numbers behind each weight, in integers, so that
//! their sums depend on no order.

use std::collections::BTreeMap;

use super::activations::Activations;
use super::evaluate::{Evaluator, Samples};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, Op, TensorId};
use crate::weights::Weights;

/// The most windows of a layer, over all samples: products of two stored numbers are below 2^16, so that so many fit in 32 bits.
const MOST_WINDOWS: usize = 1 << 15;
/// Windows for each weight of an output, and at least.
const WINDOWS: (usize, usize) = (12, 2048);
/// The most products of a layer, and of the layers that are looked at in one run over the samples.
const MOST_PRODUCTS: usize = 24 << 20;

/// The moments of a layer's operand, by group.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    /// Windows that were looked at.
    pub(super) count: u64,
    /// Integer that stands for 1 among the factors of the products.
    pub(super) unit: f64,
    /// Of each weight of an output: the sum of the numbers that it met, zero points taken off.
    pub(super) sums: Vec<i64>,
    /// Of each two weights: the sum of the products, `[group][i][j]` with `j >= i`. Empty where they were not wanted or are too many.
    pub(super) products: Vec<i64>,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            unit: 1.0,
            sums: Vec::new(),
            products: Vec::new(),
        }
    }
}

/// How a layer's windows lie in its operand, NHWC.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    image: [usize; 4],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
    output: [usize; 2],
    pub(super) groups: usize,
    within: usize,
}

impl Windows {
    /// Of a convolution; of a linear layer those of an image of one row of pixels for each of its rows.
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let [x, weights] = [0, 1].map(|index| node.inputs.get(index).copied().flatten());
        let (x, weights) = (graph.tensor(x?), graph.tensor(weights?));
        match (&node.op, &weights.shape[..], &x.shape[..]) {
            (Op::Conv2d(attrs), &[_, kh, kw, within], &[n, h, w, c]) => {
                let y = &graph.tensor(*node.outputs.first()?).shape;
                Some(Self {
                    image: [n, h, w, c],
                    kernel: [kh, kw],
                    stride: attrs.stride,
                    dilation: attrs.dilation,
                    padding: [attrs.padding.top, attrs.padding.left],
                    output: [y[1], y[2]],
                    groups: attrs.groups,
                    within,
                })
            }
            (Op::Linear { .. }, &[_, inputs], _) => Some(Self {
                image: [x.elements() / inputs.max(1), 1, 1, inputs],
                kernel: [1, 1],
                stride: [1, 1],
                dilation: [1, 1],
                padding: [0, 0],
                output: [1, 1],
                groups: 1,
                within: inputs,
            }),
            _ => None,
        }
    }

    /// Weights of an output.
    pub(super) fn inputs(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.within
    }

    fn positions(&self) -> usize {
        self.image[0] * self.output[0] * self.output[1]
    }

    /// Every how manyth window is looked at, of so many samples: a number that shares no factor with the extents, so that none of them is always met
    /// at one place.
    fn step(&self, samples: usize) -> usize {
        let wanted = (WINDOWS.0 * self.inputs()).clamp(WINDOWS.1, MOST_WINDOWS);
        let mut step = (self.positions() * samples).div_ceil(wanted).max(1);
        while step > 1 && self.output.iter().any(|&extent| extent > 1 && common(step, extent) > 1) {
            step += 1;
        }
        step
    }

    /// Hands out the numbers in a window, group by group, zero where it meets padding.
    fn window(&self, x: &[i16], position: usize, numbers: &mut Vec<i16>, mut see: impl FnMut(usize, &[i16])) {
        let [_, height, width, channels] = self.image;
        let [rows, columns] = self.output;
        let (image, row, column) = (
            position / (rows * columns),
            position / columns % rows,
            position % columns,
        );
        for group in 0..self.groups {
            numbers.clear();
            for tap in 0..self.kernel[0] * self.kernel[1] {
                let (ky, kx) = (tap / self.kernel[1], tap % self.kernel[1]);
                let y = (row * self.stride[0] + ky * self.dilation[0]).checked_sub(self.padding[0]);
                let at = (column * self.stride[1] + kx * self.dilation[1]).checked_sub(self.padding[1]);
                match (y.filter(|&y| y < height), at.filter(|&at| at < width)) {
                    (Some(y), Some(at)) => {
                        let first = ((image * height + y) * width + at) * channels + group * self.within;
                        numbers.extend_from_slice(&x[first..first + self.within]);
                    }
                    _ => numbers.resize(numbers.len() + self.within, 0),
                }
            }
            see(group, numbers);
        }
    }
}

fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

/// A part's sums of a layer.
#[derive(Default)]
struct Part {
    count: u64,
    sums: Vec<i64>,
    products: Vec<i32>,
}

/// The moments of the layers of a quantised graph, by node; products only where `products` says so.
pub(super) fn collect(
    graph: &Graph,
    layers: &[usize],
    weights: &Weights,
    samples: &Samples,
    threads: usize,
    products: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BTreeMap<usize, Moments>> {
    let windows = |index: usize| Some((index, Windows::of(graph, &graph.nodes[index])?));
    let all: Vec<(usize, Windows)> = layers.iter().filter_map(|&index| windows(index)).collect();
    let products_of = |windows: &Windows| match windows.groups * windows.inputs() * windows.inputs() {
        count if products && count <= MOST_PRODUCTS => count,
        _ => 0,
    };
    let mut found = BTreeMap::new();
    let mut rest = &all[..];
    while !rest.is_empty() {
        let mut together = 0;
        let fit = rest.iter().take_while(|(_, windows)| {
            together += products_of(windows);
            together <= MOST_PRODUCTS
        });
        let (batch, others) = rest.split_at(fit.count().max(1));
        rest = others;
        let mut readers: BTreeMap<TensorId, Vec<usize>> = BTreeMap::new();
        for (at, (index, _)) in batch.iter().enumerate() {
            let x = graph.nodes[*index].inputs[0].ok_or_else(|| Error::internal("a layer without an operand"))?;
            readers.entry(x).or_default().push(at);
        }
        let mut units: BTreeMap<usize, u32> = BTreeMap::new();
        for (&x, layers) in &readers {
            let shift = integers(graph, x)?.0.coarser();
            units.extend(layers.iter().map(|&at| (batch[at].0, shift)));
        }
        let evaluator = Evaluator::new(graph, weights, threads, |id| readers.contains_key(&id))?;
        let parts = evaluator.each(
            samples,
            || batch.iter().map(|_| Part::default()).collect::<Vec<Part>>(),
            |parts, seen| {
                let (activations, zero) = integers(graph, seen.tensor)?;
                let mut numbers = activations.numbers(seen.bytes);
                numbers.iter_mut().for_each(|number| *number -= zero);
                for &at in readers.get(&seen.tensor).into_iter().flatten() {
                    let windows = &batch[at].1;
                    add(
                        &mut parts[at],
                        windows,
                        &numbers,
                        [seen.sample, samples.len()],
                        (products_of(windows) > 0).then(|| activations.coarser()),
                    );
                }
                Ok(())
            },
            &mut |done| {
                progress(
                    (all.len() - rest.len()) as u64 * done as u64,
                    (all.len() * samples.len()) as u64,
                )
            },
        )?;
        for part in parts {
            for (part, (index, _)) in part.into_iter().zip(batch) {
                let moments: &mut Moments = found.entry(*index).or_default();
                moments.count += part.count;
                moments.unit = f64::from(1_u32 << units[index]);
                widen(&mut moments.sums, part.sums);
                widen(&mut moments.products, part.products);
            }
        }
    }
    Ok(found)
}

/// Returns the number format of a layer's input, and its zero point.
fn integers(graph: &Graph, id: TensorId) -> Result<(Activations, i16)> {
    let tensor = graph.tensor(id);
    let found = Activations::of(tensor).map(|(activations, quant)| (activations, quant.zero_point[0] as i16));
    found.ok_or_else(|| Error::internal(format!("`{}` has no scale", tensor.name)))
}

fn widen<T: Into<i64>>(sums: &mut Vec<i64>, part: Vec<T>) {
    sums.resize(sums.len().max(part.len()), 0);
    sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value.into());
}

/// With `products`, those of numbers that are shifted right by so much.
fn add(part: &mut Part, windows: &Windows, x: &[i16], [sample, samples]: [usize; 2], products: Option<u32>) {
    let (inputs, positions) = (windows.inputs(), windows.positions());
    part.sums.resize(windows.groups * inputs, 0);
    if products.is_some() {
        part.products.resize(windows.groups * inputs * inputs, 0);
    }
    let step = windows.step(samples);
    let first = (step - sample * positions % step) % step;
    let mut window = Vec::with_capacity(inputs);
    let mut coarse = Vec::with_capacity(inputs);
    for position in (first..positions).step_by(step) {
        part.count += 1;
        windows.window(x, position, &mut window, |group, numbers| {
            let sums = &mut part.sums[group * inputs..][..inputs];
            sums.iter_mut()
                .zip(numbers)
                .for_each(|(sum, &number)| *sum += i64::from(number));
            if let Some(shift) = products {
                let half = (1 << shift) >> 1;
                coarse.clear();
                coarse.extend(numbers.iter().map(|&number| (i32::from(number) + half) >> shift));
                let products = &mut part.products[group * inputs * inputs..][..inputs * inputs];
                for (i, &a) in coarse.iter().enumerate().filter(|(_, a)| **a != 0) {
                    let row = &mut products[i * inputs + i..(i + 1) * inputs];
                    row.iter_mut().zip(&coarse[i..]).for_each(|(sum, &b)| *sum += a * b);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_meet_what_the_definition_says() {
        let windows = Windows {
            image: [1, 3, 4, 4],
            kernel: [2, 3],
            stride: [2, 1],
            dilation: [1, 2],
            padding: [1, 1],
            output: [2, 2],
            groups: 2,
            within: 2,
        };
        let x: Vec<i16> = (1..=48).collect();
        let value = |y: isize, column: isize, channel: usize| {
            let inside = (0..3).contains(&y) && (0..4).contains(&column);
            if inside {
                x[((y * 4 + column) * 4) as usize + channel]
            } else {
                0
            }
        };
        let mut seen = 0;
        for position in 0..4 {
            let (row, column) = (position as isize / 2, position as isize % 2);
            windows.window(&x, position, &mut Vec::new(), |group, numbers| {
                let mut at = 0;
                for ky in 0..2 {
                    for kx in 0..3 {
                        for i in 0..2 {
                            let expected = value(row * 2 + ky - 1, column + kx * 2 - 1, group * 2 + i);
                            assert_eq!(numbers[at], expected, "{position} {group} {at}");
                            at += 1;
                        }
                    }
                }
                assert_eq!(at, numbers.len());
                seen += 1;
            });
        }
        assert_eq!(seen, 8);
    }

    #[test]
    fn all_windows_are_met_where_there_are_few_and_no_more_than_fit_where_there_are_many() {
        let mut windows = Windows {
            image: [1, 5, 7, 3],
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
            output: [5, 7],
            groups: 1,
            within: 3,
        };
        assert_eq!(windows.step(10), 1);
        windows.output = [96, 96];
        let step = windows.step(1000);
        assert!(
            step % 2 == 1 && !step.is_multiple_of(3) && 96 * 96 * 1000 / step < MOST_WINDOWS,
            "{step}"
        );
    }
}
