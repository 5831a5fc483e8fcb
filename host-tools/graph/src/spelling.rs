//! How far words are apart, for what a message or a repair calls the nearest.

use crate::error::one_line;

/// Levenshtein distance.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The question which of `names` was meant, where one is near: at most a third of its letters are others.
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let far = |name: &str| distance(&word.to_lowercase(), &name.to_lowercase());
    let near = names
        .into_iter()
        .map(|name| (far(name), name))
        .filter(|(far, name)| 3 * far <= name.len());
    let (_, name) = near.min()?;
    Some(format!("did you mean {}?", one_line(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_meant_if_it_is_near() {
        let names = ["cortex-m4", "cortex-m33", "riscv32imac", "portable"];
        let of = |word: &str| meant(word, names);
        assert_eq!(of("cortexm4").as_deref(), Some("did you mean cortex-m4?"));
        assert_eq!(of("Cortex-M33F").as_deref(), Some("did you mean cortex-m33?"));
        assert_eq!(of("riscv").as_deref(), None);
        assert_eq!(of("risc32imac").as_deref(), Some("did you mean riscv32imac?"));
        assert_eq!(of("x86-64").as_deref(), None);
        assert_eq!(meant("a\nb", ["a\nc"]).as_deref(), Some("did you mean a\\nc?"));
    }
}
