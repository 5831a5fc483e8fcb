//! A table of Markdown.

/// A Markdown table.
pub(super) struct Table {
    pub(super) text: String,
}

impl Table {
    /// `left` columns are aligned to the left, the others to the right.
    pub(super) fn new(heads: &[&str], left: usize) -> Self {
        let mut table = Self { text: String::new() };
        table.row(heads.iter().map(|head| (*head).to_owned()));
        let marks = (0..heads.len()).map(|column| if column < left { "---" } else { "--:" }.to_owned());
        table.row(marks);
        table
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }
}

/// Digits in groups of three.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn ratio(a: u64, b: u64) -> String {
    match b {
        0 => "-".to_owned(),
        _ => format!("{:.2}", a as f64 / b as f64),
    }
}
