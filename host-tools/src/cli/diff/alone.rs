//! Each layer by itself: fed with what the float model computes, as the layer's operands store it.

use arenite::DType;
use arenite::quant::quantize;
use serde::Serialize;

use super::traced::Traced;
use crate::Result;
use crate::metadata::{Channel, Metadata, TensorMeta};

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
    /// Adds what a step made of its operands; gives the float layer's values as its tensor stores them, where it stores reals.
    pub(super) fn add(
        &mut self,
        (metadata, step, tensor): (&Metadata, usize, &TensorMeta),
        memory: &[u8],
        expected: &Traced,
    ) -> Result<Option<Vec<u8>>> {
        let found = Traced::of(metadata, step, tensor, memory)?;
        let Some(bytes) = stored(metadata, step, tensor, memory, expected) else {
            return Ok(None);
        };
        let best = Traced::of(metadata, step, tensor, &bytes)?;
        let real = |stored: f64| match tensor.dtype {
            DType::F32 => stored,
            _ => (stored - f64::from(tensor.zero_point)) * f64::from(tensor.scale),
        };
        let values = found.values.iter().zip(&best.values).zip(&expected.values);
        let known = found.known.iter().zip(&expected.known);
        for (((&found, &best), &expected), (&known, &there)) in values.zip(known) {
            if known && there {
                let square = |stored: f64| (real(stored) - expected) * (real(stored) - expected);
                self.signal += expected * expected;
                self.noise += square(found);
                self.stored += square(best);
            }
        }
        Ok(Some(bytes))
    }

    /// Returns the signal over noise of the layer by itself, and the limit that its scale sets, in dB.
    pub(super) fn decibels(&self) -> [Option<f64>; 2] {
        [self.noise, self.stored].map(|noise| decibels(self.signal, noise))
    }

    /// The layer's name and the reason where it is below [`NAMED`]; `clipped` is the share of values outside of what its scale holds.
    pub(super) fn named(&self, name: &str, clipped: f64) -> Option<Named> {
        let [alone, allowed] = self.decibels();
        let alone = alone.filter(|&alone| alone < NAMED)?;
        let reason = match allowed {
            _ if clipped > CLIPPED => format!("{:.1} % of its values leave its range", 100.0 * clipped),
            Some(allowed) if allowed - alone < HALF => {
                format!("its values are small beside its range, whose scale alone allows {allowed:.1} dB")
            }
            Some(allowed) => {
                format!("what its operands and weights are rounded by; its own scale allows {allowed:.1} dB")
            }
            None => "what its operands and weights are rounded by; its own scale stores its values exactly".to_owned(),
        };
        Some(Named {
            name: name.to_owned(),
            alone_db: alone,
            reason,
        })
    }
}

/// A ratio of squares, to two digits; none where one of them is 0.
pub(super) fn decibels(signal: f64, noise: f64) -> Option<f64> {
    let decibels = 10.0 * (signal / noise).log10();
    decibels.is_finite().then(|| (decibels * 100.0).round() / 100.0)
}

/// Real values in the trace's layout as the tensor stores them in memory; what they do not know stays as it is there. `None` for what is no real number.
fn stored(metadata: &Metadata, step: usize, tensor: &TensorMeta, memory: &[u8], real: &Traced) -> Option<Vec<u8>> {
    let ends = match tensor.dtype {
        DType::F32 => None,
        DType::I8 if tensor.scale > 0.0 => Some([-128, 127]),
        DType::I16 if tensor.scale > 0.0 => Some([-32768, 32767]),
        _ => return None,
    };
    let (size, channels) = (tensor.dtype.bytes(), metadata.channels(step));
    let mut bytes = memory.to_vec();
    let mut places = bytes.chunks_exact_mut(size);
    let (values, known) = real.as_in_memory(tensor)?;
    let innermost = values.shape().last().copied().unwrap_or(1);
    let kinds = channels.map(|channels| channels.each().collect::<Vec<_>>());
    for (at, (&value, &known)) in values.iter().zip(&known).enumerate() {
        let kind = kinds.as_ref().map(|kinds| kinds.get(at % innermost.max(1)).copied());
        let here = match kind {
            None => true,
            Some(kind) => {
                let kind = kind?;
                if !kind.in_memory() {
                    continue;
                }
                kind == Channel::Kept
            }
        };
        let place = places.next()?;
        if known && here {
            let number = match ends {
                None => (value as f32).to_le_bytes(),
                Some([low, high]) => quantize(value as f32, tensor.scale, tensor.zero_point, low, high).to_le_bytes(),
            };
            place.copy_from_slice(number.get(..size)?);
        }
    }
    Some(bytes)
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
