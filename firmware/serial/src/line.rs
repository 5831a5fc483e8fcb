//! Frames that come and go.

use core::fmt::{Display, Write as _};

use arenite_protocol::TEXT_MAX;
use arenite_protocol::serial::{Answer, Ask, FRAME_MAX, encode, message, open};
use embedded_io::{Read, Write};

/// An [`Ask`] without its bytes, which the line keeps.
#[derive(Clone, Copy)]
pub(crate) enum Said {
    Hello,
    Model { length: u32 },
    Update { length: u32 },
    Piece { offset: u32 },
    Load,
    LoadStored,
    Install,
    Confirm,
    Reset,
    Input { offset: u32 },
    Run,
    Step,
    Output { offset: u32, length: u32 },
}

/// A port, the last ask and the last answer.
pub(crate) struct Line<'p, U> {
    port: &'p mut U,
    inbox: [u8; FRAME_MAX],
    /// The bytes of the last ask, in the inbox.
    bytes: core::ops::Range<usize>,
    outbox: [u8; FRAME_MAX],
    /// The last answer, in the outbox, and its number.
    answered: Option<(u16, usize)>,
}

impl<'p, U: Read + Write> Line<'p, U> {
    pub(crate) fn new(port: &'p mut U) -> Self {
        Self {
            port,
            inbox: [0; FRAME_MAX],
            bytes: 0..0,
            outbox: [0; FRAME_MAX],
            answered: None,
        }
    }

    /// The next ask and its number; `None` where the port ended. What was asked before is answered again on the way.
    pub(crate) fn next(&mut self) -> Option<(u16, Said)> {
        loop {
            let length = self.frame()?;
            let frame = self.inbox.get_mut(..length).unwrap_or_default();
            let start = frame.as_ptr();
            let Some((number, bytes)) = open(frame) else {
                continue;
            };
            if let Some((_, length)) = self.answered.filter(|&(last, _)| last == number) {
                self.send(length);
                continue;
            }
            let Some(ask) = message(bytes) else {
                self.answer(number, &Answer::Unexpected);
                continue;
            };
            let none: &[u8] = &[];
            let (said, bytes) = match ask {
                Ask::Hello => (Said::Hello, none),
                Ask::Model { length } => (Said::Model { length }, none),
                Ask::Update { length } => (Said::Update { length }, none),
                Ask::Piece { offset, bytes } => (Said::Piece { offset }, bytes),
                Ask::Load => (Said::Load, none),
                Ask::LoadStored => (Said::LoadStored, none),
                Ask::Install => (Said::Install, none),
                Ask::Confirm => (Said::Confirm, none),
                Ask::Reset => (Said::Reset, none),
                Ask::Input { offset, bytes } => (Said::Input { offset }, bytes),
                Ask::Run => (Said::Run, none),
                Ask::Step => (Said::Step, none),
                Ask::Output { offset, length } => (Said::Output { offset, length }, none),
            };
            let first = bytes.as_ptr().addr().wrapping_sub(start.addr());
            self.bytes = if bytes.is_empty() {
                0..0
            } else {
                first..first + bytes.len()
            };
            return Some((number, said));
        }
    }

    /// The bytes of the last ask.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.inbox.get(self.bytes.clone()).unwrap_or_default()
    }

    /// Answers the ask of this number.
    pub(crate) fn answer(&mut self, number: u16, answer: &Answer<'_>) {
        // An answer that is too long has no place in the protocol: of pieces and texts the board sees to it.
        if let Some(length) = encode(number, answer, &mut self.outbox) {
            self.answered = Some((number, length));
            self.send(length);
        }
    }

    /// Answers that it was refused.
    pub(crate) fn refuse(&mut self, number: u16, why: &dyn Display) {
        let text = text_of(why);
        self.answer(number, &Answer::Refused { text: &text });
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

    /// The length of the next frame, in the inbox without its zero; `None` where the port ended.
    fn frame(&mut self) -> Option<usize> {
        let (mut length, mut damaged) = (0, false);
        loop {
            let mut byte = [0];
            match self.port.read(&mut byte) {
                Ok(0) => return None,
                Ok(_) => match byte {
                    [0] if !damaged && length > 0 => return Some(length),
                    [0] => (length, damaged) = (0, false),
                    [byte] => match self.inbox.get_mut(length) {
                        Some(place) => {
                            *place = byte;
                            length += 1;
                        }
                        None => damaged = true,
                    },
                },
                // An overrun, or noise.
                Err(_) => damaged = true,
            }
        }
    }
}

/// A text of an error; what does not fit is cut at a character.
fn text_of(why: &dyn Display) -> heapless::String<TEXT_MAX> {
    struct Cut(heapless::String<TEXT_MAX>);
    impl core::fmt::Write for Cut {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            text.chars()
                .try_for_each(|character| self.0.push(character))
                .map_err(|_| core::fmt::Error)
        }
    }
    let mut text = Cut(heapless::String::new());
    // A cut text is still a text.
    let _ = write!(text, "{why}");
    text.0
}
