//! Instructions of steps against what `Model::cost` says of them: each axis scaled alone, on a board of each family.

use std::collections::BTreeMap;

use arenite::{KernelId, LoadError, Model};
use arenite_host::board::{Board, ready};
use arenite_tests::blob::{Blob, aligned};
use arenite_tests::kit::is_generated;
use arenite_tests::skip;
use arenite_xtask::most::axes::{Case, Counted, STEP, bases, count, instructions_of_a_unit, scaled};
use arenite_xtask::most::generate::trains;

/// Instructions for each unit of cost grow by at most a third where an axis is scaled.
const GROWTH: f64 = 4.0 / 3.0;

/// No step takes more instructions for a unit of cost than so many times the median of a board's steps.
const OF_MEDIAN: f64 = 3.0;

/// The steps of a board's kernels: `each` bases of every kernel, with each axis scaled by each of `factors`.
fn cases(board: &Board, each: usize, factors: &[u32]) -> Vec<Case> {
    // A position is one number, whatever the lines: no axis makes its step larger.
    let kernels = KernelId::ALL.iter().filter(|&&kernel| {
        board.has(kernel) && is_generated(kernel) && !trains(kernel) && kernel != KernelId::Position
    });
    let of = |&kernel: &KernelId| {
        let own = bases(kernel, 0, each);
        assert!(!own.is_empty(), "{}: no step is large enough", kernel.name());
        own.into_iter()
            .flat_map(|base| scaled(base, factors))
            .collect::<Vec<_>>()
    };
    kernels.flat_map(of).collect()
}

/// The steps of a board that take more than they may, and the worst of each kernel: times the median, growth with its axis.
fn judge(board: &str, counted: &[Counted]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut worst = BTreeMap::<&str, (f64, f64, &str)>::new();
    let mut quotients: Vec<f64> = counted.iter().map(Counted::quotient).collect();
    quotients.sort_by(f64::total_cmp);
    let median = quotients[quotients.len() / 2];
    let mut base = median;
    for each in counted {
        let (case, quotient) = (each.case, each.quotient());
        if case.factor == 1 {
            base = quotient;
        }
        let (of_median, growth) = (quotient / median, quotient / base);
        let kernel = case.kernel.name();
        let worst = worst.entry(kernel).or_default();
        worst.0 = worst.0.max(of_median);
        if each.is_large() && growth > worst.1 {
            (worst.1, worst.2) = (growth, case.axis);
        }
        if of_median > OF_MEDIAN || each.is_large() && growth > GROWTH {
            broken.push(format!(
                "{board} {kernel} {} x{}: {quotient:.2} instructions for a unit of cost, {of_median:.2} times the median, {growth:.2} times the base: {:?}",
                case.axis, case.factor, each.step
            ));
        }
    }
    for (kernel, (of_median, growth, axis)) in &worst {
        println!("{board} {kernel}: at most {of_median:.2} times the median; {growth:.2} times the base ({axis})");
    }
    let steps = counted.len();
    println!("{board}: {steps} steps, a median of {median:.2} instructions for a unit of cost");
    broken
}

/// Whether a file of this step alone is refused with a budget of one unit less than what it took.
fn is_refused_below(each: &Counted, a_unit: u64) -> bool {
    let took = each.instructions.iter().max().copied().unwrap_or(0);
    let Some(generated) = each.case.generated(0) else {
        return false;
    };
    let blob = Blob {
        arena: [generated.bytes, 0, 0, 0],
        weights: generated.constants,
        ..Blob::default()
    };
    let file = blob.step(&generated.step).file();
    let budget = took.saturating_sub(STEP) / a_unit;
    let within = Model::load_within(aligned(&file).bytes(), budget.saturating_sub(1)).map(|_| ());
    matches!(within, Err(LoadError::Cost { step: 0, .. }))
}

/// Counts steps on a board.
fn follows(name: &str, each: usize, factors: &[u32], runs: u32) {
    let board = Board::find(name).expect("a board");
    let a_unit = instructions_of_a_unit(board);
    if let Err(reason) = ready(board) {
        return skip(&format!("cost_axes on {name}"), &reason.to_string());
    }
    let counted = count(board, &cases(board, each, factors), runs).unwrap_or_else(|error| panic!("{error}"));
    let mut broken = judge(name, &counted);
    broken.extend(
        counted
            .iter()
            .filter(|each| !is_refused_below(each, a_unit))
            .map(|each| {
                format!(
                    "{name}: within a budget of less than it took: {:?}, {:?}",
                    each.step, each.instructions
                )
            }),
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_run_takes_what_its_cost_says() {
    follows("mps2-an386", 1, &[4, 16], 1);
}

/// Bases of every kernel, each axis by 4 and by 16, contents of so many kinds. Without an FPU a step of functions of f32 takes a thousand million instructions.
macro_rules! on_boards {
    ($($name:ident: $board:literal, $bases:literal, $contents:literal;)*) => {$(
        #[test]
        #[ignore = "long: steps of every kernel on an emulator"]
        fn $name() {
            follows($board, $bases, &[4, 16], $contents);
        }
    )*};
}

on_boards! {
    cortex_m0: "mps2-an385:thumbv6m", 1, 1;
    cortex_m3: "mps2-an385", 1, 1;
    cortex_m4: "mps2-an386", 2, 3;
    cortex_m55: "mps3-an547", 2, 3;
    riscv32: "riscv32-virt", 1, 1;
    riscv32_vectors: "riscv32-virt:v128", 1, 1;
    aarch64: "aarch64-virt", 2, 3;
}
