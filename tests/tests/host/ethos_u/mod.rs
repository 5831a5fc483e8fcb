//! Networks that Vela has compiled for an Ethos-U: packed, loaded, and run with an NPU that stands in for one. It is given the file's own bytes and
//! the places that the plan says; what it writes comes out; where it fails, that is seen, and the session works on. Commands that are changed are refused by
//! load.
//!
//! No NPU computes here: the network that was compiled runs on the core in its place.

mod mock;

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::ops::ethos_u::EthosU as Commands;
use arenite::{
    AcceleratorFault, EthosU, EthosUConfig, EthosUJob, Fault, LoadError, Model, Poll, RunError, Session, Slot, Step,
    Target,
};
use arenite_host::ErrorKind;
use arenite_host::memory::prove::prove;
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::pack;
use arenite_tests::blob::{Blob, aligned};
use arenite_tests::golden::{options, packed};
use arenite_tests::writers::Random;
use arenite_tests::{shared, skip};

use self::mock::*;

#[test]
fn a_compiled_network_gives_what_the_npu_writes() {
    for (name, configuration, config) in [
        ("layers", "ethos-u55-128", "ethos-u55-128"),
        ("layers", "ethos-u65-256", "ethos-u65-256"),
        ("branches", "ethos-u55-256", "ethos-u55-256"),
        ("branches", "ethos-u65-512", "ethos-u65-512"),
    ] {
        let network = compiled(name, configuration);
        let (_folder, file) = file(&network);
        let (_other, source) = self::file(&models().join(name).with_extension("tflite"));
        let (model, own) = (file.load().expect("it loads"), source.load().expect("it loads"));
        let steps = commands(&file);
        assert_eq!(steps.len(), 1, "{name}: one step is all of the network");
        let all = file.view().expect("a view").steps().expect("steps").len();
        assert_eq!(all, 1, "{name}: no copies");
        let mut core_memory = Held::of(&own);
        let mut core = core_memory.session(&own);
        let mut truth = |_: u32, given: &Given| {
            core.set_input(0, &given[0]).expect("an input");
            core.run().expect("it runs");
            outputs(&core)
        };
        let mut held = Held::of(&model);
        let arenas = held.starts();
        let mut session = held.session(&model);
        let payload = &model.weights()[steps[0].1.payload as usize..];
        let config_word = EthosUConfig(u32::from_le_bytes(payload[8..12].try_into().expect("a word")));
        assert_eq!(config_word.to_string(), config);
        let mut npu = Npu {
            config: config_word,
            does: Does::Right,
            steps,
            arenas,
            network: std::fs::read(&network).expect("the network"),
            computes: &mut truth,
            started: 0,
            stopped: 0,
            busy: false,
        };
        let mut other_memory = Held::of(&own);
        let mut other = other_memory.session(&own);
        for seed in 0..4 {
            fill(&mut session, seed);
            fill(&mut other, seed);
            session.run_ethos_u(&mut npu).expect("it runs");
            other.run().expect("it runs");
            assert_eq!(outputs(&session), outputs(&other), "{name} {configuration}");
        }
        assert_eq!((npu.started, npu.stopped), (4, 0));
    }
}

