//! Models one behind the other in a file, behind a directory: bundles, and models in pieces.

use arenite::bundle::{BUNDLE_ENTRY, write_directory};

use crate::error::{Error, ErrorKind, Result};

/// Models start at multiples of this, as weights do within them.
pub(crate) const MODEL_ALIGN: usize = 64;

/// The bundle of these models, whose names fit an entry.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] beyond 4 GiB.
pub fn assemble(names: &[String], files: &[Vec<u8>]) -> Result<Vec<u8>> {
    let order: Vec<usize> = (0..files.len()).collect();
    assemble_in(&order, names, files)
}

/// The same, the models lying in this order.
///
/// # Errors
/// As [`assemble`].
pub(crate) fn assemble_in(order: &[usize], names: &[String], files: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut at = (BUNDLE_ENTRY * (files.len() + 1)).next_multiple_of(MODEL_ALIGN);
    let mut places = vec![0; files.len()];
    for &index in order {
        places[index] = at;
        at = (at + files[index].len()).next_multiple_of(MODEL_ALIGN);
    }
    let too_large = || Error::new(ErrorKind::DoesNotFit, "the bundle needs more than 4 GiB");
    let word = |n: usize| u32::try_from(n).map_err(|_| too_large());
    let total = word(at)?;
    let mut entries = Vec::new();
    for ((name, &offset), file) in names.iter().zip(&places).zip(files) {
        entries.push((name.as_str(), word(offset)?, word(file.len())?));
    }
    let mut bytes = vec![0; BUNDLE_ENTRY * (files.len() + 1)];
    write_directory(total, entries.into_iter(), &mut bytes).ok_or_else(|| Error::internal("a bundle's directory"))?;
    for &index in order {
        bytes.resize(places[index], 0);
        bytes.extend_from_slice(&files[index]);
    }
    bytes.resize(at, 0);
    Ok(bytes)
}
