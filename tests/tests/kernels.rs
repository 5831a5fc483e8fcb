//! Every kernel against the scalar one on the same generated cases, on the host and on every board: hosts run the portable loops, boards the assembly.

use std::time::Duration;

use arenite::KernelId;
use arenite::kernels::Backend;
use arenite::testkit::{Verdict, Workspace, compare};
use arenite_host::board::{BOARDS, kernels, ready};
use arenite_tests::skip;

/// Cases for each kernel on a board: a second or two of emulation, five for Helium.
const CASES: u32 = 150;
/// On the host.
const HOST_CASES: u32 = 4000;

/// The kernels with something to be compared with.
fn compared() -> impl Iterator<Item = KernelId> {
    let all = KernelId::ALL.iter().copied();
    all.filter(|kernel| kernel.backend() != Backend::Scalar)
}

#[test]
fn every_kernel_equals_the_scalar_one_on_the_host() {
    let mut workspace = Box::new(Workspace::new());
    for kernel in compared() {
        let mut computed = 0;
        for seed in 0..HOST_CASES {
            match compare(kernel, seed, &mut workspace) {
                Ok(Verdict::Equal) => computed += 1,
                Ok(Verdict::NotComputed) => {}
                Err(difference) => panic!("{}, seed {seed}: {difference:x?}", kernel.name()),
            }
        }
        assert!(
            computed > HOST_CASES / 4,
            "{}: computes {computed} of {HOST_CASES} cases",
            kernel.name()
        );
    }
}

#[test]
fn every_kernel_equals_the_scalar_one_on_its_boards() {
    for board in &BOARDS {
        if let Err(reason) = ready(board) {
            skip(
                &format!("every_kernel_equals_the_scalar_one_on_its_boards on {}", board.name),
                &reason.to_string(),
            );
            continue;
        }
        let found = kernels(board, 0, CASES, Duration::from_secs(600)).unwrap_or_else(|e| panic!("{e}"));
        let mut backends = Vec::new();
        for comparison in &found {
            let name = comparison.kernel.name();
            let cases = comparison
                .result
                .unwrap_or_else(|(seed, difference)| panic!("{name} on {}, seed {seed}: {difference:x?}", board.name));
            let backend = comparison.kernel.backend();
            if backend != Backend::Scalar {
                assert!(
                    cases > CASES / 4,
                    "{name} on {}: computes {cases} of {CASES} cases",
                    board.name
                );
                backends.push(backend);
            }
        }
        let has = |target: &str| board.targets.contains(&target);
        assert!(
            backends.contains(&Backend::Int) && backends.contains(&Backend::Fpu),
            "{}",
            board.name
        );
        let dsp = has("cortex-m4") || has("cortex-m33");
        assert_eq!(backends.contains(&Backend::Dsp), dsp, "{}", board.name);
        assert_eq!(backends.contains(&Backend::Mve), has("cortex-m55"), "{}", board.name);
    }
}
