//! Sizes and memories on the command line.

use crate::memory::Region;
use crate::pack::Streamed;
use crate::{Error, ErrorKind, Result};

/// Bytes from `320K`, `8M`, `1G` or a plain number; the suffixes are powers of 1,024.
///
/// # Errors
/// [`ErrorKind::Usage`] naming `option`.
pub fn parse_size(option: &str, text: &str) -> Result<u64> {
    let wrong = || Error::new(ErrorKind::Usage, format!("{option} {text}")).expected("a size such as 32768, 32K or 8M");
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|&bytes| bytes > 0).ok_or_else(wrong)
}

/// Request of `--region` and `--fit`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// The memories of the arena, in order.
    pub memories: Vec<Region>,
    /// The flash that is no memory, from which the model is read in pieces.
    pub stream: Option<Streamed>,
    /// The bytes of `--fit`.
    pub fit: Option<u64>,
}

/// The memories of `--region` in order, the one with `:stream`, and the bytes of `--fit`: a region of the same name takes that size, a fit alone is the
/// only region.
///
/// # Errors
/// [`ErrorKind::Usage`] for a malformed or repeated region.
pub fn parse_regions(regions: &[String], fit: Option<&str>) -> Result<Regions> {
    let (mut memories, mut stream): (Vec<Region>, Option<Streamed>) = (Vec::new(), None);
    for text in regions {
        let usage = |what| Error::new(ErrorKind::Usage, format!("--region {text}: {what}"));
        let (memory, flash) = match text.split_once(":stream") {
            Some((memory, how)) => (memory, Some(how)),
            None => (text.as_str(), None),
        };
        let region = parse_region("--region", memory)?;
        let flashes = stream.iter().map(|stream| &stream.flash);
        if memories.iter().chain(flashes).any(|known| known.name == region.name) {
            return Err(usage("the name is used twice"));
        }
        match flash {
            None => memories.push(region),
            Some(_) if stream.is_some() => {
                return Err(usage("a second one with :stream").expected("one flash that holds the model"));
            }
            Some(how) => stream = Some(parse_streamed(text, region, how)?),
        }
    }
    let found = |memories, fit| Regions { memories, stream, fit };
    let Some(text) = fit else {
        return Ok(found(memories, None));
    };
    let wanted = parse_region("--fit", text)?;
    let size = wanted.size;
    if memories.is_empty() {
        return Ok(found(vec![wanted], size));
    }
    match memories.iter_mut().find(|region| region.name == wanted.name) {
        Some(region) => region.size = size,
        None => {
            let names: Vec<_> = memories.iter().map(|r| r.name.as_str()).collect();
            return Err(
                Error::new(ErrorKind::Usage, format!("--fit {text}: there is no such region"))
                    .expected(format!("one of {}", names.join(", "))),
            );
        }
    }
    if memories.len() > 1 {
        return Err(Error::unsupported("--fit with several regions").help("give one of --fit and several --region"));
    }
    Ok(found(memories, size))
}

/// Parses the text behind `:stream`: `,buffer=SIZE`, `,resident=SIZE`, either once.
fn parse_streamed(text: &str, flash: Region, how: &str) -> Result<Streamed> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("--region {text}"))
            .expected("NAME=SIZE:stream, and behind it ,buffer=SIZE and ,resident=SIZE")
    };
    let mut streamed = Streamed::from(flash);
    let mut options = how.split(',');
    if options.next() != Some("") {
        return Err(wrong());
    }
    for option in options {
        let (key, size) = option.split_once('=').ok_or_else(wrong)?;
        let size = parse_size("--region", size)?;
        match key {
            "buffer" if streamed.buffer.is_none() => streamed.buffer = Some(size),
            "resident" if streamed.resident == 0 => streamed.resident = size,
            _ => return Err(wrong()),
        }
    }
    Ok(streamed)
}

fn parse_region(option: &str, text: &str) -> Result<Region> {
    let wrong = || Error::new(ErrorKind::Usage, format!("{option} {text}")).expected("NAME=SIZE, such as sram=320K");
    let (name, size) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Region {
        name: name.to_string(),
        size: Some(parse_size(option, size)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("--fit", "32K").unwrap(), 32_768);
        assert_eq!(parse_size("--fit", "100").unwrap(), 100);
        for (text, bytes) in [
            ("3k", 3 << 10),
            ("8M", 8 << 20),
            ("8m", 8 << 20),
            ("5G", 5 << 30),
            ("2g", 2 << 30),
        ] {
            assert_eq!(parse_size("--fit", text).unwrap(), bytes, "{text}");
        }
        for wrong in ["", "K", "-1", "0", "1.5M", "99999999999G"] {
            assert_eq!(
                parse_size("--fit", wrong).unwrap_err().kind(),
                ErrorKind::Usage,
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_fit_alone_is_the_only_region() {
        let Regions { memories, stream, fit } = parse_regions(&[], Some("sram=32K")).unwrap();
        assert_eq!((memories.len(), memories[0].size, fit), (1, Some(32_768), Some(32_768)));
        assert_eq!(stream, None);
    }

    #[test]
    fn a_flash_is_no_memory_of_the_arena() {
        let found = parse_regions(&["spi=16M:stream".into(), "sram=1K".into()], None).unwrap();
        assert_eq!(found.memories.len(), 1);
        assert_eq!(found.stream.and_then(|stream| stream.flash.size), Some(16 << 20));
        let found = parse_regions(&["spi=16M:stream,resident=1K,buffer=64K".into()], None).unwrap();
        let stream = found.stream.unwrap();
        assert_eq!((stream.buffer, stream.resident), (Some(64 << 10), 1 << 10));
    }

    #[test]
    fn mistakes_are_named() {
        let parse = |regions: &[&str], fit| {
            let regions: Vec<String> = regions.iter().map(|r| r.to_string()).collect();
            parse_regions(&regions, fit).unwrap_err().kind()
        };
        assert_eq!(parse(&["sram"], None), ErrorKind::Usage);
        assert_eq!(parse(&["a=1K", "a=2K"], None), ErrorKind::Usage);
        assert_eq!(parse(&["a=1K"], Some("b=1K")), ErrorKind::Usage);
        assert_eq!(parse(&["a=1K", "a=16M:stream"], None), ErrorKind::Usage);
        assert_eq!(parse(&["a=1M:stream", "b=16M:stream"], None), ErrorKind::Usage);
        for wrong in [
            "a=1M:streams",
            "a=1M:stream,",
            "a=1M:stream,buffer=1K,buffer=1K",
            "a=1M:stream,speed=1K",
        ] {
            assert_eq!(parse(&[wrong], None), ErrorKind::Usage, "{wrong}");
        }
    }
}