/// Operators that stay on the core stand before, between and behind those of the NPU, and a tensor goes to both.
#[test]
fn what_the_compiler_leaves_runs_on_the_core() {
    for configuration in ["ethos-u55-64", "ethos-u65-256"] {
        let network = compiled("mixed", configuration);
        let (_folder, file) = file(&network);
        let model = file.load().expect("it loads");
        let steps = commands(&file);
        assert_eq!(steps.len(), 2, "{configuration}");
        let of_step: Vec<_> = steps.iter().map(|(step, op)| (*step, sizes(op))).collect();
        let mut seen: Vec<(Given, Vec<Vec<u8>>)> = Vec::new();
        let mut computes = |step: u32, given: &Given| {
            let (_, sizes) = of_step.iter().find(|(index, _)| *index == step).expect("a step");
            let made = mixed_up(step, given, sizes);
            seen.push((given.clone(), made.clone()));
            made
        };
        let mut held = Held::of(&model);
        let arenas = held.starts();
        let payload = &model.weights()[steps[0].1.payload as usize..];
        let config = EthosUConfig(u32::from_le_bytes(payload[8..12].try_into().expect("a word")));
        let mut session = held.session(&model);
        fill(&mut session, 3);
        let [a, b] = [0, 1].map(|port| session.input_mut(port).expect("an input").to_vec());
        let mut npu = Npu {
            config,
            does: Does::Right,
            steps: steps.clone(),
            arenas,
            network: std::fs::read(&network).expect("the network"),
            computes: &mut computes,
            started: 0,
            stopped: 0,
            busy: false,
        };
        session.run_ethos_u(&mut npu).expect("it runs");
        assert_eq!(npu.started, 2);
        let [(first, h), (second, t)] = seen.as_slice() else {
            panic!("two steps");
        };
        // Rows of `a` backwards: [1, 9, 6, 5]; columns of `h` backwards: [1, 9, 6, 6].
        let rows: Vec<u8> = a.chunks_exact(30).rev().flatten().copied().collect();
        let columns = |row: &[u8]| row.chunks_exact(6).rev().flatten().copied().collect::<Vec<u8>>();
        let back: Vec<u8> = h[0].chunks_exact(36).flat_map(columns).collect();
        assert_eq!(first, &[rows, b], "{configuration}");
        assert_eq!(second, &[back, h[0].clone()], "{configuration}");
        let found = outputs(&session);
        let real = |&byte: &u8| (f32::from(byte as i8) + 3.0) * 0.05;
        let expected: Vec<u8> = t[0].iter().flat_map(|byte| real(byte).to_le_bytes()).collect();
        let close = found[0].chunks_exact(4).zip(expected.chunks_exact(4)).all(|(a, b)| {
            let [a, b] = [a, b].map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four")));
            (a - b).abs() <= 1e-5
        });
        assert!(close && found[0].len() == expected.len(), "{configuration}");
        assert_eq!(found[1], h[0], "{configuration}");
    }
}

#[test]
fn faults_are_typed_and_leave_the_session_usable() {
    let mut unwritten = 0;
    for (name, configuration) in [("mixed", "ethos-u55-64"), ("branches", "ethos-u55-256")] {
        let network = compiled(name, configuration);
        let (_folder, file) = file(&network);
        let model = file.load().expect("it loads");
        let steps = commands(&file);
        let first = steps[0].0;
        let of_step: Vec<_> = steps.iter().map(|(step, op)| (*step, sizes(op))).collect();
        let mut computes = |step: u32, given: &Given| {
            let (_, sizes) = of_step.iter().find(|(index, _)| *index == step).expect("a step");
            mixed_up(step, given, sizes)
        };
        let mut held = Held::of(&model);
        let arenas = held.starts();
        let mut session = held.session(&model);
        let payload = &model.weights()[steps[0].1.payload as usize..];
        let config = EthosUConfig(u32::from_le_bytes(payload[8..12].try_into().expect("a word")));
        let mut npu = Npu {
            config,
            does: Does::Right,
            steps: steps.clone(),
            arenas,
            network: std::fs::read(&network).expect("the network"),
            computes: &mut computes,
            started: 0,
            stopped: 0,
            busy: false,
        };
        fill(&mut session, 1);
        session.run_ethos_u(&mut npu).expect("it runs");
        let good = outputs(&session);
        // Of outputs that lie over their inputs it cannot be seen.
        let apart = |op: &Commands| {
            op.outputs.iter().any(|span| {
                op.inputs.each().all(|(slot, bytes)| {
                    let at = slot.offset - op.scratch.offset;
                    at + bytes <= span.offset || span.offset + span.bytes <= at
                })
            })
        };
        let told = steps.iter().find(|(_, op)| apart(op)).map(|(step, _)| *step);
        let mut cases = vec![
            (Does::FailsToStart, AcceleratorFault::Failed { code: 5 }, 1, first),
            (Does::FailsLater, AcceleratorFault::Failed { code: 6 }, 1, first),
            (Does::NeverEnds, AcceleratorFault::TimedOut, 1, first),
            (Does::ReachesNothing, AcceleratorFault::Reach, 0, first),
        ];
        if let Some(step) = told {
            cases.push((Does::WritesNothing, AcceleratorFault::Unwritten, 0, step));
            unwritten += 1;
        }
        for (does, fault, stopped, step) in cases {
            (npu.does, npu.stopped) = (does, 0);
            fill(&mut session, 1);
            let error = session.run_ethos_u(&mut npu).expect_err("wrong");
            assert_eq!(error, RunError::Accelerator { step, fault }, "{does:?}");
            assert_eq!((npu.stopped, npu.busy), (stopped, false), "{does:?}");
            npu.does = Does::Right;
            let missing = Err(RunError::InputMissing { input: 0 });
            assert_eq!(session.run_ethos_u(&mut npu), missing);
            fill(&mut session, 1);
            session.run_ethos_u(&mut npu).expect("it runs");
            assert_eq!(outputs(&session), good, "{does:?}");
        }
        // Another NPU: nothing is run, and the inputs are there.
        fill(&mut session, 1);
        let started = npu.started;
        npu.config = EthosUConfig(config.0 ^ 1);
        let fault = AcceleratorFault::Npu;
        assert_eq!(
            session.run_ethos_u(&mut npu),
            Err(RunError::Accelerator { step: first, fault })
        );
        npu.config = config;
        assert_eq!(npu.started, started);
        session.run_ethos_u(&mut npu).expect("it runs");
        assert_eq!(outputs(&session), good);
        // The core alone.
        fill(&mut session, 1);
        let fault = AcceleratorFault::Needed;
        assert_eq!(session.run(), Err(RunError::Accelerator { step: first, fault }));
        fill(&mut session, 1);
        session.run_ethos_u(&mut npu).expect("it runs");
        assert_eq!(outputs(&session), good);
    }
    assert!(unwritten > 0);
}

