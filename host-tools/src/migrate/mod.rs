//! Files of older format versions in today's.
//!
//! Until 1.0 a device reads one version. A version that replaces another adds an [`Upgrade`] from it, for as long as the older one's kernels and
//! layouts are known; where there is none, the file itself says how it is packed again.

mod v1;

use arenite::signed::Envelope;
use arenite::{Bundle, FORMAT_VERSION, LoadError, Stated, Target};

use crate::bundle;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Origin;

/// How a model of one version becomes one of the next.
#[derive(Debug, Clone, Copy)]
pub struct Upgrade {
    /// The version that it takes.
    pub from: u16,
    /// The same model as a file of version `from` + 1, with a right checksum; an error where a kernel or a layout of it is not known any more.
    pub convert: fn(&[u8]) -> Result<Vec<u8>>,
}

/// All there are, one from each version before today's.
pub const UPGRADES: &[Upgrade] = &[Upgrade {
    from: 1,
    convert: v1::to_2,
}];

/// A converted file.
#[derive(Debug, Clone, PartialEq)]
pub struct Migrated {
    /// It, unsigned.
    pub bytes: Vec<u8>,
    /// The version of each model before.
    pub versions: Vec<u16>,
    /// The signature that was dropped: it was over other bytes.
    pub dropped: Option<Envelope>,
}

/// Converts a model or a bundle, signed or not.
///
/// # Errors
/// [`ErrorKind::Input`] for a damaged file or no model; [`ErrorKind::Unsupported`] for a version from which nothing leads to today's, with the command
/// that packs the network again.
pub fn migrate(file: &[u8], upgrades: &[Upgrade]) -> Result<Migrated> {
    let dropped = Envelope::of(file);
    let content = arenite::content(file);
    let (bytes, versions) = if Bundle::is_bundle(content) {
        models(content, upgrades)?
    } else {
        let (bytes, version) = model(content, upgrades)?;
        (bytes, vec![version])
    };
    Ok(Migrated {
        bytes,
        versions,
        dropped,
    })
}

/// Every model of a bundle.
fn models(file: &[u8], upgrades: &[Upgrade]) -> Result<(Vec<u8>, Vec<u16>)> {
    let wrong = |e: LoadError| match e {
        LoadError::Version { found, .. } => Error::unsupported(format!("the bundle has version {found}"))
            .expected(format!("version {}", arenite::bundle::BUNDLE_VERSION))
            .help("pack its networks again: pack A B -o BUNDLE"),
        e => Error::input(e.to_string()).help("the bundle is damaged: pack it again"),
    };
    // A device wants an address, which says nothing of the file.
    let mut aligned = crate::model::Aligned::new(file.len());
    aligned.bytes().copy_from_slice(file);
    let bundle = Bundle::directory(aligned.bytes()).map_err(wrong)?;
    let (mut names, mut files, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..bundle.len() {
        let entry = bundle.entry(index).ok_or_else(|| wrong(LoadError::Header))?;
        let (bytes, version) = model(entry.bytes, upgrades).map_err(|e| e.at(format!("model `{}`", entry.name)))?;
        names.push(entry.name.to_string());
        files.push(bytes);
        versions.push(version);
    }
    Ok((bundle::assemble(&names, &files)?, versions))
}

/// One model, and the version that it had.
fn model(file: &[u8], upgrades: &[Upgrade]) -> Result<(Vec<u8>, u16)> {
    let damaged = |what: &str| Error::input(what).help("get the file anew, or pack the network again");
    let stated = Stated::of(file).ok_or_else(|| damaged("these bytes are no Arenite model"))?;
    let intact = stated
        .intact(file)
        .ok_or_else(|| damaged("the model is cut or damaged: length and checksum do not match"))?;
    if stated.version > FORMAT_VERSION {
        return Err(stale(format!(
            "the model has format version {}, newer than these tools, which write version {FORMAT_VERSION}",
            stated.version
        ))
        .help(format!("update these tools, or {}", again(&stated, intact))));
    }
    let mut bytes = intact.to_vec();
    for version in stated.version..FORMAT_VERSION {
        let converted = upgrades
            .iter()
            .find(|upgrade| upgrade.from == version)
            .ok_or_else(|| format!("nothing is left that converts version {version}"))
            .and_then(|upgrade| (upgrade.convert)(&bytes).map_err(|e| e.message().to_string()));
        bytes = converted.map_err(|why| {
            let message = format!("the model has format version {}, and {why}", stated.version);
            stale(message).help(again(&stated, intact))
        })?;
    }
    match Stated::of(&bytes) {
        Some(Stated {
            version: FORMAT_VERSION,
            ..
        }) => Ok((bytes, stated.version)),
        _ => Err(Error::internal("an upgrade does not write the next version")),
    }
}

fn stale(message: String) -> Error {
    Error::new(ErrorKind::Unsupported, message).expected(format!("version {FORMAT_VERSION}"))
}

/// The command that packs the network again, as far as the file tells.
pub fn again(stated: &Stated, file: &[u8]) -> String {
    let target = Target::ALL.get(usize::from(stated.target));
    let target = target.map_or("NAME", |target| target.name());
    let Ok(origin) = Origin::read(stated.metadata(file)) else {
        return format!("pack the network again: pack INPUT -o MODEL --target {target}");
    };
    let (name, batch) = (origin.text("name"), origin.number("batch"));
    let mut command = format!("pack INPUT -o MODEL --target {target}");
    if let Some(batch) = batch.filter(|&batch| batch > 1) {
        command += &format!(" --batch {batch}");
    }
    if let Some(name) = &name {
        command += &format!(" --name '{name}'");
    }
    let dialect = origin.text("dialect").unwrap_or_else(|| "network".into());
    format!(
        "pack the network again: {command}\n  INPUT is the {dialect} file of sha256 {}, and the other options are those given to {}",
        origin.input_sha256, origin.tool
    )
}
