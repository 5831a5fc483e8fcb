//! Bytes of code that a program with a model takes, estimated from those of its kernels.
//!
//! Of a loaded one they are near: docs/footprint.md says how. Of a compiled one they are an upper bound: there the compiler knows each step's
//! constants, and drops what functions that kernels share would do for others.
//!
//! `cargo xtask bench --code-bytes` makes the table from a program with every kernel, linked for each board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use arenite::Step;
use arenite::kernels::api::candidate::Candidate;
use arenite::kernels::table::KernelVisitor;
use serde::{Deserialize, Serialize};

use crate::report::CodeEstimate;

/// The table, by the boards' names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Codes(pub BTreeMap<String, Code>);

/// Code that is built for a board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Bytes of start-up alone.
    pub start: u64,
    /// Bytes of a program that loads a model beside kernels and their checks: the file's own check, the session. Of a program with one kernel, whose functions
    /// have one caller, and of one with several.
    pub load: [u64; 2],
    /// Bytes of the functions and constants that kernels call and read, each linked once.
    pub shared: Vec<u64>,
    /// Kernels, by name.
    pub kernels: BTreeMap<String, Kernel>,
}

/// Code of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// All of it.
    pub whole: Part,
    /// Code that reads and checks its steps, in programs that load.
    pub check: Part,
    /// Of kernels in pieces: the code without any of them (at [`NONE`]), and by its bit each piece, with that code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pieces: BTreeMap<u8, Part>,
}

/// The bit of no piece.
pub const NONE: u8 = 32;

/// A function of its own, and what it shares with others: indices in the field `shared` of [`Code`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part(pub u64, pub BTreeSet<usize>);

/// The tracked table.
pub static TABLE: LazyLock<Codes> = LazyLock::new(|| {
    // A test reads it.
    serde_json::from_str(include_str!("code_bytes.json")).unwrap_or_default()
});

/// Bytes of a call of a compiled step beside its parameters.
const CALL: u64 = 12;

impl Codes {
    /// Estimated code of a model of these steps, whose constants are in `weights`, on `board`; `None` where the table does not know board or kernel.
    pub fn estimate(&self, board: &str, steps: &[Step], weights: &[u8]) -> Option<CodeEstimate> {
        let code = self.0.get(board)?;
        let mut taken = BTreeMap::<&str, u32>::new();
        let mut parameters = 0;
        for step in steps {
            *taken.entry(step.kernel().name()).or_default() |= step.pieces(weights);
            parameters += step.kernel().visit(Parameters).next_multiple_of(4) + CALL;
        }
        let (mut compiled, mut loaded) = (Vec::new(), Vec::new());
        for (kernel, pieces) in taken {
            let kernel = code.kernels.get(kernel)?;
            loaded.push(kernel);
            compiled.push(kernel.part(pieces));
        }
        Some(CodeEstimate {
            board: board.to_owned(),
            compiled: code.start + code.together(&compiled) + parameters,
            loaded: code.start + code.load[usize::from(loaded.len() > 1)] + code.loaded(&loaded),
        })
    }
}

impl Code {
    /// Bytes of a part with all that it shares with others.
    pub fn bytes(&self, part: &Part) -> u64 {
        self.together([part])
    }

    /// Bytes of these kernels and of their checks, in a program that loads.
    pub fn loaded(&self, kernels: &[&Kernel]) -> u64 {
        self.together(kernels.iter().flat_map(|kernel| [&kernel.whole, &kernel.check]))
    }

    /// Bytes of parts in one program.
    fn together<'p>(&self, parts: impl IntoIterator<Item = &'p Part>) -> u64 {
        let (mut own, mut shared) = (0, BTreeSet::new());
        for Part(bytes, with) in parts {
            own += bytes;
            shared.extend(with);
        }
        own + shared.into_iter().filter_map(|&at| self.shared.get(at)).sum::<u64>()
    }

    /// The kernels whose bytes are not those of `other`, within `slack` of them.
    pub fn unlike(&self, other: &Self, slack: impl Fn(u64) -> u64) -> Vec<String> {
        let mut found = Vec::new();
        let names: BTreeSet<&String> = self.kernels.keys().chain(other.kernels.keys()).collect();
        for name in names {
            let [known, is] = [self, other].map(|code| code.kernels.get(name).map(|kernel| code.parts(kernel)));
            let is_same = |known: &BTreeMap<String, u64>, is: &BTreeMap<String, u64>| {
                known.keys().eq(is.keys())
                    && known
                        .values()
                        .zip(is.values())
                        .all(|(&known, &is)| known.abs_diff(is) <= slack(known))
            };
            if !known
                .as_ref()
                .zip(is.as_ref())
                .is_some_and(|(known, is)| is_same(known, is))
            {
                found.push(format!("{name}: {known:?} bytes in the table, {is:?} now"));
            }
        }
        found
    }

    /// Bytes of a kernel's parts, by what they are.
    fn parts(&self, kernel: &Kernel) -> BTreeMap<String, u64> {
        let pieces = kernel.pieces.iter().map(|(bit, piece)| (format!("piece {bit}"), piece));
        [("whole".to_owned(), &kernel.whole), ("check".to_owned(), &kernel.check)]
            .into_iter()
            .chain(pieces)
            .map(|(what, part)| (what, self.bytes(part)))
            .collect()
    }
}

impl Kernel {
    /// Code that these pieces take.
    pub fn part(&self, pieces: u32) -> Part {
        let Some(none) = self.pieces.get(&NONE) else {
            return self.whole.clone();
        };
        let taken = self
            .pieces
            .iter()
            .filter(|(bit, _)| **bit < NONE && pieces >> **bit & 1 == 1);
        let mut part = none.clone();
        for (_, piece) in taken {
            part.0 += piece.0.saturating_sub(none.0);
            part.1.extend(&piece.1);
        }
        part.0 = part.0.min(self.whole.0);
        part
    }
}

/// Bytes of a step's parameters in a program.
struct Parameters;

impl KernelVisitor for Parameters {
    type Output = u64;

    fn visit<K: Candidate>(self) -> u64 {
        size_of::<K::Op>() as u64
    }
}
