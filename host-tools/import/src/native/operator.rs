//! An operator of the trace: its attributes and operands, each with its place for messages.

use super::form::{axis, real};
use super::rows::{Absent, Operands, Row};
use super::trace::Operator;
use crate::error::{Error, Result};
use crate::files::json::Json;
use crate::graph::{Layout, Padding2d};

impl<'a> Operator<'a> {
    /// Refuses another form than the row's: what the shapes of operands have no part in.
    pub(super) fn check(&self, row: &Row) -> Result<()> {
        if let Some(attrs) = &self.attrs {
            let names: Vec<_> = row.attrs.iter().map(|attr| attr.name).collect();
            attrs.only(&names)?;
        }
        self.operands(row.operands)?;
        row.attrs.iter().try_for_each(|attr| match self.stated(attr.name) {
            Some(json) => attr.form.check(attr.name, json),
            None if attr.absent == Absent::Refused => Err(self.missing(attr.name)),
            None => Ok(()),
        })
    }

    fn stated(&self, name: &str) -> Option<&Json<'a>> {
        self.attrs.as_ref().and_then(|attrs| attrs.get(name))
    }

    fn missing(&self, name: &str) -> Error {
        self.json.error(format!("attribute `{name}` is missing"))
    }

    /// The attribute, or what its row says for an absent one.
    pub(super) fn attr(&self, name: &str) -> Result<Json<'a>> {
        if let Some(json) = self.stated(name) {
            return Ok(json.clone());
        }
        match self.row.as_ref().and_then(|row| row.attr(name)).map(|attr| attr.absent) {
            Some(Absent::Is(value)) => Json::parse(value),
            Some(Absent::As(other)) => self.attr(other),
            Some(Absent::Refused) | None => Err(self.missing(name)),
        }
    }

    /// The attribute, if it is neither absent nor null.
    pub(super) fn given(&self, name: &str) -> Result<Option<Json<'a>>> {
        Ok(Some(self.attr(name)?).filter(|json| !json.is_null()))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.attr(name)?.boolean()
    }

    pub(super) fn number(&self, name: &str) -> Result<f32> {
        let json = self.attr(name)?;
        real(name, &json, json.number()?)
    }

    pub(super) fn size(&self, name: &str) -> Result<usize> {
        self.attr(name)?.size(0..=usize::MAX)
    }

    fn sizes<const N: usize>(&self, name: &str) -> Result<[usize; N]> {
        let json = self.attr(name)?;
        let sizes = json.sizes(0..=usize::MAX)?;
        sizes
            .try_into()
            .map_err(|_| json.error(format!("`{name}`")).expected(format!("{N} integers")))
    }

    pub(super) fn pair(&self, name: &str) -> Result<[usize; 2]> {
        self.sizes(name)
    }

    pub(super) fn padding(&self) -> Result<Padding2d> {
        let [top, bottom, left, right] = self.sizes("padding")?;
        Ok(Padding2d {
            top,
            bottom,
            left,
            right,
        })
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        Ok(match self.attr("layout")?.string()?.as_str() {
            "NHWC" => Layout::Nhwc,
            _ => Layout::Nchw,
        })
    }

    pub(super) fn axis(&self, name: &str, rank: usize) -> Result<usize> {
        let index = self.attr(name)?.integer()?;
        axis(self.stated(name).unwrap_or(&self.json), index, rank)
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(|(name, _)| name.is_some())
    }

    pub(super) fn named(&self, index: usize) -> Result<(&str, &Json<'a>)> {
        match self.inputs.get(index) {
            Some((Some(name), at)) => Ok((name, at)),
            _ => Err(self.json.error(format!("operand {index} is missing"))),
        }
    }

    fn operands(&self, row: Operands) -> Result<()> {
        let (count, least, most) = (self.inputs.len(), row.least, row.most);
        // Trailing optional operands may be left out.
        if !(least..=most).contains(&count) {
            let expected = match most {
                usize::MAX => format!("at least {least}"),
                _ if least == most => format!("{least}"),
                _ => format!("{least} to {most}"),
            };
            return Err(self.json.error(format!("{count} operands")).expected(expected));
        }
        let mut required = (0..count).filter(|index| !row.nullable.contains(index));
        required.try_for_each(|index| self.named(index).map(drop))
    }
}

pub(super) fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Nchw => "NCHW",
        Layout::Nhwc => "NHWC",
    }
}
