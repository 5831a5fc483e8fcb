//! Kernels of the test kit, all or the one that is asked for.

use std::collections::HashSet;

use arenite::kernels::Backend;
use arenite::{KernelId, Target};
use arenite_host::board::{BOARDS, Board};

/// The kernel that is asked for alone: `ARENITE_KERNEL` has its name, as `cargo xtask test kernel NAME` says it.
///
/// # Panics
/// Where no kernel has the name.
pub fn only() -> Option<KernelId> {
    let name = std::env::var("ARENITE_KERNEL").ok()?;
    let named = KernelId::ALL.iter().copied().find(|kernel| kernel.name() == name);
    Some(named.unwrap_or_else(|| panic!("no kernel is called `{name}`")))
}

/// The kernels that the kit has cases of, all but an NPU's commands, which no core computes; of them the one that is asked for.
pub fn compared() -> impl Iterator<Item = KernelId> {
    let only = only();
    let all = KernelId::ALL.iter().copied();
    all.filter(move |&kernel| kernel != KernelId::EthosU && only.is_none_or(|only| only == kernel))
}

/// Whether `cargo xtask bench --most` has steps of a kernel.
pub fn is_generated(kernel: KernelId) -> bool {
    kernel != KernelId::EthosU
}

/// Whether the kit of a board has cases of a kernel: that of a small flash leaves the portable ones to other boards of the same core.
pub fn is_held(kernel: KernelId, board: &Board) -> bool {
    kernel != KernelId::EthosU && (kernel.backend() != Backend::Scalar || !board.firmware.contains(&"small-flash"))
}

/// The boards of one kernel: of those whose packing takes it, one for each code that the compiler makes of it.
///
/// # Panics
/// Where no board runs it.
pub fn boards_of(kernel: KernelId) -> Vec<&'static Board> {
    let takes = |board: &&Board| {
        let targets = Target::ALL
            .iter()
            .filter(|target| board.targets.contains(&target.name()));
        let mut backends =
            targets.flat_map(|&target| Backend::order(target, false).chain(Backend::order(target, true)));
        is_held(kernel, board) && backends.any(|backend| backend == kernel.backend())
    };
    let mut codes = HashSet::new();
    let mut is_new = |board: &&Board| codes.insert((board.triple, board.rustflags, board.runtime));
    let boards: Vec<&Board> = BOARDS.iter().filter(takes).filter(|board| is_new(board)).collect();
    assert!(!boards.is_empty(), "no board runs {}", kernel.name());
    boards
}
