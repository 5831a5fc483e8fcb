//! The test kit on a board: kernels against the reference, and on changed cases.

use std::time::Duration;

use arenite::KernelId;
use arenite::testkit::{Difference, Mutations};
use arenite_protocol::{Command, Record};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::{Firmware, Profile};
use super::table::Board;

/// How a case of a kernel failed on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseFailure {
    /// It computed something else than the reference.
    Differs(Difference),
    /// A function in assembly did not restore registers of its caller.
    Unsaved {
        /// Their names.
        registers: String,
        /// The function.
        function: String,
    },
}

/// Result of comparing one of a board's kernels with the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The kernel.
    pub kernel: KernelId,
    /// Cases that it computed with the scalar kernel's outputs; or the seed of the first one that failed.
    pub result: Result<u32, (u32, CaseFailure)>,
}

/// Runs the program `kernels`: every kernel of the board's build, or the one that is named, against the reference of its operator, on `cases` generated
/// cases from seed `first` on. A kernel that the build lacks is not among what is found.
///
/// # Errors
/// As [`run`](super::run()).
pub fn kernels(
    board: &'static Board,
    only: Option<KernelId>,
    first: u32,
    cases: u32,
    timeout: Duration,
) -> Result<Vec<Comparison>, BoardError> {
    compared(Firmware::build(board, "kernels")?, only, first, cases, timeout)
}

/// As [`kernels`], of a build that looks at what each function in assembly leaves in its caller's registers, too.
///
/// # Errors
/// As [`run`](super::run()).
pub fn kernels_watched(
    board: &'static Board,
    only: Option<KernelId>,
    first: u32,
    cases: u32,
    timeout: Duration,
) -> Result<Vec<Comparison>, BoardError> {
    compared(Firmware::build_registers(board)?, only, first, cases, timeout)
}

fn compared(
    firmware: Firmware,
    only: Option<KernelId>,
    first: u32,
    cases: u32,
    timeout: Duration,
) -> Result<Vec<Comparison>, BoardError> {
    let mut found = Vec::new();
    let only = only.map(|kernel| kernel as u8);
    let command = Command::Kernels { only, first, cases };
    Exchange::new()?.carry_out(&firmware, command, &[], timeout, &mut |_| (), |record| {
        let (kernel, result) = match *record {
            Record::Compared { kernel, cases } => (kernel, Ok(cases)),
            _ => match failed(record, &firmware) {
                Some((kernel, failure)) => (kernel, Err(failure)),
                None => return,
            },
        };
        found.extend(KernelId::from_u8(kernel).map(|kernel| Comparison { kernel, result }));
    })?;
    Ok(found)
}

/// Result of a kernel's changed cases on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attacked {
    /// The kernel.
    pub kernel: KernelId,
    /// Refused, run, and what the runs computed; or the seed of the first case that load accepts and that does not run or writes beside its operands.
    pub result: Result<Mutations, (u32, CaseFailure)>,
}

/// Runs the program `kernels`, built in a profile, on changed cases: of each kernel of the board's build `cases`, from seed `first` on, each changed
/// `changes` times.
///
/// # Errors
/// As [`run`](super::run()).
pub fn mutations(
    board: &'static Board,
    profile: Profile,
    first: u32,
    cases: u32,
    changes: u32,
    timeout: Duration,
) -> Result<Vec<Attacked>, BoardError> {
    let firmware = Firmware::build_in(board, "kernels", profile)?;
    let mut found = Vec::new();
    let command = Command::Mutations { first, cases, changes };
    Exchange::new()?.carry_out(&firmware, command, &[], timeout, &mut |_| (), |record| {
        let (kernel, result) = match *record {
            Record::Mutated {
                kernel,
                refused,
                ran,
                digest,
            } => (kernel, Ok(Mutations { refused, ran, digest })),
            _ => match failed(record, &firmware) {
                Some((kernel, failure)) => (kernel, Err(failure)),
                None => return,
            },
        };
        found.extend(KernelId::from_u8(kernel).map(|kernel| Attacked { kernel, result }));
    })?;
    Ok(found)
}

/// The kernel of a case that failed, with the case's seed.
fn failed(record: &Record<'_>, firmware: &Firmware) -> Option<(u8, (u32, CaseFailure))> {
    match *record {
        Record::Differs {
            kernel,
            seed,
            at,
            found,
            expected,
        } => {
            let difference = Difference { at, found, expected };
            Some((kernel, (seed, CaseFailure::Differs(difference))))
        }
        Record::Unsaved {
            kernel,
            seed,
            registers,
            function,
        } => {
            let unsaved = CaseFailure::Unsaved {
                registers: registers_of(firmware.board(), registers).join(", "),
                function: firmware
                    .function_at(function)
                    .unwrap_or_else(|| format!("a function at {function:#x}")),
            };
            Some((kernel, (seed, unsaved)))
        }
        _ => None,
    }
}

/// The names of registers that [`arenite::testkit::Unsaved`] has as bits.
fn registers_of(board: &Board, registers: u32) -> Vec<String> {
    let name = |bit: u32| match bit {
        13 if board.triple.starts_with("thumb") => "sp".to_owned(),
        0..16 if board.triple.starts_with("thumb") => format!("r{bit}"),
        _ if board.triple.starts_with("thumb") => format!("s{bit}"),
        31 if board.triple.starts_with("aarch64") => "sp".to_owned(),
        8..16 if board.triple.starts_with("aarch64") => format!("d{bit}"),
        2 if board.triple.starts_with("riscv") => "sp".to_owned(),
        _ => format!("x{bit}"),
    };
    (0..32).filter(|bit| registers >> bit & 1 == 1).map(name).collect()
}
