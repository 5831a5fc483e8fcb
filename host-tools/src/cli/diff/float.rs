//! `arenite diff INT8 --float F32 --inputs X`: how much noise each layer of an int8 or int16 model has, beside the float model that it was made of.

use std::collections::HashMap;
use std::path::Path;

use arenite::{DType, Port};
use serde::Serialize;

use super::traced::Traced;
use crate::array::Array;
use crate::files::print;
use crate::metadata::{Metadata, NO_TENSOR, StepMeta, TensorMeta};
use crate::model::{self, ModelFile};
use crate::{Error, Result, samples};

/// How many of the worst layers are named.
const WORST: usize = 3;
/// A share of clipped values that is worth more samples.
const CLIPPED: f64 = 1e-3;

/// All layers.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Runs that were compared.
    pub(super) samples: usize,
    /// Of the outputs, or of what a last softmax reads.
    pub(super) snr_db: Option<f64>,
    pub(super) layers: Vec<Layer>,
    /// Those with the largest shares, and what would help.
    pub(super) worst: Vec<Advice>,
    /// Steps that stand for no tensor of the float model.
    pub(super) not_in_float: Vec<String>,
}

/// A layer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Layer {
    pub(super) step: usize,
    pub(super) op: String,
    /// The tensor.
    pub(super) name: String,
    /// Squares of the float layer's values over squares of the differences; none without noise or without signal.
    pub(super) snr_db: Option<f64>,
    /// The share of values that the float layer has outside of what the scale holds.
    pub(super) clipped: f64,
    /// Of the noise that layers add to that of their operands, the share of this one.
    pub(super) share: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) name: String,
    pub(super) share: f64,
    pub(super) help: String,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    signal: f64,
    noise: f64,
    clipped: u64,
    count: u64,
}

impl Sums {
    fn ratio(&self) -> f64 {
        if self.signal > 0.0 {
            self.noise / self.signal
        } else {
            0.0
        }
    }

    fn decibels(&self) -> Option<f64> {
        let ratio = -10.0 * self.ratio().log10();
        ratio.is_finite().then(|| (ratio * 100.0).round() / 100.0)
    }
}

