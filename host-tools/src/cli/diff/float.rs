//! `arenite diff INT8 --float F32 --inputs X`: how much noise each layer of an int8 or int16 model has, beside the float model that it was made of.

use std::collections::HashMap;
use std::path::Path;

use arenite::{DType, Port};
use serde::Serialize;

use super::alone::{Alone, Named, decibels};
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
    /// The same of what these differ by from their mean over the samples: a constant that all answers share hides no noise.
    pub(super) deviations_db: Option<f64>,
    /// Value of `deviations_db` for a float model that answers each sample as the one before it.
    pub(super) another_db: Option<f64>,
    /// Why layers are not judged: then none is listed, and none named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_judged: Option<String>,
    pub(super) layers: Vec<Layer>,
    /// Those with the largest shares, and what would help.
    pub(super) worst: Vec<Advice>,
    /// Those that are further from the float model by themselves than they should be, and why.
    pub(super) weak: Vec<Named>,
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
    /// The same of deviations from each value's mean over the samples; none for one sample.
    pub(super) deviations_db: Option<f64>,
    /// As `snr_db`, of the layer by itself: its operands are the float model's values, as they store them.
    pub(super) alone_db: Option<f64>,
    /// As `snr_db`, of the float layer's values stored with its scale: what the layer could reach.
    pub(super) stored_db: Option<f64>,
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

#[derive(Debug, Clone, Default)]
struct Sums {
    signal: f64,
    noise: f64,
    clipped: u64,
    count: u64,
    /// By value: sums over the samples of what the float model has, and of the difference.
    of_values: Vec<[f64; 2]>,
}

impl Sums {
    fn ratio(&self) -> f64 {
        if self.signal > 0.0 {
            self.noise / self.signal
        } else {
            0.0
        }
    }

    /// Squares of deviations from the mean over so many samples: of the float model, and of the difference.
    fn deviations(&self, samples: usize) -> [f64; 2] {
        let of_means = |which: usize| self.of_values.iter().map(|sums| sums[which] * sums[which]).sum::<f64>();
        [(self.signal, 0), (self.noise, 1)].map(|(squares, which)| squares - of_means(which) / samples as f64)
    }
}

/// How far apart a layer's values of consecutive samples are.
#[derive(Debug, Default)]
struct Another {
    before: Vec<f64>,
    noise: f64,
}

