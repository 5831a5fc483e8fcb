//! Entries of the test kit: cases are compared, changed, guarded and handed out.

use super::compare::{Bench, Outcome};
use super::field::{Finding, Guard};
use super::generate::Sampled;
use super::memory::{Difference, Workspace};
use super::mutate::{Attack, Mutations};
use super::random::Random;
use super::task::Task;
use crate::kernels::Backend;
use crate::kernels::api::candidate::Candidate;
use crate::kernels::table::{KernelId, kernels};

/// The case of `seed` for a kernel of the table; `None` where this build has it not. Other kernels are not compiled in: the kit has to fit small boards.
macro_rules! cases {
    ($($id:literal $variant:ident $backend:ident $kernel:ty;)*) => {
        fn case_of(kernel: KernelId, bench: &mut Bench<'_>, seed: u32) -> Option<Outcome> {
            use crate::kernels::*;
            use crate::ops::{binary, pointwise};
            match kernel {
                $(KernelId::$variant if const { Backend::$backend.available() && held(Backend::$backend) } => {
                    Some(case::<$kernel>(bench, seed))
                })*
                _ => None,
            }
        }
    };
}
kernels!(cases);

/// Whether this build of the kit has cases of a backend's kernels: where the flash is small, the portable ones are left to other boards of the same core.
const fn held(backend: Backend) -> bool {
    !cfg!(feature = "testkit-small") || !matches!(backend, Backend::Scalar)
}

/// A kernel whose operator is not [`Sampled`] does not compile.
fn case<K: Candidate<Op: Sampled>>(bench: &mut Bench<'_>, seed: u32) -> Outcome {
    <K::Op as Sampled>::case::<K>(bench, seed)
}

impl Bench<'_> {
    /// The case of `seed`.
    pub(super) fn each(&mut self, seed: u32) -> Outcome {
        case_of(self.kernel, self, seed).unwrap_or(Ok(None))
    }
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The outputs are those of the reference, wherever output and input may lie.
    Equal,
    /// The kernel does not compute this case, or it is not in this build, or no core computes it.
    NotComputed,
}

/// Runs `kernel` and the reference of its operator on the case of `seed`: with the output apart from the input, as close to it as the kernel allows, and in its
/// place where that is allowed; the same for every other operand that is read, as a residual.
///
/// # Errors
/// The first output that differs: by a bit for integers and for f32 of the same operations, by more than 1e-4 for convolutions of f32, by more than 1e-5 of
/// the largest output for other sums of f32 and for their functions.
pub fn compare(kernel: KernelId, seed: u32, workspace: &mut Workspace) -> Result<Verdict, Difference> {
    let mut bench = Bench {
        kernel,
        random: Random::new(seed),
        workspace,
        task: Task::Compare,
    };
    let done = bench.each(seed);
    done.map(|computed| computed.map_or(Verdict::NotComputed, |()| Verdict::Equal))
}

/// The case of `seed` with its constants and parameters changed, as [`Attack`] says: each is refused by load's checks or runs within its operands. Counts up
/// `tally`.
///
/// # Errors
/// A changed case that load accepts and that does not run, or writes beside its operands.
pub fn mutate(
    kernel: KernelId,
    seed: u32,
    attack: Attack,
    tally: &mut Mutations,
    workspace: &mut Workspace,
) -> Result<(), Difference> {
    let mut bench = Bench {
        kernel,
        random: Random::new(seed),
        workspace,
        task: Task::Mutate(attack, tally, None),
    };
    bench.each(seed).map(|_| ())
}

/// A step for a blob, of [`packed`].
#[derive(Debug, Clone, Copy)]
pub struct Packed<'w> {
    /// The encoded operator.
    pub params: &'w [u8],
    /// The weights.
    pub constants: &'w [u8],
    /// Bytes of arena.
    pub arena: usize,
}

/// The case of `seed` as a step of a blob; `None` where the kernel does not compute it.
pub fn packed<'w>(
    kernel: KernelId,
    seed: u32,
    params: &'w mut [u8],
    workspace: &'w mut Workspace,
) -> Option<Packed<'w>> {
    let mut lens = [0; 3];
    let mut bench = Bench {
        kernel,
        random: Random::new(seed),
        workspace,
        task: Task::Export(params, &mut lens),
    };
    bench.each(seed).ok()??;
    let [params_len, constants_len, arena] = lens;
    Some(Packed {
        params: params.get(..params_len)?,
        constants: workspace.constants.0.get(..constants_len)?,
        arena,
    })
}

/// Runs the case of `seed` with each operand in turn between forbidden bytes ([`guarded`](super::guarded())). `false` where the kernel does not
/// compute the case, or is not in this build.
///
/// # Errors
/// The first finding.
pub fn guard(kernel: KernelId, seed: u32, workspace: &mut Workspace, guard: &mut Guard<'_>) -> Result<bool, Finding> {
    guard.found.finding = None;
    let mut bench = Bench {
        kernel,
        random: Random::new(seed),
        workspace,
        task: Task::Guard(guard.again()),
    };
    match bench.each(seed) {
        Ok(computed) => Ok(computed.is_some()),
        Err(_) => Err(guard.found.finding.unwrap_or(Finding::Stopped)),
    }
}

/// As [`mutate`], and what load accepts runs with each operand in turn between forbidden bytes as well.
///
/// # Errors
/// As [`mutate`]; the guard has the finding, where there is one.
pub fn mutate_guarded(
    kernel: KernelId,
    seed: u32,
    attack: Attack,
    tally: &mut Mutations,
    workspace: &mut Workspace,
    guard: &mut Guard<'_>,
) -> Result<(), Difference> {
    let mut bench = Bench {
        kernel,
        random: Random::new(seed),
        workspace,
        task: Task::Mutate(attack, tally, Some(guard.again())),
    };
    bench.each(seed).map(|_| ())
}
