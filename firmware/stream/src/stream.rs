//! Runs the pieces, one after the other.

use core::marker::PhantomData;
use core::ops::Range;

use arenite::bundle::Located;
use arenite::typed::Number;
use arenite::{All, HEADER_BYTES, Kernels, LoadError, MODEL_ALIGN, Model, Progress, Receipt, RunError, Session};

use crate::directory::{self, Directory};
use crate::error::StreamError;
use crate::source::Source;

/// A model that is read piece by piece.
#[derive(Debug)]
pub struct Stream<'b, S, K: Kernels = All> {
    source: S,
    /// Where the pieces begin in the source.
    start: u32,
    count: u32,
    /// Where a piece is read to; the second one is empty where the buffer has no room for it.
    work: [&'b mut [u8]; 2],
    /// Pieces that are in them.
    loaded: [Option<Loaded>; 2],
    /// The pieces that stay, as they lie in the source from here on.
    kept: &'b mut [u8],
    kept_from: u32,
    arena: &'b mut [u8],
    /// The piece that is next in this run.
    next: u32,
    /// A bit for each input that was set for this run.
    given: u32,
    ports: [Ports; 2],
    kernels: PhantomData<K>,
}

/// A piece in memory whose checksum is right.
#[derive(Debug, Clone)]
struct Loaded {
    piece: u32,
    at: Range<usize>,
    receipt: Receipt,
}

/// Which memory a piece is in.
#[derive(Debug, Clone, Copy)]
enum Memory {
    First,
    Second,
    Kept,
}

/// Memory that a model in pieces wants, in bytes but for the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// How many there are.
    pub pieces: u32,
    /// Of the buffer: the largest piece that is read for each run, and those that stay.
    pub buffer: u32,
    /// Of a buffer in which the next piece is read while one computes.
    pub double: u32,
    /// Of the arena.
    pub arena: u32,
}

/// Inputs, or outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ports {
    /// How many there are.
    pub count: u8,
    /// Bytes of all of them.
    pub bytes: u32,
}

