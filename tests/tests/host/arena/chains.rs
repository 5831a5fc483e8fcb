//! Chains of layers, cut wherever `--fit` may cut them.

use arenite::KernelId;
use arenite_host::quantize::Request;

use super::*;

/// A layer of a random chain: its operator, rows and columns of its window, and channels after it.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    kind: Kind,
    kernel: [usize; 2],
    stride: [usize; 2],
    /// Of a convolution.
    dilation: [usize; 2],
    /// Before and behind alike.
    padding: [usize; 2],
    channels: usize,
    /// Whether its result is an output of the network as well.
    is_output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Conv,
    Depthwise,
    MaxPool,
    AvgPool,
}

pub(crate) fn layer() -> impl Strategy<Value = Layer> {
    let kind = prop_oneof![
        3 => Just(Kind::Conv),
        2 => Just(Kind::Depthwise),
        1 => Just(Kind::MaxPool),
        1 => Just(Kind::AvgPool),
    ];
    let pair = |most: usize| prop::array::uniform2(1usize..=most);
    let shape = (pair(3), pair(2), pair(2), prop::array::uniform2(0usize..=1), 1usize..=6);
    (kind, shape, prop::bool::weighted(0.1)).prop_map(
        |(kind, (kernel, stride, dilation, padding, channels), is_output)| Layer {
            kind,
            kernel,
            stride,
            dilation: match kind {
                Kind::Conv | Kind::Depthwise => dilation,
                _ => [1, 1],
            },
            padding: [padding[0].min(kernel[0] / 2), padding[1].min(kernel[1] / 2)],
            channels,
            is_output,
        },
    )
}

/// A trace of the layers on an image of `extents` rows and columns.
pub(crate) fn trace(layers: &[Layer], extents: [usize; 2], channels: usize) -> serde_json::Value {
    use serde_json::json;
    let activation = |[rows, columns]: [usize; 2], channels: usize, role: &str| json!({"shape": [1, rows, columns, channels], "dtype": "f32", "role": role});
    let mut tensors = serde_json::Map::new();
    tensors.insert("t0".into(), activation(extents, channels, "input"));
    let (mut extents, mut channels, mut ops, mut outputs) = (extents, channels, Vec::new(), Vec::new());
    for (index, layer) in layers.iter().enumerate() {
        let Layer {
            kind,
            kernel: [kh, kw],
            stride,
            dilation,
            padding: [ph, pw],
            ..
        } = *layer;
        let out = |axis: usize| {
            let reach = (layer.kernel[axis] - 1) * dilation[axis];
            let room = (extents[axis] + 2 * layer.padding[axis]).checked_sub(reach + 1)?;
            Some(room / stride[axis] + 1)
        };
        let (Some(rows), Some(columns)) = (out(0), out(1)) else {
            break;
        };
        extents = [rows, columns];
        let mut inputs = vec![json!(format!("t{index}"))];
        let mut attrs = json!({"strides": stride, "padding": [ph, ph, pw, pw], "layout": "NHWC"});
        let op = match kind {
            Kind::Conv | Kind::Depthwise => {
                let (out, within, groups) = match kind {
                    Kind::Conv => (layer.channels, channels, 1),
                    _ => (channels, 1, channels),
                };
                let weight = format!("w{index}");
                let shape = [out, within, kh, kw];
                tensors.insert(
                    weight.clone(),
                    json!({"shape": shape, "dtype": "f32", "role": "parameter"}),
                );
                inputs.push(json!(weight));
                attrs["groups"] = json!(groups);
                attrs["dilation"] = json!(dilation);
                channels = out;
                "conv2d"
            }
            Kind::MaxPool | Kind::AvgPool => {
                attrs["kernel"] = json!([kh, kw]);
                if kind == Kind::MaxPool {
                    "max_pool2d"
                } else {
                    "avg_pool2d"
                }
            }
        };
        let result = format!("t{}", index + 1);
        tensors.insert(result.clone(), activation(extents, channels, "activation"));
        ops.push(
            json!({"name": format!("op{index}"), "op": op, "inputs": inputs, "outputs": [result], "attrs": attrs}),
        );
        if layer.is_output {
            outputs.push(result);
        }
    }
    let last = format!("t{}", ops.len());
    if outputs.last() != Some(&last) {
        outputs.push(last);
    }
    let trace = json!({"arenite_trace": 1, "name": "chain", "inputs": ["t0"], "outputs": outputs, "tensors": tensors, "ops": ops});
    assert_eq!(arenite_tests::json_schema::check_trace(&trace), Ok(()));
    trace
}

/// Packs a chain whole, and again for every cut that is offered; returns how many there were of them, and of these how many in tiles.
pub(crate) fn compare_every_cut(
    layers: &[Layer],
    extents: [usize; 2],
    channels: usize,
    target: Target,
    seed: u64,
) -> Result<(usize, usize), TestCaseError> {
    compare_cuts_of(&trace(layers, extents, channels), 1, target, seed)
}

