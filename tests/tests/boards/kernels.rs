//! Every kernel against the reference of its operator on the same generated cases, on the host and on every board: hosts run the portable loops, boards the
//! assembly.

use std::time::Duration;

use arenite::kernels::Backend;
use arenite::testkit::{Attack, Mutations, Verdict, Workspace, compare, mutate};
use arenite::{KernelId, Target};
use arenite_host::board::{BOARDS, Board, Profile, kernels, kernels_watched, miscomputes, mutations, ready};
use arenite_tests::kit::{boards_of, compared, is_held, only};
use arenite_tests::{boards_by_turns, named_by_turns, skip, turns};

/// Cases for each kernel on a board: a second or two of emulation, five for Helium.
const CASES: u32 = 150;
/// On the host.
const HOST_CASES: u32 = 4000;

/// Cases of each kernel that are changed bit by bit on the host, and those that are changed at random; changes of each of the latter.
const EVERY_BIT: u32 = 4;
const MUTATED: u32 = 400;
const CHANGES: u32 = 25;

/// The boards that compare: all; of one kernel one for each code that the compiler makes of it.
fn comparing(test: &str) -> Vec<&'static Board> {
    only().map_or_else(|| boards_by_turns(test, &BOARDS), boards_of)
}

/// Whether the board's emulator computes this kernel wrongly, which is said.
fn is_miscomputed(kernel: KernelId, wrong: Option<&(Backend, String)>, board: &Board) -> bool {
    let reason = wrong.filter(|(backend, _)| *backend == kernel.backend());
    if let Some((_, reason)) = reason {
        skip(&format!("{} on {}", kernel.name(), board.name), reason);
    }
    reason.is_some()
}

#[test]
fn every_kernel_equals_the_reference_on_the_host() {
    let mut workspace = Box::new(Workspace::new());
    let mut kernels = 0;
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
        kernels += 1;
    }
    println!("{kernels} kernels equal the reference");
    let all = only().map_or(KernelId::ALL.len() - 1, |_| 1);
    assert_eq!(kernels, all, "all but the commands for an NPU");
}

#[test]
fn every_kernel_equals_the_reference_on_its_boards() {
    const TEST: &str = "every_kernel_equals_the_reference_on_its_boards";
    for board in comparing(TEST) {
        if let Err(reason) = ready(board) {
            skip(&format!("{TEST} on {}", board.name), &reason.to_string());
            continue;
        }
        let found = kernels(board, only(), 0, CASES, Duration::from_secs(600)).unwrap_or_else(|e| panic!("{e}"));
        let mut backends = Vec::new();
        let wrong = miscomputes(board);
        for comparison in &found {
            let name = comparison.kernel.name();
            if is_miscomputed(comparison.kernel, wrong.as_ref(), board) {
                backends.push(comparison.kernel.backend());
                continue;
            }
            let cases = match &comparison.result {
                Ok(cases) => *cases,
                Err((seed, failure)) => panic!("{name} on {}, seed {seed}: {failure:x?}", board.name),
            };
            assert!(
                cases > CASES / 4 || !is_held(comparison.kernel, board),
                "{name} on {}: computes {cases} of {CASES} cases",
                board.name
            );
            backends.push(comparison.kernel.backend());
        }
        let held = found.iter().filter(|of| is_held(of.kernel, board)).count();
        println!("{}: {held} kernels equal the reference", board.name);
        if let Some(kernel) = only() {
            assert_eq!(found.len(), 1, "{} on {}", kernel.name(), board.name);
            continue;
        }
        // Backends that packing chooses from for the board's targets run there; those that no target of it tries may.
        let of = |target: &&Target| board.targets.contains(&target.name());
        for target in Target::ALL.iter().filter(of) {
            for backend in Backend::order(*target, false).chain(Backend::order(*target, true)) {
                assert!(
                    backends.contains(&backend),
                    "{}: {} for {}",
                    board.name,
                    backend.name(),
                    target.name()
                );
            }
        }
    }
}

/// Cases of each kernel whose registers are looked at.
const WATCHED: u32 = 60;

/// Every function in assembly leaves its caller's registers as they were. On one board of each core: others of its target have the same assembly.
#[test]
fn every_kernel_equals_the_reference_and_restores_registers() {
    const TEST: &str = "every_kernel_equals_the_reference_and_restores_registers";
    let mut cores: Vec<&'static Board> = Vec::new();
    for board in only().map_or_else(|| BOARDS.iter().collect(), boards_of) {
        if cores.iter().all(|of| of.targets.last() != board.targets.last()) {
            cores.push(board);
        }
    }
    // Of one kernel, all of them; else one.
    if only().is_none() {
        cores = turns(TEST, cores.len(), cores);
    }
    for board in cores {
        if let Err(reason) = ready(board) {
            skip(&format!("{TEST} on {}", board.name), &reason.to_string());
            continue;
        }
        let found = kernels_watched(board, only(), 0, WATCHED, Duration::from_secs(600));
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        let wrong = miscomputes(board);
        for comparison in &found {
            let name = comparison.kernel.name();
            if is_miscomputed(comparison.kernel, wrong.as_ref(), board) {
                continue;
            }
            if let Err((seed, failure)) = &comparison.result {
                panic!("{name} on {}, seed {seed}: {failure:x?}", board.name);
            }
        }
        println!("{}: {} kernels restore registers", board.name, found.len());
    }
}

