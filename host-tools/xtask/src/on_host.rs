//! The tests that say something about the product on the host alone: by these mutants are judged and lines are counted.

use std::collections::BTreeSet;
use std::fs;

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

/// Files of tests that build for boards, count what boards do or read source files: on the host they run next to nothing of the product.
const ELSEWHERE: [&str; 15] = [
    "arena_boards",
    "boards",
    "cost_axes",
    "cost_boards",
    "embedded",
    "footprint",
    "include",
    "matrix",
    "new",
    "panics",
    "patches",
    "results",
    "signed_boards",
    "structure",
    "tasks",
];

/// What chooses these tests, as arguments of `cargo test`.
pub(super) fn chosen() -> Result<Vec<String>> {
    let mut names = BTreeSet::from(["cli".to_string()]);
    for entry in fs::read_dir(root().join("tests/tests"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    if let Some(gone) = ELSEWHERE.iter().find(|name| !names.remove(**name)) {
        return Err(format!("tests/tests has no `{gone}`").into());
    }
    let files = names.into_iter().flat_map(|name| ["--test".to_string(), name]);
    Ok(["--lib", "--bins"].map(String::from).into_iter().chain(files).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tests_are_chosen_but_those_of_boards() {
        let chosen = chosen().unwrap();
        let has = |name: &str| chosen.windows(2).any(|pair| pair == ["--test", name]);
        assert!(has("guards") && has("judges") && has("cli"), "{chosen:?}");
        assert!(!has("boards") && !has("footprint"), "{chosen:?}");
        assert_eq!(chosen[..2], ["--lib", "--bins"]);
    }
}
