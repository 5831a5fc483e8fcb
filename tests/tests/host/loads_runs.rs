//! Every file that loads runs: steps of every kernel from numbers that nobody chose, in hand-made files with a good checksum. Load refuses them, or they run to
//! the end. Test builds check arithmetic for overflow, so that a sum or a shift that load should have bounded fails here.

use std::collections::BTreeMap;
use std::convert::Infallible;

use arenite::ops::elementwise::{BinaryF32, BinaryOp, Loop};
use arenite::ops::elementwise_int::{BinaryInt, IntOp};
use arenite::ops::lstm::LstmInt;
use arenite::ops::window::Window2d;
use arenite::quant::{Multiplier, SigmoidI16};
use arenite::testkit::{Packed, Workspace, packed};
use arenite::{Access, DType, Fault, KernelId, Model, Operand, RunError, Session, Slot, Step};
use arenite_tests::blob::Blob;
use arenite_tests::exact::Exact;
use arenite_tests::writers::Random;

/// Streams of numbers that are read as a step, for each kernel.
const STREAMS: u64 = 30_000;

/// Bytes of constants that steps may find; most offsets are small.
const CONSTANTS: usize = 4096;

/// Choices of types and operations that load is known to accept, where there is not just one. The records and the factors of one half of the last five come
/// from their packers alone.
const EXPECTED: [(KernelId, usize); 37] = [
    (KernelId::BinaryF32, 8),
    (KernelId::SpecialBinaryF32, 7),
    (KernelId::UnaryF32, 12),
    (KernelId::SpecialF32, 12),
    (KernelId::Compare, 18),
    (KernelId::SpecialInt, 10),
    (KernelId::MatMulInt, 2),
    (KernelId::ReduceF32, 4),
    (KernelId::MaxPoolInt, 2),
    (KernelId::AvgPoolInt, 2),
    (KernelId::BinaryInt, 18),
    (KernelId::Rescale, 16),
    (KernelId::Convert, 24),
    (KernelId::ReduceInt, 8),
    (KernelId::SoftmaxInt, 4),
    (KernelId::Resize, 4),
    (KernelId::ArgMax, 2),
    (KernelId::Detections, 2),
    (KernelId::SvdfS8, 2),
    (KernelId::LstmInt, 2),
    (KernelId::IntAddS8, 18),
    (KernelId::SignalOverlapAdd, 2),
    (KernelId::IntWinogradConv2dS8, 0),
    (KernelId::IntConv2dS8, 0),
    (KernelId::IntDepthwiseS8, 0),
    (KernelId::IntDenseS8, 0),
    (KernelId::IntNarrowDenseS8, 0),
    // One pixel, which numbers that nobody chose seldom state; its weights are any.
    (KernelId::DenseS8, 0),
    (KernelId::MveSumS8, 0),
    // A factor for all channels, or for each group of weights, which only a packer proves.
    (KernelId::DspDenseS8, 0),
    (KernelId::MveDenseS8, 0),
    (KernelId::DspGroupsConv2dS8, 0),
    (KernelId::MveGroupsConv2dS8, 0),
    // Biases within what their sums leave, and proven factors.
    (KernelId::IntSvdfS8, 0),
    (KernelId::DspSvdfS8, 0),
    (KernelId::MveSvdfS8, 0),
    // Commands for an NPU, which nobody computes here.
    (KernelId::EthosU, 0),
];

/// Largest arena of a step.
const MEMORY: u32 = 1 << 16;

/// A step on memory of its own.
struct Case {
    step: Step,
    arena: u32,
    state: u32,
}

/// A stream of fields: small numbers mostly, extremes now and then.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let wild = [0, 0, 4, 12][random.below(4)];
    // The first for steps of many offsets, which are multiples of a word.
    let usual: &[u8] = match random.below(2) {
        0 => &[0, 0, 0, 0, 1, 1, 1, 3, 8, 8, 16],
        _ => &[0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16],
    };
    while bytes.len() < 160 {
        match random.below(100) {
            dice if dice >= wild => bytes.push(usual[random.below(usual.len())]),
            // As an unsigned number 2^32 - 1, as a signed one the least; and neighbours.
            0 => bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]),
            1 => bytes.extend([0xfe, 0xff, 0xff, 0xff, 0x0f]),
            2 => bytes.extend([0xff, 0xff, 0xff, 0xff, 0x07]),
            3 => bytes.extend([0x80 | random.below(128) as u8, random.below(128) as u8]),
            4 => bytes.extend([0xff, 0xff, 0x03]),
            5 => bytes.push(0x3e),
            6 => bytes.push(0x3d),
            7 => bytes.extend([0, 0, 0x80, 0x3f]),
            8 => bytes.extend([0, 0, 0x80, 0x7f]),
            _ => bytes.push(random.below(256) as u8),
        }
    }
    bytes
}

