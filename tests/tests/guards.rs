//! Every guard of the runtime is seen to fire: small files made by hand, with a good checksum, and exactly the error that each must give.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::convert::{Convert, Table};
use arenite::ops::elementwise::UnaryF32;
use arenite::ops::pointwise::UnaryOp;
use arenite::ops::svdf::{SvdfF32, SvdfShape};
use arenite::ops::window::Window2d;
use arenite::{
    Arenas, DType, Fault, HEADER_BYTES, KernelId, LoadError, MAX_REGIONS, Model, Progress, RunError, Session,
    SessionError, Slot, Step, Target,
};
use arenite_host::model::{Aligned, ModelFile};
use arenite_tests::blob::{Blob, Tensor, aligned, at, seal};
use arenite_tests::golden::packed;
use arenite_tests::variants::unprovoked;

const WEIGHTS: u8 = Slot::WEIGHTS;

fn load(file: &[u8]) -> Result<(), LoadError> {
    Model::load(aligned(file).bytes()).map(|_| ())
}

fn unary(output: Slot, input: Slot, count: u32) -> Step {
    let op = UnaryOp::Neg;
    Step::UnaryF32(UnaryF32 {
        output,
        input,
        count,
        op,
    })
}

/// Three numbers from byte 0 to byte 16, negated.
fn small() -> Blob {
    Blob {
        arena: [32, 0, 0, 0],
        inputs: vec![Tensor::new("x", at(0), DType::F32, &[1, 3])],
        outputs: vec![Tensor::new("y", at(16), DType::F32, &[3, 1])],
        ..Blob::default()
    }
    .step(&unary(at(16), at(0), 3))
}

/// [`small`] with another step.
fn with(step: Step) -> Blob {
    let mut blob = small();
    blob.replace(0, &step);
    blob
}

/// [`small`] with another input.
fn reading(input: Tensor) -> Blob {
    Blob {
        inputs: vec![input],
        ..small()
    }
}

fn tensor(slot: Slot, dtype: DType, shape: &[u32]) -> Tensor {
    Tensor::new("x", slot, dtype, shape)
}

fn window() -> Window2d {
    Window2d {
        batch: 1,
        input: [1, 2, 2],
        output: [1, 2, 2],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    }
}

/// Two channels, each a group of its own: no dense kernel computes it.
fn grouped() -> Step {
    Step::IntConv2dS8(Conv2dS8 {
        output: at(4),
        input: at(0),
        scratch: at(16),
        weights: 0,
        channels: 0,
        window: window(),
        groups: 2,
        input_zero_point: 0,
        output_zero_point: 0,
        clamp: [-128, 127],
        flags: 0,
    })
}

/// One unit with a memory of two, at `state`; its constants are zeros.
fn svdf(output: Slot, state: Slot) -> Blob {
    let shape = SvdfShape {
        batch: 1,
        features: 3,
        units: 1,
        rank: 1,
        memory: 2,
    };
    let step = Step::SvdfF32(SvdfF32 {
        output,
        input: at(0),
        state,
        shape,
        weights: 0,
        time_weights: 16,
        bias: 32,
        clamp: [f32::MIN, f32::MAX],
    });
    let mut blob = with(step);
    blob.outputs = vec![Tensor::new("y", at(16), DType::F32, &[1])];
    blob.weights = vec![0; 48];
    blob.state = vec![0; 16];
    blob
}

