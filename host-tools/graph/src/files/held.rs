//! Outputs where there is no file system: a draft is in memory, and is held by its name when it is published.

use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::system::{self, File, unnamed};
use crate::error::{Error, ErrorKind, Result};

/// Where a file is to appear.
#[derive(Debug, Clone)]
pub struct Output {
    asked: PathBuf,
}

/// A file that is being written and that nobody sees yet.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// Where it is to appear, if anywhere.
    output: Option<PathBuf>,
}

impl Output {
    /// A path that was asked for.
    ///
    /// # Errors
    /// None.
    pub fn to(path: &Path) -> Result<Self> {
        Ok(Self { asked: path.to_owned() })
    }

    /// The path as it was asked for.
    pub fn path(&self) -> &Path {
        &self.asked
    }

    /// Never: there is no standard output.
    pub fn is_stdout(&self) -> bool {
        false
    }

    /// Refuses to write over a file that is read.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming it.
    pub fn differs_from(&self, input: &Path) -> Result<()> {
        if self.asked == input {
            let message = format!("the output is the input {}", input.display());
            return Err(Error::new(ErrorKind::Usage, message).in_file(&self.asked));
        }
        Ok(())
    }

    /// Refuses two outputs in one place.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the second.
    pub fn all_differ<'a>(outputs: impl IntoIterator<Item = &'a Self>) -> Result<()> {
        let mut seen: Vec<&Self> = Vec::new();
        for output in outputs {
            seen.iter().try_for_each(|other| other.differs_from(&output.asked))?;
            seen.push(output);
        }
        Ok(())
    }

    /// An empty draft of the file.
    ///
    /// # Errors
    /// None.
    pub fn draft(&self) -> io::Result<Draft> {
        Ok(Draft {
            output: Some(self.asked.clone()),
            ..Draft::scratch()?
        })
    }

    /// A draft that holds `bytes`.
    ///
    /// # Errors
    /// As [`Output::draft`].
    pub fn draft_of(&self, bytes: &[u8]) -> io::Result<Draft> {
        let mut draft = self.draft()?;
        draft.file.write_all(bytes)?;
        Ok(draft)
    }
}

impl Draft {
    /// A file for the work alone, which never appears.
    ///
    /// # Errors
    /// None.
    pub fn scratch() -> io::Result<Self> {
        Ok(Self {
            file: unnamed()?,
            output: None,
        })
    }

    /// The file, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// All that was written.
    ///
    /// # Errors
    /// None.
    pub fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Holds the complete file by its name.
    ///
    /// # Errors
    /// None.
    pub fn publish(self) -> Result<()> {
        if let Some(path) = self.output.clone() {
            let bytes = self.bytes().map_err(|e| Error::io(&path, "write it", &e))?;
            system::give(&path, bytes);
        }
        Ok(())
    }
}

/// Holds complete files by their names.
///
/// # Errors
/// None.
pub fn publish(drafts: Vec<Draft>) -> Result<()> {
    drafts.into_iter().try_for_each(Draft::publish)
}

/// Holds a file.
///
/// # Errors
/// None.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    system::give(path, bytes.to_vec());
    Ok(())
}
