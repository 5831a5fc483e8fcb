//! Every board boots, counts exactly and reports each kind of failure as that kind.

use std::time::Duration;

use arenite_host::board::protocol::{Command, Failure, Guarded, Purpose};
use arenite_host::board::{BOARDS, Board, BoardError, ready, selfcheck};
use arenite_tests::{boards_by_turns, named_by_turns};

const TIMEOUT: Duration = Duration::from_secs(600);

/// The boards of `names` (all for none) that this machine can run; the others are named on standard error.
fn boards(test: &str, names: &[&str]) -> Vec<&'static Board> {
    let wanted: Vec<&Board> = if names.is_empty() {
        boards_by_turns(test, &BOARDS)
    } else {
        named_by_turns(test, names)
    };
    wanted
        .into_iter()
        .filter(|board| match ready(board) {
            Ok(()) => true,
            Err(reason) => {
                eprintln!("skipped: {test} on {}: {reason}", board.name);
                false
            }
        })
        .collect()
}

fn count(board: &'static Board, rounds: u32) -> u64 {
    match selfcheck(board, Command::CountLoop { rounds }, TIMEOUT) {
        Ok((Some(instructions), logs)) => {
            let expected = format!("counting {rounds} rounds on {}", board.feature);
            assert!(
                logs.iter().any(|line| line.text == expected && line.level == "info"),
                "{}: {logs:?}",
                board.name
            );
            instructions
        }
        other => panic!("{}: {other:?}", board.name),
    }
}

fn failure(board: &'static Board, failure: Failure, timeout: Duration) -> BoardError {
    match selfcheck(board, Command::Fail(failure), timeout) {
        Err(error) => error,
        Ok(report) => panic!("{}: {failure:?} went unnoticed: {report:?}", board.name),
    }
}

/// The loop takes two instructions a round; calling it takes a few more, the same number whatever the rounds.
#[test]
fn every_board_counts_a_loop_exactly() {
    for board in boards("counts", &[]) {
        let around = count(board, 1) - 2;
        assert!(around < 12, "{}: {around} instructions around the loop", board.name);
        for rounds in [2, 3, 10, 1000, 3_000_001] {
            assert_eq!(
                count(board, rounds),
                2 * u64::from(rounds) + around,
                "{}: {rounds} rounds",
                board.name
            );
        }
    }
}

/// The fine timers wrap after 1.3 (25 MHz) or 1.7 (20 MHz) thousand million instructions.
#[test]
fn counts_survive_a_wrap_of_the_timer() {
    for board in boards("wrap", &["mps2-an386", "mps2-an505", "mps3-an547"]) {
        let around = count(board, 1) - 2;
        assert_eq!(count(board, 1_000_000_000), 2_000_000_000 + around, "{}", board.name);
    }
}

#[test]
fn a_fault_names_registers_and_function() {
    for board in boards("fault", &[]) {
        match failure(board, Failure::Fault, TIMEOUT) {
            BoardError::Fault {
                pc,
                function: Some(function),
                ..
            } => {
                assert!(
                    pc >= board.flash.start && pc < board.flash.end(),
                    "{}: pc {pc:#x}",
                    board.name
                );
                assert!(
                    function.contains("main") || function.contains("fail"),
                    "{}: {function}",
                    board.name
                );
            }
            other => panic!("{}: {other:?}", board.name),
        }
    }
}

#[test]
fn a_panic_names_its_place() {
    for board in boards("panic", &[]) {
        match failure(board, Failure::Panic, TIMEOUT) {
            BoardError::Panicked { file, line, text, .. } => {
                assert_eq!(
                    (file.as_str(), text.as_str()),
                    ("src/bin/selfcheck.rs", "asked to panic"),
                    "{}",
                    board.name
                );
                assert!(line > 0);
            }
            other => panic!("{}: {other:?}", board.name),
        }
    }
}

#[test]
fn a_hang_ends_in_time_and_says_how_far_it_came() {
    for board in boards("hang", &["mps2-an386"]) {
        match failure(board, Failure::Hang, Duration::from_secs(1)) {
            BoardError::Timeout {
                seconds: 1, reached, ..
            } => assert!(reached.starts_with("Boot"), "{reached}"),
            other => panic!("{}: {other:?}", board.name),
        }
    }
}

#[test]
fn an_overrun_stack_is_noticed() {
    for board in boards("stack", &[]) {
        match failure(board, Failure::OverrunStack, TIMEOUT) {
            BoardError::Corrupted {
                what: Guarded::Stack, ..
            } => (),
            other => panic!("{}: {other:?}", board.name),
        }
    }
}

/// The bytes next to an arena and a state, and the farthest ones that are watched.
#[test]
fn a_write_beside_a_piece_of_memory_is_noticed() {
    for board in boards("canaries", &[]) {
        for (purpose, guarded) in [(Purpose::Arena, Guarded::Arena), (Purpose::State, Guarded::State)] {
            for offset in [-1, -64, 0, 63] {
                match failure(board, Failure::WriteBeside { purpose, offset }, TIMEOUT) {
                    BoardError::Corrupted { what, .. } if what == guarded => (),
                    other => panic!("{}: {purpose:?} at {offset}: {other:?}", board.name),
                }
            }
        }
    }
}

/// On the microbit the write is ignored as on the real part, and on riscv64 code is in a flash chip that takes commands.
#[test]
fn a_write_to_flash_is_noticed() {
    let watches = |board: &&Board| board.name != "microbit" && !board.name.starts_with("riscv64-virt");
    for board in boards("flash", &[]).into_iter().filter(watches) {
        match failure(board, Failure::WriteFlash, TIMEOUT) {
            BoardError::Corrupted {
                what: Guarded::Flash, ..
            } => (),
            other => panic!("{}: {other:?}", board.name),
        }
    }
}

#[test]
fn a_missing_qemu_is_named_with_its_remedy() {
    let board = Board {
        qemu: "qemu-system-nowhere",
        ..BOARDS[2].clone()
    };
    let board: &'static Board = Box::leak(Box::new(board));
    match ready(board) {
        Err(BoardError::ToolMissing { tool, how }) => {
            assert_eq!(tool, "qemu-system-nowhere");
            assert!(how.contains("apt-get install"), "{how}");
        }
        other => panic!("{other:?}"),
    }
}
