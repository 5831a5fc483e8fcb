//! Learns on the board, from samples that come over its serial port one by one. A byte says what follows: `T` the inputs of a step of training, in their
//! order and as they are, behind which the step's outputs go back (the loss); `I` those of a run of inference, likewise; behind `S` goes the state, which
//! holds all that was learnt.
//!
//! `ARENITE_MODEL` names a file packed with `--train`; `docs/training.md` has the commands.
#![no_std]
#![no_main]

use arenite::Slot;
use arenite_firmware::Exchange;
use arenite_firmware::protocol::exit;
use arenite_firmware::uart::Uart;
use embedded_io::{Read, Write};

arenite_firmware::entry!(main);

arenite::include_model!(mod network = env!("ARENITE_MODEL"), loaded);

fn main(_: &mut Exchange) -> i32 {
    match serve() {
        Ok(true) => exit::DONE,
        Ok(false) => exit::REFUSED,
        Err(error) => {
            defmt::error!("{}", error);
            exit::REFUSED
        }
    }
}

/// Request after request, until the port ends; false for one that is none, or that the model does not serve.
fn serve() -> Result<bool, arenite::Error> {
    let mut session = network::session()?;
    let mut uart = Uart::start();
    let mut request = [0];
    while let Ok(()) = uart.read_exact(&mut request) {
        match request {
            [b'T'] => {
                if session.turn_to_training().is_none() {
                    defmt::error!("the model has no steps of training: pack it with --train");
                    return Ok(false);
                }
            }
            [b'I'] => session.turn_to_inference(),
            [b'S'] => {
                let bytes = session.model().state_bytes() as u32;
                let (region, offset) = (Slot::STATE, 0);
                let state = session.read(Slot { region, offset }, bytes).unwrap_or_default();
                let Ok(()) = uart.write_all(state);
                continue;
            }
            [other] => {
                defmt::error!("the byte {} is no request: T, I and S are", other);
                return Ok(false);
            }
        }
        let (mut inputs, mut outputs) = (0, 0);
        while session.model().input(inputs).is_some() {
            if uart.read_exact(session.input_mut(inputs)?).is_err() {
                return Ok(true);
            }
            inputs += 1;
        }
        session.run()?;
        while session.model().output(outputs).is_some() {
            let Ok(()) = uart.write_all(session.output(outputs)?);
            outputs += 1;
        }
    }
    Ok(true)
}
