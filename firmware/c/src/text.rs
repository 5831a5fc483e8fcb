//! Meaning of codes, for C.

use core::fmt::{self, Write};

use arenite::KernelId;
use arenite::codes::{CAUSES, Code, Counts, NO_KERNEL, NO_STEP};

use super::code::{ARENITE_MISALIGNED, ARENITE_NOT_FOR_TRAINING, ARENITE_NOT_OPEN, ARENITE_NULL, ARENITE_OK};

/// Text that is cut to a memory, with a zero behind it; its whole length is counted.
struct Cut<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            // The last byte is the zero's.
            if self.len + 1 < self.to.len()
                && let Some(place) = self.to.get_mut(self.len)
            {
                *place = byte;
            }
            self.len += 1;
        }
        Ok(())
    }
}

/// Writes the meaning of a code and gives the length of all of it.
pub(super) fn write(code: u32, to: &mut [u8]) -> usize {
    let mut text = Cut { to, len: 0 };
    // It takes whatever is written.
    let _ = describe(code, &mut text);
    let Cut { to, len } = text;
    let end = len.min(to.len().saturating_sub(1));
    if let Some(end) = to.get_mut(end) {
        *end = 0;
    }
    len
}

fn describe(code: u32, text: &mut Cut<'_>) -> fmt::Result {
    let own = match code {
        ARENITE_OK => Some("done"),
        ARENITE_NULL => Some("a pointer is null"),
        ARENITE_NOT_OPEN => Some("no session was opened here"),
        ARENITE_MISALIGNED => Some("a structure does not start at a multiple of its alignment"),
        ARENITE_NOT_FOR_TRAINING => {
            Some("no steps of training: pack with --train, and build the library with its feature `training`")
        }
        _ => None,
    };
    if let Some(own) = own {
        return text.write_str(own);
    }
    let Code { cause, kernel, step } = Code::from_u32(code);
    let Some(known) = CAUSES.iter().find(|known| known.number == cause) else {
        return write!(text, "unknown code {code:#010x}");
    };
    let counted = match known.counts {
        Counts::Nothing => "",
        Counts::Step => "step ",
        Counts::Port => "input or output ",
        Counts::Input => "input ",
        Counts::Output => "output ",
        Counts::Region => "arena ",
    };
    if step != NO_STEP && !counted.is_empty() {
        write!(text, "{counted}{step}: ")?;
    }
    text.write_str(known.meaning)?;
    match KernelId::from_u8(kernel) {
        Some(kernel) if code >> 16 & 0xFF != u32::from(NO_KERNEL) => write!(text, " ({})", kernel.name()),
        _ => Ok(()),
    }
}
