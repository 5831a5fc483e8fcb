//! Measures the int8 networks that `pack --calibrate` makes of MLPerf Tiny's float ones: `cargo xtask quantise [MODEL …]`, and with
//! `--python PROGRAM` what other quantisers make of them.

use std::path::PathBuf;

use arenite_xtask::quantise::{SUBJECTS, measure, read, write};
use arenite_xtask::quantisers::{self, Places};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("ARENITE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let (results, models) = (root.join("tests/results"), shared.join("data/models"));
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let note = &mut |line: &str| eprintln!("{line}");
    if let [option, python, names @ ..] = &wanted[..]
        && option == "--python"
    {
        let places = Places {
            root: &root,
            models: &models,
            python: python.as_ref(),
        };
        let fresh = quantisers::measure(&places, names, note)?;
        let mut rows = quantisers::read(&results)?;
        rows.retain(|row| fresh.iter().all(|other| other.network != row.network));
        rows.extend(fresh);
        rows.sort_by(|a, b| (&a.network, &a.quantiser).cmp(&(&b.network, &b.quantiser)));
        quantisers::record(&results, &rows)?;
        return Ok(());
    }
    let mut rows = read(&results)?;
    for subject in SUBJECTS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == subject.float) {
            continue;
        }
        let row = measure(&subject, &models, note)?;
        println!("{row:#?}");
        rows.retain(|other| other.model != row.model);
        rows.push(row);
    }
    rows.sort_by_key(|row| SUBJECTS.iter().position(|subject| subject.float == row.model));
    write(&results, &rows)?;
    Ok(())
}
