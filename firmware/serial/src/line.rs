//! Frames that come and go.

use core::fmt::Display;

use arenite_protocol::Text;
use arenite_protocol::serial::{Answer, Ask, FRAME_MAX, Inbox, ask, encode};
use embedded_io::{Read, Write};

/// A port, the last ask and the last answer.
pub(crate) struct Line<'p, U> {
    port: &'p mut U,
    inbox: Inbox,
    outbox: [u8; FRAME_MAX],
    /// The last answer, in the outbox, and its number.
    answered: Option<(u16, usize)>,
}

impl<'p, U: Read + Write> Line<'p, U> {
    pub(crate) fn new(port: &'p mut U) -> Self {
        Self {
            port,
            inbox: Inbox::new(),
            outbox: [0; FRAME_MAX],
            answered: None,
        }
    }

    /// The next ask and its number; `None` where the port ended. An ask that came before is answered again on the way.
    pub(crate) fn next(&mut self) -> Option<(u16, Ask)> {
        loop {
            let number = self.receive()?;
            let asked = ask(self.inbox.message()).map(|(ask, _)| ask);
            // Another program at the line may begin with the number that the last one ended with.
            let again = self
                .answered
                .filter(|&(last, _)| last == number && asked != Some(Ask::Hello));
            match (again, asked) {
                (Some((_, length)), _) => self.send(length),
                (None, Some(ask)) => return Some((number, ask)),
                (None, None) => self.answer(number, &Answer::Unexpected),
            }
        }
    }

    /// The bytes behind the last ask.
    pub(crate) fn bytes(&self) -> &[u8] {
        ask(self.inbox.message()).map_or(&[], |(_, bytes)| bytes)
    }

    /// Answers the ask of this number.
    pub(crate) fn answer(&mut self, number: u16, answer: &Answer<'_>) {
        // An answer that is too long has no place in the protocol: of pieces and texts the board sees to it.
        if let Some(length) = encode(number, answer, &[], &mut self.outbox) {
            self.answered = Some((number, length));
            self.send(length);
        }
    }

    /// Answers that it was refused.
    pub(crate) fn refuse(&mut self, number: u16, why: &dyn Display) {
        let text = Text::of(why);
        self.answer(number, &Answer::Refused { text: text.as_str() });
    }

    /// Answers what became of it.
    pub(crate) fn outcome<T, E: Display>(
        &mut self,
        number: u16,
        done: Result<T, E>,
        answer: impl FnOnce(T) -> Answer<'static>,
    ) {
        match done {
            Ok(value) => self.answer(number, &answer(value)),
            Err(error) => self.refuse(number, &error),
        }
    }

    /// Sends what lies in the outbox. A host that hears nothing asks again.
    fn send(&mut self, length: usize) {
        let frame = self.outbox.get(..length).unwrap_or_default();
        let _ = self.port.write_all(frame).and_then(|()| self.port.flush());
    }

    /// The number of the next message, which is in the inbox; `None` where the port ended.
    fn receive(&mut self) -> Option<u16> {
        loop {
            let mut byte = [0];
            match self.port.read(&mut byte) {
                Ok(0) => return None,
                Ok(_) => {
                    let [byte] = byte;
                    if let Some(number) = self.inbox.push(byte) {
                        return Some(number);
                    }
                }
                // An overrun, or noise.
                Err(_) => self.inbox.lose(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::VecDeque;
    use std::vec::Vec;

    use super::*;

    /// A port that gives these bytes, and an error for `None`, and ends; it keeps what is sent.
    struct Port {
        gives: VecDeque<Option<u8>>,
        sent: Vec<u8>,
    }

    impl embedded_io::ErrorType for Port {
        type Error = embedded_io::ErrorKind;
    }

    impl Read for Port {
        fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Self::Error> {
            match self.gives.pop_front() {
                None => Ok(0),
                Some(None) => Err(embedded_io::ErrorKind::Other),
                Some(Some(byte)) => {
                    bytes[0] = byte;
                    Ok(1)
                }
            }
        }
    }

    impl Write for Port {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
            self.sent.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    fn frame(number: u16, ask: Ask, bytes: &[u8]) -> Vec<Option<u8>> {
        let mut frame = [0; FRAME_MAX];
        let length = encode(number, &ask, bytes, &mut frame).expect("it fits");
        frame[..length].iter().copied().map(Some).collect()
    }

    /// Returns the asks that come of the port's bytes; each is answered that it is done.
    fn asked(gives: &[Vec<Option<u8>>]) -> (Vec<(u16, Ask, Vec<u8>)>, usize) {
        let mut port = Port {
            gives: gives.concat().into(),
            sent: Vec::new(),
        };
        let mut line = Line::new(&mut port);
        let mut asks = Vec::new();
        while let Some((number, ask)) = line.next() {
            asks.push((number, ask, line.bytes().to_vec()));
            line.answer(number, &Answer::Done);
        }
        let answers = port.sent.iter().filter(|&&byte| byte == 0).count();
        (asks, answers)
    }

    #[test]
    fn what_was_answered_is_answered_again_and_not_done() {
        let piece = || frame(7, Ask::Piece { offset: 4 }, &[1, 2, 3]);
        let once = |number, ask, bytes: &[u8]| (number, ask, bytes.to_vec());
        let (asks, answers) = asked(&[piece(), piece(), frame(8, Ask::Run, &[]), piece()]);
        let (first, run) = (once(7, Ask::Piece { offset: 4 }, &[1, 2, 3]), once(8, Ask::Run, &[]));
        // The last one is another program's.
        assert_eq!((asks, answers), (std::vec![first.clone(), run, first], 4));
    }

    #[test]
    fn hello_is_never_taken_for_what_was_answered() {
        let (asks, answers) = asked(&[frame(7, Ask::Run, &[]), frame(7, Ask::Hello, &[])]);
        assert_eq!((asks.len(), answers), (2, 2));
    }

    #[test]
    fn a_failed_read_loses_its_frame() {
        let mut broken = frame(7, Ask::Run, &[]);
        broken.insert(2, None);
        let (asks, answers) = asked(&[broken, frame(7, Ask::Run, &[]), frame(8, Ask::Hello, &[1])]);
        // Bytes behind a Hello are no ask of this version, which is answered and no more.
        assert_eq!((asks.len(), answers), (1, 2));
    }
}
