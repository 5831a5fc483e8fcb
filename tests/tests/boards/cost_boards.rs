//! Instructions and stack of load and run on every board against what they are bounded by: the file's bytes, `Model::cost`, and the table of stacks.

use std::time::Duration;

use arenite::kernels::Backend;
use arenite::testkit::{Packed, Workspace, packed};
use arenite::{KernelId, Model};
use arenite_host::board::{BOARDS, Board, BoardError, RunOptions, ready, run};
use arenite_host::model::Blob as OnBoard;
use arenite_host::worst::stack::TABLE;
use arenite_tests::blob::{Blob, aligned, shared_by};
use arenite_tests::kit::is_generated;
use arenite_tests::{boards_by_turns, skip};
use arenite_xtask::most::axes::{STEP, instructions_of_a_unit};
use arenite_xtask::most::measure::count;

/// Steps of a file, which share their constants.
const STEPS: usize = 32;

/// Cases that a kernel's dearest one is looked for among.
const CASES: u32 = 60;

/// Instructions of a load beside those for each byte of the file.
const LOAD: u64 = 20_000;

/// Instructions of a load for each byte of the file.
fn of_a_byte(board: &Board) -> u64 {
    if board.triple.starts_with("thumbv6m") { 160 } else { 70 }
}

/// The case of a kernel that costs most: what a step costs, and a file of it.
fn dearest(kernel: KernelId, workspace: &mut Workspace) -> Option<(u64, Vec<u8>)> {
    let files = (0..CASES).filter_map(|seed| {
        let mut params = [0; 256];
        let Packed {
            params,
            constants,
            arena,
        } = packed(kernel, seed, &mut params, workspace)?;
        let blob = Blob {
            arena: [arena as u32, 0, 0, 0],
            steps: vec![(kernel as u8, params.to_vec()); STEPS],
            weights: constants.to_vec(),
            ..Blob::default()
        };
        let file = blob.file();
        let cost = Model::load(aligned(&file).bytes()).ok()?.costs().next()?.total();
        Some((cost, file))
    });
    files.max_by_key(|(cost, _)| *cost)
}

/// A step takes on several cores what it takes on the board of one of them.
fn boards_of_one_core() -> impl Iterator<Item = &'static Board> {
    BOARDS.iter().filter(|board| board.cores() == 1)
}

/// Returns the kernels of a board that exceed their bounds.
fn exceeding(board: &'static Board, workspace: &mut Workspace) -> Vec<String> {
    let mut found = Vec::new();
    let (mut loads, mut steps) = ((0, ""), (0, ""));
    let (a_byte, a_unit) = (of_a_byte(board), instructions_of_a_unit(board));
    // The costs of portable kernels are held along their axes: `cost_axes`.
    for &kernel in KernelId::ALL
        .iter()
        .filter(|kernel| kernel.backend() != Backend::Scalar)
    {
        let Some((cost, file)) = dearest(kernel, workspace).filter(|_| board.has(kernel)) else {
            continue;
        };
        let options = RunOptions {
            profile: true,
            timeout: Duration::from_secs(600),
            ..RunOptions::default()
        };
        let report = match run(board, OnBoard::Bytes(&file), &[], &options) {
            Ok(report) => report,
            // Its program leaves kernels out, for want of flash.
            Err(BoardError::Refused { name, .. }) if name == "Kernel" && board.firmware == ["small-flash"] => continue,
            Err(error) => panic!("{error}"),
        };
        let (name, bytes, load) = (kernel.name(), file.len() as u64, report.load_instructions);
        let step = report.steps.iter().flatten().copied().max().unwrap_or(0);
        let stack = TABLE.bound(board.name, [kernel]).expect("a known kernel");
        if u64::from(report.stack_bytes) > stack.run || u64::from(report.load_stack_bytes) > stack.load {
            let (run, load) = (report.stack_bytes, report.load_stack_bytes);
            found.push(format!("{name}: {run} and {load} bytes of stack, at most {stack:?}"));
        }
        if load > a_byte * bytes + LOAD {
            found.push(format!("{name}: load {load} of {bytes} bytes"));
        }
        if step == 0 || step > a_unit * cost + STEP {
            found.push(format!("{name}: {step} instructions, cost {cost}"));
        }
        let tenths = |instructions: u64, beside: u64, units: u64| instructions.saturating_sub(beside) * 10 / units;
        loads = loads.max((tenths(load, LOAD, bytes), name));
        steps = steps.max((tenths(step, STEP, cost), name));
        println!(
            "{} {name}: load {load} of {bytes} bytes, step {step} of cost {cost}",
            board.name
        );
    }
    println!(
        "{}: at most, in tenths: instructions a byte {loads:?}, a unit of cost {steps:?}",
        board.name
    );
    found.iter().map(|text| format!("{}: {text}", board.name)).collect()
}

