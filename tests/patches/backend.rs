//! For a copy of the sources with `backend.patch`: its kernels in the test kit, against the scalar ones.

use arenite::kernels::Backend;
use arenite::testkit::{Attack, Mutations, Verdict, Workspace, compare, mutate};
use arenite::{KernelId, Target};

const CASES: u32 = 4000;

fn kernels() -> Vec<KernelId> {
    let all = KernelId::ALL.iter().copied();
    all.filter(|kernel| kernel.backend() == Backend::Demo).collect()
}

#[test]
fn both_kernels_equal_the_scalar_ones() {
    assert_eq!(kernels().len(), 2);
    let mut workspace = Box::new(Workspace::new());
    for kernel in kernels() {
        let verdicts = (0..CASES).map(|seed| match compare(kernel, seed, &mut workspace) {
            Ok(verdict) => verdict,
            Err(difference) => panic!("{}, seed {seed}: {difference:x?}", kernel.name()),
        });
        let computed = verdicts.filter(|verdict| *verdict == Verdict::Equal).count();
        println!("{}: {computed} of {CASES} cases equal", kernel.name());
        assert!(computed > CASES as usize / 4, "{}: {computed}", kernel.name());
    }
}

#[test]
fn no_bit_leads_them_out_of_their_operands() {
    let mut workspace = Box::new(Workspace::new());
    for kernel in kernels() {
        let mut tally = Mutations::default();
        for seed in 0..8 {
            mutate(kernel, seed, Attack::EveryBit, &mut tally, &mut workspace)
                .unwrap_or_else(|difference| panic!("{}, seed {seed}: {difference:x?}", kernel.name()));
        }
        println!("{}: {} refused, {} run", kernel.name(), tally.refused, tally.ran);
        assert!(tally.refused > 50 && tally.ran > 50, "{}: {tally:?}", kernel.name());
    }
}

/// The row's order: before the scalar kernels, for its target alone.
#[test]
fn packing_tries_them_first_for_their_target() {
    for target in Target::ALL {
        let found = KernelId::candidates(target, false)
            .take_while(|kernel| kernel.backend() == Backend::Demo)
            .count();
        assert_eq!(
            found,
            if target == Target::Portable { 2 } else { 0 },
            "{}",
            target.name()
        );
    }
}
