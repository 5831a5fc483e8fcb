//! No kernel touches a byte beside its operands: each operand in turn lies in memory of exactly its bytes, between bytes that nothing may touch. On hosts these
//! are pages without access, on boards the memory protection's.
#![cfg(unix)]

mod boards;
mod fence;
mod files;
mod made;
mod mutations;
mod networks;

use arenite::KernelId;
use arenite::testkit::{Finding, Found, Guard, Workspace, guard};
use arenite_tests::kit::compared;
use fence::{Fence, field};

/// Cases of each kernel that are guarded on the host, at each level of instructions.
const HOST_CASES: u32 = 400;

/// Bytes of a field for any generated case.
const FIELD: usize = 16 << 10;
/// Bytes for encoded parameters.
const ROOM: usize = 4 << 10;

/// A level of instructions: its name, and what limits this host to it where it has it.
type Level = (&'static str, fn() -> bool);

/// The levels of instructions that this host may have.
fn levels() -> Vec<Level> {
    #[cfg(target_arch = "x86_64")]
    {
        use arenite::testkit::InstructionSet;
        vec![
            ("portable", || InstructionSet::Portable.limit()),
            ("avx2", || InstructionSet::Avx2.limit()),
            ("vnni", || InstructionSet::Vnni.limit()),
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    vec![("portable", || true)]
}

/// Returns the findings of a case, for people.
fn told(kernel: KernelId, seed: u32, found: &Found, fence: &Fence) -> String {
    let touched = fence.touched.map_or(String::new(), |(at, written)| {
        format!(", {} byte {at} of it", if written { "writes" } else { "reads" })
    });
    format!("{}, seed {seed}: {:?}{touched}", kernel.name(), found.finding)
}

#[test]
fn no_kernel_touches_a_byte_beside_its_operands_on_the_host() {
    let (field, mut fence) = field(FIELD);
    let (mut room, mut workspace) = (vec![0; ROOM], Box::new(Workspace::new()));
    let mut findings = Vec::new();
    for (level, limit) in levels() {
        if !limit() {
            continue;
        }
        let mut runs = 0;
        for kernel in compared() {
            let (mut computed, mut found) = (0, Found::default());
            for seed in 0..HOST_CASES {
                let mut guarded = Guard {
                    field: &mut *field,
                    room: &mut room,
                    watch: &mut fence,
                    found: &mut found,
                };
                match guard(kernel, seed, &mut workspace, &mut guarded) {
                    Ok(done) => computed += u32::from(done),
                    Err(_) => {
                        findings.push(format!("{level}: {}", told(kernel, seed, &found, &fence)));
                        fence.touched = None;
                        break;
                    }
                }
            }
            assert!(
                computed > HOST_CASES / 4 || !findings.is_empty(),
                "{}: computes {computed} of {HOST_CASES} cases",
                kernel.name()
            );
            runs += found.runs;
        }
        println!("{level}: {runs} guarded runs");
    }
    assert!(findings.is_empty(), "{findings:#?}");
}
