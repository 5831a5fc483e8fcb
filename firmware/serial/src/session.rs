//! A model that was loaded, until something else is asked for.

use arenite::{Kernels, Model, Progress, Session};
use arenite_protocol::serial::{Answer, Ask, PIECE_MAX};
use embedded_io::{Read, Write};

use crate::line::Line;
use crate::memory;

/// Makes a session in `memory`, says so to the ask `number`, and serves it. Gives the ask that is not for a session; `None` where the port ended or there is
/// none.
pub(crate) fn serve<K: Kernels, U: Read + Write>(
    number: u16,
    model: Model<'_, K>,
    memory: &mut [u8],
    measure: &mut dyn FnMut(&mut dyn FnMut()) -> u64,
    line: &mut Line<'_, U>,
) -> Option<(u16, Ask)> {
    let outputs = model.header().outputs.into();
    let available = memory::size(memory.len());
    let (arenas, state) = match memory::parts(&model, memory) {
        Ok(parts) => parts,
        Err(needed) => {
            let needed = memory::size(needed);
            line.answer(number, &Answer::NoMemory { needed, available });
            return None;
        }
    };
    let mut session = match Session::new(model, arenas, state) {
        Ok(session) => session,
        Err(error) => {
            line.refuse(number, &error);
            return None;
        }
    };
    line.answer(number, &Answer::Loaded { outputs });
    loop {
        let (number, ask) = line.next()?;
        match ask {
            Ask::Reset => {
                session.reset_state();
                line.answer(number, &Answer::Done);
            }
            Ask::Input { index, whole, offset } => {
                let bytes = line.bytes();
                let written = session.input_mut(index as usize).map(|input| {
                    if input.len() != whole as usize {
                        let whole = memory::size(input.len());
                        return Answer::InputSize { whole };
                    }
                    if memory::copy(bytes, input, offset) {
                        Answer::Done
                    } else {
                        Answer::Unexpected
                    }
                });
                line.outcome(number, written, |answer| answer);
            }
            Ask::Run => {
                let mut result = Ok(());
                let count = measure(&mut || result = session.run());
                line.outcome(number, result, |()| Answer::Ran { count });
            }
            Ask::Step => {
                let mut progress = Ok(Progress::Done);
                let count = measure(&mut || progress = session.step());
                line.outcome(number, progress, |progress| Answer::Stepped {
                    count,
                    last: progress == Progress::Done,
                });
            }
            Ask::Output { index, offset } => match session.output(index as usize) {
                Ok(output) => {
                    let whole = memory::size(output.len());
                    let bytes = output.get(offset as usize..).unwrap_or_default();
                    let bytes = bytes.get(..bytes.len().min(PIECE_MAX)).unwrap_or_default();
                    line.answer(number, &Answer::Output { whole, bytes });
                }
                Err(error) => line.refuse(number, &error),
            },
            other => return Some((number, other)),
        }
    }
}
