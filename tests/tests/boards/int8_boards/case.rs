//! A model with its inputs and expected outputs, and what becomes of it on a board.

use super::*;

/// Models whose weights and activations are f32.
pub(crate) const FLOAT: [&str; 5] = [
    "ad01_fp32",
    "pretrainedResnet",
    "pretrainedResnet_large_float",
    "tflm_hello_world_float",
    "vww_96_float",
];

/// Refused by the importer.
pub(crate) const HYBRID: &str = "kws_ref_model_float32";

/// Runs of one model that belong together: independent ones, or one sequence whose state carries over.
pub(crate) struct Group {
    /// By run and input.
    pub(crate) inputs: Vec<Vec<Vec<u8>>>,
    /// By run and output.
    pub(crate) expected: Vec<Vec<Vec<u8>>>,
    pub(crate) sequence: bool,
}

impl Group {
    pub(crate) fn read(archive: &mut Archive, inputs: &str, outputs: &str, sequence: bool) -> Option<Self> {
        let mut runs = |prefix: &str| -> Option<Vec<Vec<Vec<u8>>>> {
            let mut keys = archive.names();
            keys.retain(|key| key.starts_with(prefix));
            keys.sort();
            let columns: Vec<_> = keys.iter().map(|key| archive.runs(key).0).collect();
            let count = columns.first()?.len();
            Some(
                (0..count)
                    .map(|run| columns.iter().map(|column| column[run].clone()).collect())
                    .collect(),
            )
        };
        Some(Self {
            inputs: runs(inputs)?,
            expected: runs(outputs)?,
            sequence,
        })
    }

    /// All groups of a real model's archive: independent runs as one group, each sequence as another.
    pub(crate) fn of_model(models: &Path, name: &str) -> Vec<Self> {
        let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
        let mut of_set = |set: &str, sequence| {
            Self::read(
                &mut archive,
                &format!("in_{set}_"),
                &format!("out_{set}_tflm_"),
                sequence,
            )
        };
        let independent = [of_set("rand", false), of_set("real", false)].into_iter().flatten();
        let independent = independent.reduce(|mut all, more| {
            all.inputs.extend(more.inputs);
            all.expected.extend(more.expected);
            all
        });
        [independent, of_set("seq", true), of_set("seqreal", true)]
            .into_iter()
            .flatten()
            .collect()
    }

    pub(crate) fn truncate(&mut self, most: usize) {
        self.inputs.truncate(most);
        self.expected.truncate(most);
    }
}

/// A model, and what it has to give.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) groups: Vec<Group>,
}

impl Case {
    /// Every model of the shared data for which `wanted` holds, with at most `most` runs of each group.
    pub(crate) fn real(shared: &Path, wanted: impl Fn(&str) -> bool, most: usize) -> Vec<Self> {
        let models = shared.join("data/models");
        let mut cases = Vec::new();
        for entry in std::fs::read_dir(&models).expect("models") {
            let file = entry.expect("an entry").path();
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            if file.extension().is_none_or(|e| e != "tflite") || !wanted(&name) {
                continue;
            }
            let mut groups = Group::of_model(&models, &name);
            groups.iter_mut().for_each(|group| group.truncate(most));
            assert!(!groups.is_empty(), "{name} has no reference");
            cases.push(Self { name, file, groups });
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        cases
    }

    /// Committed single operators of a folder.
    pub(crate) fn operators(folder: &str, names: &[&str]) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut archive = Archive::open(&folder.join("cases.npz"));
        let case = |name: &&str| {
            let group = Group::read(&mut archive, &format!("{name}/in_"), &format!("{name}/out_"), true);
            Self {
                name: name.to_string(),
                file: folder.join(format!("{name}.tflite")),
                groups: vec![group.unwrap_or_else(|| panic!("{name} has no arrays"))],
            }
        };
        names.iter().map(case).collect()
    }
}

