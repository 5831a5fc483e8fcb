//! A model file on the host: mapped, checked, and run by the same runtime as on a board.

pub mod derived;
pub mod gradients;
mod runs;
pub mod saved;
mod view;

use std::path::{Path, PathBuf};

use arenite::signed::{Envelope, SIGNED_HEADER};
use arenite::{Bundle, Model, Sections};

use crate::error::{Error, Result};
use crate::files::{File, Input, system};

pub use runs::{AfterStep, Aligned, Memories, run, run_changing, run_each, train, train_keeping};
pub use view::ModelView;
use view::load_error;

/// Suffix behind `#` for the steps of training.
const TRAINING: &str = "training";

/// A model file, mapped into memory.
pub struct ModelFile {
    path: PathBuf,
    bytes: Bytes,
    /// Whether the path no longer leads to the bytes.
    streamed: bool,
    /// Envelope of a signed file.
    envelope: Option<Envelope>,
    /// Where the model lies in a signed file or a bundle.
    part: Option<std::ops::Range<usize>>,
}

enum Bytes {
    Mapped(system::Map),
    Made(Aligned),
    Empty,
}

/// A blob as a board takes it.
#[derive(Debug, Clone, Copy)]
pub enum Blob<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// Its file, which qemu reads itself: nothing is copied.
    File(&'a Path),
}

impl ModelFile {
    /// Maps a file; `FILE#NAME` is the model of that name (or number) in a bundle, `FILE#training` the steps of training as a model of their own.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Input`] for a damaged bundle, or one that has no such model.
    pub fn open(path: &Path) -> Result<Self> {
        let text = path.to_string_lossy();
        if let (false, Some((bundle, name))) = (path.exists(), text.rsplit_once('#')) {
            let file = Self::map(Path::new(bundle))?;
            if !Bundle::is_bundle(file.bytes())
                && name == TRAINING
                && let Some(training) = file.view()?.training()?
            {
                let bytes = derived::of_training(&training, false).map_err(|e| e.in_file(&file.path))?;
                return Ok(Self::made(&bytes, path));
            }
            if !Bundle::is_bundle(file.bytes()) {
                return Err(Error::input(format!("it is no bundle, and has no model `{name}`"))
                    .in_file(&file.path)
                    .expected(
                        "the file's name without #, `#training` behind that of a file packed with --train, or a bundle, which `pack` makes of several networks",
                    ));
            }
            return file.in_bundle(name);
        }
        let file = Self::map(path)?;
        if Bundle::is_bundle(file.bytes()) {
            file.in_bundle("")
        } else {
            Ok(file)
        }
    }

    /// A file that was made of another one, by whose path messages name it.
    pub fn made(bytes: &[u8], path: &Path) -> Self {
        let mut aligned = Aligned::new(bytes.len());
        aligned.bytes().copy_from_slice(bytes);
        Self {
            path: path.to_path_buf(),
            bytes: Bytes::Made(aligned),
            streamed: true,
            part: None,
            envelope: None,
        }
    }

    fn in_bundle(mut self, name: &str) -> Result<Self> {
        let bundle = Bundle::open(self.bytes()).map_err(|e| load_error(e).in_file(&self.path))?;
        let entries: Vec<_> = (0..bundle.len()).map_while(|index| bundle.entry(index)).collect();
        let found = entries
            .iter()
            .enumerate()
            .find(|(index, entry)| entry.name == name || name == index.to_string())
            .map(|(_, entry)| entry.bytes);
        let Some(bytes) = found else {
            let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
            let in_pieces = format!("0/{}", names.len());
            if name.is_empty()
                && names
                    .first()
                    .is_some_and(|first| first.trim_end_matches('+') == in_pieces)
            {
                return Err(Error::input("this is a model in pieces, for a flash that is no memory")
                    .in_file(&self.path)
                    .expected("a model in one file, or FILE#N for piece N")
                    .help(
                        "`arenite run`, `bench` and `verify` take it as it is; pack it without :stream for the rest",
                    ));
            }
            let message = match name {
                "" => "this is a bundle of several models".to_string(),
                _ => format!("the bundle has no model `{name}`"),
            };
            return Err(Error::input(message)
                .in_file(&self.path)
                .expected(format!("FILE#NAME with NAME one of {}", names.join(", "))));
        };
        let from =
            self.part.as_ref().map_or(0, |part| part.start) + bytes.as_ptr().addr() - self.bytes().as_ptr().addr();
        self.part = Some(from..from + bytes.len());
        Ok(self)
    }

