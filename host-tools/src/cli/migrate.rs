//! `arenite migrate`: a file of an older format version in today's.

use std::path::PathBuf;

use arenite::FORMAT_VERSION;

use super::program::Verdict;
use crate::files::{Output, Print, print, publish};
use crate::migrate::{self, UPGRADES};
use crate::model::ModelFile;
use crate::sign::Signer;
use crate::stage::unwatched;
use crate::{Error, ErrorKind, Result, pack};

/// Arguments of `arenite migrate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model or bundle.
    model: PathBuf,
    /// The file to write; `-` is standard output.
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// Signs the new file with this key, as `pack` does.
    #[arg(long, value_name = "KEYFILE", requires = "sign_counter")]
    sign: Option<PathBuf>,
    /// The counter of the new file.
    #[arg(long, value_name = "N", requires = "sign")]
    sign_counter: Option<u64>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let output = Output::to(&args.output)?;
    let report = Print::beside([&output], false)?;
    output.differs_from(&args.model)?;
    args.sign.iter().try_for_each(|key| output.differs_from(key))?;
    let signer = match (&args.sign, args.sign_counter) {
        (Some(key), Some(counter)) => Some(Signer::read(key, counter)?),
        _ => None,
    };
    let file = ModelFile::map(&args.model)?;
    let migrated = migrate::migrate(file.whole(), UPGRADES).map_err(|e| e.in_file(&args.model))?;
    let io = |e: std::io::Error| Error::io(output.path(), "write the model", &e);
    let draft = output.draft_of(&migrated.bytes).map_err(io)?;
    // A converted file passes the checks of a new file.
    for model in ModelFile::all_of(draft.file(), &args.model)? {
        is_whole(&model)?;
    }
    for model in ModelFile::all_of(draft.file(), output.path())? {
        pack::verify(&model, None, &mut unwatched)?;
    }
    if let Some(envelope) = migrated.dropped {
        let then = match &signer {
            Some(signer) => format!("the new file is signed by the key {:016x}", signer.key_id()),
            None => "sign the new file with --sign KEYFILE --sign-counter N".to_string(),
        };
        print::note(format_args!(
            "warning: the signature of the key {:016x}, counter {}, is dropped: {then}",
            envelope.key, envelope.counter
        ));
    }
    let draft = match &signer {
        Some(signer) => signer.sign_draft(draft, &output)?,
        None => draft,
    };
    let old: Vec<u16> = migrated
        .versions
        .iter()
        .copied()
        .filter(|&version| version != FORMAT_VERSION)
        .collect();
    let what = match &old[..] {
        [] => format!("was of format version {FORMAT_VERSION} already, nothing is converted"),
        [first, ..] => format!("converted from format version {first} to {FORMAT_VERSION}"),
    };
    report.text(&format!(
        "{}: {what} -> {}\n",
        args.model.display(),
        output.path().display()
    ))?;
    publish(vec![draft])?;
    Ok(Verdict::Good)
}

/// That the old file was one that a device loads and whose plan can be proven: its faults are in the new one as well.
fn is_whole(model: &ModelFile) -> Result<()> {
    match model.load() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        loaded => _ = loaded?,
    }
    model.view()?.metadata().map(drop)
}
