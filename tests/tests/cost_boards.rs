//! Instructions and stack of load and run on every board against what they are bounded by: the file's bytes, `Model::cost`, and the table of stacks.

use std::time::Duration;

use arenite::testkit::{Packed, Workspace, packed};
use arenite::{KernelId, Model};
use arenite_host::board::{BOARDS, Board, RunOptions, ready, run};
use arenite_host::model::Blob as OnBoard;
use arenite_host::worst::stack::TABLE;
use arenite_tests::blob::{Blob, aligned};
use arenite_tests::skip;

/// Steps of a file, which share their constants.
const STEPS: usize = 32;

/// Cases that a kernel's dearest one is looked for among.
const CASES: u32 = 60;

/// Instructions of a load beside those for each byte of the file.
const LOAD: u64 = 20_000;

/// Instructions of a step beside those for each unit of its cost: decoding, and what a kernel prepares.
const STEP: u64 = 8_000;

/// Instructions of a load for each byte of the file, and of a step for each unit of its cost. Without an FPU, f32 kernels take a function for each sum.
fn factors(board: &Board) -> [u64; 2] {
    match board.triple {
        triple if triple.starts_with("thumbv6m") => [160, 80],
        triple if triple.starts_with("thumbv7m-") || triple.starts_with("riscv32") => [70, 45],
        _ => [70, 8],
    }
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

/// What of a board's kernels exceeds its bound.
fn exceeding(board: &'static Board, workspace: &mut Workspace) -> Vec<String> {
    let mut found = Vec::new();
    let (mut loads, mut steps) = ((0, ""), (0, ""));
    let [a_byte, a_unit] = factors(board);
    for &kernel in KernelId::ALL {
        let Some((cost, file)) = dearest(kernel, workspace).filter(|_| board.has(kernel)) else {
            continue;
        };
        let options = RunOptions {
            profile: true,
            timeout: Duration::from_secs(120),
            ..RunOptions::default()
        };
        let report = run(board, OnBoard::Bytes(&file), &[], &options).unwrap_or_else(|error| panic!("{error}"));
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

#[test]
fn loads_and_steps_are_within_their_bounds() {
    let mut workspace = Box::new(Workspace::new());
    let mut found = Vec::new();
    for board in &BOARDS {
        match ready(board) {
            Ok(()) => found.extend(exceeding(board, &mut workspace)),
            Err(reason) => skip(
                &format!("loads_and_steps_are_within_their_bounds on {}", board.name),
                &reason.to_string(),
            ),
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
