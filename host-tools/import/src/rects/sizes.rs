//! All readings vote on the network's sizes, under the constraint that a valid window of stride 1 leaves `in - kernel + 1`.

use std::collections::BTreeMap;

use super::names::Name;
use super::read::{Picture, Reading, What};
use crate::assume::Assumptions;
use crate::build::LARGEST_EXTENT;
use crate::error::{Error, ErrorKind, Result};

/// The network's sizes. Level 0 is the image, level i + 1 the result of layer i.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) batch: usize,
    pub(super) classes: usize,
    /// Channels, rows, columns of each level.
    pub(super) levels: Vec<[usize; 3]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scalar {
    Batch,
    Classes,
    Channels(usize),
    Rows(usize),
    Columns(usize),
    KernelRows(usize),
    KernelColumns(usize),
}

/// A choice of the user outweighs all readings.
const GIVEN: usize = 1 << 20;

/// Value -> votes and lines.
type Votes = BTreeMap<usize, (usize, Vec<usize>)>;

pub(super) fn solve(picture: &Picture, assumptions: &mut Assumptions<'_>) -> Result<Network> {
    check_complete(picture)?;
    let layers = picture.layers;
    let mut votes: BTreeMap<Scalar, Votes> = BTreeMap::new();
    for reading in &picture.readings {
        for (scalar, value) in positions(reading, layers).into_iter().flatten() {
            let (count, lines) = votes.entry(scalar).or_default().entry(value).or_default();
            *count += 1;
            lines.push(reading.line);
        }
    }
    let mut all = vec![Scalar::Batch, Scalar::Classes];
    for level in 0..=layers {
        all.extend([Scalar::Channels(level), Scalar::Rows(level), Scalar::Columns(level)]);
    }
    for layer in 0..layers {
        all.extend([Scalar::KernelRows(layer), Scalar::KernelColumns(layer)]);
    }
    let mut given: BTreeMap<Scalar, usize> = BTreeMap::new();
    for &scalar in &all {
        if let Some(value) = assumptions.given::<usize>(&key(scalar), &place(scalar))? {
            if value == 0 || value > LARGEST_EXTENT {
                return Err(unusable(scalar, value).expected(format!("1 to {LARGEST_EXTENT}")));
            }
            votes.entry(scalar).or_default().entry(value).or_default().0 += GIVEN;
            given.insert(scalar, value);
        }
    }
    for votes in votes.values_mut() {
        votes.remove(&0);
    }
    let mut chosen: BTreeMap<Scalar, usize> = BTreeMap::new();
    for &scalar in &all {
        if matches!(scalar, Scalar::Batch | Scalar::Classes | Scalar::Channels(_)) {
            chosen.insert(scalar, majority(scalar, votes.get(&scalar))?);
        }
    }
    chain(&votes, layers, Scalar::Rows, Scalar::KernelRows, &mut chosen)?;
    chain(&votes, layers, Scalar::Columns, Scalar::KernelColumns, &mut chosen)?;
    for (&scalar, &value) in &given {
        if let Some(&other) = chosen.get(&scalar).filter(|&&other| other != value) {
            return Err(unusable(scalar, value).expected(format!("{other}, which the shapes around say")));
        }
    }
    for (scalar, value) in &chosen {
        let others = votes
            .get(scalar)
            .into_iter()
            .flatten()
            .filter(|(other, _)| *other != value);
        for (other, (_, lines)) in others {
            let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
            let reason = format!(
                "line {} reads {other}; the other readings and the shapes around say {value}",
                lines.join(", ")
            );
            assumptions.record(&key(*scalar), value, &place(*scalar), &reason);
        }
    }
    for reading in picture.readings.iter().filter(|r| positions(r, layers).is_none()) {
        let reason = format!(
            "line {} reads {:?}, which has another number of extents",
            reading.line, reading.extents
        );
        assumptions.record("reading", "dropped", &reading.name.to_string(), &reason);
    }
    let value = |scalar| chosen.get(&scalar).copied().unwrap_or(0);
    let levels = (0..=layers).map(|i| {
        [
            value(Scalar::Channels(i)),
            value(Scalar::Rows(i)),
            value(Scalar::Columns(i)),
        ]
    });
    Ok(Network {
        batch: value(Scalar::Batch),
        classes: value(Scalar::Classes),
        levels: levels.collect(),
    })
}

fn unusable(scalar: Scalar, value: usize) -> Error {
    let message = format!("--assume {}={value} does not fit the picture", key(scalar));
    Error::new(ErrorKind::Usage, message).at(place(scalar))
}

