//! `pack --max-step`: steps of bounded cost, and the same bits.

use std::path::{Path, PathBuf};

use super::{digits, models, outputs};
use arenite::Target;
use arenite_host::ErrorKind;
use arenite_host::memory::Region;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::report::Summary;
use arenite_tests::golden::options;

const TARGETS: [Target; 4] = [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55];

/// Result of packing it: the summary, the cost of each step, the outputs; or the least limit that the refusal names.
struct Packed {
    summary: Summary,
    costs: Vec<u64>,
    /// Of all steps.
    macs: u64,
    outputs: Vec<Vec<Vec<u8>>>,
}

fn packed(options: &Options) -> Result<Packed, u64> {
    let summary = match pack(options, &mut |_, _, _| {}) {
        Ok(packed) => packed.summary,
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::DoesNotFit, "{text}");
            let least = text.split("--max-step ").nth(1).and_then(|rest| rest.split(' ').next());
            return Err(least.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{text}")));
        }
    };
    let file = ModelFile::open(&options.output).expect("the model");
    let costs = file.load().expect("it loads").costs().map(|cost| cost.total());
    Ok(Packed {
        macs: file
            .view()
            .expect("metadata")
            .metadata()
            .expect("metadata")
            .steps
            .iter()
            .map(|step| step.macs)
            .sum(),
        summary,
        costs: costs.collect(),
        outputs: outputs(&file, 5),
    })
}

fn limited(options: &Options, limit: u64) -> Options {
    Options {
        max_step: Some(limit),
        ..options.clone()
    }
}

/// The project's single operators with windows, and its networks.
fn subjects() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let entries = std::fs::read_dir(folder).expect("models");
    let mut subjects: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    subjects.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".tflite") && ["conv", "depthwise", "pool"].iter().any(|kind| name.contains(kind))
    });
    subjects.sort();
    subjects.extend(["digits", "residual"].map(digits));
    subjects
}

/// However far a network's steps are split, none costs more than allowed, products are as many as before, and no bit changes. A refusal names the least
/// limit that is kept, and less than that is refused.
#[test]
fn no_step_costs_more_than_allowed_and_no_bit_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut split, mut refused, mut parts) = (0, 0, 0);
    for path in subjects() {
        for target in TARGETS {
            let options = options(&path, folder.path(), target);
            let Ok(whole) = packed(&options) else {
                panic!("{}: no limit, no refusal", path.display());
            };
            let highest = whole.costs.iter().copied().max().unwrap_or(0);
            for limit in [highest, highest - 1, highest / 3, highest / 7] {
                let name = format!("{}, {}, at most {limit}", path.display(), target.name());
                let found = packed(&limited(&options, limit)).or_else(|least| {
                    assert!(least > limit && least <= highest, "{name}: {least}");
                    refused += 1;
                    // The least is kept, and is the least.
                    assert_eq!(packed(&limited(&options, least - 1)).err(), Some(least), "{name}");
                    packed(&limited(&options, least))
                });
                let Ok(found) = found else {
                    panic!("{name}: the least limit is refused");
                };
                if limit == highest {
                    assert_eq!(found.costs, whole.costs, "{name}");
                }
                assert!(found.outputs == whole.outputs, "{name}: the outputs differ");
                assert_eq!(found.summary.macs, whole.summary.macs, "{name}");
                assert_eq!(found.summary.extra_macs, 0, "{name}");
                assert_eq!(found.macs, whole.macs, "{name}");
                split += usize::from(found.costs.len() > whole.costs.len());
                parts += found.costs.len() - whole.costs.len();
            }
        }
    }
    eprintln!("{split} networks split, {parts} parts more, {refused} limits refused");
    assert!(
        split > 300 && refused > 100 && parts > 1000,
        "{split}, {refused}, {parts}"
    );
}

