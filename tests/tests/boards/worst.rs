//! Upper bounds of a model's cost, as packing states them, against measurements of boards: `tests/results`, and fresh runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite::KernelId;
use arenite_host::board::{BOARDS, Board, RunOptions, ready, run};
use arenite_host::model::Blob;
use arenite_host::worst::stack::{Stack, Stacks, TABLE};
use arenite_tests::golden::packed;
use arenite_tests::{boards_by_turns, skip};
use arenite_xtask::results::{Measured, SUBJECTS, best_target, read};

/// How far a bound may be above what was measured.
const ABOVE: u64 = 64;

/// Kernels whose deepest way no measured model takes, so that they are above by more: a load that compares an output lying over an input of what no packer
/// places so, or records of uncommon forms; the requantising of a channel with extreme constants; windows of AArch64's dot products and products of
/// matrices that no measured model has.
const NOT_MEASURED: [(&str, &str); 8] = [
    ("load", "LinearF32"),
    ("load", "IntNarrowDenseS8"),
    ("run", "IntDepthwiseS8"),
    ("run", "IntDenseS8"),
    ("load", "DotprodConv2dS8"),
    ("run", "DotprodConv2dS8"),
    ("load", "I8mmConv2dS8"),
    ("run", "I8mmConv2dS8"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn tracked() -> Vec<Measured> {
    let read = |name: &str| read(&root().join(format!("tests/results/{name}.json"))).unwrap_or_else(|e| panic!("{e}"));
    SUBJECTS.iter().flat_map(|subject| read(subject.name)).collect()
}

/// The kernel of the largest stack among those of `measured`, and that stack.
fn deepest<'t>(of: &'t BTreeMap<String, u64>, measured: &Measured) -> (&'t str, u64) {
    let kernels = measured.bench.steps.iter().map(|step| step.kernel.as_str());
    let known = kernels.map(|kernel| {
        of.get_key_value(kernel)
            .unwrap_or_else(|| panic!("{kernel} is in no row"))
    });
    let (kernel, &bytes) = known.max_by_key(|(_, bytes)| **bytes).expect("steps");
    (kernel, bytes)
}

/// Where `table` is below a tracked stack, or where for a board and kernel it is far above all.
fn wrong(table: &Stacks, results: &[Measured]) -> Vec<String> {
    let mut found = Vec::new();
    // By board, what, and the kernel that gives the bound: by how much it is above, at the least.
    let mut above = BTreeMap::<(&str, &str, &str), u64>::new();
    for measured in results {
        let bench = &measured.bench;
        let row: &Stack = table
            .0
            .get(&bench.board)
            .unwrap_or_else(|| panic!("{} has no row", bench.board));
        let both = [
            ("run", &row.run, 0, bench.stack_bytes),
            ("load", &row.load, row.load_alone, bench.load_stack_bytes),
        ];
        for (what, of, least, is) in both {
            let (kernel, bytes) = deepest(of, measured);
            match bytes.max(least).checked_sub(is.into()) {
                Some(more) => {
                    let most = above.entry((&bench.board, what, kernel)).or_insert(u64::MAX);
                    *most = more.min(*most);
                }
                None => found.push(format!(
                    "{}: {what} of {kernel}: {is} bytes measured, {bytes} in the table",
                    bench.board
                )),
            }
        }
    }
    let far = above
        .iter()
        .filter(|((_, what, kernel), more)| **more > ABOVE && !NOT_MEASURED.contains(&(what, kernel)));
    found.extend(far.map(|((board, what, kernel), more)| format!("{board}: {what} of {kernel} is {more} bytes above")));
    found
}

#[test]
fn stacks_are_those_of_the_tracked_results_and_at_most_64_bytes_more() {
    let results = tracked();
    let found = wrong(&TABLE, &results);
    assert!(
        found.is_empty(),
        "{}\n`cargo xtask bench --stacks` makes the table again",
        found.join("\n")
    );
}

#[test]
fn an_entry_that_is_too_small_or_too_large_is_seen() {
    let results = tracked();
    for change in [-40i64, 100] {
        let mut table = TABLE.clone();
        let row = table.0.get_mut("mps2-an386").expect("a row");
        for of in [&mut row.run, &mut row.load] {
            let entry = of.get_mut("FpuConv2dF32").expect("a kernel");
            *entry = entry.saturating_add_signed(change);
        }
        let found = wrong(&table, &results);
        assert!(
            found.iter().any(|text| text.contains("run of FpuConv2dF32")),
            "{change}: {found:?}"
        );
        assert!(
            found.iter().any(|text| text.contains("load of FpuConv2dF32")),
            "{change}: {found:?}"
        );
    }
}

/// A step on several cores takes what it takes on one, whose board has the row.
fn boards_of_one_core() -> impl Iterator<Item = &'static Board> {
    BOARDS.iter().filter(|board| board.cores() == 1)
}

/// Every kernel that a board's build has is in its row.
#[test]
fn every_board_and_kernel_has_a_stack() {
    for board in boards_of_one_core() {
        let row = TABLE
            .0
            .get(board.name)
            .unwrap_or_else(|| panic!("{} has no row", board.name));
        let has = |feature: &str| board.runtime.contains(&feature);
        for kernel in KernelId::ALL {
            let linked = match kernel.backend().name() {
                "dsp" => has("dsp"),
                "mve" => has("mve"),
                "rvv" => has("rvv"),
                "sme" => has("sme"),
                "ethos-u" => has("ethos-u"),
                "neon" => board.triple.starts_with("aarch64"),
                "dotprod" | "i8mm" => board.rustflags.contains(&"target-feature=+dotprod,+i8mm"),
                _ => true,
            };
            let both = [&row.run, &row.load].map(|of| of.contains_key(kernel.name()));
            assert_eq!(both, [linked; 2], "{} on {}", kernel.name(), board.name);
        }
    }
}

/// A fresh measurement by painting.
#[test]
fn no_board_paints_more_than_the_bound() {
    for board in boards_by_turns("no_board_paints_more_than_the_bound", boards_of_one_core()) {
        if let Err(reason) = ready(board) {
            skip(
                "no_board_paints_more_than_the_bound",
                &format!("{}: {reason}", board.name),
            );
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let network = root().join("tests/models/digits/digits.trace.json");
        let file = packed(&network, folder.path(), best_target(board)).unwrap_or_else(|e| panic!("{e}"));
        let view = file.view().expect("an intact file");
        let kernels = view.steps().expect("steps").into_iter().map(|step| step.kernel());
        let bound = TABLE.bound(board.name, kernels).expect("known kernels");
        let inputs = vec![0; view.header().input_bytes as usize];
        let report =
            run(board, Blob::File(file.path()), &inputs, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        for (what, bound, is) in [
            ("run", bound.run, report.stack_bytes),
            ("load", bound.load, report.load_stack_bytes),
        ] {
            let above = bound.checked_sub(is.into());
            assert!(
                above.is_some_and(|above| above <= ABOVE),
                "{}: {what}: {is} bytes, bound {bound}",
                board.name
            );
        }
    }
}
