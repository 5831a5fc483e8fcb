//! `arenite diff`: every layer against a reference, and the first that differs.

mod alone;
mod blame;
mod comparison;
mod factors;
mod float;
mod float_text;
mod models;
mod options;
mod shadow;
mod sizes;
mod stored;
mod traced;
mod training;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::{DType, Slot};
use serde::Serialize;

use self::comparison::{Comparison, Layer};
use self::shadow::Shadow;
use super::machine::{Machine, ready, warn};
use super::opened::with_state;
use super::program::{Verdict, print_json};
use super::progress::Shown;
use super::run::{Arrays, assign, read_inputs};
use super::train::as_i32;
use crate::array::Array;
use crate::board::{self, RunOptions};
use crate::files::print::out as print_out;
use crate::files::zip::Zip;
use crate::files::{Input, print};
use crate::model::{self, ModelFile, ModelView};
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite diff`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file.
    model: PathBuf,
    /// Every layer's output by the traced tensor's name (of .tflite files also `tINDEX`), in the traced layout; and the network's
    /// inputs in the same way.
    #[arg(required_unless_present_any = ["float", "inputs"])]
    reference: Option<PathBuf>,
    /// The inputs, where the reference does not hold them.
    #[arg(long, value_name = "[NAME=]X.npy", num_args = 1..)]
    input: Vec<String>,
    /// The largest relative error, max|a - b| / max|b|, of a float tensor. Integer tensors must be equal.
    #[arg(long, value_name = "E", default_value_t = 1e-4)]
    tolerance: f64,
    /// Where to run: host, or qemu:BOARD.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host")]
    on: Machine,
    /// Prints the comparison as JSON on stdout.
    #[arg(long)]
    json: bool,
    /// The wall time that a board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Compares one step of training instead, from the parameters that the model was packed with (or those of --state): layers, loss, and the gradient of
    /// each trained parameter, by its name as `arenite train --keep-gradients` writes it. The reference holds labels beside the inputs.
    #[arg(long, conflicts_with_all = ["float", "inputs", "input"])]
    train: bool,
    /// A saved state (`arenite train --state-out`) in place of the one that the model begins with: of trained parameters, with --train their gradients.
    #[arg(long, value_name = "FILE", conflicts_with = "float")]
    state: Option<PathBuf>,
    /// The float model that an int8 one was made of: compares the noise of each layer instead.
    #[arg(long, value_name = "F32", requires = "inputs", conflicts_with_all = ["reference", "input"])]
    float: Option<PathBuf>,
    /// Sample inputs for that, .npz or .npy.
    #[arg(long, value_name = "X.npz", requires = "float")]
    inputs: Option<PathBuf>,
    /// The words of the `pack` that made the int8 model, network and options: what may help is tried, each packed and compared on the inputs.
    #[arg(long, value_name = "'NETWORK OPTIONS'", requires = "float")]
    packed_by: Option<String>,
}

impl Args {
    /// The reference; absent only beside a float model.
    fn reference(&self) -> &Path {
        self.reference.as_deref().unwrap_or(Path::new(""))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    board: &'static str,
    tolerance: f64,
    compared: usize,
    /// The first layer beyond the tolerance.
    first_difference: Option<Layer>,
    /// The layer with the largest error.
    worst: Option<Layer>,
    layers: Vec<Layer>,
    /// Steps of the model whose tensor the reference does not hold.
    not_in_reference: Vec<String>,
    /// Arrays of the reference that no step completes: fused into another layer, folded or pruned.
    not_in_model: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    if let (Some(float), Some(inputs)) = (&args.float, &args.inputs) {
        let mut report = float::compared(&args.model, float, inputs)?;
        if let Some(words) = &args.packed_by {
            let worst: Vec<&str> = report.worst.iter().map(|advice| advice.layer.as_str()).collect();
            let answers = |model: &Path| float::answers(model, float, inputs);
            report.options = Some(options::tried(words, &worst, &answers)?);
        }
        if args.json {
            print_json(&report)?
        } else {
            print_out(&float_text::text(&report))?
        }
        return Ok(Verdict::Good);
    }
    let report = compared(args)?;
    if args.json {
        print_json(&report)?
    } else {
        print_out(&text(&report))?
    }
    Ok(match report.first_difference {
        None => Verdict::Good,
        Some(_) => Verdict::Bad,
    })
}

fn compared(args: &Args) -> Result<Report> {
    let whole = with_state(ModelFile::open(&args.model)?, args.state.as_deref())?;
    if args.train {
        training::refuse_board(args.on)?;
    }
    let steps_alone = args.train.then(|| training::steps_alone(&whole)).transpose()?;
    let file = steps_alone.as_ref().unwrap_or(&whole);
    let view = file.view()?;
    view.refuse_rolling("`diff`")?;
    let metadata = view.metadata()?;
    let metas = &metadata.steps;
    let input = Input::open(args.reference(), "read the reference")?;
    let file_of_reference = input.file().try_clone();
    let npz = file_of_reference.and_then(Zip::open).map_err(|e| not_npz(args, &e))?;
    let keys: BTreeSet<String> = npz
        .names()
        .map(|name| name.strip_suffix(".npy").unwrap_or(name).to_string())
        .collect();
    let (inputs, input_keys) = inputs(args, &view, &metadata.input_keys, &npz, &keys)?;

    let mut comparison = Comparison {
        metadata: &metadata,
        model: &args.model,
        npz,
        unseen: keys.difference(&input_keys).cloned().collect(),
        tolerance: args.tolerance,
        layers: Vec::new(),
        not_in_reference: Vec::new(),
    };
    match args.on {
        Machine::Host => {
            let mut failed = None;
            let given = inputs.clone();
            let outputs = model::run(&file.load()?, &[inputs], false, &mut |_, step, session| {
                let read = |slot: Slot, bytes: u32| session.read(slot, bytes).map(<[u8]>::to_vec);
                if let (Some(meta), None) = (metas.get(step as usize), &failed) {
                    failed = comparison.step(step as usize, meta, &read).err();
                }
            })?;
            failed.map_or(Ok(()), |e| Err(e.in_file(args.reference())))?;
            if args.train {
                let gradients = training::gradients(&whole, given)?;
                let last = outputs.first().map_or(&[][..], Vec::as_slice);
                comparison
                    .gradients(&gradients)
                    .and_then(|()| comparison.outputs(&view.outputs, last))
                    .map_err(|e| e.in_file(args.reference()))?;
            }
        }
        Machine::Serial(_) => {
            return Err(args
                .on
                .not_over_serial("the layers' outputs are not sent over a serial port"));
        }
        Machine::Board(board) => {
            ready(board)?;
            warn(board, &view)?;
            let options = RunOptions {
                dump_steps: true,
                guard_blob: file.bytes().len() <= board::GUARDED_BYTES,
                timeout: Duration::from_secs(args.timeout),
                ..RunOptions::default()
            };
            let inputs: Vec<u8> = inputs.concat();
            let shown = Shown::new(&format!("starting on {}", board.name));
            let report = board::run_with_progress(board, file.blob(), &inputs, &options, &mut |now| {
                shown.running(board.name, 1, now);
            })?;
            drop(shown);
            let mut shadow = Shadow::new(&view);
            let mut dumps = report.dumps.iter().peekable();
            for (step, meta) in metas.iter().enumerate() {
                while let Some(dump) = dumps.next_if(|dump| dump.step as usize == step) {
                    shadow.write(dump.slot, &dump.bytes);
                }
                let compared = comparison.step(step, meta, &|slot, bytes| shadow.read(slot, bytes));
                compared.map_err(|e| e.in_file(args.reference()))?;
            }
        }
    }
    finish(args, comparison)
}

fn finish(args: &Args, comparison: Comparison<'_>) -> Result<Report> {
    let layers = comparison.layers;
    if layers.is_empty() {
        return Err(Error::input("none of its arrays is a tensor of the model")
            .in_file(args.reference())
            .expected("arrays by the traced tensors' names")
            .help("`arenite inspect --steps` lists the names"));
    }
    let worst = layers
        .iter()
        .filter(|l| !l.error.is_nan())
        .max_by(|a, b| a.error.total_cmp(&b.error));
    Ok(Report {
        board: args.on.name(),
        tolerance: args.tolerance,
        compared: layers.len(),
        first_difference: layers.iter().find(|layer| !layer.within).cloned(),
        worst: worst.cloned(),
        not_in_reference: comparison.not_in_reference,
        not_in_model: comparison.unseen.into_iter().collect(),
        layers,
    })
}

/// The inputs, from files or from the reference, and the keys of those that the reference holds.
fn inputs(
    args: &Args,
    view: &ModelView<'_>,
    other_keys: &[String],
    npz: &Zip,
    keys: &BTreeSet<String>,
) -> Result<(Vec<Vec<u8>>, BTreeSet<String>)> {
    let held = |name: &str| keys.get(name).cloned();
    let others = other_keys.iter().map(Some).chain(std::iter::repeat(None));
    let ports: Vec<_> = view
        .inputs
        .iter()
        .zip(others)
        .map(|(port, other)| (port, held(port.name).or_else(|| held(other?))))
        .collect();
    let known = ports.iter().filter_map(|(_, key)| key.clone()).collect();
    let single = |runs: Vec<Vec<Vec<u8>>>| match <[_; 1]>::try_from(runs) {
        Ok([one]) => Ok(one),
        Err(runs) => Err(Error::input(format!("the inputs hold {} runs", runs.len())).expected("one")),
    };
    if !args.input.is_empty() {
        let given = assign(&args.input, &view.inputs, "input")?;
        return Ok((
            single(read_inputs(&given, &view.inputs, &mut Arrays::default())?.runs)?,
            known,
        ));
    }
    let mut all = Vec::new();
    let last = ports.len().saturating_sub(1);
    for (place, (port, key)) in ports.into_iter().enumerate() {
        if args.train && place == last {
            all.push(training::NO_RATE.to_le_bytes().to_vec());
            continue;
        }
        let Some(key) = key else {
            return Err(Error::input(format!("it does not hold the input `{}`", port.name))
                .in_file(args.reference())
                .help(if args.train {
                    "`arenite inspect` lists the inputs; labels are one of a step of training".to_owned()
                } else {
                    format!("pass --input {}=FILE.npy", port.name)
                }));
        };
        let mut array = Array::of_npz(npz, &key).map_err(|e| e.in_file(args.reference()))?;
        if args.train && port.dtype == DType::I32 {
            array = as_i32(&array).map_err(|e| e.in_file(args.reference()))?;
        }
        let (runs, note) = array.runs(port).map_err(|e| e.in_file(args.reference()))?;
        note.into_iter().for_each(print::note);
        all.push(single(vec![runs.runs])?.into_iter().next().unwrap_or_default());
    }
    Ok((all, known))
}

fn not_npz(args: &Args, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Input, format!("it is no NumPy archive: {error}"))
        .in_file(args.reference())
        .expected("a file as numpy.savez writes it")
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for layer in &report.layers {
        let mark = if layer.within { "  " } else { "≠ " };
        text += &format!(
            "{mark}{:4} {:<18} {:>10.3e}  {}",
            layer.step, layer.op, layer.error, layer.name
        );
        if layer.unread > 0 {
            text += &format!(" ({} channels that nobody reads are not compared)", layer.unread);
        }
        text.push('\n');
    }
    text += &match report.compared {
        1 => "1 layer compared".to_string(),
        n => format!("{n} layers compared"),
    };
    if let Some(worst) = &report.worst {
        text += &format!("; largest difference {:.3e} at `{}`", worst.error, worst.name);
    }
    text.push('\n');
    let list = |names: &[String]| {
        let shown: Vec<_> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > 5 { ", …" } else { "" };
        format!("{}: {}{more}", names.len(), shown.join(", "))
    };
    if !report.not_in_reference.is_empty() {
        text += &format!("steps not in the reference, {}\n", list(&report.not_in_reference));
    }
    if !report.not_in_model.is_empty() {
        text += &format!("arrays that no step completes, {}\n", list(&report.not_in_model));
    }
    text += &match &report.first_difference {
        None => format!("no layer differs by more than {:e}\n", report.tolerance),
        Some(layer) => format!(
            "step {} ({}) differs first: `{}` by {:.3e}, most at {:?}: {} instead of {}\n",
            layer.step, layer.op, layer.name, layer.error, layer.index, layer.ours, layer.reference
        ),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tflite::tensor_names;
    use crate::pack::{Options, pack};
    use ndarray::OwnedRepr;
    use ndarray::{ArrayD, IxDyn};
    use ndarray_npy::{NpzReader, NpzWriter};

    /// A model of one int8 convolution, its reference in `folder` (input `t0`, output `t3`) with `add` added to one element, and
    /// how both compare.
    fn compare_conv(folder: &Path, add: i8) -> Report {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models/tflite_ops");
        let model = folder.join("conv.arenite");
        // The file's tensors are named as their keys are: other names, of the same length.
        let mut content = std::fs::read(cases.join("conv_1x1.tflite")).expect("reads");
        let names = tensor_names(&content).expect("names");
        let name_at = |at: usize, content: &[u8]| content[at..].starts_with(&[2, 0, 0, 0, b't']);
        for at in 0..content.len() {
            if name_at(at, &content) {
                content[at + 4] = b'y';
            }
        }
        assert_eq!(names, ["t0", "t1", "t2", "t3"]);
        assert_eq!(tensor_names(&content).expect("names"), ["y0", "y1", "y2", "y3"]);
        let options = Options::new(folder.join("conv.tflite"), &model);
        std::fs::write(&options.input, content).expect("writes");
        pack(&options, &mut |_, _, _| {}).expect("packs");

        let mut archive = NpzReader::new(std::fs::File::open(cases.join("cases.npz")).expect("opens")).expect("npz");
        let mut first = |key: &str| -> ArrayD<i8> {
            let all: ArrayD<i8> = archive.by_name::<OwnedRepr<i8>, IxDyn>(key).expect("an array");
            all.index_axis(ndarray::Axis(0), 0).to_owned()
        };
        let (input, mut result) = (first("conv_1x1/in_0"), first("conv_1x1/out_0"));
        let changed = result.last_mut().expect("not empty");
        *changed = changed.wrapping_add(add);
        let reference = folder.join("reference.npz");
        let mut npz = NpzWriter::new(std::fs::File::create(&reference).expect("creates"));
        npz.add_array("t0", &input).expect("writes");
        npz.add_array("t3", &result).expect("writes");
        npz.finish().expect("writes");
        let args = Args {
            model,
            reference: Some(reference),
            input: Vec::new(),
            tolerance: 1e-4,
            on: Machine::Host,
            json: false,
            timeout: 60,
            train: false,
            state: None,
            float: None,
            inputs: None,
            packed_by: None,
        };
        compared(&args).expect("compares")
    }

    #[test]
    fn an_int8_layer_is_compared_by_its_index_in_the_file_and_exactly() {
        let folder = tempfile::tempdir().expect("a folder");
        let same = compare_conv(folder.path(), 0);
        assert_eq!((same.compared, same.not_in_model.len()), (1, 0), "{same:?}");
        assert!(same.first_difference.is_none(), "{same:?}");

        let other = compare_conv(folder.path(), 3);
        let first = other.first_difference.as_ref().expect("it differs");
        assert!(first.error == 3.0 && first.name == "t3", "{first:?}");
        assert!(text(&other).contains(&format!("step {} (conv2d) differs first", first.step)));
    }
}
