//! What generated steps are made of: numbers, windows, axes.

use arenite::ops::elementwise::Loop;
use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;

/// A fixed sequence (xorshift).
pub struct Random(pub(super) u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
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
        (self.next() >> 40) as u8
    }

    /// -1 to 1.
    pub fn float(&mut self) -> f32 {
        ((self.next() >> 40) as f32) / (1 << 23) as f32 - 1.0
    }
}

/// The most products of a step, and the most bytes of its constants.
const PRODUCTS: u64 = 600_000;
const CONSTANTS: u64 = 48 << 10;

/// What a window is for.
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

fn window(random: &mut Random, form: Form) -> Window2d {
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
    let mut output = [0; 2];
    let mut padding = [0; 2];
    let mut kernel = kernel;
    for axis in 0..2 {
        let input = [height, width][axis];
        if same || form == Form::Neighbours {
            output[axis] = input.div_ceil(stride);
            let reach = (kernel[axis] - 1) * u32::from(dilation[axis]) + 1;
            let total = ((output[axis] - 1) * stride + reach).saturating_sub(input);
            padding[axis] = total / 2;
        } else {
            let spread = u32::from(dilation[axis]);
            kernel[axis] = kernel[axis].min((input - 1) / spread + 1);
            output[axis] = (input - (kernel[axis] - 1) * spread - 1) / stride + 1;
        }
    }
    let [inputs, outputs] = match form {
        Form::Depthwise | Form::Pool => [random.wide(160); 2],
        Form::Dense => [random.wide(800), random.wide(300)],
        Form::Tiles => [1024 + random.wide(3000), random.wide(24)],
        Form::Neighbours => [4 * random.wide(40), random.wide(160)],
        Form::Convolution => [random.wide(256), random.wide(256)],
    };
    let byte = |pair: [u32; 2]| pair.map(|value| value as u8);
    let short = |pair: [u32; 2]| pair.map(|value| value as u16);
    Window2d {
        batch: if random.chance(12) { 2 } else { 1 },
        input: [height as u16, width as u16, inputs as u16],
        output: [output[0] as u16, output[1] as u16, outputs as u16],
        kernel: short(kernel),
        stride: [stride as u8; 2],
        dilation,
        padding: byte(padding),
    }
}

/// A window of at most so many products and weights.
pub(super) fn affordable(random: &mut Random, form: Form, bytes: u64) -> Window2d {
    loop {
        let window = window(random, form);
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
            return window;
        }
    }
}

/// Axes of a broadcast.
pub(super) fn loops(random: &mut Random) -> heapless::Vec<Loop, 6> {
    let mut loops = heapless::Vec::new();
    let count = random.wide(8000);
    match random.between(0, 5) {
        0 | 5 => {
            let axes = random.between(3, 4);
            let mut inner = 1;
            let mut axes: Vec<Loop> = (0..axes)
                .map(|axis| {
                    let count = random.wide(10);
                    let (a, b) = (inner, if axis % 2 == 1 { 0 } else { inner });
                    inner *= count;
                    Loop { count, a, b }
                })
                .collect();
            axes.reverse();
            loops.extend(axes);
        }
        1 => {
            let inner = random.wide(64);
            _ = loops.push(Loop {
                count: count.min(400),
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
