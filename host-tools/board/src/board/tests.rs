//! The table's rows against each other and against the firmware's manifest.

use std::path::Path;

use super::table::{BOARDS, Board};

/// Cargo cannot read a table: the firmware's manifest repeats the names, and nothing else.
#[test]
fn the_firmware_has_a_feature_for_each_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/Cargo.toml");
    let manifest = std::fs::read_to_string(&path).expect("the firmware's manifest");
    let (_, features) = manifest.split_once("[features]\n").expect("features");
    let (features, _) = features
        .split_once("\n# ")
        .expect("features of another kind behind a comment");
    let mut expected = Vec::new();
    for board in &BOARDS {
        let runtime = board.runtime.iter().map(|name| format!("\"arenite/{name}\""));
        let firmware = board.firmware.iter().map(|name| format!("\"{name}\""));
        let features: Vec<_> = firmware.chain(runtime).collect();
        let line = format!("{} = [{}]", board.feature, features.join(", "));
        if !expected.contains(&line) {
            expected.push(line);
        }
    }
    assert_eq!(features.lines().collect::<Vec<_>>(), expected, "{}", path.display());
}

#[test]
fn names_are_unique_and_found() {
    for board in &BOARDS {
        assert!(std::ptr::eq(Board::find(board.name).expect("listed"), board));
    }
    assert!(Board::find("mps2").is_none());
}

#[test]
fn memories_do_not_overlap() {
    for board in &BOARDS {
        let mut ranges = vec![board.ram];
        ranges.extend((!board.runs_from_ram()).then_some(board.flash));
        ranges.extend(board.extra);
        ranges.sort_by_key(|range| range.start);
        for pair in ranges.windows(2) {
            assert!(pair[0].end() <= pair[1].start, "{}: {pair:x?}", board.name);
        }
    }
}
