//! What a test may lack, and whether this machine is said to have it: `ARENITE_REQUIRE=shared,qemu,python`.

/// What may be required, and words of a reason that say it is missing.
const REQUIREMENTS: [(&str, &[&str]); 3] = [
    ("shared", &["shared data", "shared traces"]),
    ("qemu", &["qemu", "rustup target add", "is not installed"]),
    ("python", &["Python", "NumPy", "ARENITE_PYTHON"]),
];

/// Files of `tests/tests` that hold property tests; the long tier runs them with more cases.
pub const PROPERTIES: [&str; 6] = [
    "arena",
    "bad_input",
    "dead_channels",
    "quantise",
    "random_graphs",
    "tflite_import",
];

/// Checks what `ARENITE_REQUIRE` says.
///
/// # Errors
/// The word that is no requirement.
pub fn check(required: &str) -> Result<(), String> {
    let known = |word: &str| REQUIREMENTS.iter().any(|&(name, _)| name == word);
    match required.split(',').find(|word| !word.is_empty() && !known(word)) {
        None => Ok(()),
        Some(word) => Err(format!(
            "ARENITE_REQUIRE={required}: `{word}` is none of shared, qemu, python"
        )),
    }
}

/// What `reason`, for which something was skipped, says is missing although `required` lists it.
pub fn violated(required: &str, reason: &str) -> Option<&'static str> {
    let listed = |name: &str| required.split(',').any(|word| word == name);
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    REQUIREMENTS
        .into_iter()
        .find(|&(name, words)| listed(name) && says(words))
        .map(|(name, _)| name)
}

/// `ARENITE_REQUIRE`, empty where it is not set.
pub fn required() -> String {
    std::env::var("ARENITE_REQUIRE").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_may_not_be_skipped() {
        for (required, reason, expected) in [
            ("shared", "no shared data", Some("shared")),
            ("qemu,shared", "no shared data", Some("shared")),
            ("qemu", "no shared data", None),
            ("", "no shared data", None),
            ("qemu", "`qemu-system-arm` is not installed", Some("qemu")),
            ("python", "no Python with NumPy and safetensors", Some("python")),
            ("shared,qemu,python", "cargo-deny is missing", None),
        ] {
            assert_eq!(violated(required, reason), expected, "{required}: {reason}");
        }
    }

    #[test]
    fn an_unknown_requirement_is_an_error() {
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("shared,qemu,python"), Ok(()));
        assert!(check("shared,quemu").is_err_and(|error| error.contains("`quemu`")));
    }
}
