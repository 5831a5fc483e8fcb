//! Judges are judged: deliberately wrong files, of which `Model::load` or `memory::prove` must refuse each that computes anything else.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use arenite::{Access, Model, Operand, Slot, Step, Target};
use arenite_host::ErrorKind;
use arenite_host::import::{SampleRun, Samples};
use arenite_host::memory::prove::prove;
use arenite_host::metadata::{Metadata, NO_TENSOR};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack, verify};
use arenite_tests::blob::{Blob, Tensor, aligned, at};
use arenite_tests::golden::{options, packed_small};
use arenite_tests::writers::Random;

/// What became of a wrong file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// A device refuses it.
    Load,
    /// The proof refuses it.
    Proof,
    /// Nobody does, and it gives the same bits.
    Same,
    /// Nobody does, and it gives others.
    Wrong,
}

/// How many files each judge caught.
#[derive(Debug, Default)]
struct Tally {
    load: usize,
    proof: usize,
    same: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, verdict: Verdict, what: impl FnOnce() -> String) {
        match verdict {
            Verdict::Load => self.load += 1,
            Verdict::Proof => self.proof += 1,
            Verdict::Same => self.same += 1,
            Verdict::Wrong => self.wrong.push(what()),
        }
    }

    /// Each judge had something to do, and missed nothing.
    fn holds(&self, least: [usize; 3]) {
        println!(
            "load refused {}, the proof {}, {} gave the same bits",
            self.load, self.proof, self.same
        );
        let first: Vec<&String> = self.wrong.iter().take(30).collect();
        assert!(
            self.wrong.is_empty(),
            "{} slipped through: {first:#?}",
            self.wrong.len()
        );
        let counts = [self.load, self.proof, self.same];
        assert!(
            counts >= least && counts.iter().zip(&least).all(|(a, b)| a >= b),
            "{counts:?}, expected {least:?}"
        );
    }
}

/// A packed network with its inputs and what it makes of them.
struct Case {
    name: String,
    folder: tempfile::TempDir,
    blob: Blob,
    metadata: Metadata,
    inputs: Vec<Vec<Vec<u8>>>,
    outputs: Vec<Vec<Vec<u8>>>,
}

fn values(port: &Tensor, random: &mut Random) -> Vec<u8> {
    match port.dtype {
        arenite::DType::F32 => (0..port.bytes() / 4)
            .flat_map(|_| (random.below(4001) as f32 / 1000.0 - 2.0).to_le_bytes())
            .collect(),
        arenite::DType::Bool => (0..port.bytes()).map(|_| random.below(2) as u8).collect(),
        _ => (0..port.bytes()).map(|_| random.below(256) as u8).collect(),
    }
}

fn outputs(file: &[u8], inputs: &[Vec<Vec<u8>>]) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut memory = aligned(file);
    let model = Model::load(memory.bytes()).ok()?;
    Some(run(&model, inputs, false, &mut |_, _, _| {}).expect("a loaded model runs"))
}

