//! Files that load refuses, each for one reason.

use super::commands::no_payload;
use super::cpus;
use super::*;
use arenite::KernelSet;

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
    case("nothing", vec![], truncated(HEADER_BYTES as u32, 0));
    case(
        "a header but for a byte",
        good[..HEADER_BYTES - 1].to_vec(),
        truncated(HEADER_BYTES as u32, HEADER_BYTES as u32 - 1),
    );
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
        supported: arenite::FORMAT_VERSION,
    };
    case("another version", patched(8, &[1, 2]), version);
    let mut flipped = good.clone();
    flipped[HEADER_BYTES] ^= 1;
    let checksum = LoadError::Checksum {
        expected: arenite::checksum(&good),
        found: arenite::checksum(&flipped),
    };
    case("a flipped bit", flipped, checksum);

    case("another header length", patched(10, &[143, 0]), LoadError::Header);
    case("runs of a state that is none", patched(15, &[1]), LoadError::Header);
    case(
        "a length below the header's",
        patched(16, &[143, 0, 0, 0]),
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
    header("ports in the header", |h| h.ports.offset = 143);
    header("weights in the header", |h| {
        (h.weights.offset, h.weights.len) = (112, 1)
    });
    header("state in the header", |h| {
        (h.state_init.offset, h.state_init.len) = (143, 1)
    });
    let mut header = |what, change| case(what, with_header(change), LoadError::Header);
    header("misaligned weights", |h| h.weights.offset = 136);
    header("a step too many", |h| h.step_count = 2);
    header("a step too few", |h| h.step_count = 0);
    header("another sum of inputs", |h| h.input_bytes += 1);
    header("another sum of outputs", |h| h.output_bytes -= 1);
    header("a port too few", |h| (h.outputs, h.output_bytes) = (0, 0));

    let mut unknown = small();
    unknown.steps.push((0xF0, vec![]));
    let error = LoadError::UnknownKernel { step: 1, kernel: 0xF0 };
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

    let over = Model::load_within(aligned(&memory).bytes(), 0).map(|_| ());
    let over = over.expect_err("no step costs nothing");
    assert!(matches!(over, LoadError::Cost { step: 0, budget: 0, .. }), "{over:?}");
    provoked.push(over);

    provoked.push(other_than_the_receipt());

    // Cores: a step for each of two, which write the same bytes; one on a core that is none; more steps at one time than load compares.
    let on = |steps: usize, cores: &[u8]| {
        let mut blob = small();
        let step = blob.steps[0].clone();
        blob.steps = vec![step; steps];
        blob.cores = cores.to_vec();
        load(&blob.file()).expect_err("cores")
    };
    let at = |step, fault| LoadError::Step { step, fault };
    let wrong = [
        (on(1, &[5, 0]), LoadError::Cores { found: 5 }),
        (on(2, &[2, 0, 1]), at(1, Fault::Race)),
        (on(2, &[2, 0, 2]), at(1, Fault::Core)),
        (on(40, &[&[2][..], &[0; 40]].concat()), at(32, Fault::Group)),
    ];
    for (refused, expected) in wrong {
        assert_eq!(refused, expected);
        provoked.push(refused);
    }

    provoked.extend(cpus::unknown_sections());

    // More steps than constants are checked for: `load_bound` says how many.
    let shared = load(&shared_by(1000, 1000)).expect_err("a thousand unlike steps of one block of constants");
    assert!(
        matches!(
            shared,
            LoadError::Step {
                fault: Fault::Shared,
                ..
            }
        ),
        "{shared:?}"
    );
    provoked.push(shared);

    provoked.push(cpus::lacking());

    let commands = load(&no_payload()).expect_err("no commands");
    assert_eq!(commands, at(0, Fault::Commands));
    provoked.push(commands);

    /// Everything but the kernel of [`small`].
    #[derive(Debug, Clone, Copy)]
    struct Others;
    impl arenite::Kernels for Others {
        const SET: KernelSet = KernelSet::ALL.without(KernelId::UnaryF32 as u8, KernelId::UnaryF32 as u8);
    }
    let mut blob = small();
    blob.target = Target::CortexM7 as u8;
    let unlinked = Model::<Others>::load_with(aligned(&blob.file()).bytes()).map(|_| ());
    let unlinked = unlinked.expect_err("not linked");
    let expected = LoadError::Kernel {
        step: 0,
        kernel: KernelId::UnaryF32,
        target: "cortex-m7",
    };
    assert_eq!(unlinked, expected);
    provoked.push(unlinked);

    // Refusals of files for an accelerator, and of all of them on a board without one, are provoked by `accelerators`.
    let debug = provoked.iter().map(|error| format!("{error:?}"));
    assert_eq!(unprovoked("core/src/error.rs", "LoadError", debug), ["Accelerator"]);
    let faults = provoked.iter().filter_map(|error| match error {
        LoadError::Step { fault, .. } => Some(format!("{fault:?}")),
        _ => None,
    });
    assert_eq!(
        unprovoked("core/src/ops/fault.rs", "Fault", faults),
        // The last one by `arena::rolling`.
        ["Reach", "Handed", "Rows"]
    );
}

/// Files that the guards let through next to each refusal: the guards refuse no more than they must.
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