impl Another {
    fn add<'v>(&mut self, values: impl Iterator<Item = &'v f64>) {
        let values: Vec<f64> = values.copied().collect();
        let differences = self.before.iter().zip(&values).map(|(a, b)| (a - b) * (a - b));
        self.noise += differences.sum::<f64>();
        self.before = values;
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
    let equalised = views.0.summary()?.quantization.map_or(0, |made| made.equalised);
    let (int8_model, float_model) = (int8.load()?, float.load()?);
    let mut sums = vec![Sums::default(); ours.steps.len()];
    let mut alone = vec![Alone::default(); ours.steps.len()];
    let answers = |step: &&StepMeta| step.completes.is_some() && !step.kind.contains("softmax");
    let judged = ours.steps.iter().rposition(|step| answers(&step));
    let mut another = Another::default();
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
        let of = |tensor: &TensorMeta| tensor.names.iter().find_map(|name| values.get(name.as_str()));
        let by_themselves: &[_] = if equalised == 0 {
            std::slice::from_ref(&stored)
        } else {
            &[]
        };
        model::run_changing(&int8_model, by_themselves, true, &mut |_, step, session| {
            let Some((tensor, bytes)) = completed(&ours, step, &|slot, len| session.read(slot, len)) else {
                return;
            };
            let Some(expected) = of(tensor) else { return };
            match alone[step as usize].add((&ours, step as usize, tensor), bytes, expected) {
                // The next reader is fed with the float model's values.
                Ok(Some(bytes)) => drop(session.write(tensor.slot, &bytes)),
                Ok(None) => {}
                Err(e) => failed = Some(e),
            }
        })?;
        model::run(&int8_model, &[stored], true, &mut |_, step, session| {
            let Some((tensor, bytes)) = completed(&ours, step, &|slot, len| session.read(slot, len)) else {
                return;
            };
            let Some(expected) = of(tensor) else { return };
            match Traced::of(&ours, step as usize, tensor, bytes) {
                Ok(found) => {
                    add(&mut sums[step as usize], tensor, &found, expected);
                    if judged == Some(step as usize) {
                        another.add(expected.values.iter());
                    }
                }
                Err(e) => failed = Some(e),
            }
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    let report = report(&ours, (&sums, &alone), runs.len(), &another).map_err(|e| e.in_file(int8.path()))?;
    Ok(match equalised {
        0 => report,
        pairs => unjudged(report, pairs),
    })
}

/// The report of a network with equalised channels: its answers alone. Between two layers of a pair channels are of other sizes than the float model's, so that
/// their differences say nothing of noise.
fn unjudged(report: Report, pairs: usize) -> Report {
    let between = match pairs {
        1 => "between 1 pair of layers".to_owned(),
        pairs => format!("between {pairs} pairs of layers"),
    };
    let reason = format!(
        "the layers cannot be judged: packing equalised channels {between}, whose sizes there are not the float model's; \
         compare the answers of files that were packed with other options instead"
    );
    Report {
        not_judged: Some(reason),
        layers: Vec::new(),
        worst: Vec::new(),
        weak: Vec::new(),
        ..report
    }
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
    sums.of_values.resize(expected.values.len(), [0.0; 2]);
    for (((&found, &expected), (&known, &there)), of_value) in all.zip(&mut sums.of_values) {
        if !(known && there) {
            continue;
        }
        let real = if quantised { (found - zero) * scale } else { found };
        of_value[0] += expected;
        of_value[1] += expected - real;
        sums.signal += expected * expected;
        sums.noise += (expected - real) * (expected - real);
        sums.clipped += u64::from(quantised && !(low..=high).contains(&expected));
        sums.count += 1;
    }
}

fn report(
    metadata: &Metadata,
    (sums, alone): (&[Sums], &[Alone]),
    samples: usize,
    another: &Another,
) -> Result<Report> {
    // Noise over signal of each tensor in memory, as far as the steps have come.
    let mut of_tensor: HashMap<u32, f64> = HashMap::new();
    let mut layers = Vec::new();
    let (mut added, mut weak) = (Vec::new(), Vec::new());
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
        let [signal, noise] = sums.deviations(samples);
        let clipped = sums.clipped as f64 / sums.count as f64;
        let [alone_db, stored_db] = alone[index].decibels();
        weak.extend(alone[index].named(&tensor.names[0], clipped));
        layers.push(Layer {
            step: index,
            op: step.kind.clone(),
            name: tensor.names[0].clone(),
            snr_db: decibels(sums.signal, sums.noise),
            deviations_db: decibels(signal, noise).filter(|_| samples > 1),
            alone_db,
            stored_db,
            clipped,
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
    let judged = judged.or(layers.last());
    let signal = judged.map_or(0.0, |layer| sums[layer.step].deviations(samples)[0]);
    Ok(Report {
        samples,
        snr_db: judged.and_then(|layer| layer.snr_db),
        deviations_db: judged.and_then(|layer| layer.deviations_db),
        // Of as many pairs as there are samples but one.
        another_db: decibels(signal, another.noise * samples as f64 / (samples as f64 - 1.0)).filter(|_| samples > 1),
        not_judged: None,
        worst: worst(&layers, &metadata.steps),
        weak,
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
    let short = |snr: Option<f64>| decibels(snr).trim().to_owned();
    let mut text = String::new();
    if report.not_judged.is_none() {
        text += "step  op                  SNR dB  alone  clipped    share  tensor\n";
    }
    for layer in &report.layers {
        text += &format!(
            "{:4}  {:<18}  {}   {}  {:6.3} %  {:5.1} %  {}\n",
            layer.step,
            layer.op,
            decibels(layer.snr_db),
            decibels(layer.alone_db),
            100.0 * layer.clipped,
            100.0 * layer.share,
            layer.name
        );
    }
    text += &format!("answers: {} dB on {} samples\n", short(report.snr_db), report.samples);
    if report.deviations_db.is_some() {
        text += &format!(
            "answers less their mean: {} dB; each sample answered as the one before: {} dB\n",
            short(report.deviations_db),
            short(report.another_db)
        );
    }
    if let Some(reason) = &report.not_judged {
        text += &format!("{reason}\n");
    }
    for advice in &report.worst {
        text += &format!(
            "`{}` adds {:.1} % of the noise: {}\n",
            advice.name,
            100.0 * advice.share,
            advice.help
        );
    }
    for weak in &report.weak {
        text += &weak.text();
    }
    if !report.not_in_float.is_empty() {
        text += &format!(
            "steps that the float model has not: {}\n",
            report.not_in_float.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_from_the_mean_over_samples() {
        // Two values of three samples, with a constant that the mean takes away.
        let float = [[101.0, -3.0], [104.0, 2.0], [102.5, 0.5]];
        let int8 = [[101.5, -2.0], [104.0, 1.5], [103.0, 0.0]];
        let mut sums = Sums::default();
        sums.of_values.resize(2, [0.0; 2]);
        for (float, int8) in float.iter().zip(&int8) {
            for ((float, int8), of_value) in float.iter().zip(int8).zip(&mut sums.of_values) {
                of_value[0] += float;
                of_value[1] += float - int8;
                sums.signal += float * float;
                sums.noise += (float - int8) * (float - int8);
            }
        }
        let deviations = |samples: &[[f64; 2]; 3], at: usize| {
            let mean = samples.iter().map(|sample| sample[at]).sum::<f64>() / 3.0;
            samples.map(|sample| sample[at] - mean)
        };
        let (mut signal, mut noise) = (0.0, 0.0);
        for at in 0..2 {
            for (float, int8) in deviations(&float, at).into_iter().zip(deviations(&int8, at)) {
                signal += float * float;
                noise += (float - int8) * (float - int8);
            }
        }
        let found = sums.deviations(3);
        assert!(
            (found[0] - signal).abs() < 1e-9 && (found[1] - noise).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(decibels(found[0], found[1]), Some(10.25));
        assert_eq!(decibels(1.0, 0.0), None);
    }

    #[test]
    fn another_samples_answers_are_the_ones_before() {
        let mut another = Another::default();
        for values in [[1.0, 2.0], [1.5, 0.0], [3.5, 1.0]] {
            another.add(values.iter());
        }
        assert_eq!(another.noise, 0.25 + 4.0 + 4.0 + 1.0);
    }
}