/// Outputs that are what they are filled with before: never taken for unwritten.
#[test]
fn outputs_that_are_as_the_pattern_are_no_fault() {
    let network = compiled("mixed", "ethos-u55-64");
    let (_folder, file) = file(&network);
    let model = file.load().expect("it loads");
    let steps = commands(&file);
    let of_step: Vec<_> = steps.iter().map(|(step, op)| (*step, sizes(op))).collect();
    let all = [0x5B, 0xA4, 0x77].map(|value| [(value, Does::Right), (value, Does::IsNeat)]);
    for (value, does) in all.into_iter().flatten() {
        let mut computes = |step: u32, _: &Given| {
            let (_, sizes) = of_step.iter().find(|(index, _)| *index == step).expect("a step");
            sizes.iter().map(|&bytes| vec![value; bytes]).collect()
        };
        let mut held = Held::of(&model);
        let arenas = held.starts();
        let mut session = held.session(&model);
        let payload = &model.weights()[steps[0].1.payload as usize..];
        let config = EthosUConfig(u32::from_le_bytes(payload[8..12].try_into().expect("a word")));
        let mut npu = Npu {
            config,
            does,
            steps: steps.clone(),
            arenas,
            network: std::fs::read(&network).expect("the network"),
            computes: &mut computes,
            started: 0,
            stopped: 0,
            busy: false,
        };
        fill(&mut session, 1);
        session.run_ethos_u(&mut npu).expect("it runs");
        assert!(outputs(&session)[1].iter().all(|&byte| byte == value));
        // The second step's output lies apart from its inputs, and looks unwritten.
        let again = does == Does::IsNeat && value == 0x5B;
        assert_eq!(npu.started, if again { 3 } else { 2 }, "{value:#x} {does:?}");
    }
}

