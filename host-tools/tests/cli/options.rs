//! Every option of `pack`, each seen to change what comes out or to be refused by name: none is taken and ignored.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, run};

/// What an option does.
enum Outcome {
    /// It changes the model, what is printed, or the files beside it.
    Changes,
    /// It is refused, in these words.
    Refused(&'static str),
}

use Outcome::{Changes, Refused};

/// An option with what stands beside it, without and with it. `@NAME` is a file of the digits, `%NAME` one of the test's folder.
struct Row {
    option: &'static str,
    beside: &'static str,
    with: &'static str,
    outcome: Outcome,
}

const fn row(option: &'static str, beside: &'static str, with: &'static str, outcome: Outcome) -> Row {
    Row {
        option,
        beside,
        with,
        outcome,
    }
}

const INT8: &str = "@digits.trace.json --dtype int8 --calibrate @test_images.npy";
const INT8_M4: &str = "@digits.trace.json --dtype int8 --calibrate @test_images.npy --target cortex-m4";
const MLP: &str = "@mlp.trace.json";
const MLP_INT8: &str = "@mlp.trace.json --dtype int8 --calibrate @test_images.npy";
const DIGITS: &str = "@digits.trace.json";

const ROWS: &[Row] = &[
    row("output", MLP, "--output %other.bin", Changes),
    row("dialect", MLP, "--dialect tflite", Refused("the file identifier is missing")),
    row("dialect", MLP, "--dialect gguf", Refused("--dialect gguf is not built yet")),
    row("weights", MLP, "--weights %nowhere.npz", Refused("nowhere.npz")),
    row("assume", MLP, "--assume nonsense=1", Refused("nonsense")),
    row("dtype", MLP, "--dtype int8 --calibrate @test_images.npy", Changes),
    row("dtype", MLP, "--dtype int8", Refused("int8")),
    row("calibrate", MLP, "--calibrate @test_images.npy", Refused("--calibrate without --dtype")),
    row("keep-f32", MLP_INT8, "--keep-f32 fc2", Changes),
    row("keep-f32", MLP, "--keep-f32 fc2", Refused("--keep-f32 without --calibrate")),
    row("keep-f32", MLP_INT8, "--keep-f32 auto", Refused("--keep-f32 auto is not built yet")),
    row("optimise-rounding", MLP_INT8, "--optimise-rounding", Changes),
    row("optimise-rounding", MLP, "--optimise-rounding", Refused("--optimise-rounding without --calibrate")),
    row("weight-bits", "@mlp.trace.json --dtype f32", "--weight-bits 4", Changes),
    row("weight-bits", MLP, "--weight-bits 4", Refused("--weight-bits without --dtype")),
    row("weight-bits", "@mlp.trace.json --dtype f32", "--weight-bits 16", Refused("--weight-bits 16 is not built yet")),
    row("group", "@mlp.trace.json --dtype f32 --weight-bits 4", "--group 8", Changes),
    row("budget", MLP_INT8, "--budget flash=100", Refused("100")),
    row("budget", MLP, "--budget flash=1M", Refused("--budget and --target-snr without")),
    row("target-snr", MLP, "--target-snr 30", Refused("--budget and --target-snr without")),
    row("target-snr", MLP_INT8, "--target-snr 500", Refused("500")),
    row("preprocess", DIGITS, "--preprocess scale=0.5", Changes),
    row("input-dtype", INT8, "--input-dtype u8", Changes),
    row("output-dtype", INT8, "--output-dtype f32", Changes),
    row("batch", MLP, "--batch 2", Changes),
    row("batch", MLP, "--batch 0", Refused("--batch 0")),
    row("input-shape", MLP, "--input-shape 1,65", Refused("--input-shape")),
    row("target", MLP, "--target cortex-m4", Changes),
    row("size", INT8_M4, "--size", Changes),
    row("plan-nodes", "@residual.trace.json", "--plan-nodes 0", Changes),
    row("region", MLP, "--region sram=16", Refused("sram")),
    row("fit", MLP, "--fit sram=16", Refused("sram")),
    row("max-flash", MLP, "--max-flash 100", Refused("100")),
    row("explain", MLP, "--explain", Changes),
    row("no-in-place", DIGITS, "--no-in-place", Changes),
    row("winograd", "@digits.trace.json --dtype int8 --calibrate @test_images.npy --target cortex-m3", "--winograd", Changes),
    row("name", MLP, "--name another", Changes),
    row("labels", MLP, "--labels %labels.txt", Changes),
    row("max-step", DIGITS, "--max-step 2000", Changes),
    row("cores", DIGITS, "--cores 2", Changes),
    row("cores", DIGITS, "--cores 9", Refused("--cores 9")),
    row("accelerator", INT8_M4, "--accelerator %npu.toml", Changes),
    row("self-test", MLP, "--self-test @test_images.npy", Changes),
    row("sign", MLP, "--sign %key.pem --sign-counter 1", Changes),
    row("sign", MLP, "--sign %key.pem", Refused("--sign-counter")),
    row("sign-counter", MLP, "--sign-counter 1", Refused("--sign")),
    row("sign-counter", "@mlp.trace.json --sign %key.pem", "--sign-counter 2", Changes),
    row("dump-after", MLP, "--dump-after import", Changes),
    row("report", MLP, "--report %page.html", Changes),
    row("json", MLP, "--json", Changes),
];

/// Options that need a network of the shared data.
const ELSEWHERE: [(&str, &str); 1] = [("keep-dead-channels", "dead_channels::dead_channels_go_unless_they_are_kept")];

#[test]
fn every_option_changes_something_or_is_refused() {
    let [pack, _] = arenite_host::cli::commands();
    let exist: BTreeSet<String> = pack.get_arguments().filter_map(|a| a.get_long().map(str::to_string)).collect();
    let everywhere = ["help", "version"];
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.option).chain(ELSEWHERE.map(|row| row.0)).map(str::to_string).collect();
    let without: Vec<&String> = exist.difference(&rows).filter(|name| !everywhere.contains(&name.as_str())).collect();
    assert!(without.is_empty(), "options without a row here: {without:?}");
    let gone: Vec<&String> = rows.difference(&exist).collect();
    assert!(gone.is_empty(), "rows of options that do not exist: {gone:?}");

