//! A model file on the host: mapped, checked, and run by the same runtime as on a board.

use std::path::{Path, PathBuf};

use arenite::signed::{Envelope, SIGNED_HEADER};
use arenite::{
    Bundle, Declaration, Fault, Header, KernelId, LoadError, Model, Port, RunError, Sections, Session, Step,
};

use crate::error::{Error, ErrorKind, Result};
use crate::files::{File, Input, system};
use crate::metadata::Metadata;
use crate::report::Summary;

/// A model file, mapped into memory.
pub struct ModelFile {
    path: PathBuf,
    bytes: Bytes,
    /// Whether the path no longer leads to the bytes.
    streamed: bool,
    /// What a signed file says of its signature.
    envelope: Option<Envelope>,
    /// Where the model lies in a signed file or a bundle.
    part: Option<std::ops::Range<usize>>,
}

enum Bytes {
    Mapped(system::Map),
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

/// Memory that models run in: aligned for every kernel.
pub struct Aligned {
    words: Vec<u128>,
    len: usize,
}

impl ModelFile {
    /// Maps a file; `FILE#NAME` is the model of that name (or number) in a bundle.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; [`ErrorKind::Input`] for a damaged bundle, or one that has no such model.
    pub fn open(path: &Path) -> Result<Self> {
        let text = path.to_string_lossy();
        if let (false, Some((bundle, name))) = (path.exists(), text.rsplit_once('#')) {
            let file = Self::map(Path::new(bundle))?;
            if !Bundle::is_bundle(file.bytes()) {
                return Err(Error::input(format!("it is no bundle, and has no model `{name}`"))
                    .in_file(&file.path)
                    .expected("the file's name without #, or a bundle, which `pack` makes of several networks"));
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
    /// [`ErrorKind::Io`].
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
    /// [`ErrorKind::Io`]; [`ErrorKind::Input`] for a damaged bundle.
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
    /// What the system says.
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

    /// What a signed file says of its signature, which nobody has verified.
    pub fn envelope(&self) -> Option<Envelope> {
        self.envelope
    }

    /// All of the file.
    pub fn whole(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
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
    /// [`ErrorKind::Input`] with the runtime's reason.
    pub fn load(&self) -> Result<Model<'_>> {
        Model::load(self.bytes()).map_err(|e| load_error(e).in_file(&self.path))
    }

    /// What an intact file says, for tools that look, judge or hand it to a board. Its steps are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the runtime's reason.
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

/// A file as tools look at it: ports and steps as values.
pub struct ModelView<'a> {
    path: &'a Path,
    sections: Sections<'a>,
    weights: &'a [u8],
    /// The inputs.
    pub inputs: Vec<Port<'a>>,
    /// The outputs.
    pub outputs: Vec<Port<'a>>,
}

impl<'a> ModelView<'a> {
    fn of(sections: Sections<'a>, bytes: &'a [u8], path: &'a Path) -> Result<Self> {
        let [inputs, outputs] = [sections.header().inputs, sections.header().outputs].map(u32::from);
        let wrong = |port| load_error(LoadError::Port { port });
        let input = |i: u32| sections.input(i as usize).ok_or_else(|| wrong(i));
        let output = |i: u32| sections.output(i as usize).ok_or_else(|| wrong(inputs + i));
        let at = sections.header().weights;
        let weights = bytes
            .get(at.offset as usize..)
            .and_then(|rest| rest.get(..at.len as usize));
        Ok(Self {
            path,
            // Those of a file that is read in pieces may be left out.
            weights: weights.unwrap_or(&[]),
            inputs: (0..inputs).map(input).collect::<Result<_>>()?,
            outputs: (0..outputs).map(output).collect::<Result<_>>()?,
            sections,
        })
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.sections.header()
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        self.sections.target_name()
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> arenite::StateInit<'a> {
        self.sections.state_init()
    }

    /// How many cores the file is for, and a byte for each step; `None` for one.
    pub fn cores(&self) -> Option<(u8, &'a [u8])> {
        self.sections.cores()
    }

    /// The accelerator that the file is for, and a byte for each step, 1 for those that it has; `None` for a file that needs none.
    pub fn accelerator(&self) -> Option<(Declaration, &'a [u8])> {
        self.sections.accelerator()
    }

    /// The weights.
    pub fn weights(&self) -> &'a [u8] {
        self.weights
    }

    /// The steps, decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] naming the step.
    pub fn steps(&self) -> Result<Vec<Step>> {
        let decode = |(step, record): (usize, Option<(u8, &[u8])>)| {
            let step = step as u32;
            let wrong = |fault| load_error(LoadError::Step { step, fault });
            let (kernel, params) = record.ok_or_else(|| wrong(Fault::Encoding))?;
            let id = KernelId::from_u8(kernel).ok_or_else(|| load_error(LoadError::UnknownKernel { step, kernel }))?;
            Step::decode(id, params).map_err(wrong)
        };
        let steps: Vec<Step> = self.sections.steps().enumerate().map(decode).collect::<Result<_>>()?;
        if steps.len() == self.header().step_count as usize {
            Ok(steps)
        } else {
            Err(load_error(LoadError::Header))
        }
    }

    /// The metadata, with the class labels.
    ///
    /// # Errors
    /// As [`Metadata::decode`]; labels that do not decode.
    pub fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::decode(self.sections.metadata()).map_err(|e| e.in_file(self.path))?;
        let labels = self.sections.labels();
        if !labels.is_empty() {
            metadata.labels = postcard::from_bytes(labels).map_err(|_| self.unread("the class labels"))?;
        }
        Ok(metadata)
    }

    fn unread(&self, what: &str) -> Error {
        Error::input(format!("{what} in it cannot be read"))
            .in_file(self.path)
            .expected("what this version of the tools writes")
            .help("pack the model again")
    }

    /// The summary that was printed when the model was packed, with the sizes of the file itself.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn summary(&self) -> Result<Summary> {
        let mut summary: Summary =
            serde_json::from_str(&self.metadata()?.summary).map_err(|_| self.unread("the summary"))?;
        summary.dead_channels.get_or_insert_default();
        summary.model_bytes = u64::from(self.header().total);
        summary.weights_bytes = u64::from(self.header().weights.len);
        summary.plan_bytes = u64::from(self.header().ports.len) + u64::from(self.header().steps.len);
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
    run_changing(model, runs, reset_each, &mut |run, step, session| {
        after(run, step, session);
    })
}

/// As [`run`]; `after` may write what the steps to come read.
///
/// # Errors
/// As [`run`].
pub fn run_changing(
    model: &Model<'_>,
    runs: &[Vec<Vec<u8>>],
    reset_each: bool,
    after: &mut dyn FnMut(usize, u32, &mut Session<'_, '_>),
) -> Result<Vec<Vec<Vec<u8>>>> {
    run_each(model, runs, reset_each, &mut |run, session| {
        let mut step = 0;
        loop {
            let progress = session.step()?;
            after(run, step, session);
            step += 1;
            if progress == arenite::Progress::Done {
                return Ok(());
            }
        }
    })
}

/// As [`run`]; each run is made by `make`, with its number and the session whose inputs are set.
///
/// # Errors
/// As [`run`], and those of `make`.
pub fn run_each(
    model: &Model<'_>,
    runs: &[Vec<Vec<u8>>],
    reset_each: bool,
    make: &mut dyn FnMut(usize, &mut Session<'_, '_>) -> std::result::Result<(), RunError>,
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
    let wrong = |e: RunError| Error::input(e.to_string());
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
        make(index, &mut session).map_err(wrong)?;
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
        LoadError::Version { found, supported } if found > supported => {
            "these tools are older than those that packed it: update them, or pack the network with these"
        }
        LoadError::Version { .. } => "arenite migrate MODEL -o MODEL",
        LoadError::Kernel { .. } => "run it on a board of its target, or pack it with --target portable",
        _ => "the file is damaged or no model: pack it again",
    };
    Error::new(kind, error.to_string()).help(help)
}
