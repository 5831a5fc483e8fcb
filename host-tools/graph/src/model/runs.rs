//! Runs of a model on this host, and its training.

use arenite::{Model, RunError, Session};

use super::gradients::Gradients;
use crate::error::{Error, Result};

/// Memory that models run in: aligned for every kernel.
pub struct Aligned {
    words: Vec<u128>,
    len: usize,
}

impl Aligned {
    /// Zeroed memory.
    pub fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(size_of::<u128>())],
            len,
        }
    }

    /// Its bytes, to read.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the words are initialised, their bytes are contiguous, and nothing writes them while they are borrowed.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.len) }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        let all = self.words.len() * size_of::<u128>();
        // SAFETY: the words are initialised, their bytes are contiguous, and the borrow is exclusive.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), all) };
        &mut bytes[..self.len]
    }
}

/// Arenas and state of a model, for a session on this machine.
pub struct Memories {
    arenas: [Aligned; arenite::MAX_REGIONS],
    state: Aligned,
}

impl Memories {
    /// Those that `model` needs.
    pub fn of(model: &Model<'_>) -> Self {
        Self {
            arenas: std::array::from_fn(|region| Aligned::new(model.arena_bytes(region))),
            state: Aligned::new(model.state_bytes()),
        }
    }

    /// Opens a session on them, with the model's initial state.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Internal`] for another model's.
    pub fn session<'m, 's>(&'s mut self, model: &Model<'m>) -> Result<Session<'m, 's>> {
        let [a, b, c, d] = &mut self.arenas;
        let arenas = [a.bytes(), b.bytes(), c.bytes(), d.bytes()];
        Session::new(*model, arenas, self.state.bytes()).map_err(|e| Error::internal(e.to_string()))
    }
}

/// Runs `model` once for each element of `runs` (each the inputs of one run), state carried over unless `reset_each`. `after` sees the
/// session after each step of each run. Returns the outputs of each run.
///
/// # Errors
/// [`crate::ErrorKind::Input`] for inputs of the wrong number or size.
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
    let mut memories = Memories::of(model);
    let mut session = memories.session(model)?;
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

/// Sees the outputs of each step of training, by its number; an error ends training.
pub type AfterStep<'a> = &'a mut dyn FnMut(usize, &[Vec<u8>]) -> Result<()>;

/// Trains `model` from `state` on, or from its initial state: a step for each element of `inputs`, until there is none. `after` sees the outputs of each step,
/// and ends training by an error. Returns the state.
///
/// # Errors
/// [`crate::ErrorKind::Input`] for a file without steps of training, inputs of the wrong number or size; those of `after`.
pub fn train(
    model: &Model<'_>,
    state: Option<&[u8]>,
    inputs: &mut dyn FnMut(usize) -> Option<Vec<Vec<u8>>>,
    after: AfterStep<'_>,
) -> Result<Vec<u8>> {
    train_by(model, state, inputs, after, &mut |session| session.run())
}

/// As [`train`], bit for bit, and slower: keeps the gradients of each step's parameters in `gradients`, of the last one in the end.
///
/// # Errors
/// As [`train`].
pub fn train_keeping(
    model: &Model<'_>,
    state: Option<&[u8]>,
    inputs: &mut dyn FnMut(usize) -> Option<Vec<Vec<u8>>>,
    after: AfterStep<'_>,
    gradients: &mut Gradients,
) -> Result<Vec<u8>> {
    train_by(model, state, inputs, after, &mut |session| gradients.run(session))
}

fn train_by(
    model: &Model<'_>,
    state: Option<&[u8]>,
    inputs: &mut dyn FnMut(usize) -> Option<Vec<Vec<u8>>>,
    after: AfterStep<'_>,
    run: &mut dyn FnMut(&mut Session<'_, '_>) -> std::result::Result<(), RunError>,
) -> Result<Vec<u8>> {
    let wrong = |e: RunError| Error::input(e.to_string());
    let mut memories = Memories::of(model);
    let mut session = memories.session(model)?;
    let all = arenite::Slot {
        region: arenite::Slot::STATE,
        offset: 0,
    };
    if let Some(state) = state {
        session
            .write(all, state)
            .ok_or_else(|| Error::internal("a state of another size"))?;
    }
    session
        .turn_to_training()
        .ok_or_else(|| Error::input("the file has no steps of training").help("pack it with --train --loss LOSS"))?;
    let outputs = session.model().header().outputs;
    for step in 0.. {
        let Some(given) = inputs(step) else { break };
        for (port, bytes) in given.iter().enumerate() {
            session.set_input(port, bytes).map_err(wrong)?;
        }
        run(&mut session).map_err(wrong)?;
        let output = |port: u8| session.output(port.into()).map(<[u8]>::to_vec).map_err(wrong);
        let outputs = (0..outputs).map(output).collect::<Result<Vec<_>>>()?;
        after(step, &outputs)?;
    }
    let bytes = model.state_bytes() as u32;
    let state = session.read(all, bytes).map(<[u8]>::to_vec);
    state.ok_or_else(|| Error::internal("the state cannot be read"))
}
