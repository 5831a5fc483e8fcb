//! Every kernel against the scalar one on the same generated cases, on the host and on every board: hosts run the portable loops, boards the assembly.

use std::time::Duration;

use arenite::kernels::Backend;
use arenite::testkit::{Attack, Mutations, Verdict, Workspace, compare, mutate};
use arenite::{KernelId, Target};
use arenite_host::board::{BOARDS, kernels, ready};
use arenite_tests::skip;

/// Cases for each kernel on a board: a second or two of emulation, five for Helium.
const CASES: u32 = 150;
/// On the host.
const HOST_CASES: u32 = 4000;

/// Cases of each kernel that are changed bit by bit on the host, and those that are changed at random; changes of each of the latter.
const EVERY_BIT: u32 = 4;
const MUTATED: u32 = 400;
const CHANGES: u32 = 25;

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
        // What packing chooses from for the board's targets runs there; what no target of it tries may.
        let of = |target: &&Target| board.targets.contains(&target.name());
        for target in Target::ALL.iter().filter(of) {
            for backend in Backend::order(*target, false).chain(Backend::order(*target, true)) {
                assert!(
                    backend == Backend::Scalar || backends.contains(&backend),
                    "{}: {} for {}",
                    board.name,
                    backend.name(),
                    target.name()
                );
            }
        }
    }
}

/// Changes of all kernels together on the host for each release.
const LONG: u64 = 10_000_000;

#[test]
#[ignore = "long: ten million changes, for each release"]
fn no_change_leads_a_kernel_out_of_its_operands_on_the_host_long() {
    let mut workspace = Box::new(Workspace::new());
    let kernels: Vec<KernelId> = compared().collect();
    let cases = LONG / u64::from(CHANGES) / kernels.len() as u64 * 2;
    let [mut refused, mut ran] = [0u64; 2];
    for kernel in kernels {
        let tally = mutated(kernel, cases as u32, &mut workspace);
        println!("{}: {tally:?}", kernel.name());
        (refused, ran) = (refused + u64::from(tally.refused), ran + u64::from(tally.ran));
    }
    println!("{refused} refused, {ran} run");
    assert!(refused + ran >= LONG, "{refused} refused, {ran} run");
}

/// Changed at random, some cases in two places.
fn mutated(kernel: KernelId, cases: u32, workspace: &mut Workspace) -> Mutations {
    let mut tally = Mutations::default();
    for seed in 0..cases {
        mutate(kernel, seed, Attack::Random(CHANGES), &mut tally, workspace)
            .unwrap_or_else(|difference| panic!("{}, seed {seed}: {difference:x?}", kernel.name()));
    }
    tally
}

/// Whatever one bit of a packed kernel's constants and parameters says, load refuses it or the step stays within its operands, and no check of the development
/// profile fires.
#[test]
fn no_bit_leads_a_kernel_out_of_its_operands_on_the_host() {
    let mut workspace = Box::new(Workspace::new());
    for kernel in compared() {
        let mut tally = Mutations::default();
        for seed in 0..EVERY_BIT {
            mutate(kernel, seed, Attack::EveryBit, &mut tally, &mut workspace)
                .unwrap_or_else(|difference| panic!("{}, seed {seed}: {difference:x?}", kernel.name()));
        }
        let Mutations { refused, ran, .. } = tally;
        let random = mutated(kernel, MUTATED, &mut workspace);
        println!("{}: bits {refused} refused, {ran} run; {random:?}", kernel.name());
        assert!(
            refused > 50 && ran > 50 && random.refused > 500 && random.ran > 500,
            "{}: {refused} refused, {ran} run bit by bit; at random {random:?}",
            kernel.name()
        );
    }
}
