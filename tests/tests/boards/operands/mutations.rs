//! Changed constants and parameters: what load accepts touches no byte beside its operands.

use arenite::testkit::{Attack, Found, Guard, Mutations, Workspace, mutate_guarded};
use arenite_tests::kit::compared;

use super::fence::field;
use super::{FIELD, Level, ROOM, levels, told};

/// Changed cases of each kernel, and changes of each.
const CASES: u32 = 40;
const CHANGES: u32 = 12;

/// Changes of all kernels together, at least.
const LONG: u64 = 10_000_000;

/// Changes `cases` of each kernel at each of these levels of instructions.
fn attacked(cases: u32, levels: Vec<Level>) -> u64 {
    let (field, mut fence) = field(FIELD);
    let (mut room, mut workspace) = (vec![0; ROOM], Box::new(Workspace::new()));
    let (mut changes, mut runs) = (0, 0);
    for (level, limit) in levels {
        if !limit() {
            continue;
        }
        for kernel in compared() {
            let (mut tally, mut found) = (Mutations::default(), Found::default());
            for seed in 0..cases {
                let mut guard = Guard {
                    field: &mut *field,
                    room: &mut room,
                    watch: &mut fence,
                    found: &mut found,
                };
                let attack = Attack::Random(CHANGES);
                let done = mutate_guarded(kernel, seed, attack, &mut tally, &mut workspace, &mut guard);
                if done.is_err() {
                    panic!("{level}: {}", told(kernel, seed, &found, &fence));
                }
            }
            changes += u64::from(tally.refused) + u64::from(tally.ran);
            runs += found.runs;
        }
    }
    println!("{changes} changes, {runs} guarded runs: no byte beside an operand was touched");
    changes
}

#[test]
fn no_change_leads_a_kernel_beside_its_operands() {
    // Another test of this program says at which level: it is the same for all threads.
    assert!(attacked(CASES, vec![("as it is", || true)]) > 20_000);
}

#[test]
#[ignore = "long: ten million changes between forbidden bytes"]
fn no_change_leads_a_kernel_beside_its_operands_long() {
    let count = levels().iter().filter(|(_, limit)| limit()).count() as u64;
    let each = LONG / count / u64::from(CHANGES) / compared().count() as u64 * 3 / 2;
    let changes = attacked(each as u32, levels());
    assert!(changes >= LONG, "{changes}");
}
