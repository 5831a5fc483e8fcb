//! `arenite doctor`: what is installed of what boards need.

use super::program::{Verdict, print_json};
use crate::Result;
use crate::board;
use crate::files::print;
use crate::files::print::out as print_out;

/// Arguments of `arenite doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Prints the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Missing things make the exit status 1, so that scripts can ask.
pub(super) fn run(args: &Args) -> Result<Verdict> {
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
    if !complete {
        print::note("`cargo xtask setup` installs what is missing");
    }
    Ok(if complete { Verdict::Good } else { Verdict::Bad })
}