impl<'b, S: Source, K: Kernels> Stream<'b, S, K> {
    /// Opens the model at `start` of the source. The directory is checked, and every piece is read once and checked as [`Model::load`] does, so that what
    /// can be wrong with the file is found before the first run. Each piece is checked again when it comes for a run: a flash may change. That a piece is of
    /// the model that was opened is not: whoever writes another one over it opens it anew.
    ///
    /// `buffer` holds a piece, and those that stay: at least [`Sizes::buffer`], which `pack` tells as `buffer_bytes`. Where it has [`Sizes::double`], the next
    /// piece is read while one computes ([`Source::read_beside`]). Buffer and arena start at multiples of 16.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn open(
        mut source: S,
        start: u32,
        buffer: &'b mut [u8],
        arena: &'b mut [u8],
    ) -> Result<Self, StreamError<S::Error>> {
        let directory = directory::check(&mut source, start)?;
        let given = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let needed = buffer_bytes(&directory);
        let small = || StreamError::BufferTooSmall { needed, given };
        let Directory {
            count,
            largest,
            resident,
        } = directory;
        let [work, kept] = [largest, resident.end - resident.start].map(|bytes| bytes as usize);
        // The kept pieces lie behind the first piece, and the second one behind those.
        let first = if kept > 0 { aligned(largest) as usize } else { work };
        let (first, rest) = buffer.split_at_mut_checked(first).ok_or_else(small)?;
        let (kept, rest) = rest.split_at_mut_checked(kept).ok_or_else(small)?;
        let to_aligned = rest.as_ptr().align_offset(MODEL_ALIGN);
        let second = rest
            .get_mut(to_aligned..)
            .and_then(|rest| rest.get_mut(..work))
            .unwrap_or_default();
        let at = start.checked_add(resident.start).ok_or(StreamError::Directory)?;
        if !kept.is_empty() {
            source.read(at, kept).map_err(StreamError::Source)?;
        }
        let mut stream = Self {
            source,
            start,
            count,
            work: [first, second],
            loaded: [None, None],
            kept,
            kept_from: resident.start,
            arena,
            next: 0,
            given: 0,
            ports: [Ports::default(); 2],
            kernels: PhantomData,
        };
        // Backwards, so that the first one is in the buffer in the end.
        for piece in (0..count).rev() {
            let [inputs, outputs] = stream.with(piece, |session| {
                let header = session.model().header();
                let (inputs, outputs) = (header.inputs, header.outputs);
                let [inputs, outputs] = [(inputs, header.input_bytes), (outputs, header.output_bytes)];
                Ok([inputs, outputs].map(|(count, bytes)| Ports { count, bytes }))
            })?;
            // Inputs and outputs are the network's.
            if (inputs.count > 0 && piece > 0) || (outputs.count > 0 && piece + 1 < count) {
                let error = LoadError::Header;
                return Err(StreamError::Piece { piece, error });
            }
            let [first, last] = &mut stream.ports;
            if piece == 0 {
                *first = inputs;
            }
            if piece + 1 == count {
                *last = outputs;
            }
        }
        Ok(stream)
    }

    /// Returns the memory that the model at `start` of the source wants: the directory and the first piece's header are read.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn sizes(source: &mut S, start: u32) -> Result<Sizes, StreamError<S::Error>> {
        let directory = directory::check(source, start)?;
        let mut head = [0; HEADER_BYTES];
        let at = start.checked_add(directory::entry(source, start, 0)?.offset);
        let at = at.ok_or(StreamError::Directory)?;
        source.read(at, &mut head).map_err(StreamError::Source)?;
        Ok(Sizes {
            pieces: directory.count,
            buffer: buffer_bytes(&directory),
            double: double_bytes(&directory),
            arena: u32::try_from(arenite::arena_bytes(&head, 0)).unwrap_or(u32::MAX),
        })
    }

    /// Pieces of the model.
    pub fn pieces(&self) -> u32 {
        self.count
    }

    /// The network's inputs, and its outputs.
    pub fn ports(&self) -> [Ports; 2] {
        self.ports
    }

    /// The source, to look at.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// As [`Session::set_input`].
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn set_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), StreamError<S::Error>> {
        self.input(index, |session| session.set_input(index, bytes))
    }

    /// As [`Session::set_values`].
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn set_values<T: Number>(&mut self, index: usize, values: &[T]) -> Result<(), StreamError<S::Error>> {
        self.input(index, |session| session.set_values(index, values))
    }

    /// Has the bytes of input `index` filled where they are wanted, in the arena.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn fill_input<R>(
        &mut self,
        index: usize,
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, StreamError<S::Error>> {
        self.input(index, |session| session.input_mut(index).map(fill))
    }

    fn input<R>(
        &mut self,
        index: usize,
        set: impl FnOnce(&mut Session<'_, '_, K>) -> Result<R, RunError>,
    ) -> Result<R, StreamError<S::Error>> {
        if self.next > 0 {
            // A run was under way, or is over: its inputs are gone.
            (self.next, self.given) = (0, 0);
        }
        let bit = u32::try_from(index)
            .ok()
            .and_then(|index| 1u32.checked_shl(index))
            .unwrap_or(0);
        self.given &= !bit;
        let set = self.with(0, set)?;
        self.given |= bit;
        Ok(set)
    }

    /// Reads and runs the next piece.
    ///
    /// # Errors
    /// See [`StreamError`]; [`RunError::InputMissing`] before the first piece. After an error of the source, or of a piece, the same piece is tried again.
    pub fn step(&mut self) -> Result<Progress, StreamError<S::Error>> {
        if self.next >= self.count {
            (self.next, self.given) = (0, 0);
        }
        let (piece, given) = (self.next, self.given);
        let (memory, loaded) = self.locate(piece)?;
        let ahead = self.ahead(piece);
        let Self {
            source,
            work: [first, second],
            loaded: [in_first, in_second],
            kept,
            arena,
            start,
            ..
        } = self;
        // A piece that is read ahead goes where this piece is not.
        let (file, other, ahead_in) = match memory {
            Memory::First => (&**first, &mut **second, in_second),
            Memory::Second => (&**second, &mut **first, in_first),
            Memory::Kept => (&**kept, &mut **first, in_first),
        };
        let mut session = session::<S, K>(piece, file, &loaded, arena)?;
        for input in 0..u32::from(session.model().header().inputs) {
            if 1u32.checked_shl(input).is_none_or(|bit| given & bit == 0) {
                return Err(StreamError::Run(RunError::InputMissing { input }));
            }
            // It is in the arena.
            session.input_mut(input as usize).map_err(StreamError::Run)?;
        }
        let mut ran = None;
        let ahead = ahead.and_then(|(next, found)| {
            let bytes = other.get_mut(..found.bytes as usize)?;
            Some((next, start.checked_add(found.offset)?, bytes))
        });
        if let Some((next, at, bytes)) = ahead {
            *ahead_in = None;
            let read = source.read_beside(at, bytes, &mut || ran = Some(session.run()));
            // A piece that does not come, or is damaged, is read again when it is next, and reported then.
            if let (Ok(()), Ok(receipt)) = (read, Receipt::of(bytes)) {
                *ahead_in = Some(Loaded {
                    piece: next,
                    at: 0..bytes.len(),
                    receipt,
                });
            }
        }
        let ran = match ran {
            Some(ran) => ran,
            None => session.run(),
        };
        ran.map_err(StreamError::Run)?;
        self.next = piece + 1;
        Ok(if self.next < self.count {
            Progress::Step {
                step: piece,
                steps: self.count,
            }
        } else {
            Progress::Done
        })
    }

    /// Runs all pieces that are left.
    ///
    /// # Errors
    /// See [`Stream::step`].
    pub fn run(&mut self) -> Result<(), StreamError<S::Error>> {
        while self.step()? != Progress::Done {}
        Ok(())
    }

    /// Copies the bytes of output `index` of the last run.
    ///
    /// # Errors
    /// As [`Stream::values`].
    pub fn output(&mut self, index: usize, bytes: &mut [u8]) -> Result<(), StreamError<S::Error>> {
        self.last(|session| copy(bytes, session.output(index)?, index))
    }

    /// Copies output `index` of the last run.
    ///
    /// # Errors
    /// See [`StreamError`]; [`RunError::PortType`] where `values` are of another type or number, and [`RunError::InputMissing`] before a run is done.
    pub fn values<T: Number>(&mut self, index: usize, values: &mut [T]) -> Result<(), StreamError<S::Error>> {
        self.last(|session| copy(values, session.values(index)?, index))
    }

    /// Shows the bytes of output `index` of the last run, where they are.
    ///
    /// # Errors
    /// As [`Stream::values`].
    pub fn show_output<R>(&mut self, index: usize, show: impl FnOnce(&[u8]) -> R) -> Result<R, StreamError<S::Error>> {
        self.last(|session| session.output(index).map(show))
    }

    /// Looks at the last piece, behind a run.
    fn last<R>(
        &mut self,
        look: impl FnOnce(&mut Session<'_, '_, K>) -> Result<R, RunError>,
    ) -> Result<R, StreamError<S::Error>> {
        if self.next < self.count {
            return Err(StreamError::Run(RunError::InputMissing { input: 0 }));
        }
        self.with(self.count - 1, look)
    }

    /// Does something with a piece in memory.
    fn with<R>(
        &mut self,
        piece: u32,
        work: impl FnOnce(&mut Session<'_, '_, K>) -> Result<R, RunError>,
    ) -> Result<R, StreamError<S::Error>> {
        let (memory, loaded) = self.locate(piece)?;
        let [first, second] = &self.work;
        let file = match memory {
            Memory::First => &**first,
            Memory::Second => &**second,
            Memory::Kept => &*self.kept,
        };
        let mut session = session::<S, K>(piece, file, &loaded, self.arena)?;
        work(&mut session).map_err(StreamError::Run)
    }

    /// The piece that comes behind one, where there is room to read it meanwhile.
    fn ahead(&mut self, piece: u32) -> Option<(u32, Located)> {
        let next = if piece + 1 < self.count { piece + 1 } else { 0 };
        let [_, second] = &self.work;
        let there = self.loaded.iter().flatten().any(|loaded| loaded.piece == next);
        if second.is_empty() || there {
            return None;
        }
        let found = directory::entry(&mut self.source, self.start, next).ok()?;
        self.stays(&found).is_none().then_some((next, found))
    }

    /// Where a piece that stays lies in what is kept.
    fn stays(&self, found: &Located) -> Option<Range<usize>> {
        let at = found.offset.checked_sub(self.kept_from)? as usize;
        let end = at.checked_add(found.bytes as usize)?;
        (end <= self.kept.len()).then_some(at..end)
    }

    /// Finds a piece, or reads it.
    fn locate(&mut self, piece: u32) -> Result<(Memory, Loaded), StreamError<S::Error>> {
        let wrong = |error| StreamError::Piece { piece, error };
        for (loaded, memory) in self.loaded.iter().zip([Memory::First, Memory::Second]) {
            if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.piece == piece) {
                return Ok((memory, loaded.clone()));
            }
        }
        let found = directory::entry(&mut self.source, self.start, piece)?;
        if let Some(at) = self.stays(&found) {
            let file = self.kept.get(at.clone()).unwrap_or_default();
            let receipt = Receipt::of(file).map_err(wrong)?;
            return Ok((Memory::Kept, Loaded { piece, at, receipt }));
        }
        let [first, _] = &mut self.work;
        let [in_first, _] = &mut self.loaded;
        *in_first = None;
        let given = u32::try_from(first.len()).unwrap_or(u32::MAX);
        let small = StreamError::BufferTooSmall {
            needed: found.bytes,
            given,
        };
        let at = 0..found.bytes as usize;
        let file = first.get_mut(at.clone()).ok_or(small)?;
        let from = self.start.checked_add(found.offset).ok_or(StreamError::Directory)?;
        self.source.read(from, file).map_err(StreamError::Source)?;
        let receipt = Receipt::of(file).map_err(wrong)?;
        let loaded = Loaded { piece, at, receipt };
        *in_first = Some(loaded.clone());
        Ok((Memory::First, loaded))
    }
}

