//! Judges are judged: deliberately wrong files, of which `Model::load` or `memory::prove` must refuse each that computes anything else.

mod overlaps;
mod packing;
mod training;

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use arenite::{Access, Model, Operand, Slot, Step, Target};
use arenite_host::ErrorKind;
use arenite_host::import::{SampleRun, Samples};
use arenite_host::memory::prove::prove;
use arenite_host::metadata::{Metadata, NO_TENSOR};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack, verify};
use arenite_host::stage::unwatched;
use arenite_tests::blob::{Blob, Tensor, aligned, at};
use arenite_tests::golden::{options, packed_small};
use arenite_tests::writers::Random;

/// Verdict on a wrong file.
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
        let ports = Blob::of(file.bytes()).inputs;
        let mut random = Random::new(7);
        let inputs: Vec<Vec<Vec<u8>>> = (0..2)
            .map(|_| ports.iter().map(|port| values(port, &mut random)).collect())
            .collect();
        Self::of(name, file.bytes(), inputs)
    }

    fn of(name: String, file: &[u8], inputs: Vec<Vec<Vec<u8>>>) -> Self {
        let blob = Blob::of(file);
        Self {
            name,
            folder: tempfile::tempdir().expect("a folder"),
            metadata: Metadata::decode(&blob.meta).expect("metadata"),
            outputs: outputs(file, &inputs).expect("it loads"),
            blob,
            inputs,
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
        slots_moved(&case, &mut tally);
        let arena = case.blob.arena[0];
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

fn slots_moved(case: &Case, tally: &mut Tally) {
    let arena = case.blob.arena[0];
    for (index, step) in case.blob.decoded().iter().enumerate() {
        for slot in 0..slots(step).len() {
            let from = slots(step)[slot];
            if from.region >= Slot::STATE {
                continue;
            }
            for to in places(from.offset, arena) {
                if slot == 0 && is_copy(step) && from.offset.abs_diff(to) <= 4 {
                    // Where a copy lies inside its result is the operator's own and no matter of the plan.
                    continue;
                }
                if is_part(case, step, slot) {
                    // So it is which part of an input a step reads, as of a batch.
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
}

/// Whether an operand is a part of an input.
fn is_part(case: &Case, step: &Step, operand: usize) -> bool {
    let operands = operands(step);
    let Some(Operand { place, bytes, .. }) = operands.get(operand) else {
        return false;
    };
    let holds = |port: &Tensor| {
        let (start, end) = (port.slot.offset, port.slot.offset + port.bytes());
        port.slot.region == place.region && place.offset >= start && place.offset + bytes <= end && *bytes < end - start
    };
    case.blob.inputs.iter().any(holds)
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
    cases().iter().for_each(|case| tensors_moved(case, &mut tally));
    tally.holds([300, 80, 20]);
}

fn tensors_moved(case: &Case, tally: &mut Tally) {
    let tensors = case.metadata.tensors.len() as u32;
    let steps = case.blob.decoded();
    let lowest = |tensor: u32| {
        let touched = touches(case, &steps, tensor);
        touched.iter().map(|slot| slot.offset).min()
    };
    for tensor in 0..tensors {
        let Some(from) = lowest(tensor) else { continue };
        let others = (0..tensors).filter(|&other| other != tensor).filter_map(lowest);
        let mut targets: Vec<u32> = others.chain(places(from, case.blob.arena[0])).collect();
        targets.sort_unstable();
        targets.dedup();
        for to in targets {
            let blob = moved(case, &steps, tensor, i64::from(to) - i64::from(from));
            tally.count(case.judge(&blob), || {
                format!(
                    "{}: `{}` from {from} to {to}",
                    case.name, case.metadata.tensors[tensor as usize]
                )
            });
        }
    }
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
            let all = operands(step);
            let in_place = |index: usize| all[index].place == all[0].place && step.in_place(index);
            if (1..all.len()).any(in_place) {
                // One tensor owns both bytes, before and after: the proof cannot tell that they are the older ones, the outputs do.
                assert_ne!(case.judge(&blob), Verdict::Same, "{}: without step {index}", case.name);
            } else if !is_copy(step) {
                // The rest of a copy's result was written by another step.
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
