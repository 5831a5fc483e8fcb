//! A model that was loaded, until something else is asked for.

use arenite::{Kernels, Model, Progress, Session};
use arenite_protocol::serial::{Answer, PIECE_MAX};
use embedded_io::{Read, Write};

use crate::line::{Line, Said};
use crate::memory;

/// Makes a session in `memory`, says so to the ask `number`, and serves it. Gives the ask that is not for a session; `None` where the port ended or there is none.
pub(crate) fn serve<K: Kernels, U: Read + Write>(
    number: u16,
    model: Model<'_, K>,
    memory: &mut [u8],
    measure: &mut dyn FnMut(&mut dyn FnMut()) -> u64,
    line: &mut Line<'_, U>,
) -> Option<(u16, Said)> {
    let header = model.header();
    let available = memory.len() as u32;
    let (arenas, state) = match memory::parts(&model, memory) {
        Ok(parts) => parts,
        Err(needed) => {
            let needed = needed as u32;
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
    let (input_bytes, output_bytes) = (header.input_bytes, header.output_bytes);
    line.answer(
        number,
        &Answer::Loaded {
            input_bytes,
            output_bytes,
        },
    );
    loop {
        let (number, said) = line.next()?;
        match said {
            Said::Reset => {
                session.reset_state();
                line.answer(number, &Answer::Done);
            }
            Said::Input { offset } => {
                let mut before = offset as usize;
                let mut bytes = line.bytes();
                let mut written = Ok(());
                for index in 0..usize::from(header.inputs) {
                    match session.input_mut(index) {
                        Ok(input) => {
                            let here = bytes.len().min(input.len().saturating_sub(before));
                            let (these, others) = bytes.split_at_checked(here).unwrap_or_default();
                            memory::copy(these, input, before);
                            before = if here > 0 {
                                0
                            } else {
                                before.saturating_sub(input.len())
                            };
                            bytes = others;
                        }
                        Err(error) => written = Err(error),
                    }
                }
                let all = bytes.is_empty();
                line.outcome(
                    number,
                    written,
                    |()| if all { Answer::Done } else { Answer::Unexpected },
                );
            }
            Said::Run => {
                let mut result = Ok(());
                let count = measure(&mut || result = session.run());
                line.outcome(number, result, |()| Answer::Ran { count });
            }
            Said::Step => {
                let mut progress = Ok(Progress::Done);
                let count = measure(&mut || progress = session.step());
                line.outcome(number, progress, |progress| Answer::Stepped {
                    count,
                    last: progress == Progress::Done,
                });
            }
            Said::Output { offset, length } => {
                let mut piece = [0; PIECE_MAX];
                let (mut filled, mut before) = (0, offset as usize);
                let length = (length as usize).min(PIECE_MAX);
                let mut read = Ok(());
                for index in 0..usize::from(header.outputs) {
                    match session.output(index) {
                        Ok(output) => {
                            let these = output.get(before..).unwrap_or_default();
                            let room = piece.get_mut(..length).unwrap_or_default();
                            let here = these.len().min(length - filled);
                            memory::copy(these, room, filled);
                            filled += here;
                            before = before.saturating_sub(output.len());
                        }
                        Err(error) => read = Err(error),
                    }
                }
                match read {
                    Err(error) => line.refuse(number, &error),
                    Ok(()) => match piece.get(..length) {
                        Some(bytes) if filled == length => line.answer(number, &Answer::Output { bytes }),
                        _ => line.answer(number, &Answer::Unexpected),
                    },
                }
            }
            other => return Some((number, other)),
        }
    }
}
