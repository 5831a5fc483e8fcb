//! A program that takes models over a serial port and runs them: the board's half of `arenite run --on serial:PORT` and `arenite update
//! --serial PORT`.
//!
//! [`serve`] wants a port that implements [`embedded_io`]'s traits, as UARTs of most HAL crates do, and memory; with [`InSlots`] it writes updates to flash
//! too. The messages over the line are described in [`arenite_protocol::serial`].
//!
//! ```
//! # fn program<U: embedded_io::Read + embedded_io::Write>(mut uart: U, ticks: fn() -> u64) {
//! let mut memory = [0; 64 << 10];
//! let mut measure = |work: &mut dyn FnMut()| {
//!     let start = ticks();
//!     work();
//!     ticks().wrapping_sub(start)
//! };
//! let device = arenite_serial::Device { name: "my-board", memory: &mut memory, measure: &mut measure };
//! arenite_serial::serve(&mut uart, device, &mut arenite_serial::NoSlots);
//! # }
//! ```
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod flash;
mod line;
mod memory;
mod session;
mod updates;

use arenite::{All, Kernels, Model};
use arenite_protocol::cut;
use arenite_protocol::serial::{Answer, Ask, NAME_MAX, SERIAL_VERSION};
use embedded_io::{Read, Write};

pub use flash::{MemoryFlash, Outside};
use line::Line;
pub use updates::{InSlots, NoSlots, Updates};

/// Name, memory and functions that a board gives.
pub struct Device<'a> {
    /// Its name, as the host prints it; of a longer one the first [`NAME_MAX`] bytes.
    pub name: &'a str,
    /// For the model, its arena and its state.
    pub memory: &'a mut [u8],
    /// Does the work that it is given and says what that took: instructions, or cycles.
    pub measure: &'a mut dyn FnMut(&mut dyn FnMut()) -> u64,
}

/// Answers what comes over `port` with every kernel of this build linked, until the port ends: it reads nothing, as a closed connection does. A port that fails
/// to read has damaged a frame, no more.
pub fn serve<U: Read + Write>(port: &mut U, device: Device<'_>, updates: &mut impl Updates<All>) {
    serve_with::<All, U>(port, device, updates);
}

/// [`serve`] with these kernels; models with others are refused by name.
pub fn serve_with<K: Kernels, U: Read + Write>(port: &mut U, device: Device<'_>, updates: &mut impl Updates<K>) {
    let Device { name, memory, measure } = device;
    let memory = memory::aligned(memory);
    let mut line = Line::new(port);
    let mut receiving = Receiving::default();
    let mut next = None;
    loop {
        let Some((number, ask)) = next.take().or_else(|| line.next()) else {
            return;
        };
        match ask {
            Ask::Hello => {
                receiving = Receiving::default();
                let board = Answer::Board {
                    version: SERIAL_VERSION,
                    name: cut(name, NAME_MAX),
                    memory: memory::size(memory.len()),
                    slots: updates.exist(),
                };
                line.answer(number, &board);
            }
            Ask::Model { length } => {
                let available = memory::size(memory.len());
                if length <= available {
                    receiving = Receiving::new(To::Memory, length);
                    line.answer(number, &Answer::Done);
                } else {
                    receiving = Receiving::default();
                    let needed = length;
                    line.answer(number, &Answer::NoMemory { needed, available });
                }
            }
            Ask::Update { length } => {
                let begun = updates.begin(length);
                receiving = begun
                    .as_ref()
                    .map_or_else(|_| Receiving::default(), |()| Receiving::new(To::Slot, length));
                line.outcome(number, begun, |()| Answer::Done);
            }
            Ask::Piece { offset } => match receiving.takes(offset, line.bytes().len()) {
                Some(To::Memory) => {
                    let fits = memory::copy(line.bytes(), memory, offset);
                    line.answer(number, if fits { &Answer::Done } else { &Answer::Unexpected });
                }
                Some(To::Slot) => {
                    let written = updates.write(line.bytes());
                    line.outcome(number, written, |()| Answer::Done);
                }
                None => line.answer(number, &Answer::Unexpected),
            },
            Ask::Load => match receiving
                .whole(To::Memory)
                .and_then(|length| memory.split_at_mut_checked(length))
            {
                Some((file, rest)) => match Model::<K>::load_with(file) {
                    Ok(model) => next = session::serve(number, model, rest, measure, &mut line),
                    Err(error) => line.refuse(number, &error),
                },
                None => line.answer(number, &Answer::Unexpected),
            },
            Ask::LoadStored => match updates.model() {
                Ok(model) => next = session::serve(number, model, memory, measure, &mut line),
                Err(error) => line.refuse(number, &error),
            },
            Ask::Install => match receiving.whole(To::Slot) {
                Some(_) => {
                    receiving = Receiving::default();
                    let installed = updates.install(memory);
                    line.outcome(number, installed, |runs| Answer::Installed { runs });
                }
                None => line.answer(number, &Answer::Unexpected),
            },
            Ask::Confirm => {
                let confirmed = updates.confirm();
                line.outcome(number, confirmed, |()| Answer::Done);
            }
            Ask::Reset | Ask::Input { .. } | Ask::Run | Ask::Step | Ask::Output { .. } => {
                line.answer(number, &Answer::Unexpected);
            }
        }
    }
}

/// Where the pieces of a file go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Memory,
    Slot,
}

/// A file that comes in pieces; none of which nothing was said.
#[derive(Clone, Copy, Default)]
struct Receiving {
    to: Option<To>,
    length: u32,
    got: u32,
}

impl Receiving {
    fn new(to: To, length: u32) -> Self {
        Self {
            to: Some(to),
            length,
            got: 0,
        }
    }

    /// Where the next piece goes, if this is the next one.
    fn takes(&mut self, offset: u32, bytes: usize) -> Option<To> {
        let end = offset.checked_add(bytes as u32)?;
        if offset != self.got || end > self.length {
            return None;
        }
        self.got = end;
        self.to
    }

    /// The length of a file that is there whole.
    fn whole(&self, to: To) -> Option<usize> {
        (self.to == Some(to) && self.got == self.length).then_some(self.length as usize)
    }
}
