//! Parts of generated steps: numbers, windows, axes.

use arenite::ops::elementwise::Loop;
use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;

/// A fixed sequence (xorshift).
pub struct Random {
    state: u64,
    scaling: Option<Scaling>,
}

/// One axis of a step that is some times as long as it was drawn. Contents are another sequence, so that longer constants change nothing else.
struct Scaling {
    axis: &'static str,
    factor: u32,
    /// Extents of the base, in parts of the drawn ones.
    larger: u32,
    names: Vec<&'static str>,
    contents: Box<Random>,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            scaling: None,
        }
    }

    /// The sequence of a seed, with all extents `larger` times as long as they are drawn and `axis` scaled by `factor` beside that. The steps of one seed
    /// differ in that axis alone.
    pub fn scaled(seed: u64, larger: u32, axis: &'static str, factor: u32) -> Self {
        Self {
            scaling: Some(Scaling {
                axis,
                factor,
                larger,
                names: Vec::new(),
                contents: Box::new(Self::new(!seed)),
            }),
            ..Self::new(seed)
        }
    }

    /// The axes that a step was made of, where they can be scaled.
    pub fn axes(&self) -> &[&'static str] {
        self.scaling.as_ref().map_or(&[], |scaling| &scaling.names)
    }

    /// The extent `drawn` of an axis, scaled where it is the one that is.
    pub(super) fn extent(&mut self, axis: &'static str, drawn: u32) -> u32 {
        let Some(scaling) = &mut self.scaling else { return drawn };
        if !scaling.names.contains(&axis) {
            scaling.names.push(axis);
        }
        drawn * scaling.larger * if scaling.axis == axis { scaling.factor } else { 1 }
    }

    /// Returns the state that the next number is drawn from.
    pub(super) fn state(&self) -> u64 {
        self.state
    }

    /// An extent as [`Random::wide`] draws them.
    pub(super) fn axis(&mut self, axis: &'static str, to: u32) -> u32 {
        let drawn = self.wide(to);
        self.extent(axis, drawn)
    }

    /// Returns the value of `extent` in the base.
    pub(super) fn of_base(&self, axis: &'static str, extent: u32) -> u32 {
        match &self.scaling {
            Some(scaling) if scaling.axis == axis => extent / scaling.factor,
            _ => extent,
        }
    }

    /// Returns the value of `extent` before it was scaled.
    pub(super) fn unscaled(&self, axis: &'static str, extent: u32) -> u32 {
        let larger = self.scaling.as_ref().map_or(1, |scaling| scaling.larger);
        self.of_base(axis, extent) / larger
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// The sequence that contents are drawn from.
    pub(super) fn contents(&mut self) -> &mut Self {
        match self.scaling {
            Some(Scaling { ref mut contents, .. }) => contents,
            None => self,
        }
    }

    /// `from..=to`.
    pub(super) fn between(&mut self, from: u32, to: u32) -> u32 {
        from + (((self.next() >> 32) * u64::from(to - from + 1)) >> 32) as u32
    }

    /// As many small numbers as large ones, and now and then multiples of 16.
    pub(super) fn wide(&mut self, to: u32) -> u32 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let value = ((f64::from(to) + 1.0).ln() * unit).exp() as u32;
        let value = value.clamp(1, to);
        match self.between(0, 2) {
            0 if value >= 4 => value & !3,
            1 if value >= 8 => value & !7,
            _ => value,
        }
    }

    pub(super) fn chance(&mut self, of: u32) -> bool {
        self.between(1, of) == 1
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u32 - 1) as usize]
    }

    /// A byte of any value.
    pub fn byte(&mut self) -> u8 {
        (self.contents().next() >> 40) as u8
    }

    /// -1 to 1.
    pub fn float(&mut self) -> f32 {
        ((self.contents().next() >> 40) as f32) / (1 << 23) as f32 - 1.0
    }
}