/// Rows of a split step wait for each other, so that a network which fits a memory as it is may have to be cut as well; where no way is low enough, the error
/// says how low it went.
#[test]
fn a_memory_and_a_limit_together_cut_further_than_the_memory_alone() {
    const ALONE: u64 = 4472;
    let folder = tempfile::tempdir().expect("a folder");
    let fitted = |bytes: u64, max_step: Option<u64>| {
        let mut options = options(&digits("digits"), folder.path(), Target::Portable);
        options.fit = Some(bytes);
        options.max_step = max_step;
        options.regions = vec![Region {
            name: "sram".into(),
            size: Some(bytes),
        }];
        let packed = pack(&options, &mut |_, _, _| {}).map(|packed| packed.summary);
        packed.map(|summary| {
            (
                summary,
                outputs(&ModelFile::open(&options.output).expect("the model"), 5),
            )
        })
    };
    let (whole, expected) = fitted(ALONE, None).expect("it fits as it is");
    assert_eq!((whole.arena_bytes, whole.steps), (ALONE, 7));
    let unlimited = options(&digits("digits"), folder.path(), Target::Portable);
    let least = packed(&limited(&unlimited, 1)).err().expect("a step stays whole");
    for limit in [3 * least, 2 * least, least + least / 4] {
        let (split, found) = fitted(ALONE, Some(limit)).unwrap_or_else(|error| panic!("{limit}: {error}"));
        assert!(split.arena_bytes <= ALONE && split.steps > 7, "{limit}: {split:?}");
        assert!(found == expected, "{limit}: the outputs differ");
    }
}

/// A network of one step has nothing to cut.
#[test]
fn a_split_step_that_needs_more_than_there_is_says_how_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut refused = 0;
    for path in subjects() {
        let options = options(&path, folder.path(), Target::Portable);
        let Ok(whole) = packed(&options) else {
            panic!("{}: no limit, no refusal", path.display());
        };
        let (alone, limit) = (whole.summary.arena_bytes, whole.costs[0] - 1);
        let Ok(split) = packed(&limited(&options, limit)) else {
            continue;
        };
        if whole.costs.len() > 1 || split.summary.arena_bytes <= alone {
            continue;
        }
        let fitted = Options {
            fit: Some(alone),
            regions: vec![Region {
                name: "sram".into(),
                size: Some(alone),
            }],
            ..limited(&options, limit)
        };
        let error = pack(&fitted, &mut |_, _, _| {})
            .map(|_| ())
            .expect_err("it does not fit");
        let bytes = split.summary.arena_bytes;
        let expected = format!("with steps split for --max-step {limit} the smallest arena found is {bytes} bytes");
        let said = error.to_string();
        assert!(
            error.kind() == ErrorKind::DoesNotFit
                && said.contains(&expected)
                && said.contains(&format!("at most {alone}")),
            "{}: {said}",
            path.display()
        );
        refused += 1;
    }
    assert!(refused > 5, "{refused}");
}

/// The limit holds for every step of a large network, also for one that is cut to fit.
#[test]
fn networks_keep_a_limit_and_a_memory() {
    let Some(models) = models("networks_keep_a_limit_and_a_memory") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, limit, fit) in [
        ("vww_96_int8", 400_000, Some(36 << 10)),
        ("kws_ref_model", 150_000, None),
        ("pretrainedResnet_quant", 2_000_000, None),
    ] {
        // Products of pairs weigh a half.
        for (target, limit) in [(Target::Portable, limit), (Target::CortexM4, limit / 2)] {
            let mut options = options(&models.join(format!("{name}.tflite")), folder.path(), target);
            options.fit = fit;
            if let Some(bytes) = fit {
                options.regions = vec![Region {
                    name: "sram".into(),
                    size: Some(bytes),
                }];
            }
            let Ok(whole) = packed(&options) else {
                panic!("{name}: refused");
            };
            let found = packed(&limited(&options, limit));
            let found = found.unwrap_or_else(|least| panic!("{name}: at least {least}"));
            assert!(whole.costs.iter().any(|&cost| cost > limit), "{name}: nothing to do");
            assert!(found.costs.iter().all(|&cost| cost <= limit), "{name}");
            assert!(found.outputs == whole.outputs, "{name}: the outputs differ");
            let (arena, before) = (found.summary.arena_bytes, whole.summary.arena_bytes);
            eprintln!(
                "{name}, {}, at most {limit}: {} steps, arena {arena}, before {before}",
                target.name(),
                found.costs.len()
            );
            assert!(arena <= fit.unwrap_or(before + before / 4), "{name}: {arena}, {before}");
        }
    }
}