/// Compares two models on the same inputs.
pub(super) fn compared(int8: &Path, float: &Path, inputs: &Path) -> Result<Report> {
    let [int8, float] = [ModelFile::open(int8)?, ModelFile::open(float)?];
    let views = (int8.view()?, float.view()?);
    let (ours, theirs) = (views.0.metadata()?, views.1.metadata()?);
    let runs = samples::read(inputs, &views.1.inputs, &samples::of_a_data_set, &mut |note| {
        print::note(note)
    })
    .map_err(|e| e.in_file(inputs))?;
    let names = |ports: &[Port<'_>]| ports.iter().map(|port| port.name.to_string()).collect::<Vec<_>>();
    if names(&views.0.inputs) != names(&views.1.inputs) {
        return Err(Error::input(format!("its inputs are {:?}", names(&views.0.inputs)))
            .in_file(int8.path())
            .expected(format!("{:?}, those of the float model", names(&views.1.inputs))));
    }
    let (int8_model, float_model) = (int8.load()?, float.load()?);
    let mut sums = vec![Sums::default(); ours.steps.len()];
    for run in &runs {
        let mut values: HashMap<&str, Traced> = HashMap::new();
        let mut failed = None;
        model::run(
            &float_model,
            std::slice::from_ref(run),
            true,
            &mut |_, step, session| {
                if let Some((tensor, bytes)) = completed(&theirs, step, &|slot, len| session.read(slot, len)) {
                    match Traced::of(&theirs, step as usize, tensor, bytes) {
                        Ok(traced) => drop(tensor.names.first().map(|name| values.insert(name.as_str(), traced))),
                        Err(e) => failed = Some(e),
                    }
                }
            },
        )?;
        let stored = stored(run, &views.1.inputs, &views.0.inputs)?;
        model::run(&int8_model, &[stored], true, &mut |_, step, session| {
            let Some((tensor, bytes)) = completed(&ours, step, &|slot, len| session.read(slot, len)) else {
                return;
            };
            let Some(expected) = tensor.names.iter().find_map(|name| values.get(name.as_str())) else {
                return;
            };
            match Traced::of(&ours, step as usize, tensor, bytes) {
                Ok(found) => add(&mut sums[step as usize], tensor, &found, expected),
                Err(e) => failed = Some(e),
            }
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    report(&ours, &sums, runs.len()).map_err(|e| e.in_file(int8.path()))
}

type Read<'r> = dyn Fn(arenite::Slot, u32) -> Option<&'r [u8]> + 'r;

/// The tensor that a step completes, and its bytes.
fn completed<'m, 'r>(metadata: &'m Metadata, step: u32, read: &Read<'r>) -> Option<(&'m TensorMeta, &'r [u8])> {
    let tensor = metadata.steps.get(step as usize)?.completes.as_ref()?;
    let count: u32 = tensor.shape.iter().product();
    Some((tensor, read(tensor.slot, count * tensor.dtype.bytes() as u32)?))
}

/// The float model's inputs as the int8 model takes them.
fn stored(run: &[Vec<u8>], from: &[Port<'_>], to: &[Port<'_>]) -> Result<Vec<Vec<u8>>> {
    let each = run.iter().zip(from).zip(to).map(|((bytes, from), to)| {
        let shape: Vec<usize> = from.shape.iter().map(|&n| n as usize).collect();
        let (runs, _) = Array::of_bytes(&shape, from.dtype, bytes).runs(to)?;
        Ok(runs.runs.into_iter().next().unwrap_or_default())
    });
    each.collect()
}

fn add(sums: &mut Sums, tensor: &TensorMeta, found: &Traced, expected: &Traced) {
    let (scale, zero) = (f64::from(tensor.scale), f64::from(tensor.zero_point));
    let ends = match tensor.dtype {
        DType::I8 => Some([-128.5, 127.5]),
        DType::I16 => Some([-32768.5, 32767.5]),
        _ => None,
    };
    let quantised = ends.is_some() && tensor.scale > 0.0;
    let [low, high] = ends.unwrap_or_default().map(|end| (end - zero) * scale);
    let all = found
        .values
        .iter()
        .zip(&expected.values)
        .zip(found.known.iter().zip(&expected.known));
    for ((&found, &expected), (&known, &there)) in all {
        if !(known && there) {
            continue;
        }
        let real = if quantised { (found - zero) * scale } else { found };
        sums.signal += expected * expected;
        sums.noise += (expected - real) * (expected - real);
        sums.clipped += u64::from(quantised && !(low..=high).contains(&expected));
        sums.count += 1;
    }
}

fn report(metadata: &Metadata, sums: &[Sums], samples: usize) -> Result<Report> {
    // Noise over signal of each tensor in memory, as far as the steps have come.
    let mut of_tensor: HashMap<u32, f64> = HashMap::new();
    let mut layers = Vec::new();
    let mut added = Vec::new();
    let mut not_in_float = Vec::new();
    for (index, (step, sums)) in metadata.steps.iter().zip(sums).enumerate() {
        let Some(tensor) = &step.completes else { continue };
        let (output, operands) = step
            .operands
            .split_first()
            .map_or((NO_TENSOR, &[][..]), |(o, rest)| (*o, rest));
        let before = operands
            .iter()
            .filter_map(|id| of_tensor.get(id))
            .fold(0.0_f64, |most, &ratio| most.max(ratio));
        if sums.count == 0 {
            not_in_float.push(step.name.clone());
            of_tensor.insert(output, before);
            continue;
        }
        added.push((sums.ratio() - before).max(0.0));
        of_tensor.insert(output, sums.ratio());
        layers.push(Layer {
            step: index,
            op: step.kind.clone(),
            name: tensor.names[0].clone(),
            snr_db: sums.decibels(),
            clipped: sums.clipped as f64 / sums.count as f64,
            share: 0.0,
        });
    }
    if layers.is_empty() {
        return Err(Error::input("none of its layers is one of the float model")
            .expected("an int8 model that was made of the float model")
            .help("`arenite inspect --steps` lists the names"));
    }
    let all: f64 = added.iter().sum();
    for (layer, added) in layers.iter_mut().zip(added) {
        layer.share = if all > 0.0 { added / all } else { 0.0 };
    }
    let judged = layers.iter().rev().find(|layer| !layer.op.contains("softmax"));
    Ok(Report {
        samples,
        snr_db: judged.or(layers.last()).and_then(|layer| layer.snr_db),
        worst: worst(&layers, &metadata.steps),
        layers,
        not_in_float,
    })
}

fn worst(layers: &[Layer], steps: &[StepMeta]) -> Vec<Advice> {
    let mut sorted: Vec<&Layer> = layers.iter().filter(|layer| layer.share > 0.0).collect();
    sorted.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.step.cmp(&b.step)));
    let advice = |layer: &&Layer| {
        let name = &steps[layer.step].name;
        let help = if layer.clipped > CLIPPED {
            format!("values leave its range: calibrate with more samples like these, or --keep-f32 '{name}'")
        } else if layer.op.contains("conv") || layer.op == "linear" {
            format!("--optimise-rounding, then --keep-f32 '{name}'")
        } else {
            format!("--keep-f32 '{name}'")
        };
        Advice {
            name: layer.name.clone(),
            share: layer.share,
            help,
        }
    };
    sorted.iter().take(WORST).map(advice).collect()
}

/// For people.
pub(super) fn text(report: &Report) -> String {
    let decibels = |snr: Option<f64>| snr.map_or("    -".to_string(), |snr| format!("{snr:5.1}"));
    let mut text = String::from("step  op                  SNR dB  clipped    share  tensor\n");
    for layer in &report.layers {
        text += &format!(
            "{:4}  {:<18}  {}  {:6.3} %  {:5.1} %  {}\n",
            layer.step,
            layer.op,
            decibels(layer.snr_db),
            100.0 * layer.clipped,
            100.0 * layer.share,
            layer.name
        );
    }
    text += &format!(
        "answers: {} dB on {} samples\n",
        decibels(report.snr_db).trim(),
        report.samples
    );
    for advice in &report.worst {
        text += &format!(
            "`{}` adds {:.1} % of the noise: {}\n",
            advice.name,
            100.0 * advice.share,
            advice.help
        );
    }
    if !report.not_in_float.is_empty() {
        text += &format!(
            "steps that the float model has not: {}\n",
            report.not_in_float.join(", ")
        );
    }
    text
}
