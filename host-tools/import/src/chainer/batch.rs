//! Which records are loss, which buffer is the image, and how many images were traced.

use std::collections::BTreeMap;

use super::parse::{BufferName, LOSSES, Trace};
use crate::assume::Assumptions;
use crate::error::{Error, ErrorKind, Result};

/// Which forward records are loss, or depend on one.
pub(super) fn losses(trace: &Trace<'_>) -> Vec<bool> {
    let mut tainted = std::collections::HashSet::new();
    let is_loss = trace.forward.iter().map(|record| {
        let is_loss = LOSSES.contains(&record.class) || record.inputs.iter().any(|(id, _)| tainted.contains(id));
        if is_loss {
            tainted.extend(record.outputs.iter().copied());
        }
        is_loss
    });
    is_loss.collect()
}

pub(super) fn image(trace: &Trace<'_>, is_loss: &[bool]) -> Result<u64> {
    let mut images = BTreeMap::new();
    for (record, _) in trace.forward.iter().zip(is_loss).filter(|(_, is_loss)| !**is_loss) {
        for (id, _) in &record.inputs {
            if let BufferName::Input(name) = &trace.buffer(*id)?.name {
                images.insert(*id, (name, record));
            }
        }
    }
    match images.len() {
        1 => Ok(images.into_keys().next().unwrap_or_default()),
        0 => Err(Error::input("no forward record reads an input").expected("a buffer named `0`, the first input")),
        n => {
            let ids: Vec<_> = images.keys().collect();
            Err(Error::unsupported(format!("a network of {n} inputs (buffers {ids:?})")))
        }
    }
}

/// The traced batch, and how it is known where a record does not state it.
pub(super) fn batch(
    trace: &Trace<'_>,
    is_loss: &[bool],
    image: u64,
    assumptions: &mut Assumptions<'_>,
) -> Result<(usize, Option<String>)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (record, is_loss) in trace.forward.iter().zip(is_loss) {
        let place = || format!("line {} ({})", record.line, record.class);
        match (record.class, record.inputs.as_slice(), record.outputs.as_slice()) {
            ("Reshape", _, _) => {
                let first = record.attrs.need("shape")?.integers()?.first().copied();
                if let Some(Ok(first)) = first.map(usize::try_from) {
                    found.push((first, place()));
                }
            }
            ("LinearFunction", [_, _, (bias, _)], [y]) => {
                let (rows, columns) = (trace.elements(*y)?, trace.elements(*bias)?);
                if !rows.is_multiple_of(columns) {
                    return Err(record.error(format!(
                        "{rows} outputs are no multiple of {columns}, the bias's elements"
                    )));
                }
                found.push((rows / columns, place()));
            }
            ("SoftmaxCrossEntropy", [_, (labels, _)], _) if *is_loss => found.push((trace.elements(*labels)?, place())),
            _ => {}
        }
    }
    if let Some(pair) = found.windows(2).find(|pair| pair[0].0 != pair[1].0) {
        let [(a, place), (b, other)] = pair else {
            return Err(Error::internal("a window of two"));
        };
        return Err(Error::input(format!(
            "{place} says that the batch is {a}, {other} that it is {b}"
        )));
    }
    if let Some((batch, place)) = found.first() {
        let stated = trace.forward.iter().any(|r| r.class == "Reshape");
        let reason = (!stated).then(|| format!("derived from the sizes at {place}"));
        return Ok((*batch, reason));
    }
    if let Some(batch) = assumptions.given::<usize>("batch.traced", "the network")? {
        return Ok((batch, None));
    }
    let elements = trace.elements(image)?;
    let divisors: Vec<String> = (1..=elements.min(4096))
        .filter(|n| elements.is_multiple_of(*n))
        .map(|n| n.to_string())
        .collect();
    Err(Error::new(
        ErrorKind::Ambiguous,
        format!(
            "no Reshape, linear layer or loss tells the traced batch: {} fit",
            divisors.join(", ")
        ),
    )
    .at(format!("buffer {image}"))
    .help("pass the batch that was traced with --assume batch.traced=N"))
}
