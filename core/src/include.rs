//! Embedding models in a program.

#[cfg(feature = "include")]
mod compiled;

/// Compiles a model file into a module with types of its own: its weights, and calls of the kernels that its steps take.
///
/// `include_model!(mod kws = "kws.bin")` takes the path from the root of the package that it stands in, `include_model!(mod kws = env!("MODEL"))` and
/// `concat!(env!("OUT_DIR"), "/kws.bin")` as `include_bytes!` does. The machine that compiles the program checks all of the file, as
/// [`Model::load`](crate::Model::load) does on a device; what is wrong is an error of the compiler, with the file's name. A signature is not looked at.
///
/// ```
/// arenite::include_model!(mod mlp = "../tests/models/compat/mlp-v2.bin");
///
/// # fn main() {
/// let mut session = mlp::session().unwrap(); // its arena is a static of this program
/// let image: mlp::Input = [0.5; 64];
/// let logits: &[f32; 10] = mlp::run(&mut session, &image);
/// let [(digit, _)] = arenite::top(logits);
/// assert!(digit < 10);
/// # }
/// ```
///
/// An input of another type or size does not compile:
///
/// ```compile_fail,E0308
/// # arenite::include_model!(mod mlp = "../tests/models/compat/mlp-v2.bin");
/// # fn f(session: &mut mlp::Session<'_>) {
/// mlp::run(session, &[0.5f32; 63]);
/// # }
/// ```
///
/// ```compile_fail,E0308
/// # arenite::include_model!(mod mlp = "../tests/models/compat/mlp-v2.bin");
/// # fn f(session: &mut mlp::Session<'_>) {
/// mlp::run(session, &[0i8; 64]);
/// # }
/// ```
///
/// Contents of the module:
///
/// | item | what it is |
/// | --- | --- |
/// | `session()` | opens a session in the module's own memory; `None` the second time |
/// | `open(&mut Memory)`, `open_in(arenas, state)` | the same in memory of yours, in slices of yours, which are checked |
/// | `run(&mut Session, inputs)` | sets inputs, runs, gives outputs: `&Input` and `&Output`; of several a tuple; of more than four `()`, see below |
/// | `set_inputs`, `outputs` | the two ends of `run`, around `Session::step` |
/// | `Session<'_>`, `Input`, `Inputs<'_>`, `Output`, `Outputs<'_>` | types; the session has the methods of [`Session`](crate::Session) that read no file |
/// | `Memory`, `Arena`, `ARENA_BYTES`, `STATE_BYTES` | what the model needs; `take()` gives the static `Memory` once |
/// | `self_test(&mut Session)`, `verify_weights()` | the file's self-test (`pack --self-test`); whether the weights in flash are what they were |
/// | `quantize(f32)`, `dequantize(…)` | to and from the elements of the first input and output; others by `INPUTS` and `OUTPUTS` |
/// | `COST`, `COSTS` | what a run takes at most, and each step: the totals of [`Model::cost`](crate::Model::cost) |
/// | `INPUTS`, `OUTPUTS`, `LABELS` | names, shapes, scales ([`Described`](crate::Described)); class labels (`pack --labels`) |
///
/// A model that takes a token or a position gives its outputs in a `Result`, whose error is `IndexError`.
/// Of more than four inputs a run takes `()` and gives a `Result`: `set_values` sets each before it; of more than four outputs it gives `()`, and `values`
/// finds each after it. A model whose arena lies in several regions has no one memory: `open_in` takes a slice for each.
///
/// # A file that is read when the program runs
///
/// `include_model!(mod kws = "kws.bin", loaded)` embeds the file as it is, and links the kernels that it needs and what loads it: for files that are replaced
/// in the field, for several cores and accelerators, for models with a tokenizer and models that are trained, and canaries. Instead of the above
///
/// | item | what it is |
/// | --- | --- |
/// | `session()` | takes the module's own memory, loads the model and opens a session; the second time it is [`MemoryTaken`](crate::SessionError) |
/// | `open`, `open_in(arena, state)`, `run`, `set_inputs`, `outputs` | as above, in a `Result` |
/// | `Session<'_>`, `Kernels` | a [`Session`](crate::Session), and the kernels that it links |
/// | `RECEIPT`, `load_with_receipt(…)`, `load_with_crc(…)` | a load without the checksum, and one by the chip's CRC unit |
/// | `BYTES`, `load()`, `load_verified(…)` | the file, and the checked [`Model`](crate::Model), for sessions in other memory |
///
/// The file is then checked in part when the program is compiled: what it is, its version and length, that this build has its kernels, and up to 256 KiB its
/// checksum, which load takes in any case.
#[macro_export]
macro_rules! include_model {
    ($visibility:vis mod $name:ident = $path:literal, loaded $(,)?) => {
        $crate::include_model!($visibility mod $name = concat!(env!("CARGO_MANIFEST_DIR"), "/", $path), loaded);
    };
    ($visibility:vis mod $name:ident = $path:expr, loaded $(,)?) => {
        #[allow(dead_code, missing_docs, unreachable_pub, unused_qualifications)]
        $visibility mod $name {
            static FILE: $crate::embed::File<{ include_bytes!($path).len() }> =
                $crate::embed::File(*include_bytes!($path));

            /// The file.
            pub static BYTES: &[u8] = &FILE.0;

            $crate::__model!(&FILE.0);
            $crate::__load_verified!();
        }
    };
    ($visibility:vis mod $name:ident = $path:literal $(,)?) => {
        $crate::include_model!($visibility mod $name = concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
    };
    ($visibility:vis mod $name:ident = $path:expr $(,)?) => {
        #[allow(dead_code, missing_docs, unreachable_pub, unused_imports, unused_qualifications, clippy::all)]
        $visibility mod $name {
            $crate::__include! { [$path] }
        }
    };
    ($path:literal) => {
        $crate::include_model!(pub mod model = $path);
    };
    ($path:expr) => {
        $crate::include_model!(pub mod model = $path);
    };
}

/// Asks the procedural macro, where the build has it.
#[cfg(feature = "include")]
#[doc(hidden)]
#[macro_export]
macro_rules! __include {
    ($($what:tt)+) => { $crate::__compile! { [$crate] $($what)+ } };
}

#[cfg(not(feature = "include"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __include {
    ($($what:tt)+) => {
        compile_error!(
            "arenite's feature `include`, which compiles models, is off: turn it on, or say `loaded` behind the path: \
             include_model!(mod net = \"net.bin\", loaded)"
        );
    };
}