impl Case {
    fn new(name: String, options: &Options) -> Self {
        pack(options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        let file = ModelFile::open(&options.output).expect("just written");
        let blob = Blob::of(file.bytes());
        let metadata = Metadata::decode(&blob.meta).expect("metadata");
        let mut random = Random::new(7);
        let inputs: Vec<Vec<Vec<u8>>> = (0..2)
            .map(|_| blob.inputs.iter().map(|port| values(port, &mut random)).collect())
            .collect();
        let outputs = outputs(file.bytes(), &inputs).expect("it loads");
        Self {
            name,
            folder: tempfile::tempdir().expect("a folder"),
            blob,
            metadata,
            inputs,
            outputs,
        }
    }

    /// Writes a file and asks both judges.
    fn judge(&self, blob: &Blob) -> Verdict {
        let file = blob.file();
        let Some(found) = outputs(&file, &self.inputs) else {
            return Verdict::Load;
        };
        let path = self.folder.path().join("wrong.bin");
        std::fs::write(&path, &file).expect("writes");
        let file = ModelFile::open(&path).expect("just written");
        match prove(&file.view().expect("it decodes")) {
            Err(_) => Verdict::Proof,
            Ok(_) if found == self.outputs => Verdict::Same,
            Ok(_) => Verdict::Wrong,
        }
    }
}

/// Several steps each, with branches, a concatenation, a padding and kernels of several backends.
fn cases() -> Vec<Case> {
    let folder = tempfile::tempdir().expect("a folder");
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    let mut cases = Vec::new();
    for target in [Target::Portable, Target::CortexM4, Target::CortexM55] {
        for name in ["residual", "digits"] {
            let options = options(&digits.join(format!("{name}.trace.json")), folder.path(), target);
            cases.push(Case::new(format!("{name} for {}", target.name()), &options));
        }
    }
    let branches = branches(folder.path());
    for in_place in [true, false] {
        let options = Options {
            in_place,
            weights: Some("seeded:3".into()),
            ..options(&branches, folder.path(), Target::Portable)
        };
        cases.push(Case::new(format!("branches, in place: {in_place}"), &options));
    }
    cases
}

/// Two branches that join in a concatenation, one of them through a padding, and an addition over the whole.
fn branches(folder: &Path) -> PathBuf {
    let shape = |shape: &[usize], role: &str| serde_json::json!({"shape": shape, "dtype": "f32", "role": role});
    let op = |name: &str, op: &str, inputs: &[&str], output: &str, attrs: serde_json::Value| {
        serde_json::json!({
            "name": name, "op": op, "inputs": inputs, "outputs": [output], "attrs": attrs
        })
    };
    let trace = serde_json::json!({
        "arenite_trace": 1, "name": "branches", "inputs": ["x"], "outputs": ["y", "s"],
        "tensors": {
            "x": shape(&[1, 2, 5, 7], "input"),
            "w": shape(&[3, 2, 3, 1], "parameter"),
            "v": shape(&[3, 3, 1, 3], "parameter"),
            "a": shape(&[1, 3, 3, 7], "activation"), "b": shape(&[1, 3, 3, 7], "activation"),
            "c": shape(&[1, 3, 3, 7], "activation"), "d": shape(&[1, 3, 3, 5], "activation"),
            "e": shape(&[1, 3, 3, 7], "activation"), "j": shape(&[1, 6, 3, 7], "activation"),
            "k": shape(&[1, 6, 3, 7], "activation"), "y": shape(&[1, 6, 3, 7], "activation"),
            "s": shape(&[1, 3, 3, 7], "activation"),
        },
        "ops": [
            op("conv", "conv2d", &["x", "w"], "a", serde_json::json!({})),
            op("sig", "sigmoid", &["a"], "b", serde_json::json!({})),
            op("tanh", "tanh", &["a"], "c", serde_json::json!({})),
            op("across", "conv2d", &["b", "v"], "d", serde_json::json!({})),
            op("pad", "pad", &["d"], "e", serde_json::json!({"padding": [[0, 0], [0, 0], [0, 0], [1, 1]], "value": 0.5})),
            op("join", "concat", &["c", "e"], "j", serde_json::json!({"axis": 1})),
            op("exp", "exp", &["j"], "k", serde_json::json!({})),
            op("sum", "add", &["j", "k"], "y", serde_json::json!({})),
            op("product", "mul", &["b", "c"], "s", serde_json::json!({})),
        ],
    });
    let path = folder.join("branches.trace.json");
    std::fs::write(&path, trace.to_string()).expect("writes");
    path
}

/// Every slot of every step and port moved alone, to places near and far.
#[test]
fn a_slot_that_is_moved_alone_is_noticed_or_does_no_harm() {
    let mut tally = Tally::default();
    for case in cases() {
        let arena = case.blob.arena[0];
        for (index, step) in case.blob.decoded().iter().enumerate() {
            for slot in 0..slots(step).len() {
                let from = slots(step)[slot];
                if from.region == Slot::WEIGHTS {
                    continue;
                }
                for to in places(from.offset, arena) {
                    if slot == 0 && is_copy(step) && from.offset.abs_diff(to) <= 4 {
                        // Where a copy lies inside its result is the operator's own and no matter of the plan.
                        continue;
                    }
                    let mut moved = step.clone();
                    set_slot(&mut moved, slot, Slot { offset: to, ..from });
                    let mut blob = case.blob.clone();
                    blob.replace(index, &moved);
                    tally.count(case.judge(&blob), || {
                        format!("{}: slot {slot} of step {index} to {to}", case.name)
                    });
                }
            }
        }
        for port in 0..case.blob.inputs.len() + case.blob.outputs.len() {
            let mut blob = case.blob.clone();
            let inputs = blob.inputs.len();
            for to in places(all_ports(&mut blob)[port].slot.offset, arena) {
                let mut blob = case.blob.clone();
                all_ports(&mut blob)[port].slot.offset = to;
                tally.count(case.judge(&blob), || {
                    format!("{}: port {port} of {inputs} to {to}", case.name)
                });
            }
        }
    }
    tally.holds([300, 200, 1]);
}

fn all_ports(blob: &mut Blob) -> Vec<&mut Tensor> {
    blob.inputs.iter_mut().chain(&mut blob.outputs).collect()
}

/// Offsets to try instead of one.
fn places(from: u32, arena: u32) -> Vec<u32> {
    let mut places = vec![0, from + 4, from + 16, from + 64, arena / 32 * 16, from / 32 * 16];
    places.extend(from.checked_sub(4));
    places.extend(from.checked_sub(64));
    places.sort_unstable();
    places.dedup();
    places.retain(|&to| to != from);
    places
}

/// Every tensor moved as a whole, wherever it is touched, to where another one lies: the plan that ends a life too early.
#[test]
fn a_tensor_on_top_of_another_is_noticed_or_does_no_harm() {
    let mut tally = Tally::default();
    for case in cases() {
        let tensors = case.metadata.tensors.len() as u32;
        let steps = case.blob.decoded();
        let lowest = |tensor: u32| {
            let touched = touches(&case, &steps, tensor);
            touched.iter().map(|slot| slot.offset).min()
        };
        for tensor in 0..tensors {
            let Some(from) = lowest(tensor) else { continue };
            let others = (0..tensors).filter(|&other| other != tensor).filter_map(lowest);
            let mut targets: Vec<u32> = others.chain(places(from, case.blob.arena[0])).collect();
            targets.sort_unstable();
            targets.dedup();
            for to in targets {
                let blob = moved(&case, &steps, tensor, i64::from(to) - i64::from(from));
                tally.count(case.judge(&blob), || {
                    format!(
                        "{}: `{}` from {from} to {to}",
                        case.name, case.metadata.tensors[tensor as usize]
                    )
                });
            }
        }
    }
    tally.holds([300, 80, 20]);
}

/// Where a tensor is touched.
fn touches(case: &Case, steps: &[Step], tensor: u32) -> Vec<Slot> {
    let ports = case.blob.inputs.iter().chain(&case.blob.outputs);
    let ports = ports.zip(&case.metadata.ports).map(|(port, &of)| (port.slot, of));
    let operands = steps.iter().zip(&case.metadata.steps).flat_map(|(step, meta)| {
        let of = meta.operands.clone();
        slots(step).into_iter().zip(of)
    });
    let arena = |slot: &Slot| slot.region < Slot::STATE;
    let all = ports
        .chain(operands)
        .filter(|&(_, of)| of == tensor)
        .map(|(slot, _)| slot);
    all.filter(arena).collect()
}

fn moved(case: &Case, steps: &[Step], tensor: u32, by: i64) -> Blob {
    let shift = |slot: Slot| Slot {
        offset: (i64::from(slot.offset) + by).clamp(0, i64::from(u32::MAX)) as u32,
        ..slot
    };
    let mut blob = case.blob.clone();
    let owners = case.metadata.ports.clone();
    for (port, of) in all_ports(&mut blob).into_iter().zip(owners) {
        if of == tensor {
            port.slot = shift(port.slot);
        }
    }
    for (index, (step, meta)) in steps.iter().zip(&case.metadata.steps).enumerate() {
        let mut step = step.clone();
        for (slot, &of) in meta.operands.iter().enumerate() {
            let from = slots(&step).get(slot).copied();
            if let Some(from) = from.filter(|from| of == tensor && from.region < Slot::STATE) {
                set_slot(&mut step, slot, shift(from));
            }
        }
        blob.replace(index, &step);
    }
    blob
}

/// Any two neighbouring steps in the other order.
#[test]
fn a_swapped_order_is_noticed_or_does_no_harm() {
    let mut tally = Tally::default();
    for case in cases() {
        for first in 0..case.blob.steps.len() - 1 {
            for second in first + 1..case.blob.steps.len() {
                let (mut blob, mut metadata) = (case.blob.clone(), case.metadata.clone());
                blob.steps.swap(first, second);
                metadata.steps.swap(first, second);
                blob.meta = metadata.encode().expect("metadata");
                tally.count(case.judge(&blob), || {
                    format!("{}: steps {first} and {second}", case.name)
                });
            }
        }
    }
    tally.holds([0, 100, 1]);
}

/// A step left out: nobody writes what the next one reads.
#[test]
fn a_step_left_out_is_noticed() {
    let mut tally = Tally::default();
    for case in cases() {
        for (index, step) in case.blob.decoded().iter().enumerate() {
            let mut blob = case.blob.clone();
            blob.steps.remove(index);
            assert_eq!(case.judge(&blob), Verdict::Proof, "{}: without step {index}", case.name);
            let mut metadata = case.metadata.clone();
            metadata.steps.remove(index);
            blob.meta = metadata.encode().expect("metadata");
            // The rest of its result was written by another step.
            if !is_copy(step) {
                assert_eq!(case.judge(&blob), Verdict::Proof, "{}: without step {index}", case.name);
                tally.proof += 1;
            }
        }
    }
    tally.holds([0, 30, 0]);
}

fn is_copy(step: &Step) -> bool {
    matches!(step, Step::CopyBytes(_))
}

/// The proof holds a step against the device's rules without loading the file, whose kernels may be another target's.
#[test]
fn the_proof_refuses_what_a_load_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = [0, 0];
    for (name, blob) in operators(folder.path()) {
        let steps = blob.decoded();
        let [step] = &steps[..] else { continue };
        for placement in placements(step, false).into_iter().step_by(23) {
            let Some((placed, _)) = lone(&blob, step, &placement) else {
                continue;
            };
            let file = placed.file();
            let loads = Model::load(aligned(&file).bytes())
                .map(|_| ())
                .map_err(|e| e.to_string());
            let path = folder.path().join("one.bin");
            std::fs::write(&path, &file).expect("writes");
            let file = ModelFile::open(&path).expect("just written");
            let proof = prove(&file.view().expect("it decodes")).map(|_| ());
            // The records among the weights are a load's business alone, and these are intact.
            if let Err(refused) = &loads {
                assert!(proof.is_err(), "{name} at {placement:?}: load says {refused}");
            }
            if let (Ok(()), Err(error)) = (&loads, &proof) {
                // What the proof refuses beyond: an input whose bytes another operand's writing destroyed before its reader came.
                panic!("{name} at {placement:?}: it loads, and the proof says {error}");
            }
            compared[usize::from(loads.is_ok())] += 1;
        }
    }
    println!("{} refused, {} accepted by both", compared[0], compared[1]);
    assert!(compared[0] > 500 && compared[1] > 500, "{compared:?}");
}

