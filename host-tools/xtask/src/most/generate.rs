//! Generated steps over many shapes, with their constants: what counts of instructions are taken from.

use arenite::kernels::candidate::{Job, JobKind, Layout, PlainS8};
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8};
use arenite::ops::elementwise::Loop;
use arenite::ops::elementwise_int::{BinaryInt, IntOp};
use arenite::ops::linear::LinearF32;
use arenite::ops::packed_sum::PackedSumS8;
use arenite::ops::pool2d::{PoolF32, PoolInt};
use arenite::ops::softmax::{SoftmaxF32, SoftmaxInt, SoftmaxKind};
use arenite::ops::window::Window2d;
use arenite::quant::{Multiplier, SoftmaxI8};
use arenite::{DType, KernelId, Slot, Step};

/// A step with its places: operands in region 0 from `arena` on, constants in the weights from `weights` on.
pub struct Generated {
    /// The step.
    pub step: Step,
    /// Its constants.
    pub constants: Vec<u8>,
    /// Bytes of its operands.
    pub bytes: u32,
}

/// A fixed sequence (xorshift).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// `from..=to`.
    fn between(&mut self, from: u32, to: u32) -> u32 {
        from + (((self.next() >> 32) * u64::from(to - from + 1)) >> 32) as u32
    }

    /// As many small numbers as large ones, and now and then multiples of 16.
    fn wide(&mut self, to: u32) -> u32 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let value = ((f64::from(to) + 1.0).ln() * unit).exp() as u32;
        let value = value.clamp(1, to);
        match self.between(0, 2) {
            0 if value >= 4 => value & !3,
            1 if value >= 8 => value & !7,
            _ => value,
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.between(1, of) == 1
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
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
enum Form {
    Convolution,
    Dense,
    Depthwise,
    Pool,
}

fn window(random: &mut Random, form: Form) -> Window2d {
    let [height, width] = match form {
        Form::Dense => [1, if random.chance(4) { random.wide(12) } else { 1 }],
        _ if random.chance(8) => [1, random.wide(64)],
        _ => [random.wide(28), random.wide(28)],
    };
    let kernel = match form {
        Form::Dense => [1, 1],
        Form::Pool if random.chance(3) => [height, width],
        Form::Pool => random.one_of(&[[2, 2], [3, 3], [2, 3], [1, 2], [4, 4]]),
        Form::Depthwise => random.one_of(&[[3, 3], [3, 3], [3, 3], [5, 5], [1, 3], [3, 1], [2, 2], [4, 3]]),
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
    let stride = if form == Form::Dense {
        1
    } else {
        random.one_of(&[1, 1, 2])
    };
    let stride = if form == Form::Pool && random.chance(2) {
        kernel[0].clamp(1, 8)
    } else {
        stride
    };
    let same = random.chance(2);
    let mut output = [0; 2];
    let mut padding = [0; 2];
    let mut kernel = kernel;
    for axis in 0..2 {
        let input = [height, width][axis];
        if same {
            output[axis] = input.div_ceil(stride);
            let total = ((output[axis] - 1) * stride + kernel[axis]).saturating_sub(input);
            padding[axis] = total / 2;
        } else {
            kernel[axis] = kernel[axis].min(input);
            output[axis] = (input - kernel[axis]) / stride + 1;
        }
    }
    let [inputs, outputs] = match form {
        Form::Depthwise | Form::Pool => [random.wide(160); 2],
        Form::Dense => [random.wide(800), random.wide(300)],
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
        dilation: [1, 1],
        padding: byte(padding),
    }
}

/// A window of at most so many products and weights.
fn affordable(random: &mut Random, form: Form, bytes: u64) -> Window2d {
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

/// A step of `kernel`; `None` where this seed has none.
pub fn step(kernel: KernelId, random: &mut Random, arena: u32, weights: u32) -> Option<Generated> {
    let depthwise = kernel.name().contains("Depthwise");
    let form = match kernel.name() {
        _ if depthwise => Form::Depthwise,
        "IntDenseS8" => Form::Dense,
        "CompactConv2dS8" if random.chance(2) => Form::Depthwise,
        _ if random.chance(4) => Form::Dense,
        _ => Form::Convolution,
    };
    let (step, constants) = match kernel.job() {
        Some(JobKind::Conv2dS8) => conv2d_s8(kernel, random, form)?,
        Some(JobKind::Conv2dF32) => conv2d_f32(kernel, random, form)?,
        Some(JobKind::LinearSumS8) => {
            let mut factor = |bits: u32| random.between(0, (1 << bits) - 1) as i32 - (1 << (bits - 1));
            let factors = [factor(30), factor(29)];
            let (offset, slot) = (factor(28), Slot::default());
            let count = random.wide(8000);
            let op = PackedSumS8 {
                output: slot,
                a: slot,
                b: slot,
                factors,
                offset,
                count,
            };
            (Step::candidate(kernel, &Job::LinearSumS8(op))?, Vec::new())
        }
        Some(JobKind::BinaryInt) => {
            let op = random.one_of(&[IntOp::Add, IntOp::Add, IntOp::Mul, IntOp::Sub]);
            (
                Step::candidate(kernel, &Job::BinaryInt(binary(random, op, DType::I8)))?,
                Vec::new(),
            )
        }
        Some(JobKind::MaxPoolInt) => (Step::candidate(kernel, &Job::MaxPoolInt(pool(random)))?, Vec::new()),
        Some(JobKind::AvgPoolInt) => (Step::candidate(kernel, &Job::AvgPoolInt(pool(random)))?, Vec::new()),
        None => (other(kernel, random)?, Vec::new()),
    };
    place(step, constants, arena, weights)
}

fn conv2d_s8(kernel: KernelId, random: &mut Random, form: Form) -> Option<(Step, Vec<u8>)> {
    let window = affordable(random, form, 1);
    let zero_point = random.one_of(&[-128, -128, 3, -1]);
    let op = Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups: if form == Form::Depthwise { window.input[2] } else { 1 },
        input_zero_point: random.byte() as i8,
        output_zero_point: zero_point,
        clamp: random.one_of(&[[-128, 127], [-128, 127], [zero_point, 127]]),
        flags: 0,
    };
    let (len, count) = (op.weights_len()? as usize, usize::from(window.output[2]));
    let uncommon = random.chance(4);
    let spread = random.one_of(&[127, 127, 60, 30, 8]);
    let mut values = vec![0i8; len];
    let terms = (len / count).max(1);
    for row in values.chunks_mut(terms) {
        let spread = if random.chance(8) { 127 } else { spread };
        row.fill_with(|| (random.between(0, 2 * spread) as i32 - spread as i32) as i8);
    }
    // Sums of so many products are of the order of the outputs' range.
    let usual = -((terms as f32).sqrt() * spread as f32 / 2.0).log2() as i32;
    let channels: Vec<[i32; 3]> = (0..count)
        .map(|_| {
            let bias = random.between(0, 8000) as i32 - 4000;
            let mantissa = (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
            let shift = if uncommon && random.chance(3) {
                -(random.between(0, 31) as i32)
            } else {
                usual - random.between(0, 2) as i32
            };
            [bias, mantissa, shift]
        })
        .collect();
    let job = Job::Conv2dS8(
        op,
        PlainS8 {
            weights: &values,
            channels: &channels,
        },
    );
    let mut step = Step::candidate(kernel, &job)?;
    let (mut packed, mut records) = (values.iter().map(|&v| v as u8).collect::<Vec<u8>>(), channels.clone());
    if step.layout() != Layout::Plain {
        packed = vec![0; step.needs().weights as usize];
        records = vec![[0; 3]; if step.has_records() { count } else { 0 }];
        step.pack(&job, &mut packed, &mut records)?;
    }
    packed.resize(packed.len().next_multiple_of(4), 0);
    let at = packed.len() as u32;
    packed.extend(records.iter().flatten().flat_map(|word| word.to_le_bytes()));
    // Kernels with records in their weights have none of their own.
    let own = step.layout() != Layout::Plain && !step.has_records();
    step.set_constants(0, if own { 0 } else { at });
    Some((step, packed))
}

fn conv2d_f32(kernel: KernelId, random: &mut Random, form: Form) -> Option<(Step, Vec<u8>)> {
    let window = affordable(random, form, 4);
    let wide = f32::INFINITY;
    let op = Conv2dF32 {
        output: Slot::default(),
        input: Slot::default(),
        residual: random.chance(5).then(Slot::default),
        scratch: Slot::default(),
        weights: 0,
        bias: Some(0),
        window,
        groups: if form == Form::Depthwise { window.input[2] } else { 1 },
        clamp: random.one_of(&[[-wide, wide], [0.0, wide], [0.0, 6.0]]),
    };
    let mut values = vec![0.0; op.weights_len()? as usize];
    values.fill_with(|| random.float());
    let job = Job::Conv2dF32(op, &values);
    let mut step = Step::candidate(kernel, &job)?;
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let bias: Vec<f32> = (0..window.output[2]).map(|_| random.float()).collect();
    let mut constants = bytes(&bias);
    constants.resize(constants.len().next_multiple_of(16), 0);
    let at = constants.len() as u32;
    if step.layout() == Layout::Plain {
        constants.extend(bytes(&values));
    } else {
        let mut packed = vec![0; step.needs().weights as usize];
        step.pack(&job, &mut packed, &mut [])?;
        constants.extend(packed);
    }
    step.set_constants(at, 0);
    Some((step, constants))
}

fn pool(random: &mut Random) -> PoolInt {
    PoolInt {
        output: Slot::default(),
        input: Slot::default(),
        dtype: DType::I8,
        window: affordable(random, Form::Pool, 1),
        clamp: random.one_of(&[[-128, 127], [-128, 127], [0, 127]]),
    }
}

fn loops(random: &mut Random) -> heapless::Vec<Loop, 6> {
    let mut loops = heapless::Vec::new();
    let count = random.wide(8000);
    match random.between(0, 3) {
        0 => {
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
        1 => _ = loops.push(Loop { count, a: 1, b: 0 }),
        _ => _ = loops.push(Loop { count, a: 1, b: 1 }),
    }
    loops
}

fn binary(random: &mut Random, op: IntOp, dtype: DType) -> BinaryInt {
    let half = Multiplier {
        mantissa: 1 << 30,
        shift: 0,
    };
    let mut mantissa = || (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
    let (other, result) = (
        Multiplier {
            mantissa: mantissa(),
            shift: -1,
        },
        Multiplier {
            mantissa: mantissa(),
            shift: -18,
        },
    );
    BinaryInt {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops: if op == IntOp::Add && random.chance(2) {
            let mut one = heapless::Vec::new();
            _ = one.push(Loop {
                count: random.wide(8000),
                a: 1,
                b: 1,
            });
            one
        } else {
            loops(random)
        },
        dtype,
        op,
        zero: [0; 3].map(|_| i32::from(random.byte() as i8)),
        shift: 20,
        multipliers: [half, other, result],
        clamp: [-128, 127],
    }
}

/// A step of a kernel that is the only one of its operator.
fn other(kernel: KernelId, random: &mut Random) -> Option<Step> {
    let (output, input) = (Slot::default(), Slot::default());
    let wide = [f32::NEG_INFINITY, f32::INFINITY];
    let clamp = random.one_of(&[wide, [0.0, f32::INFINITY], [0.0, 6.0]]);
    let pool = |random: &mut Random| PoolF32 {
        output,
        input,
        window: affordable(random, Form::Pool, 4),
        count_include_pad: random.chance(3),
        clamp,
    };
    let (rows, classes) = (random.wide(20), random.wide(100));
    Some(match kernel {
        KernelId::LinearF32 => {
            let (inputs, outputs) = (random.wide(600), random.wide(200));
            let rows = if random.chance(4) { random.wide(6) } else { 1 };
            (inputs * outputs <= 16 << 10).then_some(())?;
            let slot = Slot::default();
            Step::LinearF32(LinearF32 {
                output,
                input,
                weights: slot,
                bias: slot,
                rows,
                inputs,
                outputs,
                clamp,
            })
        }
        KernelId::MaxPoolF32 => Step::MaxPoolF32(pool(random)),
        KernelId::AvgPoolF32 => Step::AvgPoolF32(pool(random)),
        KernelId::SoftmaxF32 => {
            let log = random.chance(3);
            Step::SoftmaxF32(SoftmaxF32 {
                output,
                input,
                rows,
                classes,
                beta: 1.0,
                log,
            })
        }
        KernelId::SoftmaxS8 => {
            let kind = SoftmaxKind::I8(SoftmaxI8::new(1.0, 0.02 + random.float().abs() / 8.0)?);
            Step::SoftmaxS8(SoftmaxInt {
                output,
                input,
                rows,
                classes,
                kind,
            })
        }
        _ => return None,
    })
}

/// Puts the operands one behind another, and the constants where they are to be.
fn place(step: Step, constants: Vec<u8>, arena: u32, weights: u32) -> Option<Generated> {
    let mut sizes = Vec::new();
    step.operands(&mut |operand| {
        if operand.place.region != Slot::WEIGHTS {
            sizes.push(operand.bytes);
        }
    });
    let mut next = 0;
    let mut sizes = sizes.into_iter();
    let mut each = |_| {
        let offset = arena + next;
        next += sizes.next()?.next_multiple_of(16);
        Some(Slot { region: 0, offset })
    };
    let step = step.map(&mut |slot| each(slot).ok_or(())).ok()?;
    let step = moved(step, weights);
    step.check().ok()?;
    Some(Generated {
        step,
        constants,
        bytes: next,
    })
}

/// The step with its constants `by` bytes further.
fn moved(mut step: Step, by: u32) -> Step {
    match &mut step {
        Step::Conv2dF32(op)
        | Step::DepthwiseF32(op)
        | Step::FpuConv2dF32(op)
        | Step::FpuDepthwiseF32(op)
        | Step::MveConv2dF32(op)
        | Step::MveDepthwiseF32(op) => {
            op.weights += by;
            op.bias = op.bias.map(|bias| bias + by);
        }
        Step::Conv2dS8(op)
        | Step::DepthwiseS8(op)
        | Step::IntConv2dS8(op)
        | Step::IntDepthwiseS8(op)
        | Step::IntDenseS8(op)
        | Step::CompactConv2dS8(op)
        | Step::MveConv2dS8(op)
        | Step::MveDepthwiseS8(op) => {
            op.weights += by;
            op.channels += by;
        }
        Step::DspConv2dS8(op) | Step::DspPairsConv2dS8(op) | Step::DspDepthwiseS8(op) => op.weights += by,
        _ => {}
    }
    step
}
