//! Steps of which the accelerator and the core compute a part each.

use std::path::Path;

use arenite::{Access, BARRIER, Fault, LoadError, Model, Operand, Slot, Step, Target};
use arenite_host::memory::prove::prove;
use arenite_host::model::ModelFile;
use arenite_tests::blob::{Blob as Parts, aligned};

use super::networks::same_beside_a_thread;
use super::{declared, kept, packed, refused_or_right, small, small_with};

const SHARE: &str = "share = true";

/// The first operand of a step, which it writes.
fn output(step: &Step) -> Operand {
    let mut first = None;
    step.operands(&mut |operand| {
        first.get_or_insert(operand);
    });
    first
        .filter(|operand| operand.access == Access::Write)
        .expect("an output")
}

/// The steps that two sides compute in parts: those of one group that write beside each other, the accelerator's first.
fn pairs(file: &Parts) -> Vec<(usize, usize)> {
    let (steps, on) = (file.decoded(), &file.cores[1..]);
    let group = |step: usize| on[..=step].iter().filter(|&on| on & BARRIER != 0).count();
    let adjoins = |&(handed, own): &(usize, usize)| {
        let [a, b] = [handed, own].map(|step| output(&steps[step]));
        let sides = (on[handed] & !BARRIER, on[own] & !BARRIER);
        let behind = a.place.region == b.place.region && a.place.offset + a.bytes == b.place.offset;
        sides == (1, 0) && group(handed) == group(own) && behind
    };
    (0..steps.len())
        .flat_map(|handed| (0..steps.len()).map(move |own| (handed, own)))
        .filter(adjoins)
        .collect()
}

/// A network of the project's own: each side has a part, as large as it is fast, and the bits are those of one core.
#[test]
fn steps_are_computed_in_parts_by_unlike_cores() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    for (name, operators) in [
        (
            "pytorch_int8/mobile_pt2e.trace.json",
            "'conv2d', 'depthwise_conv2d', 'add'",
        ),
        ("digits/digits.trace.json", "'conv2d', 'max_pool2d'"),
    ] {
        for (target, kernels, alignment) in [
            (Target::CortexM3, Target::CortexM33, 4),
            (Target::CortexM33, Target::CortexM3, 16),
            (Target::Portable, Target::Portable, 1),
        ] {
            let (path, folder) = (models.join(name), tempfile::tempdir().expect("a folder"));
            let (_, alone) = packed(&path, folder.path(), target, None).unwrap_or_else(|e| panic!("{e}"));
            let alone = kept(&alone, folder.path());
            let accelerator = |more| declared(kernels, operators, 0, &format!("alignment = {alignment}\n{more}"));
            let (whole, _) =
                packed(&path, folder.path(), target, Some(accelerator(""))).unwrap_or_else(|e| panic!("{e}"));
            let (summary, file) =
                packed(&path, folder.path(), target, Some(accelerator(SHARE))).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(whole.summary.accelerator.expect("stated").shared, None);
            assert!(
                4 * summary.summary.arena_bytes <= 5 * whole.summary.arena_bytes,
                "{name}"
            );
            let told = summary.summary.accelerator.expect("stated").shared.expect("some are");
            println!("{name}, {target:?} and {kernels:?}: {told:?}");
            let found = pairs(&Parts::of(file.bytes())).len();
            assert!(found >= told.layers && told.layers > 0, "{name}: {found} of {told:?}");
            // Products, where there are some, are divided as the speeds are, but for rows that stay whole.
            let part = |of: u64, rest: u64| of as f64 / (of + rest) as f64;
            let [has, should] = [
                part(told.macs_own, told.macs_handed),
                part(told.takes_handed, told.takes_own),
            ];
            let products = told.macs_own + told.macs_handed;
            assert!(
                products == 0 || (has - should).abs() < 0.1,
                "{name}: {has} for {should}"
            );
            let alone_takes = told.takes_handed.min(told.takes_own);
            assert!(
                told.takes_shared < alone_takes && told.takes_shared >= alone_takes / 3,
                "{name}: {told:?}"
            );
            prove(&file.view().expect("a file")).expect("it holds");
            same_beside_a_thread(name, &file, &alone, alignment);
        }
    }
}

/// Flash for a second layout is spent as far as there is some.
#[test]
fn parts_keep_to_the_flash_that_there_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/pytorch_int8/mobile_pt2e.trace.json");
    let folder = tempfile::tempdir().expect("a folder");
    let pack = |more: &str, limit: Option<u64>| {
        let mut options = arenite_tests::golden::options(&path, folder.path(), Target::CortexM33);
        options.accelerator = Some(declared(Target::CortexM3, "'conv2d', 'depthwise_conv2d'", 0, more));
        options.max_flash = limit;
        let summary = arenite_host::pack::pack(&options, &mut |_, _, _| {})?.summary;
        let layers = summary
            .accelerator
            .and_then(|handed| handed.shared)
            .map_or(0, |shared| shared.layers);
        Ok::<_, arenite_host::Error>((summary.model_bytes, layers))
    };
    let (all, most) = pack(SHARE, None).unwrap_or_else(|e| panic!("{e}"));
    let (whole, none) = pack("", None).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        whole < all && none == 0 && most > 1,
        "{whole} and {all} bytes, {most} layers"
    );
    let (bytes, layers) = pack(SHARE, Some(all - 1)).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        bytes < all && layers < most && layers > 0,
        "{bytes} bytes, {layers} layers"
    );
    let (bytes, layers) = pack(SHARE, Some(whole)).unwrap_or_else(|e| panic!("{e}"));
    assert!(bytes <= whole && layers < most, "{bytes} bytes, {layers} layers");
}

/// Parts that meet are refused by load and by the proof, whichever of them is moved and however far; so is a part that begins where the accelerator does not.
#[test]
fn parts_that_overlap_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("changed.bin");
    let good = Parts::of(&small_with(SHARE));
    let pairs = pairs(&good);
    assert!(!pairs.is_empty());
    for &(handed, own) in &pairs {
        let (from, to) = (output(&good.decoded()[handed]), output(&good.decoded()[own]));
        for (step, at, fault) in [
            (own, to.place.offset - 8, Fault::Race),
            (own, from.place.offset, Fault::Race),
            (handed, from.place.offset + 8, Fault::Race),
            (handed, from.place.offset + 4, Fault::Reach),
        ] {
            let mut parts = good.clone();
            let mut places = 0;
            let moved = parts.decoded()[step].clone().map(&mut |slot: Slot| {
                places += 1;
                let offset = if places == 1 { at } else { slot.offset };
                Ok::<_, std::convert::Infallible>(Slot { offset, ..slot })
            });
            let Ok(moved) = moved;
            parts.replace(step, &moved);
            let bytes = parts.file();
            let error = Model::load(aligned(&bytes).bytes()).err();
            let refused = matches!(error, Some(LoadError::Step { fault: found, .. }) if found == fault);
            assert!(refused, "step {step} to {at}: {error:?}");
            std::fs::write(&path, &bytes).expect("written");
            let proof = prove(&ModelFile::open(&path).expect("a file").view().expect("a view"));
            assert!(proof.is_err(), "step {step} to {at}");
        }
    }
}

#[test]
fn whatever_a_file_with_parts_says_is_refused_or_right() {
    let file = small_with(SHARE);
    assert!(file.len() >= small().len());
    refused_or_right(&file);
}
