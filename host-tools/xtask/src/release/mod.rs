//! `cargo xtask release VERSION`: changelog, versions, commit and tag; then archive, packages, wheel, a list of what is in them, and checksums of all.

mod edits;
mod sbom;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_xtask::tiers;
use sha2::{Digest, Sha256};

use self::edits::Version;
use super::{Result, cargo, dist, gates, root, run, setup, suite, target};

/// Workspaces whose locks are compared with their manifests: those whose packages every test command has at hand.
const LOCKED: [&str; 3] = ["Cargo.toml", "firmware/Cargo.toml", "host-tools/qemu-plugin/Cargo.toml"];

/// Cuts a release, or with `dry` says what it would change and changes nothing.
pub(super) fn release(version: &str, dry: bool) -> Result<()> {
    let version: Version = version.parse()?;
    let tag = format!("v{version}");
    if !git(&["tag", "--list", &tag])?.is_empty() {
        return Err(format!("the tag {tag} is there already").into());
    }
    let dirty = git(&["status", "--porcelain"])?;
    if !dirty.is_empty() {
        return Err(format!("commit or drop these first:\n{dirty}").into());
    }
    let changes = changes(&version, &tiers::Passed::today().date)?;
    for (path, text) in &changes {
        let before = fs::read_to_string(root().join(path))?;
        let lines = before.lines().zip(text.lines()).filter(|(a, b)| a != b).count();
        println!("{path}: {} lines", lines.max(1));
    }
    fits(&changes)?;
    if dry {
        println!("nothing was changed: leave --dry-run out to commit, tag and build {tag}");
        return Ok(());
    }
    // A tree that was not tested since it changed is not released.
    suite::due()?;
    for (path, text) in &changes {
        fs::write(root().join(path), text)?;
    }
    git(&["commit", "--all", "--message", &format!("Release {version}")])?;
    git(&["tag", "--annotate", &tag, "--message", &format!("Arenite {version}")])?;
    let folder = build(&version)?;
    println!(
        "{}: publish with `git push origin HEAD {tag}`, `cargo publish --workspace` and the files of this folder",
        folder.display()
    );
    Ok(())
}

/// The tracked files that a release changes, with their new content.
fn changes(version: &Version, date: &str) -> Result<BTreeMap<String, String>> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let old = edits::version_of(&manifest).ok_or("Cargo.toml states no version")?;
    if *version <= old.parse()? {
        return Err(format!("{version} is not after {old}").into());
    }
    let new = version.to_string();
    let mut changes = BTreeMap::new();
    for path in git(&["ls-files"])?.lines() {
        let name = path.rsplit('/').next().unwrap_or(path);
        if !matches!(
            name,
            "Cargo.toml" | "Cargo.lock" | "_version.py" | "CITATION.cff" | "CHANGELOG.md"
        ) {
            continue;
        }
        let text = fs::read_to_string(root().join(path))?;
        let edited = match name {
            "Cargo.toml" => edits::manifest(&text, &old, &new),
            "Cargo.lock" => edits::lock(&text, &old, &new),
            "_version.py" => text.replace(&format!("\"{old}\""), &format!("\"{new}\"")),
            "CITATION.cff" => edits::citation(&text, &new, date),
            _ => edits::changelog(&text, &new, date)?,
        };
        if edited != text {
            changes.insert(path.to_owned(), edited);
        }
    }
    Ok(changes)
}

/// Whether manifests and locks fit each other behind the changes, in a copy.
fn fits(changes: &BTreeMap<String, String>) -> Result<()> {
    let copy = tempfile::tempdir()?;
    let archive = copy.path().join("tree.tar");
    let output = format!("--output={}", archive.display());
    git(&["archive", "--format=tar", &output, "HEAD"])?;
    tar::Archive::new(fs::File::open(&archive)?).unpack(copy.path())?;
    for (path, text) in changes {
        fs::write(copy.path().join(path), text)?;
    }
    for manifest in LOCKED {
        let path = copy.path().join(manifest);
        let arguments = ["metadata", "--locked", "--format-version", "1", "--manifest-path"];
        let output = cargo(&arguments).arg(&path).output()?;
        if !output.status.success() {
            return Err(format!("{manifest}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(())
}

/// Builds what people install, and returns the folder that it lies in.
fn build(version: &Version) -> Result<PathBuf> {
    let folder = target().join(format!("release-{version}"));
    fs::create_dir_all(&folder)?;
    dist(&[], &[])?;
    gates::package()?;
    copied(&target().join("dist"), &folder, &["tgz", "zip"])?;
    copied(&target().join("package-check/package"), &folder, &["crate"])?;
    let python = setup::python().ok_or("no Python: `cargo xtask setup --all` installs it")?;
    run(Command::new(python)
        .args(["-m", "maturin", "build", "--profile", "shipped", "--locked", "--out"])
        .arg(&folder)
        .current_dir(root().join("host-tools/python")))?;
    fs::write(
        folder.join(format!("arenite-{version}.cdx.json")),
        sbom::of_the_programs()?,
    )?;
    fs::write(folder.join("SHA256SUMS"), sums(&folder)?)?;
    Ok(folder)
}

/// Copies the files of these endings.
fn copied(from: &Path, to: &Path, endings: &[&str]) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let ends = path
            .extension()
            .is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted));
        if let Some(name) = path.file_name().filter(|_| ends) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Checksums of the files of a folder, as `sha256sum --check` reads them.
fn sums(folder: &Path) -> Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && name != "SHA256SUMS" {
            let hash: String = Sha256::digest(fs::read(&path)?)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            lines.push(format!("{hash}  {name}\n"));
        }
    }
    lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
    Ok(lines.concat())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output()?;
    if !output.status.success() {
        return Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a copy of what is committed here: the next version's manifests and locks fit each other.
    #[test]
    fn the_next_version_fits_everywhere() {
        if git(&["rev-parse", "HEAD"]).is_err() {
            eprintln!("skipped: the_next_version_fits_everywhere: no git here");
            return;
        }
        let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
        let old: Version = edits::version_of(&manifest)
            .expect("a version")
            .parse()
            .expect("three numbers");
        let changes = changes(&old.next(), "2031-02-03").expect("changes");
        for path in [
            "Cargo.toml",
            "Cargo.lock",
            "firmware/Cargo.lock",
            "CHANGELOG.md",
            "CITATION.cff",
        ] {
            assert!(changes.contains_key(path), "{path}");
        }
        fits(&changes).expect("manifests and locks fit");
    }

    #[test]
    fn checksums_are_those_that_sha256sum_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("b.txt"), "abc").expect("written");
        fs::write(folder.path().join("a.txt"), "").expect("written");
        fs::write(folder.path().join("SHA256SUMS"), "old").expect("written");
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.txt\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.txt\n";
        assert_eq!(sums(folder.path()).expect("sums"), expected);
    }
}