/// Every operator of the grammar shows itself or its result.
fn check_complete(picture: &Picture) -> Result<()> {
    let mut pairs = vec![
        (Name::RawOutput, Name::RawOutput),
        (Name::Linear1, Name::Linear1Output),
        (Name::Weights1, Name::Weights1),
        (Name::Softmax, Name::Probability),
    ];
    for i in 0..picture.layers {
        pairs.extend([
            (Name::Filter(i), Name::FilterOutput(i)),
            (Name::FilterA(i), Name::FilterAOutput(i)),
            (Name::FilterNl(i), Name::FilterNlOutput(i)),
        ]);
    }
    let last = picture.seen.values().copied().max().unwrap_or(0);
    match pairs
        .iter()
        .find(|(a, b)| !picture.seen.contains_key(a) && !picture.seen.contains_key(b))
    {
        Some((a, b)) if a == b => Err(Error::input(format!("no `{a}` is legible"))
            .at(format!("lines 1 to {last}"))
            .expected("all nodes of the forward half")),
        Some((a, b)) => Err(Error::input(format!("neither `{a}` nor `{b}` is legible"))
            .at(format!("lines 1 to {last}"))
            .expected("all nodes of the forward half")),
        None => Ok(()),
    }
}

/// Returns the role of each extent of a reading; `None` where their number is wrong or a constant extent is not 1.
fn positions(reading: &Reading, layers: usize) -> Option<Vec<(Scalar, usize)>> {
    let activation = |level: usize| match *reading.extents.as_slice() {
        [n, c, h, w] => Some(vec![
            (Scalar::Batch, n),
            (Scalar::Channels(level), c),
            (Scalar::Rows(level), h),
            (Scalar::Columns(level), w),
        ]),
        _ => None,
    };
    let filters = |layer: usize| match *reading.extents.as_slice() {
        [out, 1, 1, c, kh, kw, oh, ow] => Some(vec![
            (Scalar::Channels(layer + 1), out),
            (Scalar::Channels(layer), c),
            (Scalar::KernelRows(layer), kh),
            (Scalar::KernelColumns(layer), kw),
            (Scalar::Rows(layer + 1), oh),
            (Scalar::Columns(layer + 1), ow),
        ]),
        _ => None,
    };
    let logits = || match *reading.extents.as_slice() {
        [n, k, 1, 1] => Some(vec![(Scalar::Batch, n), (Scalar::Classes, k)]),
        _ => None,
    };
    match (reading.name, reading.what) {
        (Name::RawOutput, _) | (Name::Filter(0), What::Input) => activation(0),
        (Name::Filter(i), What::Input) => activation(i),
        (Name::Filter(i), What::Filters) | (Name::Weights(i), _) => filters(i),
        (
            Name::Filter(i)
            | Name::FilterOutput(i)
            | Name::FilterA(i)
            | Name::FilterAOutput(i)
            | Name::FilterNl(i)
            | Name::FilterNlOutput(i),
            _,
        ) => activation(i + 1),
        (Name::Bias(i), _) => match *reading.extents.as_slice() {
            [1, c, h, w] => Some(vec![
                (Scalar::Channels(i + 1), c),
                (Scalar::Rows(i + 1), h),
                (Scalar::Columns(i + 1), w),
            ]),
            _ => None,
        },
        (Name::Weights1, _) => match *reading.extents.as_slice() {
            [k, c, h, w] => Some(vec![
                (Scalar::Classes, k),
                (Scalar::Channels(layers), c),
                (Scalar::Rows(layers), h),
                (Scalar::Columns(layers), w),
            ]),
            _ => None,
        },
        (Name::Linear1, What::Input) => activation(layers),
        (Name::Linear1 | Name::Linear1Output | Name::Probability, _) => logits(),
        (Name::Labels, _) => match *reading.extents.as_slice() {
            [n, 1, 1, 1] => Some(vec![(Scalar::Batch, n)]),
            _ => None,
        },
        _ => Some(Vec::new()),
    }
}

fn majority(scalar: Scalar, votes: Option<&Votes>) -> Result<usize> {
    let mut ranked: Vec<_> = votes
        .into_iter()
        .flatten()
        .map(|(value, (count, lines))| (*count, *value, lines))
        .collect();
    ranked.sort_by_key(|(count, value, _)| (std::cmp::Reverse(*count), *value));
    match ranked.as_slice() {
        [] => Err(Error::input(format!("no legible reading tells {}", place(scalar)))
            .help(format!("pass it with --assume {}=N", key(scalar)))),
        [(first, _, _), (second, _, _), ..] if first == second => {
            let values: Vec<_> = ranked
                .iter()
                .filter(|(c, ..)| c == first)
                .map(|(_, value, _)| *value)
                .collect();
            Err(ambiguous(scalar, &values))
        }
        [(_, value, _), ..] => Ok(*value),
    }
}

