//! Changes of texts by a release: versions of manifests and locks, the changelog's head, the citation.

use std::fmt;
use std::str::FromStr;

use super::Result;

/// `major.minor.patch`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u64; 3]);

impl FromStr for Version {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers: Vec<u64> = text.split('.').filter_map(|part| part.parse().ok()).collect();
        let numbers = <[u64; 3]>::try_from(numbers).ok().map(Version);
        let found = numbers.filter(|version| version.to_string() == text);
        found.ok_or_else(|| format!("`{text}` is no version; expected three numbers, as 0.2.0"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    /// The next minor version.
    #[cfg(test)]
    pub(super) fn next(&self) -> Self {
        Version([self.0[0], self.0[1] + 1, 0])
    }
}

/// The version that a workspace states.
pub(super) fn version_of(manifest: &str) -> Option<String> {
    let (_, package) = manifest.split_once("[workspace.package]")?;
    let line = package.lines().find_map(|line| line.strip_prefix("version = \""))?;
    Some(line.trim_end_matches('"').to_owned())
}

/// A manifest: its package's version, and those of packages of this tree, which have a path.
pub(super) fn manifest(text: &str, old: &str, new: &str) -> String {
    let (from, to) = (format!("version = \"{old}\""), format!("version = \"{new}\""));
    edited(text, |line, section| {
        let own = line == from && matches!(section, "[package]" | "[workspace.package]");
        let beside = line.contains("path = \"") && line.contains(&from);
        (own || beside).then(|| line.replace(&from, &to))
    })
}

/// A lock: the versions of packages of this tree, which have no source.
pub(super) fn lock(text: &str, old: &str, new: &str) -> String {
    let (from, to) = (format!("version = \"{old}\""), format!("version = \"{new}\""));
    let blocks = text.split("\n\n").map(|block| {
        let own = block.contains("\nname = \"arenite") && !block.contains("\nsource = ");
        if own {
            block.replacen(&from, &to, 1)
        } else {
            block.to_owned()
        }
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// The changelog: what is unreleased becomes the version's.
///
/// # Errors
/// Where nothing is unreleased.
pub(super) fn changelog(text: &str, new: &str, date: &str) -> Result<String> {
    const HEAD: &str = "## Unreleased\n";
    let (before, rest) = text
        .split_once(HEAD)
        .ok_or("CHANGELOG.md has no head `## Unreleased`")?;
    let entries = rest.split("\n## ").next().unwrap_or_default();
    if entries.trim().is_empty() {
        return Err("CHANGELOG.md: nothing stands below `## Unreleased`".into());
    }
    Ok(format!("{before}{HEAD}\n## {new} ({date})\n{rest}"))
}

/// The citation's version and date.
pub(super) fn citation(text: &str, new: &str, date: &str) -> String {
    let version = |line: &str| {
        line.starts_with("version: ")
            .then(|| format!("version: {new}\ndate-released: {date}"))
    };
    let lines = text.lines().filter(|line| !line.starts_with("date-released: "));
    lines
        .map(|line| version(line).unwrap_or_else(|| line.to_owned()) + "\n")
        .collect()
}

/// The lines of a text, with those replaced for which `edit` gives another; it is told the head of the section.
fn edited(text: &str, edit: impl Fn(&str, &str) -> Option<String>) -> String {
    let (mut all, mut section) = (String::with_capacity(text.len()), "");
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        all += edit(line, section).as_deref().unwrap_or(line);
        all += "\n";
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers_in_order() {
        let version = |text: &str| text.parse::<Version>();
        assert!(version("0.10.0") > version("0.9.1"));
        assert_eq!(version("1.2.3").map(|v| v.to_string()), Ok("1.2.3".to_owned()));
        for wrong in ["", "1.2", "1.2.3.4", "v1.2.3", "1.02.3", "1.2.x", "1.2.3-rc1"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_of_this_tree_change_and_no_others() {
        let text = "[workspace.package]\nversion = \"0.1.0\"\n[dependencies]\na = { path = \"a\", version = \"0.1.0\" }\nb = \"0.1.0\"\n\
            c = { version = \"0.1.0\" }\n[package.metadata]\nversion = \"0.1.0\"\n";
        let expected = "[workspace.package]\nversion = \"0.2.0\"\n[dependencies]\na = { path = \"a\", version = \"0.2.0\" }\nb = \"0.1.0\"\n\
            c = { version = \"0.1.0\" }\n[package.metadata]\nversion = \"0.1.0\"\n";
        assert_eq!(version_of(text).as_deref(), Some("0.1.0"));
        assert_eq!(manifest(text, "0.1.0", "0.2.0"), expected);
        let text = "version = 4\n\n[[package]]\nname = \"arenite-host\"\nversion = \"0.1.0\"\n\
            dependencies = [\n \"x\",\n]\n\n[[package]]\nname = \"arenite-like\"\n\
            version = \"0.1.0\"\nsource = \"registry\"\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n";
        assert_eq!(lock(text, "0.1.0", "0.2.0"), text.replacen("0.1.0", "0.2.0", 1));
    }

    #[test]
    fn the_changelog_gets_a_head_where_there_is_news() {
        let text = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n";
        let expected = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2031-02-03)\n\n- New.\n\n## 0.1.0\n\n- Old.\n";
        assert_eq!(changelog(text, "0.2.0", "2031-02-03").expect("news"), expected);
        assert!(changelog("## Unreleased\n\n## 0.1.0\n\n- Old.\n", "0.2.0", "").is_err());
        assert!(changelog("# Changelog\n", "0.2.0", "").is_err());
    }

    #[test]
    fn the_citation_has_the_version_and_the_date() {
        let text = "cff-version: 1.2.0\nversion: 0.1.0\ndate-released: 2026-01-02\n";
        let expected = "cff-version: 1.2.0\nversion: 0.2.0\ndate-released: 2031-02-03\n";
        assert_eq!(citation(text, "0.2.0", "2031-02-03"), expected);
        // Before the first release there is no date.
        let text = "cff-version: 1.2.0\nversion: 0.1.0\n";
        assert_eq!(citation(text, "0.2.0", "2031-02-03"), expected);
    }
}
