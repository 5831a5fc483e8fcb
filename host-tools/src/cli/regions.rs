//! Sizes and memories on the command line.

use crate::memory::Region;
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

/// The memories of `--region` in order, and the bytes of `--fit`: a region of the same name takes that size, a fit alone is the
/// only region.
///
/// # Errors
/// [`ErrorKind::Usage`] for a malformed or repeated region; [`ErrorKind::Unsupported`] for a streamed one.
pub fn parse_regions(regions: &[String], fit: Option<&str>) -> Result<(Vec<Region>, Option<u64>)> {
    let mut parsed: Vec<Region> = Vec::new();
    for text in regions {
        let region = parse_region("--region", text)?;
        if parsed.iter().any(|known| known.name == region.name) {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--region {text}: the name is used twice"),
            ));
        }
        parsed.push(region);
    }
    let Some(text) = fit else { return Ok((parsed, None)) };
    let wanted = parse_region("--fit", text)?;
    let size = wanted.size;
    if parsed.is_empty() {
        return Ok((vec![wanted], size));
    }
    match parsed.iter_mut().find(|region| region.name == wanted.name) {
        Some(region) => region.size = size,
        None => {
            let names: Vec<_> = parsed.iter().map(|r| r.name.as_str()).collect();
            return Err(
                Error::new(ErrorKind::Usage, format!("--fit {text}: there is no such region"))
                    .expected(format!("one of {}", names.join(", "))),
            );
        }
    }
    if parsed.len() > 1 {
        return Err(Error::unsupported("--fit with several regions").help("give one of --fit and several --region"));
    }
    Ok((parsed, size))
}

fn parse_region(option: &str, text: &str) -> Result<Region> {
    let wrong = || Error::new(ErrorKind::Usage, format!("{option} {text}")).expected("NAME=SIZE, such as sram=320K");
    let (name, size) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    if size.ends_with(":stream") {
        return Err(
            Error::unsupported(format!("{option} {text}: streamed regions are not built yet"))
                .help("leave out :stream and give a memory that the core addresses"),
        );
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
        let (regions, fit) = parse_regions(&[], Some("sram=32K")).unwrap();
        assert_eq!((regions.len(), regions[0].size, fit), (1, Some(32_768), Some(32_768)));
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
        assert_eq!(parse(&["spi=16M:stream"], None), ErrorKind::Unsupported);
    }
}
