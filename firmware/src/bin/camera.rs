//! Classifies images whose rows come over the board's serial port, one by one and as they are: no image is ever whole on the board. Behind the last row of
//! each it sends the output's bytes.
//!
//! `ARENITE_MODEL` names a file packed with `--stream-input`; `docs/rolling.md` has the commands.
#![no_std]
#![no_main]

use arenite_firmware::Exchange;
use arenite_firmware::protocol::exit;
use arenite_firmware::uart::Uart;
use embedded_io::{Read, Write};

arenite_firmware::entry!(main);

arenite::include_model!(mod network = env!("ARENITE_MODEL"), loaded);

/// The largest row, in bytes.
const MOST_ROW: usize = 512;

fn main(_: &mut Exchange) -> i32 {
    match classify() {
        Ok(()) => exit::DONE,
        Err(error) => {
            defmt::error!("{}", error);
            exit::REFUSED
        }
    }
}

/// Image after image, until the port ends.
fn classify() -> Result<(), arenite::Error> {
    let mut session = network::session()?;
    let mut uart = Uart::start();
    let mut place = [0; MOST_ROW];
    let bytes = session.model().rows_of_input(0).map_or(0, |(bytes, _)| bytes);
    let row = place.get_mut(..bytes).unwrap_or_default();
    loop {
        session.restart();
        let mut left = 1;
        while left > 0 {
            if uart.read_exact(row).is_err() {
                return Ok(());
            }
            left = session.feed_rows(0, row)?;
        }
        session.run()?;
        let Ok(()) = uart.write_all(session.output(0)?);
    }
}
