//! Residual sums that are computed by rows without being asked: smaller arenas, the same bits.

use arenite_host::memory::fit::Sums;
use arenite_host::quantize::Request;
use serde_json::{Value, json};

use super::chains::compare_cuts;
use super::*;

/// A residual block: two layers that lead to the sum, one of them over a window, and what it is added to.
#[derive(Debug, Clone)]
struct Block {
    middle: usize,
    /// Rows and columns of the windows of the layers that lead to the sum.
    kernels: [usize; 2],
    /// Where the other operand goes through a layer of its own.
    projects: bool,
    /// The sum's operands change places.
    swapped: bool,
    /// Operator in the sum's place, and a function between its layer and it.
    operator: &'static str,
    function: Option<&'static str>,
    /// The other operand is read again behind the sum.
    read_later: bool,
}

/// The block of ResNets.
const BLOCK: Block = Block {
    middle: 16,
    kernels: [3, 1],
    projects: false,
    swapped: false,
    operator: "add",
    function: None,
    read_later: false,
};

fn block() -> impl Strategy<Value = Block> {
    let kernel = || prop_oneof![Just(1usize), Just(3)];
    let operator = prop_oneof![Just("add"), Just("sub"), Just("mul"), Just("maximum")];
    let function = prop_oneof![2 => Just(None), 1 => Just(Some("relu")), 1 => Just(Some("tanh"))];
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
    (4usize..20, [kernel(), kernel()], flags, operator, function).prop_map(
        |(middle, kernels, (projects, swapped, read_later), operator, function)| Block {
            middle,
            kernels,
            projects,
            swapped,
            operator,
            function,
            read_later,
        },
    )
}

/// A trace under construction.
struct Writer {
    extents: [usize; 2],
    tensors: serde_json::Map<String, Value>,
    ops: Vec<Value>,
}

impl Writer {
    fn declare(&mut self, name: &str, shape: &[usize], role: &str) {
        self.tensors
            .insert(name.into(), json!({"shape": shape, "dtype": "f32", "role": role}));
    }

    fn op(&mut self, op: &str, inputs: &[&str], channels: usize, attrs: Value) -> String {
        let name = format!("t{}", self.ops.len());
        let [rows, columns] = self.extents;
        self.declare(&name, &[1, rows, columns, channels], "activation");
        self.ops.push(
            json!({"name": format!("op{}", self.ops.len()), "op": op, "inputs": inputs, "outputs": [name], "attrs": attrs}),
        );
        name
    }

    fn conv(&mut self, x: &str, [from, to]: [usize; 2], kernel: usize) -> String {
        let weight = format!("w{}", self.ops.len());
        self.declare(&weight, &[to, from, kernel, kernel], "parameter");
        let padding = [kernel / 2; 4];
        self.op(
            "conv2d",
            &[x, &weight],
            to,
            json!({"padding": padding, "layout": "NHWC"}),
        )
    }
}

/// A network of blocks of so many channels, and the largest of each channel at its end.
fn trace(blocks: &[Block], extents: [usize; 2], wide: usize) -> Value {
    let mut to = Writer {
        extents,
        tensors: serde_json::Map::new(),
        ops: Vec::new(),
    };
    to.declare("x", &[1, extents[0], extents[1], 3], "input");
    // A projected operand is narrow in front of the first block, as in ResNets.
    let mut channels = match blocks {
        [Block { projects: true, .. }, ..] => 16,
        _ => wide,
    };
    let mut x = to.conv("x", [3, channels], 1);
    let mut ends = Vec::new();
    for block in blocks {
        let mut side = x.clone();
        if block.projects {
            side = to.conv(&x, [channels, wide], 1);
        }
        let first = to.conv(&x, [channels, block.middle], block.kernels[0]);
        let middle = to.op("relu", &[&first], block.middle, json!({}));
        let mut last = to.conv(&middle, [block.middle, wide], block.kernels[1]);
        if let Some(function) = block.function {
            last = to.op(function, &[&last], wide, json!({}));
        }
        let operands = if block.swapped { [&last, &side] } else { [&side, &last] };
        x = to.op(block.operator, &operands.map(String::as_str), wide, json!({}));
        channels = wide;
        if block.read_later {
            ends.push(side);
        }
    }
    ends.push(x);
    let outputs: Vec<String> = (0..ends.len()).map(|end| format!("y{end}")).collect();
    for (end, output) in ends.iter().zip(&outputs) {
        to.declare(output, &[1, wide], "activation");
        to.ops.push(
            json!({"name": output, "op": "max", "inputs": [end], "outputs": [output], "attrs": {"axes": [1, 2]}}),
        );
    }
    let trace = json!({"arenite_trace": 1, "name": "residual", "inputs": ["x"], "outputs": outputs, "tensors": to.tensors, "ops": to.ops});
    assert_eq!(arenite_tests::json_schema::check_trace(&trace), Ok(()));
    trace
}

