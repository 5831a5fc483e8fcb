//! The records of a list of steps.

#[cfg(feature = "training")]
use super::list::List;
use super::{Header, Section};
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

/// The step of this number, as errors count: those of training behind those of inference. Nothing of the file need be right.
pub(crate) fn step_in(file: &[u8], number: u32) -> Option<(u8, &[u8])> {
    let header = Header::parse(file).ok()?;
    match number.checked_sub(header.step_count) {
        None => record_of(file, header.steps, number),
        #[cfg(feature = "training")]
        Some(number) => {
            let [_, steps] = List::of(file, header.training)?.places();
            record_of(file, steps, number)
        }
        #[cfg(not(feature = "training"))]
        Some(_) => None,
    }
}

fn record_of(file: &[u8], Section { offset, len }: Section, number: u32) -> Option<(u8, &[u8])> {
    let steps = file.get(offset as usize..)?.get(..len as usize)?;
    Records(steps).nth(number as usize)?
}
