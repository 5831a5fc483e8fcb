//! Model files made of others: the steps of training as a model of their own, and a model with another initial state.

use arenite::blob::{Lengths, Section, seal, write_port};
use arenite::{Header, Port, Slot, StateInit};

use super::view::ModelView;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{Metadata, NO_TENSOR};

/// The name of the output that is the whole state.
pub const STATE_OUTPUT: &str = "state";

/// The steps of training, of which `view` is, as a model by itself: for tools and programs that know one list of steps. Where `with_state`, its last output is
/// the state's bytes.
///
/// # Errors
/// Errors of reading the metadata; [`ErrorKind::DoesNotFit`] beyond 4 GiB.
pub fn of_training(view: &ModelView<'_>, with_state: bool) -> Result<Vec<u8>> {
    let header = view.header();
    let mut metadata = view.metadata()?;
    let mut ports = view.section(header.ports).to_vec();
    let mut made = Header {
        cores: Section::default(),
        training: Section::default(),
        rolling: Section::default(),
        ..header
    };
    if with_state {
        let port = Port {
            name: STATE_OUTPUT,
            slot: Slot {
                region: Slot::STATE,
                offset: 0,
            },
            dtype: arenite::DType::U8,
            shape: [header.state_init.len].into_iter().collect(),
            scale: 0.0,
            zero_point: 0,
        };
        write_port(&port, &mut ports).ok_or_else(|| Error::internal("a port does not encode"))?;
        let too_many = || Error::unsupported("256 outputs");
        made.outputs = made.outputs.checked_add(1).ok_or_else(too_many)?;
        made.output_bytes = made.output_bytes.saturating_add(header.state_init.len);
        metadata.ports.push(NO_TENSOR);
    }
    let mut summary = view.summary()?;
    summary.describe_list(&metadata.steps, &view.inputs, &view.outputs);
    metadata.summary = serde_json::to_string(&summary).map_err(|e| Error::internal(e.to_string()))?;
    let state: Vec<u8> = view.state_init().bytes().collect();
    assembled(view, made, (&ports, &metadata), &state)
}

/// The same model with another initial state, and without a self-test, which begins with the old one.
///
/// # Errors
/// As [`of_training`]; [`ErrorKind::Input`] for a state of another length.
pub fn with_state(view: &ModelView<'_>, state: &[u8]) -> Result<Vec<u8>> {
    let header = view.header();
    if state.len() != header.state_init.len as usize {
        return Err(Error::input(format!("a state of {} bytes", state.len()))
            .expected(format!("{}, as the model has", header.state_init.len)));
    }
    let ports = view.section(header.ports);
    assembled(view, header, (ports, &view.metadata()?), state)
}

/// A file of these parts, and the rest of `view`.
fn assembled(
    view: &ModelView<'_>,
    mut header: Header,
    (ports, metadata): (&[u8], &Metadata),
    state: &[u8],
) -> Result<Vec<u8>> {
    // Labels have a section of their own.
    let metadata = Metadata {
        labels: Vec::new(),
        ..metadata.clone()
    };
    let meta = metadata.encode()?;
    let [steps, labels, cores, tokenizer, training, rolling] = [
        header.steps,
        header.labels,
        header.cores,
        header.tokenizer,
        header.training,
        header.rolling,
    ]
    .map(|at| view.section(at));
    let mut runs = Vec::new();
    let count = StateInit::runs_of(state, &mut runs);
    let stored = if count.is_some() { &runs[..] } else { state };
    let lengths = Lengths {
        ports: ports.len(),
        steps: steps.len(),
        meta: meta.len(),
        labels: labels.len(),
        cores: cores.len(),
        tokenizer: tokenizer.len(),
        training: training.len(),
        rolling: rolling.len(),
        state_init: state.len(),
        state_runs: count.unwrap_or(0),
        weights: view.weights().len(),
    };
    (header.self_test, header.labels) = (Section::default(), Section::default());
    let too_large = || Error::new(ErrorKind::DoesNotFit, "the model needs more than 4 GiB");
    header.place(lengths).ok_or_else(too_large)?;
    let mut bytes = Vec::with_capacity(header.total as usize);
    header.write(&mut bytes);
    for section in [ports, steps, &meta, labels, cores, tokenizer, training, rolling, stored] {
        bytes.extend(section);
    }
    bytes.resize(header.weights.offset as usize, 0);
    bytes.extend(view.weights());
    seal(&mut bytes);
    Ok(bytes)
}
