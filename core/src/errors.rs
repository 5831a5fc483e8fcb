//! One error that all others become.

#[cfg(feature = "error-text")]
use core::fmt;

use crate::error::{LoadError, RunError, SessionError};
#[cfg(feature = "guard")]
use crate::guard::Overrun;
use crate::self_test::SelfTestError;
#[cfg(feature = "slots")]
use crate::slots::SlotError;
#[cfg(feature = "text")]
use crate::text::TextError;
#[cfg(feature = "verify")]
use crate::verify::VerifyError;

macro_rules! errors {
    ($($(#[$condition:meta])* $variant:ident($error:ident), $about:literal;)*) => {
        /// Whatever the runtime refuses: `?` turns each of its errors into this one.
        #[cfg_attr(feature = "error-text", derive(Debug))]
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$condition])* #[doc = $about] $variant($error),)*
        }

        impl Error {
            /// The error as four bytes; see [`crate::codes`].
            pub const fn code(&self) -> u32 {
                match self { $($(#[$condition])* Error::$variant(error) => error.code(),)* }
            }
        }

        #[cfg(feature = "error-text")]
        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $($(#[$condition])* Error::$variant(error) => error.fmt(f),)* }
            }
        }

        impl core::error::Error for Error {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self { $($(#[$condition])* Error::$variant(error) => Some(error),)* }
            }
        }

        $($(#[$condition])* impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error)
            }
        })*
    };
}

errors! {
    Load(LoadError), "A file is refused.";
    Session(SessionError), "No session opens on the memory.";
    Run(RunError), "A run stops.";
    SelfTest(SelfTestError), "The file's self-test is not passed.";
    #[cfg(feature = "verify")] Verify(VerifyError), "A signed file is not believed.";
    #[cfg(feature = "slots")] Slot(SlotError), "An update, or the slots, are refused.";
    #[cfg(feature = "text")] Text(TextError), "Text is not encoded or generated.";
    #[cfg(feature = "guard")] Overrun(Overrun), "Something wrote behind an arena or the state.";
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::error::Error as _;
    use std::string::ToString;

    use super::*;

    #[test]
    fn it_says_what_its_source_says() {
        let inner = RunError::InputMissing { input: 3 };
        let error = Error::from(inner);
        assert_eq!((error.code(), error.to_string()), (inner.code(), inner.to_string()));
        assert_eq!(error.source().map(ToString::to_string), Some(inner.to_string()));
    }
}
