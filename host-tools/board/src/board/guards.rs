//! Kernels on a board, with each operand in turn between bytes that its memory protection forbids.

use std::time::Duration;

use arenite::KernelId;
use arenite_protocol::{Command, Guards, INPUT_FILE, Probe, Record};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::Firmware;
use super::table::Board;
use crate::model::Blob;

/// Results of runs between forbidden bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardReport {
    /// Kernels, or a model's steps, that kept to their operands: the kernel, the cases that it computes, and guarded runs.
    pub kept: Vec<(KernelId, u32, u64)>,
    /// Accesses outside of the operands.
    pub outside: Vec<Outside>,
}

/// A kernel that did not keep to an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// The kernel.
    pub kernel: KernelId,
    /// The generated case, or the step of the model.
    pub seed: u32,
    /// The operand's index.
    pub operand: u8,
    /// Whether its first byte lay against forbidden ones, and not its last.
    pub start: bool,
    /// The finding, in a word; of a fault the board's description.
    pub finding: String,
}

/// Subject of guarded runs.
#[derive(Debug, Clone, Copy)]
pub enum Guarding<'b> {
    /// Generated cases of each kernel of the board's build, or of one of them, from a seed on.
    Cases {
        /// The one kernel; all without it.
        only: Option<KernelId>,
        /// The first seed.
        first: u32,
        /// For each kernel.
        cases: u32,
    },
    /// The steps of a model on one set of inputs.
    Steps {
        /// The model.
        model: &'b [u8],
        /// Its inputs in order, raw little-endian bytes.
        inputs: &'b [u8],
        /// Bytes of the largest operand, or of all constants of a step.
        largest: u32,
    },
}

/// Bytes of a field for generated cases.
const FIELD: u32 = 8 << 10;

/// Runs the program `kernels` on what is to be guarded. A fault ends the program; it is then started again behind what faulted. `None` where the board's core
/// has
/// no memory protection.
///
/// # Errors
/// As [`run`](super::run()); faults are findings and no errors.
pub fn guards(
    board: &'static Board,
    guarding: Guarding<'_>,
    timeout: Duration,
) -> Result<Option<GuardReport>, BoardError> {
    let firmware = Firmware::build(board, "kernels")?;
    let mut report = GuardReport::default();
    let mut request = Guards {
        field: FIELD,
        probe: None,
        blob_address: 0,
        blob_length: 0,
        from: 0,
        only: None,
        first: 0,
        cases: 0,
    };
    loop {
        let exchange = Exchange::new()?;
        let mut loader = Vec::new();
        match guarding {
            Guarding::Cases { only, first, cases } => {
                (request.only, request.first, request.cases) = (only.map(|kernel| kernel as u8), first, cases);
            }
            Guarding::Steps { model, inputs, largest } => {
                request.field = largest;
                exchange.write(INPUT_FILE, inputs)?;
                (request.blob_address, request.blob_length, loader) =
                    exchange.place_blob(&firmware, Blob::Bytes(model))?;
            }
        }
        let (mut told, mut last, mut unprotected) = (0, None, false);
        let done = exchange.carry_out(
            &firmware,
            Command::Guards(request),
            &loader,
            timeout,
            &mut |_| (),
            |record| match *record {
                Record::Guarded { kernel, cases, runs } => {
                    told += 1;
                    report
                        .kept
                        .extend(KernelId::from_u8(kernel).map(|kernel| (kernel, cases, runs)));
                }
                Record::Outside {
                    finding: "unprotected", ..
                } => unprotected = true,
                Record::Outside {
                    kernel,
                    seed,
                    operand,
                    start,
                    finding,
                } => {
                    told += 1;
                    last = Some(seed);
                    report.outside.extend(KernelId::from_u8(kernel).map(|kernel| Outside {
                        kernel,
                        seed,
                        operand,
                        start,
                        finding: finding.to_owned(),
                    }));
                }
                _ => {}
            },
        );
        match (done, report.outside.last_mut()) {
            (Ok(_), _) if unprotected => return Ok(None),
            (Ok(_), _) => return Ok(Some(report)),
            (Err(fault @ BoardError::Fault { .. }), Some(outside))
                if last.is_some() && outside.finding == "touched" =>
            {
                outside.finding = fault.to_string();
                request.from = match guarding {
                    Guarding::Cases { .. } => request.from + told,
                    Guarding::Steps { .. } => outside.seed + 1,
                };
            }
            (Err(error), _) => return Err(error),
        }
    }
}

/// Touches a forbidden byte on a board on purpose.
///
/// # Errors
/// The fault that it is. A board that does not fault gives `Ok`.
pub fn touch(board: &'static Board, probe: Probe, timeout: Duration) -> Result<(), BoardError> {
    let firmware = Firmware::build(board, "kernels")?;
    let request = Guards {
        field: FIELD,
        probe: Some(probe),
        blob_address: 0,
        blob_length: 0,
        from: 0,
        only: None,
        first: 0,
        cases: 0,
    };
    let done = Exchange::new()?.carry_out(&firmware, Command::Guards(request), &[], timeout, &mut |_| (), |_| ());
    done.map(drop)
}