/// The most products of a step, and the most bytes of its constants.
const PRODUCTS: u64 = 600_000;
const CONSTANTS: u64 = 48 << 10;

/// Purpose of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Convolution,
    Dense,
    /// A layer of one pixel and many inputs.
    Tiles,
    /// A convolution of 3 x 3 windows, each a step from the next, over channels by fours.
    Neighbours,
    Depthwise,
    Pool,
}

/// A window as it was drawn; its output follows.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    form: Form,
    batch: u32,
    input: [u32; 2],
    channels: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    dilation: [u32; 2],
    same: bool,
}

fn drawn(random: &mut Random, form: Form) -> Drawn {
    let [height, width] = match form {
        Form::Dense => [1, if random.chance(4) { random.wide(12) } else { 1 }],
        Form::Tiles => [1, 1],
        _ if random.chance(8) => [1, random.wide(64)],
        _ => [random.wide(28), random.wide(28)],
    };
    let kernel = match form {
        Form::Dense | Form::Tiles => [1, 1],
        Form::Pool if random.chance(3) => [height, width],
        Form::Pool => random.one_of(&[[2, 2], [3, 3], [2, 3], [1, 2], [4, 4]]),
        Form::Depthwise => random.one_of(&[[3, 3], [3, 3], [3, 3], [5, 5], [1, 3], [3, 1], [2, 2], [4, 3]]),
        Form::Neighbours => [3, 3],
        Form::Convolution => random.one_of(&[
            [1, 1],
            [1, 1],
            [1, 1],
            [3, 3],
            [3, 3],
            [3, 3],
            [5, 5],
            [10, 4],
            [1, 5],
            [2, 3],
        ]),
    };
    let stride = if matches!(form, Form::Dense | Form::Tiles | Form::Neighbours) {
        1
    } else {
        random.one_of(&[1, 1, 2])
    };
    let stride = if form == Form::Pool && random.chance(2) {
        kernel[0].clamp(1, 8)
    } else {
        stride
    };
    let dilated = matches!(form, Form::Convolution | Form::Depthwise) && random.chance(8);
    let dilation = [if dilated { 2 } else { 1 }; 2];
    let same = random.chance(2);
    let channels = match form {
        Form::Depthwise | Form::Pool => [random.wide(160); 2],
        Form::Dense => [random.wide(800), random.wide(300)],
        Form::Tiles => [1024 + random.wide(3000), random.wide(24)],
        Form::Neighbours => [4 * random.wide(40), random.wide(160)],
        Form::Convolution => [random.wide(256), random.wide(256)],
    };
    Drawn {
        form,
        batch: if random.chance(12) { 2 } else { 1 },
        input: [height, width],
        channels,
        kernel,
        stride: [stride; 2],
        dilation,
        same,
    }
}

