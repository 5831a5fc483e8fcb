//! The records of a list of steps.

use crate::fields::Fields;

/// Iterates over step records: `None` inside for one that does not decode, after which the iteration ends.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Records<'a>(pub(super) &'a [u8]);

impl<'a> Records<'a> {
    /// The records in these bytes, whatever they are.
    #[cfg(feature = "cores")]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes of those that are still to come.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut fields = Fields::new(self.0);
        let record = fields.record();
        self.0 = if record.is_some() { fields.rest() } else { &[] };
        Some(record)
    }
}
