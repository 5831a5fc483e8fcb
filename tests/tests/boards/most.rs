//! The most instructions that packing tells of, against what boards count: the tracked results, other inputs, and generated steps that the forms were not
//! made from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arenite::{DType, KernelId, Step};
use arenite_host::board::{BOARDS, Board, RunOptions, most_instructions, ready, run};
use arenite_host::model::{ModelFile, ModelView};
use arenite_host::worst::instructions::{Instructions, TABLE, counts, row, value};
use arenite_tests::kit::is_generated;
use arenite_tests::{shared, skip};
use arenite_xtask::most::generate::Random;
use arenite_xtask::most::measure::count;
use arenite_xtask::results::{Configuration, Measured, SUBJECTS, Subject, packed, quick, read};

/// A bound may be so many hundredths of what was counted: of a run, and of each step whose count is no less than [`SMALL`] and does not depend on the data.
const HUNDREDTHS: u64 = 130;
const SMALL: u64 = 1500;

/// Steps of these kernels may be above by more, as runs may not: their loops have more cases than their forms tell apart.
const LOOSE: [&str; 9] = [
    "MveConv2dS8",
    "MveW4Conv2dS8",
    "MveGroupsConv2dS8",
    "MveSumS8",
    "IntDepthwiseS8",
    "IntDenseS8",
    "IntConv2dS8",
    "AvgPoolS8",
    "F32",
];
const LOOSE_HUNDREDTHS: u64 = 190;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn model(subject: &Subject) -> Option<PathBuf> {
    let model = subject.file(&root().join("tests/models"), shared().as_deref());
    if model.is_none() {
        skip(subject.name, "no shared data");
    }
    model
}

/// Where the bounds of `table` are below what `board` counted for the steps of a model, or far above. `largest` becomes the largest bound of a run, in parts of
/// its count.
fn wrong(table: &Instructions, view: &ModelView<'_>, board: &Board, counted: &[u64], largest: &mut f64) -> Vec<String> {
    let bounds = board.counts_as();
    // Longer vectors take fewer instructions than the bounds, which are those of the shortest.
    let longer = board.vector_bits() > bounds.vector_bits();
    let name = bounds.name;
    let steps = view.steps().expect("steps");
    assert_eq!(steps.len(), counted.len());
    let (mut found, mut total, mut by_data) = (Vec::new(), 0, false);
    for (index, (step, &is)) in steps.iter().zip(counted).enumerate() {
        let kernel = step.kernel().name();
        let (most, row) = match (
            table.of(name, step, view.weights()),
            table.row(name, step, view.weights()),
        ) {
            (Ok(most), Ok(row)) => (most, row),
            (_, row) => {
                found.push(format!("step {index} {kernel}: no bound: {:?}", row.err()));
                continue;
            }
        };
        total += most.min(u64::MAX >> 8);
        by_data |= row.by_data.is_some();
        let loose = LOOSE.iter().any(|name| kernel.contains(name));
        let limit = if loose { LOOSE_HUNDREDTHS } else { HUNDREDTHS };
        let far = !longer && row.by_data.is_none() && is >= SMALL && most > is * limit / 100;
        if most < is || far {
            found.push(format!("step {index} {kernel}: {is} counted, at most {most}"));
        }
    }
    let is: u64 = counted.iter().sum();
    *largest = largest.max(total as f64 / is as f64);
    // A kernel of f32 whose count depends on the data is most of a network.
    let float = by_data && steps.iter().any(|step| step.kernel().name().contains("F32"));
    if total > is * HUNDREDTHS / 100 && !float && !longer {
        found.push(format!("{is} counted, at most {total}"));
    }
    found
}

/// The file that a tracked result was measured of.
fn file_of(measured: &Measured, model: &Path, folder: &Path) -> (ModelFile, &'static Board) {
    let (board, target, size) = measured.key();
    let board = Board::find(board).expect("a board");
    let target = arenite::Target::ALL.into_iter().find(|known| known.name() == target);
    let target = target.expect("a target");
    let file = packed(model, Configuration { board, target, size }, folder).unwrap_or_else(|e| panic!("{e}"));
    (file, board)
}

/// All tracked counts, of inputs of zeros, of the models of `wanted` names.
fn against_results(table: &Instructions, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for subject in SUBJECTS.iter().filter(|subject| wanted(subject.name)) {
        let Some(model) = model(subject) else { continue };
        let tracked = read(&root().join(format!("tests/results/{}.json", subject.name)));
        for measured in &tracked.unwrap_or_else(|e| panic!("{e}")) {
            let folder = tempfile::tempdir().expect("a folder");
            let (file, board) = file_of(measured, &model, folder.path());
            let counted: Vec<u64> = measured.bench.steps.iter().map(|step| step.instructions).collect();
            let mut largest = 0.0;
            let view = file.view().expect("an intact file");
            let texts = wrong(table, &view, board, &counted, &mut largest);
            let key = format!("{} {:?}", subject.name, measured.key());
            println!("{key}: {largest:.3}");
            found.extend(texts.into_iter().map(|text| format!("{key}: {text}")));
        }
    }
    found
}

