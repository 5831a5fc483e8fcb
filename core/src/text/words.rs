//! Words of a text, of which pairs are joined by themselves: GPT-2's pattern, without a table of it.
//!
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

use super::letters::is_letter;

/// Classes of characters that the pattern tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

impl Class {
    fn of(character: char) -> Self {
        if is_letter(character) {
            Class::Letter
        } else if character.is_numeric() {
            Class::Number
        } else if character.is_whitespace() {
            Class::Space
        } else {
            Class::Other
        }
    }
}

/// Ends that begin with an apostrophe and are split from a word.
const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The first word of a text, and the rest. With `digits` each number is a word of its own, and what stands around it is split as if it were apart. A word
/// of no bytes is that of an empty text alone.
pub(super) fn first(text: &str, digits: bool) -> (&str, &str) {
    text.split_at_checked(len(text, digits)).unwrap_or((text, ""))
}

fn len(text: &str, digits: bool) -> usize {
    if let Some(contraction) = CONTRACTIONS.iter().find(|word| text.starts_with(**word)) {
        return contraction.len();
    }
    let behind = text.strip_prefix(' ').unwrap_or(text);
    let spaced = text.len() - behind.len();
    match behind.chars().next().map(|character| (character, Class::of(character))) {
        Some((number, Class::Number)) if digits && spaced == 0 => number.len_utf8(),
        Some((_, Class::Number)) if digits => spaces(text, digits),
        Some((_, Class::Space)) | None => spaces(text, digits),
        Some((_, class)) => spaced + run(behind, class),
    }
}

/// Bytes of the characters of a class that a text begins with.
fn run(text: &str, class: Class) -> usize {
    let other = text
        .char_indices()
        .find(|(_, character)| Class::of(*character) != class);
    other.map_or(text.len(), |(at, _)| at)
}

/// Bytes of the spaces that a text begins with, without the last one where a word follows, which takes that one or leaves it alone.
fn spaces(text: &str, digits: bool) -> usize {
    let all = run(text, Class::Space);
    let (spaces, behind) = text.split_at_checked(all).unwrap_or((text, ""));
    let next = behind.chars().next().map(Class::of);
    let last = spaces.chars().next_back().map_or(0, char::len_utf8);
    match next {
        None => all,
        Some(Class::Number) if digits => all,
        Some(_) if all > last => all - last,
        Some(_) => all,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn words(text: &str, digits: bool) -> Vec<&str> {
        let mut rest = text;
        core::iter::from_fn(|| {
            let (word, behind) = first(rest, digits);
            rest = behind;
            (!word.is_empty()).then_some(word)
        })
        .collect()
    }

    #[test]
    fn texts_are_split_as_the_pattern_says() {
        assert_eq!(
            words("It's 2024: we'll see", false),
            ["It", "'s", " 2024", ":", " we", "'ll", " see"]
        );
        assert_eq!(words("a  b\n\n c", false), ["a", " ", " b", "\n\n", " c"]);
        assert_eq!(words("a \nb ", false), ["a", " ", "\n", "b", " "]);
        assert_eq!(words("\u{e9}t\u{e9}\u{301}!", false), ["\u{e9}t\u{e9}", "\u{301}!"]);
        assert_eq!(words("", false), [""; 0]);
    }

    #[test]
    fn each_digit_is_a_word_where_that_is_asked() {
        assert_eq!(
            words("in  1987 or so", true),
            ["in", "  ", "1", "9", "8", "7", " or", " so"]
        );
        assert_eq!(words(" 7", true), [" ", "7"]);
        assert_eq!(words("7's", true), ["7", "'s"]);
    }
}
