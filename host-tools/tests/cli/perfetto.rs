//! `arenite trace`: runs for Perfetto, of figures that are made up, so that no board is needed; and what the command refuses.

use std::path::Path;

use arenite_host::board::{Bench as Figures, BenchStep};
use arenite_host::model::ModelFile;
use arenite_host::perfetto::Timeline;
use serde_json::Value;

use crate::common::{ARENITE, Bench, PACK, digits, done, refused, run};

/// Figures of a file: step I takes 100 + I instructions, and ten times as many cycles where there are any.
fn figures(file: &ModelFile, cycles: bool) -> Figures {
    let steps = file.view().and_then(|view| view.steps()).expect("steps").len();
    let of = |index: usize| BenchStep {
        index,
        name: format!("a \"{index}\"\n</script>"),
        op: "conv2d".into(),
        kernel: "Conv2dF32".into(),
        instructions: 100 + index as u64,
        macs: 7,
        bound: None,
        at_most: Some(999),
        cycles: cycles.then_some(10 * (100 + index as u64)),
        chip_cycles: None,
    };
    Figures {
        board: "a board".into(),
        target: "portable".into(),
        instructions: 1,
        load_instructions: 2,
        load_crc_instructions: None,
        cycles: cycles.then_some(3),
        cycles_source: None,
        chip: None,
        chip_cycles: None,
        cores: Vec::new(),
        steps: (0..steps).map(of).collect(),
        arena_bytes: 0,
        arena_touched_bytes: 0,
        state_bytes: 0,
        stack_bytes: 0,
        load_stack_bytes: 0,
        stack_at_most: None,
        load_stack_at_most: None,
        code_bytes: None,
    }
}

fn packed(bench: &Bench, with: &[&str]) -> ModelFile {
    let path = bench.path("m.bin");
    let mut words = vec![digits("digits.trace.json"), "-o".into(), path.clone()];
    words.extend(with.iter().map(Into::into));
    done(run(PACK, &words));
    ModelFile::open(&path).expect("packed")
}

/// Core, start and end of each step.
fn spans(trace: &Value) -> Vec<(u64, u64, u64)> {
    let events = trace["traceEvents"].as_array().expect("events");
    let steps = events.iter().filter(|event| event["ph"] == "X");
    let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
    steps
        .map(|event| {
            let start = number(event, "ts");
            (number(event, "tid"), start, start + number(event, "dur"))
        })
        .collect()
}

#[test]
fn steps_of_one_core_follow_each_other() {
    let bench = Bench::new();
    let file = packed(&bench, &[]);
    let view = file.view().expect("a model");
    for cycles in [false, true] {
        let figures = figures(&file, cycles);
        let timeline = Timeline::of(&figures, &view);
        let trace = timeline.json();
        let (mut now, factor) = (0, if cycles { 10 } else { 1 });
        for (index, (core, start, end)) in spans(&trace).into_iter().enumerate() {
            assert_eq!((core, start, end), (0, now, now + factor * (100 + index as u64)));
            now = end;
        }
        assert_eq!(timeline.end(), now);
        let unit = if cycles { "estimated cycle" } else { "instruction" };
        assert!(timeline.unit() == unit && trace["otherData"]["unit"].as_str().expect("a text").ends_with(unit));
        // A name is text, whatever it holds.
        let again: Value = serde_json::from_str(&trace.to_string()).expect("JSON");
        let names = again["traceEvents"].as_array().expect("events").iter();
        assert!(names.clone().any(|event| event["name"] == "a \"3\"\n</script>"));
        assert_eq!(again["traceEvents"][2]["args"]["at_most"], 999);
    }
}

/// No step of a group begins before all steps of the one before have ended, and a core does one thing at a time.
#[test]
fn cores_meet_at_barriers() {
    let bench = Bench::new();
    let file = packed(&bench, &["--cores", "3"]);
    let view = file.view().expect("a model");
    let figures = figures(&file, false);
    let spans = spans(&Timeline::of(&figures, &view).json());
    let (cores, of_steps) = view.cores().expect("three cores");
    assert!(cores == 3 && spans.iter().any(|(core, ..)| *core == 2));
    let (mut before, mut end, mut groups) = (0, 0, 0);
    let mut free = [0; 3];
    for (&(core, start, stop), &on) in spans.iter().zip(of_steps) {
        if on & 0x80 != 0 {
            (before, groups) = (end, groups + 1);
        }
        assert!(u64::from(on & 0x7F) == core && start >= before.max(free[core as usize]));
        assert!(
            start == before || start == free[core as usize],
            "nobody waits for nothing"
        );
        free[core as usize] = stop;
        end = end.max(stop);
    }
    assert!(groups > 3, "{groups}");
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let bench = Bench::new();
    drop(packed(&bench, &[]));
    let (model, trace) = (bench.path("m.bin"), bench.path("t.json"));
    let traced = |on: &str, output: &Path| {
        run(
            ARENITE,
            &[
                "trace".as_ref(),
                model.as_os_str(),
                "--on".as_ref(),
                on.as_ref(),
                "--perfetto".as_ref(),
                output.as_os_str(),
            ],
        )
    };
    let message = refused(traced("host", &trace), 2);
    assert!(message.contains("counts no instructions"), "{message}");
    let message = refused(traced("qemu:mps2-an386", &model), 2);
    assert!(message.contains("the output is the input"), "{message}");
    std::fs::write(
        bench.path("npu.toml"),
        "name = 'npu'\nversion = 2\nkernels = 'cortex-m33'\noperators = ['conv2d', 'linear']\n",
    )
    .expect("written");
    let declared = bench.path("npu.toml");
    drop(packed(&bench, &["--accelerator", declared.to_str().expect("a name")]));
    let message = refused(traced("qemu:mps2-an386", &trace), 1);
    assert!(
        message.contains("steps that an accelerator has are not counted one by one"),
        "{message}"
    );
    assert!(!trace.exists());
}
