//! The fuzz targets of `host-tools/fuzz` on the stable toolchain: the committed corpus and mutations of it. A finding becomes a file of the corpus.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::bundle::bundle;
use arenite_host::memory::plan;
use arenite_host::pack::Options;
use arenite_tests::attacks::TARGETS;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::writers::Random;
use arenite_tests::writers::pt2::small;

/// Mutations of a file of each target; together above 100,000.
const ROUNDS: [(&str, usize); 14] = [
    ("native", 4_000),
    ("chainer", 4_000),
    ("megengine", 4_000),
    ("tf_shapes", 4_000),
    ("keras_order", 4_000),
    ("rects", 4_000),
    ("tflite", 8_000),
    ("onnx", 8_000),
    ("pt2", 4_000),
    ("llama2c", 4_000),
    ("gguf", 8_000),
    ("blob", 60_000),
    ("bundle", 6_000),
    ("plan", 4_000),
];

/// Operators whose files are seeds of `blob` and `tflite`: one of each way to address memory.
const OPERATORS: [&str; 14] = [
    "add_broadcast_int8",
    "average_pool_same",
    "concat_last_int8",
    "conv_3x3_same",
    "conv_dilated_same",
    "conv_f32",
    "conv_grouped",
    "conv_i16",
    "depthwise_3x3_same",
    "resize_bilinear_int8",
    "softmax_1",
    "svdf_i8_state",
    "transpose_conv_i16",
    "lstm",
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = corpus().join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

/// One to four changes: bits, bytes, words and numbers, parts cut out, repeated, or taken from another seed.
fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [u32; 9] = [0, 1, 2, 4, 1 << 16, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF];
    const NUMBERS: [&str; 8] = [
        "0",
        "1",
        "-1",
        "3",
        "65536",
        "4294967295",
        "18446744073709551615",
        "1e30",
    ];
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let from = random.below(bytes.len().max(1)).min(bytes.len());
        let to = (from + random.below(32)).min(bytes.len());
        match random.below(12) {
            0..=2 => bytes
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|b| *b ^= 1 << random.below(8)),
            3 => bytes
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|b| *b = random.below(256) as u8),
            4 | 5 => {
                let word = WORDS[random.below(WORDS.len())].to_le_bytes();
                bytes.iter_mut().skip(from & !3).zip(word).for_each(|(b, w)| *b = w);
            }
            6 | 7 => {
                // The number that begins here, in texts.
                let digits = bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number = NUMBERS[random.below(NUMBERS.len())].bytes();
                if digits > 0 {
                    drop(bytes.splice(from..from + digits, number));
                }
            }
            8 => {
                let part = bytes[from..to].to_vec();
                drop(bytes.splice(to..to, part));
            }
            9 => drop(bytes.drain(from..to)),
            10 => {
                let part: Vec<u8> = other.iter().skip(from).take(to - from).copied().collect();
                bytes.iter_mut().skip(from).zip(part).for_each(|(b, p)| *b = p);
            }
            _ if random.below(8) == 0 => bytes.truncate(from),
            _ => {}
        }
    }
    bytes
}

#[test]
fn no_file_near_the_corpus_is_a_finding() {
    let mut findings = Vec::new();
    let mut total = 0;
    for (target, run) in TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{target}");
        let rounds = ROUNDS
            .iter()
            .find(|(name, _)| *name == target)
            .expect("a number of rounds")
            .1;
        let mut random = Random::new(0xC0);
        for seed in &seeds {
            run(seed);
        }
        for round in 0..rounds {
            let bytes = mutated(
                &seeds[round % seeds.len()],
                &seeds[random.below(seeds.len())],
                &mut random,
            );
            if std::panic::catch_unwind(|| run(&bytes)).is_err() {
                let path = std::env::temp_dir().join(format!("arenite-finding-{target}-{round}"));
                fs::write(&path, &bytes).expect("written");
                findings.push(path.display().to_string());
            }
        }
        total += rounds;
    }
    assert!(total >= 100_000, "{total}");
    assert!(
        findings.is_empty(),
        "findings, to be mended and then kept in {}:\n{}",
        corpus().display(),
        findings.join("\n")
    );
}

/// Makes the seeds that are packed or generated: `ARENITE_BLESS=1`. Those of the trace dialects come from `bad_traces`.
#[test]
fn the_corpus_has_files_of_every_target() {
    if std::env::var_os("ARENITE_BLESS").is_some() {
        make();
    }
    for (target, _) in TARGETS {
        let seeds = seeds(target);
        assert!(
            seeds.iter().all(|seed| !seed.is_empty() && seed.len() < 64 << 10),
            "{target}"
        );
    }
    let size: usize = TARGETS
        .iter()
        .flat_map(|(target, _)| seeds(target))
        .map(|seed| seed.len())
        .sum();
    assert!(size < 512 << 10, "{size} bytes: keep it small");
}

fn make() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = corpus().join(target);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(name), bytes).expect("written");
    };
    for operator in OPERATORS {
        let file = models.join("tflite_ops").join(format!("{operator}.tflite"));
        write(
            "tflite",
            operator,
            &fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())),
        );
        for target in [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55] {
            let model = packed(&file, folder.path(), target).expect("packs");
            write("blob", &format!("{operator}-{}", target.name()), model.bytes());
        }
        let small = packed_small(&file, folder.path(), Target::Portable).expect("packs");
        write("blob", &format!("{operator}-size"), small.bytes());
    }
    let network = |name: &str| Options {
        plan_nodes: 1_000,
        ..Options::new(models.join(format!("tflite_ops/{name}.tflite")), "")
    };
    let path = folder.path().join("both.bin");
    bundle(
        &[network("conv_3x3_same"), network("softmax_1")],
        &path,
        &mut |_, _, _| {},
    )
    .expect("a bundle");
    write("bundle", "two", &fs::read(&path).expect("the bundle"));
    write("pt2", "small.json", small().to_string().as_bytes());
    for name in ["cnn", "mlp", "mlp_2_5", "mlp_2_8"] {
        write(
            "pt2",
            name,
            &fs::read(models.join(format!("pt2/{name}.pt2"))).expect("a program"),
        );
    }
    for (name, problem) in [
        ("chain", plan::generate::chain(12, 1)),
        ("wide", plan::generate::wide(14, 2)),
        ("adversarial", plan::generate::adversarial(12, 3)),
    ] {
        write(
            "plan",
            name,
            plan::csv::write(&problem, &vec![0; problem.buffers.len()]).as_bytes(),
        );
    }
}
