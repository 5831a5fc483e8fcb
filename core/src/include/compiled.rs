//! Items of a compiled model's module that do not depend on the model: macros, for they name its types.

/// Items that the modules of compiled models have in common. `one`: all of the arena is one memory; `set`: the inputs of a run are its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! __compiled {
    ($regions:ident $run:ident) => {
        /// A session of this model.
        pub type Session<'s> = $crate::compiled::Session<'s, Network>;

        $crate::__compiled_memory!($regions);
        $crate::__compiled_run!($run);

        /// Opens a session in slices, which are checked: see [`Session::new`]. A model of several regions takes one for each.
        ///
        /// # Errors
        /// [`SessionError`](arenite::SessionError).
        pub fn open_in<'s>(
            arenas: impl Into<$crate::Arenas<'s>>,
            state: &'s mut [u8],
        ) -> Result<Session<'s>, $crate::SessionError> {
            Session::new(arenas, state)
        }

        $crate::__only_loaded! { BYTES RECEIPT load load_with_receipt load_with_crc load_verified }

        /// For models that are included as `loaded`.
        #[derive(Debug)]
        pub struct Kernels
        where
            for<'a> $crate::compiled::Compiled: $crate::compiled::HasFile<'a>;

        /// Sets inputs for the next run.
        pub fn set_inputs(session: &mut Session<'_>, inputs: Inputs<'_>) {
            $crate::compiled::Inputs::set(inputs, session)
        }

        /// The outputs, behind a run.
        pub fn outputs<'o>(session: &'o Session<'_>) -> Outputs<'o> {
            $crate::compiled::Outputs::of(session)
        }

        /// Runs the file's self-test (`pack --self-test`) from the state's initial value on, which the state has behind it again. Gives the number of runs.
        ///
        /// # Errors
        /// [`SelfTestError`](arenite::self_test::SelfTestError).
        pub fn self_test(session: &mut Session<'_>) -> Result<u32, $crate::SelfTestError> {
            session.passed(SELF_TEST)
        }

        /// Whether the weights in flash are those that the program was compiled with: their CRC-32.
        pub fn verify_weights() -> bool {
            $crate::compiled::are_intact(&WEIGHTS.0, WEIGHTS_CRC)
        }

        /// The element of the first input nearest to a real number.
        pub fn quantize(real: f32) -> InputElement {
            INPUTS
                .first()
                .map_or(Default::default(), |input| input.quantize(real))
        }

        /// The real number that an element of the first output stands for.
        pub fn dequantize(stored: OutputElement) -> f32 {
            OUTPUTS.first().map_or(0.0, |output| output.dequantize(stored))
        }
    };
}

/// Memory of a compiled model.
#[doc(hidden)]
#[macro_export]
macro_rules! __compiled_memory {
    (several) => {};
    (one) => {
        $crate::__arena!();

        /// Memory for arena and state.
        pub struct Memory {
            arena: $crate::compiled::Block<ARENA_BYTES>,
            state: $crate::compiled::Block<STATE_BYTES>,
        }

        impl Memory {
            /// Zeroed memory.
            pub const fn new() -> Self {
                Self {
                    arena: $crate::compiled::Block([0; ARENA_BYTES]),
                    state: $crate::compiled::Block([0; STATE_BYTES]),
                }
            }

            /// The arena, and the state.
            pub fn bytes(&mut self) -> (&mut [u8], &mut [u8]) {
                (&mut self.arena.0, &mut self.state.0)
            }
        }

        static MEMORY: $crate::Once<Memory> = $crate::Once::new(Memory::new());

        /// The module's own memory; `None` for all but the first who ask.
        pub fn take() -> Option<&'static mut Memory>
        where
            for<'a> $crate::ThisCore: $crate::TakesOnce<'a>,
        {
            MEMORY.take()
        }

        /// Opens a session in the module's own memory; `None` for all but the first who ask.
        #[inline(always)]
        pub fn session() -> Option<Session<'static>>
        where
            for<'a> $crate::ThisCore: $crate::TakesOnce<'a>,
        {
            take().map(open)
        }

        /// Opens a session in this memory.
        #[inline(always)]
        pub fn open(memory: &mut Memory) -> Session<'_> {
            let Memory { arena, state } = memory;
            let memory = $crate::compiled::Memory::fit(arena, state);
            let mut session = Session::on(memory);
            session.reset_state();
            session
        }
    };
}

/// Runs of a compiled model.
#[doc(hidden)]
#[macro_export]
macro_rules! __compiled_run {
    (set) => {
        /// Sets inputs, runs, and gives the outputs.
        #[inline(always)]
        pub fn run<'o>(session: &'o mut Session<'_>, inputs: Inputs<'_>) -> Outputs<'o> {
            session.run_typed(inputs)
        }
    };
    (indexed) => {
        /// Sets inputs, runs, and gives the outputs.
        ///
        /// # Errors
        /// [`IndexError`](arenite::IndexError): a token or a position is out of its range.
        #[inline(always)]
        pub fn run<'o>(session: &'o mut Session<'_>, inputs: Inputs<'_>) -> Result<Outputs<'o>, $crate::IndexError> {
            session.run_typed(inputs)
        }
    };
    (unset) => {
        /// Runs on inputs that [`Session::set_values`] has set, and gives the outputs.
        ///
        /// # Errors
        /// [`RunError::InputMissing`](arenite::RunError).
        pub fn run<'o>(session: &'o mut Session<'_>, _: Inputs<'_>) -> Result<Outputs<'o>, $crate::RunError> {
            session.run()?;
            Ok(outputs(session))
        }
    };
}