#[test]
fn tracked_counts_are_at_most_the_bound_and_at_least_ten_thirteenths_of_it() {
    let found = against_results(&TABLE, |_| true);
    assert!(
        found.is_empty(),
        "{}\n`cargo xtask bench --most` makes the forms again",
        found.join("\n")
    );
}

#[test]
fn a_bound_that_is_halved_or_doubled_is_seen() {
    for factor in [0.5, 2.0] {
        let mut table = TABLE.clone();
        let rows = table.0.values_mut().flat_map(|rows| rows.values_mut());
        rows.flat_map(|row| row.per.values_mut()).for_each(|per| *per *= factor);
        let found = against_results(&table, |name| name == "digits");
        let run = format!("{factor}: {found:?}");
        assert!(
            found
                .iter()
                .any(|text| text.contains("mps2-an386") && text.contains("step 1")),
            "{run}"
        );
    }
}

/// Inputs of any values, of one value, and of extremes.
fn inputs(view: &ModelView<'_>) -> Vec<u8> {
    let mut random = Random::new(7);
    let mut all = Vec::new();
    for how in 0..4 {
        for port in &view.inputs {
            let bytes = port.bytes().expect("a size") as usize;
            let start = all.len();
            while all.len() < start + bytes {
                match (port.dtype, how) {
                    (DType::F32, _) => {
                        let extremes = [3e38, -3e38, 1e-39, -1.0];
                        let value = [random.float(), 0.7, extremes[usize::from(random.byte() % 4)], f32::MAX][how];
                        all.extend(value.to_le_bytes());
                    }
                    _ => all.push([random.byte(), 0x55, [0x80, 0x7f][usize::from(random.byte() % 2)], 0x80][how]),
                }
            }
            all.truncate(start + bytes);
        }
    }
    all
}

/// Runs a model on such inputs.
fn fresh(subject: &Subject, configuration: Configuration, largest: &mut f64) -> Vec<String> {
    let board = configuration.board;
    let key = format!("{} on {} for {}", subject.name, board.name, configuration.target.name());
    if let Err(reason) = ready(board) {
        skip(&key, &reason.to_string());
        return Vec::new();
    }
    let Some(model) = model(subject) else { return Vec::new() };
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(&model, configuration, folder.path()).unwrap_or_else(|e| panic!("{e}"));
    let view = file.view().expect("an intact file");
    let options = RunOptions {
        runs: 4,
        profile: true,
        timeout: std::time::Duration::from_secs(3600),
        ..RunOptions::default()
    };
    let report = match run(board, file.blob(), &inputs(&view), &options) {
        Ok(report) => report,
        Err(e) => {
            let e = arenite_host::Error::from(e);
            assert_eq!(e.kind(), arenite_host::ErrorKind::DoesNotFit, "{key}: {e}");
            return Vec::new();
        }
    };
    assert_eq!(report.steps.len(), 4);
    let each = report.steps.iter().enumerate().flat_map(|(input, counted)| {
        let texts = wrong(&TABLE, &view, board, counted, largest);
        texts
            .into_iter()
            .map(|text| format!("{key}: input {input}: {text}"))
            .collect::<Vec<_>>()
    });
    each.collect()
}

