//! Inputs: files, pipes, devices and `-`, each read once and only so far.

use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::paths::{STDIN, shown};
use super::system::{File, unnamed};
use crate::error::{Error, ErrorKind, Result};

/// The largest file that is read into memory: 4 GiB, the most that a model can hold.
pub const LARGEST: u64 = 4 << 30;

/// The most that is read from a pipe, a device or standard input, which may have no end: 1 GiB.
pub const LARGEST_STREAM: u64 = 1 << 30;

/// An open file that can be read at any place; what came from a pipe lies in an unnamed temporary file.
#[derive(Debug)]
pub struct Input {
    file: File,
    path: PathBuf,
    streamed: bool,
}

impl Input {
    /// Opens whatever `path` names; `doing` completes "cannot …" in messages.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; [`ErrorKind::Input`] for a stream beyond [`LARGEST_STREAM`]; [`ErrorKind::Usage`] for a second `-`.
    pub fn open(path: &Path, doing: &str) -> Result<Self> {
        let io = |e: io::Error| Error::io(&shown(path), doing, &e);
        let (file, streamed) = match Source::of(path, doing)? {
            Source::File(file) => (file, false),
            Source::Stream(stream) => {
                let mut file = unnamed().map_err(io)?;
                let copied = io::copy(&mut stream.take(LARGEST_STREAM + 1), &mut file).map_err(io)?;
                within(path, copied, LARGEST_STREAM)?;
                file.flush().and_then(|()| file.rewind()).map_err(io)?;
                (file, true)
            }
        };
        let path = shown(path);
        Ok(Self { file, path, streamed })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the name of the input in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path cannot be opened again for the same content.
    pub fn is_streamed(&self) -> bool {
        self.streamed
    }
}

/// All of an input.
///
/// # Errors
/// As [`Input::open`]; [`ErrorKind::Input`] for a file beyond [`LARGEST`].
pub fn read(path: &Path, doing: &str) -> Result<Vec<u8>> {
    let (source, limit): (Box<dyn Read>, u64) = match Source::of(path, doing)? {
        Source::File(file) => (Box::new(file), LARGEST),
        Source::Stream(stream) => (stream, LARGEST_STREAM),
    };
    let mut bytes = Vec::new();
    let read = source.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::io(&shown(path), doing, &e))?;
    within(path, bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// All of an input that is text.
///
/// # Errors
/// As [`read`]; [`ErrorKind::Input`] for what is no UTF-8.
pub fn read_text(path: &Path, doing: &str) -> Result<String> {
    String::from_utf8(read(path, doing)?).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Error::input("it is no text")
            .in_file(&shown(path))
            .at(format!("line {line}, byte {}", before.len()))
            .expected("UTF-8")
    })
}

enum Source {
    File(File),
    Stream(Box<dyn Read>),
}

impl Source {
    fn of(path: &Path, doing: &str) -> Result<Self> {
        if path.as_os_str() == STDIN {
            static TAKEN: AtomicBool = AtomicBool::new(false);
            return if TAKEN.swap(true, Ordering::Relaxed) {
                Err(Error::new(ErrorKind::Usage, "`-` is given for two inputs")
                    .expected("one input from the standard input"))
            } else {
                Ok(Self::Stream(Box::new(io::stdin())))
            };
        }
        let io = |e: io::Error| Error::io(path, doing, &e);
        let file = File::open(path).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        match () {
            () if found.is_dir() => Err(Error::new(ErrorKind::Io, format!("cannot {doing}: it is a directory"))
                .in_file(path)
                .expected("a file")),
            () if found.is_file() => Ok(Self::File(file)),
            () => Ok(Self::Stream(Box::new(file))),
        }
    }
}

fn within(path: &Path, bytes: u64, limit: u64) -> Result<()> {
    if bytes > limit {
        Err(Error::input(format!("it does not end within {limit} bytes"))
            .in_file(&shown(path))
            .expected(match limit {
                LARGEST_STREAM => "at most that much from a pipe, a device or the standard input",
                _ => "at most that much, as no model holds more",
            })
            .help("larger weights come in a file of their own: --weights FILE.safetensors"))
    } else {
        Ok(())
    }
}
