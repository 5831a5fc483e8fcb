//! Boards by turns: several run the same kernels, and a run of the test command takes one of them.

use arenite_host::board::Board;

/// Features of the runtime that have no kernels of their own: steps on several cores are those of one.
const WITHOUT_KERNELS: [&str; 2] = ["cores", "accelerators"];

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

/// The boards of the run with this number, in their order: of those that run the same kernels one, the next with the next number.
pub fn taken(boards: &[&'static Board], number: usize) -> Vec<&'static Board> {
    let is_its_turn = |board: &&&Board| {
        let same: Vec<_> = boards.iter().filter(|other| kernels(other) == kernels(board)).collect();
        same[number % same.len()].name == board.name
    };
    boards.iter().filter(is_its_turn).copied().collect()
}

/// What decides about a board's kernels: its instructions, and the features that add some.
fn kernels(board: &Board) -> (&'static str, Vec<&'static str>) {
    let adds = |feature: &&&str| !WITHOUT_KERNELS.contains(*feature);
    (board.triple, board.runtime.iter().filter(adds).copied().collect())
}

#[cfg(test)]
mod tests {
    use arenite_host::board::BOARDS;

    use super::*;

    #[test]
    fn each_run_has_all_kernels_and_each_board_comes() {
        let mut families: Vec<_> = BOARDS.iter().map(kernels).collect();
        families.sort_unstable();
        families.dedup();
        let mut waiting: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
        let all: Vec<&Board> = BOARDS.iter().collect();
        for number in 0..12 {
            let taken = taken(&all, number);
            let mut kernels: Vec<_> = taken.iter().map(|board| kernels(board)).collect();
            kernels.sort_unstable();
            assert_eq!(kernels, families, "{number}");
            waiting.retain(|name| taken.iter().all(|board| board.name != *name));
        }
        assert_eq!(waiting, [""; 0]);
        assert!(families.len() < BOARDS.len() * 2 / 3, "{} families", families.len());
    }
}