/// Each word of the command streams changed in several ways, each size made smaller: load refuses it by name, or it stays inside, and never is there a panic.
#[test]
fn commands_that_are_changed_are_refused() {
    let (_folder, file) = file(&compiled("branches", "ethos-u65-512"));
    let good = Blob::of(file.bytes());
    let load = |parts: &Blob| Model::load(aligned(&parts.file()).bytes()).map(|_| ());
    assert_eq!(load(&good), Ok(()));
    let (index, op) = commands(&file).remove(0);
    let refused = |fault| Err(LoadError::Step { step: index, fault });
    let (mut outside, mut held) = (0, 0);
    for word in 0..op.payload_bytes / 4 {
        for bit in [0, 5, 8, 13, 16, 20, 31] {
            let mut parts = good.clone();
            let at = (op.payload + 4 * word) as usize + bit / 8;
            parts.weights[at] ^= 1 << (bit % 8);
            match load(&parts) {
                Ok(()) => held += 1,
                error => {
                    assert_eq!(error, refused(Fault::Commands), "word {word}, bit {bit}");
                    outside += 1;
                }
            }
        }
    }
    // Most registers have nothing to do with addresses.
    assert!(outside > 200 && held > 50, "{outside} refused, {held} not");
    let changed = |change: &dyn Fn(&mut Commands)| {
        let mut op = op.clone();
        change(&mut op);
        let mut parts = good.clone();
        parts.replace(index as usize, &Step::EthosU(op));
        load(&parts)
    };
    assert_eq!(changed(&|op| op.constants_bytes /= 2), refused(Fault::Commands));
    assert_eq!(changed(&|op| op.fast_bytes /= 2), refused(Fault::Commands));
    assert_eq!(changed(&|op| op.scratch_bytes = 16), refused(Fault::Shape));
    assert_eq!(changed(&|op| op.payload_bytes -= 4), refused(Fault::Commands));
    assert_eq!(changed(&|op| op.payload += 16), refused(Fault::Commands));
    assert_eq!(changed(&|op| op.payload += 4), refused(Fault::Alignment));
    assert_eq!(changed(&|op| op.scratch.offset += 1 << 20), refused(Fault::Bounds));
    assert_eq!(changed(&|op| op.fast = op.scratch), refused(Fault::Overlap));
    assert_eq!(changed(&|op| op.outputs.clear()), refused(Fault::Shape));
    assert_eq!(changed(&|op| op.inputs.bytes.clear()), refused(Fault::Shape));
    assert_eq!(changed(&|op| op.scratch.region = Slot::WEIGHTS), refused(Fault::Bounds));
    // Runs that share steps hand none over.
    let mut parts = good.clone();
    parts.cores = vec![2, 0];
    parts.cores.resize(1 + parts.steps.len(), 0);
    assert_eq!(load(&parts), refused(Fault::Handed));
}

/// The second core of an Ethos-U65-512 with nothing to do: its lengths are 0, and no command says where its weights and scales are.
#[test]
fn a_core_without_work_needs_no_places() {
    const BASES: [u32; 2] = [0x4090, 0x4092];
    let (_folder, file) = file(&compiled("branches", "ethos-u65-512"));
    let good = Blob::of(file.bytes());
    let (index, op) = commands(&file).remove(0);
    let start = op.payload as usize;
    let words: Vec<usize> = (start..start + op.payload_bytes as usize).step_by(4).collect();
    let changed = |length: u32| {
        let mut parts = good.clone();
        let word = |parts: &Blob, at: usize| u32::from_le_bytes(parts.weights[at..at + 4].try_into().expect("a word"));
        let mut found = 0;
        let mut at = words.iter().copied();
        while let Some(place) = at.next() {
            let command = word(&parts, place);
            if command & 0xC000 != 0x4000 {
                continue;
            }
            let data = at.next().expect("data");
            let base = BASES.iter().find(|&&base| command & 0xFFFE == base);
            if let Some(base) = base {
                // Where the base was set, so is the length.
                parts.weights[place..place + 4].copy_from_slice(&(base + 1).to_le_bytes());
                parts.weights[data..data + 4].copy_from_slice(&length.to_le_bytes());
                found += 1;
            }
        }
        assert!(found >= 4, "{found} registers of the second core");
        Model::load(aligned(&parts.file()).bytes()).map(drop)
    };
    assert_eq!(changed(0), Ok(()));
    let fault = Fault::Commands;
    assert_eq!(changed(16), Err(LoadError::Step { step: index, fault }));

    let Some(shared) = shared() else {
        return skip("a_core_without_work_needs_no_places", "no shared data");
    };
    let network = shared.join("data/defects/ethos_u65_512_one_channel_vela.tflite");
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(&network, folder.path(), Target::CortexM55).unwrap_or_else(|e| panic!("{e}"));
    prove(&file.view().expect("a view")).expect("it holds");
    file.load().expect("it loads");
}

