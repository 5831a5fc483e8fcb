//! `arenite doctor`: what is installed of what boards need.

use super::program::{Verdict, print_json};
use crate::board::{self, Remedies, install};
use crate::files::print;
use crate::files::print::out as print_out;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Prints the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Installs what is missing: says each step, then takes it. Nothing that is installed is removed: a qemu that apt may not install is unpacked beside.
    #[arg(long)]
    fix: bool,
}

/// Missing things make the exit status 1, so that scripts can ask.
pub(super) fn run(args: &Args) -> Result<Verdict> {
    if args.fix {
        fix()?;
    }
    let findings = board::doctor();
    if args.json {
        print_json(&findings)?;
    } else {
        let width = findings.iter().map(|f| f.what.len()).max().unwrap_or(0);
        let mut text = String::new();
        for finding in &findings {
            let line = match &finding.found {
                Some(found) => format!("ok       {:width$}  {found}\n", finding.what),
                None => format!("missing  {:width$}  {}\n", finding.what, finding.remedy),
            };
            text.push_str(&line);
        }
        print_out(&text)?;
    }
    let complete = findings.iter().all(|f| f.found.is_some());
    if !complete && !args.fix {
        print::note("`arenite doctor --fix` installs what is missing");
    }
    Ok(if complete { Verdict::Good } else { Verdict::Bad })
}

/// Installs what is missing.
fn fix() -> Result<()> {
    let Remedies { targets, qemus, left } = board::remedies();
    if !(targets.is_empty() && qemus.is_empty()) {
        print::note("steps:");
        let steps = targets.iter().chain(&qemus);
        steps.for_each(|step| print::note(format_args!("  {step}")));
    }
    for finding in left {
        print::note(format_args!(
            "not installed by a step: {}: {}",
            finding.what, finding.remedy
        ));
    }
    let taken = install::take(&targets).and_then(|()| board::take_qemus(&qemus));
    taken.map_err(|message| {
        let (message, help) = message.split_once('\n').unwrap_or((&message, ""));
        Error::new(ErrorKind::Io, message).help(help)
    })
}
