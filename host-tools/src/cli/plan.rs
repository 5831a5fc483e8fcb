//! `arenite plan`: the arena planner alone.

use super::program::{Verdict, print_json};
use super::progress::Shown;
use crate::files::{Output, Print, publish};
use crate::memory::plan::{self, CommandError, PlanArgs};
use crate::{Error, ErrorKind, Result};

pub(super) fn run(args: &PlanArgs) -> Result<Verdict> {
    let output = args.output.as_deref().map(Output::to).transpose()?;
    let print = Print::beside(&output, args.json)?;
    let shown = Shown::new("reading the buffers");
    let planned = plan::command(args, &mut |stage, done, of| shown.told(stage, done, of));
    drop(shown);
    let (report, draft) = planned.map_err(|e| match e {
        CommandError::File(e) => e,
        CommandError::DoesNotFit { .. } => Error::new(ErrorKind::DoesNotFit, e.to_string()),
        CommandError::Check(_) => Error::internal(e.to_string()),
        CommandError::Csv { .. } | CommandError::Plan { .. } => Error::input(e.to_string()),
    })?;
    if args.json {
        print_json(&report)?
    } else {
        print.text(&format!("{report}\n"))?
    }
    publish(draft.into_iter().collect())?;
    Ok(Verdict::Good)
}