/// TensorFlow Lite Micro's feature front end for speech: `most` frames of a stream, and as many single ones at full scale.
pub(crate) fn front_end(shared: &Path, most: usize) -> Case {
    let file = shared.join("data/frontend/tflm_audio_preprocessor_int8.tflite");
    let mut archive = Archive::open(&file.with_extension("npz"));
    let groups = [("seqreal", true), ("rand", false)].map(|(set, sequence)| {
        let (inputs, outputs) = (format!("in_{set}_"), format!("out_{set}_tflm_"));
        let mut group = Group::read(&mut archive, &inputs, &outputs, sequence).expect("arrays");
        group.truncate(most);
        group
    });
    Case {
        name: "tflm_audio_preprocessor_int8".to_owned(),
        file,
        groups: groups.into(),
    }
}

pub(crate) fn is_int8(name: &str) -> bool {
    name != HYBRID && !FLOAT.contains(&name)
}

/// The target that is the board's own, the same with `--size`, and `portable`.
pub(crate) fn packings(board: &Board) -> [(Target, bool); 3] {
    let own = board.targets.last().expect("every board runs something");
    let own = Target::ALL.iter().find(|target| target.name() == *own);
    let own = *own.expect("a known target");
    [(own, false), (own, true), (Target::Portable, false)]
}