#[test]
fn what_does_not_go_with_a_compiled_network_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = compiled("branches", "ethos-u55-256");
    let refused = |change: &dyn Fn(&mut arenite_host::pack::Options)| {
        let mut options = options(&input, folder.path(), Target::Portable);
        change(&mut options);
        let error = pack(&options, &mut |_, _, _| {}).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(!options.output.exists());
        error.to_string()
    };
    assert!(refused(&|options| options.cores = 2).contains("--cores with a network that is compiled for an Ethos-U"));
    assert!(refused(&|options| options.max_step = Some(9000)).contains("--max-step with"));
    assert!(refused(&|options| options.self_test = Some(input.clone())).contains("--self-test with"));
    let text = "name = \"npu\"\nversion = 1\nkernels = \"portable\"\noperators = [\"add\"]";
    let accelerator = arenite_host::accelerator::Accelerator::parse(text, Path::new("npu.toml")).expect("one");
    assert!(refused(&|options| options.accelerator = Some(accelerator.clone())).contains("--accelerator with"));
    // An U85 has other commands.
    let input = compiled("branches", "ethos-u85-128");
    let error = pack(&options(&input, folder.path(), Target::Portable), &mut |_, _, _| {}).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(
        error.to_string().contains("another NPU than an Ethos-U55 or U65"),
        "{error}"
    );
    // Options that change nothing of the steps go with it.
    let mut fitting = options(&compiled("mixed", "ethos-u55-64"), folder.path(), Target::CortexM55);
    fitting.fit = Some(1 << 20);
    pack(&fitting, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
}

/// Files with one mistake each.
#[test]
fn what_is_wrong_with_a_compiled_file_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, said) in [
        ("options", "options of an unknown kind"),
        ("no_stream", "it has no command stream"),
        ("many_inputs", "9 inputs and 1 outputs"),
        ("constant_input", "is a constant or a variable"),
        ("over_another", "lies over another one"),
        ("no_plan", "the file does not say where in the scratch `t2` is"),
        ("not_planned", "the file does not say where in the scratch `t2` is"),
        ("outside", "`t2` is byte 1048576 to 1048846 of the scratch"),
        ("odd_place", "of the scratch; expected a multiple of 16"),
        (
            "unknown_command",
            "word 8 of the command stream: this command is not known",
        ),
        ("few_constants", "the operation reaches beyond its region"),
    ] {
        let input = models().join("odd").join(name).with_extension("tflite");
        let error = packed(&input, folder.path(), Target::Portable).err();
        let error = error.unwrap_or_else(|| panic!("{name} is packed"));
        let known = matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported);
        assert!(known && error.to_string().contains(said), "{name}: {error}");
    }
}

/// Real networks, compiled here: all are packed, proven and loaded.
#[test]
fn real_networks_load() {
    let test = "real_networks_load";
    let Some(shared) = shared() else {
        return skip(test, "no shared data");
    };
    let vela = std::env::var_os("ARENITE_VELA").unwrap_or_else(|| "vela".into());
    if Command::new(&vela).arg("--version").output().is_err() {
        return skip(
            test,
            "there is no Vela (pip install ethos-u-vela; ARENITE_VELA names another place)",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    for configuration in ["ethos-u55-128", "ethos-u65-256", "ethos-u65-512"] {
        for name in [
            "ad01_int8",
            "kws_ref_model",
            "vww_96_int8",
            "pretrainedResnet_quant",
            "tinyengine_vww",
            "tflm_keyword_scrambled",
        ] {
            let network = shared.join("data/models").join(name).with_extension("tflite");
            let mut compile = Command::new(&vela);
            compile.arg(&network).arg("--accelerator-config").arg(configuration);
            let done = compile
                .arg("--output-dir")
                .arg(folder.path())
                .output()
                .expect("it starts");
            assert!(
                done.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            let network = folder.path().join(format!("{name}_vela.tflite"));
            let file = packed(&network, folder.path(), Target::CortexM55).unwrap_or_else(|e| panic!("{name}: {e}"));
            prove(&file.view().expect("a view")).expect("it holds");
            let model = file.load().expect("it loads");
            let scratch: u32 = commands(&file)
                .iter()
                .map(|(_, op)| op.scratch_bytes)
                .max()
                .unwrap_or(0);
            eprintln!(
                "{name} for {configuration}: {} of {} steps are the NPU's, scratch {scratch}, arena {}",
                commands(&file).len(),
                file.view().expect("a view").steps().expect("steps").len(),
                model.arena_bytes(0)
            );
        }
    }
}
