//! A board at the other end of a serial port, which runs `arenite-serial`'s program.

use std::io::{self, ErrorKind, Read, Write};
use std::str::FromStr;
use std::time::{Duration, Instant};

use arenite_protocol::serial::{Answer, Ask, FRAME_MAX, Inbox, PIECE_MAX, SERIAL_VERSION, answer, encode};

use super::error::BoardError;

/// Bits a second where the port does not say.
const BAUD: u32 = 115_200;
/// How long a board may be silent before it is asked again. It answers most asks at once; one that computes gives the answer when it is done.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a board may take for everything but a run and a self-test.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a read of the port waits.
const POLL: Duration = Duration::from_millis(50);

/// A serial port as users name it: `PATH`, or `PATH:BAUD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialPort {
    /// Its device.
    pub path: String,
    /// Bits a second.
    pub baud: u32,
}

impl FromStr for SerialPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, baud) = match text.rsplit_once(':').map(|(path, baud)| (path, baud.parse())) {
            Some((path, Ok(baud))) => (path, baud),
            _ => (text, BAUD),
        };
        if path.is_empty() || baud == 0 {
            return Err("expected PORT or PORT:BAUD, as /dev/ttyACM0:115200".to_string());
        }
        Ok(Self {
            path: path.to_string(),
            baud,
        })
    }
}

/// A board's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialBoard {
    /// Its name.
    pub name: String,
    /// Bytes for model, arena and state.
    pub memory: u32,
    /// Whether it keeps models in slots.
    pub slots: bool,
}

/// Results of runs over a serial line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SerialReport {
    /// Of each run, the bytes of each output.
    pub outputs: Vec<Vec<Vec<u8>>>,
    /// Duration of each run, in the unit that the board counts.
    pub counts: Vec<u64>,
    /// When profiling: what each step of the last run took.
    pub steps: Vec<u64>,
}

/// How to run over a serial line.
#[derive(Debug, Clone, Copy)]
pub struct SerialOptions {
    /// Whether each run starts with fresh state.
    pub reset_each: bool,
    /// Whether each step is counted.
    pub profile: bool,
    /// How long the board may take for one run or one self-test.
    pub timeout: Duration,
}

/// Opens a port and asks who is there.
///
/// # Errors
/// [`BoardError::Port`] where it does not open; [`BoardError::Silent`] where nobody answers.
pub fn connect(port: &SerialPort) -> Result<(Link<serial2::SerialPort>, SerialBoard), BoardError> {
    let failed = |source| BoardError::Port {
        port: port.path.clone(),
        source,
    };
    let mut device = serial2::SerialPort::open(&port.path, port.baud).map_err(failed)?;
    device.set_read_timeout(POLL).map_err(failed)?;
    // Bytes that the board sent to another program are dropped.
    device.discard_buffers().map_err(failed)?;
    Link::over(device, &port.path)
}

/// A line to a board: asks, and waits for the answer.
#[derive(Debug)]
pub struct Link<P> {
    port: P,
    name: String,
    number: u16,
    inbox: Inbox,
}

impl<P: Read + Write> Link<P> {
    /// A line over `port`, whose reads end after a short time with [`ErrorKind::TimedOut`]; asks who is there. `name` is the port's, for errors.
    ///
    /// # Errors
    /// [`BoardError::Silent`] where nobody answers; [`BoardError::Line`] where it is not a board of this version.
    pub fn over(port: P, name: &str) -> Result<(Self, SerialBoard), BoardError> {
        let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut link = Self {
            port,
            name: name.to_string(),
            // The board remembers the last number that it was asked with, by whomever.
            number: started.map_or(0, |time| time.subsec_nanos() as u16),
            inbox: Inbox::new(),
        };
        let board = link.ask(Ask::Hello, &[], PATIENCE, |answer| match answer {
            Answer::Board {
                version: SERIAL_VERSION,
                name,
                memory,
                slots,
            } => Ok(SerialBoard {
                name: name.to_string(),
                memory,
                slots,
            }),
            Answer::Board { version, .. } => Err(format!(
                "the board's program speaks version {version} of the protocol, these tools version {SERIAL_VERSION}: build it anew"
            )),
            other => Err(unexpected(&other)),
        })?;
        Ok((link, board))
    }

