//! Documents made up, and numbers.

use super::*;

#[test]
fn tables_are_replaced_and_text_is_kept() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/results");
    let text = "before\n<!-- table: operators -->\nold\n<!-- end -->\nafter\n";
    let filled = fill(text, &results).expect("fills");
    assert!(
        filled.starts_with("before\n<!-- table: operators -->\n\n| kernel |"),
        "{filled}"
    );
    assert!(
        filled.contains("| AvgPoolInt | 16 | 53 |") && !filled.contains("old"),
        "{filled}"
    );
    assert!(filled.ends_with("<!-- end -->\nafter\n"));
    assert_eq!(fill(&filled, &results).expect("fills"), filled);
    for wrong in ["<!-- table: nothing --> <!-- end -->", "<!-- table: operators -->"] {
        fill(wrong, &results).expect_err("is wrong");
    }
}

#[test]
fn numbers_are_grouped() {
    assert_eq!(
        [0, 999, 1000, 1_234_567].map(grouped),
        ["0", "999", "1,000", "1,234,567"]
    );
}
