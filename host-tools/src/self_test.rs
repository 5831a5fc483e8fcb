//! Self-tests: sample inputs, and what the model computes of them here, put into its file for a device to compare.

use std::path::Path;

use arenite::blob::{Section, seal};
use arenite::{DType, Header, MAX_REGIONS, Model, Port};

use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output};
use crate::model::{self, Aligned, ModelFile};
use crate::samples;

/// The self-test starts at a multiple of this from the file's start.
pub(crate) const ALIGN: usize = 16;

/// Appends a self-test to a draft: the inputs of `path` (`.npz` with an array for each input, or `.npy` for a single one; one more leading axis is a
/// sequence of runs, state carried over), and what a device must compute of them. `note` hears of conversions.
///
/// # Errors
/// [`ErrorKind::Io`], [`ErrorKind::Input`] for samples that are not the model's inputs; [`ErrorKind::Unsupported`] where this host lacks the target's kernels.
pub fn attach(draft: Draft, output: &Output, path: &Path, note: &mut dyn FnMut(String)) -> Result<Draft> {
    let io = |e: std::io::Error| Error::io(output.path(), "write the model", &e);
    let section = {
        let file = ModelFile::of(draft.file(), output.path()).map_err(io)?;
        let model = file.load().map_err(|e| match e.kind() {
            ErrorKind::Unsupported => {
                Error::unsupported("--self-test: this host lacks the kernels that compute the outputs")
            }
            _ => e,
        })?;
        let view = file.view()?;
        let runs = samples::read(path, &view.inputs, &|array, _, _| Ok(array), note).map_err(|e| e.in_file(path))?;
        let results = model::run(&model, &runs, false, &mut |_, _, _| {})?;
        encode(&runs, &results, &view.outputs)?
    };
    let mut bytes = draft.bytes().map_err(io)?;
    bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    let too_large = || {
        Error::new(
            ErrorKind::DoesNotFit,
            "the model and its self-test need more than 4 GiB",
        )
    };
    let place = Section {
        offset: u32::try_from(bytes.len()).map_err(|_| too_large())?,
        len: u32::try_from(section.len()).map_err(|_| too_large())?,
    };
    bytes.extend(section);
    let header = Header {
        total: u32::try_from(bytes.len()).map_err(|_| too_large())?,
        self_test: place,
        ..Header::parse(&bytes).map_err(|e| Error::internal(e.to_string()))?
    };
    let mut head = Vec::new();
    header.write(&mut head);
    bytes[..head.len()].copy_from_slice(&head);
    seal(&mut bytes);
    let mut aligned = Aligned::new(bytes.len());
    aligned.bytes().copy_from_slice(&bytes);
    let passed = Model::load(aligned.bytes())
        .map_err(|e| e.to_string())
        .and_then(|model| pass(&model).map_err(|e| e.to_string()));
    passed.map_err(|e| Error::internal(format!("the new self-test is not passed: {e}")).help("please report it"))?;
    output.draft_of(&bytes).map_err(io)
}

/// Runs the self-test of a model here.
///
/// # Errors
/// As [`Model::self_test`].
pub fn pass(model: &Model<'_>) -> std::result::Result<u32, arenite::SelfTestError> {
    let mut arenas: [Aligned; MAX_REGIONS] = std::array::from_fn(|region| Aligned::new(model.arena_bytes(region)));
    let mut state = Aligned::new(model.state_bytes());
    let [a, b, c, d] = &mut arenas;
    model.self_test_with([a.bytes(), b.bytes(), c.bytes(), d.bytes()], state.bytes())
}

/// The number of runs, then for each its inputs and what is expected of each output: the values of f32, a CRC-32 of all else.
fn encode(runs: &[Vec<Vec<u8>>], results: &[Vec<Vec<u8>>], ports: &[Port<'_>]) -> Result<Vec<u8>> {
    let count = u32::try_from(runs.len()).map_err(|_| Error::input("more than 4294967295 samples"))?;
    let mut bytes = count.to_le_bytes().to_vec();
    for (inputs, outputs) in runs.iter().zip(results) {
        inputs.iter().for_each(|input| bytes.extend(input));
        for (output, port) in outputs.iter().zip(ports) {
            match port.dtype {
                DType::F32 => bytes.extend(output),
                _ => bytes.extend(crc32fast::hash(output).to_le_bytes()),
            }
        }
    }
    Ok(bytes)
}
