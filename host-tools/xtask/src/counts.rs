//! What every tracked model costs today beside what it cost at a commit before: `tests/results/counts.json`, a line for each way of packing and running
//! it. Without estimates and single steps, so that all of it is counted in minutes.

use std::path::Path;

use arenite_host::board::{BenchOptions, bench, ready};
use arenite_host::files::{self, Scratch};
use arenite_host::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::results::{Configuration, SUBJECTS, packed};

/// The file in the folder of the results.
pub const FILE: &str = "counts.json";

/// All that was counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counts {
    /// The commit that `before` was counted at.
    pub commit: String,
    /// A model packed one way and run on one board.
    pub rows: Vec<Row>,
}

/// A model packed one way and run on one board.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Name of the subject.
    pub model: String,
    /// The board.
    pub board: String,
    /// `pack --target`.
    pub target: String,
    /// `pack --size`.
    pub size: bool,
    /// At the commit before; none where it was not tracked.
    pub before: Option<Cost>,
    /// Today.
    pub after: Option<Cost>,
}

/// What a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Instructions of a run.
    pub instructions: u64,
    /// Bytes of arena, all regions.
    pub arena_bytes: u64,
    /// Bytes of the packed file.
    pub model_bytes: u64,
}

/// Reads the file.
///
/// # Errors
/// [`ErrorKind::Io`], [`ErrorKind::Input`].
pub fn read(results: &Path) -> Result<Counts> {
    let path = results.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the counts", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no counts: {e}")).in_file(&path))
}

/// Counts every subject on its boards again, and writes what it costs beside what it cost. `note` hears of each. A subject of the shared data is left as it
/// is where there is none.
///
/// # Errors
/// As [`packed`] and [`bench()`]; [`ErrorKind::Io`].
pub fn update(tests: &Path, shared: Option<&Path>, results: &Path, note: &mut dyn FnMut(&str)) -> Result<()> {
    let mut counts = read(results)?;
    for subject in &SUBJECTS {
        let Some(model) = subject.file(tests, shared) else {
            note(&format!("{}: left as it is, there is no shared data", subject.name));
            continue;
        };
        for configuration in subject.configurations() {
            let Some(cost) = cost(&model, configuration)? else {
                continue;
            };
            let (board, target) = (configuration.board.name, configuration.target.name());
            note(&format!("{} for {target} on {board}: {cost:?}", subject.name));
            let is_it = |row: &&mut Row| {
                (row.model.as_str(), row.board.as_str()) == (subject.name, board)
                    && (row.target.as_str(), row.size) == (target, configuration.size)
            };
            match counts.rows.iter_mut().find(is_it) {
                Some(row) => row.after = Some(cost),
                None => counts.rows.push(Row {
                    model: subject.name.to_owned(),
                    board: board.to_owned(),
                    target: target.to_owned(),
                    size: configuration.size,
                    before: None,
                    after: Some(cost),
                }),
            }
        }
    }
    let json = |value: &Row| serde_json::to_string(value).map_err(|e| Error::internal(e.to_string()));
    let rows: Result<Vec<String>> = counts.rows.iter().map(json).collect();
    let text = format!(
        "{{\"commit\":\"{}\",\"rows\":[\n{}\n]}}\n",
        counts.commit,
        rows?.join(",\n")
    );
    files::write(&results.join(FILE), text.as_bytes())
}

/// Packs and runs once; none where the board lacks the room.
fn cost(model: &Path, configuration: Configuration) -> Result<Option<Cost>> {
    ready(configuration.board)?;
    let folder = Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let file = packed(model, configuration, folder.path())?;
    let inputs = vec![0; file.view()?.header().input_bytes as usize];
    let options = BenchOptions {
        trace: false,
        code: false,
        ..BenchOptions::default()
    };
    match bench(configuration.board, &file, &inputs, &options, &mut |_| ()) {
        Ok(bench) => Ok(Some(Cost {
            instructions: bench.instructions,
            arena_bytes: bench.arena_bytes,
            model_bytes: file.bytes().len() as u64,
        })),
        Err(e) if e.kind() == ErrorKind::DoesNotFit => Ok(None),
        Err(e) => Err(e),
    }
}
