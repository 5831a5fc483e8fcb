//! The branches of the functions by which load decides, of which the tests saw one side only.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::Value;

use super::Result;

/// How the functions begin by which load decides.
const DECIDES: [&str; 6] = [
    "fn check(",
    "fn check<",
    "fn check_",
    "fn trusts(",
    "fn supports(",
    "fn is_valid(",
];

/// How often a branch of these functions, which begins at a line and column, was true and how often it was not.
type Branches = BTreeMap<(String, u64, u64), [u64; 2]>;

/// Returns the coverage of these branches by the tests, as text: how many both ways, and the others one by one.
pub(super) fn report(export: &Value, root: &Path) -> Result<String> {
    let branches = branches(export, &root.join("core/src"), &|path| Ok(fs::read_to_string(path)?))?;
    Ok(told(&branches))
}

fn told(branches: &Branches) -> String {
    let both = branches.values().filter(|sides| !sides.contains(&0)).count();
    let mut text = format!("branches of checks, seen both ways: {both} of {}\n", branches.len());
    for ((file, line, column), sides) in branches {
        let what = match sides {
            [0, 0] => "never reached",
            [0, _] => "never true",
            [_, 0] => "always true",
            _ => continue,
        };
        let _ = writeln!(text, "  {file}:{line}:{column}: {what}");
    }
    text
}

/// All that llvm-cov exports of the files below `folder`, added up over the instances of generic functions.
fn branches(export: &Value, folder: &Path, read: &dyn Fn(&Path) -> Result<String>) -> Result<Branches> {
    let files = export["data"][0]["files"]
        .as_array()
        .ok_or("llvm-cov exported no files")?;
    let mut sum = Branches::new();
    for file in files {
        let path = Path::new(file["filename"].as_str().unwrap_or_default());
        let Ok(name) = path.strip_prefix(folder) else { continue };
        let ranges = deciding(&read(path)?);
        for branch in file["branches"].as_array().into_iter().flatten() {
            let number = |index: usize| branch[index].as_u64().unwrap_or(0);
            if !ranges.iter().any(|range| range.contains(&number(0))) {
                continue;
            }
            let sides = sum
                .entry((name.display().to_string(), number(0), number(1)))
                .or_default();
            *sides = [sides[0] + number(4), sides[1] + number(5)];
        }
    }
    Ok(sum)
}

/// The lines of the functions in `source` by which load decides: each ends at the first brace that is indented as its beginning is.
fn deciding(source: &str) -> Vec<RangeInclusive<u64>> {
    let lines: Vec<&str> = source.lines().collect();
    let mut ranges = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // Unit tests stand at the end.
        if *line == "mod tests {" {
            break;
        }
        if !DECIDES.iter().any(|name| line.contains(name)) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let length = lines[at..].iter().position(|line| *line == end).unwrap_or(0);
        ranges.push(at as u64 + 1..=(at + length) as u64 + 1);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "impl Op {
    pub fn check(&self) -> bool {
        a && b
    }

    fn checked(&self) {
        c
    }
}

fn trusts() {
    d
}

mod tests {
    fn check() {}
}
";

    #[test]
    fn functions_that_decide_are_found() {
        assert_eq!(deciding(SOURCE), [2..=4, 11..=13]);
    }

    #[test]
    fn branches_are_added_up_and_those_of_one_side_told() {
        let file = |name: &str, branches: &[[u64; 6]]| serde_json::json!({"filename": name, "branches": branches});
        let files = [
            file(
                "/r/core/src/ops/op.rs",
                &[
                    [3, 9, 3, 10, 5, 0],
                    [3, 14, 3, 15, 0, 0],
                    [7, 9, 7, 10, 0, 0],
                    [3, 9, 3, 10, 1, 2],
                ],
            ),
            file("/r/core/src/b.rs", &[[12, 5, 12, 6, 0, 7], [2, 1, 2, 2, 7, 0]]),
            file("/r/host-tools/src/a.rs", &[[3, 9, 3, 10, 5, 0]]),
        ];
        let export = serde_json::json!({"data": [{"files": files}]});
        let branches = branches(&export, Path::new("/r/core/src"), &|_| Ok(SOURCE.into())).unwrap();
        assert_eq!(
            told(&branches),
            "branches of checks, seen both ways: 1 of 4\n  b.rs:2:1: always true\n  b.rs:12:5: never true\n  ops/op.rs:3:14: never reached\n"
        );
        assert!(report(&serde_json::json!({}), Path::new("/r")).is_err());
    }
}
