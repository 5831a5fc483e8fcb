//! The file: read, and checked as a device checks it, with the rules of every backend's kernels.

use std::fs;

use arenite_checks::{Bundle, KernelId, MODEL_ALIGN, Model, content};

/// Bytes that begin where a model may lie.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn of(file: &[u8]) -> Self {
        let mut bytes = Vec::<u8>::with_capacity(file.len() + MODEL_ALIGN);
        let start = bytes.as_ptr().align_offset(MODEL_ALIGN).min(MODEL_ALIGN);
        bytes.resize(start, 0);
        bytes.extend_from_slice(file);
        Self { bytes, start }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// Reads a file; of a signed one what is signed, which nothing verifies: the program is believed as the file is.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read(path: &str) -> Result<Aligned, String> {
    let file = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Aligned::of(content(&file)))
}

/// The file of a model in a bundle.
///
/// # Errors
/// Why there is none of this name.
pub(crate) fn entry(bundle: &Aligned, name: &str) -> Result<Aligned, String> {
    if !Bundle::is_bundle(bundle.bytes()) {
        return Err(
            "this is no bundle of several models: include a single model with arenite::include_model!".to_owned(),
        );
    }
    let models = Bundle::open(bundle.bytes()).map_err(|error| error.to_string())?;
    let mut entries = (0..models.len()).filter_map(|index| models.entry(index));
    entries
        .find(|entry| entry.name == name)
        .map(|entry| Aligned::of(entry.bytes))
        .ok_or_else(|| format!("the bundle has no model of this name, {name:?}: `arenite inspect` lists them"))
}

/// The model in a file, checked.
///
/// # Errors
/// Reasons for which a load refuses the file, and features that only a loaded model has.
pub(crate) fn model(file: &Aligned) -> Result<Model<'_>, String> {
    if Bundle::is_bundle(file.bytes()) {
        return Err(
            "this is a bundle of several models: name those that you want with arenite::include_bundle!".to_owned(),
        );
    }
    let model = Model::load(file.bytes()).map_err(|error| error.to_string())?;
    let loaded = |what: &str| Err(format!("{what}: include it as `mod NAME = \"FILE\", loaded`"));
    if model.accelerator().is_some() {
        return loaded("the model is for an accelerator, which the loaded form alone hands steps to");
    }
    if model.cores() > 1 {
        return loaded("the model is for several cores, which the loaded form alone runs on");
    }
    if model
        .steps()
        .flatten()
        .any(|(kernel, _)| kernel == KernelId::EthosU as u8)
    {
        return loaded("the model has commands of an Ethos-U, which the loaded form alone hands over");
    }
    Ok(model)
}