/// The step that begins a stream; whatever its length, there is one at most.
fn decoded(kernel: KernelId, stream: &[u8]) -> Option<Step> {
    (1..stream.len()).find_map(|len| Step::decode(kernel, &stream[..len]).ok())
}

/// A window over an image, which numbers that nobody chose hardly ever make: most are small and hold together, all are checked like any other.
fn shape(window: &mut Window2d, random: &mut Random) {
    let mut pick = |from: &[u16]| from[random.below(from.len())];
    let mut pair = |from: &[u16]| [pick(from), pick(from)];
    let [inputs, outputs] = pair(&[1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 17]);
    let [height, width] = pair(&[1, 1, 2, 3, 4, 5, 7]);
    let kernel = pair(&[1, 1, 2, 3, 3, 4, 5, 9]);
    let stride = pair(&[1, 1, 2, 3, 255]);
    let dilation = pair(&[1, 1, 1, 2, 3]);
    let padding = pair(&[0, 0, 1, 2, 4, 8]);
    let [short, same] = pair(&[0, 1, 1, 2]);
    let most = |extent: u16, at: usize| (extent + padding[at] - 1) / stride[at] + 1;
    *window = Window2d {
        batch: 1 + short / 2,
        input: [height, width, inputs],
        output: [
            if short == 0 { 1 } else { most(height, 0) },
            most(width, 1),
            if same == 0 { outputs } else { inputs },
        ],
        kernel,
        stride: stride.map(|n| n as u8),
        dilation: dilation.map(|n| n as u8),
        padding: padding.map(|n| n as u8),
    };
    // For kernels that want outputs of the input's extents.
    if random.below(8) == 0 {
        *window = Window2d {
            output: window.input,
            kernel: [3; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding: [1; 2],
            ..*window
        };
    }
}

/// The enums among a step's parameters: what it is, beside its numbers.
fn options(step: &Step) -> String {
    let text = format!("{step:?}");
    let fields = text.split([',', '{']).filter_map(|field| field.split_once(": "));
    let name = |value: &str| {
        value
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or("")
            .to_owned()
    };
    let structs = [
        "NaN",
        "Slot",
        "Window2d",
        "Multiplier",
        "Some",
        "None",
        "SvdfShape",
        "Subtraction",
        "LstmShape",
        "SigmoidI16",
    ];
    fields
        .map(|(_, value)| name(value.trim()))
        .filter(|value| value.starts_with(|c: char| c.is_ascii_uppercase()) && !structs.contains(&value.as_str()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Operands that the host would place, each behind the one before; now and then the output as close to its input as the kernel allows.
fn placed(step: Step, random: &mut Random) -> Option<Case> {
    let mut operands: Vec<Operand> = Vec::new();
    step.operands(&mut |operand| operands.push(operand));
    let (mut arena, mut state) = (16u32, 0u32);
    let mut slots = Vec::new();
    for operand in &operands {
        let constant = operand.access == Access::Read && random.below(12) == 0;
        let (region, end) = match operand.access {
            _ if constant => (Slot::WEIGHTS, None),
            Access::Update => (Slot::STATE, Some(&mut state)),
            _ => (0, Some(&mut arena)),
        };
        let mut offset = 0;
        if let Some(end) = end {
            offset = end.next_multiple_of(operand.align.max(1));
            *end = offset.checked_add(operand.bytes).filter(|&end| end <= MEMORY)?;
        }
        slots.push(Slot { region, offset });
    }
    let close = step.distance(1).filter(|_| random.below(3) == 0);
    if let (Some(distance), [output, input, ..]) = (close, slots.as_mut_slice())
        && input.region == 0
        && output.region == 0
    {
        let first = i64::from(MEMORY / 2);
        let below = u32::try_from(first - distance).ok()?;
        output.offset = below / 16 * 16;
        input.offset = MEMORY / 2;
        let lens = [
            output.offset.checked_add(operands[0].bytes)?,
            input.offset.checked_add(operands[1].bytes)?,
        ];
        // Scratch and others stay below.
        if arena > output.offset.min(input.offset) || lens.iter().any(|&end| end > MEMORY) {
            return None;
        }
        arena = lens[0].max(lens[1]);
    }
    let mut next = slots.into_iter();
    let placed = step.map(&mut |place| Ok::<_, Infallible>(next.next().unwrap_or(place)));
    let Ok(step) = placed;
    Some(Case { step, arena, state })
}

/// Constants of one kind: nothing, small words, anything.
fn constants(random: &mut Random) -> Vec<u8> {
    let kind = random.below(4);
    let words = (0..CONSTANTS / 4).map(|_| match kind {
        0 => 0,
        1 => random.below(63) as i32 - 31,
        2 => [i32::MIN, i32::MAX, -1, 0, 1, -31, 31][random.below(7)],
        _ => (random.below(1 << 16) << 16 | random.below(1 << 16)) as i32,
    });
    words.flat_map(i32::to_le_bytes).collect()
}

/// A file of one step.
fn file(kernel: KernelId, params: &[u8], [arena, state]: [u32; 2], constants: &[u8]) -> Vec<u8> {
    let blob = Blob {
        arena: [arena, 0, 0, 0],
        steps: vec![(kernel as u8, params.to_vec())],
        weights: constants.to_vec(),
        state: vec![0x7f; state as usize],
        ..Blob::default()
    };
    blob.file()
}

/// Loads and runs; whether it loaded.
fn attempt(file: &[u8], random: &mut Random) -> Result<bool, RunError> {
    let mut memory = Exact::of(file);
    let Ok(model) = Model::load(memory.bytes()) else {
        return Ok(false);
    };
    let (mut arena, mut state) = (Exact::new(model.arena_bytes(0), 0), Exact::new(model.state_bytes(), 0));
    let kind = random.below(5);
    for (at, byte) in arena.bytes().iter_mut().enumerate() {
        *byte = match kind {
            0 => 0x80,
            1 => 0x7f,
            2 => [0, 0x80, 0xff, 0x7f][random.below(4)],
            // Indices that are in range.
            3 if at % 4 == 0 => random.below(3) as u8,
            3 => 0,
            _ => random.below(256) as u8,
        };
    }
    let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("memory as stated");
    // Stateful steps find what they left. An index out of range is refused, and no defect of the file.
    let run = |_| match session.run() {
        Err(RunError::OutOfRange { .. }) => Ok(()),
        other => other,
    };
    (0..2).try_for_each(run).map(|()| true)
}

/// Bytes and kernel of a case, for a message.
fn described(kernel: KernelId, seed: u64, step: &Step) -> String {
    format!("{}, stream {seed}: {step:?}", kernel.name())
}

/// Products of cells and a state that load accepts, which hardly any numbers are.
fn cells(op: &mut LstmInt, random: &mut Random) {
    for product in &mut op.products {
        product.mantissa &= i32::MAX;
        product.shift = -1 - random.below(30) as i8;
    }
    op.tanh = SigmoidI16::power_of_two(random.below(16) as u8);
    if op.dtype == DType::I16 {
        op.zero = [0; 2];
    }
}

/// Steps from `streams` streams for each kernel; how many files were tried.
fn campaign(streams: u64) -> u64 {
    let mut tried = 0;
    let mut ran: BTreeMap<u8, BTreeMap<String, u32>> = BTreeMap::new();
    let mut findings = Vec::new();
    for &kernel in KernelId::ALL {
        for seed in 0..streams {
            let mut random = Random::new(seed << 8 | kernel as u64);
            let Some(mut step) = decoded(kernel, &stream(&mut random)) else {
                continue;
            };
            if let Some(window) = step.window_mut().filter(|_| random.below(8) > 0) {
                shape(window, &mut random);
            }
            if let Step::LstmInt(op) = &mut step
                && random.below(8) > 0
            {
                cells(op, &mut random);
            }
            if step.check().is_err() {
                continue;
            }
            let Some(case) = placed(step, &mut random) else {
                continue;
            };
            let mut buffer = [0; 512];
            let params = case.step.encode(&mut buffer).expect("parameters are short");
            // Scales and factors that are above zero are hardly ever among any numbers.
            let constants = match kernel {
                KernelId::W16Conv2dF32 | KernelId::W8Conv2dF32 | KernelId::W4Conv2dF32 | KernelId::W4Conv2dS8
                    if random.below(2) == 0 =>
                {
                    let words =
                        (0..CONSTANTS / 4).map(|_| (1 + random.below(15) as i32) * [1, 0x0101_0101][random.below(2)]);
                    words.flat_map(i32::to_le_bytes).collect()
                }
                _ => constants(&mut random),
            };
            let file = file(kernel, params, [case.arena, case.state], &constants);
            tried += 1;
            match std::panic::catch_unwind(|| attempt(&file, &mut Random::new(seed))) {
                Ok(Ok(true)) => {
                    let found = ran.entry(kernel as u8).or_default();
                    *found.entry(options(&case.step)).or_insert(0) += 1;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => findings.push(format!("{error}: {}", described(kernel, seed, &case.step))),
                Err(_) => findings.push(format!("a panic: {}", described(kernel, seed, &case.step))),
            }
            if findings.len() > 20 {
                break;
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    for &kernel in KernelId::ALL {
        let found = ran.remove(&(kernel as u8)).unwrap_or_default();
        println!("{}: {found:?}", kernel.name());
        let expected = EXPECTED
            .iter()
            .find(|(id, _)| *id == kernel)
            .map_or(1, |&(_, count)| count);
        let count = found.len();
        assert!(
            count >= expected,
            "{}: {count} of {expected} choices ran: {found:?}",
            kernel.name()
        );
    }
    tried
}

#[test]
fn what_loads_of_any_numbers_runs() {
    let tried = campaign(STREAMS);
    println!("{tried} files");
    assert!(tried > 100_000, "{tried} files");
}

#[test]
#[ignore = "long: thirty times as many, for each release"]
fn what_loads_of_any_numbers_runs_long() {
    let tried = campaign(30 * STREAMS);
    println!("{tried} files");
    assert!(tried > 5_000_000, "{tried} files");
}

/// The packed kernels refuse records that mean nothing: their cases come from the packers.
#[test]
fn what_packers_write_loads_and_runs() {
    let mut workspace = Box::new(Workspace::new());
    for &kernel in KernelId::ALL {
        let mut ran = 0;
        for seed in 0..300 {
            let mut params = [0; 256];
            let Some(Packed {
                params,
                constants,
                arena,
            }) = packed(kernel, seed, &mut params, &mut workspace)
            else {
                continue;
            };
            let file = file(kernel, params, [arena as u32, 0], constants);
            let loaded = attempt(&file, &mut Random::new(u64::from(seed)));
            assert_eq!(loaded, Ok(true), "{}, seed {seed}", kernel.name());
            ran += 1;
        }
        assert!(kernel == KernelId::EthosU || ran > 75, "{}: {ran}", kernel.name());
    }
}

/// Parameters that used to load, and then to end in an error or an overflow.
#[test]
fn what_no_kernel_computes_is_refused() {
    let one = Loop { count: 1, a: 1, b: 1 };
    let sum = |op, dtype, inner: Loop| BinaryInt {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops: [one, inner].into_iter().collect(),
        dtype,
        op,
        zero: [0; 3],
        shift: 0,
        multipliers: [Multiplier::ONE; 3],
        clamp: [-5, 5],
    };
    assert_eq!(Step::BinaryInt(sum(IntOp::Prelu, DType::I8, one)).check(), Ok(()));
    let plain = Step::BinaryInt(sum(IntOp::Prelu, DType::I32, one));
    assert_eq!(plain.check(), Err(Fault::Unsupported));
    // An axis of one place is never walked along, but the walk goes past it.
    for (a, b) in [(u32::MAX, 1), (1, u32::MAX)] {
        let far = Loop { count: 1, a, b };
        assert_eq!(
            Step::BinaryInt(sum(IntOp::Add, DType::I8, far)).check(),
            Err(Fault::Shape)
        );
        let float = BinaryF32 {
            output: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            loops: [far, one].into_iter().collect(),
            op: BinaryOp::Add,
            clamp: [0.0, 1.0],
        };
        assert_eq!(Step::BinaryF32(float).check(), Err(Fault::Shape));
    }
}
