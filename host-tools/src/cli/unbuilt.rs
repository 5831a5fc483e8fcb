//! What the contract has and these tools do not build yet: refused by name, never accepted and ignored.

use crate::{Error, Result};

/// Whether an option was given.
trait Given {
    fn given(&self) -> bool;
}

impl Given for bool {
    fn given(&self) -> bool {
        *self
    }
}

impl Given for Vec<String> {
    fn given(&self) -> bool {
        !self.is_empty()
    }
}

/// Options that are accepted only to be refused: name, field, type, the capability that they belong to, what to do instead.
macro_rules! unbuilt {
    ($(#[$doc:meta])* $visibility:vis $name:ident: $($option:literal $field:ident $type:ty, $capability:literal, $instead:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, clap::Args)]
        $visibility struct $name {
            $(
                #[arg(long = $option, hide = true)]
                $field: $type,
            )*
        }

        impl $name {
            /// Refuses the first of them that was given.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Unsupported`] naming the option and what to do instead.
            $visibility fn refuse(&self) -> Result<()> {
                $(
                    if self.$field.given() {
                        return Err(not_built(concat!("--", $option), $capability).help($instead));
                    }
                )*
                Ok(())
            }
        }
    };
}

/// The refusal of something that comes with a capability that is not built.
pub(super) fn not_built(what: &str, capability: &str) -> Error {
    Error::unsupported(format!("{what} is not built yet: it comes with {capability}"))
}

unbuilt! {
    /// Options of `pack` that are not built yet. Whoever builds one moves it from here to `pack`'s own arguments.
    pub(super) UnbuiltPackOptions:
    "accelerator" accelerator Vec<String>, "accelerators", "leave it out: the core's own kernels run the network";
}
