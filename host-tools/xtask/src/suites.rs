//! The files of `tests/tests`: each is a module of one of three programs, so that what they share is linked three times and not a hundred.

use std::path::{Path, PathBuf};

/// The programs, each a folder of files.
pub const SUITES: [&str; 3] = ["host", "boards", "programs"];

/// The suite of a file of tests, and its path or its folder's; nothing where no file has this name. `root` is the project's.
pub fn find(root: &Path, file: &str) -> Option<(&'static str, PathBuf)> {
    let place = |suite| {
        let folder = root.join("tests/tests").join(suite);
        let paths = [folder.join(format!("{file}.rs")), folder.join(file)];
        paths.into_iter().find(|path| path.exists()).map(|path| (suite, path))
    };
    SUITES.into_iter().find_map(place)
}

/// Returns the arguments of cargo that build the programs with these files of tests: `--test` and a name for each program.
pub fn targets(root: &Path, files: &[&str]) -> Vec<String> {
    let mut programs: Vec<&str> = files
        .iter()
        .map(|file| find(root, file).map_or(*file, |(suite, _)| suite))
        .collect();
    programs.sort_unstable();
    programs.dedup();
    let target = |program: &str| ["--test".to_owned(), program.to_owned()];
    programs.into_iter().flat_map(target).collect()
}

/// The filters, for behind `--`, that choose these files of tests.
pub fn filters(files: &[&str]) -> Vec<String> {
    files.iter().map(|file| format!("{file}::")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_their_suites() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let suite = |file| find(&root, file).map(|(suite, _)| suite);
        assert_eq!(suite("guards"), Some("host"));
        assert_eq!(suite("kernels"), Some("boards"));
        assert_eq!(suite("matrix"), Some("programs"));
        assert_eq!(suite("cli"), None);
        let targets = targets(&root, &["kernels", "cli", "guards", "operands"]);
        assert_eq!(targets, ["--test", "boards", "--test", "cli", "--test", "host"]);
        assert_eq!(filters(&["kernels", "guards"]), ["kernels::", "guards::"]);
    }

    #[test]
    fn every_file_is_a_module_of_its_suite() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tests");
        for suite in SUITES {
            let main = std::fs::read_to_string(root.join(suite).join("main.rs")).expect("a suite");
            for entry in std::fs::read_dir(root.join(suite)).expect("a suite").flatten() {
                let name = entry.file_name().to_string_lossy().replace(".rs", "");
                assert!(
                    name == "main" || main.contains(&format!("\nmod {name};\n")),
                    "{suite}: {name}"
                );
            }
        }
    }
}
