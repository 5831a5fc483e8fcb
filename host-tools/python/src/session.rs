//! Sessions: a model with its arena and its state, run by run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arenite::{MAX_REGIONS, Model, RunError};
use arenite_host::cli::calls::{Array, Watch, sequence};
use arenite_host::files::print::captured;
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::{Error, Result};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};
use self_cell::self_cell;

use crate::failure::{detached, raised};
use crate::{Given, array_tuples, decoded, function, given};

self_cell!(
    /// A model that was checked once, beside the file that it lies in.
    struct Loaded {
        owner: Arc<ModelFile>,
        #[covariant]
        dependent: Model,
    }
);

/// Runs of one model, each on the state that the one before left. Threads that share it run one after the other.
struct Session {
    loaded: Loaded,
    memory: Mutex<Memory>,
}

/// How often signals are looked for between the runs of a sequence.
const SIGNALS: Duration = Duration::from_millis(50);

/// A session's memory, kept between runs.
struct Memory {
    arenas: [Aligned; MAX_REGIONS],
    state: Aligned,
}

impl Session {
    /// A session with fresh state.
    fn open(file: Arc<ModelFile>) -> Result<Self> {
        let loaded = Loaded::try_new(file, |file| file.load())?;
        let model = loaded.borrow_dependent();
        let mut memory = Memory {
            arenas: std::array::from_fn(|region| Aligned::new(model.arena_bytes(region))),
            state: Aligned::new(model.state_bytes()),
        };
        memory.on(model)?.reset_state();
        Ok(Self {
            memory: Mutex::new(memory),
            loaded,
        })
    }

    fn with<T>(&self, work: impl FnOnce(&Model<'_>, &mut Memory) -> Result<T>) -> Result<T> {
        // A run that was cut off leaves memory that the next one may have.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        work(self.loaded.borrow_dependent(), &mut memory)
    }
}

impl Memory {
    /// A session of the runtime on this memory.
    fn on<'m>(&mut self, model: &Model<'m>) -> Result<arenite::Session<'m, '_>> {
        let [a, b, c, d] = &mut self.arenas;
        arenite::Session::resume(*model, [a.bytes(), b.bytes(), c.bytes(), d.bytes()], self.state.bytes())
            .map_err(|e| Error::internal(e.to_string()))
    }

    /// Where `watch` unwinds, the state is that of the runs so far.
    fn run(
        &mut self,
        model: &Model<'_>,
        file: &ModelFile,
        inputs: &[Array],
        mut watch: Watch,
    ) -> Result<(Vec<Array>, Vec<String>)> {
        let view = file.view()?;
        let (sequence, printed) = captured(|| sequence(&view.inputs, inputs));
        let sequence = sequence?;
        let wrong = |e: RunError| Error::input(e.to_string());
        let mut session = self.on(model)?;
        // As `arenite run` has it on a host.
        session.allow_fused();
        let mut outputs = vec![Vec::new(); view.outputs.len()];
        let mut last = Instant::now();
        for (run, inputs) in sequence.runs.iter().enumerate() {
            if last.elapsed() >= SIGNALS {
                watch("running", run as u64, sequence.runs.len() as u64);
                last = Instant::now();
            }
            for (port, bytes) in inputs.iter().enumerate() {
                session.set_input(port, bytes).map_err(wrong)?;
            }
            session.run().map_err(wrong)?;
            for (port, bytes) in outputs.iter_mut().enumerate() {
                bytes.extend_from_slice(session.output(port).map_err(wrong)?);
            }
        }
        let leading = sequence.stacked.then_some(sequence.runs.len());
        let arrays = view.outputs.iter().zip(&outputs).map(|(port, bytes)| {
            let shape = port.shape.iter().map(|&extent| extent as usize);
            Array::of_bytes(&leading.into_iter().chain(shape).collect::<Vec<_>>(), port.dtype, bytes)
        });
        Ok((arrays.collect(), printed.notes))
    }
}

/// The functions of a new session with fresh state: `run(inputs)` gives outputs and notes, `reset()`, `state()`, `set_state(bytes)`.
pub(crate) fn open(file: &Arc<ModelFile>, py: Python<'_>) -> Given {
    let session = py.detach(|| Session::open(file.clone())).map_err(|e| raised(py, &e))?;
    let session = Arc::new(session);
    let of = |name, method: fn(&Session, &Bound<'_, PyTuple>) -> Given| {
        let session = session.clone();
        function(py, name, move |arguments| method(&session, arguments))
    };
    let run = of(c"run", run)?;
    let reset = of(c"reset", reset)?;
    let state = of(c"state", state)?;
    let set_state = of(c"set_state", set_state)?;
    given(py, (run, reset, state, set_state))
}

fn run(session: &Session, arguments: &Bound<'_, PyTuple>) -> Given {
    let (inputs,) = arguments.extract::<(Vec<PyBackedBytes>,)>()?;
    let py = arguments.py();
    let (outputs, notes) = detached(py, None, |watch| {
        let arrays = decoded(&inputs)?;
        session.with(|model, memory| memory.run(model, session.loaded.borrow_owner(), &arrays, watch))
    })?;
    given(py, (array_tuples(py, &outputs), notes))
}

fn reset(session: &Session, arguments: &Bound<'_, PyTuple>) -> Given {
    let py = arguments.py();
    let work = |model: &Model<'_>, memory: &mut Memory| {
        memory.on(model)?.reset_state();
        Ok(())
    };
    detached(py, None, |_| session.with(work))?;
    Ok(py.None())
}

fn state(session: &Session, arguments: &Bound<'_, PyTuple>) -> Given {
    let py = arguments.py();
    let state = detached(py, None, |_| {
        session.with(|_, memory| Ok(memory.state.bytes().to_vec()))
    })?;
    given(py, PyBytes::new(py, &state))
}

fn set_state(session: &Session, arguments: &Bound<'_, PyTuple>) -> Given {
    let (bytes,) = arguments.extract::<(PyBackedBytes,)>()?;
    let py = arguments.py();
    let work = |_: &Model<'_>, memory: &mut Memory| {
        let state = memory.state.bytes();
        if state.len() != bytes.len() {
            return Err(Error::input(format!("a state of {} bytes", bytes.len())).expected(state.len()));
        }
        state.copy_from_slice(&bytes);
        Ok(())
    };
    detached(py, None, |_| session.with(work))?;
    Ok(py.None())
}
