//! A saved state: what a model has learnt, in a file of its own. Specified in `docs/format.md`.

use std::path::Path;

use super::view::ModelView;
use crate::error::{Error, Result};
use crate::files::{self, Draft, Output};

/// The first bytes.
const MAGIC: [u8; 8] = *b"ARENSTA\n";
/// The version that is written and read.
const VERSION: u16 = 1;
/// Bytes in front of the state.
const HEAD: usize = 32;
/// Where the checksum of all other bytes stands.
const CRC: usize = 28;

/// A state between two training steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Training steps that it has behind it.
    pub steps: u64,
    /// The state.
    pub state: Vec<u8>,
}

impl Saved {
    /// The bytes of its file, for the model of this view.
    pub fn encode(&self, view: &ModelView<'_>) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(view.header().crc.to_le_bytes());
        bytes.extend(self.steps.to_le_bytes());
        bytes.extend((self.state.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.state);
        let crc = checksum(&bytes);
        bytes[CRC..HEAD].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// A draft of its file.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    pub fn draft(&self, view: &ModelView<'_>, output: &Output) -> Result<Draft> {
        let draft = output.draft_of(&self.encode(view));
        draft.map_err(|e| Error::io(output.path(), "write the state", &e))
    }

    /// Reads the state of a model.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Input`] for a file that is cut or damaged, or of another model.
    pub fn read(path: &Path, view: &ModelView<'_>) -> Result<Self> {
        let bytes = files::read(path, "read the state")?;
        Self::decode(&bytes, view).map_err(|e| e.in_file(&files::paths::shown(path)))
    }

    fn decode(bytes: &[u8], view: &ModelView<'_>) -> Result<Self> {
        let damaged = |what: String| Error::input(what).help("take the state saved before, or train again");
        let Some((head, state)) = bytes.split_at_checked(HEAD) else {
            return Err(damaged(format!("{} bytes are no saved state", bytes.len())));
        };
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if head[..8] != MAGIC {
            return Err(damaged("this is no saved state".into()).expected("a file of `arenite train --state-out`"));
        }
        let version = u16::from_le_bytes([head[8], head[9]]);
        if version != VERSION {
            return Err(Error::unsupported(format!("the saved state has version {version}"))
                .expected(format!("version {VERSION}")));
        }
        if state.len() != word(24) as usize || checksum(bytes) != word(CRC) {
            return Err(damaged(
                "the saved state is cut or damaged: length and checksum do not match".into(),
            ));
        }
        if word(12) != view.header().crc || state.len() != view.header().state_init.len as usize {
            return Err(Error::input("the saved state is of another model")
                .expected("the state of this very file")
                .help("a model that is packed again begins with the parameters that it is packed with"));
        }
        Ok(Self {
            steps: u64::from(word(16)) | u64::from(word(20)) << 32,
            state: state.to_vec(),
        })
    }
}

/// CRC-32 of all bytes of the file but its own.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..CRC.min(bytes.len())]);
    crc.update(bytes.get(HEAD..).unwrap_or_default());
    crc.finalize()
}