/// [`compare_every_cut`] of any trace, at a batch.
pub(crate) fn compare_cuts_of(
    trace: &serde_json::Value,
    batch: usize,
    target: Target,
    seed: u64,
) -> Result<(usize, usize), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("chain.trace.json");
    std::fs::write(&input, trace.to_string()).expect("written");
    let mut whole = options(&input, folder.path(), target);
    whole.import.batch = Some(batch);
    whole.weights = Some("seeded:1".into());
    compare_cuts(whole, seed)
}

/// [`compare_every_cut`] of what these options pack.
pub(crate) fn compare_cuts(mut whole: Options, seed: u64) -> Result<(usize, usize), TestCaseError> {
    whole.explain = true;
    let (plain, expected) = packed_outputs(&whole, seed);
    whole.explain = false;
    let (mut cut, mut tiled) = (0, 0);
    for point in plain.pareto.iter().filter(|p| p.arena_bytes < plain.arena_bytes) {
        let (small, found) = packed_outputs(&fitted(&whole, point.arena_bytes), seed);
        prop_assert!(small.arena_bytes <= point.arena_bytes);
        prop_assert!(small.extra_macs <= point.extra_macs);
        prop_assert!(found == expected, "{}", point.cuts);
        cut += 1;
        tiled += usize::from(point.cuts.contains("tiles"));
    }
    Ok((cut, tiled))
}