/// A session of a piece in memory.
fn session<'m, 's, S: Source, K: Kernels>(
    piece: u32,
    memory: &'m [u8],
    loaded: &Loaded,
    arena: &'s mut [u8],
) -> Result<Session<'m, 's, K>, StreamError<S::Error>> {
    let file = memory.get(loaded.at.clone()).unwrap_or_default();
    let model = Model::<K>::load_receipt_with(file, &loaded.receipt);
    let model = model.map_err(|error| StreamError::Piece { piece, error })?;
    Session::resume(model, arena, &mut []).map_err(StreamError::Session)
}

/// Bytes of a buffer for the largest piece, and for those that stay.
fn buffer_bytes(directory: &Directory) -> u32 {
    let stay = directory.resident.end - directory.resident.start;
    match (aligned(directory.largest), stay) {
        (_, 0) => directory.largest,
        (work, stay) => work.saturating_add(stay),
    }
}

/// The same with a second piece.
fn double_bytes(directory: &Directory) -> u32 {
    aligned(buffer_bytes(directory)).saturating_add(directory.largest)
}

fn aligned(bytes: u32) -> u32 {
    bytes.checked_next_multiple_of(MODEL_ALIGN as u32).unwrap_or(u32::MAX)
}

/// Copies an output that has as many elements.
fn copy<T: Number>(to: &mut [T], from: &[T], index: usize) -> Result<(), RunError> {
    if to.len() != from.len() {
        return Err(RunError::PortType { port: index as u32 });
    }
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    Ok(())
}