pub(crate) fn sha256(outputs: &[u8]) -> String {
    Sha256::digest(outputs)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Outcome of a model on a board.
pub(crate) enum Outcome {
    /// So many runs are as expected; all outputs, in order.
    Same(usize, Vec<u8>),
    /// The board's refusal, with both figures.
    DoesNotFit(BoardError),
    /// The board's refusal of a kernel that its program leaves out for want of flash.
    LeftOut(BoardError),
    Different(String),
}

pub(crate) fn on_board(board: &'static Board, file: &ModelFile, groups: &[Group]) -> Outcome {
    let ports = match file.view() {
        Ok(view) => view.outputs.iter().map(|port| port.dtype).collect::<Vec<DType>>(),
        Err(error) => return Outcome::Different(error.to_string()),
    };
    let (mut runs, mut all) = (0, Vec::new());
    for group in groups {
        let options = RunOptions {
            runs: group.inputs.len() as u32,
            reset_each: !group.sequence,
            timeout: Duration::from_secs(4 * 3600),
            ..RunOptions::default()
        };
        let inputs: Vec<u8> = group.inputs.iter().flatten().flatten().copied().collect();
        let report = match run(board, Blob::File(file.path()), &inputs, &options) {
            Ok(report) => report,
            Err(error @ (BoardError::BlobTooLarge { .. } | BoardError::OutOfMemory { .. })) => {
                return Outcome::DoesNotFit(error);
            }
            Err(error) if names_left_out(&error, board, file) => return Outcome::LeftOut(error),
            Err(error) => return Outcome::Different(error.to_string()),
        };
        let mut rest = &report.outputs[..];
        for (run, expected) in group.expected.iter().enumerate() {
            for ((port, expected), dtype) in expected.iter().enumerate().zip(&ports) {
                let (found, others) = rest.split_at(expected.len().min(rest.len()));
                if let Some(text) = difference(*dtype, found, expected) {
                    return Outcome::Different(format!("run {run}, output {port}: {text}"));
                }
                rest = others;
            }
        }
        if !rest.is_empty() {
            return Outcome::Different(format!("{} output bytes too many", rest.len()));
        }
        runs += group.inputs.len();
        all.extend(report.outputs);
    }
    Outcome::Same(runs, all)
}

/// The digest of a model's outputs on the host.
pub(crate) fn on_host(file: &ModelFile, groups: &[Group]) -> String {
    let model = file.load().unwrap_or_else(|e| panic!("{e}"));
    let outputs = groups.iter().flat_map(|group| {
        model::run(&model, &group.inputs, !group.sequence, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"))
    });
    sha256(&outputs.flatten().flatten().collect::<Vec<u8>>())
}

/// Compares every case on a board, in all its packings; with `host`, the digests with the host's too.
pub(crate) fn compare(test: &str, board: &'static Board, cases: &[Case], host: bool) {
    if let Err(reason) = ready(board) {
        return skip(test, &format!("{}: {reason}", board.name));
    }
    let mut wrong = Vec::new();
    let mut same = 0;
    for case in cases {
        for (target, small) in packings(board) {
            let folder = tempfile::tempdir().expect("a folder");
            let pack = if small { packed_small } else { packed };
            let file = pack(&case.file, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
            let size = if small { " --size" } else { "" };
            let what = format!("{} for {}{size} on {}", case.name, target.name(), board.name);
            let steps = file.view().and_then(|view| view.steps());
            let steps = steps.unwrap_or_else(|e| panic!("{what}: {e}"));
            if let Some(reason) = doubted(board, steps.iter().map(Step::kernel)) {
                skip(&what, &reason);
                continue;
            }
            let start = Instant::now();
            match on_board(board, &file, &case.groups) {
                Outcome::Same(runs, outputs) => {
                    let digest = sha256(&outputs);
                    println!(
                        "{what}: {runs} runs, sha256 {digest}, {:.1} s",
                        start.elapsed().as_secs_f64()
                    );
                    if host && on_host(&file, &case.groups) != digest {
                        wrong.push(format!("{what}: the host's digest is another"));
                    }
                    same += 1;
                }
                Outcome::Different(text) => wrong.push(format!("{what}: {text}")),
                Outcome::LeftOut(error) => println!("{what}: {error}"),
                Outcome::DoesNotFit(error) => {
                    println!("{what}: {error}");
                    // The only board without memory beside flash and RAM.
                    if board.extra.is_some() || !states_both_figures(&error, &file) {
                        wrong.push(format!("{what}: {error}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} comparisons:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same > 0, "no model fits {}", board.name);
}

/// Whether a refusal names one of the model's own figures as needed, and less as available.
pub(crate) fn states_both_figures(error: &BoardError, file: &ModelFile) -> bool {
    let header = file.view().expect("an intact file").header();
    let (needed, available, figures) = match *error {
        BoardError::BlobTooLarge { needed, available, .. } => (needed, available, vec![header.total]),
        BoardError::OutOfMemory { needed, available, .. } => {
            let memories = header.arena.iter().copied().chain([header.state_init.len]);
            (needed, available, memories.collect())
        }
        _ => return false,
    };
    let text = error.to_string();
    needed > available
        && figures.iter().any(|&figure| u64::from(figure) == needed)
        && [needed, available]
            .iter()
            .all(|figure| text.contains(&figure.to_string()))
}

/// Whether a board refuses a file at load by the name of one of its kernels, and leaves that kernel out on purpose.
pub(crate) fn names_left_out(error: &BoardError, board: &Board, file: &ModelFile) -> bool {
    let BoardError::Refused { during, text, .. } = error else {
        return false;
    };
    let steps = file.view().and_then(|view| view.steps()).unwrap_or_default();
    let mut kernels = steps.iter().map(Step::kernel);
    let left_out = left_out();
    let named = kernels.find(|&kernel| {
        text.split(|c: char| !c.is_alphanumeric())
            .any(|word| word == kernel.name())
    });
    *during == During::Load
        && board.firmware.contains(&"small-flash")
        && named.is_some_and(|kernel| left_out.contains(&kernel))
}

/// The kernels that programs for small flashes leave out: the ranges in the firmware's own source.
pub(crate) fn left_out() -> Vec<KernelId> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/src/linked.rs");
    let source = std::fs::read_to_string(source).expect("the firmware's list");
    let (_, set) = source.split_once("const SET: KernelSet =").expect("the set");
    let (set, _) = set.split_once(';').expect("its end");
    let find = |name: &str| {
        let found = KernelId::ALL.iter().find(|kernel| kernel.name() == name);
        *found.unwrap_or_else(|| panic!("{name} is no kernel"))
    };
    let ranges = set.split("without(").skip(1).map(|range| {
        let (ends, _) = range.split_once(')').expect("a range");
        let (first, last) = ends.split_once(", ").expect("two ends");
        let [first, last] = [first, last].map(|end| find(end.trim_end_matches(" as u8")) as u8);
        first..=last
    });
    let ranges: Vec<_> = ranges.collect();
    let all = KernelId::ALL.iter().copied();
    all.filter(|&kernel| ranges.iter().any(|range| range.contains(&(kernel as u8))))
        .collect()
}
