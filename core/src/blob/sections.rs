//! The parts of an intact file, before its steps are trusted.

use super::header::{HEADER_BYTES, Header, Section, checksum};
use super::port::{Port, PortPlace};
use crate::align::MODEL_ALIGN;
use crate::error::LoadError;
use crate::fields::Fields;
use crate::target::Target;

/// The sections of a file whose header, length and checksum are right. What they say is not checked: that makes a
/// [`Model`](super::Model).
#[derive(Debug, Clone, Copy)]
pub struct Sections<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) header: Header,
}

/// Checks alignment, version, length, checksum, and that every section lies inside the file; gives the file without what follows it. Inlined, so that
/// no header is copied: a `memcpy` is 0.9 KB that a small model needs for nothing else.
#[inline(always)]
pub(super) fn intact(bytes: &[u8]) -> Result<(&[u8], Header), LoadError> {
    if !bytes.as_ptr().addr().is_multiple_of(MODEL_ALIGN) {
        return Err(LoadError::Misaligned);
    }
    let header = Header::parse(bytes)?;
    let found = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let Some(bytes) = bytes.get(..header.total as usize) else {
        return Err(LoadError::Truncated {
            expected: header.total,
            found,
        });
    };
    let crc = checksum(bytes);
    if crc != header.crc {
        return Err(LoadError::Checksum {
            expected: header.crc,
            found: crc,
        });
    }
    check_sections(&header)?;
    Ok((bytes, header))
}

impl<'a> Sections<'a> {
    /// Checks alignment, version, length, checksum, and that every section lies inside the file.
    ///
    /// # Errors
    /// See [`LoadError`]; none that names a step or port.
    pub fn open(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let (bytes, header) = intact(bytes)?;
        Ok(Self { bytes, header })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Input `index`.
    pub fn input(&self, index: usize) -> Option<Port<'a>> {
        self.parts().input(index)
    }

    /// Output `index`.
    pub fn output(&self, index: usize) -> Option<Port<'a>> {
        self.parts().output(index)
    }

    /// The metadata.
    pub fn metadata(&self) -> &'a [u8] {
        self.parts().metadata()
    }

    /// The steps in order.
    pub fn steps(&self) -> Records<'a> {
        self.parts().steps()
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> &'a [u8] {
        self.parts().state_init()
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        self.parts().target_name()
    }

    fn parts(&self) -> Parts<'a, '_> {
        Parts {
            bytes: self.bytes,
            header: &self.header,
        }
    }
}

/// A file and its header, as models and [`Sections`] hold them.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a, 'h> {
    pub(super) bytes: &'a [u8],
    pub(super) header: &'h Header,
}

impl<'a> Parts<'a, '_> {
    /// Input `index`.
    pub(crate) fn input(self, index: usize) -> Option<Port<'a>> {
        if index < usize::from(self.header.inputs) {
            self.ports_from(index)?.value()
        } else {
            None
        }
    }

    /// Output `index`.
    pub(crate) fn output(self, index: usize) -> Option<Port<'a>> {
        if index < usize::from(self.header.outputs) {
            self.ports_from(usize::from(self.header.inputs) + index)?.value()
        } else {
            None
        }
    }

    /// The metadata: postcard, written and read by the host tools alone.
    pub(crate) fn metadata(self) -> &'a [u8] {
        section(self.bytes, self.header.meta)
    }

    /// The steps in order: a kernel's number and its parameters.
    pub(crate) fn steps(self) -> Records<'a> {
        Records(section(self.bytes, self.header.steps))
    }

    /// The weights.
    pub(crate) fn weights(self) -> &'a [u8] {
        section(self.bytes, self.header.weights)
    }

    /// The state's value after a reset.
    pub(crate) fn state_init(self) -> &'a [u8] {
        section(self.bytes, self.header.state_init)
    }

    /// Where input `index` lies.
    pub(crate) fn input_place(self, index: usize) -> Option<PortPlace> {
        match index < usize::from(self.header.inputs) {
            true => PortPlace::read(&mut self.ports_from(index)?),
            false => None,
        }
    }

    /// Where output `index` lies.
    pub(crate) fn output_place(self, index: usize) -> Option<PortPlace> {
        match index < usize::from(self.header.outputs) {
            true => PortPlace::read(&mut self.ports_from(usize::from(self.header.inputs) + index)?),
            false => None,
        }
    }

    /// The encoded ports.
    pub(super) fn ports(self) -> &'a [u8] {
        section(self.bytes, self.header.ports)
    }

    /// The fields of port `index` and of those after it.
    fn ports_from(self, index: usize) -> Option<Fields<'a>> {
        let mut fields = Fields::new(self.ports());
        for _ in 0..index {
            PortPlace::read(&mut fields)?;
        }
        Some(fields)
    }

    /// The name of the target that the file states.
    pub(crate) fn target_name(self) -> &'static str {
        Target::ALL
            .get(usize::from(self.header.target))
            .map_or("an unknown target", |target| target.name())
    }
}

/// Iterates over step records: `None` inside for one that does not decode, after which the iteration ends.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Records<'a>(&'a [u8]);

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

fn check_sections(header: &Header) -> Result<(), LoadError> {
    let Header {
        ports,
        steps,
        meta,
        weights,
        state_init,
        total,
        ..
    } = *header;
    for section in [ports, steps, meta, weights, state_init] {
        let fits = section.offset.checked_add(section.len).is_some_and(|end| end <= total);
        if !fits || (section.len > 0 && (section.offset as usize) < HEADER_BYTES) {
            return Err(LoadError::Header);
        }
    }
    match (weights.offset as usize).is_multiple_of(MODEL_ALIGN) && header.inputs <= 32 {
        true => Ok(()),
        false => Err(LoadError::Header),
    }
}

fn section(bytes: &[u8], section: Section) -> &[u8] {
    let from = bytes.get(section.offset as usize..);
    from.and_then(|bytes| bytes.get(..section.len as usize))
        .unwrap_or_default()
}
