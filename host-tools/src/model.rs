//! A model file on the host: mapped, checked, and run by the same runtime as on a board.

use std::path::{Path, PathBuf};

use arenite::{LoadError, Model, Session};

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Metadata;
use crate::summary::Summary;

/// A model file, mapped into memory.
pub struct ModelFile {
    path: PathBuf,
    bytes: Bytes,
}

enum Bytes {
    Mapped(memmap2::Mmap),
    Empty,
}

/// Memory that models run in: aligned for every kernel.
pub struct Aligned {
    words: Vec<u128>,
    len: usize,
}

impl ModelFile {
    /// Maps a file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let io = |e: std::io::Error| Error::io(path, "read the model", &e);
        let file = std::fs::File::open(path).map_err(io)?;
        let bytes = match file.metadata().map_err(io)?.len() {
            0 => Bytes::Empty,
            // SAFETY: the map is private to this process's reading; a file that another process changes meanwhile gives wrong
            // results, as reading it twice would.
            _ => Bytes::Mapped(unsafe { memmap2::Mmap::map(&file) }.map_err(io)?),
        };
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
        })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Empty => &[],
        }
    }

    /// Checks the model as a device does.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the runtime's reason.
    pub fn load(&self) -> Result<Model<'_>> {
        Model::load(self.bytes()).map_err(|e| load_error(e).in_file(&self.path))
    }

    /// The metadata.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn metadata(&self, model: &Model<'_>) -> Result<Metadata> {
        Metadata::decode(model.metadata()).map_err(|e| e.in_file(&self.path))
    }

    /// The summary that was printed when the model was packed, with the sizes of the file itself.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn summary(&self, model: &Model<'_>) -> Result<Summary> {
        let text = self.metadata(model)?.summary;
        let mut summary: Summary = serde_json::from_str(&text)
            .map_err(|e| Error::input(format!("the summary does not decode: {e}")).in_file(&self.path))?;
        let header = model.header();
        summary.model_bytes = u64::from(header.total);
        summary.weights_bytes = u64::from(header.weights.len);
        summary.plan_bytes = u64::from(header.ports.len) + u64::from(header.steps.len);
        Ok(summary)
    }
}

impl Aligned {
    /// Zeroed memory.
    pub fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(size_of::<u128>())],
            len,
        }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        let all = self.words.len() * size_of::<u128>();
        // SAFETY: the words are initialised, their bytes are contiguous, and the borrow is exclusive.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), all) };
        &mut bytes[..self.len]
    }
}

/// Runs `model` once for each element of `runs` (each the inputs of one run), state carried over unless `reset_each`. `after` sees the
/// session after each step of each run. Returns the outputs of each run.
///
/// # Errors
/// [`ErrorKind::Input`] for inputs of the wrong number or size.
pub fn run(
    model: &Model<'_>,
    runs: &[Vec<Vec<u8>>],
    reset_each: bool,
    after: &mut dyn FnMut(usize, u32, &Session<'_, '_>),
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut arenas: Vec<Aligned> = (0..arenite::MAX_REGIONS)
        .map(|r| Aligned::new(model.arena_bytes(r)))
        .collect();
    let mut state = Aligned::new(model.state_bytes());
    let [a, b, c, d] = &mut arenas[..] else {
        return Err(Error::internal("a model has four regions"));
    };
    let mut session = Session::new(*model, [a.bytes(), b.bytes(), c.bytes(), d.bytes()], state.bytes())
        .map_err(|e| Error::internal(e.to_string()))?;
    let wrong = |e: arenite::RunError| Error::input(e.to_string());
    let mut results = Vec::with_capacity(runs.len());
    for (index, inputs) in runs.iter().enumerate() {
        if reset_each {
            session.reset_state();
        }
        if inputs.len() != usize::from(model.header().inputs) {
            return Err(Error::input(format!("{} inputs", inputs.len())).expected(model.header().inputs));
        }
        for (port, bytes) in inputs.iter().enumerate() {
            session.set_input(port, bytes).map_err(wrong)?;
        }
        let mut step = 0;
        loop {
            let progress = session.step().map_err(wrong)?;
            after(index, step, &session);
            step += 1;
            if progress == arenite::Progress::Done {
                break;
            }
        }
        let outputs = 0..usize::from(model.header().outputs);
        results.push(
            outputs
                .map(|port| session.output(port).map(<[u8]>::to_vec).map_err(wrong))
                .collect::<Result<_>>()?,
        );
    }
    Ok(results)
}

fn load_error(error: LoadError) -> Error {
    let kind = match error {
        LoadError::Kernel { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Input,
    };
    let help = match error {
        LoadError::Version { .. } => "pack it again with this version of pack",
        LoadError::Kernel { .. } => "run it on a board of its target, or pack it with --target portable",
        _ => "the file is damaged or no model: pack it again",
    };
    Error::new(kind, error.to_string()).help(help)
}