/// Every kernel with its operands at every distance that matters: what load accepts gives the bits that separate operands give.
#[test]
fn whatever_overlap_a_load_accepts_is_harmless() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut tally = Tally::default();
    let mut overlapped = 0;
    for (name, blob) in operators(folder.path()) {
        for (index, step) in blob.decoded().iter().enumerate() {
            let apart = placements(step, true).swap_remove(0);
            let Some((alone, inputs)) = lone(&blob, step, &apart) else {
                continue;
            };
            let expected = outputs(&alone.file(), &inputs)
                .unwrap_or_else(|| panic!("step {index} of {name} does not load with separate operands"));
            for placement in placements(step, false) {
                let Some((placed, _)) = lone(&blob, step, &placement) else {
                    continue;
                };
                let verdict = match outputs(&placed.file(), &inputs) {
                    None => Verdict::Load,
                    Some(found) if found == expected => Verdict::Same,
                    Some(_) => Verdict::Wrong,
                };
                overlapped += usize::from(verdict == Verdict::Same && meet(step, &placement));
                tally.count(verdict, || format!("step {index} of {name} at {placement:?}"));
            }
        }
    }
    println!("{overlapped} overlaps were accepted");
    assert!(overlapped > 500, "{overlapped}");
    tally.holds([5000, 0, 1000]);
}

