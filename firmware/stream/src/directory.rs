//! The directory of the pieces: that of a bundle, whose models are called `0/3`, `1/3`, `2/3`, and `1/3+` where they stay in memory. `docs/format.md`
//! specifies it.

use core::ops::Range;

use arenite::LoadError;
use arenite::bundle::{self, BUNDLE_ENTRY, BUNDLE_NAME, Located};

use crate::error::StreamError;
use crate::source::Source;

/// Common part of all pieces in the directory.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) count: u32,
    /// Bytes of the largest that is read for each run.
    pub(crate) largest: u32,
    /// Where those that stay lie, one behind the other.
    pub(crate) resident: Range<u32>,
}

/// Checks a directory, entry by entry.
pub(crate) fn check<S: Source>(source: &mut S, start: u32) -> Result<Directory, StreamError<S::Error>> {
    let wrong = |error| match error {
        LoadError::NotABlob => StreamError::NotAStream,
        _ => StreamError::Directory,
    };
    let mut head = [0; BUNDLE_ENTRY];
    source.read(start, &mut head).map_err(StreamError::Source)?;
    let mut reader = bundle::Directory::begin(&head).map_err(wrong)?;
    let count = u32::from(reader.count());
    let (mut largest, mut stay, mut named) = (0, 0, count > 0);
    // Nothing yet: the first one that stays makes it as large as itself.
    let mut resident = Range {
        start: u32::MAX,
        end: 0,
    };
    for index in 0..count {
        let found = reader.entry(&raw_entry(source, start, index)?).map_err(wrong)?;
        match is_resident(&found, index, count) {
            Some(true) => {
                let end = found.offset.saturating_add(found.bytes);
                resident = resident.start.min(found.offset)..resident.end.max(end);
                stay += 1;
            }
            Some(false) => largest = largest.max(found.bytes),
            None => named = false,
        }
    }
    reader.finish().map_err(wrong)?;
    // A bundle of networks of their own.
    if !named {
        return Err(StreamError::NotAStream);
    }
    let resident = if stay > 0 { resident } else { 0..0 };
    Ok(Directory {
        count,
        largest,
        resident,
    })
}

/// Where a piece lies.
pub(crate) fn entry<S: Source>(source: &mut S, start: u32, index: u32) -> Result<Located, StreamError<S::Error>> {
    raw_entry(source, start, index).map(|raw| Located::of(&raw))
}

fn raw_entry<S: Source>(source: &mut S, start: u32, index: u32) -> Result<[u8; BUNDLE_ENTRY], StreamError<S::Error>> {
    let mut raw = [0; BUNDLE_ENTRY];
    let at = start.saturating_add((index + 1).saturating_mul(BUNDLE_ENTRY as u32));
    source.read(at, &mut raw).map_err(StreamError::Source)?;
    Ok(raw)
}

/// Whether a piece stays, by its name; `None` for another's.
fn is_resident(found: &Located, index: u32, count: u32) -> Option<bool> {
    [false, true]
        .into_iter()
        .find(|stays| found.name == name_of(index, count, *stays))
}

/// `index/count` in digits, `+` where it stays, filled up with zeros.
fn name_of(index: u32, count: u32, stays: bool) -> [u8; BUNDLE_NAME] {
    let mut name = [0; BUNDLE_NAME];
    let mut places = name.iter_mut();
    let mut put = |byte| {
        if let Some(place) = places.next() {
            *place = byte;
        }
    };
    digits(index, &mut put);
    put(b'/');
    digits(count, &mut put);
    if stays {
        put(b'+');
    }
    name
}

fn digits(value: u32, put: &mut impl FnMut(u8)) {
    let mut unit = 1;
    while value / unit > 9 {
        unit *= 10;
    }
    while unit > 0 {
        put(b'0' + (value / unit % 10) as u8);
        unit /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_called_by_their_numbers() {
        for (index, count, stays, name) in [
            (0, 1, false, "0/1"),
            (9, 10, true, "9/10+"),
            (120, 65_535, false, "120/65535"),
        ] {
            let made = name_of(index, count, stays);
            assert_eq!(&made[..name.len()], name.as_bytes());
            assert!(made[name.len()..].iter().all(|&byte| byte == 0));
        }
    }
}
