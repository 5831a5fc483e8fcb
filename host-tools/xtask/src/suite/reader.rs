//! The lines of cargo test.

use super::Results;

/// State of reading the lines of cargo test.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) results: Results,
    in_successes: bool,
    /// Tests that have been running for long and have not ended.
    pub(super) slow: Vec<String>,
}

impl Reader {
    /// Takes a line, and says whether it is to be shown.
    pub(super) fn read(&mut self, line: &str) -> bool {
        let results = &mut self.results;
        if line.starts_with("skipped: ") {
            results.skipped.push(line.to_owned());
        }
        if let Some(of) = line.strip_prefix("compared: ") {
            let count = of.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
            results.compared += count.unwrap_or(0);
        }
        if line.starts_with("test result: ") {
            let count = |what: &str| {
                let words: Vec<_> = line.split_whitespace().collect();
                let at = words.iter().position(|word| word.trim_end_matches(';') == what);
                at.and_then(|at| words.get(at.wrapping_sub(1))?.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            results.passed += count("passed");
            results.failed += count("failed");
            results.ignored += count("ignored");
        }
        if let Some(test) = line.strip_prefix("test ") {
            if let Some((name, _)) = test.split_once(" ... ignored, long: ") {
                results.long.push((String::new(), name.to_owned()));
            }
            if let Some(name) = test.strip_suffix(" ... FAILED") {
                results.failures.push(name.to_owned());
            }
            match test.split_once(" has been running for ") {
                Some((name, _)) => self.slow.push(name.to_owned()),
                None => self.slow.retain(|name| !test.starts_with(&format!("{name} ... "))),
            }
        }
        match line {
            "successes:" => self.in_successes = true,
            "failures:" => self.in_successes = false,
            _ if line.starts_with("test result: ") => self.in_successes = false,
            _ => {}
        }
        !self.in_successes && !line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_test_are_counted_and_slow_tests_named() {
        let mut reader = Reader::default();
        let lines = [
            "test one has been running for over 60 seconds",
            "test two has been running for over 60 seconds",
            "test one ... ok",
            "test three ... FAILED",
            "test five ... ignored, long: minutes",
            "test six ... ignored, a child of another test",
            "successes:",
            "skipped: four: no board",
            "compared: 1200 with one oracle",
            "compared: 34 with another",
            "test result: FAILED. 2 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ];
        let shown = lines.iter().filter(|line| reader.read(line)).count();
        // Output of a passing test is not shown.
        assert_eq!(shown, 7);
        assert_eq!(reader.slow, ["two"]);
        let Results {
            passed,
            failed,
            ignored,
            compared,
            skipped,
            failures,
            long,
            ..
        } = reader.results;
        assert_eq!(long, [(String::new(), "five".to_owned())]);
        assert_eq!((passed, failed, ignored, compared), (2, 1, 3, 1234));
        assert_eq!(
            (skipped, failures),
            (vec!["skipped: four: no board".to_owned()], vec!["three".to_owned()])
        );
    }
}