fn slots(step: &Step) -> Vec<Slot> {
    let mut slots = Vec::new();
    step.each_place(&mut |slot| slots.push(slot));
    slots
}

fn set_slot(step: &mut Step, index: usize, to: Slot) {
    let mut places = 0..;
    let mut each = |slot| Ok::<_, Infallible>(if places.next() == Some(index) { to } else { slot });
    let Ok(moved) = step.clone().map(&mut each);
    *step = moved;
}

fn operands(step: &Step) -> Vec<Operand> {
    let mut operands = Vec::new();
    step.operands(&mut |operand| operands.push(operand));
    operands
}

/// Every committed operator, packed for one target of each backend.
fn operators(folder: &Path) -> Vec<(String, Blob)> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let mut files: Vec<_> = std::fs::read_dir(models)
        .expect("models")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tflite"))
        .collect();
    files.sort();
    let mut blobs = Vec::new();
    for file in files {
        for target in [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55] {
            let options = options(&file, folder, target);
            // Some are there to be refused.
            if pack(&options, &mut |_, _, _| {}).is_ok() {
                let model = ModelFile::open(&options.output).expect("just written");
                blobs.push((
                    format!("{} for {}", file.display(), target.name()),
                    Blob::of(model.bytes()),
                ));
            }
        }
        if let Ok(model) = packed_small(&file, folder, Target::Portable) {
            blobs.push((format!("{} with --size", file.display()), Blob::of(model.bytes())));
        }
    }
    assert!(blobs.len() > 1000, "{}", blobs.len());
    blobs
}

