//! A board at the other end of a serial port, which runs `arenite-serial`'s program.

use std::io::{self, ErrorKind, Read, Write};
use std::str::FromStr;
use std::time::{Duration, Instant};

use arenite_protocol::serial::{Answer, Ask, FRAME_MAX, PIECE_MAX, SERIAL_VERSION, encode, message, open};

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

/// What a board says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialBoard {
    /// Its name.
    pub name: String,
    /// Bytes for model, arena and state.
    pub memory: u32,
    /// Whether it keeps models in slots.
    pub slots: bool,
}

/// What came out of runs over a serial line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SerialReport {
    /// Of each run, all outputs one behind the other.
    pub outputs: Vec<Vec<u8>>,
    /// What each run took, in what the board counts.
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
    // What the board said to another program.
    device.discard_buffers().map_err(failed)?;
    Link::over(device, &port.path)
}

/// A line to a board: asks, and waits for the answer.
#[derive(Debug)]
pub struct Link<P> {
    port: P,
    name: String,
    number: u16,
    frame: Vec<u8>,
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
            frame: Vec::new(),
        };
        let board = link.ask(&Ask::Hello, PATIENCE, |answer| match answer {
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

    /// Sends a model and runs it once for each of `inputs`, each all inputs one behind the other. `done` is told of complete runs.
    ///
    /// # Errors
    /// What the board says; that it says nothing.
    pub fn run(
        &mut self,
        model: &[u8],
        inputs: &[Vec<u8>],
        options: SerialOptions,
        done: &mut dyn FnMut(usize),
    ) -> Result<SerialReport, BoardError> {
        self.done(&Ask::Model { length: size(model) })?;
        self.send(model)?;
        self.runs(&Ask::Load, inputs, options, done)
    }

    /// [`Link::run`] with the model that the board keeps.
    ///
    /// # Errors
    /// As [`Link::run`].
    pub fn run_stored(&mut self, inputs: &[Vec<u8>], options: SerialOptions) -> Result<SerialReport, BoardError> {
        self.runs(&Ask::LoadStored, inputs, options, &mut |_| ())
    }

    /// Writes a model into the slot that is not in use. The board checks it, runs its self-test and uses it from then on, on trial. Gives the self-test's runs;
    /// `written` is told of bytes.
    ///
    /// # Errors
    /// What the board says; that it says nothing.
    pub fn update(
        &mut self,
        model: &[u8],
        timeout: Duration,
        written: &mut dyn FnMut(usize),
    ) -> Result<u32, BoardError> {
        // A slot is erased, which takes seconds on some flashes.
        self.ask(&Ask::Update { length: size(model) }, timeout, done)?;
        for (index, bytes) in model.chunks(PIECE_MAX).enumerate() {
            let offset = index * PIECE_MAX;
            self.done(&Ask::Piece {
                offset: offset as u32,
                bytes,
            })?;
            written(offset + bytes.len());
        }
        self.ask(&Ask::Install, timeout, |answer| match answer {
            Answer::Installed { runs } => Ok(runs),
            other => Err(unexpected(&other)),
        })
    }

    /// Says that the model on trial works.
    ///
    /// # Errors
    /// What the board says; that it says nothing.
    pub fn confirm(&mut self) -> Result<(), BoardError> {
        self.done(&Ask::Confirm)
    }

    fn runs(
        &mut self,
        load: &Ask<'_>,
        inputs: &[Vec<u8>],
        options: SerialOptions,
        done: &mut dyn FnMut(usize),
    ) -> Result<SerialReport, BoardError> {
        let (each, length) = self.ask(load, options.timeout, |answer| match answer {
            Answer::Loaded {
                input_bytes,
                output_bytes,
            } => Ok((input_bytes, output_bytes)),
            other => Err(unexpected(&other)),
        })?;
        let mut report = SerialReport::default();
        for (index, input) in inputs.iter().enumerate() {
            if input.len() != each as usize {
                return Err(BoardError::InputSize {
                    runs: 1,
                    each: each.into(),
                    given: input.len() as u64,
                });
            }
            if options.reset_each && index > 0 {
                self.done(&Ask::Reset)?;
            }
            for (index, bytes) in input.chunks(PIECE_MAX).enumerate() {
                let offset = (index * PIECE_MAX) as u32;
                self.done(&Ask::Input { offset, bytes })?;
            }
            let count = if options.profile {
                report.steps = self.steps(options.timeout)?;
                report.steps.iter().sum()
            } else {
                self.ask(&Ask::Run, options.timeout, |answer| match answer {
                    Answer::Ran { count } => Ok(count),
                    other => Err(unexpected(&other)),
                })?
            };
            report.counts.push(count);
            report.outputs.push(self.output(length)?);
            done(index + 1);
        }
        Ok(report)
    }

    fn steps(&mut self, timeout: Duration) -> Result<Vec<u64>, BoardError> {
        let mut steps = Vec::new();
        loop {
            let (count, last) = self.ask(&Ask::Step, timeout, |answer| match answer {
                Answer::Stepped { count, last } => Ok((count, last)),
                other => Err(unexpected(&other)),
            })?;
            steps.push(count);
            if last {
                return Ok(steps);
            }
        }
    }

    fn output(&mut self, length: u32) -> Result<Vec<u8>, BoardError> {
        let mut output = Vec::new();
        while output.len() < length as usize {
            let offset = output.len() as u32;
            let wanted = (length - offset).min(PIECE_MAX as u32);
            let piece = self.ask(
                &Ask::Output { offset, length: wanted },
                PATIENCE,
                |answer| match answer {
                    Answer::Output { bytes } if bytes.len() == wanted as usize => Ok(bytes.to_vec()),
                    other => Err(unexpected(&other)),
                },
            )?;
            output.extend(piece);
        }
        Ok(output)
    }

    fn send(&mut self, model: &[u8]) -> Result<(), BoardError> {
        for (index, bytes) in model.chunks(PIECE_MAX).enumerate() {
            let offset = (index * PIECE_MAX) as u32;
            self.done(&Ask::Piece { offset, bytes })?;
        }
        Ok(())
    }

    fn done(&mut self, ask: &Ask<'_>) -> Result<(), BoardError> {
        self.ask(ask, PATIENCE, done)
    }

    /// Asks until an answer comes, and reads it.
    fn ask<T>(
        &mut self,
        ask: &Ask<'_>,
        patience: Duration,
        read: impl FnOnce(Answer<'_>) -> Result<T, String>,
    ) -> Result<T, BoardError> {
        self.number = self.number.wrapping_add(1);
        let mut frame = [0; FRAME_MAX];
        let length = encode(self.number, ask, &mut frame).expect("every ask fits a frame");
        let name = self.name.clone();
        let port = || name.clone();
        let begun = Instant::now();
        let mut asked = None;
        loop {
            if asked.is_none_or(|asked: Instant| asked.elapsed() >= AGAIN) {
                // A zero first: whatever was on the line ends there.
                let sent = self
                    .port
                    .write_all(&[0])
                    .and_then(|()| self.port.write_all(&frame[..length]));
                sent.and_then(|()| self.port.flush())
                    .map_err(|source| BoardError::Port { port: port(), source })?;
                asked = Some(Instant::now());
            }
            if !self
                .frame()
                .map_err(|source| BoardError::Port { port: port(), source })?
            {
                if begun.elapsed() >= patience {
                    return Err(BoardError::Silent {
                        port: port(),
                        seconds: patience.as_secs(),
                    });
                }
                continue;
            }
            let mut received = std::mem::take(&mut self.frame);
            let Some((number, bytes)) = open(&mut received) else {
                continue;
            };
            if number != self.number {
                continue;
            }
            return match message(bytes) {
                Some(Answer::NoMemory { needed, available }) => Err(BoardError::NoRoom {
                    port: port(),
                    needed,
                    available,
                }),
                Some(Answer::Refused { text }) => Err(BoardError::Declined {
                    port: port(),
                    text: text.to_string(),
                }),
                Some(answer) => read(answer).map_err(|reason| BoardError::Line { port: port(), reason }),
                None => Err(BoardError::Line {
                    port: port(),
                    reason: "an answer of another version".to_string(),
                }),
            };
        }
    }

    /// Reads until a frame is whole, which is then in `self.frame` without its zero; false where the line is silent.
    fn frame(&mut self) -> io::Result<bool> {
        loop {
            let mut byte = [0];
            match self.port.read(&mut byte) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) if byte == [0] => match self.frame.len() {
                    0 => {}
                    1..FRAME_MAX => return Ok(true),
                    _ => self.frame.clear(),
                },
                Ok(_) if self.frame.len() < FRAME_MAX => self.frame.extend(byte),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
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

fn size(model: &[u8]) -> u32 {
    // What is longer no board's memory holds, which says so.
    u32::try_from(model.len()).unwrap_or(u32::MAX)
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
