//! Problems from files: published instances, and networks.

use std::path::PathBuf;

use super::*;

/// The reference instances, or `None` (said so) where they are absent.
fn instances(test: &str, folder: &str) -> Option<Vec<(PathBuf, Problem)>> {
    let root = std::env::var_os("ARENITE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = root.join("data/planner").join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: {test}: no shared data");
        return None;
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    files.sort();
    assert!(!files.is_empty(), "{} holds no instance", folder.display());
    let read = |path: PathBuf| {
        let problem = csv::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path, problem)
    };
    Some(files.into_iter().map(read).collect())
}

/// The capacity in a name such as `A.1048576.csv`.
fn capacity(path: &std::path::Path) -> u64 {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
    name.rsplit('.').next().unwrap().parse().unwrap()
}

#[test]
fn challenging_instances_fit_their_capacity() {
    for (path, problem) in instances("challenging_instances_fit_their_capacity", ".").unwrap_or_default() {
        let plan = solve(&problem, &within(Options::DEFAULT_NODES, Some(capacity(&path)))).unwrap();
        check(&problem, &plan).unwrap();
        assert!(plan.height <= capacity(&path), "{}: {}", path.display(), plan.height);
        assert_eq!(plan.proven_optimal, plan.lower_bound == plan.height);
    }
}

/// Equal sizes made different, and lifetimes that no longer meet: every old plan still fits.
#[test]
fn variants_of_challenging_instances_fit_their_capacity() {
    for (path, problem) in instances("variants_of_challenging_instances_fit_their_capacity", ".").unwrap_or_default() {
        let name = path.display();
        for (kind, variant) in [
            ("reversed", generate::variant(&problem, true, 0, 1)),
            ("sizes reduced", generate::variant(&problem, false, 3, 1)),
            ("lifetimes shortened", generate::shortened(&problem, 30, 2, 1)),
        ] {
            let plan = solve(&variant, &within(Options::DEFAULT_NODES, Some(capacity(&path)))).unwrap();
            check(&variant, &plan).unwrap();
            assert!(plan.height <= capacity(&path), "{name}, {kind}: {}", plan.height);
        }
    }
}

/// Sizes just below multiples of 1024, in a packing that has no gap at those multiples.
#[test]
fn nearly_equal_sizes_are_searched_as_equal_ones() {
    let exact = generate::perfect(120, 1 << 6, 1 << 6, 2);
    let mut near = exact.clone();
    for (index, part) in near.buffers.iter_mut().flat_map(|b| &mut b.parts).enumerate() {
        part.size = part.size * 1024 - index as u64 % 7;
    }
    let capacity = 64 * 1024;
    let plan = solve(&near, &within(200_000, Some(capacity))).unwrap();
    check(&near, &plan).unwrap();
    assert!(plan.height <= capacity, "{}", plan.height);
}

#[test]
fn small_instances_reach_their_capacity() {
    for (path, problem) in instances("small_instances_reach_their_capacity", "small").unwrap_or_default() {
        let plan = solved(&problem, &Options::default());
        assert_eq!(
            (plan.height, plan.proven_optimal),
            (capacity(&path), true),
            "{}",
            path.display()
        );
    }
}

#[test]
fn networks_reach_max_live() {
    for (path, problem) in instances("networks_reach_max_live", "lifetimes").unwrap_or_default() {
        let plan = solved(&problem, &Options::default());
        assert_eq!(
            (plan.height, plan.proof),
            (lower_bound(&problem).unwrap(), Proof::BoundMet),
            "{}",
            path.display()
        );
    }
}
