//! What errors print in a build without the feature `error-text`: their number (see [`crate::codes`]) as eight hexadecimal digits, by `Debug` and `Display`
//! alike. Nothing of `core::fmt` is linked but the call that writes a character.

#[cfg(not(feature = "error-text"))]
use core::fmt::Debug;
use core::fmt::{Display, Formatter, Result, Write as _};
use core::hint::black_box;

#[cfg(not(feature = "error-text"))]
macro_rules! by_number {
    ($($(#[$condition:meta])* $error:path;)*) => {$(
        $(#[$condition])*
        impl Debug for $error {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                digits(self.code(), f)
            }
        }

        $(#[$condition])*
        impl Display for $error {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                digits(self.code(), f)
            }
        }
    )*};
}

#[cfg(not(feature = "error-text"))]
by_number! {
    crate::error::LoadError;
    crate::error::SessionError;
    crate::error::RunError;
    crate::self_test::SelfTestError;
    crate::errors::Error;
    #[cfg(feature = "verify")] crate::verify::VerifyError;
    #[cfg(feature = "slots")] crate::slots::SlotError;
    #[cfg(feature = "text")] crate::text::TextError;
    #[cfg(feature = "guard")] crate::guard::Overrun;
}

/// Writes a number digit by digit, the highest first. One function for all errors.
#[inline(never)]
fn digits(mut number: u32, f: &mut Formatter<'_>) -> Result {
    // A count that the compiler does not know: eight times the same would be longer.
    for _ in 0..black_box(8_u8) {
        number = number.rotate_left(4);
        let digit = number as u8 & 15;
        let from = if digit < 10 { b'0' } else { b'a' - 10 };
        f.write_char(char::from(from + digit))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::format;

    use super::*;

    struct Number(u32);

    impl Display for Number {
        fn fmt(&self, f: &mut Formatter<'_>) -> Result {
            digits(self.0, f)
        }
    }

    #[test]
    fn numbers_have_eight_digits() {
        assert_eq!(format!("{} {}", Number(0x08C8_12AB), Number(0xF)), "08c812ab 0000000f");
    }

    #[test]
    #[cfg(not(feature = "error-text"))]
    fn errors_print_their_number() {
        use crate::error::{LoadError, SessionError};

        let error = LoadError::UnknownKernel {
            step: 0x12AB,
            kernel: 0xC8,
        };
        assert_eq!(format!("{error} {error:?}"), "08c812ab 08c812ab");
        let error = crate::errors::Error::from(SessionError::MemoryTaken);
        assert_eq!(format!("{error} {error:?}"), "24ffffff 24ffffff");
    }
}
