//! What an operator of the trace says of itself: its attributes and operands, each with its place for messages.

use super::trace::Operator;
use crate::error::Result;
use crate::files::json::Json;
use crate::graph::{Layout, Padding2d};
use crate::import::build::LARGEST_EXTENT;

impl<'a> Operator<'a> {
    pub(super) fn only(&self, names: &[&str]) -> Result<()> {
        self.attrs.as_ref().map_or(Ok(()), |attrs| attrs.only(names))
    }

    pub(super) fn attr(&self, name: &str) -> Option<&Json<'a>> {
        self.attrs.as_ref().and_then(|attrs| attrs.get(name))
    }

    pub(super) fn need(&self, name: &str) -> Result<&Json<'a>> {
        self.attr(name)
            .ok_or_else(|| self.json.error(format!("attribute `{name}` is missing")))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        self.attr(name).map_or(Ok(default), Json::boolean)
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

    pub(super) fn operands(&self, least: usize, most: usize) -> Result<()> {
        let count = self.inputs.len();
        // Trailing optional operands may be left out.
        if (least..=most).contains(&count) {
            return Ok(());
        }
        let expected = match most {
            usize::MAX => format!("at least {least}"),
            _ if least == most => format!("{least}"),
            _ => format!("{least} to {most}"),
        };
        Err(self.json.error(format!("{count} operands")).expected(expected))
    }

    pub(super) fn pair(&self, name: &str, default: Option<[usize; 2]>) -> Result<[usize; 2]> {
        match (self.attr(name), default) {
            (None, Some(default)) => Ok(default),
            _ => {
                let json = self.need(name)?;
                let pair = json.sizes(1..=LARGEST_EXTENT)?;
                pair.try_into()
                    .map_err(|_| json.error(format!("`{name}`")).expected("[rows, columns]"))
            }
        }
    }

    pub(super) fn padding(&self) -> Result<Padding2d> {
        let Some(json) = self.attr("padding") else {
            return Ok(Padding2d::default());
        };
        match *json.sizes(0..=LARGEST_EXTENT)?.as_slice() {
            [top, bottom, left, right] => Ok(Padding2d {
                top,
                bottom,
                left,
                right,
            }),
            _ => Err(json.error("`padding`").expected("[top, bottom, left, right]")),
        }
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        let Some(json) = self.attr("layout") else {
            return Ok(Layout::Nchw);
        };
        match json.string()?.as_str() {
            "NCHW" => Ok(Layout::Nchw),
            "NHWC" => Ok(Layout::Nhwc),
            other => Err(json.error(format!("layout `{other}`")).expected("NCHW or NHWC")),
        }
    }

    pub(super) fn axis(&self, name: &str, default: Option<i64>, rank: usize) -> Result<usize> {
        match (self.attr(name), default) {
            (None, Some(default)) => axis(&self.json, default, rank),
            _ => {
                let json = self.need(name)?;
                axis(json, json.integer()?, rank)
            }
        }
    }
}

pub(super) fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Nchw => "NCHW",
        Layout::Nhwc => "NHWC",
    }
}

pub(super) fn axis(at: &Json<'_>, index: i64, rank: usize) -> Result<usize> {
    let signed = rank as i64;
    let positive = if index < 0 { index.saturating_add(signed) } else { index };
    match usize::try_from(positive) {
        Ok(found) if found < rank => Ok(found),
        _ => Err(at
            .error(format!("axis {index} of an operand of {rank} axes"))
            .expected(format!("-{rank} … {rank} - 1"))),
    }
}
