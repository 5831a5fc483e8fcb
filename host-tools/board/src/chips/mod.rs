//! Chips: what they have, a project for one, and whether a model fits.

mod fits;
#[cfg(feature = "tools")]
mod project;
mod table;

pub use fits::{Fit, fit};
#[cfg(feature = "tools")]
pub use project::{Crates, File, IMAGE, NETWORK, RUNTIME, project};
pub use table::{Chip, Runner, Support, all};

use crate::error::{Error, ErrorKind, Result};
use crate::spelling::meant;

/// The chip of this name.
///
/// # Errors
/// [`ErrorKind::Usage`] with all names.
pub fn named(name: &str) -> Result<Chip> {
    Chip::find(name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|chip| chip.name).collect();
        let beginning = names.iter().filter(|known| known.starts_with(name)).count();
        let message = match beginning {
            0 | 1 => format!("--chip {name}: there is no such chip in the list"),
            several => format!("--chip {name}: the names of {several} chips begin so"),
        };
        Error::new(ErrorKind::Usage, message).expected(names.join(", ")).help(
            meant(name, names.iter().copied())
                .unwrap_or_else(|| "a chip of the same core serves: then set flash and RAM in memory.x".to_string()),
        )
    })
}