    /// Sends a model and runs it once for each of `runs`, which have the bytes of each input. `done` is told of complete runs.
    ///
    /// # Errors
    /// Errors that the board reports; a board that does not answer.
    pub fn run(
        &mut self,
        model: &[u8],
        runs: &[Vec<Vec<u8>>],
        options: SerialOptions,
        done: &mut dyn FnMut(usize),
    ) -> Result<SerialReport, BoardError> {
        self.done(Ask::Model { length: size(model) }, &[])?;
        self.pieces(model, |offset| Ask::Piece { offset }, &mut |_| ())?;
        self.runs(Ask::Load, runs, options, done)
    }

    /// [`Link::run`] with the model that the board keeps.
    ///
    /// # Errors
    /// As [`Link::run`].
    pub fn run_stored(&mut self, runs: &[Vec<Vec<u8>>], options: SerialOptions) -> Result<SerialReport, BoardError> {
        self.runs(Ask::LoadStored, runs, options, &mut |_| ())
    }

    /// Writes a model into the slot that is not in use. The board checks it, runs its self-test and uses it from then on, on trial. Gives the self-test's runs;
    /// `written` is told of bytes.
    ///
    /// # Errors
    /// Errors that the board reports; a board that does not answer.
    pub fn update(
        &mut self,
        model: &[u8],
        timeout: Duration,
        written: &mut dyn FnMut(usize),
    ) -> Result<u32, BoardError> {
        // A slot is erased, which takes seconds on some flashes.
        self.ask(Ask::Update { length: size(model) }, &[], timeout, done)?;
        self.pieces(model, |offset| Ask::Piece { offset }, written)?;
        self.ask(Ask::Install, &[], timeout, |answer| match answer {
            Answer::Installed { runs } => Ok(runs),
            other => Err(unexpected(&other)),
        })
    }

    /// Says that the model on trial works.
    ///
    /// # Errors
    /// Errors that the board reports; a board that does not answer.
    pub fn confirm(&mut self) -> Result<(), BoardError> {
        self.done(Ask::Confirm, &[])
    }

    fn runs(
        &mut self,
        load: Ask,
        runs: &[Vec<Vec<u8>>],
        options: SerialOptions,
        done: &mut dyn FnMut(usize),
    ) -> Result<SerialReport, BoardError> {
        let outputs = self.ask(load, &[], options.timeout, |answer| match answer {
            Answer::Loaded { outputs } => Ok(outputs),
            other => Err(unexpected(&other)),
        })?;
        let mut report = SerialReport::default();
        for (run, inputs) in runs.iter().enumerate() {
            if options.reset_each && run > 0 {
                self.done(Ask::Reset, &[])?;
            }
            for (index, bytes) in (0..).zip(inputs) {
                let whole = size(bytes);
                self.pieces(bytes, |offset| Ask::Input { index, whole, offset }, &mut |_| ())?;
            }
            let count = if options.profile {
                report.steps = self.steps(options.timeout)?;
                report.steps.iter().sum()
            } else {
                self.ask(Ask::Run, &[], options.timeout, |answer| match answer {
                    Answer::Ran { count } => Ok(count),
                    other => Err(unexpected(&other)),
                })?
            };
            report.counts.push(count);
            let outputs = (0..outputs).map(|index| self.output(index));
            report.outputs.push(outputs.collect::<Result<_, _>>()?);
            done(run + 1);
        }
        Ok(report)
    }

    fn steps(&mut self, timeout: Duration) -> Result<Vec<u64>, BoardError> {
        let mut steps = Vec::new();
        loop {
            let (count, last) = self.ask(Ask::Step, &[], timeout, |answer| match answer {
                Answer::Stepped { count, last } => Ok((count, last)),
                other => Err(unexpected(&other)),
            })?;
            steps.push(count);
            if last {
                return Ok(steps);
            }
        }
    }

    fn output(&mut self, index: u32) -> Result<Vec<u8>, BoardError> {
        let mut output = Vec::new();
        loop {
            let offset = output.len() as u32;
            let whole = self.ask(Ask::Output { index, offset }, &[], PATIENCE, |answer| match answer {
                Answer::Output { whole, bytes } if !bytes.is_empty() || whole == offset => {
                    output.extend(bytes);
                    Ok(whole as usize)
                }
                other => Err(unexpected(&other)),
            })?;
            if output.len() >= whole {
                return Ok(output);
            }
        }
    }

