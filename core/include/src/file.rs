//! The file: read, and checked as a device checks it, with the rules of every backend's kernels.

use std::fs;
use std::path::PathBuf;

use arenite_checks::{Bundle, KernelId, MODEL_ALIGN, Model, content};

/// The form of `include_model!` that takes every model.
pub(crate) const LOADED_MODEL: &str = "include_model!(mod NAME = \"FILE\", loaded)";

/// The form of `include_bundle!` that takes every model.
pub(crate) const LOADED_BUNDLE: &str = "include_bundle!(mod NAME = \"FILE\", loaded, MODEL = \"ENTRY\")";

/// Bytes that begin where a model may lie.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

/// A file as it was read.
pub(crate) struct Read {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its content: of a signed file what is signed.
    pub(crate) content: Aligned,
    /// Its bytes.
    pub(crate) length: usize,
    /// Bytes of it ahead of its content.
    pub(crate) ahead: usize,
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
pub(crate) fn read(path: PathBuf) -> Result<Read, String> {
    let file = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let content = content(&file);
    Ok(Read {
        ahead: content.as_ptr().addr() - file.as_ptr().addr(),
        content: Aligned::of(content),
        length: file.len(),
        path,
    })
}

/// Refuses a model in pieces (`pack --region NAME=SIZE:stream`), whose weights lie in a flash that no program has in its memory.
///
/// # Errors
/// Where the bundle is one.
fn whole(bundle: &Bundle<'_>) -> Result<(), String> {
    let count = bundle.len();
    let in_pieces = |index: usize| {
        bundle
            .entry(index)
            .is_some_and(|entry| entry.name == format!("{index}/{count}"))
    };
    if count > 0 && (0..count).all(in_pieces) {
        return Err(
            "the model is in pieces (`pack --region NAME=SIZE:stream`), which a program reads from a flash of its own with the crate arenite-stream: \
             pack it without `:stream` to include it"
                .to_owned(),
        );
    }
    Ok(())
}

/// A model's file in a bundle.
pub(crate) struct Entry {
    /// The file.
    pub(crate) content: Aligned,
    /// Bytes of the bundle ahead of it.
    pub(crate) ahead: usize,
}

/// Finds the file of a model in a bundle.
///
/// # Errors
/// Why there is none of this name.
pub(crate) fn entry(bundle: &Aligned, name: &str) -> Result<Entry, String> {
    if !Bundle::is_bundle(bundle.bytes()) {
        return Err(
            "this is no bundle of several models: include a single model with arenite::include_model!".to_owned(),
        );
    }
    let models = Bundle::open(bundle.bytes()).map_err(|error| error.to_string())?;
    whole(&models)?;
    let mut entries = (0..models.len()).filter_map(|index| models.entry(index));
    entries
        .find(|entry| entry.name == name)
        .map(|entry| Entry {
            content: Aligned::of(entry.bytes),
            ahead: entry.bytes.as_ptr().addr() - bundle.bytes().as_ptr().addr(),
        })
        .ok_or_else(|| format!("the bundle has no model of this name, {name:?}: `arenite inspect` lists them"))
}

/// The model in a file, checked. `form`: the macro's form that takes what this one refuses.
///
/// # Errors
/// Reasons for which a load refuses the file, and features that only a loaded model has.
pub(crate) fn model<'f>(file: &'f Aligned, form: &str) -> Result<Model<'f>, String> {
    if Bundle::is_bundle(file.bytes()) {
        if let Ok(bundle) = Bundle::open(file.bytes()) {
            whole(&bundle)?;
        }
        return Err(
            "this is a bundle of several models: name those that you want with arenite::include_bundle!".to_owned(),
        );
    }
    let model = Model::load(file.bytes()).map_err(|error| error.to_string())?;
    match only_loaded(&model) {
        Some(what) => Err(format!("{what}: include it as {form}")),
        None => Ok(model),
    }
}

/// The feature of a model that a compiled one has not.
fn only_loaded(model: &Model<'_>) -> Option<&'static str> {
    let header = model.header();
    let has = |kind: fn(KernelId) -> bool| {
        let mut kernels = model.steps().flatten();
        kernels.any(|(kernel, _)| KernelId::from_u8(kernel).is_some_and(kind))
    };
    if model.accelerator().is_some() {
        Some("the model is for an accelerator, which the loaded form alone hands steps to")
    } else if model.cores() > 1 {
        Some("the model is for several cores, which the loaded form alone runs on")
    } else if has(|kernel| kernel == KernelId::EthosU) {
        Some("the model has commands of an Ethos-U, which the loaded form alone hands over")
    } else if header.rolling.len > 0 {
        Some(
            "the model is fed row by row (`pack --stream-input`), which the loaded form alone is, with the feature `rolling`",
        )
    } else if header.training.len > 0 {
        Some("the model has steps of training (`pack --train`), which the loaded form alone runs")
    } else if header.tokenizer.len > 0 {
        Some("the model has a tokenizer, which the loaded form alone keeps")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite_checks::blob::{Lengths, seal, write_step};
    use arenite_checks::ops::elementwise::UnaryF32;
    use arenite_checks::ops::pointwise::UnaryOp;
    use arenite_checks::{Header, Slot, Step};

    fn at(offset: u32) -> Slot {
        Slot { region: 0, offset }
    }

    /// A file of one step, with so many bytes of tokenizer and of training.
    fn file(step: &Step, [tokenizer, training]: [usize; 2]) -> Aligned {
        let mut header = Header {
            step_count: 1,
            arena: [64, 0, 0, 0],
            ..Header::default()
        };
        let mut steps = Vec::new();
        write_step(step, &mut steps, &mut header.kernels).expect("a step");
        let lengths = Lengths {
            steps: steps.len(),
            tokenizer,
            training,
            ..Lengths::default()
        };
        header.place(lengths).expect("a small file");
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        bytes.extend(steps);
        bytes.resize(header.total as usize, 0);
        seal(&mut bytes);
        Aligned::of(&bytes)
    }

    fn square() -> Step {
        Step::UnaryF32(UnaryF32 {
            output: at(0),
            input: at(16),
            count: 4,
            op: UnaryOp::Square,
        })
    }

    fn refusal(step: &Step, sections: [usize; 2], form: &str) -> Option<String> {
        model(&file(step, sections), form).map(|_| ()).err()
    }

    #[test]
    fn training_and_a_tokenizer_are_refused() {
        let said = refusal(&square(), [0, 24], LOADED_MODEL).expect("refused");
        assert!(
            said.contains("steps of training") && said.contains(LOADED_MODEL),
            "{said}"
        );
        let said = refusal(&square(), [12, 0], LOADED_BUNDLE).expect("refused");
        assert!(
            said.contains("a tokenizer") && said.contains("include_bundle!(mod NAME = \"FILE\", loaded"),
            "{said}"
        );
    }
}
