//! `arenite update`: a model into the slots of a board.

use std::path::PathBuf;
use std::time::Duration;

use super::program::Verdict;
use super::progress::Shown;
use crate::board::{self, SerialPort};
use crate::files::print;
use crate::model::ModelFile;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite update`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file, packed with --self-test; a signed one where the board has keys.
    model: PathBuf,
    /// The board's port, as /dev/ttyACM0 or /dev/ttyACM0:115200. Its program calls `arenite_serial::serve` with slots.
    #[arg(long, value_name = "PORT[:BAUD]")]
    serial: SerialPort,
    /// Ends the trial once the self-test has passed; else the program on the board does, when it has seen the model work.
    #[arg(long)]
    confirm: bool,
    /// How long erasing, and the self-test, may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    refuse_early(&file)?;
    let (mut link, board) = board::connect(&args.serial)?;
    if !board.slots {
        return Err(Error::unsupported(format!(
            "{}: `{}` keeps no models in slots",
            args.serial.path, board.name
        ))
        .help("give `arenite_serial::serve` an `InSlots`; docs/firmware.md has an example"));
    }
    let bytes = file.whole();
    let stage = format!("writing to {}", board.name);
    let shown = Shown::new(&stage);
    let timeout = Duration::from_secs(args.timeout);
    let runs = link.update(bytes, timeout, &mut |written| {
        shown.told(&stage, written as u64, bytes.len() as u64)
    });
    drop(shown);
    let runs = runs?;
    if args.confirm {
        link.confirm()?;
    }
    let then = if args.confirm {
        "confirmed"
    } else {
        "on trial until the program confirms it"
    };
    print::out(&format!(
        "{}: {} bytes written, {runs} run{} of the self-test passed, {then}\n",
        board.name,
        bytes.len(),
        if runs == 1 { "" } else { "s" },
    ))?;
    Ok(Verdict::Good)
}

/// Before minutes on the line: what no board takes. A file of kernels that this host lacks is the board's to judge.
fn refuse_early(file: &ModelFile) -> Result<()> {
    match file.load() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    if file.view()?.header().self_test.len == 0 {
        return Err(
            Error::input("the model has no self-test, which a board wants before it uses an update")
                .in_file(file.path())
                .help("pack it with --self-test X.npz"),
        );
    }
    Ok(())
}
