//! Steps by themselves, their operands wherever they may overlap.

use super::*;

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
            // Values left by a run before would do as well.
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
        cut: vec![],
        training: None,
    };
    let blob = Blob {
        target: blob.target,
        arena: [end.next_multiple_of(4), 0, 0, 0],
        inputs: inputs.into_iter().map(|(port, _)| port).collect(),
        outputs: outputs.into_iter().map(|(port, _)| port).collect(),
        steps: vec![],
        meta: described.encode().ok()?,
        cores: Vec::new(),
        labels: vec![],
        weights: blob.weights.clone(),
        state: vec![],
    };
    Some((blob.step(&step), given))
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
                // Further refusals of the proof: an input whose bytes another operand's writing destroyed before its reader came.
                panic!("{name} at {placement:?}: it loads, and the proof says {error}");
            }
            compared[usize::from(loads.is_ok())] += 1;
        }
    }
    println!("{} refused, {} accepted by both", compared[0], compared[1]);
    assert!(compared[0] > 500 && compared[1] > 500, "{compared:?}");
}
