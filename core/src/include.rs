//! Embedding a model in a program.

/// Embeds a model file and links only the kernels that it needs.
///
/// `include_model!("model.bin")` defines a module `model`; `include_model!(pub mod digits = "digits.bin")` names it. The module
/// holds `BYTES` (the aligned file, signed or not), `ARENA_BYTES` and `STATE_BYTES` (constants), `Kernels` (the link set), `Arena` (memory of
/// the right size and alignment) and `load()`, with the feature `verify` also `load_verified(&Trust { … })`.
///
/// ```ignore
/// arenite::include_model!(mod digits = "digits.bin");
///
/// let model = digits::load()?;
/// let mut arena = digits::Arena::new();
/// let mut session = arenite::Session::new(model, arena.bytes(), &mut [])?;
/// ```
#[macro_export]
macro_rules! include_model {
    ($path:expr) => {
        $crate::include_model!(pub mod model = $path);
    };
    ($visibility:vis mod $name:ident = $path:expr) => {
        $visibility mod $name {
            #[repr(C, align(64))]
            struct File<T: ?Sized>(T);
            static FILE: &File<[u8]> = &File(*include_bytes!($path));

            /// The model file.
            pub static BYTES: &[u8] = &FILE.0;
            /// The model in it: all of it, or what is signed.
            static MODEL: &[u8] = $crate::content(&FILE.0);
            /// Bytes of arena that the model needs.
            pub const ARENA_BYTES: usize = $crate::arena_bytes($crate::content(include_bytes!($path)), 0);
            /// Bytes of state that the model needs.
            pub const STATE_BYTES: usize = $crate::state_bytes($crate::content(include_bytes!($path)));

            /// The kernels that the model needs.
            #[derive(Debug, Clone, Copy)]
            pub struct Kernels;
            impl $crate::Kernels for Kernels {
                const SET: u128 = $crate::kernel_set($crate::content(include_bytes!($path)));
            }

            /// Memory for the model's arena.
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

            /// Checks the model; a signature is not looked at.
            pub fn load() -> Result<$crate::Model<'static, Kernels>, $crate::LoadError> {
                $crate::Model::load_with(MODEL)
            }
            $crate::__load_verified!();
        }
    };
}

/// What the feature `verify` adds to a model's module; a macro's own `cfg` would ask for features of the program that it stands in.
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