/// The extents of all levels along one axis: the path of most votes on which every kernel fits, which must be the only one.
fn chain(
    votes: &BTreeMap<Scalar, Votes>,
    layers: usize,
    extent: fn(usize) -> Scalar,
    kernel: fn(usize) -> Scalar,
    chosen: &mut BTreeMap<Scalar, usize>,
) -> Result<()> {
    let count = |scalar: Scalar, value: usize| {
        votes
            .get(&scalar)
            .and_then(|v| v.get(&value))
            .map_or(0, |(count, _)| *count)
    };
    let candidates = |level: usize| votes.get(&extent(level)).into_iter().flatten().map(|(value, _)| *value);
    // Value at the level -> votes so far, number of best paths, value at the level before.
    type Column = BTreeMap<usize, (usize, usize, usize)>;
    let mut columns: Vec<Column> = vec![candidates(0).map(|v| (v, (count(extent(0), v), 1, 0))).collect()];
    for layer in 0..layers {
        let mut column = Column::new();
        for value in candidates(layer + 1) {
            for (&before, &(so_far, paths, _)) in columns.last().into_iter().flatten() {
                let Some(size) = before.checked_sub(value).map(|n| n + 1) else {
                    continue;
                };
                let kernel_votes = count(kernel(layer), size);
                if kernel_votes == 0 {
                    continue;
                }
                let total = so_far + kernel_votes + count(extent(layer + 1), value);
                let best = column.entry(value).or_insert((0, 0, 0));
                match total.cmp(&best.0) {
                    std::cmp::Ordering::Greater => *best = (total, paths, before),
                    std::cmp::Ordering::Equal => best.1 = best.1.saturating_add(paths),
                    std::cmp::Ordering::Less => {}
                }
            }
        }
        if column.is_empty() {
            let list = |scalar: Scalar| {
                votes
                    .get(&scalar)
                    .map(|v| v.keys().copied().collect::<Vec<_>>())
                    .unwrap_or_default()
            };
            let (from, to) = (extent(layer), extent(layer + 1));
            return Err(Error::input(format!(
                "{} of {:?}, {} of {:?} and {} of {:?} do not fit together",
                place(from),
                list(from),
                place(kernel(layer)),
                list(kernel(layer)),
                place(to),
                list(to)
            ))
            .expected("output = input - kernel + 1"));
        }
        columns.push(column);
    }
    let last = columns.last().into_iter().flatten();
    let best = last.clone().map(|(_, (total, ..))| *total).max().unwrap_or(0);
    let tops: Vec<_> = last.filter(|(_, (total, ..))| *total == best).collect();
    let (&value, &(_, paths, _)) = match tops.as_slice() {
        [only] => *only,
        [] => {
            return Err(Error::internal(format!(
                "no column of readings for {}",
                place(extent(layers))
            )));
        }
        several => {
            let values: Vec<_> = several.iter().map(|(value, _)| **value).collect();
            return Err(ambiguous(extent(layers), &values));
        }
    };
    if paths > 1 {
        let scalar = extent(layers.saturating_sub(1));
        let values: Vec<_> = candidates(layers.saturating_sub(1)).collect();
        return Err(ambiguous(scalar, &values));
    }
    let mut value = value;
    for level in (0..=layers).rev() {
        chosen.insert(extent(level), value);
        let before = columns
            .get(level)
            .and_then(|c| c.get(&value))
            .map_or(0, |(_, _, before)| *before);
        if let Some(layer) = level.checked_sub(1) {
            chosen.insert(kernel(layer), (before + 1).saturating_sub(value));
            value = before;
        }
    }
    Ok(())
}

fn ambiguous(scalar: Scalar, values: &[usize]) -> Error {
    let spelled: Vec<_> = values.iter().map(usize::to_string).collect();
    let (key, first) = (key(scalar), values.first().copied().unwrap_or(0));
    Error::new(
        ErrorKind::Ambiguous,
        format!(
            "readings of {} disagree, and the shapes around do not decide: {}",
            place(scalar),
            spelled.join(", ")
        ),
    )
    .help(format!("choose with --assume {key}={first} or another of these"))
}

/// The key of `--assume`.
fn key(scalar: Scalar) -> String {
    let of_level = |level: usize, what: &str| match level.checked_sub(1) {
        None => format!("data.{what}"),
        Some(layer) => format!("L{layer}.{what}"),
    };
    match scalar {
        Scalar::Batch => "batch.traced".to_string(),
        Scalar::Classes => "classes".to_string(),
        Scalar::Channels(level) => of_level(level, "channels"),
        Scalar::Rows(level) => of_level(level, "rows"),
        Scalar::Columns(level) => of_level(level, "columns"),
        Scalar::KernelRows(layer) => format!("L{layer}.kernel_rows"),
        Scalar::KernelColumns(layer) => format!("L{layer}.kernel_columns"),
    }
}

fn place(scalar: Scalar) -> String {
    let of_level = |level: usize, what: &str| match level.checked_sub(1) {
        None => format!("the {what} of data.raw_output"),
        Some(layer) => format!("the {what} of L{layer}.filter.output"),
    };
    match scalar {
        Scalar::Batch => "the batch".to_string(),
        Scalar::Classes => "the number of classes".to_string(),
        Scalar::Channels(level) => of_level(level, "channels"),
        Scalar::Rows(level) => of_level(level, "rows"),
        Scalar::Columns(level) => of_level(level, "columns"),
        Scalar::KernelRows(layer) => format!("the kernel rows of L{layer}.W"),
        Scalar::KernelColumns(layer) => format!("the kernel columns of L{layer}.W"),
    }
}