/// The options that pack it, with weights of a seed.
fn written(trace: &Value, folder: &Path, target: Target) -> Options {
    let input = folder.join("residual.trace.json");
    std::fs::write(&input, trace.to_string()).expect("written");
    Options {
        weights: Some("seeded:1".into()),
        ..options(&input, folder, target)
    }
}

/// The same network in int8.
fn quantised(plain: Options, [rows, columns]: [usize; 2]) -> Options {
    let samples = plain.input.with_file_name("samples.npy");
    let values = ndarray::Array::from_shape_fn([4, 1, rows, columns, 3], |(i, _, row, column, channel)| {
        ((i * 7 + row * 3 + column * 5 + channel) as f32 * 0.37).sin()
    });
    ndarray_npy::write_npy(&samples, &values).expect("written");
    Options {
        dtype: Some(DType::I8),
        quantize: Some(Request {
            samples,
            ..Request::default()
        }),
        ..plain
    }
}

/// Packs with sums by rows, where they pay, and with separate buffers, where there are none; the outputs are the same bits. Gives what was cut.
fn compare(options: &Options, seed: u64) -> Result<(Summary, Option<Sums>), TestCaseError> {
    let separate = Options {
        in_place: false,
        ..options.clone()
    };
    let (whole, expected) = packed_outputs(&separate, seed);
    prop_assert_eq!(whole.sums_by_rows, None);
    let (packed, found) = packed_outputs(options, seed);
    prop_assert!(found == expected, "the outputs differ");
    prop_assert_eq!(packed.extra_macs, 0);
    let sums = packed.sums_by_rows;
    if let Some(sums) = sums {
        prop_assert!(
            packed.arena_bytes < sums.whole_arena_bytes,
            "{sums:?}: {}",
            packed.arena_bytes
        );
        prop_assert_eq!(packed.steps, whole.steps + sums.more_steps);
    }
    Ok((packed, sums))
}

/// In f32, where sums are their own steps if a function stands before them or they are no sums.
#[test]
fn random_residual_networks_keep_their_bits() {
    let mut runner = TestRunner::new(properties::config("arena", 0.15));
    let targets = prop_oneof![Just(Target::Portable), Just(Target::CortexM4), Just(Target::Aarch64)];
    let blocks = prop::collection::vec(block(), 1..4);
    let strategy = (blocks, [10usize..30, 10usize..30], 24usize..64, targets, any::<u64>());
    let (networks, cut) = (Cell::new(0), Cell::new(0));
    let result = runner.run(&strategy, |(blocks, extents, wide, target, seed)| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = written(&trace(&blocks, extents, wide), folder.path(), target);
        let (_, sums) = compare(&options, seed)?;
        networks.set(networks.get() + usize::from(sums.is_some()));
        cut.set(cut.get() + sums.map_or(0, |sums| sums.sums));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (networks, cut) = (networks.get(), cut.get());
    eprintln!("{cut} sums of {networks} networks by rows");
    assert!(networks >= 8 && cut > networks, "{cut} sums of {networks} networks");
}

/// int8, by the sums and convolutions of every core, and every cut that `--fit` has on offer besides.
#[test]
fn int8_residual_networks_keep_their_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let projected = Block {
        projects: true,
        swapped: true,
        kernels: [1, 3],
        ..BLOCK
    };
    let functional = Block {
        function: Some("tanh"),
        ..BLOCK
    };
    let extents = [23, 17];
    let network = trace(&[projected, BLOCK, functional], extents, 48);
    for target in [
        Target::Portable,
        Target::CortexM3,
        Target::CortexM4,
        Target::CortexM55,
        Target::Aarch64,
    ] {
        let options = quantised(written(&network, folder.path(), target), extents);
        let (_, sums) = compare(&options, 8).expect("the same bits");
        assert!(sums.is_some_and(|sums| sums.sums == 3), "{}: {sums:?}", target.name());
        let (cut, _) = compare_cuts(options, 8).expect("the same bits");
        eprintln!("{}: {sums:?}, {cut} cuts besides", target.name());
    }
}

