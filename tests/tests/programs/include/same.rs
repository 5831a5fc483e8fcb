//! Compiled models compute what loaded ones do, bit for bit: a program that holds networks in both forms, packed for several cores.

use std::fmt::Write as _;

use arenite::Target;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::{shared, skip};

use super::project::Project;

/// Networks with convolutions of all kinds, fully connected layers, sums, pooling, softmax, f32 layers, an LSTM, and state.
const NETWORKS: [&str; 9] = [
    "tflm_hello_world_int8",
    "tflm_hello_world_float",
    "tflm_micro_speech_quantized",
    "tflm_mnist_lstm_int8",
    "emlearn_mnist_cnn_int8",
    "ad01_int8",
    "kws_ref_model",
    "pretrainedResnet_quant",
    "esphome_v2_vad",
];

/// Targets whose kernels take steps in pieces, and one whose kernels know none.
const TARGETS: [Target; 3] = [Target::CortexM4, Target::CortexM0, Target::Portable];

/// Program that runs a model in both forms: three runs, the second step by step, the third half-way by steps. Bytes of the inputs follow from a number.
const SAME: &str = "
macro_rules! same {
    ($name:literal $compiled:ident $loaded:ident) => {{
        let mut memory = Box::new(($compiled::Memory::new(), $loaded::Memory::new()));
        let (ours, theirs) = &mut *memory;
        let mut ours = $compiled::open(ours);
        assert!($compiled::verify_weights(), \"{}\", $name);
        let mut theirs = $loaded::open(theirs).expect(\"a session\");
        let mut seed = 7u32;
        for run in 0..3 {
            for index in 0..$compiled::INPUTS.len() {
                let input = theirs.input_mut(index).expect(\"an input\");
                if $compiled::INPUTS[index].dtype == arenite::DType::F32 {
                    for real in input.chunks_exact_mut(4) {
                        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
                        real.copy_from_slice(&((seed >> 16) as f32 / 65536.0 - 0.25).to_le_bytes());
                    }
                } else {
                    for byte in input.iter_mut() {
                        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
                        *byte = (seed >> 24) as u8;
                    }
                }
                ours.input_mut(index).expect(\"an input\").copy_from_slice(input);
            }
            theirs.run().expect(\"a run\");
            let mut steps = 0;
            if run == 1 {
                while let arenite::Progress::Step { step, .. } = ours.step().expect(\"a step\") {
                    assert_eq!(step, steps);
                    steps += 1;
                }
            } else {
                if run == 2 {
                    ours.step().expect(\"a step\");
                    steps = 1;
                }
                if run == 0 || ours.output(0).is_ok() && theirs.model().header().step_count > 1 {
                    ours.run_with(|step| {
                        assert_eq!(step, steps);
                        steps += 1;
                    })
                    .expect(\"the rest of a run\");
                }
            }
            for index in 0..$compiled::OUTPUTS.len() {
                assert_eq!(ours.output(index), theirs.output(index), \"{}, run {run}, output {index}\", $name);
            }
        }
    }};
}
";

#[test]
fn compiled_models_give_the_bits_of_loaded_ones() {
    const TEST: &str = "compiled_models_give_the_bits_of_loaded_ones";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let project = Project::new("same", &["dsp"], "");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut modules, mut calls) = (String::new(), String::new());
    for network in NETWORKS {
        for target in TARGETS {
            let path = shared.join(format!("data/models/{network}.tflite"));
            for (form, small) in [("", false), ("_size", true)] {
                if small && (target != Target::CortexM4 || !network.starts_with("kws")) {
                    continue;
                }
                let pack = if small { packed_small } else { packed };
                let file = pack(&path, folder.path(), target).unwrap_or_else(|error| panic!("{network}: {error}"));
                let name = format!("{network}_{}{form}", target.name().replace('-', "_")).to_lowercase();
                project.file(&format!("{name}.bin"), &std::fs::read(file.path()).expect("a file"));
                let _ = writeln!(
                    modules,
                    "arenite::include_model!(mod {name} = \"{name}.bin\");\n\
                     arenite::include_model!(mod {name}_loaded = \"{name}.bin\", loaded);"
                );
                let _ = writeln!(calls, "    same!(\"{name}\" {name} {name}_loaded);");
            }
        }
    }
    let program = format!("{modules}{SAME}\nfn main() {{\n{calls}}}\n");
    let said = project.run(&program).unwrap_or_else(|said| panic!("{said}"));
    assert!(!said.contains("warning"), "{said}");
}