/// A committed network with one operator, packed for a target.
fn operator(name: &str, target: Target) -> Blob {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_ops/{name}.tflite"));
    let folder = tempfile::tempdir().expect("a folder");
    let model = packed(&path, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
    Blob::of(model.bytes())
}

fn faults() -> Vec<(&'static str, Vec<u8>, Fault)> {
    let state = |offset| Slot {
        region: Slot::STATE,
        offset,
    };
    let weights = |offset| Slot {
        region: WEIGHTS,
        offset,
    };
    let region = |region| Slot { region, offset: 0 };
    let mut faults = Vec::new();
    let mut case = |what, blob: Blob, fault| faults.push((what, blob.file(), fault));

    let mut cut = small();
    cut.steps[0].1.pop();
    case("parameters that end early", cut, Fault::Encoding);
    let mut long = small();
    long.steps[0].1.push(0);
    case("a byte behind the parameters", long, Fault::Encoding);
    let mut op = small();
    *op.steps[0].1.last_mut().expect("parameters") = 200;
    case("an operation of no number", op, Fault::Encoding);

    case("no element", with(unary(at(16), at(0), 0)), Fault::Shape);
    case("more than 32 bits", with(unary(at(16), at(0), 1 << 30)), Fault::Shape);
    let mut convert = Convert {
        output: at(16),
        input: at(0),
        count: 3,
        from: DType::F32,
        to: DType::F32,
        scale: 1.0,
        zero_point: 0,
    };
    case("no conversion", with(Step::Convert(convert)), Fault::Quantisation);
    (convert.to, convert.scale) = (DType::I8, f32::NAN);
    case("a scale of NaN", with(Step::Convert(convert)), Fault::Quantisation);
    case("groups", with(grouped()), Fault::Unsupported);

    case("an output past the arena", with(unary(at(24), at(0), 3)), Fault::Bounds);
    case("an input past the arena", with(unary(at(0), at(24), 3)), Fault::Bounds);
    case(
        "an offset past all",
        with(unary(at(u32::MAX - 3), at(0), 3)),
        Fault::Bounds,
    );
    case("a region of no bytes", with(unary(region(1), at(0), 3)), Fault::Bounds);
    case("no such region", with(unary(region(4), at(0), 3)), Fault::Bounds);
    case("no such memory", with(unary(region(0x82), at(0), 3)), Fault::Bounds);
    let mut constant = with(unary(weights(0), at(0), 3));
    constant.weights = vec![0; 16];
    case("a write into the weights", constant.clone(), Fault::Bounds);
    let mut read = with(unary(at(16), weights(4), 3));
    read.weights = vec![0; 16];
    assert_eq!(load(&read.file()), Ok(()), "weights may be read");
    read.weights.truncate(12);
    case("a constant past the weights", read, Fault::Bounds);
    let table = Step::Table(Table {
        output: at(16),
        input: at(0),
        count: 3,
        table: 1,
    });
    let mut tabled = with(table);
    tabled.weights = vec![0; 256];
    case("a table past the weights", tabled, Fault::Bounds);
    case("a state past the state", svdf(at(16), state(12)), Fault::Bounds);

    case("a misaligned output", with(unary(at(18), at(0), 3)), Fault::Alignment);
    case("a misaligned input", with(unary(at(16), at(1), 3)), Fault::Alignment);
    case("a misaligned state", svdf(at(16), state(2)), Fault::Alignment);

    // Element by element, upwards: the output may lie on its input or before it.
    for output in [0, 4] {
        assert_eq!(
            load(&with(unary(at(output), at(4), 3)).file()),
            Ok(()),
            "output at {output}"
        );
    }
    case("a step behind its input", with(unary(at(8), at(4), 3)), Fault::Overlap);
    case(
        "the input's last element",
        with(unary(at(12), at(4), 3)),
        Fault::Overlap,
    );
    case("an output over the state", svdf(state(4), state(0)), Fault::Overlap);
    case("a state over the input", svdf(at(16), at(4)), Fault::Overlap);
    case("a state over the input's end", svdf(at(16), at(8)), Fault::Overlap);

    faults.extend(distances());
    faults.extend(scratches());
    faults
}

/// A convolution that trails its input: one byte nearer than its kernel allows.
fn distances() -> Vec<(&'static str, Vec<u8>, Fault)> {
    let mut blob = operator("conv_3x3_same", Target::Portable);
    let [Step::Conv2dS8(conv)] = &blob.decoded()[..] else {
        panic!("{:?}", blob.decoded());
    };
    let step = Step::Conv2dS8(*conv);
    let distance = step.distance(1).expect("it may trail");
    assert!(distance > 0, "{distance}");
    blob.arena = [1 << 16, 0, 0, 0];
    let mut place = |input: i64| {
        let mut conv = *conv;
        (conv.output, conv.input) = (at(4096), at((4096 + input) as u32));
        (blob.inputs[0].slot, blob.outputs[0].slot) = (conv.input, conv.output);
        blob.replace(0, &Step::Conv2dS8(conv));
        blob.file()
    };
    assert_eq!(load(&place(distance)), Ok(()), "at its distance");
    vec![
        ("a byte nearer than its distance", place(distance - 1), Fault::Overlap),
        ("a convolution in place", place(0), Fault::Overlap),
    ]
}

/// A kernel with scratch: over its input, over its output, and over the last bytes of both. Then its records.
fn scratches() -> Vec<(&'static str, Vec<u8>, Fault)> {
    let good = operator("depthwise_3x3_same", Target::CortexM3);
    assert_eq!(load(&good.file()), Ok(()));
    let [Step::IntDepthwiseS8(op)] = &good.decoded()[..] else {
        panic!("{:?}", good.decoded());
    };
    let (input, output) = (good.inputs[0].bytes(), good.outputs[0].bytes());
    let place = |scratch: u32, output: Slot, input: Slot| {
        let mut blob = good.clone();
        let step = Conv2dS8 {
            output,
            input,
            scratch: at(scratch),
            ..*op
        };
        blob.replace(0, &Step::IntDepthwiseS8(step));
        blob.arena = [1 << 16, 0, 0, 0];
        (blob.inputs[0].slot, blob.outputs[0].slot) = (input, output);
        blob
    };
    let (first, second, third) = (at(0), at(1 << 12), 1 << 13);
    assert_eq!(load(&place(third, first, second).file()), Ok(()));
    assert_eq!(load(&place(third, first, first).file()), Ok(()), "in place");
    let beside = |bytes: u32| (bytes - 1) / 16 * 16;
    let mut shifted = place(third, at(1), first);
    shifted.outputs[0].slot = at(1);
    let mut wild = good.clone();
    wild.weights.fill(0x7F);
    vec![
        (
            "scratch over the input",
            place(1 << 12, first, second).file(),
            Fault::Overlap,
        ),
        (
            "scratch over the output",
            place(0, first, second).file(),
            Fault::Overlap,
        ),
        (
            "scratch over the input's end",
            place(4096 + beside(input), first, second).file(),
            Fault::Overlap,
        ),
        (
            "scratch over the output's end",
            place(beside(output), first, second).file(),
            Fault::Overlap,
        ),
        (
            "an input over the scratch's start",
            place(4096 - 16, first, second).file(),
            Fault::Overlap,
        ),
        ("in place but for a byte", shifted.file(), Fault::Overlap),
        (
            "misaligned scratch",
            place(third + 8, first, second).file(),
            Fault::Alignment,
        ),
        ("wild records", wild.file(), Fault::Weights),
    ]
}

fn refusals() -> Vec<(&'static str, Vec<u8>, LoadError)> {
    let good = small().file();
    let len = good.len() as u32;
    let mut refusals: Vec<(&'static str, Vec<u8>, LoadError)> = Vec::new();
    for (what, file, fault) in faults() {
        refusals.push((what, file, LoadError::Step { step: 0, fault }));
    }
    let mut case = |what, file: Vec<u8>, error| refusals.push((what, file, error));

    let truncated = |expected, found| LoadError::Truncated { expected, found };
    case("nothing", vec![], truncated(128, 0));
    case("a header but for a byte", good[..127].to_vec(), truncated(128, 127));
    case(
        "a file but for a byte",
        good[..good.len() - 1].to_vec(),
        truncated(len, len - 1),
    );
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        seal(&mut file);
        file
    };
    case("another magic", patched(7, b"\r"), LoadError::NotABlob);
    let version = LoadError::Version {
        found: 0x0201,
        supported: 1,
    };
    case("another version", patched(8, &[1, 2]), version);
    let mut flipped = good.clone();
    flipped[HEADER_BYTES] ^= 1;
    let checksum = LoadError::Checksum {
        expected: arenite::checksum(&good),
        found: arenite::checksum(&flipped),
    };
    case("a flipped bit", flipped, checksum);

    case("another header length", patched(10, &[127, 0]), LoadError::Header);
    case("a reserved byte", patched(15, &[1]), LoadError::Header);
    case(
        "a length below the header's",
        patched(16, &[127, 0, 0, 0]),
        LoadError::Header,
    );
    let many = |count: usize| {
        let tensor = |index| Tensor::new("x", at(index as u32 % 32 / 4 * 4), DType::F32, &[1]);
        Blob {
            inputs: (0..count).map(tensor).collect(),
            ..small()
        }
    };
    assert_eq!(load(&many(32).file()), Ok(()), "32 inputs");
    case("33 inputs", many(33).file(), LoadError::Header);
    let with_header = |change: fn(&mut arenite::Header)| small().file_with(change);
    let mut header = |what, change| case(what, with_header(change), LoadError::Header);
    header("steps past the end", |h| h.steps.len = h.total - h.steps.offset + 1);
    header("an offset past all", |h| h.meta.offset = u32::MAX);
    header("an end past all", |h| (h.meta.offset, h.meta.len) = (u32::MAX - 1, 4));
    header("ports in the header", |h| h.ports.offset = 127);
    header("weights in the header", |h| {
        (h.weights.offset, h.weights.len) = (112, 1)
    });
    header("state in the header", |h| {
        (h.state_init.offset, h.state_init.len) = (127, 1)
    });
    header("misaligned weights", |h| h.weights.offset = 136);
    header("a step too many", |h| h.step_count = 2);
    header("a step too few", |h| h.step_count = 0);
    header("another sum of inputs", |h| h.input_bytes += 1);
    header("another sum of outputs", |h| h.output_bytes -= 1);
    header("a port too few", |h| (h.outputs, h.output_bytes) = (0, 0));

    let mut unknown = small();
    unknown.steps.push((47, vec![]));
    let error = LoadError::UnknownKernel { step: 1, kernel: 47 };
    case("an unknown kernel", unknown.file(), error);
    let mut second = small().step(&unary(at(16), at(0), 3)).step(&unary(at(8), at(4), 3));
    second.weights = vec![0; 4];
    let overlap = LoadError::Step {
        step: 2,
        fault: Fault::Overlap,
    };
    case("the third step", second.file(), overlap);
    let mut records = small().file();
    let steps = arenite::Header::parse(&records).expect("a header").steps;
    records[steps.offset as usize + 1] = 0x7F;
    seal(&mut records);
    let encoding = LoadError::Step {
        step: 0,
        fault: Fault::Encoding,
    };
    case("a record past its section", records, encoding);

    let port = |port| LoadError::Port { port };
    let weights = Slot {
        region: WEIGHTS,
        offset: 0,
    };
    let mut port_case = |what, blob: Blob, index| case(what, blob.file(), port(index));
    port_case("a misaligned input", reading(tensor(at(2), DType::F32, &[3])), 0);
    port_case("a misaligned int16", reading(tensor(at(1), DType::I16, &[6])), 0);
    port_case("an input past the arena", reading(tensor(at(24), DType::F32, &[3])), 0);
    port_case(
        "an input past the state",
        reading(tensor(
            Slot {
                region: Slot::STATE,
                offset: 0,
            },
            DType::I8,
            &[1],
        )),
        0,
    );
    port_case(
        "no such region",
        reading(tensor(Slot { region: 4, offset: 0 }, DType::I8, &[1])),
        0,
    );
    let mut constant = reading(tensor(weights, DType::F32, &[3]));
    constant.weights = vec![0; 16];
    port_case("a constant input", constant, 0);
    let mut output = small();
    output.outputs[0].slot = at(17);
    port_case("a misaligned output", output.clone(), 1);
    output.outputs[0].slot = at(24);
    port_case("an output past the arena", output, 1);
    let ports = small().file_with(|h| h.ports.len -= 1);
    case("a port that ends early", ports, port(1));
    refusals
}

#[test]
fn every_reason_to_refuse_a_file_is_given_for_its_cause() {
    assert_eq!(load(&small().file()), Ok(()));
    let (mut provoked, mut missed) = (Vec::new(), Vec::new());
    for (what, file, expected) in refusals() {
        match load(&file) {
            Err(error) if error == expected => provoked.push(error),
            other => missed.push(format!("{what}: {other:?}, expected {expected:?}")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");

    let memory = small().file();
    let mut shifted = Aligned::new(memory.len() + 8);
    shifted.bytes()[8..].copy_from_slice(&memory);
    let misaligned = Model::load(&shifted.bytes()[8..]).expect_err("at a multiple of 8");
    assert_eq!(misaligned, LoadError::Misaligned);
    provoked.push(misaligned);

    /// Everything but the kernel of [`small`].
    #[derive(Debug, Clone, Copy)]
    struct Others;
    impl arenite::Kernels for Others {
        const SET: u128 = !(1 << KernelId::UnaryF32 as u8);
    }
    let mut blob = small();
    blob.target = Target::CortexM7 as u8;
    let unlinked = Model::<Others>::load_with(aligned(&blob.file()).bytes())
        .map(|_| ())
        .expect_err("not linked");
    let expected = LoadError::Kernel {
        step: 0,
        kernel: KernelId::UnaryF32,
        target: "cortex-m7",
    };
    assert_eq!(unlinked, expected);
    provoked.push(unlinked);

    let debug = provoked.iter().map(|error| format!("{error:?}"));
    assert_eq!(unprovoked("core/src/error.rs", "LoadError", debug), [""; 0]);
    let faults = provoked.iter().filter_map(|error| match error {
        LoadError::Step { fault, .. } => Some(format!("{fault:?}")),
        _ => None,
    });
    assert_eq!(unprovoked("core/src/ops/fault.rs", "Fault", faults), [""; 0]);
}

/// What the guards let through next to each refusal: they refuse no more than they must.
#[test]
fn neighbours_of_refused_files_load_and_run() {
    let mut blobs = vec![
        small(),
        with(unary(at(0), at(0), 3)),
        with(unary(at(20), at(0), 3)),
        reading(tensor(at(20), DType::F32, &[3])),
        reading(tensor(at(30), DType::I16, &[1])),
        svdf(
            at(16),
            Slot {
                region: Slot::STATE,
                offset: 8,
            },
        ),
        svdf(at(12), at(16)),
    ];
    // An output may be a constant, and may lie where an input does.
    let mut constant = small();
    constant.outputs[0].slot = Slot {
        region: WEIGHTS,
        offset: 4,
    };
    constant.weights = vec![0; 16];
    blobs.push(constant);
    // Bytes behind the file's end are ignored.
    for (index, blob) in blobs.iter().enumerate() {
        let mut file = blob.file();
        file.extend([0xAA; 9]);
        let mut memory = aligned(&file);
        let model = Model::load(memory.bytes()).unwrap_or_else(|e| panic!("file {index}: {e}"));
        let mut arena = Aligned::new(model.arena_bytes(0));
        let mut state = Aligned::new(model.state_bytes());
        let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("memory as stated");
        session.input_mut(0).expect("an input").fill(0);
        assert_eq!(bounded(&mut session), Ok(()), "file {index}");
    }
}

#[test]
fn every_reason_to_refuse_memory_is_given_for_its_cause() {
    let mut blob = svdf(
        at(16),
        Slot {
            region: Slot::STATE,
            offset: 0,
        },
    );
    blob.arena = [32, 0, 48, 0];
    let file = blob.file();
    let mut memory = aligned(&file);
    let model = Model::load(memory.bytes()).expect("a model");
    let mut buffers: [Aligned; 4] = std::array::from_fn(|_| Aligned::new(128));
    let [first, third, state, other] = &mut buffers;
    let mut open =
        |first_at: usize, first_len: usize, third_at: usize, third_len: usize, state_at: usize, state_len: usize| {
            let mut arenas: [&mut [u8]; MAX_REGIONS] = [&mut [], &mut [], &mut [], &mut []];
            arenas[0] = &mut first.bytes()[first_at..first_at + first_len];
            arenas[2] = &mut third.bytes()[third_at..third_at + third_len];
            // A region that the model does not use may be anything.
            arenas[3] = &mut other.bytes()[1..4];
            let state = &mut state.bytes()[state_at..state_at + state_len];
            Session::new(model, Arenas::from(arenas), state).map(|_| ())
        };
    assert_eq!(open(0, 32, 0, 48, 0, 16), Ok(()));
    assert_eq!(open(16, 112, 32, 96, 48, 16), Ok(()), "more than needed");
    let small = |region, needed, given| SessionError::ArenaTooSmall { region, needed, given };
    let size = |given| SessionError::StateSize { needed: 16, given };
    let cases = [
        (open(0, 31, 0, 48, 0, 16), small(0, 32, 31)),
        (open(0, 32, 0, 47, 0, 16), small(2, 48, 47)),
        (open(0, 0, 0, 48, 0, 16), small(0, 32, 0)),
        (open(8, 32, 0, 48, 0, 16), SessionError::ArenaMisaligned { region: 0 }),
        (open(0, 32, 1, 48, 0, 16), SessionError::ArenaMisaligned { region: 2 }),
        (open(0, 32, 0, 48, 0, 15), size(15)),
        (open(0, 32, 0, 48, 0, 17), size(17)),
        (open(0, 32, 0, 48, 0, 0), size(0)),
        (open(0, 32, 0, 48, 8, 16), SessionError::StateMisaligned),
    ];
    for (index, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(*found, Err(*expected), "case {index}");
    }
    let debug = cases.iter().map(|(_, error)| format!("{error:?}"));
    assert_eq!(unprovoked("core/src/error.rs", "SessionError", debug), [""; 0]);
}

/// A run with a limit of its own: one that does not end fails, and does not hang.
fn bounded(session: &mut Session<'_, '_>) -> Result<(), RunError> {
    let mut steps = 0;
    session.run_with(|_| {
        steps += 1;
        assert!(steps < 100, "the run does not end");
    })
}

/// Two inputs of one number each, of which the first is negated twice: three steps.
fn two_inputs() -> Blob {
    Blob {
        arena: [32, 0, 0, 0],
        inputs: vec![
            Tensor::new("a", at(0), DType::F32, &[1]),
            Tensor::new("b", at(4), DType::F32, &[1]),
        ],
        outputs: vec![Tensor::new("y", at(8), DType::F32, &[1])],
        ..Blob::default()
    }
    .step(&unary(at(8), at(0), 1))
    .step(&unary(at(0), at(8), 1))
    .step(&unary(at(8), at(0), 1))
}

#[test]
fn a_run_wants_its_inputs_and_takes_its_steps() {
    let mut memory = aligned(&two_inputs().file());
    let model = Model::load(memory.bytes()).expect("a model");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    let one = 1f32.to_le_bytes();
    let missing = |input| Err(RunError::InputMissing { input });
    let wrong = |input, given| {
        let needed = 4;
        Err(RunError::InputSize { input, needed, given })
    };
    let mut provoked = Vec::new();
    let mut expect = |found: Result<(), RunError>, expected: Result<(), RunError>, what: &str| {
        assert_eq!(found, expected, "{what}");
        provoked.extend(found.err().map(|error| format!("{error:?}")));
    };

    expect(session.run(), missing(0), "nothing set");
    expect(session.set_input(0, &one), Ok(()), "the first");
    expect(session.run(), missing(1), "the second is missing");
    expect(session.set_input(1, &one[..3]), wrong(1, 3), "a byte too few");
    expect(session.run(), missing(1), "a wrong size is not set");
    expect(session.set_input(1, &one), Ok(()), "the second");
    expect(session.set_input(0, &[0; 5]), wrong(0, 5), "a byte too many");
    expect(session.run(), missing(0), "a wrong size unsets");
    expect(session.set_input(0, &one), Ok(()), "the first again");
    for index in [2, 31, 32, 33, usize::MAX] {
        let none = RunError::NoSuchPort { index: index as u32 };
        expect(session.set_input(index, &one), Err(none), "no such input");
    }
    let none = RunError::NoSuchPort { index: 1 };
    expect(session.output(1).map(|_| ()), Err(none), "no such output");

    // Exactly as many steps as there are.
    let taken: Vec<Result<Progress, RunError>> = (0..4).map(|_| session.step()).collect();
    let step = |step| Ok(Progress::Step { step, steps: 3 });
    assert_eq!(taken[..3], [step(0), step(1), Ok(Progress::Done)]);
    assert_eq!(taken[3], Err(RunError::InputMissing { input: 0 }), "the run is over");
    assert_eq!(session.output(0), Ok(&(-1f32).to_le_bytes()[..]));
    expect(session.run(), missing(0), "a second run without inputs");

    // An input that is set half-way starts over and wants the others again.
    session.set_input(0, &one).expect("the first");
    session.set_input(1, &one).expect("the second");
    assert_eq!(session.step(), step(0));
    session.set_input(1, &one).expect("the second");
    expect(session.run(), missing(0), "its inputs are gone");
    session.set_input(0, &2f32.to_le_bytes()).expect("the first");
    let mut after = Vec::new();
    let pushed = session.run_with(|step| {
        after.push(step);
        assert!(after.len() < 100, "the run does not end");
    });
    assert_eq!(pushed, Ok(()));
    assert_eq!(after, [0, 1, 2], "the hook sees each step once");
    assert_eq!(session.output(0), Ok(&(-2f32).to_le_bytes()[..]));

    let corrupt = a_file_that_changes_under_its_session();
    provoked.push(format!("{corrupt:?}"));
    assert_eq!(unprovoked("core/src/error.rs", "RunError", provoked), [""; 0]);
}

/// The second step's kernel becomes one that is none, after the load.
fn a_file_that_changes_under_its_session() -> RunError {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changing.bin");
    let bytes = two_inputs().file();
    std::fs::write(&path, &bytes).expect("writes");
    // Mapped, so that the file's bytes are the model's.
    let file = ModelFile::open(&path).expect("a file");
    let model = file.load().expect("intact");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    let set = |session: &mut Session<'_, '_>| {
        session.set_input(0, &[0; 4]).expect("the first");
        session.set_input(1, &[0; 4]).expect("the second");
    };
    set(&mut session);
    assert_eq!(bounded(&mut session), Ok(()));
    let steps = model.header().steps.offset as usize;
    let second = steps + (model.header().steps.len as usize) / 3;
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    writer.seek(SeekFrom::Start(second as u64)).expect("seeks");
    writer.write_all(&[47]).expect("writes");
    set(&mut session);
    let found = session.run().expect_err("it changed");
    assert_eq!(found, RunError::Corrupt { step: 1 });
    // Afterwards a run starts anew, and wants its inputs.
    assert_eq!(session.run(), Err(RunError::InputMissing { input: 0 }));
    found
}

#[test]
fn a_model_without_steps_is_done_at_once() {
    let blob = Blob {
        steps: vec![],
        ..small()
    };
    let mut memory = aligned(&blob.file());
    let model = Model::load(memory.bytes()).expect("a model");
    let mut arena = Aligned::new(32);
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("enough");
    for _ in 0..3 {
        assert_eq!(session.step(), Err(RunError::InputMissing { input: 0 }));
        session.set_input(0, &[0; 12]).expect("the input");
        assert_eq!(session.step(), Ok(Progress::Done));
    }
}

/// What a packer writes is what the maker writes: it follows the format.
#[test]
fn a_file_taken_apart_and_put_together_is_the_same_file() {
    for (name, target) in [
        ("depthwise_3x3_same", Target::CortexM3),
        ("svdf_i8_state", Target::Portable),
        ("concat_int8", Target::CortexM4),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/tflite_ops/{name}.tflite"));
        let folder = tempfile::tempdir().expect("a folder");
        let model = packed(&path, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
        assert!(Blob::of(model.bytes()).file() == model.bytes(), "{name}");
    }
}
