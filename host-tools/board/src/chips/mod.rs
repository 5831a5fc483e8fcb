//! Chips: what they have, a project for one, and whether a model fits.

mod chip;
mod emulated;
mod fits;
#[cfg(feature = "tools")]
mod library;
#[cfg(feature = "tools")]
mod project;
mod table;

pub use chip::{Chip, Emulation, Runner, Support};
pub use fits::{Fit, fit};
#[cfg(feature = "tools")]
pub use library::library;
#[cfg(feature = "tools")]
pub use project::{Crates, File, IMAGE, NETWORK, RUNTIME, project};
pub use table::all;

use self::table::plain;
use crate::error::{Error, ErrorKind, Result};
use crate::spelling::meant;

/// The chip of this name.
///
/// # Errors
/// [`ErrorKind::Usage`] with all names.
pub fn named(name: &str) -> Result<Chip> {
    Chip::find(name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|chip| chip.name).collect();
        let beginning: Vec<_> = names
            .iter()
            .copied()
            .filter(|known| plain(known).starts_with(&plain(name)))
            .collect();
        if !name.is_empty() && !beginning.is_empty() {
            return Error::new(
                ErrorKind::Usage,
                format!("--chip {name}: a family, not a chip of the list"),
            )
            .expected(beginning.join(", "))
            .help("chips of a family differ in their cores, flash and RAM: name the one that you have");
        }
        let message = format!("--chip {name}: there is no such chip in the list");
        Error::new(ErrorKind::Usage, message).expected(names.join(", ")).help(
            meant(name, names.iter().copied())
                .unwrap_or_else(|| "a chip of the same core serves: then set flash and RAM in memory.x".to_string()),
        )
    })
}
