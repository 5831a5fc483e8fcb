//! The digit classifier as a task: one source for RTIC, Embassy's executor and a loop, over a [`Board`] that is a camera and a display.
//!
//! `ARENITE_MODEL` names the packed model when this is built.
#![no_std]

#[cfg(feature = "gesture")]
pub mod chip;
#[cfg(feature = "mps2-an386")]
pub mod mps2;
#[cfg(feature = "sensor")]
pub mod wires;

use arenite::Progress;
use embassy_futures::yield_now;

arenite::include_model!(pub mod digits = env!("ARENITE_MODEL"), loaded);

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Functions that the classifier wants of a board.
pub trait Board {
    /// The next image; `None` ends the program.
    fn image(&mut self) -> Option<&digits::Input>;
    /// Shows the digit that was seen.
    fn show(&mut self, digit: usize);
}

/// Classifies what the camera sees, and gives the other tasks a turn after each step.
///
/// # Errors
/// Those of the session.
pub async fn classify(board: &mut impl Board) -> Result<(), arenite::Error> {
    let mut session = digits::session()?;
    while let Some(image) = board.image() {
        digits::set_inputs(&mut session, image)?;
        while let Progress::Step { .. } = session.step()? {
            yield_now().await;
        }
        let [(digit, _)] = arenite::top(digits::outputs(&session)?);
        board.show(digit);
    }
    Ok(())
}

/// A board in qemu: its camera shows [`IMAGES`], its display is the host's terminal.
#[derive(Debug, Default)]
pub struct Qemu {
    shown: usize,
}

impl Board for Qemu {
    fn image(&mut self) -> Option<&digits::Input> {
        let image = IMAGES.get(self.shown);
        self.shown += 1;
        image
    }

    fn show(&mut self, digit: usize) {
        semihosting::println!("this is a {digit}");
    }
}

/// Says how the program ended, and how often something else had its turn meanwhile; ends qemu.
pub fn end(result: Result<(), arenite::Error>, turns: u32) -> ! {
    match result {
        Ok(()) => {
            semihosting::println!("others had {turns} turns");
            semihosting::process::exit(0)
        }
        Err(error) => {
            semihosting::eprintln!("{error}");
            semihosting::process::exit(1)
        }
    }
}
