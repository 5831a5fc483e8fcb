//! Messages between the host and a board over a serial line, where no debugger carries files.
//!
//! The host asks and the board answers, one after the other. An [`Ask`] has a number and its [`Answer`] bears the same. Either is postcard of
//! `(number, message)`, behind an [`Ask::Piece`] or [`Ask::Input`] its bytes, and a CRC-32, in a frame of COBS that ends with a zero: whatever a line drops or
//! changes, the next zero begins anew. The host repeats an ask that stays without an answer; the board does nothing twice, but gives the answer again to the
//! number that it knows.

use core::ops::Range;

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use serde::{Deserialize, Serialize};

/// Raised whenever a type of this file changes.
pub const SERIAL_VERSION: u32 = 1;
/// Bytes of a model, of an input or of an output that one message carries at most.
pub const PIECE_MAX: usize = 512;
/// Bytes of a frame at most, its zero with it.
pub const FRAME_MAX: usize = PIECE_MAX + 80;
/// Bytes of a board's name at most.
pub const NAME_MAX: usize = 64;

/// Without a table: a board has more time while it waits for a line than flash.
const CHECK: Crc<u32, Table<0>> = Crc::<u32, Table<0>>::new(&CRC_32_ISO_HDLC);
const CHECK_BYTES: usize = 4;

/// Request of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Who is there: [`Answer::Board`]. Ends what was before.
    Hello,
    /// A model of so many bytes follows, into memory: [`Answer::Done`] or [`Answer::NoMemory`].
    Model {
        /// Its bytes.
        length: u32,
    },
    /// A model of so many bytes follows, into the slot that is not in use: [`Answer::Done`].
    Update {
        /// Its bytes.
        length: u32,
    },
    /// Bytes of the model, in order: [`Answer::Done`].
    Piece {
        /// Bytes before these.
        offset: u32,
    },
    /// Loads the model in memory and makes a session of it: [`Answer::Loaded`].
    Load,
    /// The same with the model of the slots.
    LoadStored,
    /// Checks the model in the slot, runs its self-test and uses it from now on, on trial: [`Answer::Installed`].
    Install,
    /// The model of the slots works: [`Answer::Done`].
    Confirm,
    /// The state begins anew: [`Answer::Done`].
    Reset,
    /// Bytes of an input: [`Answer::Done`], or [`Answer::InputSize`] where the input is not of `whole` bytes.
    Input {
        /// Which.
        index: u32,
        /// Bytes of all of it.
        whole: u32,
        /// Bytes of it before these.
        offset: u32,
    },
    /// A whole run: [`Answer::Ran`].
    Run,
    /// The next step of a run: [`Answer::Stepped`].
    Step,
    /// Bytes of an output: [`Answer::Output`].
    Output {
        /// Which.
        index: u32,
        /// Bytes of it before these.
        offset: u32,
    },
}

/// Answer of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer<'a> {
    /// This one.
    Board {
        /// [`SERIAL_VERSION`] of its program.
        version: u32,
        /// Its name, of at most [`NAME_MAX`] bytes.
        name: &'a str,
        /// Bytes for model, arena and state.
        memory: u32,
        /// Whether it keeps models in slots.
        slots: bool,
    },
    /// It is done.
    Done,
    /// The model was accepted.
    Loaded {
        /// How many outputs it has.
        outputs: u32,
    },
    /// The input is of another size.
    InputSize {
        /// Bytes of all of it.
        whole: u32,
    },
    /// The model is in use.
    Installed {
        /// Runs of its self-test.
        runs: u32,
    },
    /// The run is done.
    Ran {
        /// Duration, in the unit that the board counts.
        count: u64,
    },
    /// A step is done.
    Stepped {
        /// Duration, in the unit that the board counts.
        count: u64,
        /// Whether it was the last one.
        last: bool,
    },
    /// These bytes.
    Output {
        /// Bytes of the whole output.
        whole: u32,
        /// Those from the offset on, at most [`PIECE_MAX`].
        bytes: &'a [u8],
    },
    /// Memory that the board does not have.
    NoMemory {
        /// Bytes of model, arena and state together.
        needed: u32,
        /// Bytes that it has.
        available: u32,
    },
    /// The runtime or the flash refused.
    Refused {
        /// Why.
        text: &'a str,
    },
    /// Nothing to be done now: no model, no session, a piece out of its place.
    Unexpected,
}