/// Offsets for the slots that do not lie in the weights. First separate ones; then one is moved relative to another.
fn placements(step: &Step, apart_only: bool) -> Vec<Vec<u32>> {
    let operands = operands(step);
    let mut next = 1 << 12;
    let mut apart = Vec::new();
    for operand in operands.iter().take(slots(step).len()) {
        apart.push(next);
        next += operand.bytes.next_multiple_of(64) + (1 << 12);
    }
    let mut all = vec![apart.clone()];
    if apart_only {
        return all;
    }
    for moved in 0..apart.len() {
        for (fixed, &base) in apart.iter().enumerate().filter(|&(fixed, _)| fixed != moved) {
            let (align, own, other) = (
                operands[moved].align.max(1),
                operands[moved].bytes,
                operands[fixed].bytes,
            );
            let mut near: Vec<i64> = [0, 1, -1, 2, -2, 7, -7, 16, -16]
                .into_iter()
                .map(|elements| elements * i64::from(align))
                .collect();
            for distance in [step.distance(fixed), step.distance(moved)].into_iter().flatten() {
                near.extend([distance, -distance, distance - 1, 1 - distance, distance + 1]);
            }
            near.extend([
                i64::from(other) - 1,
                i64::from(other),
                1 - i64::from(own),
                -i64::from(own),
            ]);
            near.extend([i64::from(own / 2), -i64::from(own / 2), i64::from(other / 2)]);
            for by in near {
                let mut placement = apart.clone();
                let to = i64::from(base) + by;
                if (0..1 << 20).contains(&to) {
                    placement[moved] = to as u32;
                    all.push(placement);
                }
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether any two operands share bytes.
fn meet(step: &Step, placement: &[u32]) -> bool {
    let operands = operands(step);
    let spans: Vec<(u32, u32)> = placement
        .iter()
        .zip(&operands)
        .map(|(&from, o)| (from, from + o.bytes))
        .collect();
    (0..spans.len()).any(|a| (0..a).any(|b| spans[a].0 < spans[b].1 && spans[b].0 < spans[a].1))
}

/// A model of one step of another one, with inputs for two runs: what it reads is given, what it writes is the output. `None` for a step that
/// reads constants through a slot, and where two inputs would share bytes.
fn lone(blob: &Blob, step: &Step, placement: &[u32]) -> Option<(Blob, Vec<Vec<Vec<u8>>>)> {
    let mut step = step.clone();
    if slots(&step).iter().any(|slot| slot.region == Slot::WEIGHTS) {
        return None;
    }
    for (index, &offset) in placement.iter().enumerate() {
        set_slot(&mut step, index, at(offset));
    }
    let operands = operands(&step);
    let (mut inputs, mut outputs, mut metadata) = (Vec::new(), Vec::new(), Vec::new());
    let float = blob.inputs.iter().any(|input| input.dtype == arenite::DType::F32);
    for (index, operand) in operands.iter().enumerate().take(placement.len()) {
        let port = |name: &str| {
            let dtype = match operand.align {
                4 if float => arenite::DType::F32,
                _ => arenite::DType::U8,
            };
            Tensor::new(
                &format!("{name}{index}"),
                operand.place,
                dtype,
                &[operand.bytes / dtype.bytes() as u32],
            )
        };
        match operand.access {
            Access::Read => inputs.push((port("x"), index)),
            // What a run before has left would do as well.
            Access::Update => {
                inputs.push((port("x"), index));
                outputs.push((port("y"), index));
            }
            Access::Write => outputs.push((port("y"), index)),
            Access::Scratch => {}
        }
    }
    metadata.extend(inputs.iter().chain(&outputs).map(|(_, index)| *index as u32));
    // Inputs are set one after the other: they must not share bytes.
    let spans: Vec<_> = inputs
        .iter()
        .map(|(port, _)| port.slot.offset..port.slot.offset + port.bytes())
        .collect();
    if (0..spans.len()).any(|a| (0..a).any(|b| spans[a].start < spans[b].end && spans[b].start < spans[a].end)) {
        return None;
    }
    let end = operands
        .iter()
        .take(placement.len())
        .map(|o| o.place.offset + o.bytes)
        .max()?;
    let mut random = Random::new(11);
    let given: Vec<Vec<Vec<u8>>> = (0..2)
        .map(|_| inputs.iter().map(|(port, _)| values(port, &mut random)).collect())
        .collect();
    let owner = |(index, operand): (usize, &Operand)| match operand.access {
        Access::Scratch => NO_TENSOR,
        _ => index as u32,
    };
    let described = Metadata {
        tool: String::new(),
        input_sha256: String::new(),
        summary: "{}".into(),
        labels: vec![],
        input_keys: vec![],
        steps: vec![arenite_host::metadata::StepMeta {
            name: "lone".into(),
            kind: "lone".into(),
            macs: 0,
            completes: None,
            operands: operands.iter().take(placement.len()).enumerate().map(owner).collect(),
        }],
        tensors: (0..placement.len()).map(|index| index.to_string()).collect(),
        ports: metadata,
    };
    let blob = Blob {
        target: blob.target,
        arena: [end.next_multiple_of(4), 0, 0, 0],
        inputs: inputs.into_iter().map(|(port, _)| port).collect(),
        outputs: outputs.into_iter().map(|(port, _)| port).collect(),
        steps: vec![],
        meta: described.encode().ok()?,
        weights: blob.weights.clone(),
        state: vec![],
    };
    Some((blob.step(&step), given))
}

/// The verification that ends every packing, on files that are wrong in one place.
#[test]
fn packing_verifies_what_it_wrote() {
    let case = cases().swap_remove(0);
    let path = case.folder.path().join("written.bin");
    let verified = |blob: &Blob, samples: Option<&Samples>| {
        std::fs::write(&path, blob.file()).expect("writes");
        verify(&ModelFile::open(&path).expect("just written"), samples)
    };
    verified(&case.blob, None).expect("it is right");

    // A plan that only the proof sees: two steps in the other order.
    let (mut blob, mut metadata) = (case.blob.clone(), case.metadata.clone());
    blob.steps.swap(0, 1);
    metadata.steps.swap(0, 1);
    blob.meta = metadata.encode().expect("metadata");
    let error = verified(&blob, None).expect_err("the proof refuses it");
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("plan is wrong"), "{error}");

    // A file that only a load refuses.
    let mut blob = case.blob.clone();
    blob.inputs[0].slot.offset += blob.arena[0];
    blob.inputs[0].shape = vec![0];
    let error = verified(&blob, None).expect_err("a load refuses it");
    assert_eq!(error.kind(), ErrorKind::Internal);

    // Samples: right, and wrong in the last element of the last output of the last run.
    let mut samples = Samples {
        runs: case
            .inputs
            .iter()
            .zip(&case.outputs)
            .map(|(inputs, outputs)| SampleRun {
                inputs: named(&case.blob.inputs, inputs),
                outputs: named(&case.blob.outputs, outputs),
            })
            .collect(),
        rtol: 1e-6,
    };
    verified(&case.blob, Some(&samples)).expect("its own outputs");
    let last = samples.runs.last_mut().and_then(|run| run.outputs.last_mut());
    let (_, bytes) = last.expect("an output");
    let at = bytes.len() - 4;
    let value = f32::from_le_bytes(bytes[at..].try_into().expect("four bytes"));
    bytes[at..].copy_from_slice(&(value + 1.0).to_le_bytes());
    let error = verified(&case.blob, Some(&samples)).expect_err("a false sample");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("sample 1"), "{error}");
    samples.runs[1].outputs[0].0 = "another".into();
    assert!(verified(&case.blob, Some(&samples)).is_err());
    samples.runs.truncate(1);
    samples.runs[0].inputs.clear();
    assert!(verified(&case.blob, Some(&samples)).is_err());
}

fn named(ports: &[Tensor], values: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    ports
        .iter()
        .map(|port| port.name.clone())
        .zip(values.iter().cloned())
        .collect()
}

/// The verification is part of packing: a trace whose sample is false in one element is refused, and no file is left.
#[test]
fn a_trace_with_a_false_sample_is_not_packed() {
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["mlp.trace.json", "mlp.safetensors", "mlp.samples.safetensors"] {
        std::fs::copy(digits.join(file), folder.path().join(file)).expect("copies");
    }
    let options = options(&folder.path().join("mlp.trace.json"), folder.path(), Target::Portable);
    pack(&options, &mut |_, _, _| {}).expect("its samples are right");
    std::fs::remove_file(&options.output).expect("removes");

    let path = folder.path().join("mlp.samples.safetensors");
    let mut bytes = std::fs::read(&path).expect("reads");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let text: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).expect("a header");
    let (_, logits) = text
        .as_object()
        .and_then(|all| all.iter().find(|(key, _)| key.contains("logits")))
        .expect("logits");
    let end = 8 + header + logits["data_offsets"][1].as_u64().expect("an end") as usize;
    let value = f32::from_le_bytes(bytes[end - 4..end].try_into().expect("four bytes"));
    bytes[end - 4..end].copy_from_slice(&(value + 0.5).to_le_bytes());
    std::fs::write(&path, bytes).expect("writes");
    let error = pack(&options, &mut |_, _, _| {}).expect_err("a false sample");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("differs"), "{error}");
    assert!(!options.output.exists());
}

