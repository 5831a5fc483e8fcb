//! What the host and a board say to each other over a serial line, where no debugger carries files.
//!
//! The host asks and the board answers, one after the other. An [`Ask`] has a number and its [`Answer`] bears the same. Either is postcard of `(number, message)`
//! and a CRC-32 behind it, in a frame of COBS that ends with a zero: whatever a line drops or changes, the next zero begins anew. The host repeats an ask that
//! stays without an answer; the board does nothing twice, but gives the answer again to the number that it knows.

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use serde::{Deserialize, Serialize};

/// Raised whenever a type of this file changes.
pub const SERIAL_VERSION: u32 = 1;
/// Bytes of a model, of inputs or of outputs that one message carries at most.
pub const PIECE_MAX: usize = 512;
/// Bytes of a frame at most, its zero with it.
pub const FRAME_MAX: usize = PIECE_MAX + 80;

/// Without a table: a board has more time while it waits for a line than flash.
const CHECK: Crc<u32, Table<0>> = Crc::<u32, Table<0>>::new(&CRC_32_ISO_HDLC);
const CHECK_BYTES: usize = 4;

/// What the host asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask<'a> {
    /// Who is there: [`Answer::Board`].
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
        /// At most [`PIECE_MAX`].
        #[serde(borrow)]
        bytes: &'a [u8],
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
    /// Bytes of the inputs, one behind the other: [`Answer::Done`].
    Input {
        /// Bytes before these.
        offset: u32,
        /// At most [`PIECE_MAX`].
        #[serde(borrow)]
        bytes: &'a [u8],
    },
    /// A whole run: [`Answer::Ran`].
    Run,
    /// The next step of a run: [`Answer::Stepped`].
    Step,
    /// Bytes of the outputs, one behind the other: [`Answer::Output`].
    Output {
        /// Bytes before these.
        offset: u32,
        /// At most [`PIECE_MAX`].
        length: u32,
    },
}

/// What the board answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer<'a> {
    /// This one.
    Board {
        /// [`SERIAL_VERSION`] of its program.
        version: u32,
        /// Its name.
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
        /// Bytes of all inputs.
        input_bytes: u32,
        /// Bytes of all outputs.
        output_bytes: u32,
    },
    /// The model is in use.
    Installed {
        /// Runs of its self-test.
        runs: u32,
    },
    /// The run is done.
    Ran {
        /// What it took, in what the board counts.
        count: u64,
    },
    /// A step is done.
    Stepped {
        /// What it took, in what the board counts.
        count: u64,
        /// Whether it was the last one.
        last: bool,
    },
    /// These bytes.
    Output {
        /// As many as were asked for.
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

/// Writes a message as a frame; gives its length, the zero with it. `None` where it does not fit: a piece of more than [`PIECE_MAX`].
pub fn encode<T: Serialize>(number: u16, message: &T, frame: &mut [u8; FRAME_MAX]) -> Option<usize> {
    let mut plain = [0; FRAME_MAX];
    let length = postcard::to_slice(&(number, message), &mut plain).ok()?.len();
    let check = CHECK.checksum(plain.get(..length)?).to_le_bytes();
    plain.get_mut(length..length + CHECK_BYTES)?.copy_from_slice(&check);
    // What COBS adds: a byte for each 254, and one.
    let length = length + CHECK_BYTES;
    if cobs::max_encoding_length(length) + 1 > FRAME_MAX {
        return None;
    }
    let encoded = cobs::encode(plain.get(..length)?, frame);
    *frame.get_mut(encoded)? = 0;
    Some(encoded + 1)
}

/// Undoes COBS in place and checks the CRC of a frame without its zero; gives the number and the message's bytes. `None` where it was damaged.
pub fn open(frame: &mut [u8]) -> Option<(u16, &[u8])> {
    let length = cobs::decode_in_place(frame).ok()?.checked_sub(CHECK_BYTES)?;
    let (plain, check) = frame.split_at_checked(length)?;
    if check.get(..CHECK_BYTES)? != CHECK.checksum(plain).to_le_bytes() {
        return None;
    }
    postcard::take_from_bytes(plain).ok()
}

/// The message of [`open`]'s bytes; `None` where there is no such message, as from another version.
pub fn message<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: [Ask<'static>; 4] = [
        Ask::Hello,
        Ask::Piece {
            offset: 70_000,
            bytes: &[0; 300],
        },
        Ask::Input {
            offset: 0,
            bytes: &[7; PIECE_MAX],
        },
        Ask::Output {
            offset: u32::MAX,
            length: u32::MAX,
        },
    ];

    #[test]
    fn frames_come_back_and_hold_no_zero() {
        for (number, ask) in ASKS.iter().enumerate() {
            let mut frame = [0xAA; FRAME_MAX];
            let length = encode(number as u16 * 300, ask, &mut frame).expect("it fits");
            assert_eq!(frame[..length].iter().position(|&byte| byte == 0), Some(length - 1));
            let (found, bytes) = open(&mut frame[..length - 1]).expect("undamaged");
            assert_eq!((found, message(bytes)), (number as u16 * 300, Some(*ask)));
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut whole = [0; FRAME_MAX];
        let length = encode(3, &ASKS[1], &mut whole).expect("it fits") - 1;
        for at in 0..length {
            for bit in 0..8 {
                let mut frame = whole;
                frame[at] ^= 1 << bit;
                assert_eq!(open(&mut frame[..length]), None, "bit {bit} of byte {at}");
            }
            let mut frame = whole;
            assert_eq!(open(&mut frame[..at]), None, "{at} bytes");
        }
        assert_eq!(open(&mut []), None);
    }

    #[test]
    fn what_is_too_long_does_not_fit() {
        let long = [1; PIECE_MAX + 100];
        let piece = Ask::Piece {
            offset: 0,
            bytes: &long,
        };
        assert_eq!(encode(0, &piece, &mut [0; FRAME_MAX]), None);
        assert!(message::<Ask<'_>>(&[200]).is_none());
        assert!(message::<Ask<'_>>(&[0, 0]).is_none());
    }

    #[test]
    fn the_longest_messages_fit() {
        let (name, text) = ("b".repeat(64), "e".repeat(160));
        let bytes = [1; PIECE_MAX];
        let board = Answer::Board {
            version: u32::MAX,
            name: &name,
            memory: u32::MAX,
            slots: true,
        };
        let answers = [board, Answer::Refused { text: &text }, Answer::Output { bytes: &bytes }];
        for answer in answers {
            assert!(encode(u16::MAX, &answer, &mut [0; FRAME_MAX]).is_some());
        }
    }
}