/// How often a load looks at a byte of the file, at most: once, and 16 times again where steps share constants and are unlike.
const LOOKS: u64 = 1 + 16;

/// Returns the excess of a load of steps that all share one block of constants and want it checked anew, up to the limit.
fn exceeding_by_sharing(board: &'static Board) -> Option<String> {
    let file = shared_by(SHARING, SHARING);
    let options = RunOptions {
        timeout: Duration::from_secs(600),
        ..RunOptions::default()
    };
    let report = run(board, OnBoard::Bytes(&file), &[], &options).unwrap_or_else(|error| panic!("{error}"));
    let (bytes, load) = (file.len() as u64, report.load_instructions);
    println!(
        "{}: shared constants: load {load} of {bytes} bytes, {} for each",
        board.name,
        load / bytes
    );
    (load > LOOKS * of_a_byte(board) * bytes)
        .then(|| format!("{}: shared constants: load {load} of {bytes} bytes", board.name))
}

/// Unlike steps of which one more would be refused.
const SHARING: usize = 17;

#[test]
fn loads_and_steps_are_within_their_bounds() {
    let mut workspace = Box::new(Workspace::new());
    let mut found = Vec::new();
    for board in boards_by_turns("loads_and_steps_are_within_their_bounds", boards_of_one_core()) {
        match ready(board) {
            Ok(()) => {
                found.extend(exceeding(board, &mut workspace));
                found.extend(exceeding_by_sharing(board));
            }
            Err(reason) => skip(
                &format!("loads_and_steps_are_within_their_bounds on {}", board.name),
                &reason.to_string(),
            ),
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Steps of a kernel that are generated, as those that the tables of instructions are made from.
const GENERATED: usize = 24;

/// Returns the generated steps of all kernels that exceed their bounds on a board; prints the dearest of each kernel.
fn exceeding_generated(board: &'static Board) -> Vec<String> {
    let mut found = Vec::new();
    let generated = |kernel: &&KernelId| board.has(**kernel) && is_generated(**kernel);
    for &kernel in KernelId::ALL.iter().filter(generated) {
        let samples = count(board, kernel, 77, GENERATED).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            samples.len() >= GENERATED / 4,
            "{}: {} steps",
            kernel.name(),
            samples.len()
        );
        let of_a_unit = samples.iter().map(|sample| {
            let cost = sample.generated.step.cost().total() as f64;
            ((sample.most() - STEP as f64).max(0.0) / cost, sample)
        });
        let Some((most, dearest)) = of_a_unit.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        let line = format!("{} {}: {most:.1} for each unit of cost", board.name, kernel.name());
        println!("{line}");
        if most > instructions_of_a_unit(board) as f64 {
            let (instructions, step) = (dearest.most(), &dearest.generated.step);
            found.push(format!("{line}: {instructions} instructions of {step:?}"));
        }
    }
    found
}

#[test]
#[ignore = "long: 24 steps of every kernel on every board"]
fn generated_steps_are_within_their_bounds() {
    let mut found = Vec::new();
    for board in boards_of_one_core() {
        match ready(board) {
            Ok(()) => found.extend(exceeding_generated(board)),
            Err(reason) => skip("generated_steps_are_within_their_bounds", &reason.to_string()),
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
