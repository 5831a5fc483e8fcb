//! The tests that say something about the product on the host alone: by these mutants are judged and lines are counted.

use arenite_xtask::suites;

use super::{Result, root};

/// The packages whose tests these are.
pub(super) const PACKAGES: [&str; 12] = [
    "arenite",
    "arenite-protocol",
    "arenite-sensors",
    "arenite-serial",
    "arenite-stream",
    "arenite-graph",
    "arenite-import",
    "arenite-plan",
    "arenite-quantise",
    "arenite-board",
    "arenite-host",
    "arenite-tests",
];

/// Files of tests that build for boards, count what boards do or read source files: on the host they run next to nothing of the product. `boards` stands for
/// all whose names end with it.
const ELSEWHERE: [&str; 4] = ["boards", "cost_axes", "results", "structure"];

/// Returns the arguments that choose these tests: those of `cargo test`, and those of the programs that it runs.
pub(super) fn chosen() -> Result<(Vec<String>, Vec<String>)> {
    if let Some(gone) = ELSEWHERE.iter().find(|name| suites::find(&root(), name).is_none()) {
        return Err(format!("tests/tests has no `{gone}`").into());
    }
    let targets = ["--lib", "--bins", "--test", "boards", "--test", "cli", "--test", "host"];
    let skipped = suites::filters(&ELSEWHERE);
    let skips = skipped.into_iter().flat_map(|name| ["--skip".to_owned(), name]);
    Ok((targets.map(String::from).into(), skips.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tests_are_chosen_but_those_of_boards() {
        let (targets, filters) = chosen().unwrap();
        assert!(targets.iter().any(|target| target == "host"), "{targets:?}");
        assert!(filters.chunks(2).all(|pair| pair[0] == "--skip"), "{filters:?}");
        assert!(filters.contains(&"structure::".into()) && !filters.contains(&"guards::".into()));
    }
}
