//! Larger tensors than those of the kit's cases: the tests' own networks run step by step, each operand of each step in turn between forbidden bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::testkit::{NetworkMemory, guard_network};
use arenite::{DType, Model, Target};
use arenite_host::model::Aligned;
use arenite_host::pack::{Options, pack};

use super::made::made;
use super::*;

/// Nodes of the planner's searches: what they find is not what is asked here.
const NODES: u64 = 100;

/// Targets beside the portable one, which networks are packed for by turns.
const TARGETS: [Target; 8] = [
    Target::CortexM0,
    Target::CortexM3,
    Target::CortexM4,
    Target::CortexM55,
    Target::X8664,
    Target::Aarch64I8mm,
    Target::Riscv64gcv,
    Target::Aarch64,
];

/// Bytes of a field for any of the networks.
const LARGE_FIELD: usize = 16 << 20;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder").map_while(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            files(&path, found);
        } else if [".tflite", ".onnx", ".trace.json"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            found.push(path);
        }
    }
}

/// All networks of the tests.
fn networks() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models"), &mut found);
    found.sort();
    found
}

/// A packed model; `None` where it is not for this target.
pub(super) fn packed(path: &Path, target: Target, folder: &Path) -> Option<Vec<u8>> {
    packed_with(Options::new(path, folder.join("m.bin")), target)
}

fn packed_with(options: Options, target: Target) -> Option<Vec<u8>> {
    let options = Options {
        target,
        plan_nodes: NODES,
        ..options
    };
    pack(&options, &mut |_, _, _| {}).ok()?;
    std::fs::read(&options.output).ok()
}

/// Inputs of any value: floats of order one, integers of all bits.
pub(super) fn inputs(model: &Model<'_>) -> Vec<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    let ports = (0..usize::from(model.header().inputs)).map_while(|index| model.input(index));
    ports
        .map(|port| {
            let mut bytes = vec![0; port.bytes().unwrap_or(0) as usize];
            for word in bytes.chunks_mut(4) {
                let value = match port.dtype {
                    DType::F32 => (next() as f32 / u32::MAX as f32 * 2.0 - 1.0).to_le_bytes(),
                    _ => next().to_le_bytes(),
                };
                word.iter_mut().zip(value).for_each(|(byte, value)| *byte = value);
            }
            bytes
        })
        .collect()
}

pub(super) fn aligned(bytes: &[u8]) -> Aligned {
    let mut memory = Aligned::new(bytes.len());
    memory.bytes().copy_from_slice(bytes);
    memory
}

/// Guards every step of a file on the host; `note` is told each kernel.
fn guarded_on_host(file: &[u8], guard: &mut Guard<'_>, note: &mut dyn FnMut(u32, KernelId, Option<Finding>)) {
    let mut memory = aligned(file);
    let Ok(model) = Model::load(memory.bytes()) else {
        return;
    };
    let mut arenas: Vec<Aligned> = (0..4).map(|region| Aligned::new(model.arena_bytes(region))).collect();
    let mut state = Aligned::new(model.state_bytes());
    let total = model.state_bytes() + (0..4).map(|region| model.arena_bytes(region)).sum::<usize>();
    let mut saved = Aligned::new(total);
    let mut regions: Vec<&mut [u8]> = arenas.iter_mut().map(Aligned::bytes).collect();
    for (index, input) in inputs(&model).into_iter().enumerate() {
        let Some(port) = model.input(index) else { continue };
        let at = port.slot.offset as usize;
        if let Some(region) = regions.get_mut(usize::from(port.slot.region)) {
            region[at..at + input.len()].copy_from_slice(&input);
        }
    }
    let memory = NetworkMemory {
        regions: regions.try_into().expect("four"),
        state: state.bytes(),
        saved: saved.bytes(),
    };
    guard_network(&model, memory, 0, guard, &mut |(step, kernel), done| {
        if let Some(done) = done {
            note(step, kernel, done.err());
        }
    });
}

#[test]
fn no_step_of_a_network_touches_a_byte_beside_its_operands_on_the_host() {
    let (field, mut fence) = field(LARGE_FIELD);
    let (mut room, mut found) = (vec![0; ROOM], Found::default());
    let folder = tempfile::tempdir().expect("a folder");
    let (mut kernels, mut findings) = (BTreeMap::<&str, u32>::new(), Vec::new());
    let files = networks().into_iter().map(|path| {
        let options = Options::new(&path, folder.path().join("m.bin"));
        (path.display().to_string(), options)
    });
    for (turn, (name, options)) in files.chain(made(folder.path())).enumerate() {
        for target in [Target::Portable, TARGETS[turn % TARGETS.len()]] {
            let Some(file) = packed_with(options.clone(), target) else {
                continue;
            };
            let mut guard = Guard {
                field: &mut *field,
                room: &mut room,
                watch: &mut fence,
                found: &mut found,
            };
            guarded_on_host(&file, &mut guard, &mut |step, kernel, finding| match finding {
                None => *kernels.entry(kernel.name()).or_default() += 1,
                Some(finding) => findings.push(format!(
                    "{name} for {}: step {step}, {}: {finding:?}",
                    target.name(),
                    kernel.name()
                )),
            });
        }
    }
    println!("{} guarded runs of steps; {kernels:?}", found.runs);
    println!("{findings:#?}");
    assert!(
        findings.is_empty(),
        "{} findings, the first: {:?}",
        findings.len(),
        findings.first()
    );
    // Larger tensors than those of the kit's cases, and constants that steps share.
    assert!(kernels.len() > 70, "networks guard {} kernels", kernels.len());
}
