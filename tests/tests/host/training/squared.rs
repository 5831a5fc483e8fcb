//! Losses that are sums of squares.

use arenite_host::gradient::Loss;
use arenite_host::model::{self, ModelFile, derived};

use super::*;

/// `mse` and `l2` of a network with a tanh: the loss, and central differences by runs of the file's own inference.
#[test]
fn squared_errors_have_gradients() {
    let folder = tempfile::tempdir().expect("a folder");
    for loss in [Loss::Mse, Loss::L2] {
        let (file, packed) = digits("mlp", folder.path(), loss, &[]);
        assert_eq!(packed.summary.training.as_ref().expect("steps").loss, loss.name());
        let image = &training_images(|x| x.to_vec())[3];
        let target: Vec<f32> = (0..CLASSES).map(|c| c as f32 / 7.0 - 0.5).collect();
        let state = initial(&file);
        let values = |state: &[u8]| {
            let made = derived::with_state(&file.view().expect("intact"), state).expect("a file");
            let file = ModelFile::made(&made, file.path());
            let outputs = model::run(
                &file.load().expect("loads"),
                &[vec![bytes(image)]],
                false,
                &mut |_, _, _| {},
            );
            let errors = floats(&outputs.expect("runs")[0][0]).into_iter().zip(&target);
            match loss {
                Loss::L2 => errors.map(|(y, _)| f64::from(y).powi(2) / 2.0).sum::<f64>(),
                _ => errors.map(|(y, t)| f64::from(y - t).powi(2) / 10.0).sum::<f64>(),
            }
        };
        let given = match loss {
            Loss::L2 => vec![bytes(image), bytes(&[1.0])],
            _ => vec![bytes(image), bytes(&target), bytes(&[1.0])],
        };
        let (mut given, mut found) = (Some(given), 0.0);
        let after = model::train(
            &file.load().expect("loads"),
            None,
            &mut |_| given.take(),
            &mut |_, outputs| {
                found = f64::from(floats(&outputs[0])[0]);
                Ok(())
            },
        );
        let (before, after) = (floats(&state), floats(&after.expect("it trains")));
        assert!((found - values(&state)).abs() <= 1e-5 * found, "{found}");
        // The steepest parameter of each layer, and its neighbours.
        for part in [0..2048, 2048..2080, 2080..2400, 2400..2410] {
            let slope = |at: usize| f64::from(before[at] - after[at]);
            let at = part
                .max_by(|&a, &b| slope(a).abs().total_cmp(&slope(b).abs()))
                .expect("some");
            let moved = [1e-2_f32, -1e-2].map(|by| {
                let mut state = before.clone();
                state[at] += by;
                values(&bytes(&state))
            });
            let numeric = (moved[0] - moved[1]) / 2e-2;
            assert!(
                (slope(at) - numeric).abs() <= 1e-2 * numeric.abs(),
                "{at}: {} and {numeric}",
                slope(at)
            );
        }
    }
}