fn fresh_of(wanted: impl Fn(&Subject, &Configuration) -> bool) {
    let (mut found, mut largest) = (Vec::new(), 0.0);
    for subject in &SUBJECTS {
        for configuration in subject.configurations() {
            if wanted(subject, &configuration) {
                found.extend(fresh(subject, configuration, &mut largest));
            }
        }
    }
    println!("the largest bound: {largest:.3} times the count");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn other_inputs_are_at_most_the_bound() {
    fresh_of(quick);
}

#[test]
#[ignore = "long: every tracked model on every board"]
fn most_of_tracked_models_long() {
    fresh_of(|subject, configuration| !quick(subject, configuration));
}

/// Contents of any kind; seeds that `cargo xtask bench --most` does not take.
fn generated(board: &'static Board, steps: usize, kernels: impl Fn(&KernelId) -> bool) {
    if let Err(reason) = ready(board) {
        skip(board.name, &reason.to_string());
        return;
    }
    let mut found = Vec::new();
    let rows = &TABLE.0[board.name];
    for &kernel in KernelId::ALL
        .iter()
        .filter(|kernel| board.has(**kernel) && is_generated(**kernel) && kernels(kernel))
    {
        let (mut all, mut above, mut sum) = (0, 0, 0.0);
        for sample in count(board, kernel, 0xF_0000, steps).unwrap_or_else(|e| panic!("{e}")) {
            let Some(row) = rows.get(&sample.row()) else {
                continue;
            };
            let most = value(&row.per, &counts(&sample.generated.step, &sample.weights)) as f64;
            (all, sum) = (all + 1, sum + most / sample.most());
            if most < sample.most() {
                above += 1;
                found.push(format!(
                    "{}: {:?}: {} counted, at most {most}",
                    board.name,
                    sample.generated.step,
                    sample.most()
                ));
            }
        }
        println!(
            "{} {}: {above} of {all} above, on average {:.3}",
            board.name,
            kernel.name(),
            sum / f64::from(all)
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn fresh_steps_are_at_most_their_bound() {
    let quick = ["DspAvgPoolS8", "DspSumS8", "MaxPoolF32"];
    generated(Board::find("mps2-an386").expect("a board"), 60, |kernel| {
        quick.contains(&kernel.name())
    });
}

/// A count that a form multiplies has one name.
#[test]
fn no_count_has_the_name_of_another() {
    let board = Board::find("mps3-an547").expect("a board");
    for &kernel in KernelId::ALL.iter().filter(|kernel| board.has(**kernel)) {
        let mut random = Random::new(3);
        let Some(generated) = (0..50).find_map(|_| arenite_xtask::most::generate::step(kernel, &mut random, 0, 0))
        else {
            continue;
        };
        let mut names = BTreeSet::new();
        for (name, _) in counts(&generated.step, &generated.constants).iter().flatten() {
            assert!(*name == "1" || names.insert(*name), "{}: {name}", kernel.name());
            assert!(!name.contains('*'), "{}: {name}", kernel.name());
        }
    }
}

#[test]
fn every_kernel_has_a_form_on_every_board_that_has_it() {
    for board in &BOARDS {
        let rows = TABLE.0.get(board.counts_as().name).expect("forms");
        let has = |kernel: &&KernelId| board.has(**kernel) && is_generated(**kernel);
        for &kernel in KernelId::ALL.iter().filter(has) {
            let of_it = |row: &String| row.split(' ').next() == Some(kernel.name());
            assert!(rows.keys().any(of_it), "{}: {}", board.name, kernel.name());
        }
    }
}

/// Steps that no form was made for have no bound, and say why.
#[test]
fn what_has_no_form_has_no_bound() {
    let board = Board::find("mps2-an386").expect("a board");
    let mut random = Random::new(1);
    let mut some = || arenite_xtask::most::generate::step(KernelId::Conv2dS8, &mut random, 0, 0);
    let generated = (0..50).find_map(|_| some()).expect("a step");
    assert!(most_instructions(board, &generated.step, &generated.constants).is_ok());
    let none = Instructions::default().of(board.name, &generated.step, &generated.constants);
    assert_eq!(none, Err("no kernel of this board has a form"));
    let (name, steps) = (board.counts_as().name, &generated.step);
    let mut table = TABLE.clone();
    let rows = table.0.get_mut(name).expect("forms");
    rows.retain(|row, _| !row.starts_with("Conv2dS8"));
    let none = table.of(name, steps, &generated.constants);
    assert_eq!(none, Err("no generated step is like it: the kernel has no form for it"));
}

/// Windows that kernels seldom meet have rows of their own.
#[test]
fn dilated_and_grouped_windows_have_rows_of_their_own() {
    let mut random = Random::new(1);
    let mut some = || arenite_xtask::most::generate::step(KernelId::Conv2dS8, &mut random, 0, 0);
    let generated = (0..50).find_map(|_| some()).expect("a step");
    let changed = |change: &dyn Fn(&mut arenite::ops::conv2d::Conv2dS8)| {
        let mut step = generated.step.clone();
        if let Step::Conv2dS8(op) = &mut step {
            op.window.dilation = [1, 1];
            (op.groups, op.window.input[2], op.window.output[2]) = (1, 4, 6);
            change(op);
        }
        row(&step, &generated.constants)
    };
    assert_eq!(changed(&|_| {}), "Conv2dS8");
    assert_eq!(changed(&|op| op.window.dilation = [1, 2]), "Conv2dS8 dilated");
    assert_eq!(changed(&|op| op.groups = 2), "Conv2dS8 in groups");
    assert_eq!(
        changed(&|op| (op.groups, op.window.output[2]) = (4, 4)),
        "Conv2dS8 by channel"
    );
}
