//! A serial line between the host's half of the protocol and a board's, which is a thread here.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use arenite::slots::{Layout, Slots, Unsigned};
use arenite_host::board::protocol::serial::{Answer, FRAME_MAX, Inbox, ask, encode};
use arenite_serial::{Device, InSlots, MemoryFlash, NoSlots, serve};

/// Fault of one direction: from the byte's index and the byte to the bytes that arrive.
pub type Fault = Box<dyn FnMut(usize, u8) -> Vec<u8> + Send>;

/// A line that loses and changes nothing.
pub fn sound() -> Fault {
    Box::new(|_, byte| vec![byte])
}

/// The host's end: reads end after a moment, as those of a port that was opened.
pub struct HostEnd(End);

/// The board's end: reads wait.
pub struct BoardEnd(End);

struct End {
    sender: Sender<u8>,
    receiver: Receiver<u8>,
    fault: Fault,
    sent: usize,
}

impl End {
    /// Sends through the fault; a line whose other end has gone takes everything.
    fn send(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            for arrives in (self.fault)(self.sent, byte) {
                let _ = self.sender.send(arrives);
            }
            self.sent += 1;
        }
    }
}

/// The two ends of a line with these faults: towards the board, towards the host.
pub fn line(there: Fault, back: Fault) -> (HostEnd, BoardEnd) {
    let ((to_board, at_board), (to_host, at_host)) = (channel(), channel());
    let end = |sender, receiver, fault| End {
        sender,
        receiver,
        fault,
        sent: 0,
    };
    (
        HostEnd(end(to_board, at_host, there)),
        BoardEnd(end(to_host, at_board, back)),
    )
}

impl io::Read for HostEnd {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(byte) => {
                bytes[0] = byte;
                Ok(1)
            }
            Err(RecvTimeoutError::Timeout) => Err(ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Ok(0),
        }
    }
}

impl io::Write for HostEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl embedded_io::ErrorType for BoardEnd {
    type Error = Infallible;
}

impl embedded_io::Read for BoardEnd {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        match self.0.receiver.recv() {
            Ok(byte) => {
                bytes[0] = byte;
                Ok(1)
            }
            Err(_) => Ok(0),
        }
    }
}

impl embedded_io::Write for BoardEnd {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.0.send(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Bytes of a slot of [`board`].
pub const SLOT: u32 = 4 * MemoryFlash::SECTOR;

/// A board of `memory` bytes, with slots or without, that counts calls and ends with the line.
pub fn board(mut port: BoardEnd, memory: usize, slots: bool) -> JoinHandle<()> {
    spawn(move || {
        let mut calls = 0;
        let mut memory = vec![0; memory];
        let device = Device {
            name: "a-board",
            memory: &mut memory,
            measure: &mut |work| {
                work();
                calls += 1;
                calls
            },
        };
        if !slots {
            return serve(&mut port, device, &mut NoSlots);
        }
        let sector = MemoryFlash::SECTOR;
        let layout = Layout {
            slots: [0..SLOT, SLOT..2 * SLOT],
            journal: 2 * SLOT..2 * SLOT + 2 * sector,
            trials: 3,
        };
        let mut flash = arenite_host::model::Aligned::new((2 * SLOT + 2 * sector) as usize);
        let slots = Slots::open(MemoryFlash::erased(flash.bytes()), layout, Unsigned).expect("a layout that fits");
        serve(&mut port, device, &mut InSlots::new(slots));
    })
}

/// A board that gives the same answer to everything.
pub fn answering(answer: Answer<'static>) -> HostEnd {
    let (host, mut end) = line(sound(), sound());
    spawn(move || {
        let (mut inbox, mut byte) = (Inbox::new(), [0]);
        while let Ok(1) = embedded_io::Read::read(&mut end, &mut byte) {
            if let Some(number) = inbox.push(byte[0]) {
                assert!(ask(inbox.message()).is_some());
                let mut out = [0; FRAME_MAX];
                let length = encode(number, &answer, &[], &mut out).expect("it fits");
                embedded_io::Write::write_all(&mut end, &out[..length]).expect("sent");
            }
        }
    });
    host
}