/// Writes a message, and the bytes behind it, as a frame; gives its length, the zero with it. `None` where it does not fit: [`PIECE_MAX`] bytes
/// behind any message do.
pub fn encode<T: Serialize>(number: u16, message: &T, bytes: &[u8], frame: &mut [u8; FRAME_MAX]) -> Option<usize> {
    let mut plain = [0; FRAME_MAX];
    let mut length = postcard::to_slice(&(number, message), &mut plain).ok()?.len();
    plain.get_mut(length..length + bytes.len())?.copy_from_slice(bytes);
    length += bytes.len();
    let check = CHECK.checksum(plain.get(..length)?).to_le_bytes();
    plain.get_mut(length..length + CHECK_BYTES)?.copy_from_slice(&check);
    // COBS adds a byte for each 254, and one.
    let length = length + CHECK_BYTES;
    if cobs::max_encoding_length(length) + 1 > FRAME_MAX {
        return None;
    }
    let encoded = cobs::encode(plain.get(..length)?, frame);
    *frame.get_mut(encoded)? = 0;
    Some(encoded + 1)
}

/// Returns the request, and the bytes behind it; `None` where there is no such ask, as from another version.
pub fn ask(message: &[u8]) -> Option<(Ask, &[u8])> {
    let (ask, bytes) = postcard::take_from_bytes(message).ok()?;
    (bytes.is_empty() || matches!(ask, Ask::Piece { .. } | Ask::Input { .. })).then_some((ask, bytes))
}

/// Returns the answer; `None` where there is no such answer, as from another version.
pub fn answer(message: &[u8]) -> Option<Answer<'_>> {
    match postcard::take_from_bytes(message) {
        Ok((answer, [])) => Some(answer),
        _ => None,
    }
}

/// Where bytes from a line become frames.
#[derive(Debug)]
pub struct Inbox {
    bytes: [u8; FRAME_MAX],
    /// Bytes of the frame that comes.
    length: usize,
    /// Whether that frame is lost.
    damaged: bool,
    message: Range<usize>,
}

impl Inbox {
    /// Nothing came yet.
    pub const fn new() -> Self {
        Self {
            bytes: [0; FRAME_MAX],
            length: 0,
            damaged: false,
            message: 0..0,
        }
    }

    /// Takes the next byte. With the one that ends an undamaged frame it gives the message's number; the message is [`Inbox::message`] then. Any other frame
    /// is dropped.
    pub fn push(&mut self, byte: u8) -> Option<u16> {
        if byte != 0 {
            match self.bytes.get_mut(self.length) {
                Some(place) => *place = byte,
                None => self.damaged = true,
            }
            self.length = (self.length + 1).min(FRAME_MAX);
            return None;
        }
        let length = core::mem::take(&mut self.length);
        if core::mem::take(&mut self.damaged) {
            return None;
        }
        self.message = 0..0;
        let frame = self.bytes.get_mut(..length)?;
        let length = cobs::decode_in_place(frame).ok()?.checked_sub(CHECK_BYTES)?;
        let (plain, check) = frame.split_at_checked(length)?;
        if check.get(..CHECK_BYTES)? != CHECK.checksum(plain).to_le_bytes() {
            return None;
        }
        let (number, message): (u16, &[u8]) = postcard::take_from_bytes(plain).ok()?;
        self.message = length - message.len()..length;
        Some(number)
    }

    /// Bytes were lost, as by an overrun: so is the frame that they were of.
    pub fn lose(&mut self) {
        self.damaged = true;
    }

