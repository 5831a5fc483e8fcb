//! Results on record: files beside the tests that are written anew where a change is meant.

use std::fmt::{self, Write};
use std::path::Path;

/// A checksum of what is written, which is never held as a whole.
#[derive(Default)]
pub struct Digest(crc32fast::Hasher);

impl Digest {
    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Eight hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:08x}", self.0.finalize())
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// Holds `found` to the record at `path` of this package, which `ARENITE_BLESS=1` writes anew; `test` is the filter that runs that, for the message.
pub fn held(path: &str, found: &str, test: &str) {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&record, found).expect("written");
    }
    let tracked = std::fs::read_to_string(&record).expect("the record");
    let known: std::collections::HashSet<&str> = tracked.lines().collect();
    let differ: Vec<&str> = found.lines().filter(|line| !known.contains(line)).collect();
    assert!(
        found == tracked,
        "{path}: {} lines differ, of which the first are {:?}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test host {test}",
        differ.len(),
        &differ[..differ.len().min(5)]
    );
}
