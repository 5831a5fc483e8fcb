//! The variants of an error type, from its source: a test that claims to provoke all of them is held to it.

use std::path::Path;

/// Variants of `pub enum NAME` in a file of the workspace, in order.
///
/// # Panics
/// Where the file has no such type.
pub fn variants(file: &str, name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (_, body) = source
        .split_once(&format!("pub enum {name} {{\n"))
        .unwrap_or_else(|| panic!("{file} has no `pub enum {name}`"));
    let (body, _) = body.split_once("\n}").expect("an end");
    body.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| variant(line).to_string())
        .collect()
}

/// The variant's name at the start of its debug output.
pub fn variant(debug: &str) -> &str {
    debug
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default()
}

/// Variants that nothing provoked, given the debug output of what was provoked.
pub fn unprovoked(file: &str, name: &str, provoked: impl IntoIterator<Item = String>) -> Vec<String> {
    let provoked: Vec<String> = provoked.into_iter().collect();
    let seen = |of: &String| provoked.iter().any(|debug| variant(debug) == of);
    let all = variants(file, name);
    assert!(!all.is_empty(), "{name} has no variant");
    all.into_iter().filter(|of| !seen(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_nothing_provokes_is_named() {
        let provoked = [
            "ArenaTooSmall { region: 0 }",
            "StateSize",
            "StateMisaligned",
            "MemoryTaken",
        ]
        .map(String::from);
        let missing = unprovoked("core/src/error.rs", "SessionError", provoked);
        assert_eq!(missing, ["ArenaMisaligned"]);
    }
}
