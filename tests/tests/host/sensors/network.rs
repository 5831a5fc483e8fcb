//! A session with its memory, on a host.

use arenite::typed::Number;
use arenite::{Model, Session};
use arenite_host::model::{Aligned, ModelFile};

/// A network that keeps its state from run to run.
pub(crate) struct Network<'f> {
    session: Session<'f, 'static>,
}

impl<'f> Network<'f> {
    pub(crate) fn open(file: &'f ModelFile) -> Self {
        let model: Model<'f> = file.load().expect("it loads");
        // A test ends soon.
        let memory = |bytes| Box::leak(Box::new(Aligned::new(bytes)));
        let (arena, state) = (memory(model.arena_bytes(0)), memory(model.state_bytes()));
        let session = Session::new(model, arena.bytes(), state.bytes()).expect("a session");
        Self { session }
    }

    pub(crate) fn run<I: Number, O: Number>(&mut self, input: &[I]) -> Vec<O> {
        self.session.set_values(0, input).expect("an input");
        self.session.run().expect("it runs");
        self.session.values(0).expect("an output").to_vec()
    }

    pub(crate) fn reset(&mut self) {
        self.session.reset_state();
    }
}
