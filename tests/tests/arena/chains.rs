//! Chains of layers, cut wherever `--fit` may cut them.

use super::*;

/// A layer of a random chain: its operator, kernel, stride, padding, and channels after it.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    kind: Kind,
    kernel: usize,
    stride: usize,
    padding: usize,
    channels: usize,
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
    (kind, 1usize..=3, 1usize..=2, 0usize..=1, 1usize..=6).prop_map(|(kind, kernel, stride, padding, channels)| Layer {
        kind,
        kernel,
        stride,
        padding: padding.min(kernel / 2),
        channels,
    })
}

/// A trace of the layers on an image of `side` rows and columns.
pub(crate) fn trace(layers: &[Layer], side: usize, channels: usize) -> serde_json::Value {
    use serde_json::json;
    let activation = |side: usize, channels: usize, role: &str| json!({"shape": [1, side, side, channels], "dtype": "f32", "role": role});
    let mut tensors = serde_json::Map::new();
    tensors.insert("t0".into(), activation(side, channels, "input"));
    let (mut side, mut channels, mut ops) = (side, channels, Vec::new());
    for (index, layer) in layers.iter().enumerate() {
        let Layer {
            kind,
            kernel,
            stride,
            padding,
            ..
        } = *layer;
        if side + 2 * padding < kernel {
            break;
        }
        side = (side + 2 * padding - kernel) / stride + 1;
        let mut inputs = vec![json!(format!("t{index}"))];
        let (k, p) = (json!([kernel, kernel]), json!([padding, padding, padding, padding]));
        let mut attrs = json!({"strides": [stride, stride], "padding": p, "layout": "NHWC"});
        let op = match kind {
            Kind::Conv | Kind::Depthwise => {
                let (out, within, groups) = match kind {
                    Kind::Conv => (layer.channels, channels, 1),
                    _ => (channels, 1, channels),
                };
                let weight = format!("w{index}");
                let shape = [out, within, kernel, kernel];
                tensors.insert(
                    weight.clone(),
                    json!({"shape": shape, "dtype": "f32", "role": "parameter"}),
                );
                inputs.push(json!(weight));
                attrs["groups"] = json!(groups);
                channels = out;
                "conv2d"
            }
            Kind::MaxPool | Kind::AvgPool => {
                attrs["kernel"] = k;
                if kind == Kind::MaxPool {
                    "max_pool2d"
                } else {
                    "avg_pool2d"
                }
            }
        };
        tensors.insert(format!("t{}", index + 1), activation(side, channels, "activation"));
        ops.push(json!({"name": format!("op{index}"), "op": op, "inputs": inputs,
            "outputs": [format!("t{}", index + 1)], "attrs": attrs}));
    }
    let last = format!("t{}", ops.len());
    json!({"arenite_trace": 1, "name": "chain", "inputs": ["t0"], "outputs": [last], "tensors": tensors, "ops": ops})
}

/// Packs a chain whole, and again for every cut that is offered; returns how many there were of them, and of these how many in tiles.
pub(crate) fn compare_every_cut(
    layers: &[Layer],
    side: usize,
    channels: usize,
    target: Target,
    seed: u64,
) -> Result<(usize, usize), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("chain.trace.json");
    std::fs::write(&input, trace(layers, side, channels).to_string()).expect("written");
    let mut whole = options(&input, folder.path(), target);
    whole.weights = Some("seeded:1".into());
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
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let targets = prop_oneof![Just(Target::Portable), Just(Target::CortexM4)];
    let strategy = (
        prop::collection::vec(layer(), 2..6),
        6usize..20,
        1usize..5,
        targets,
        any::<u64>(),
    );
    let (networks, cuts, tiles) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let result = runner.run(&strategy, |(layers, side, channels, target, seed)| {
        prop_assume!(
            trace(&layers, side, channels)["ops"]
                .as_array()
                .is_some_and(|ops| ops.len() >= 2)
        );
        let (cut, tiled) = compare_every_cut(&layers, side, channels, target, seed)?;
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
        kernel: 3,
        stride,
        padding: 1,
        channels: 0,
    };
    let layers = [depthwise(1), pointwise(24), depthwise(2)];
    let (whole, front) = survey(&layers, 24, 8);
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
        kernel: 3,
        stride: 1,
        padding: 1,
        channels: 0,
    };
    let layers = [pointwise(48), depthwise, pointwise(4)];
    let (whole, front) = survey(&layers, 20, 4);
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
    let (cut, tiled) = compare_every_cut(&layers, 20, 4, Target::Portable, 4).expect("the same bits");
    assert!(cut > tiled && tiled > 0, "{cut} cuts, {tiled} in tiles");
}

pub(crate) fn pointwise(channels: usize) -> Layer {
    Layer {
        kind: Kind::Conv,
        kernel: 1,
        stride: 1,
        padding: 0,
        channels,
    }
}

/// The chain packed whole, and the front of arena against extra MACs.
pub(crate) fn survey(layers: &[Layer], side: usize, channels: usize) -> (Summary, Vec<Point>) {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("chain.trace.json");
    std::fs::write(&input, trace(layers, side, channels).to_string()).expect("written");
    let mut options = options(&input, folder.path(), Target::Portable);
    options.weights = Some("seeded:1".into());
    options.explain = true;
    let whole = summary(&options);
    let front = whole.pareto.clone();
    (whole, front)
}
