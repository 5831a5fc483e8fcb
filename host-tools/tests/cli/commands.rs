//! Effects of each command when all is well, and the usual refusals.

use std::fs;
use std::path::Path;
use std::process::Command;

use ndarray::{Array, ArrayD, Axis, Dimension, IxDyn};
use ndarray_npy::{read_npy, write_npy};

use crate::common::{ARENITE, Bench, PACK, digits, done, json, models, refused, run};

#[test]
fn pack_prints_one_summary_and_inspect_prints_it_again() {
    let bench = Bench::new();
    let model = bench.path("digits.bin");
    let output = run(
        PACK,
        &[
            &digits("digits.trace.json"),
            Path::new("-o"),
            &model,
            Path::new("--json"),
        ],
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "no bars and no chatter off a terminal"
    );
    let packed = json(&done(output));
    let inspected = json(&done(run(
        ARENITE,
        &[Path::new("inspect"), &model, Path::new("--json")],
    )));
    for (field, value) in packed.as_object().expect("an object") {
        assert_eq!(&inspected[field], value, "{field}");
    }
    for field in [
        "dialect",
        "target",
        "dtype",
        "batch",
        "name",
        "inputs",
        "outputs",
        "params",
        "macs",
        "ops",
        "pruned",
        "ops_final",
        "steps",
        "liveness_as_traced_bytes",
        "liveness_bound_bytes",
        "arena_bytes",
        "state_bytes",
        "plan_proven_optimal",
        "plan_lower_bound_bytes",
        "model_bytes",
        "weights_bytes",
        "plan_bytes",
        "stack_bytes",
        "regions",
        "assumptions",
    ] {
        assert!(packed.get(field).is_some(), "{field} is missing");
    }
    assert_eq!(packed["model_bytes"], fs::metadata(&model).expect("written").len());
    assert_eq!(bench.names(), ["digits.bin"]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (one, other) = (Bench::new(), Bench::new());
    assert_eq!(
        fs::read(one.packed("residual")).expect("written"),
        fs::read(other.packed("residual")).expect("written")
    );
}

#[test]
fn wrong_usage_ends_with_2() {
    let bench = Bench::new();
    let (input, model) = (digits("mlp.trace.json"), bench.path("m.bin"));
    let with = |more: &[&str]| {
        let mut command = Command::new(PACK);
        command.arg(&input).arg("-o").arg(&model).args(more);
        refused(command.output().expect("it starts"), 2)
    };
    assert!(
        with(&["--target", "z80"]).contains("cortex-m4"),
        "the targets that there are"
    );
    assert!(with(&["--assume", "seed"]).contains("KEY=VALUE"));
    assert!(with(&["--batch", "0"]).contains("--batch 0"));
    assert!(with(&["--fit", "sram"]).contains("sram"));
    assert!(with(&["--no-such-option"]).contains("--no-such-option"));
    assert!(with(&["--json", "--dump-after", "plan"]).contains("--dump-after"));
    refused(run::<&str>(PACK, &[]), 2);
    refused(run(ARENITE, &["fly"]), 2);
    let model = bench.packed("mlp");
    let board = Command::new(ARENITE)
        .arg("bench")
        .arg(&model)
        .args(["--on", "qemu:pdp11"])
        .output();
    assert!(
        refused(board.expect("it starts"), 2).contains("mps2-an386"),
        "the boards that there are"
    );
}

/// The same bits with a thread for the accelerator and without, and the summary says what was handed over.
#[test]
fn files_for_an_accelerator_run_beside_a_thread() {
    let bench = Bench::new();
    let declared = bench.path("npu.toml");
    let text = "name = 'npu'\nversion = 2\nkernels = 'cortex-m33'\noperators = ['conv2d', 'linear']\n";
    fs::write(&declared, text).expect("written");
    let packed = |name: &str, with: &[&str]| {
        let mut command = Command::new(PACK);
        command
            .arg(digits("residual.trace.json"))
            .arg("-o")
            .arg(bench.path(name));
        if !with.is_empty() {
            command.arg("--accelerator").arg(&declared).args(with);
        }
        done(command.output().expect("it starts"))
    };
    packed("alone.bin", &[]);
    assert!(packed("handed.bin", &["--name", "x"]).contains(" to npu (version 2, cortex-m33): "));
    let summary = json(&packed("handed.bin", &["--json"]));
    assert_eq!(summary["accelerator"]["name"], "npu");
    assert!(
        summary["accelerator"]["steps"]
            .as_array()
            .is_some_and(|steps| !steps.is_empty()),
        "{summary}"
    );
    let output = |name: &str, with: &[&str]| {
        let mut command = Command::new(ARENITE);
        command
            .arg("run")
            .arg(bench.path(name))
            .arg("--input")
            .arg(digits("test_images.npy"));
        let report = json(&done(command.args(with).arg("--json").output().expect("it starts")));
        report["outputs"][0]["sha256"].to_string()
    };
    assert_eq!(output("handed.bin", &[]), output("handed.bin", &["--profile"]));
}

#[test]
fn every_stage_prints_what_it_leaves() {
    let bench = Bench::new();
    let after = |stage: &str| {
        let output = Command::new(PACK)
            .arg(digits("residual.trace.json"))
            .args(["--dump-after", stage, "-o"])
            .arg(bench.path("m.bin"))
            .output();
        let text = done(output.expect("it starts"));
        assert!(text.starts_with("network "), "{stage}: {text}");
        text
    };
    let [import, fold, fuse, schedule, plan] = ["import", "fold", "fuse", "schedule", "plan"].map(after);
    assert!(
        import.contains("BatchNorm") && !fold.contains("BatchNorm"),
        "{import}\n{fold}"
    );
    assert!(fold.contains("Nchw") && !fuse.contains("Nchw"), "{fold}\n{fuse}");
    assert!(fuse.contains("input ") && !schedule.contains("input "), "{schedule}");
    assert!(
        schedule.contains("scratch[") && !schedule.contains("lower bound"),
        "{schedule}"
    );
    assert!(plan.contains("lower bound"), "{plan}");
}

#[test]
fn a_failure_names_the_file_and_leaves_the_old_model() {
    let bench = Bench::new();
    let (bad, model) = (bench.path("bad.trace.json"), bench.path("m.bin"));
    let good = fs::read_to_string(digits("mlp.trace.json")).expect("committed");
    fs::write(&bad, good.replacen("\"op\": \"tanh\"", "\"op\": \"swirl\"", 1)).expect("written");
    for values in ["mlp.safetensors", "mlp.samples.safetensors"] {
        fs::copy(digits(values), bench.path(values)).expect("copied");
    }
    fs::write(&model, "the old one").expect("written");
    let before = bench.names();
    let message = refused(run(PACK, &[&bad, Path::new("-o"), &model]), 1);
    assert!(
        message.contains("bad.trace.json") && message.contains("swirl"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(&model).expect("still there"), "the old one");
    assert_eq!(bench.names(), before);

    let absent = refused(run(PACK, &[&bench.path("none.json"), Path::new("-o"), &model]), 1);
    assert!(absent.contains("none.json"), "{absent}");
    let flash = [
        digits("mlp.trace.json"),
        "-o".into(),
        model.clone(),
        "--max-flash".into(),
        "1K".into(),
    ];
    let message = refused(run(PACK, &flash), 1);
    assert!(message.contains("1024") || message.contains("1,024"), "{message}");
    assert_eq!(fs::read_to_string(&model).expect("still there"), "the old one");
}

#[test]
fn seeded_weights_are_those_that_arenite_weights_writes() {
    let bench = Bench::new();
    let trace = bench.path("mlp.trace.json");
    let text = fs::read_to_string(digits("mlp.trace.json")).expect("committed");
    let mut stripped = json(&text);
    stripped
        .as_object_mut()
        .expect("an object")
        .retain(|key, _| key != "samples");
    fs::write(&trace, stripped.to_string()).expect("written");
    fs::copy(digits("mlp.safetensors"), bench.path("mlp.safetensors")).expect("copied");
    let weights = bench.path("w.safetensors");
    let write = Command::new(ARENITE)
        .arg("weights")
        .arg(&trace)
        .args(["--seed", "7", "-o"])
        .arg(&weights)
        .output();
    done(write.expect("it starts"));
    let pack = |from: &str, to: &Path| {
        done(
            Command::new(PACK)
                .arg(&trace)
                .args(["--weights", from, "-o"])
                .arg(to)
                .output()
                .expect("it starts"),
        );
        fs::read(to).expect("written")
    };
    let seeded = pack("seeded:7", &bench.path("a.bin"));
    assert_eq!(seeded, pack(weights.to_str().expect("UTF-8"), &bench.path("b.bin")));
    assert_ne!(seeded, pack("seeded:8", &bench.path("c.bin")));
}

#[test]
fn run_takes_one_image_or_a_stack_of_them() {
    let bench = Bench::new();
    let model = bench.packed("digits");
    let images: ArrayD<f32> = read_npy(digits("test_images.npy")).expect("committed");
    let logits: ArrayD<f32> = read_npy(digits("digits.test_logits.npy")).expect("committed");
    let count = 5;
    let stack = images.slice_axis(Axis(0), (0..count).into()).to_owned();
    let (input, output) = (bench.path("x.npy"), bench.path("y.npy"));
    let go = |array: &ArrayD<f32>| {
        write_npy(&input, array).expect("written");
        let mut command = Command::new(ARENITE);
        command
            .arg("run")
            .arg(&model)
            .arg("--input")
            .arg(&input)
            .arg("--output")
            .arg(&output)
            .arg("--json");
        (
            json(&done(command.output().expect("it starts"))),
            read_npy::<_, ArrayD<f32>>(&output).expect("written"),
        )
    };
    let (report, many) = go(&stack);
    assert_eq!(report["board"], "host");
    assert_eq!(report["outputs"][0]["dtype"], "f32");
    assert_eq!(many.shape(), [count, 1, 10]);
    let largest = logits.iter().fold(0f32, |m, v| m.max(v.abs()));
    for (found, expected) in many.iter().zip(&logits) {
        assert!((found - expected).abs() <= 1e-5 * largest, "{found} for {expected}");
    }
    let (_, one) = go(&stack.index_axis(Axis(0), 2).to_owned());
    assert_eq!(one, many.index_axis(Axis(0), 2));

    // Another shape is refused with both.
    write_npy(&input, &Array::zeros(IxDyn(&[3, 3])).mapv(|v: f32| v)).expect("written");
    let message = refused(
        run(ARENITE, &[Path::new("run"), &model, Path::new("--input"), &input]),
        1,
    );
    assert!(message.contains("x.npy") && message.contains('3'), "{message}");
}

#[test]
fn floats_for_an_int8_model_are_quantised_and_that_is_said() {
    let bench = Bench::new();
    let (model, input) = (bench.path("m.bin"), bench.path("x.npy"));
    let network = models().join("tflite_ops/abs_0.tflite");
    let packed = json(&done(run(
        PACK,
        &[&network, Path::new("-o"), &model, Path::new("--json")],
    )));
    let port = &packed["inputs"][0];
    assert_eq!(port["dtype"], "int8");
    let shape: Vec<usize> = port["shape"]
        .as_array()
        .expect("a shape")
        .iter()
        .map(|n| n.as_u64().expect("an extent") as usize)
        .collect();
    let scale = port["scale"].as_f64().expect("a scale") as f32;
    let zero_point = port["zero_point"].as_i64().expect("a zero point");
    let stored = ArrayD::from_shape_fn(IxDyn(&shape), |at| ((at[at.ndim() - 1] * 7) % 31) as i8 - 15);
    let go = || {
        let output = run(
            ARENITE,
            &[
                Path::new("run"),
                &model,
                Path::new("--input"),
                &input,
                Path::new("--json"),
            ],
        );
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        (json(&done(output))["outputs"][0]["sha256"].clone(), notes)
    };
    write_npy(&input, &stored).expect("written");
    let (expected, notes) = go();
    assert_eq!(notes, "");
    write_npy(&input, &stored.mapv(|v| (i64::from(v) - zero_point) as f32 * scale)).expect("written");
    let (found, notes) = go();
    assert_eq!(found, expected);
    assert!(notes.contains("quantised"), "{notes}");
}

#[test]
fn verify_and_inspect_refuse_a_damaged_model() {
    let bench = Bench::new();
    let model = bench.packed("residual");
    done(run(ARENITE, &[Path::new("verify"), &model]));
    let mut bytes = fs::read(&model).expect("written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&model, &bytes).expect("written");
    for command in ["verify", "inspect"] {
        let message = refused(run(ARENITE, &[Path::new(command), &model]), 1);
        assert!(message.contains("residual.bin"), "{message}");
    }
    fs::write(&model, &bytes[..100]).expect("written");
    refused(run(ARENITE, &[Path::new("verify"), &model]), 1);
}

#[test]
fn plan_reads_rows_and_writes_offsets() {
    let bench = Bench::new();
    let (rows, planned) = (bench.path("b.csv"), bench.path("p.csv"));
    fs::write(&rows, "id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n").expect("written");
    let report = json(&done(run(
        ARENITE,
        &[Path::new("plan"), &rows, Path::new("-o"), &planned, Path::new("--json")],
    )));
    assert_eq!((&report["height"], &report["lower_bound"]), (&150.into(), &150.into()));
    assert_eq!(report["proven_optimal"], true);
    assert!(report["seconds"].is_number());
    let text = fs::read_to_string(&planned).expect("written");
    assert!(
        text.starts_with("id,lower,upper,size,offset\n") && text.lines().count() == 4,
        "{text}"
    );

    let tight = Command::new(ARENITE)
        .arg("plan")
        .arg(&rows)
        .args(["--capacity", "149"])
        .output();
    assert!(refused(tight.expect("it starts"), 1).contains("149"));
    fs::write(&rows, "id,lower,upper,size\na,0,2,100\nb,3,1,50\n").expect("written");
    let message = refused(run(ARENITE, &[Path::new("plan"), &rows]), 1);
    assert!(
        message.contains("b.csv") && message.contains('3'),
        "the file and the line: {message}"
    );
}

#[test]
fn several_inputs_make_a_bundle_that_verify_knows() {
    let bench = Bench::new();
    let bundle = bench.path("two.bin");
    let inputs = [digits("mlp.trace.json"), digits("residual.trace.json")];
    let mut command = Command::new(PACK);
    command.args(&inputs).arg("-o").arg(&bundle).arg("--json");
    let report = json(&done(command.output().expect("it starts")));
    let arenas: Vec<u64> = report["models"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|model| model["arena_bytes"].as_u64().expect("bytes"))
        .collect();
    assert_eq!(arenas.len(), 2);
    assert_eq!(
        report["arena_bytes"].as_u64(),
        arenas.iter().max().copied(),
        "run in turn, they share it"
    );
}

/// Options that do not go together are wrong usage; what they say is what to do.
#[test]
fn weights_of_few_bits_say_what_they_want() {
    let bench = Bench::new();
    let pack = |options: &[&str]| {
        let mut command = Command::new(PACK);
        command
            .arg(digits("mlp.trace.json"))
            .arg("-o")
            .arg(bench.path("m.bin"))
            .args(options);
        command.output().expect("it starts")
    };
    for (options, status, said) in [
        (&["--weight-bits", "4"][..], 2, "--dtype f32"),
        (&["--dtype", "f32", "--weight-bits", "5"], 2, "8, 4"),
        (&["--dtype", "f32", "--weight-bits", "16", "--group", "8"], 2, "--group"),
        (
            &["--dtype", "f32", "--weight-bits", "32", "--keep-f32", "fc1"],
            2,
            "--keep-f32",
        ),
        (&["--dtype", "f32", "--group", "8"], 2, "--weight-bits"),
        (&["--dtype", "f32", "--weight-bits", "4", "--group", "0"], 2, "--group"),
        (&["--dtype", "f32", "--keep-f32", "fc1"], 2, "--keep-f32"),
        (&["--dtype", "int16x8", "--weight-bits", "4"], 1, "--weight-bits"),
        (&["--dtype", "int8", "--weight-bits", "4"], 2, "--calibrate"),
        (&["--dtype", "int8", "--weight-bits", "8"], 2, "8 bits"),
        (&["--budget", "flash=8K"], 2, "--calibrate"),
        (
            &["--dtype", "int16x8", "--calibrate", "x.npy", "--target-snr", "30"],
            2,
            "--dtype int8",
        ),
        (
            &["--dtype", "int8", "--calibrate", "x.npy", "--budget", "sram=8K"],
            2,
            "flash=SIZE",
        ),
        (
            &["--dtype", "int8", "--calibrate", "x.npy", "--budget", "flash=much"],
            2,
            "a size such as",
        ),
        (
            &["--dtype", "int8", "--calibrate", "x.npy", "--target-snr", "NaN"],
            2,
            "a number of dB",
        ),
    ] {
        let message = refused(pack(options), status);
        assert!(message.contains(said), "{options:?}: {message}");
    }
    assert!(bench.names().is_empty());
    let report = json(&done(pack(&[
        "--dtype",
        "f32",
        "--weight-bits",
        "4",
        "--group",
        "8",
        "--json",
    ])));
    assert_eq!(
        [&report["weight_only"]["bits"], &report["weight_only"]["group"]],
        [4, 8]
    );
    assert_eq!(report["dtype"], "f32");
}