    /// The model as a board's runner takes it: the file itself, or the bytes of one model of a bundle.
    pub fn blob(&self) -> Blob<'_> {
        if self.part.is_some() || self.streamed {
            Blob::Bytes(self.bytes())
        } else {
            Blob::File(&self.path)
        }
    }

    /// Maps a file without choosing a model of a bundle.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    pub fn map(path: &Path) -> Result<Self> {
        let input = Input::open(path, "read the model")?;
        let mapped = Self::of(input.file(), input.path());
        let mapped = mapped.map_err(|e| Error::io(input.path(), "read the model", &e))?;
        let envelope = Envelope::of(mapped.bytes());
        let content = arenite::content(mapped.bytes()).len();
        Ok(Self {
            streamed: input.is_streamed(),
            part: envelope.map(|_| SIGNED_HEADER..SIGNED_HEADER + content),
            envelope,
            ..mapped
        })
    }

    /// Maps an open file: its model, or all models of a bundle.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; [`crate::ErrorKind::Input`] for a damaged bundle.
    pub fn all_of(file: &File, path: &Path) -> Result<Vec<Self>> {
        let open = || Self::of(file, path).map_err(|e| Error::io(path, "read the model", &e));
        let first = open()?;
        if !Bundle::is_bundle(first.bytes()) {
            return Ok(vec![first]);
        }
        let bundle = Bundle::open(first.bytes()).map_err(|e| load_error(e).in_file(path))?;
        let all = 0..bundle.len();
        all.map(|index| open()?.in_bundle(&index.to_string())).collect()
    }

    /// Maps an open file that is one model; `path` is what it is called in messages.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn of(file: &File, path: &Path) -> std::io::Result<Self> {
        let bytes = match file.metadata()?.len() {
            0 => Bytes::Empty,
            _ => Bytes::Mapped(system::map(file)?),
        };
        Ok(Self {
            path: path.to_path_buf(),
            bytes,
            streamed: false,
            part: None,
            envelope: None,
        })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the envelope of a signed file, which nobody has verified.
    pub fn envelope(&self) -> Option<Envelope> {
        self.envelope
    }

    /// All of the file.
    pub fn whole(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Made(bytes) => bytes.as_slice(),
            Bytes::Empty => &[],
        }
    }

    /// The bytes of the model; of a signed file or a bundle those of one model in it.
    pub fn bytes(&self) -> &[u8] {
        let all = self.whole();
        self.part.clone().and_then(|part| all.get(part)).unwrap_or(all)
    }

    /// Checks the model as a device does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] with the runtime's reason.
    pub fn load(&self) -> Result<Model<'_>> {
        Model::load(self.bytes()).map_err(|e| load_error(e).in_file(&self.path))
    }

    /// Returns the view of an intact file, for tools that look, judge or hand it to a board. Its steps are not checked.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] with the runtime's reason.
    pub fn view(&self) -> Result<ModelView<'_>> {
        let sections = Sections::open(self.bytes()).map_err(|e| load_error(e).in_file(&self.path))?;
        ModelView::of(sections, self.bytes(), &self.path).map_err(|e| e.in_file(&self.path))
    }

    /// Bytes of each output.
    ///
    /// # Errors
    /// As [`ModelFile::view`].
    pub fn output_sizes(&self) -> Result<Vec<usize>> {
        let view = self.view()?;
        Ok(view
            .outputs
            .iter()
            .map(|port| port.bytes().unwrap_or(0) as usize)
            .collect())
    }
}
