//! Comparisons with something that is not this project's code, counted: a test that could compare nothing has not passed.

/// States that `count` results were compared with `oracle`: the runner adds such lines up (`host-tools/xtask/src/suite.rs`).
///
/// # Panics
/// Where there are fewer than `floor`.
pub fn compared(oracle: &str, count: usize, floor: usize) {
    eprintln!("compared: {count} with {oracle}");
    assert!(
        count >= floor,
        "{count} results were compared with {oracle}, expected {floor}"
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn too_few_comparisons_are_a_failure() {
        super::compared("itself", 2, 2);
        std::panic::catch_unwind(|| super::compared("itself", 1, 2)).expect_err("one is missing");
    }
}
