//! Choices among logits against probabilities in f64.

use arenite::text::{Logits, Sampler};
use arenite_tests::properties;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Probabilities of a softmax.
fn probabilities(logits: &[f32], temperature: f64) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits
        .iter()
        .map(|x| ((f64::from(*x) - f64::from(largest)) / temperature).exp())
        .collect();
    let all: f64 = powers.iter().sum();
    powers.iter().map(|power| power / all).collect()
}

/// Tokens from the likeliest on, of equal ones the first.
fn in_order(logits: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    order
}

#[test]
fn the_likeliest_token_is_taken_and_none_where_one_is_no_number() {
    let mut greedy = Sampler::greedy();
    assert_eq!(greedy.pick(Logits::F32(&[1.0, 3.0, 3.0, -2.0])), Some(1));
    assert_eq!(greedy.pick(Logits::F32(&[-1.0, -0.5, f32::NEG_INFINITY])), Some(1));
    assert_eq!(greedy.pick(Logits::F32(&[-0.0, 0.0])), Some(0));
    assert_eq!(greedy.pick(Logits::F32(&[1.0, 1.0 + f32::EPSILON])), Some(1));
    assert_eq!(greedy.pick(Logits::I8(&[-128, 5, 127, 127], 0.1)), Some(2));
    for broken in [&[][..], &[1.0, f32::NAN]] {
        assert_eq!(greedy.pick(Logits::F32(broken)), None);
        assert_eq!(Sampler::seeded(1.0, 3).pick(Logits::F32(broken)), None);
    }
    // No temperature, or none that is one, is the same.
    for temperature in [0.0, -1.0, f32::NAN] {
        assert_eq!(Sampler::seeded(temperature, 9).pick(Logits::F32(&[0.0, 0.1])), Some(1));
    }
    // Infinities and ends of the range are numbers.
    let ends = [f32::INFINITY, f32::MAX, f32::MIN, f32::NEG_INFINITY];
    assert_eq!(Sampler::seeded(1.0, 1).top_k(1).pick(Logits::F32(&ends)), Some(0));
}

#[test]
fn choices_are_as_often_as_they_are_likely() {
    let logits = [1.5_f32, -0.5, 2.0, 0.25, -3.0];
    for temperature in [0.5_f32, 1.0, 2.0] {
        let expected = probabilities(&logits, temperature.into());
        let (mut sampler, mut counts) = (Sampler::seeded(temperature, 42), [0_u32; 5]);
        let all = 40_000;
        for _ in 0..all {
            counts[sampler.pick(Logits::F32(&logits)).expect("a token") as usize] += 1;
        }
        for (count, p) in counts.iter().zip(&expected) {
            let apart = (f64::from(*count) / f64::from(all) - p).abs();
            assert!(
                apart < 4.0 * (p * (1.0 - p) / f64::from(all)).sqrt() + 1e-4,
                "{counts:?} {expected:?}"
            );
        }
    }
    // int8 logits are the same choice as the numbers they stand for.
    let stored = [30_i8, -10, 40, 5, -60];
    let (mut a, mut b) = (Sampler::seeded(1.0, 5), Sampler::seeded(1.0, 5));
    let real: Vec<f32> = stored.iter().map(|q| f32::from(*q) * 0.05).collect();
    for _ in 0..500 {
        assert_eq!(a.pick(Logits::I8(&stored, 0.05)), b.pick(Logits::F32(&real)));
    }
}

#[test]
fn choices_keep_to_the_likeliest() {
    let strategy = (
        prop::collection::vec(-6.0_f32..6.0, 1..40),
        0.2_f32..3.0,
        0_u32..12,
        0.05_f32..1.0,
        any::<u64>(),
    );
    let mut runner = TestRunner::new(properties::config("language", 1.0));
    let checked = runner.run(&strategy, |(mut logits, temperature, k, p, seed)| {
        // Some are equal.
        if let [first, .., last] = &mut logits[..] {
            *last = *first;
        }
        let (order, all) = (in_order(&logits), probabilities(&logits, temperature.into()));
        let kept = if k == 0 {
            order.len()
        } else {
            order.len().min(k as usize)
        };
        let mass: f64 = order[..kept].iter().map(|&token| all[token]).sum();
        // The nucleus, and as many more as rounding at its edge may add.
        let (mut sum, mut nucleus) = (0.0, 0);
        while nucleus < kept && sum < mass * (f64::from(p) + 1e-3) {
            sum += all[order[nucleus]];
            nucleus += 1;
        }
        let mut sampler = Sampler::seeded(temperature, seed).top_k(k).top_p(p);
        for _ in 0..60 {
            let token = sampler.pick(Logits::F32(&logits)).expect("a token") as usize;
            let place = order.iter().position(|&other| other == token).expect("a token");
            prop_assert!(place < nucleus.max(1), "token {token} is number {place}, of {nucleus}");
        }
        Ok(())
    });
    checked.expect("within the likeliest");
}
