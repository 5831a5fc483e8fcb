//! `arenite verify`: the device's checks, and the proof that no step destroys what a later one reads.

use std::path::{Path, PathBuf};

use arenite::{SelfTestError, Trust, VerifyError};
use serde::Serialize;

use super::program::{Verdict, print_json};
use crate::files::print::out as print_out;
use crate::memory::prove;
use crate::model::ModelFile;
use crate::pieces::PiecesFile;
use crate::report::grouped;
use crate::{Error, ErrorKind, Result, self_test, sign};

/// Arguments of `arenite verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// Verifies the signature of the file by this key, public or private, in PEM.
    #[arg(long, value_name = "KEYFILE")]
    trust: Option<PathBuf>,
    /// The least counter that is accepted.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "trust")]
    at_least: u64,
    /// Prints the findings as JSON on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    target: String,
    /// Whether this host loaded the model with the device's own code; false where it lacks the target's kernels, whose operands
    /// are then checked by the tools.
    loaded: bool,
    steps: usize,
    /// Operands whose bytes were followed from writer to reader.
    reads: usize,
    /// The highest byte that any step touches, plus one; at most the arena's size.
    arena_touched_bytes: u64,
    arena_bytes: u64,
    /// Of a file whose signature was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
    /// Runs of the self-test, where the model has one and this host its kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    self_test_runs: Option<u32>,
}

#[derive(Serialize)]
struct Signature {
    key: String,
    counter: u64,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    if let Some(pieces) = PiecesFile::open(&args.model)? {
        return run_pieces(args, &pieces);
    }
    let file = ModelFile::open(&args.model)?;
    let signature = args.trust.as_ref().map(|key| signature(&file, key, args)).transpose()?;
    let mut self_test_runs = None;
    let loaded = match file.load() {
        Ok(model) => {
            self_test_runs = match self_test::pass(&model) {
                Ok(runs) => Some(runs),
                Err(SelfTestError::Missing) => None,
                Err(e) => {
                    return Err(Error::input(e.to_string())
                        .in_file(&args.model)
                        .help("pack the model again"));
                }
            };
            true
        }
        Err(e) if e.kind() == ErrorKind::Unsupported => false,
        Err(e) => return Err(e),
    };
    let view = file.view()?;
    let proof = prove::prove(&view).map_err(|e| e.in_file(&args.model))?;
    let report = Report {
        target: view.target_name().to_string(),
        loaded,
        steps: view.header().step_count as usize,
        reads: proof.reads,
        arena_touched_bytes: proof.arena_touched,
        arena_bytes: view.header().arena.iter().map(|&bytes| u64::from(bytes)).sum(),
        signature,
        self_test_runs,
    };
    let signed = match (&report.signature, file.envelope()) {
        (Some(Signature { key, counter }), _) => format!("signed by the key {key}, counter {counter}\n"),
        (None, Some(_)) => "signed; --trust KEYFILE verifies that\n".to_string(),
        (None, None) => String::new(),
    };
    tell(args, &report, &signed)
}

fn tell(args: &Args, report: &Report, more: &str) -> Result<Verdict> {
    if args.json {
        print_json(report)?;
        return Ok(Verdict::Good);
    }
    let how = if report.loaded {
        "passes the checks of a device"
    } else {
        "is intact; this host lacks the kernels of its target, so its operands were checked by the tools"
    };
    print_out(&format!(
        "{}: {how}\n{more}{} steps, {} reads: each finds the bytes that were written for it, in {} of {} bytes of arena\n",
        args.model.display(),
        report.steps,
        report.reads,
        grouped(report.arena_touched_bytes),
        grouped(report.arena_bytes)
    ))?;
    Ok(Verdict::Good)
}

/// A model in pieces: each as a device checks it, and one proof of all.
fn run_pieces(args: &Args, pieces: &PiecesFile) -> Result<Verdict> {
    if args.trust.is_some() {
        return Err(Error::new(ErrorKind::Usage, "--trust: a model in pieces is not signed").in_file(&args.model));
    }
    let mut loaded = true;
    for piece in &pieces.pieces {
        match piece.load() {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Unsupported => loaded = false,
            Err(e) => return Err(e),
        }
    }
    if loaded {
        // Opened as a device opens it: what the pieces must have in common, too.
        pieces.run(&[], &mut || {}, &mut |_, _| {})?;
    }
    let views: Vec<_> = pieces.pieces.iter().map(ModelFile::view).collect::<Result<_>>()?;
    let proof = prove::prove_pieces(&views).map_err(|e| e.in_file(&args.model))?;
    let report = Report {
        target: views
            .first()
            .map_or(String::new(), |view| view.target_name().to_string()),
        loaded,
        steps: views.iter().map(|view| view.header().step_count as usize).sum(),
        reads: proof.reads,
        arena_touched_bytes: proof.arena_touched,
        arena_bytes: pieces.sizes.arena.into(),
        signature: None,
        self_test_runs: None,
    };
    tell(args, &report, &format!("in {} pieces\n", views.len()))
}

/// Verifies the signature of all of the file, of a bundle too, as a device does.
fn signature(file: &ModelFile, key: &Path, args: &Args) -> Result<Signature> {
    let public = sign::read_public(key)?;
    let trust = Trust {
        keys: &[(sign::key_id(&public), public.to_bytes())],
        at_least: args.at_least,
    };
    let verified = arenite::verify(file.whole(), &trust).map_err(|e| {
        let error = Error::input(e.to_string()).in_file(file.path());
        match e {
            VerifyError::NotSigned => error.help("`pack --sign KEYFILE --sign-counter N` signs a file"),
            VerifyError::OldCounter { .. } => error.help("it is an older file than --at-least asks for"),
            _ => error.help("do not load it: get the file anew from whoever signs it"),
        }
    })?;
    Ok(Signature {
        key: format!("{:016x}", verified.key),
        counter: verified.counter,
    })
}
