//! A model in pieces as the host sees it: the file, its ports, its memory, and runs of it as a device makes them.

use std::path::Path;

use arenite::Bundle;
use arenite_stream::{Sizes, Source, Stream, StreamError};

use crate::error::{Error, ErrorKind, Result};
use crate::files::File;
use crate::model::{Aligned, ModelFile};

/// A file of pieces, mapped.
pub struct PiecesFile {
    file: ModelFile,
    /// Each of them.
    pub pieces: Vec<ModelFile>,
    /// Memory that it wants of a device.
    pub sizes: Sizes,
}

/// A flash in this machine's memory, which counts what is read.
#[derive(Debug)]
pub struct Flash<'f> {
    content: &'f [u8],
    /// Bytes so far.
    pub read: u64,
}

impl<'f> Flash<'f> {
    /// A flash of this content.
    pub fn of(content: &'f [u8]) -> Self {
        Self { content, read: 0 }
    }
}

impl Source for Flash<'_> {
    type Error = std::convert::Infallible;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> std::result::Result<(), Self::Error> {
        // Past its end there is nothing, as in a flash that is erased.
        let from = self.content.get(offset as usize..).unwrap_or_default();
        let there = from.iter().copied().chain(std::iter::repeat(0xff));
        bytes.iter_mut().zip(there).for_each(|(to, from)| *to = from);
        self.read += bytes.len() as u64;
        Ok(())
    }
}

impl PiecesFile {
    /// The pieces of a file; `None` for a file that is something else, of which nothing is said here.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; [`ErrorKind::Input`] for damaged pieces.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        // A pipe gives a file once, and who reads it next wants it.
        if !path.is_file() {
            return Ok(None);
        }
        let file = ModelFile::map(path)?;
        if !Bundle::is_bundle(file.bytes()) {
            return Ok(None);
        }
        let sizes = match Stream::<_>::sizes(&mut Flash::of(file.bytes()), 0) {
            Ok(sizes) => sizes,
            // Faults of a bundle are reported by whoever opens it.
            Err(_) => return Ok(None),
        };
        let opened = File::open(path).map_err(|e| Error::io(path, "read the model", &e))?;
        let pieces = ModelFile::all_of(&opened, path)?;
        Ok(Some(Self { file, pieces, sizes }))
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.file.bytes()
    }

    /// The piece with the network's inputs, and the one with its outputs.
    pub fn ends(&self) -> [&ModelFile; 2] {
        let last = self.pieces.len().saturating_sub(1);
        [&self.pieces[0], &self.pieces[last]]
    }

    /// Opens it and runs it once for each element of `runs`, each the inputs of one run; gives the outputs, and the bytes that a run read. `opened` hears that
    /// it is open, `after` of each piece.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for inputs of the wrong number or size, and for damaged pieces; [`ErrorKind::Unsupported`] for kernels that this host has not.
    pub fn run(
        &self,
        runs: &[Vec<Vec<u8>>],
        opened: &mut dyn FnMut(),
        after: &mut dyn FnMut(usize, u32),
    ) -> Result<(Vec<Vec<Vec<u8>>>, u64)> {
        run(self.bytes(), self.sizes, runs, opened, after).map_err(|e| e.in_file(self.file.path()))
    }
}

/// Runs pieces as [`PiecesFile::run`] does.
///
/// # Errors
/// As [`PiecesFile::run`].
pub fn run(
    bytes: &[u8],
    sizes: Sizes,
    runs: &[Vec<Vec<u8>>],
    opened: &mut dyn FnMut(),
    after: &mut dyn FnMut(usize, u32),
) -> Result<(Vec<Vec<Vec<u8>>>, u64)> {
    let [mut buffer, mut arena] = [sizes.buffer, sizes.arena].map(|bytes| Aligned::new(bytes as usize));
    let mut stream: Stream<'_, _> = Stream::open(Flash::of(bytes), 0, buffer.bytes(), arena.bytes()).map_err(told)?;
    opened();
    let [inputs, outputs] = stream.ports();
    let (mut results, mut read) = (Vec::with_capacity(runs.len()), 0);
    for (index, given) in runs.iter().enumerate() {
        let before = stream.source().read;
        if given.len() != usize::from(inputs.count) {
            return Err(Error::input(format!("{} inputs", given.len())).expected(inputs.count));
        }
        for (port, bytes) in given.iter().enumerate() {
            stream.set_input(port, bytes).map_err(told)?;
        }
        for piece in 0.. {
            let progress = stream.step().map_err(told)?;
            after(index, piece);
            if progress == arenite::Progress::Done {
                break;
            }
        }
        let all = 0..usize::from(outputs.count);
        let output = |port| stream.show_output(port, <[u8]>::to_vec).map_err(told);
        results.push(all.map(output).collect::<Result<_>>()?);
        read = stream.source().read - before;
    }
    Ok((results, read))
}

fn told(error: StreamError<std::convert::Infallible>) -> Error {
    match error {
        StreamError::Piece {
            error: arenite::LoadError::Kernel { .. },
            ..
        } => Error::new(ErrorKind::Unsupported, error.to_string())
            .help("run it on a board of its target, or pack it with --target portable"),
        _ => Error::input(error.to_string()),
    }
}
