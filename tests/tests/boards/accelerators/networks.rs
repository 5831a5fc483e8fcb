//! Operators and whole networks beside a thread.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::ErrorKind;
use arenite_host::memory::prove::prove;
use arenite_host::model::ModelFile;
use arenite_tests::skip;

use super::mocks::{Held, Thread, fill, outputs};
use super::{declared, kept, packed, real};

const ALL: &str = "'conv2d', 'depthwise_conv2d', 'linear', 'max_pool2d', 'avg_pool2d', 'add', 'sub', 'mul', 'softmax'";

/// Runs of a file with a thread beside it, on the core alone, and of the same network packed without: three, for state goes from one to the next.
pub(crate) fn same_beside_a_thread(name: &str, file: &ModelFile, alone: &ModelFile, seed: u64) {
    let (model, one) = (file.load().expect("it loads"), alone.load().expect("it loads"));
    let declared = model.accelerator().expect("one");
    assert_eq!(model.cores(), 1, "{name}");
    let (mut held, mut in_order, mut by_itself) = (Held::of(&model), Held::of(&model), Held::of(&one));
    let mut beside = held.session(&model);
    let (mut core, mut other) = (in_order.session(&model), by_itself.session(&one));
    let mut thread = Thread::new(declared, seed);
    // Of floats each target has its own order of sums.
    let exact = (0..)
        .map_while(|port| one.output(port))
        .all(|port| port.dtype != DType::F32);
    for run in 0..3 {
        let sessions = [&mut beside, &mut core, &mut other];
        sessions.into_iter().for_each(|session| fill(session, seed + run));
        beside.run_accelerated(&mut thread).expect("it runs");
        core.run().expect("it runs");
        other.run().expect("it runs");
        assert_eq!(outputs(&beside), outputs(&core), "{name}, run {run}");
        assert!(!exact || outputs(&beside) == outputs(&other), "{name}, run {run}");
    }
}

/// The committed operators, with accelerators of several targets.
#[test]
fn operators_give_the_bits_of_the_core() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(models)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tflite"))
        .collect();
    paths.sort();
    let targets = [
        (Target::CortexM3, Target::CortexM33, 4),
        (Target::Portable, Target::CortexM55, 16),
        (Target::Aarch64, Target::Aarch64Dotprod, 1),
        (Target::CortexM33, Target::Portable, 2),
    ];
    let (mut handed, mut kinds) = (0, BTreeSet::new());
    for (index, path) in paths.iter().enumerate() {
        let (target, kernels, alignment) = targets[index % targets.len()];
        let Ok((_, alone)) = packed(path, folder.path(), target, None) else {
            continue;
        };
        let alone = kept(&alone, folder.path());
        let accelerator = declared(kernels, ALL, 0, &format!("alignment = {alignment}"));
        let (summary, file) = match packed(path, folder.path(), target, Some(accelerator)) {
            Ok(packed) => packed,
            Err(e) if e.kind() == ErrorKind::Unsupported && e.to_string().contains("` cannot be handed to") => continue,
            Err(e) => panic!("{path:?}: {e}"),
        };
        prove(&file.view().expect("a file")).expect("it holds");
        let steps = summary.summary.accelerator.expect("stated").steps;
        let view = file.view().expect("a file");
        let all = view.metadata().expect("metadata").steps;
        kinds.extend(steps.iter().map(|&step| all[step].kind.clone()));
        handed += usize::from(!steps.is_empty());
        same_beside_a_thread(&path.display().to_string(), &file, &alone, index as u64);
    }
    assert!(handed > 100, "{handed} of {} have handed steps: {kinds:?}", paths.len());
    for kind in [
        "conv2d",
        "depthwise_conv2d",
        "linear",
        "max_pool2d",
        "avg_pool2d",
        "add",
        "softmax",
    ] {
        assert!(kinds.contains(kind), "{kind} of {kinds:?}");
    }
}

/// Whole networks; where branches are of different kinds, the core's own steps run meanwhile.
#[test]
fn networks_give_the_bits_of_the_core() {
    let test = "networks_give_the_bits_of_the_core";
    let mut beside = 0;
    for (index, name) in [
        "vww_96_int8",
        "pretrainedResnet_quant",
        "kws_ref_model",
        "ad01_int8",
        "esphome_v2_vad",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(path) = real(name) else {
            return skip(test, "no shared data");
        };
        let folder = tempfile::tempdir().expect("a folder");
        for (target, kernels) in [
            (Target::CortexM3, Target::CortexM33),
            (Target::Aarch64, Target::Aarch64I8mm),
        ] {
            let (single, alone) = packed(&path, folder.path(), target, None).unwrap_or_else(|e| panic!("{e}"));
            let alone = kept(&alone, folder.path());
            for least_work in [0, 600_000] {
                let accelerator = declared(kernels, "'conv2d', 'linear'", least_work, "alignment = 4");
                let (summary, file) =
                    packed(&path, folder.path(), target, Some(accelerator)).unwrap_or_else(|e| panic!("{e}"));
                let handed = summary.summary.accelerator.clone().expect("stated");
                beside += usize::from(handed.beside > 0.0);
                println!("{name}, {target:?}, {least_work}: {handed:?}");
                // Outputs that lay over their inputs do no more.
                assert!(summary.summary.arena_bytes <= 3 * single.summary.arena_bytes, "{name}");
                prove(&file.view().expect("a file")).expect("it holds");
                same_beside_a_thread(name, &file, &alone, index as u64);
            }
        }
    }
    assert!(beside > 0, "the residual network's branches");
}
