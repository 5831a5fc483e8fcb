//! Measures the int8 networks that `pack --calibrate` makes of MLPerf Tiny's float ones: `cargo xtask quantise [MODEL …]`.

use std::path::PathBuf;

use arenite_xtask::quantise::{SUBJECTS, measure, read, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("ARENITE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let results = root.join("tests/results");
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut rows = read(&results).unwrap_or_default();
    for subject in SUBJECTS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == subject.float) {
            continue;
        }
        let row = measure(&subject, &shared.join("data/models"), &mut |line| eprintln!("{line}"))?;
        println!("{row:#?}");
        rows.retain(|other| other.model != row.model);
        rows.push(row);
    }
    rows.sort_by_key(|row| SUBJECTS.iter().position(|subject| subject.float == row.model));
    write(&results, &rows)?;
    Ok(())
}
