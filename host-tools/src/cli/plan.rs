//! `arenite plan`: the arena planner alone.

use super::{Verdict, print_json, print_out};
use crate::memory::plan::{self, CommandError, PlanArgs};
use crate::{Error, ErrorKind, Result};

pub(super) fn run(args: &PlanArgs) -> Result<Verdict> {
    let report = plan::command(args).map_err(|e| {
        let kind = match e {
            CommandError::DoesNotFit { .. } => ErrorKind::DoesNotFit,
            CommandError::Read { .. } | CommandError::Write { .. } => ErrorKind::Io,
            CommandError::Check(_) => ErrorKind::Internal,
            _ => ErrorKind::Input,
        };
        Error::new(kind, e.to_string())
    })?;
    match args.json {
        true => print_json(&report)?,
        false => print_out(&format!("{report}\n"))?,
    }
    Ok(Verdict::Good)
}
