//! Parts that a dialect leaves out, and small networks of every dialect packed and run.

use arenite::Target;
use arenite_host::graph::UnaryKind;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::pack;
use arenite_host::weights::Weights;
use arenite_tests::writers::Random;
use arenite_tests::{golden, graphs, oracle};

use super::*;

/// Defaults that docs/dialects.md states where a trace says nothing; a stated value takes their place.
#[test]
fn what_a_dialect_does_not_say_has_its_documented_value() {
    let op = |imported: &Imported, wanted: fn(&Op) -> bool| {
        let node = imported.graph.nodes.iter().find(|node| wanted(&node.op));
        node.map(|node| node.op.clone()).expect("it is there")
    };
    let with_lrn = Chain {
        batch: 2,
        image: [3, 20, 33],
        layers: vec![conv(8, 3, 1, 1), Layer::Relu, Layer::Lrn],
    };
    let text = tf_shapes::write(&with_lrn, None);
    let lrn = |pairs| {
        let imported = read("tf-shapes", &text, &assuming(pairs)).unwrap();
        op(&imported, |op| matches!(op, Op::Lrn { .. }))
    };
    let stated = |axis, radius, bias, alpha, beta| Op::Lrn {
        axis,
        radius,
        bias,
        alpha,
        beta,
    };
    let Op::Lrn { axis, .. } = lrn(&[]) else {
        unreachable!("as asked for")
    };
    assert_eq!(lrn(&[]), stated(axis, 2, 2.0, 1e-4, 0.75));
    assert_eq!(lrn(&[("lrn.depth_radius", "3")]), stated(axis, 3, 2.0, 1e-4, 0.75));
    assert_eq!(lrn(&[("lrn.bias", "1.5")]), stated(axis, 2, 1.5, 1e-4, 0.75));
    assert_eq!(lrn(&[("lrn.alpha", "0.25")]), stated(axis, 2, 2.0, 0.25, 0.75));
    assert_eq!(lrn(&[("lrn.beta", "0.5")]), stated(axis, 2, 2.0, 1e-4, 0.5));

    let text = keras_order::write("resnet8", &[2, 1]);
    let keras = |pairs| {
        let graph = read("keras-order", &text, &assuming(pairs)).unwrap().graph;
        let epsilons = graph.nodes.iter().filter_map(|node| match node.op {
            Op::BatchNorm { epsilon, .. } => Some(epsilon),
            _ => None,
        });
        let mut epsilons: Vec<f32> = epsilons.collect();
        epsilons.dedup();
        let shape = |id: arenite_host::graph::TensorId| graph.tensor(id).shape.clone();
        (epsilons, shape(graph.inputs[0]), shape(graph.outputs[0]))
    };
    assert_eq!(keras(&[]), (vec![1.001e-5], vec![1, 224, 224, 3], vec![1, 1000]));
    assert_eq!(keras(&[("bn.epsilon", "0.5")]).0, [0.5]);
    assert_eq!(keras(&[("classes", "17")]).2, [1, 17]);

    let text = local(&[(8, 5)]).write();
    let has = |pairs, wanted| {
        let graph = read("rects", &text, &assuming(pairs)).unwrap().graph;
        graph.nodes.iter().any(|node| node.op == wanted)
    };
    let (relu, tanh) = (Op::Unary(UnaryKind::Relu), Op::Unary(UnaryKind::TANH));
    assert!(has(&[], relu.clone()) && !has(&[], tanh.clone()));
    assert!(has(&[("nonlinearity", "tanh")], tanh) && !has(&[("nonlinearity", "tanh")], relu));
}

/// Small networks of every dialect through all of pack, with seeded weights, against loops in f64 over the graph that was imported.
#[test]
fn small_networks_of_every_dialect_run_as_their_graphs_say() {
    let with_lrn = Chain {
        batch: 2,
        image: [3, 18, 29],
        layers: vec![
            conv(10, 5, 1, 2),
            Layer::Relu,
            Layer::Lrn,
            pool(3, 2, false),
            grouped(8, 3, 1, 1, 2, 1),
            Layer::Relu,
            pool(3, 2, false),
        ],
    };
    let ceiling = &[("pool.window", "3x3/2/VALID")][..];
    let cases = [
        ("chainer", chainer::write(&uneven(2, true), 5), &[][..]),
        ("megengine", megengine::write(&uneven(2, false)), &[]),
        ("tf-shapes", tf_shapes::write(&with_lrn, Some(3)), ceiling),
        ("rects", local(&[(5, 4), (3, 3)]).write(), &[]),
        ("rects", local(&[(4, 5)]).write(), &[("nonlinearity", "tanh")]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.trace");
    let mut compared = 0;
    for (dialect, text, pairs) in cases {
        std::fs::write(&path, text).unwrap();
        for (target, batch) in [(Target::Portable, 2), (Target::CortexM4, 1), (Target::CortexM55, 1)] {
            let mut options = golden::options(&path, folder.path(), target);
            options.import = assuming(pairs);
            options.import.batch = Some(batch);
            options.weights = Some("seeded:7".into());
            let graph = import(&path, None, &options.import).unwrap().1.graph;
            let mut random = Random::new(11);
            let input = graph.tensor(graph.inputs[0]).elements();
            let input: Vec<f32> = (0..input).map(|_| random.below(4096) as f32 / 2048.0 - 1.0).collect();
            let weights = Weights::open("seeded:7", &graph).unwrap();
            let expected = graphs::evaluate(&graph, &weights, std::slice::from_ref(&input)).unwrap();
            pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{dialect}: {e}"));
            let file = ModelFile::open(&options.output).unwrap();
            let bytes = input.iter().flat_map(|v| v.to_le_bytes()).collect();
            let found = run(&file.load().unwrap(), &[vec![bytes]], false, &mut |_, _, _| {}).unwrap();
            for (found, expected) in found[0].iter().zip(&expected) {
                let found: Vec<f64> = (found.as_chunks::<4>().0.iter())
                    .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
                    .collect();
                assert_eq!(found.len(), expected.len(), "{dialect}");
                let largest = expected.iter().fold(0.0f64, |most, v| most.max(v.abs()));
                let worst = found
                    .iter()
                    .zip(expected)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                assert!(
                    largest > 0.0 && worst <= 1e-5 * largest,
                    "{dialect} for {}: {worst} of {largest}",
                    target.name()
                );
                compared += 1;
            }
        }
    }
    oracle::compared("loops in f64 over graphs", compared, 15);
}
