//! Nodes that cannot be translated: all at once, each reason once, with the number of its nodes.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, ErrorKind, Result};

/// Findings of the translation so far. Nodes are known by their address.
#[derive(Default)]
pub(super) struct Findings<'a> {
    /// Nodes that cannot be translated.
    pub(super) problems: Vec<(usize, Problem)>,
    /// The branch that each `If` takes: its place among the node's graphs.
    pub(super) taken: HashMap<usize, usize>,
    /// Names that live nodes and outputs read.
    pub(super) read: HashSet<&'a str>,
    /// Nodes that are constants.
    pub(super) constants: usize,
}

/// Why a node cannot be translated.
pub(super) struct Problem {
    op: String,
    place: String,
    error: Error,
}

impl Problem {
    pub(super) fn new(op: &str, place: String, error: Error) -> Self {
        Self {
            op: op.to_string(),
            place,
            error,
        }
    }

    fn located(self, count: usize) -> Error {
        let others = match count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.error.at(format_args!("{}{others}", self.place))
    }
}

/// The problems as one error. A fault of the file itself comes first, alone.
pub(super) fn report(mut problems: Vec<Problem>) -> Result<()> {
    if let Some(at) = problems.iter().position(|p| p.error.kind() != ErrorKind::Unsupported) {
        return Err(problems.swap_remove(at).located(1));
    }
    let nodes = problems.len();
    let mut reasons: Vec<(Problem, usize)> = Vec::new();
    let mut index: HashMap<(String, String), usize> = HashMap::new();
    for problem in problems {
        let key = (problem.op.clone(), problem.error.to_string());
        match index.get(&key) {
            Some(&known) => reasons[known].1 += 1,
            None => {
                index.insert(key, reasons.len());
                reasons.push((problem, 1));
            }
        }
    }
    match reasons.len() {
        0 => Ok(()),
        1 => Err(reasons.swap_remove(0)).map_err(|(problem, count)| problem.located(count)),
        _ => {
            let each = reasons
                .into_iter()
                .map(|(p, count)| format!("  - {}", p.located(count)).replace('\n', "\n  "));
            let list: Vec<String> = each.collect();
            Err(Error::unsupported(format!(
                "{nodes} nodes are not supported:\n{}",
                list.join("\n")
            )))
        }
    }
}