    let bench = Bench::new();
    fs::write(bench.path("labels.txt"), "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n").expect("written");
    let npu = "name = \"npu\"\nversion = 2\nkernels = \"cortex-m33\"\noperators = [\"conv2d\", \"linear\"]\nalignment = 4\nregions = [\"sram\"]\n";
    fs::write(bench.path("npu.toml"), npu).expect("written");
    done(run(ARENITE, &[Path::new("keygen"), Path::new("-o"), &bench.path("key.pem")]));
    let mut wrong = Vec::new();
    for row in ROWS {
        let (status, before) = result(&bench, row.beside);
        // Beside a missing half nothing comes out.
        let half = row.option == "sign-counter" && row.beside.contains("--sign");
        if status != Some(0) && !half {
            wrong.push(format!("--{}: without it status {status:?}: {}", row.option, String::from_utf8_lossy(&before)));
            continue;
        }
        let (status, after) = result(&bench, &format!("{} {}", row.beside, row.with));
        let text = String::from_utf8_lossy(&after).into_owned();
        match row.outcome {
            Changes if status != Some(0) => wrong.push(format!("{}: {text}", row.with)),
            Changes if before == after => wrong.push(format!("{}: changes nothing", row.with)),
            Refused(_) if !matches!(status, Some(1 | 2)) => wrong.push(format!("{}: is taken", row.with)),
            Refused(words) if !text.contains(words) => wrong.push(format!("{}: {text}", row.with)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The status of `pack` with these arguments, and all that it printed and wrote.
fn result(bench: &Bench, arguments: &str) -> (Option<i32>, Vec<u8>) {
    let outputs = ["m.bin", "other.bin", "page.html"];
    outputs.iter().for_each(|name| drop(fs::remove_file(bench.path(name))));
    let mut command = Command::new(PACK);
    for word in arguments.split_whitespace() {
        match (word.strip_prefix('@'), word.strip_prefix('%')) {
            (Some(name), _) => command.arg(digits(name)),
            (_, Some(name)) => command.arg(bench.path(name)),
            _ => command.arg(word),
        };
    }
    if !arguments.contains("--output") {
        command.arg("-o").arg(bench.path("m.bin"));
    }
    let output = command.output().expect("it starts");
    let mut all = [output.stdout, output.stderr].concat();
    for name in outputs {
        let content = fs::read(bench.path(name)).unwrap_or_default();
        all.extend(format!("\n{name}: {} bytes\n", content.len()).into_bytes());
        all.extend(content);
    }
    (output.status.code(), all)
}