/// Memory of a block of ResNets, in int8: the tensor that is added to, the last layer's operand, and the rows that it gives. No way of cutting into two, four,
/// eight … parts is better, at 96 bytes a step.
#[test]
fn a_residual_block_takes_one_operand_of_its_sum_and_rows_of_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, columns, wide) = (32u64, 20u64, 64u64);
    let extents = [rows as usize, columns as usize];
    let network = trace(&[BLOCK, BLOCK], extents, wide as usize);
    let options = quantised(written(&network, folder.path(), Target::Portable), extents);
    let (packed, sums) = compare(&options, 9).expect("the same bits");
    let sums = sums.expect("sums by rows");
    assert_eq!(sums.sums, 2);
    let (side, read) = (rows * columns * wide, rows * columns * BLOCK.middle as u64);
    // Both operands, of which the one may lie partly over what the last layer reads.
    assert!(sums.whole_arena_bytes >= 2 * side, "{sums:?}");
    let price = |parts: u64| {
        let height = rows.div_ceil(parts);
        let steps = 2 * 2 * (rows.div_ceil(height) - 1);
        // The kernel has a byte of scratch for each channel.
        let arena = side + read + height * columns * wide + wide;
        (arena + 96 * steps, arena, steps as usize)
    };
    let best = [2, 4, 8, 16, 32].into_iter().map(price).min().expect("some");
    assert_eq!((packed.arena_bytes, sums.more_steps), (best.1, best.2), "{sums:?}");
    assert!(packed.plan_proven_optimal);
}

/// Where the peak is elsewhere, where the other operand is wanted again, and where the network is too small for more steps, nothing is cut.
#[test]
fn sums_are_whole_where_rows_bring_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let packed = |blocks: &[Block], extents: [usize; 2], wide: usize| {
        let options = written(&trace(blocks, extents, wide), folder.path(), Target::Portable);
        compare(&quantised(options, extents), 10).expect("the same bits").1
    };
    let later = Block {
        read_later: true,
        ..BLOCK
    };
    assert!(packed(&[BLOCK], [24, 24], 64).is_some());
    assert_eq!(packed(&[later], [24, 24], 64), None, "the operand stays");
    assert_eq!(packed(&[BLOCK], [3, 3], 64), None, "a hundredth of its cost is no step");
    let thick = Block {
        middle: 70,
        kernels: [1, 1],
        ..BLOCK
    };
    assert_eq!(packed(&[thick], [24, 24], 64), None, "the middle makes the peak");
}

/// A model in pieces has a layer's rows on one page, however often they meet others.
#[test]
fn pieces_are_not_cut_within_a_sum() {
    let folder = tempfile::tempdir().expect("a folder");
    let projected = Block {
        projects: true,
        ..BLOCK
    };
    let extents = [24, 24];
    let network = trace(&[projected, BLOCK], extents, 64);
    let options = quantised(written(&network, folder.path(), Target::CortexM4), extents);
    let whole = summary(&options);
    assert!(
        whole.sums_by_rows.is_some_and(|sums| sums.sums == 2),
        "{:?}",
        whole.sums_by_rows
    );
    let pieces = summary(&Options {
        stream: Some(
            Region {
                name: "spi".into(),
                size: Some(1 << 20),
            }
            .into(),
        ),
        ..options
    });
    assert_eq!(pieces.arena_bytes, whole.arena_bytes);
    let stream = pieces.stream.expect("pieces");
    // One for each of the six convolutions, and at most one before them.
    assert!((6..=7).contains(&stream.pieces), "{stream:?}");
}

/// A memory that whole sums do not fit, but rows of them do, is fitted without more; the survey shows what else there is.
#[test]
fn a_fit_goes_on_from_sums_by_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let extents = [24, 24];
    let options = quantised(
        written(&trace(&[BLOCK, BLOCK], extents, 64), folder.path(), Target::Portable),
        extents,
    );
    let (plain, expected) = packed_outputs(&options, 12);
    let sums = plain.sums_by_rows.expect("by rows");
    let (small, found) = packed_outputs(&fitted(&options, plain.arena_bytes), 12);
    assert_eq!((small.sums_by_rows, small.steps), (Some(sums), plain.steps));
    assert!(found == expected);
    // A few bytes fewer: other cuts are made, of these or anew.
    let (smaller, found) = packed_outputs(&fitted(&options, plain.arena_bytes - 600), 12);
    assert!(smaller.arena_bytes <= plain.arena_bytes - 600);
    assert!(found == expected);
    let error = pack(&fitted(&options, 4000), &mut |_, _, _| {}).expect_err("too little");
    assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{error}");
}
