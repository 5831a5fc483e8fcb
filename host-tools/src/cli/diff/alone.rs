//! Each layer by itself: fed with what the float model computes, as the layer's operands store it.

use serde::Serialize;

use super::traced::Traced;

/// A layer below this by itself is named, with the reason.
const NAMED: f64 = 30.0;
/// A share of clipped values that is the reason.
const CLIPPED: f64 = 1e-3;
/// Where rounding the result alone makes half of the noise, it is the reason: in dB.
const HALF: f64 = 3.0;

/// Squares of a layer's values, and of two kinds of noise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Alone {
    signal: f64,
    /// Of what the layer computes.
    noise: f64,
    /// Of the float layer's values, stored with the layer's scale.
    stored: f64,
}

/// A layer that is further from the float layer than [`NAMED`].
#[derive(Debug, Serialize)]
pub(super) struct Named {
    name: String,
    alone_db: f64,
    reason: String,
}

impl Named {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { name, alone_db, reason } = self;
        format!("`{name}` by itself is at {alone_db:.1} dB, below {NAMED}: {reason}\n")
    }
}

impl Alone {
    /// Adds what a step made of its operands, and the float layer's values as its tensor stores them, all of them real numbers in the float model's sizes.
    pub(super) fn add(&mut self, found: &Traced, stored: &Traced, expected: &Traced) {
        let values = found.values.iter().zip(&stored.values).zip(&expected.values);
        let known = found.known.iter().zip(&expected.known);
        for (((&found, &stored), &expected), (&known, &there)) in values.zip(known) {
            if known && there {
                self.signal += expected * expected;
                self.noise += (found - expected) * (found - expected);
                self.stored += (stored - expected) * (stored - expected);
            }
        }
    }

    /// Returns the signal over noise of the layer by itself, and the limit that its scale sets, in dB.
    pub(super) fn decibels(&self) -> [Option<f64>; 2] {
        [self.noise, self.stored].map(|noise| decibels(self.signal, noise))
    }

    /// The layer's name and the reason where it is below [`NAMED`]; `clipped` is the share of values outside of what its scale holds.
    pub(super) fn named(&self, name: &str, clipped: f64) -> Option<Named> {
        let [alone, _] = self.decibels();
        Some(Named {
            name: name.to_owned(),
            alone_db: alone.filter(|&alone| alone < NAMED)?,
            reason: self.reason(clipped),
        })
    }

    /// Cause of the layer's noise.
    pub(super) fn reason(&self, clipped: f64) -> String {
        match self.decibels() {
            _ if clipped > CLIPPED => format!("{:.1} % of its values leave its range", 100.0 * clipped),
            [Some(alone), Some(allowed)] if allowed - alone < HALF => {
                format!("its values are small beside its range, whose scale alone allows {allowed:.1} dB")
            }
            [_, Some(allowed)] => {
                format!("what its operands and weights are rounded by; its own scale allows {allowed:.1} dB")
            }
            [_, None] => {
                "what its operands and weights are rounded by; its own scale stores its values exactly".to_owned()
            }
        }
    }
}

/// A ratio of squares, to two digits; none where one of them is 0.
pub(super) fn decibels(signal: f64, noise: f64) -> Option<f64> {
    let decibels = 10.0 * (signal / noise).log10();
    decibels.is_finite().then(|| (decibels * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(signal: f64, noise: f64, stored: f64) -> Alone {
        Alone { signal, noise, stored }
    }

    #[test]
    fn a_layer_is_named_with_what_makes_its_noise() {
        assert!(of(1000.0, 1.0, 0.5).named("fc", 0.0).is_none());
        let reason = |alone: Alone, clipped| alone.named("fc", clipped).expect("29.6 dB").reason;
        assert!(reason(of(1000.0, 1.1, 0.9), 0.0).contains("allows 30.5 dB"));
        assert!(reason(of(1000.0, 1.1, 0.1), 0.0).contains("operands and weights"));
        assert!(reason(of(1000.0, 1.1, 0.0), 0.0).contains("exactly"));
        assert!(reason(of(1000.0, 1.1, 0.9), 0.25).starts_with("25.0 %"));
    }
}
