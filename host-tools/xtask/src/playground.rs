//! The playground: one page that holds the packer for a browser, `host-tools/playground`, and the digits.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use arenite_host::page::SCRIPT as REPORT;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Arguments that build the library, behind `cargo`.
pub const BUILD: [&str; 8] = [
    "build",
    "--locked",
    "--package",
    "arenite-playground",
    "--target",
    TRIPLE,
    "--profile",
    PROFILE,
];

/// Target that it is built for.
pub const TRIPLE: &str = "wasm32-unknown-unknown";
const PROFILE: &str = "playground";

const PAGE: &str = include_str!("../../playground/page/index.html");
const STYLE: &str = include_str!("../../playground/page/style.css");
const SCRIPT: &str = include_str!("../../playground/page/page.js");
const WORKER: &str = include_str!("../../playground/page/worker.js");

/// The network that the page shows by itself: what it is opened by comes first.
const SAMPLES: [&str; 3] = ["digits.trace.json", "digits.safetensors", "digits.samples.safetensors"];

/// The largest page that is made.
pub const LARGEST: usize = 4 << 20;

/// The library in the folder of cargo's outputs.
pub fn library(target: &Path) -> PathBuf {
    target.join(TRIPLE).join(PROFILE).join("arenite_playground.wasm")
}

/// Writes the page, `index.html`, into `folder`.
///
/// # Errors
/// Files that cannot be read or written; a page that is too large.
pub fn make(library: &Path, folder: &Path) -> Result<PathBuf> {
    let wasm = fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
    let page = page(&wasm)?;
    if page.len() > LARGEST {
        return Err(format!("the page has {} bytes, expected at most {LARGEST}", page.len()).into());
    }
    fs::create_dir_all(folder)?;
    let path = folder.join("index.html");
    arenite_host::files::write(&path, page.as_bytes())?;
    Ok(path)
}

/// The page that holds `wasm`.
fn page(wasm: &[u8]) -> Result<String> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(wasm)?;
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/digits");
    let sample = |(index, name): (usize, &&str)| -> Result<String> {
        let content = base64(&fs::read(models.join(name)).map_err(|error| format!("{name}: {error}"))?);
        Ok(format!(
            "<script type=\"application/octet-stream\" id=\"sample{index}\" data-name=\"{name}\">{content}</script>"
        ))
    };
    let samples: Vec<String> = SAMPLES.iter().enumerate().map(sample).collect::<Result<_>>()?;
    let targets = arenite::Target::ALL.map(|target| format!("<option>{}</option>", target.name()));
    let parts = [
        ("@TARGETS@", targets.concat()),
        ("@PAGE_HASH@", base64(&Sha256::digest(SCRIPT))),
        ("@REPORT_HASH@", base64(&Sha256::digest(REPORT))),
        ("@STYLE@", STYLE.to_owned()),
        ("@WORKER@", WORKER.to_owned()),
        ("@SAMPLES@", samples.join("\n")),
        ("@SCRIPT@", SCRIPT.to_owned()),
        ("@WASM@", base64(&packed.finish()?)),
    ];
    Ok(parts
        .iter()
        .fold(PAGE.to_owned(), |page, (name, part)| page.replacen(name, part, 1)))
}

/// RFC 4648, 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }

    /// The parts that a policy names are those that stand in the page: nothing was left to fill in, and no part ends the element that it is in.
    #[test]
    fn parts_of_the_page_are_whole() {
        for part in [SCRIPT, WORKER, REPORT] {
            assert!(!part.contains("</script") && !part.contains("<!--"));
        }
        let page = page(b"library").expect("a page");
        for (begin, end) in [("<script>", SCRIPT), ("id=\"worker\">", WORKER), ("<style>", STYLE)] {
            let (_, behind) = page.split_once(begin).expect("it is there");
            assert!(behind.starts_with(end), "{begin}");
        }
        let marks = [
            "_HASH@",
            "@TARGETS@",
            "@STYLE@",
            "@WORKER@",
            "@WASM@",
            "@SAMPLES@",
            "@SCRIPT@",
        ];
        assert!(marks.iter().all(|mark| !page.contains(mark)));
        assert_eq!(page.matches(&base64(&Sha256::digest(SCRIPT))).count(), 1);
    }
}
