//! Writers of the five trace dialects: a small network in, a dump of that dialect out, so that importers are tested without the
//! reference traces and on networks of other shapes.
//!
//! Every writer computes sizes by itself, from the definition of a window, and shares no code with the importers.

pub mod chainer;
pub mod keras_order;
pub mod megengine;
pub mod pt2;
pub mod rects;
pub mod tf_shapes;

/// One layer of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layer {
    /// Convolution with bias.
    Conv {
        /// Output channels.
        out: usize,
        /// Kernel: rows, columns, as all pairs here.
        kernel: [usize; 2],
        /// Stride.
        stride: [usize; 2],
        /// Padding above and below, left and right.
        pad: [usize; 2],
        /// Groups.
        groups: usize,
        /// Dilation.
        dilation: [usize; 2],
    },
    /// max(x, 0)
    Relu,
    /// Max pooling.
    MaxPool {
        /// Window.
        kernel: [usize; 2],
        /// Stride.
        stride: [usize; 2],
        /// Ceiling mode.
        ceiling: bool,
    },
    /// Local response normalisation.
    Lrn,
    /// Image to vector.
    Flatten,
    /// Identity at inference.
    Dropout,
    /// Linear layer with bias.
    Linear {
        /// Output features.
        out: usize,
    },
}

impl Layer {
    /// A convolution, in the order of its fields.
    pub fn conv(
        out: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        pad: [usize; 2],
        groups: usize,
        dilation: [usize; 2],
    ) -> Self {
        Self::Conv {
            out,
            kernel,
            stride,
            pad,
            groups,
            dilation,
        }
    }
}

/// A chain of layers on an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Traced batch.
    pub batch: usize,
    /// Channels, rows, columns.
    pub image: [usize; 3],
    /// In order.
    pub layers: Vec<Layer>,
}

impl Chain {
    /// Shape without the batch before every layer, and after the last.
    pub fn shapes(&self) -> Vec<Vec<usize>> {
        let mut shapes = vec![self.image.to_vec()];
        for layer in &self.layers {
            let x = shapes.last().unwrap().clone();
            shapes.push(match *layer {
                Layer::Conv {
                    out,
                    kernel,
                    stride,
                    pad,
                    dilation,
                    ..
                } => {
                    let side = |axis: usize| {
                        let span = dilation[axis] * (kernel[axis] - 1) + 1;
                        (x[1 + axis] + 2 * pad[axis] - span) / stride[axis] + 1
                    };
                    vec![out, side(0), side(1)]
                }
                Layer::MaxPool {
                    kernel,
                    stride,
                    ceiling,
                } => {
                    let side = |axis: usize| {
                        let room = x[1 + axis] - kernel[axis] + if ceiling { stride[axis] - 1 } else { 0 };
                        room / stride[axis] + 1
                    };
                    vec![x[0], side(0), side(1)]
                }
                Layer::Flatten => vec![x.iter().product()],
                Layer::Linear { out } => vec![out],
                Layer::Relu | Layer::Lrn | Layer::Dropout => x,
            });
        }
        shapes
    }

    /// Scalars in all weights and biases.
    pub fn params(&self) -> u64 {
        self.sum(|layer, x, _| match *layer {
            Layer::Conv {
                out, kernel, groups, ..
            } => out * (x[0] / groups * kernel[0] * kernel[1] + 1),
            Layer::Linear { out } => out * (x.iter().product::<usize>() + 1),
            _ => 0,
        })
    }

    /// Multiply-accumulates for one image.
    pub fn macs(&self) -> u64 {
        self.sum(|layer, x, y| match *layer {
            Layer::Conv { kernel, groups, .. } => y.iter().product::<usize>() * x[0] / groups * kernel[0] * kernel[1],
            Layer::Linear { out } => out * x.iter().product::<usize>(),
            _ => 0,
        })
    }

    fn sum(&self, count: impl Fn(&Layer, &[usize], &[usize]) -> usize) -> u64 {
        let shapes = self.shapes();
        let pairs = self.layers.iter().zip(shapes.windows(2));
        pairs.map(|(layer, pair)| count(layer, &pair[0], &pair[1]) as u64).sum()
    }
}

/// A small generator for shuffles and noise (xorshift64*).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }

    /// Shuffles in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