/// Embeds models of a bundle: a module for each that is named, as [`include_model!`] makes it, with the kernels that it needs.
///
/// ```ignore
/// arenite::include_bundle!(mod models = "models.bin", kws = "kws_ref_model", vad = "esphome_v2_vad");
///
/// let mut arena = models::Arena::new(); // large enough for each of them in turn
/// let mut kws = models::kws::open_in(arena.bytes(), &mut [])?;
/// ```
///
/// The text behind `=` is the model's name in the bundle. `ARENA_BYTES` and `Arena` serve all that are named; equal weights are linked once. With `, loaded`
/// behind the path the models are read when the program runs, and `BYTES` is the file.
#[macro_export]
macro_rules! include_bundle {
    ($visibility:vis mod $name:ident = $path:literal, loaded $(, $model:ident = $entry:literal)+ $(,)?) => {
        $crate::include_bundle!(
            $visibility mod $name = concat!(env!("CARGO_MANIFEST_DIR"), "/", $path), loaded $(, $model = $entry)+
        );
    };
    ($visibility:vis mod $name:ident = $path:expr, loaded $(, $model:ident = $entry:literal)+ $(,)?) => {
        #[allow(dead_code, missing_docs, unreachable_pub, unused_qualifications)]
        $visibility mod $name {
            static FILE: $crate::embed::File<{ include_bytes!($path).len() }> =
                $crate::embed::File(*include_bytes!($path));

            /// The file.
            pub static BYTES: &[u8] = &FILE.0;

            /// Bytes of arena that serve every model in turn.
            pub const ARENA_BYTES: usize = {
                let mut most = 0;
                $(most = $crate::embed::larger(most, $model::ARENA_BYTES);)+
                most
            };

            $crate::__arena!();

            $(
                /// A model of the bundle.
                pub mod $model {
                    $crate::__model!($crate::embed::entry(&super::FILE.0, $entry));
                }
            )+
        }
    };
    ($visibility:vis mod $name:ident = $path:literal $(, $model:ident = $entry:literal)+ $(,)?) => {
        $crate::include_bundle!(
            $visibility mod $name = concat!(env!("CARGO_MANIFEST_DIR"), "/", $path) $(, $model = $entry)+
        );
    };
    ($visibility:vis mod $name:ident = $path:expr $(, $model:ident = $entry:literal)+ $(,)?) => {
        #[allow(dead_code, missing_docs, unreachable_pub, unused_imports, unused_qualifications, clippy::all)]
        $visibility mod $name {
            $crate::__include! { [$path] [$($model = $entry),+] }

            $crate::__only_loaded! { BYTES }

            $crate::__arena!();
        }
    };
}

