//! For a copy of the sources with `operator.patch`: its kernel in the test kit, against the reference.

use arenite::KernelId;
use arenite::testkit::{Verdict, Workspace, compare};

const CASES: u32 = 2000;

#[test]
fn the_operator_equals_its_reference() {
    let mut workspace = Box::new(Workspace::new());
    let kernel = KernelId::DeadZoneF32;
    let verdicts = (0..CASES).map(|seed| match compare(kernel, seed, &mut workspace) {
        Ok(verdict) => verdict,
        Err(difference) => panic!("seed {seed}: {difference:x?}"),
    });
    let computed = verdicts.filter(|verdict| *verdict == Verdict::Equal).count();
    println!("{}: {computed} of {CASES} cases equal", kernel.name());
    assert!(computed > CASES as usize / 4, "{computed}");
}
