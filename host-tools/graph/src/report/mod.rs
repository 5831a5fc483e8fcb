//! Reports on a network and its file, for people and for programs.

mod quantization;
mod summary;

pub use quantization::{Estimate, FrontPoint, LayerPrecision, Quantization, WeightOnlyReport};
pub use summary::{
    CodeEstimate, HandedOver, Most, Pieces, Point, PortSummary, RegionSummary, Removed, SharedLayers, Shares, Summary,
    Sums, TrainingReport, Winograd,
};

/// A number with thin separators, for people: `25,526,632`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (25_526_632, "25,526,632")];
        for (n, text) in cases {
            assert_eq!(grouped(n), text);
        }
    }
}
