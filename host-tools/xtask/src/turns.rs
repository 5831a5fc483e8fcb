//! Boards by turns: several run the same kernels, and a run of the test command takes one of them, of a quarter of the sets of kernels.

use arenite_host::board::{BOARDS, Board};

/// Features of the runtime that have no kernels of their own: steps on several cores are those of one.
const WITHOUT_KERNELS: [&str; 2] = ["cores", "accelerators"];

/// Runs that together take every set of kernels, where their numbers follow each other.
const RUNS: usize = 4;

/// The variable by which a whole run tells its processes its number.
pub const VARIABLE: &str = "ARENITE_TURN";

/// The number of the whole run of `cargo xtask test` that this process belongs to, if to one with turns.
pub fn number() -> Option<usize> {
    std::env::var(VARIABLE).ok()?.parse().ok()
}

/// Of these boards the ones of this run, those of [`taken`]; all where there are no turns.
pub fn here(boards: Vec<&'static Board>) -> Vec<&'static Board> {
    match number() {
        Some(number) => taken(&boards, number),
        None => boards,
    }
}

/// The boards of the run with this number, in their order: one of four sets of kernels, and of those that run the same kernels one, the next
/// each time that their set is taken.
pub fn taken(boards: &[&'static Board], number: usize) -> Vec<&'static Board> {
    let sets = sets();
    let is_its_turn = |board: &&&Board| {
        let own = kernels(board);
        let set = sets.iter().position(|set| *set == own);
        let same: Vec<_> = boards.iter().filter(|other| kernels(other) == own).collect();
        set.is_some_and(|set| set % RUNS == number % RUNS) && same[number / RUNS % same.len()].name == board.name
    };
    boards.iter().filter(is_its_turn).copied().collect()
}

/// The sets of kernels that boards have, each once.
fn sets() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sets: Vec<_> = BOARDS.iter().map(kernels).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Facts that decide about a board's kernels: its instructions, and the features that add some.
fn kernels(board: &Board) -> (&'static str, Vec<&'static str>) {
    let adds = |feature: &&&str| !WITHOUT_KERNELS.contains(*feature);
    (board.triple, board.runtime.iter().filter(adds).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_runs_have_all_kernels_and_each_board_comes() {
        let sets = sets();
        let mut waiting: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
        let all: Vec<&Board> = BOARDS.iter().collect();
        for number in 0..12 * RUNS {
            // Runs of numbers behind each other have every set once.
            let runs: Vec<_> = (number..number + RUNS).map(|number| taken(&all, number)).collect();
            let mut kernels: Vec<_> = runs.iter().flatten().map(|board| kernels(board)).collect();
            kernels.sort_unstable();
            assert_eq!(kernels, sets, "{number}");
            assert!(
                runs.iter().all(|taken| taken.len() <= sets.len().div_ceil(RUNS)),
                "{number}"
            );
            waiting.retain(|name| runs[0].iter().all(|board| board.name != *name));
        }
        assert_eq!(waiting, [""; 0]);
        assert!(sets.len() < BOARDS.len() * 2 / 3, "{} sets", sets.len());
    }
}