/// Bands of rows with line buffers and with recomputed halos, and tiles, of convolutions and poolings in f32.
#[test]
pub(crate) fn random_chains_fit_bit_for_bit() {
    let mut runner = TestRunner::new(properties::config("arena", 0.2));
    let targets = prop_oneof![Just(Target::Portable), Just(Target::CortexM4)];
    let strategy = (
        prop::collection::vec(layer(), 2..6),
        [6usize..20, 6usize..20],
        1usize..5,
        targets,
        any::<u64>(),
    );
    let (networks, cuts, tiles) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let result = runner.run(&strategy, |(layers, extents, channels, target, seed)| {
        prop_assume!(
            trace(&layers, extents, channels)["ops"]
                .as_array()
                .is_some_and(|ops| ops.len() >= 2)
        );
        let (cut, tiled) = compare_every_cut(&layers, extents, channels, target, seed)?;
        networks.set(networks.get() + usize::from(cut > 0));
        cuts.set(cuts.get() + cut);
        tiles.set(tiles.get() + tiled);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (networks, cuts, tiles) = (networks.get(), cuts.get(), tiles.get());
    eprintln!("{cuts} cuts of {networks} networks were compared, {tiles} of them in tiles");
    assert!(
        networks >= 8 && tiles >= 3,
        "{cuts} cuts of {networks} networks, {tiles} in tiles"
    );
}

/// Depthwise and pointwise convolution, then the next depthwise one: what lies between them is three rows and not a tensor.
#[test]
pub(crate) fn neighbours_run_row_by_row_without_extra_macs() {
    let depthwise = |stride| Layer {
        kind: Kind::Depthwise,
        kernel: [3, 3],
        stride: [stride, stride],
        dilation: [1, 1],
        padding: [1, 1],
        channels: 0,
        is_output: false,
    };
    let layers = [depthwise(1), pointwise(24), depthwise(2)];
    let (whole, front) = survey(&layers, [24, 24], 8);
    // The widest tensor is 24 x 24 x 24 f32; its whole never exists in the cut network.
    assert!(whole.arena_bytes >= 24 * 24 * 24 * 4);
    let point = front
        .iter()
        .find(|p| p.extra_macs == 0 && p.arena_bytes < whole.arena_bytes);
    let point = point.expect("a cut without extra MACs");
    assert!(point.cuts.contains("line buffers"), "{}", point.cuts);
    // Input, output, and four rows of each tensor between, at most.
    let ends = (24 * 24 * 8 + 12 * 12 * 24) * 4;
    let rows = 4 * 24 * (8 + 24) * 4;
    assert!(point.arena_bytes <= ends + rows, "{point:?}");
    assert!(
        whole.arena_bytes - point.arena_bytes > 20_000,
        "{point:?} of {}",
        whole.arena_bytes
    );
}

/// An inverted bottleneck: wide between narrow ends, so that even three rows of it are more than a tile with its halo.
#[test]
pub(crate) fn tiles_are_smaller_than_rows_where_the_middle_is_wide() {
    let depthwise = Layer {
        kind: Kind::Depthwise,
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [1, 1],
        channels: 0,
        is_output: false,
    };
    let layers = [pointwise(48), depthwise, pointwise(4)];
    let (whole, front) = survey(&layers, [20, 20], 4);
    let least = |tiled: bool| {
        let points = front
            .iter()
            .filter(|p| p.arena_bytes < whole.arena_bytes && p.cuts.contains("tiles") == tiled);
        points
            .min_by_key(|p| p.arena_bytes)
            .expect("both ways are on the front")
    };
    let (rows, tiles) = (least(false), least(true));
    eprintln!("whole {}, rows {rows:?}, tiles {tiles:?}", whole.arena_bytes);
    assert!(tiles.arena_bytes * 3 < rows.arena_bytes * 2, "{tiles:?} {rows:?}");
    assert!(tiles.extra_macs > 0);
    let (cut, tiled) = compare_every_cut(&layers, [20, 20], 4, Target::Portable, 4).expect("the same bits");
    assert!(cut > tiled && tiled > 0, "{cut} cuts, {tiled} in tiles");
}

/// int8 on the kernels of every core; where windows slide over the whole image, its bands are another kernel's.
#[test]
pub(crate) fn int8_chains_fit_bit_for_bit() {
    let depthwise = Layer {
        kind: Kind::Depthwise,
        kernel: [3, 3],
        padding: [1, 1],
        ..pointwise(0)
    };
    let layers = [pointwise(24), depthwise, pointwise(8)];
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("chain.trace.json");
    std::fs::write(&input, trace(&layers, [30, 10], 4).to_string()).expect("written");
    let samples = folder.path().join("samples.npy");
    let values = ndarray::Array::from_shape_fn([5, 1, 30, 10, 4], |(i, _, row, column, channel)| {
        ((i * 7 + row * 3 + column * 5 + channel) as f32 * 0.37).sin()
    });
    ndarray_npy::write_npy(&samples, &values).expect("written");
    for target in [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55] {
        let mut whole = options(&input, folder.path(), target);
        whole.weights = Some("seeded:1".into());
        whole.dtype = Some(DType::I8);
        whole.quantize = Some(Request {
            samples: samples.clone(),
            ..Request::default()
        });
        summary(&whole);
        let file = ModelFile::open(&whole.output).expect("the model");
        let steps = file.view().and_then(|view| view.steps()).expect("steps");
        let slides = steps
            .iter()
            .any(|step| step.kernel() == KernelId::DspSlidingDepthwiseS8);
        assert_eq!(slides, target == Target::CortexM4, "{}", target.name());
        let (cut, _) = compare_cuts(whole, 11).expect("the same bits");
        assert!(cut > 0, "{}: no cuts", target.name());
    }
}

/// Rows unlike columns in everything, with dilation: cuts are on offer, tiles too, and each computes the same bits.
#[test]
pub(crate) fn dilated_and_uneven_chains_fit_bit_for_bit() {
    let conv = |kernel, stride, dilation, padding, channels| Layer {
        kind: Kind::Conv,
        kernel,
        stride,
        dilation,
        padding,
        channels,
        is_output: false,
    };
    let layers = [
        conv([1, 3], [1, 2], [1, 2], [0, 1], 12),
        conv([3, 2], [1, 1], [3, 1], [2, 0], 16),
        Layer {
            kind: Kind::Depthwise,
            ..conv([2, 3], [2, 1], [2, 1], [1, 1], 0)
        },
    ];
    for target in [Target::Portable, Target::CortexM4] {
        let (cut, tiled) = compare_every_cut(&layers, [22, 31], 3, target, 9).expect("the same bits");
        assert!(cut > tiled && tiled > 0, "{cut} cuts, {tiled} in tiles");
    }
}

/// Wide twice, narrow between: only a cut through all four layers is smaller. The tensor between is an output: then no cut goes through it, for its
/// rows must all be there at the end.
#[test]
pub(crate) fn an_inner_output_is_not_cut_away() {
    let layers = |is_output| {
        let between = Layer {
            is_output,
            ..pointwise(2)
        };
        [pointwise(48), between, pointwise(48), pointwise(2)]
    };
    let (whole, front) = survey(&layers(false), [20, 30], 2);
    assert!(
        front.iter().any(|point| point.arena_bytes < whole.arena_bytes / 2),
        "{front:?}"
    );
    let (_, front) = survey(&layers(true), [20, 30], 2);
    assert_eq!(front.len(), 1, "{front:?}");
    let (cut, _) = compare_every_cut(&layers(false), [20, 30], 2, Target::Portable, 5).expect("the same bits");
    assert!(cut > 0);
}

/// A band has rows of one image: two images are not cut.
#[test]
pub(crate) fn a_batch_is_not_cut() {
    let layers = [pointwise(48), pointwise(2)];
    let chain = trace(&layers, [20, 30], 2);
    let (alone, _) = compare_cuts_of(&chain, 1, Target::Portable, 6).expect("the same bits");
    assert!(alone > 0);
    let (together, _) = compare_cuts_of(&chain, 2, Target::Portable, 6).expect("the same bits");
    assert_eq!(together, 0);
}

/// The wide tensor is read by the next layer, and by a pooling behind all others: its rows must stay.
#[test]
pub(crate) fn a_tensor_with_two_readers_is_not_cut_away() {
    use serde_json::json;
    let layers = [pointwise(48), pointwise(2), pointwise(40), pointwise(3)];
    let mut branched = trace(&layers, [20, 30], 2);
    let (alone, _) = compare_cuts_of(&branched, 1, Target::Portable, 7).expect("the same bits");
    assert!(alone > 0);
    branched["tensors"]["late"] = json!({"shape": [1, 1, 1, 2], "dtype": "f32", "role": "activation"});
    let pool = json!({"name": "late", "op": "max_pool2d", "inputs": ["t2"], "outputs": ["late"],
        "attrs": {"kernel": [20, 30], "layout": "NHWC"}});
    branched["ops"].as_array_mut().expect("operators").push(pool);
    branched["outputs"].as_array_mut().expect("outputs").push(json!("late"));
    // Whatever is cut beside it, nothing goes through it.
    compare_cuts_of(&branched, 1, Target::Portable, 7).expect("the same bits");
}

/// The cuts on offer for chains of every kind are those on record: `tests/results/fronts.txt`. Memory and cost of a cut are checked elsewhere; a change of
/// the search shows here. Where it is meant, `ARENITE_BLESS=1` writes the file anew.
#[test]
pub(crate) fn fronts_are_those_on_record() {
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut text =
        String::from("# network; then for each point of its front: bytes of arena, extra MACs, steps, cuts\n");
    for index in 0..16 {
        let layers: Vec<Layer> = (0..2 + below(4))
            .map(|_| {
                let kind = [Kind::Conv, Kind::Conv, Kind::Depthwise, Kind::MaxPool, Kind::AvgPool][below(5)];
                let kernel = [1 + below(3), 1 + below(3)];
                let windowed = matches!(kind, Kind::Conv | Kind::Depthwise);
                Layer {
                    kind,
                    kernel,
                    stride: [1 + below(2), 1 + below(2)],
                    dilation: if windowed { [1 + below(2), 1 + below(2)] } else { [1, 1] },
                    padding: [below(2).min(kernel[0] / 2), below(2).min(kernel[1] / 2)],
                    channels: 1 + below(24),
                    is_output: below(8) == 0,
                }
            })
            .collect();
        let (extents, channels) = ([8 + below(18), 8 + below(18)], 1 + below(5));
        let (whole, front) = survey(&layers, extents, channels);
        text += &format!("{index} {} {}\n", whole.arena_bytes, whole.macs);
        for Point {
            arena_bytes,
            extra_macs,
            steps,
            cuts,
        } in front
        {
            text += &format!("  {arena_bytes} {extra_macs} {steps} {cuts}\n");
        }
    }
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/fronts.txt");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&record, &text).expect("written");
    }
    let tracked = std::fs::read_to_string(&record).expect("the record");
    let differ = text
        .lines()
        .zip(tracked.lines())
        .find(|(found, tracked)| found != tracked);
    assert!(
        text == tracked,
        "{differ:?}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test host arena::chains::fronts"
    );
}

/// A cut is 256 tiles at most: of one row and two columns there are so many on 16 x 32 pixels, and 16 more on 16 x 33.
#[test]
pub(crate) fn a_cut_has_a_limited_number_of_tiles() {
    let layers = [pointwise(40), pointwise(2)];
    for (columns, on_offer) in [(32, true), (33, false)] {
        let (whole, front) = survey(&layers, [16, columns], 2);
        let smallest = front
            .iter()
            .any(|point| point.cuts.contains("tiles of 1 row and 2 columns"));
        assert_eq!(smallest, on_offer, "{columns} columns: {front:?}");
        assert!(
            front.iter().any(|point| point.arena_bytes < whole.arena_bytes / 2),
            "{front:?}"
        );
        // Two layers, and two copies of what a tile reads and writes, which single rows do not need.
        assert!(front.iter().all(|point| point.steps <= 256 * 4), "{front:?}");
    }
}

pub(crate) fn pointwise(channels: usize) -> Layer {
    Layer {
        kind: Kind::Conv,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
        channels,
        is_output: false,
    }
}

/// The chain packed whole, and the front of arena against extra MACs.
pub(crate) fn survey(layers: &[Layer], extents: [usize; 2], channels: usize) -> (Summary, Vec<Point>) {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("chain.trace.json");
    std::fs::write(&input, trace(layers, extents, channels).to_string()).expect("written");
    let mut options = options(&input, folder.path(), Target::Portable);
    options.weights = Some("seeded:1".into());
    options.explain = true;
    let whole = summary(&options);
    let front = whole.pareto.clone();
    (whole, front)
}