/// Names of items that models have that are included as `loaded`: of compiled ones they are errors of the compiler, which say so.
#[doc(hidden)]
#[macro_export]
macro_rules! __only_loaded {
    ($($name:ident)+) => {$(
        /// For models that are included as `loaded`.
        #[allow(non_snake_case)]
        pub fn $name()
        where
            for<'a> $crate::compiled::Compiled: $crate::compiled::HasFile<'a>,
        {
        }
    )+};
}

/// Contents of a model's module, from its checked file.
#[doc(hidden)]
#[macro_export]
macro_rules! __model {
    ($file:expr) => {
        /// The model: all of the file, or what is signed of it.
        const MODEL: &[u8] = $crate::embed::checked($file);

        /// Bytes of arena that the model needs.
        pub const ARENA_BYTES: usize = $crate::embed::arena_bytes(MODEL);
        /// Bytes of state that the model needs.
        pub const STATE_BYTES: usize = $crate::state_bytes(MODEL);
        /// The inputs.
        pub const INPUTS: [$crate::Described; $crate::embed::inputs(MODEL)] = $crate::embed::described(MODEL, 0);
        /// The outputs.
        pub const OUTPUTS: [$crate::Described; $crate::embed::outputs(MODEL)] =
            $crate::embed::described(MODEL, $crate::embed::inputs(MODEL));
        /// The class labels; none where the file has none.
        pub const LABELS: [&str; $crate::embed::label_count(MODEL)] = $crate::embed::labels(MODEL);

        /// The kernels that the model needs.
        #[derive(Debug, Clone, Copy)]
        pub struct Kernels;
        impl $crate::Kernels for Kernels {
            const SET: $crate::KernelSet = $crate::kernel_set(MODEL);
        }

        /// A session of this model.
        pub type Session<'s> = $crate::Session<'static, 's, Kernels>;

        $crate::__port!(InputElement Input input_type input_elements 0);
        $crate::__port!(InputElement1 Input1 input_type input_elements 1);
        $crate::__port!(InputElement2 Input2 input_type input_elements 2);
        $crate::__port!(InputElement3 Input3 input_type input_elements 3);
        $crate::__port!(OutputElement Output output_type output_elements 0);
        $crate::__port!(OutputElement1 Output1 output_type output_elements 1);
        $crate::__port!(OutputElement2 Output2 output_type output_elements 2);
        $crate::__port!(OutputElement3 Output3 output_type output_elements 3);

        /// Inputs of a run: `&Input`, or a tuple of several.
        pub type Inputs<'i> =
            <$crate::typed::Count<{ $crate::embed::form($crate::embed::inputs(MODEL)) }> as $crate::typed::Form<
                &'i Input,
                &'i Input1,
                &'i Input2,
                &'i Input3,
            >>::Of;
        /// Outputs of a run: `&Output`, or a tuple of several.
        pub type Outputs<'o> =
            <$crate::typed::Count<{ $crate::embed::form($crate::embed::outputs(MODEL)) }> as $crate::typed::Form<
                &'o Output,
                &'o Output1,
                &'o Output2,
                &'o Output3,
            >>::Of;

        $crate::__arena!();

        /// Memory for arena and state.
        #[repr(C, align(16))]
        pub struct Memory {
            arena: [u8; ARENA_BYTES.next_multiple_of($crate::ARENA_ALIGN)],
            state: [u8; STATE_BYTES],
        }

        impl Memory {
            /// Zeroed memory.
            pub const fn new() -> Self {
                Self {
                    arena: [0; ARENA_BYTES.next_multiple_of($crate::ARENA_ALIGN)],
                    state: [0; STATE_BYTES],
                }
            }

            /// The arena, and the state.
            pub fn bytes(&mut self) -> (&mut [u8], &mut [u8]) {
                (&mut self.arena, &mut self.state)
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

        /// Checks the model; a signature is not looked at.
        pub fn load() -> Result<$crate::Model<'static, Kernels>, $crate::LoadError> {
            $crate::Model::load_with(MODEL)
        }

        /// Receipt of the file when the program was compiled.
        pub const RECEIPT: $crate::Receipt = $crate::embed::receipt(MODEL);

        /// Checks the model but for its checksum: see [`Model::load_with_receipt`](arenite::Model::load_with_receipt).
        pub fn load_with_receipt(
            receipt: &$crate::Receipt,
        ) -> Result<$crate::Model<'static, Kernels>, $crate::LoadError> {
            $crate::Model::load_receipt_with(MODEL, receipt)
        }

        /// Checks the model, its checksum by a unit of the chip.
        pub fn load_with_crc(
            unit: &mut impl $crate::CrcUnit,
        ) -> Result<$crate::Model<'static, Kernels>, $crate::LoadError> {
            $crate::Model::load_crc_with(MODEL, unit)
        }

        /// Loads the model and opens a session in the module's own memory, once.
        pub fn session() -> Result<Session<'static>, $crate::Error>
        where
            for<'a> $crate::ThisCore: $crate::TakesOnce<'a>,
        {
            open(take().ok_or($crate::SessionError::MemoryTaken)?)
        }

        /// Loads the model and opens a session in this memory.
        pub fn open(memory: &mut Memory) -> Result<Session<'_>, $crate::Error> {
            let (arena, state) = memory.bytes();
            open_in(arena, state)
        }

        /// Loads the model and opens a session in slices, which are checked: see [`Session::new`].
        pub fn open_in<'s>(arena: &'s mut [u8], state: &'s mut [u8]) -> Result<Session<'s>, $crate::Error> {
            Ok(Session::new(load()?, arena, state)?)
        }

        /// Sets inputs, runs, and gives the outputs.
        pub fn run<'o>(session: &'o mut Session<'_>, inputs: Inputs<'_>) -> Result<Outputs<'o>, $crate::Error> {
            $crate::typed::run(session, inputs)
        }

        /// Sets inputs for the next run.
        pub fn set_inputs(session: &mut Session<'_>, inputs: Inputs<'_>) -> Result<(), $crate::Error> {
            Ok($crate::typed::Inputs::set(inputs, session)?)
        }

        /// The outputs, behind a run.
        pub fn outputs<'o>(session: &'o Session<'_>) -> Result<Outputs<'o>, $crate::Error> {
            Ok($crate::typed::Outputs::of(session)?)
        }

        /// The element of the first input nearest to a real number.
        pub fn quantize(real: f32) -> InputElement {
            INPUTS.first().map_or(Default::default(), |input| input.quantize(real))
        }

        /// The real number that an element of the first output stands for.
        pub fn dequantize(stored: OutputElement) -> f32 {
            OUTPUTS.first().map_or(0.0, |output| output.dequantize(stored))
        }
    };
}