    /// Sends `bytes` in pieces, each behind what `ask` makes of its offset; `sent` is told of bytes.
    fn pieces(
        &mut self,
        bytes: &[u8],
        ask: impl Fn(u32) -> Ask,
        sent: &mut dyn FnMut(usize),
    ) -> Result<(), BoardError> {
        for (index, piece) in bytes.chunks(PIECE_MAX).enumerate() {
            let offset = index * PIECE_MAX;
            self.done(ask(offset as u32), piece)?;
            sent(offset + piece.len());
        }
        Ok(())
    }

    fn done(&mut self, ask: Ask, bytes: &[u8]) -> Result<(), BoardError> {
        self.ask(ask, bytes, PATIENCE, done)
    }

    /// Asks until an answer comes, and reads it.
    fn ask<T>(
        &mut self,
        ask: Ask,
        bytes: &[u8],
        patience: Duration,
        read: impl FnOnce(Answer<'_>) -> Result<T, String>,
    ) -> Result<T, BoardError> {
        self.number = self.number.wrapping_add(1);
        let mut frame = [0; FRAME_MAX];
        let length = encode(self.number, &ask, bytes, &mut frame).expect("every ask fits a frame");
        let port = self.name.clone();
        let failed = |source| BoardError::Port {
            port: port.clone(),
            source,
        };
        let begun = Instant::now();
        let mut asked = None;
        loop {
            if asked.is_none_or(|asked: Instant| asked.elapsed() >= AGAIN) {
                // A zero first: whatever was on the line ends there.
                let sent = self
                    .port
                    .write_all(&[0])
                    .and_then(|()| self.port.write_all(&frame[..length]));
                sent.and_then(|()| self.port.flush()).map_err(failed)?;
                asked = Some(Instant::now());
            }
            match self.receive().map_err(failed)? {
                Some(number) if number == self.number => break,
                // Whatever else is said: another program's lines, an answer that comes late.
                _ if begun.elapsed() >= patience => {
                    let seconds = patience.as_secs();
                    return Err(BoardError::Silent { port, seconds });
                }
                _ => {}
            }
        }
        match (answer(self.inbox.message()), ask) {
            (Some(Answer::NoMemory { needed, available }), _) => Err(BoardError::NoRoom {
                port,
                needed,
                available,
            }),
            (Some(Answer::InputSize { whole }), Ask::Input { whole: given, .. }) => Err(BoardError::InputSize {
                runs: 1,
                each: whole.into(),
                given: given.into(),
            }),
            (Some(Answer::Refused { text }), _) => {
                let text = text.to_string();
                Err(BoardError::Declined { port, text })
            }
            (Some(answer), _) => read(answer).map_err(|reason| BoardError::Line { port, reason }),
            (None, _) => {
                let reason = "an answer of another version".to_string();
                Err(BoardError::Line { port, reason })
            }
        }
    }

    /// Reads a byte. Where a message ends with it, that is in the inbox, and this is its number; `None` where none does or the line is silent.
    fn receive(&mut self) -> io::Result<Option<u16>> {
        let mut byte = [0];
        match self.port.read(&mut byte) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(self.inbox.push(byte[0])),
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn done(answer: Answer<'_>) -> Result<(), String> {
    match answer {
        Answer::Done => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(answer: &Answer<'_>) -> String {
    match answer {
        Answer::Unexpected => "the board lost its place, as after a reset: try again".to_string(),
        other => format!("the board gave another answer than the one to what it was asked: {other:?}"),
    }
}

fn size(bytes: &[u8]) -> u32 {
    // No board's memory holds a longer file; the board says so.
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_a_path_and_may_have_a_speed() {
        let port = |path: &str, baud| {
            Ok(SerialPort {
                path: path.to_string(),
                baud,
            })
        };
        assert_eq!("/dev/ttyACM0".parse(), port("/dev/ttyACM0", 115_200));
        assert_eq!("/dev/ttyUSB1:921600".parse(), port("/dev/ttyUSB1", 921_600));
        assert_eq!("COM3".parse(), port("COM3", 115_200));
        assert_eq!("/dev/by-path/a:b".parse(), port("/dev/by-path/a:b", 115_200));
        for wrong in ["", ":9600", "/dev/x:0"] {
            assert!(wrong.parse::<SerialPort>().is_err(), "{wrong}");
        }
    }
}