/// Changes of all kernels together on the host, at least.
const LONG: u64 = 10_000_000;

#[test]
#[ignore = "long: ten million changes"]
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

/// Changed cases of each kernel on each board of the test command, and changes of each; and of the long tier.
const BOARD_CASES: u32 = 20;
const BOARD_CASES_LONG: u32 = 700;

/// The microbit's RAM holds the cases and no stack for the attack as well; another board runs the same programs.
fn with_room() -> impl Iterator<Item = &'static Board> {
    BOARDS.iter().filter(|board| board.name != "microbit")
}

/// The board's own loops under the same attack: every change is refused or runs within its operands, which canaries show, and what ran computed what the
/// portable loops of the host compute.
fn attacked_on_boards(profile: Profile, boards: Vec<&'static Board>, cases: u32, name: &str) {
    let mut workspace = Box::new(Workspace::new());
    let mut expected: Vec<(KernelId, Mutations)> = Vec::new();
    for board in boards {
        if let Err(reason) = ready(board) {
            skip(&format!("{name} on {}", board.name), &reason.to_string());
            continue;
        }
        let found =
            mutations(board, profile, 0, cases, CHANGES, Duration::from_secs(3600)).unwrap_or_else(|e| panic!("{e}"));
        let [mut refused, mut ran] = [0; 2];
        let wrong = miscomputes(board);
        for attacked in found {
            let kernel = attacked.kernel;
            if is_miscomputed(kernel, wrong.as_ref(), board) {
                continue;
            }
            let tally = attacked.result.unwrap_or_else(|(seed, failure)| {
                panic!("{} on {}, seed {seed}: {failure:x?}", kernel.name(), board.name)
            });
            let known = expected.iter().find(|(id, _)| *id == kernel).map(|&(_, tally)| tally);
            let host = known.unwrap_or_else(|| mutated(kernel, cases, &mut workspace));
            if known.is_none() {
                expected.push((kernel, host));
            }
            assert_eq!(tally, host, "{} on {}", kernel.name(), board.name);
            (refused, ran) = (refused + tally.refused, ran + tally.ran);
        }
        println!("{}: {refused} refused, {ran} run", board.name);
        assert!(
            refused > cases && ran > cases,
            "{}: {refused} refused, {ran} run",
            board.name
        );
    }
}

#[test]
fn no_change_leads_a_kernel_out_of_its_operands_on_boards() {
    let name = "no_change_leads_a_kernel_out_of_its_operands_on_boards";
    attacked_on_boards(Profile::Release, boards_by_turns(name, with_room()), BOARD_CASES, name);
}

/// The second case's last channel takes the general form, and behind its records lies what the first case left: a loop that went on there wrote beside the
/// output.
#[test]
fn a_last_channel_of_the_general_form_ends_a_step_on_a_board() {
    let name = "a_last_channel_of_the_general_form_ends_a_step_on_a_board";
    let Some(&board) = named_by_turns(name, &["mps2-an385"]).first() else {
        return;
    };
    if let Err(reason) = ready(board) {
        return skip(name, &reason.to_string());
    }
    let found = mutations(board, Profile::Release, 303, 2, CHANGES, Duration::from_secs(600));
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    let attacked = found.iter().find(|attacked| attacked.kernel == KernelId::IntConv2dS8);
    let result = &attacked.expect("a kernel of the board").result;
    assert!(result.as_ref().is_ok_and(|tally| tally.ran > 0), "{result:x?}");
}

/// Overflow checks and debug assertions of the firmware's development profile hold under the attack; the long tier has every board.
#[test]
fn no_check_of_the_development_profile_fires_on_a_board() {
    let name = "no_check_of_the_development_profile_fires_on_a_board";
    let board = boards_by_turns(name, [Board::find("mps2-an386").expect("a known board")]);
    attacked_on_boards(Profile::Development, board, BOARD_CASES, name);
}

#[test]
#[ignore = "long: a hundred thousand changes on every board, for each release"]
fn no_change_leads_a_kernel_out_of_its_operands_on_boards_long() {
    let name = "no_change_leads_a_kernel_out_of_its_operands_on_boards_long";
    attacked_on_boards(Profile::Release, with_room().collect(), BOARD_CASES_LONG, name);
}

#[test]
#[ignore = "long: the development profile on every board"]
fn no_check_of_the_development_profile_fires_on_boards_long() {
    let name = "no_check_of_the_development_profile_fires_on_boards_long";
    attacked_on_boards(Profile::Development, with_room().collect(), BOARD_CASES_LONG, name);
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
            refused > 50 && ran > 4 && random.refused > 400 && random.ran > 100,
            "{}: {refused} refused, {ran} run bit by bit; at random {random:?}",
            kernel.name()
        );
    }
}