    /// The last message, until the next byte.
    pub fn message(&self) -> &[u8] {
        self.bytes.get(self.message.clone()).unwrap_or_default()
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::{vec, vec::Vec};

    use super::*;

    const PIECE: Ask = Ask::Piece { offset: 70_000 };

    /// The asks of these tests, with the bytes behind them.
    fn asks() -> [(Ask, Vec<u8>); 4] {
        let input = Ask::Input {
            index: u32::MAX,
            whole: u32::MAX,
            offset: u32::MAX,
        };
        let output = Ask::Output {
            index: 0,
            offset: u32::MAX,
        };
        [
            (Ask::Hello, vec![]),
            (PIECE, vec![0; 300]),
            (input, vec![7; PIECE_MAX]),
            (output, vec![]),
        ]
    }

    /// A frame without its zero.
    fn framed(number: u16, ask: &Ask, bytes: &[u8]) -> Vec<u8> {
        let mut frame = [0xAA; FRAME_MAX];
        let length = encode(number, ask, bytes, &mut frame).expect("it fits");
        assert_eq!(frame[..length].iter().position(|&byte| byte == 0), Some(length - 1));
        frame[..length - 1].to_vec()
    }

    /// Returns the number of the message that an inbox finds in these bytes and a zero.
    fn received(inbox: &mut Inbox, bytes: &[u8]) -> Option<u16> {
        assert!(
            bytes.iter().all(|&byte| inbox.push(byte).is_none()),
            "no frame ends yet"
        );
        inbox.push(0)
    }

    #[test]
    fn frames_come_back_and_hold_no_zero() {
        let mut inbox = Inbox::new();
        for (number, (sent, bytes)) in (0..).zip(asks()) {
            let number = number * 300;
            assert_eq!(received(&mut inbox, &framed(number, &sent, &bytes)), Some(number));
            assert_eq!(ask(inbox.message()), Some((sent, &bytes[..])));
        }
    }

    #[test]
    fn damage_is_noticed_and_ends_with_its_frame() {
        let whole = framed(3, &PIECE, &[0; 300]);
        let mut inbox = Inbox::new();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut frame = whole.clone();
                frame[at] ^= 1 << bit;
                assert!(
                    frame.iter().all(|&byte| inbox.push(byte).is_none()),
                    "bit {bit} of byte {at}"
                );
                assert_eq!(inbox.push(0), None, "bit {bit} of byte {at}");
            }
            assert_eq!(received(&mut inbox, &whole[..at]), None, "{at} bytes");
            assert_eq!(inbox.message(), &[] as &[u8]);
        }
        assert_eq!(received(&mut inbox, &[]), None);
        assert_eq!(received(&mut inbox, &[1; FRAME_MAX + 1]), None);
        assert_eq!(received(&mut inbox, &whole), Some(3));
        inbox.lose();
        assert_eq!(received(&mut inbox, &whole), None);
        assert_eq!(received(&mut inbox, &whole), Some(3));
    }

    #[test]
    fn what_is_too_long_does_not_fit() {
        assert_eq!(encode(0, &PIECE, &[1; PIECE_MAX + 100], &mut [0; FRAME_MAX]), None);
        assert_eq!(encode(0, &PIECE, &[1; FRAME_MAX + 100], &mut [0; FRAME_MAX]), None);
    }

    #[test]
    fn other_versions_messages_are_none() {
        assert_eq!(ask(&[200]), None);
        // Hello has no bytes behind it.
        assert_eq!(ask(&[0, 0]), None);
        assert_eq!(answer(&[200]), None);
        assert_eq!(answer(&[1, 0]), None);
        assert_eq!(answer(&[1]), Some(Answer::Done));
    }

    #[test]
    fn the_longest_answers_fit() {
        let (name, text) = ("b".repeat(NAME_MAX), "e".repeat(crate::text::TEXT_MAX));
        let board = Answer::Board {
            version: u32::MAX,
            name: &name,
            memory: u32::MAX,
            slots: true,
        };
        let output = Answer::Output {
            whole: u32::MAX,
            bytes: &[1; PIECE_MAX],
        };
        for answer in [board, Answer::Refused { text: &text }, output] {
            assert!(encode(u16::MAX, &answer, &[], &mut [0; FRAME_MAX]).is_some());
        }
    }
}
