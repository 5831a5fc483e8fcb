//! Text of errors in a build without the feature `error-text`: their number (see [`crate::codes`]) as eight hexadecimal digits, by `Debug` and `Display`
//! alike. Nothing of `core::fmt` is linked but the call that writes a character.

use core::fmt::{Debug, Display, Formatter, Result, Write as _};
use core::hint::black_box;

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

    struct Failed;

    impl Failed {
        const fn code(&self) -> u32 {
            0x08C8_02AB
        }
    }

    by_number! { Failed; }

    #[test]
    fn errors_print_the_eight_digits_of_their_number() {
        assert_eq!(format!("{Failed} {Failed:?}"), "08c802ab 08c802ab");
    }
}
