//! Whether the kernels that packing chose by tables are those that take the fewest cycles: every int8 model, packed as it is and without the kernels that it
//! got, step by step.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use arenite::KernelId;
use arenite::kernels::Backend;
use arenite_host::board::{BenchOptions, Board, bench, ready};
use arenite_host::files;
use arenite_host::lower::constant_bytes;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::{Error, ErrorKind, Result};

use crate::cliffs::{models, stem};
use crate::most::rates::{BOARDS, is_chosen};
use crate::results::best_target;

/// Another kernel may take so many hundredths fewer cycles: the choice is by tables.
const MARGIN: u64 = 10;
/// And so many cycles fewer.
const SLACK: u64 = 500;

/// Cost of a step by one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The kernel.
    pub kernel: KernelId,
    /// Instructions.
    pub instructions: u64,
    /// The estimate of cycles.
    pub cycles: u64,
    /// Bytes of constants.
    pub flash: u64,
    /// Bytes of scratch.
    pub scratch: u64,
}

/// A step with the kernel that it got, and with the others that could have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Stem of the model's file.
    pub model: String,
    /// The board.
    pub board: &'static str,
    /// Index of the step.
    pub step: usize,
    /// The kernel that it got.
    pub chosen: Taken,
    /// The others, none of them a scalar one.
    pub others: Vec<Taken>,
}

impl Choice {
    /// Whether another kernel takes markedly fewer cycles and neither more flash nor more scratch.
    pub fn is_wrong(&self) -> bool {
        let Taken {
            cycles, flash, scratch, ..
        } = self.chosen;
        let fits = |other: &&Taken| other.flash <= flash && other.scratch <= scratch;
        let fewer = |other: &Taken| (other.cycles + SLACK) * 100 < cycles * (100 - MARGIN);
        self.others.iter().filter(fits).any(fewer)
    }

    /// The fewest cycles of the others.
    fn next(&self) -> Option<u64> {
        self.others.iter().map(|other| other.cycles).min()
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}, step {}:", self.model, self.board, self.step)?;
        for (taken, sign) in std::iter::once((&self.chosen, "")).chain(self.others.iter().map(|other| (other, ","))) {
            let name = taken.kernel.name();
            let Taken {
                instructions,
                cycles,
                flash,
                scratch,
                ..
            } = taken;
            write!(
                f,
                "{sign} {name} {cycles} cycles ({instructions} instructions, {flash} bytes and {scratch} of scratch)"
            )?;
        }
        Ok(())
    }
}

/// Returns the cost of every step that has a choice on `board`, in a file without the kernels `without`.
fn taken(model: &Path, board: &'static Board, without: &[KernelId]) -> Result<BTreeMap<usize, Taken>> {
    let folder = files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let output = folder.path().join("model.arenite");
    let options = Options {
        target: best_target(board),
        without: without.to_vec(),
        ..Options::new(model, &output)
    };
    pack(&options, &mut |_, _, _| {})?;
    let file = ModelFile::open(&output)?;
    let view = file.view()?;
    let inputs = vec![0; view.header().input_bytes as usize];
    let options = BenchOptions {
        code: false,
        ..BenchOptions::default()
    };
    let bench = bench(board, &file, &inputs, &options, &mut |_| ())?;
    let steps = view.steps()?;
    let with_cycles = steps.iter().zip(&bench.steps).enumerate();
    let found = with_cycles
        .filter(|(_, (step, _))| is_chosen(step.kernel()))
        .filter_map(|(at, (step, counted))| {
            let taken = Taken {
                kernel: step.kernel(),
                instructions: counted.instructions,
                cycles: counted.cycles?,
                flash: constant_bytes(step),
                scratch: step.needs().scratch.into(),
            };
            Some((at, taken))
        });
    Ok(found.collect())
}

/// The steps of `model` on `board`, each by every kernel that could have run it and is not a scalar one.
///
/// # Errors
/// As [`pack`] and [`bench()`].
pub fn of(model: &Path, board: &'static Board) -> Result<Vec<Choice>> {
    let chosen = taken(model, board, &[])?;
    let mut choices: BTreeMap<usize, Choice> = BTreeMap::new();
    for (&step, &chosen) in &chosen {
        let (model, board, others) = (stem(model), board.name, Vec::new());
        choices.insert(
            step,
            Choice {
                model,
                board,
                step,
                chosen,
                others,
            },
        );
    }
    let mut first: Vec<KernelId> = Vec::new();
    for taken in chosen.values() {
        if !first.contains(&taken.kernel) {
            first.push(taken.kernel);
        }
    }
    for kernel in first {
        let mut without = vec![kernel];
        loop {
            let others = taken(model, board, &without)?;
            let mut next = Vec::new();
            for (step, other) in others {
                let of_it = chosen.get(&step).is_some_and(|chosen| chosen.kernel == kernel);
                if of_it && other.kernel.backend() != Backend::Scalar {
                    if !next.contains(&other.kernel) {
                        next.push(other.kernel);
                    }
                    choices.entry(step).and_modify(|choice| choice.others.push(other));
                }
            }
            if next.is_empty() {
                break;
            }
            without.extend(next);
        }
    }
    Ok(choices.into_values().collect())
}

/// The choices of the models and boards called `only`, all where there are none; `note` hears of each model.
///
/// # Errors
/// As [`of`].
pub fn find(tests: &Path, shared: Option<&Path>, only: &[String], note: &mut dyn FnMut(&str)) -> Result<Vec<Choice>> {
    let (named, only): (Vec<String>, Vec<String>) =
        only.iter().cloned().partition(|name| BOARDS.contains(&name.as_str()));
    let mut found = Vec::new();
    for model in models(tests, shared, &only)? {
        for name in BOARDS
            .iter()
            .filter(|name| named.is_empty() || named.iter().any(|n| n == *name))
        {
            let board = Board::find(name).ok_or_else(|| Error::internal(format!("no board {name}")))?;
            ready(board)?;
            match of(&model, board) {
                Ok(choices) => {
                    let wrong = choices.iter().filter(|choice| choice.is_wrong()).count();
                    note(&format!(
                        "{} on {name}: {} steps, {wrong} wrong",
                        stem(&model),
                        choices.len()
                    ));
                    found.extend(choices);
                }
                Err(e) if e.kind() == ErrorKind::DoesNotFit => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(found)
}

/// A row for each board and kernel: how many steps it got, how many of them had another kernel to go to, what it takes beside the best of these.
pub fn table(choices: &[Choice]) -> String {
    let mut rows: BTreeMap<(usize, &str), Vec<&Choice>> = BTreeMap::new();
    for choice in choices {
        let board = BOARDS
            .iter()
            .position(|board| *board == choice.board)
            .unwrap_or_default();
        rows.entry((board, choice.chosen.kernel.name()))
            .or_default()
            .push(choice);
    }
    let mut text = "| board | kernel | steps | with another | their cycles | by the best other | wrong |\n".to_owned();
    text += "| --- | --- | --: | --: | --: | --: | --: |\n";
    for ((board, kernel), choices) in rows {
        let other: Vec<_> = choices
            .iter()
            .filter_map(|c| Some((c.chosen.cycles, c.next()?)))
            .collect();
        let (own, next) = other.iter().fold((0, 0), |(own, next), (a, b)| (own + a, next + b));
        let wrong = choices.iter().filter(|choice| choice.is_wrong()).count();
        text += &format!(
            "| `{}` | {kernel} | {} | {} | {own} | {next} | {wrong} |\n",
            BOARDS[board],
            choices.len(),
            other.len()
        );
    }
    text
}