/// A tensor that waits between its writer and its reader is no operand of the steps between: only the proof sees a scratch on top of it.
#[test]
fn scratch_over_a_tensor_that_waits_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops/depthwise_3x3_same.tflite");
    let case = Case::new("scratch".into(), &options(&path, folder.path(), Target::CortexM3));
    let (mut blob, mut metadata) = (case.blob.clone(), case.metadata.clone());
    let kept = blob.arena[0].next_multiple_of(16);
    let port = Tensor::new("kept", at(kept), arenite::DType::U8, &[64]);
    let tensor = metadata.tensors.len() as u32;
    metadata.tensors.push("kept".into());
    metadata.ports.insert(blob.inputs.len(), tensor);
    metadata.ports.push(tensor);
    metadata.input_keys.push(String::new());
    blob.inputs.push(port.clone());
    blob.outputs.push(port);
    blob.meta = metadata.encode().expect("metadata");
    let mut step = blob.decoded().swap_remove(0);
    let scratch = operands(&step)
        .into_iter()
        .position(|o| o.access == Access::Scratch && o.bytes > 0);
    let scratch = scratch.expect("it has scratch");
    blob.arena[0] = kept + operands(&step)[scratch].bytes.next_multiple_of(16) + 64;
    let inputs: Vec<Vec<Vec<u8>>> = case
        .inputs
        .iter()
        .map(|inputs| inputs.iter().cloned().chain([vec![0x5A; 64]]).collect())
        .collect();
    let case = Case {
        outputs: outputs(&blob.file(), &inputs).expect("it loads"),
        inputs,
        ..case
    };
    assert_eq!(case.judge(&blob), Verdict::Same);
    set_slot(&mut step, scratch, at(kept));
    blob.replace(0, &step);
    assert_eq!(case.judge(&blob), Verdict::Proof);
}
