//! The commands in documents, messages and comments that run tests choose tests that are there: a filter that is in no test's name runs nothing, and passes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arenite_xtask::suites::SUITES;
use regex::Regex;

/// Programs of tests beside the suites: the command line's, the runtime's, and those of patches.
const OTHERS: [&str; 5] = ["backend", "cli", "corpus", "kernel", "operator"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below a folder whose names end so, but for what builds leave.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map_while(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            if !name.starts_with('.') && name != "target" {
                files(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The functions of each suite as libtest would name them, and its modules.
fn names() -> BTreeMap<&'static str, Vec<String>> {
    let function = Regex::new(r"\bfn ([a-z_0-9]+)").expect("a pattern");
    let of = |suite: &'static str| {
        let folder = root().join("tests/tests").join(suite);
        let mut sources = Vec::new();
        files(&folder, &[".rs"], &mut sources);
        let mut names = Vec::new();
        for source in sources {
            let path = source.strip_prefix(&folder).expect("inside").with_extension("");
            let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
            let module: String = parts.filter(|part| part != "mod").map(|part| part + "::").collect();
            let text = fs::read_to_string(&source).expect("text");
            names.extend(
                function
                    .captures_iter(&text)
                    .map(|name| format!("{module}{}", &name[1])),
            );
            names.push(module);
        }
        (suite, names)
    };
    SUITES.into_iter().map(of).collect()
}

/// Returns the faults of the commands of a text.
fn faults(text: &str, names: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let line_end = Regex::new(r"\s*\n\s*(//[/!]? ?)?").expect("a pattern");
    let command = Regex::new(r"(?:--test [a-z_0-9]+ ?)+(?:-- )?((?:[a-z_0-9]+::[a-z_0-9:]* ?)*)").expect("a pattern");
    let program = Regex::new(r"--test ([a-z_0-9]+)").expect("a pattern");
    let text = line_end.replace_all(text, " ");
    let mut faults = Vec::new();
    for command in command.captures_iter(&text) {
        let programs: Vec<String> = program
            .captures_iter(&command[0])
            .map(|name| name[1].to_owned())
            .collect();
        let known = |name: &String| SUITES.contains(&&**name) || OTHERS.contains(&&**name);
        let among = |filter: &str| {
            let suites = programs.iter().filter_map(|name| names.get(&**name));
            suites.flatten().any(|name| name.contains(filter))
        };
        if !programs.iter().all(known) || !command[1].split_whitespace().all(among) {
            faults.push(command[0].to_owned());
        }
    }
    faults
}

#[test]
fn commands_run_tests_that_there_are() {
    let names = names();
    let mut sources = Vec::new();
    files(&root(), &[".md", ".rs", ".py", ".h"], &mut sources);
    let here = Path::new(file!()).file_name().expect("a name");
    sources.retain(|path| path.file_name() != Some(here));
    let mut wrong = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("text");
        let faults = faults(&text, &names);
        wrong.extend(faults.into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(wrong.is_empty(), "they run nothing:\n{}", wrong.join("\n"));
}

#[test]
fn a_command_that_runs_nothing_is_found() {
    let names = names();
    let wrong = |text: &str| faults(text, &names).len();
    assert_eq!(
        wrong("`cargo test --test host filters::` and `--test boards -- kernels:: infer::`"),
        0
    );
    assert_eq!(
        wrong("cargo test --test host --test boards -- guards:: kernels:: -- --nocapture"),
        0
    );
    assert_eq!(wrong("cargo test --test\n//! host filters::a_command"), 0);
    assert_eq!(wrong("cargo test --test host kernels::"), 1, "another suite's");
    assert_eq!(wrong("cargo test --test host filters::nothing"), 1);
    assert_eq!(wrong("cargo test --test guards"), 1, "a file is no program");
}
