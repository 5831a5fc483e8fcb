//! Functions of parameters: weights that a file computes from others are constants, and a batch norm behind them is folded.

use arenite::Target;
use arenite_host::model::run;
use arenite_tests::golden::packed;

use crate::importer_limits::onnx_file::{File, floats, ints, longs, value};

const CHANNELS: usize = 3;
const OUT: usize = 4;
const TAPS: usize = 3;
const LENGTH: usize = 9;

/// A number in -1..1 for each index, other ones for each `kind`.
fn numbers(kind: usize, count: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 37 + kind * 101) % 64) as f32 / 32.0 - 1.0;
    (0..count).map(number).collect()
}

/// The weights are directions times lengths, as weight norm has them.
#[test]
fn weight_norm_and_batch_norm_are_a_convolution() {
    let (v, g) = (numbers(1, OUT * CHANNELS * TAPS), numbers(2, OUT));
    let [gamma, beta, mean] = [3, 4, 5].map(|kind| numbers(kind, OUT));
    let variance: Vec<f32> = numbers(6, OUT).iter().map(|value| value * value + 0.5).collect();
    let per_channel = |name: &str, values: &[f32]| floats(name, &[OUT as i64], values);
    let file = File::default()
        .input(&value("x", 1, &[1, CHANNELS as i64, LENGTH as i64]))
        .output(&value("y", 1, &[1, OUT as i64, LENGTH as i64]))
        .holding(&floats("v", &[OUT as i64, CHANNELS as i64, TAPS as i64], &v))
        .holding(&floats("g", &[OUT as i64, 1, 1], &g))
        .holding(&longs("axes", &[1, 2]))
        .holding(&per_channel("gamma", &gamma))
        .holding(&per_channel("beta", &beta))
        .holding(&per_channel("mean", &mean))
        .holding(&per_channel("variance", &variance))
        .node("ReduceL2", &["v", "axes"], "length", &[])
        .node("Div", &["g", "length"], "scale", &[])
        .node("Mul", &["v", "scale"], "w", &[])
        .node("Conv", &["x", "w"], "c", &[ints("pads", &[1, 1])])
        .node(
            "BatchNormalization",
            &["c", "gamma", "beta", "mean", "variance"],
            "b",
            &[],
        )
        .node("Relu", &["b"], "y", &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, file.bytes(18)).expect("written");
    let packed = packed(&path, folder.path(), Target::Portable).unwrap_or_else(|e| panic!("{e}"));
    let model = packed.load().expect("it loads");
    assert_eq!(model.header().step_count, 3, "a convolution between two orders of axes");
    let x = numbers(7, CHANNELS * LENGTH);
    let input: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    let found = run(&model, &[vec![input]], true, &mut |_, _, _| {}).expect("it runs");
    let found: Vec<f32> = found[0][0]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect();
    assert_eq!(found.len(), OUT * LENGTH);
    for (at, &found) in found.iter().enumerate() {
        let (o, t) = (at / LENGTH, at % LENGTH);
        let row = &v[o * CHANNELS * TAPS..][..CHANNELS * TAPS];
        let length = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        let mut sum = 0.0;
        for (tap, &weight) in row.iter().enumerate() {
            let (channel, from) = (tap / TAPS, t + tap % TAPS);
            if (1..=LENGTH).contains(&from) {
                sum += f64::from(x[channel * LENGTH + from - 1]) * f64::from(weight) * f64::from(g[o]) / length;
            }
        }
        let [gamma, beta, mean, variance] = [&gamma, &beta, &mean, &variance].map(|list| f64::from(list[o]));
        let expected = ((sum - mean) / (variance + 1e-5).sqrt() * gamma + beta).max(0.0);
        assert!(
            (f64::from(found) - expected).abs() < 1e-5,
            "[{at}]: {found} for {expected}"
        );
    }
}
