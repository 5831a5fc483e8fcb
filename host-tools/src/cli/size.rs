//! `arenite size`: whether a model fits a chip.

use std::path::PathBuf;

use super::program::{Verdict, print_json};
use crate::Result;
use crate::chips::{self, Fit};
use crate::files::print;
use crate::model::ModelFile;
use crate::report::grouped;

/// Arguments of `arenite size`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// The chip, by its whole name or part number. Without it all are listed.
    #[arg(long, value_name = "NAME")]
    chip: Option<String>,
    /// Prints the findings as JSON on stdout: one object, or a list of all.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    let file = ModelFile::open(&args.model)?;
    let view = file.view()?;
    let of = |chip| chips::fit(&view, chip).map_err(|e| e.in_file(&args.model));
    let Some(name) = &args.chip else {
        let fits = chips::all().iter().map(of).collect::<Result<Vec<_>>>()?;
        if args.json {
            print_json(&fits)?;
        } else {
            let lines: String = fits.iter().map(|fit| line(fit) + "\n").collect();
            print::out(&format!(
                "{lines}clocks and memories are those of the chips' data sheets; milliseconds are estimates at the highest clock\n"
            ))?;
        }
        return Ok(Verdict::Good);
    };
    let fit = of(&chips::named(name)?)?;
    if args.json {
        print_json(&fit)?;
    } else {
        let reasons: String = fit.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
        print::out(&format!("{}\n{reasons}", line(&fit)))?;
    }
    Ok(if fit.fits { Verdict::Good } else { Verdict::Bad })
}

fn line(fit: &Fit) -> String {
    let of = |bytes, all| format!("{} of {}", grouped(bytes), grouped(all));
    let time = fit
        .milliseconds
        .map_or(String::new(), |ms| format!(", about {} ms", significant(ms)));
    format!(
        "{:<12} {:<12} flash {}, RAM {}{time}",
        fit.chip,
        if fit.fits { "fits" } else { "does not fit" },
        of(fit.flash_bytes, fit.flash_capacity_bytes),
        of(fit.ram_bytes, fit.ram_capacity_bytes)
    )
}

/// Two digits: more would claim too much.
fn significant(ms: f64) -> String {
    let digits = if ms <= 0.0 {
        0
    } else {
        (1 - ms.log10().floor() as i32).max(0) as usize
    };
    format!("{ms:.digits$}")
}