/// Element and array of an input or output.
#[doc(hidden)]
#[macro_export]
macro_rules! __port {
    ($element:ident $array:ident $type:ident $elements:ident $index:literal) => {
        /// Its elements.
        pub type $element =
            <$crate::typed::Numbered<{ $crate::embed::$type(MODEL, $index) }> as $crate::typed::HasElement>::Element;
        /// All of its elements, row-major.
        pub type $array = [$element; $crate::embed::$elements(MODEL, $index)];
    };
}

/// Memory for `ARENA_BYTES`.
#[doc(hidden)]
#[macro_export]
macro_rules! __arena {
    () => {
        /// Memory for the arena.
        #[repr(C, align(16))]
        pub struct Arena([u8; ARENA_BYTES]);

        impl Arena {
            /// Zeroed memory.
            pub const fn new() -> Self {
                Self([0; ARENA_BYTES])
            }

            /// Its bytes.
            pub fn bytes(&mut self) -> &mut [u8] {
                &mut self.0
            }
        }
    };
}

/// Additions of the feature `verify` to a model's module; a macro's own `cfg` would ask for features of the program that it stands in.
#[cfg(feature = "verify")]
#[doc(hidden)]
#[macro_export]
macro_rules! __load_verified {
    () => {
        /// Verifies the signature and checks the model.
        pub fn load_verified(
            trust: &$crate::Trust<'_>,
        ) -> Result<$crate::Model<'static, Kernels>, $crate::VerifyError> {
            $crate::Model::load_verified_with(BYTES, trust)
        }
    };
}

#[cfg(not(feature = "verify"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __load_verified {
    () => {};
}
