//! For tests and measurements on hosts and boards (feature `testkit`): one kernel on memory of the caller's, without a blob, every kernel
//! against the reference of its operator on generated cases ([`compare`](compare())), every kernel on such cases with bits changed ([`mutate`]) and with
//! each operand between bytes that nothing may touch ([`guard`](guard())); hosts with fewer instructions than they have (`InstructionSet`).

mod cases;
mod compare;
mod entries;
mod field;
mod functions;
mod generate;
mod guarded;
mod jobs;
mod memory;
mod mutate;
mod network;
mod random;
mod run;
mod sampled;
mod svdf;
mod task;

pub use entries::{Packed, Verdict, compare, guard, mutate, mutate_guarded, packed};
pub use field::{Bed, Finding, Found, Guard, Guarded, Memory, Side, Watch};
pub use guarded::guarded;
pub use memory::{Difference, Workspace};
pub use mutate::{Attack, Mutations};
pub use network::{NetworkMemory, StepFound, guard_network};
pub use run::run;

pub use crate::kernels::isa::registers::{Unsaved, unsaved};

#[cfg(target_arch = "x86_64")]
pub use crate::kernels::x86::Level as InstructionSet;

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::compare::{Bench, Outcome};
    use super::random::Random;
    use super::task::Task;
    use super::{Attack, Mutations, Verdict, Workspace, compare, mutate};
    use crate::kernels::table::KernelId;

    extern crate std;

    /// Cases of each kernel. `tests/tests/boards/kernels.rs` takes thousands; this is for Miri, which takes a thousand times as long for one.
    const CASES: u32 = if cfg!(miri) { 2 } else { 60 };
    const CHANGES: u32 = 2;

    fn case<'w>(kernel: KernelId, seed: u32, task: Task<'w>, workspace: &'w mut Workspace) -> Outcome {
        let mut bench = Bench {
            kernel,
            random: Random::new(seed),
            workspace,
            task,
        };
        bench.each(seed)
    }

    /// The test of the test: a single output of the reference that is another is found, of every kernel.
    #[test]
    fn every_wrong_output_is_found() {
        let mut workspace = Box::new(Workspace::new());
        for &kernel in KernelId::ALL.iter().filter(|&&kernel| kernel != KernelId::EthosU) {
            let mut found = 0;
            for seed in 0..CASES {
                let right = case(kernel, seed, Task::Compare, &mut workspace);
                assert!(right.is_ok(), "{}, seed {seed}: {right:x?}", kernel.name());
                let spoilt = case(kernel, seed, Task::Spoil, &mut workspace);
                match right {
                    Ok(None) => assert_eq!(spoilt, Ok(None), "{}, seed {seed}", kernel.name()),
                    _ => assert_eq!(
                        spoilt.map_err(|difference| difference.at),
                        Err(0),
                        "{}, seed {seed}",
                        kernel.name()
                    ),
                }
                found += u32::from(spoilt.is_err());
            }
            assert!(found > CASES / 4, "{}: {found} of {CASES}", kernel.name());
        }
    }

    #[test]
    fn kernels_are_right_and_bear_changes() {
        let mut workspace = Box::new(Workspace::new());
        let (mut equal, mut tally) = (0, Mutations::default());
        for &kernel in KernelId::ALL {
            for seed in 0..CASES {
                match compare(kernel, seed, &mut workspace) {
                    Ok(verdict) => equal += u32::from(verdict == Verdict::Equal),
                    Err(difference) => panic!("{}, seed {seed}: {difference:x?}", kernel.name()),
                }
                mutate(kernel, seed, Attack::Random(CHANGES), &mut tally, &mut workspace)
                    .unwrap_or_else(|difference| panic!("{}, seed {seed}: {difference:x?}", kernel.name()));
            }
        }
        assert!(
            equal > 10 * CASES && tally.refused > 0 && tally.ran > 0,
            "{equal} equal, {tally:?}"
        );
    }
}