impl Drawn {
    /// The same with each extent as it is to be.
    fn extents(self, random: &mut Random) -> Self {
        let mut pair =
            |names: [&'static str; 2], pair: [u32; 2]| [0, 1].map(|axis| random.extent(names[axis], pair[axis]));
        let input = pair(["height", "width"], self.input);
        let [kernels, dilations] = [
            ["kernel rows", "kernel columns"],
            ["dilation of rows", "dilation of columns"],
        ];
        let mut kernel = pair(kernels, self.kernel);
        let stride = pair(["stride of rows", "stride of columns"], self.stride);
        let mut dilation = pair(dilations, self.dilation);
        // A window that its image has no room for would be made smaller along the same axis.
        for axis in 0..2 {
            let reach = (kernel[axis] - 1) * dilation[axis];
            if reach >= input[axis] && !self.same && self.form != Form::Neighbours {
                kernel[axis] = random.of_base(kernels[axis], kernel[axis]);
                dilation[axis] = random.of_base(dilations[axis], dilation[axis]);
            }
        }
        let [inputs, outputs] = self.channels;
        let channels = match self.form {
            Form::Depthwise | Form::Pool => [random.extent("channels", inputs); 2],
            _ => [random.extent("inputs", inputs), random.extent("outputs", outputs)],
        };
        Self {
            batch: random.extent("batch", self.batch),
            input,
            channels,
            kernel,
            stride,
            dilation,
            ..self
        }
    }

    fn window(self) -> Window2d {
        let (mut output, mut padding, mut kernel) = ([0; 2], [0; 2], self.kernel);
        for axis in 0..2 {
            let (input, stride, spread) = (self.input[axis], self.stride[axis], self.dilation[axis]);
            if self.same || self.form == Form::Neighbours {
                output[axis] = input.div_ceil(stride);
                let reach = (kernel[axis] - 1) * spread + 1;
                padding[axis] = ((output[axis] - 1) * stride + reach).saturating_sub(input) / 2;
            } else {
                kernel[axis] = kernel[axis].min((input - 1) / spread + 1);
                output[axis] = (input - (kernel[axis] - 1) * spread - 1) / stride + 1;
            }
        }
        let byte = |pair: [u32; 2]| pair.map(|value| value.min(255) as u8);
        let short = |pair: [u32; 2]| pair.map(|value| value as u16);
        Window2d {
            batch: self.batch as u16,
            input: [self.input[0] as u16, self.input[1] as u16, self.channels[0] as u16],
            output: [output[0] as u16, output[1] as u16, self.channels[1] as u16],
            kernel: short(kernel),
            stride: byte(self.stride),
            dilation: byte(self.dilation),
            padding: byte(padding),
        }
    }
}

/// A window of at most so many products and weights, before an axis of it is scaled.
pub(super) fn affordable(random: &mut Random, form: Form, bytes: u64) -> Window2d {
    loop {
        let drawn = drawn(random, form);
        let window = drawn.window();
        let [rows, columns, outputs] = window.output.map(u64::from);
        let taps = u64::from(window.kernel[0]) * u64::from(window.kernel[1]);
        let terms = match form {
            Form::Depthwise | Form::Pool => taps,
            _ => taps * u64::from(window.input[2]),
        };
        let products = u64::from(window.batch) * rows * columns * outputs * terms;
        let input: u64 = window.input.map(u64::from).iter().product();
        // Four bytes: f32, which takes some cores a hundred instructions.
        if products * bytes <= PRODUCTS && terms * outputs * bytes <= CONSTANTS && input * bytes <= 64 << 10 {
            return drawn.extents(random).window();
        }
    }
}

/// Axes of a broadcast.
pub(super) fn loops(random: &mut Random) -> heapless::Vec<Loop, 6> {
    let mut loops = heapless::Vec::new();
    let drawn = random.wide(8000);
    let count = random.extent("count", drawn);
    match random.between(0, 5) {
        0 | 5 => {
            let axes = random.between(3, 4);
            let mut inner = 1;
            let mut axes: Vec<Loop> = (0..axes)
                .map(|axis| {
                    let count = random.axis(["axis 0", "axis 1", "axis 2", "axis 3"][axis as usize], 10);
                    let (a, b) = (inner, if axis % 2 == 1 { 0 } else { inner });
                    inner *= count;
                    Loop { count, a, b }
                })
                .collect();
            axes.reverse();
            loops.extend(axes);
        }
        1 => {
            let inner = random.axis("inner", 64);
            _ = loops.push(Loop {
                count: random.extent("outer", drawn.min(400)),
                a: inner,
                b: 0,
            });
            _ = loops.push(Loop {
                count: inner,
                a: 1,
                b: 1,
            });
        }
        2 => _ = loops.push(Loop { count, a: 1, b: 0 }),
        _ => _ = loops.push(Loop { count, a: 1, b: 1 }),
    }
    loops
}

pub(super) fn multiplier(random: &mut Random, shift: i8) -> Multiplier {
    Multiplier {
        mantissa: (1 << 30) + random.between(0, (1 << 30) - 1) as i32,
        shift,
    }
}
