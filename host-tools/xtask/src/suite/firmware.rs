//! Programs for every board.

use std::process::Command;

use arenite_host::board::{BOARDS, Board, Firmware};
use arenite_xtask::turns;

use super::jobs::{Job, in_turn};
use super::{Outcome, Result, cores, is_over, programs, run};

/// Programs that tests run on every board.
const PROGRAMS: [&str; 3] = ["infer", "kernels", "selfcheck"];

/// Each program is linked by one thread; boards of different targets do not wait for each other.
pub(super) fn all() -> Result<Outcome> {
    Ok(Outcome::Tested(in_turn(jobs(), cores(), &is_over)))
}

/// A job for each target, in a process of its own that can be timed and ended.
pub(super) fn jobs() -> Vec<Job> {
    let mut triples: Vec<&str> = BOARDS.iter().map(|board| board.triple).collect();
    triples.sort_unstable();
    triples.dedup();
    let job = |triple: &'static str| {
        Job::new(format!("firmware for {triple}"), move || {
            let mut command = Command::new(std::env::current_exe()?);
            programs::tell(&mut command, 1);
            run(command.args(["firmware", triple]))?;
            Ok(Outcome::Held)
        })
    };
    triples.into_iter().map(job).collect()
}

/// Builds the programs of [`PROGRAMS`] for the boards of a target, all without one; in a run with turns for those whose turn it is.
pub(in super::super) fn build(triple: Option<&str>) -> Result<()> {
    let is_asked = |board: &&Board| triple.is_none_or(|triple| board.triple == triple);
    let asked: Vec<&'static Board> = BOARDS.iter().filter(is_asked).collect();
    if asked.is_empty() {
        return Err(format!("no board is built for `{}`", triple.unwrap_or_default()).into());
    }
    let mut boards = turns::here(asked);
    boards.sort_by_key(|board| board.triple);
    for board in boards {
        for program in PROGRAMS {
            eprintln!("firmware: {program} for {}", board.name);
            Firmware::build(board, program)?;
        }
    }
    Ok(())
}
