//! Checks by `pack` of its own files.

use super::*;

/// The verification that ends every packing, on files that are wrong in one place.
#[test]
fn packing_verifies_what_it_wrote() {
    let case = cases().swap_remove(0);
    let path = case.folder.path().join("written.bin");
    let verified = |blob: &Blob, samples: Option<&Samples>| {
        std::fs::write(&path, blob.file()).expect("writes");
        verify(&ModelFile::open(&path).expect("just written"), samples, &mut unwatched)
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
