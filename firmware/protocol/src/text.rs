//! Texts of bounded length.

use core::fmt;

/// Longest text inside a message; boards cut longer ones.
pub const TEXT_MAX: usize = 160;

/// Formatted text of at most [`TEXT_MAX`] bytes; what does not fit is cut at a character.
#[derive(Debug, Default)]
pub struct Text(heapless::String<TEXT_MAX>);

impl Text {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(heapless::String::new())
    }

    /// Returns the text that `value` displays.
    pub fn of(value: impl fmt::Display) -> Self {
        let mut text = Self::new();
        // A cut text is still a text.
        let _ = fmt::write(&mut text, format_args!("{value}"));
        text
    }

    /// Returns the text written so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut characters = text.chars();
        characters
            .try_for_each(|character| self.0.push(character))
            .map_err(|_| fmt::Error)
    }
}

/// The longest prefix of `text` that has at most `bytes` bytes.
pub fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(Text::of(17).as_str(), "17");
        let long = Text::of("ä".repeat(90));
        assert_eq!(long.as_str(), "ä".repeat(80));
        let odd = Text::of(format_args!("a{}", "ä".repeat(90)));
        assert_eq!((odd.as_str().len(), odd.as_str().chars().last()), (159, Some('ä')));
        assert_eq!((cut("aä", 2), cut("aä", 3), cut("aä", 9)), ("a", "aä", "aä"));
    }
}
