//! Activations that are computed again (`--fit` with `--train`): the same bits in less memory.

use arenite_host::gradient::{Loss, Optimiser};
use arenite_host::memory::{Region, prove};
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::{Error, ErrorKind};
use arenite_tests::digits_options;

use super::*;

/// Options of a network with steps of training.
fn options(name: &str, batch: usize, parts: usize, optimiser: &str) -> Options {
    let mut options = digits_options(name, std::path::Path::new("none.bin"));
    options.import.batch = Some(batch);
    options.train = request(Loss::CrossEntropy, &[]);
    if let Some(asked) = &mut options.train {
        asked.micro_batches = parts;
        asked.optimiser = Optimiser::named(optimiser).expect("an optimiser");
    }
    options
}

fn made(options: &Options, folder: &std::path::Path, fit: Option<u64>) -> Result<(ModelFile, Packed), Error> {
    let output = folder.join(format!("{}.bin", fit.unwrap_or_default()));
    // As the command line has it.
    let sized = |size: u64| Region {
        name: "arena".into(),
        size: Some(size),
    };
    let options = Options {
        fit,
        regions: fit.into_iter().map(sized).collect(),
        output: output.clone(),
        ..options.clone()
    };
    let told = pack(&options, &mut |_, _, _| {})?;
    Ok((ModelFile::open(&output).expect("just written"), told))
}

/// The outputs of so many steps, and the state behind them.
fn trained(file: &ModelFile, batch: usize, steps: usize) -> (Vec<Vec<Vec<u8>>>, Vec<u8>) {
    let (images, labels) = (training_images(sideways), training_labels());
    let inputs = |step: usize| {
        let samples = step * batch..(step + 1) * batch;
        let labels = labels[samples.clone()].iter().flat_map(|label| label.to_le_bytes());
        vec![bytes(&images[samples].concat()), labels.collect(), bytes(&[0.01])]
    };
    let mut given = |step: usize| (step < steps).then(|| inputs(step));
    let mut outputs = Vec::new();
    let state = model::train(&file.load().expect("loads"), None, &mut given, &mut |_, found| {
        outputs.push(found.to_vec());
        Ok(())
    });
    (outputs, state.expect("it trains"))
}

/// Down to the least that there is: each file takes no more than it was asked to, computes at most the forward half again, and has the bits of the file that
/// keeps everything.
#[test]
fn whatever_is_computed_again_no_bit_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, batch, parts, optimiser) in [
        ("digits", 1, 1, "sgd"),
        ("digits", 6, 1, "momentum"),
        ("residual", 8, 1, "sgd"),
        ("residual", 12, 3, "adam"),
    ] {
        let options = options(name, batch, parts, optimiser);
        let (kept, told) = made(&options, folder.path(), None).expect("packs");
        assert_eq!(told.summary.extra_macs, 0, "{name}");
        let (whole, expected) = (told.summary.arena_bytes, trained(&kept, batch, 5));
        let forward = told.summary.macs * batch as u64;
        let (mut least, mut files) = (whole, 0);
        let error = loop {
            let (file, told) = match made(&options, folder.path(), Some(least - 1)) {
                Ok(made) => made,
                Err(error) => break error,
            };
            let summary = &told.summary;
            assert!(
                summary.arena_bytes < least,
                "{name}: {} of {least}",
                summary.arena_bytes
            );
            let extra = summary.extra_macs;
            assert!(extra > 0 && extra <= forward, "{name}: {extra} of {forward}");
            prove::prove(&file.view().expect("intact")).expect("both plans are right");
            assert!(trained(&file, batch, 5) == expected, "{name} in {least} bytes");
            (least, files) = (summary.arena_bytes, files + 1);
            println!("{name}: {least} bytes of {whole}, {extra} MACs more of {forward}");
        };
        // The peak of digits is at a gradient, whatever is kept.
        assert!(files > 0 || name == "digits", "{name}: nothing is less than {whole}");
        assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{name}");
        let said = error.to_string();
        let fit = format!("at most {} (--fit)", least - 1);
        assert!(said.contains(&fit) && said.contains(&least.to_string()), "{said}");
    }
}

/// A network that fits is left as it is.
#[test]
fn what_fits_keeps_its_activations() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options("residual", 8, 1, "sgd");
    let (kept, told) = made(&options, folder.path(), None).expect("packs");
    let (fitted, of_fitted) = made(&options, folder.path(), Some(told.summary.arena_bytes)).expect("packs");
    assert_eq!(of_fitted.summary.extra_macs, 0);
    let [kept, fitted] = [kept, fitted].map(|file| std::fs::read(file.path()).expect("a file"));
    assert!(kept == fitted);
}

/// Less than inference takes is refused as that.
#[test]
fn inference_is_to_fit_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = made(&options("digits", 1, 1, "sgd"), folder.path(), Some(4_000));
    let error = refused.map(|(_, told)| told.summary.arena_bytes).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::DoesNotFit);
    assert!(
        error.to_string().contains("inference beside training takes 4472 bytes"),
        "{error}"
    );
}
