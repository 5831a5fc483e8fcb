//! Property tests of `tests/tests`: how many cases, and where those that failed are kept.

use std::path::Path;

use proptest::test_runner::{Config, FileFailurePersistence};

/// The configuration of a property in a file of `tests/tests` that tries `times` as many cases as others do: 256, unless `PROPTEST_CASES` says
/// otherwise, as in the long tier. The seed is in `.cargo/config.toml`. A case that fails is kept in `tests/proptest-regressions`, and tried
/// first from then on.
pub fn config(name: &str, times: f64) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("proptest-regressions/{name}.txt"));
    // Proptest wants a text for as long as the program runs.
    let file: &'static str = Box::leak(file.display().to_string().into_boxed_str());
    let default = Config::default();
    Config {
        cases: (f64::from(default.cases) * times) as u32,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..default
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arenite_xtask::require::PROPERTIES;
    use arenite_xtask::suites::SUITES;
    use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

    use super::*;

    /// A file's text, or that of all in a folder.
    fn text(path: &Path) -> String {
        match std::fs::read_dir(path) {
            Ok(entries) => entries.map_while(Result::ok).map(|entry| text(&entry.path())).collect(),
            Err(_) => std::fs::read_to_string(path).expect("reads"),
        }
    }

    fn files() -> impl Iterator<Item = (String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let suites = SUITES.into_iter().map(move |suite| folder.join(suite));
        let entries = suites.flat_map(|suite| std::fs::read_dir(suite).expect("the tests").map_while(Result::ok));
        entries.map(|entry| {
            let name = entry.file_name().to_string_lossy().replace(".rs", "");
            (name, text(&entry.path()))
        })
    }

    #[test]
    fn the_long_tier_runs_every_property_and_each_is_configured_here() {
        let found: BTreeSet<String> = files()
            .filter(|(_, text)| text.contains("use proptest::"))
            .map(|(name, text)| {
                assert!(text.contains(&format!("properties::config(\"{name}\"")), "{name}");
                name
            })
            .collect();
        assert_eq!(found, PROPERTIES.map(String::from).into());
    }

    #[test]
    fn runs_begin_with_one_seed_and_repeat() {
        assert!(
            matches!(Config::default().rng_seed, RngSeed::Fixed(_)),
            "cargo sets PROPTEST_RNG_SEED by .cargo/config.toml"
        );
        let numbers = || {
            let mut numbers = Vec::new();
            let mut runner = TestRunner::new(Config {
                failure_persistence: None,
                ..config("none", 0.125)
            });
            let strategy = proptest::num::u64::ANY;
            let seen = std::cell::RefCell::new(&mut numbers);
            let run = runner.run(&strategy, |n| {
                seen.borrow_mut().push(n);
                Ok::<(), TestCaseError>(())
            });
            assert_eq!(run, Ok(()));
            numbers
        };
        let first = numbers();
        assert_eq!(first.len(), Config::default().cases as usize / 8);
        assert_eq!(first, numbers());
    }
}
