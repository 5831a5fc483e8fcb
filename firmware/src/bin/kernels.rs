//! Compares every kernel of this build with the reference of its operator on generated cases, attacks it with changed ones, or runs it between bytes that
//! nothing may touch, on the core itself: the assembly of a backend runs nowhere else.
#![no_std]
#![no_main]

#[cfg(not(few_kernels))]
#[path = "kernels/guards.rs"]
mod guards;

use core::cell::UnsafeCell;

use arenite::KernelId;
use arenite::testkit::{Attack, Difference, Mutations, Verdict, Workspace, compare, mutate, unsaved};
use arenite_firmware::Exchange;
use arenite_firmware::protocol::{Command, PROTOCOL_VERSION, Record, Request, exit};

arenite_firmware::entry!(main);

/// The cases' memory, which no stack here has room for.
struct Static(UnsafeCell<Workspace>);
// SAFETY: the program has one thread of execution, and `main` alone borrows it.
unsafe impl Sync for Static {}
static WORKSPACE: Static = Static(UnsafeCell::new(Workspace::new()));

fn main(exchange: &mut Exchange) -> i32 {
    let command = match exchange.request() {
        Ok(Request {
            version: PROTOCOL_VERSION,
            command: command @ (Command::Kernels { .. } | Command::Mutations { .. }),
        }) => command,
        #[cfg(not(few_kernels))]
        Ok(Request {
            version: PROTOCOL_VERSION,
            command: Command::Guards(request),
        }) => {
            // SAFETY: `main` runs once and returns with this: no other reference is made.
            let workspace = unsafe { &mut *WORKSPACE.0.get() };
            return guards::answer(exchange, &request, workspace)
                .err()
                .unwrap_or(exit::DONE);
        }
        Ok(_) => {
            exchange.record(&Record::BadRequest {
                version: PROTOCOL_VERSION,
            });
            return exit::REFUSED;
        }
        Err(error) => {
            defmt::error!("request: {}", error);
            return exit::IO;
        }
    };
    // SAFETY: `main` runs once, and the reference above is made only where it returns.
    let workspace = unsafe { &mut *WORKSPACE.0.get() };
    for &kernel in KernelId::ALL.iter().filter(|kernel| kernel.backend().available()) {
        let record = match command {
            Command::Kernels { only: Some(only), .. } if only != kernel as u8 => continue,
            Command::Kernels { first, cases, .. } => compared(kernel, first, cases, workspace),
            Command::Mutations { first, cases, changes } => mutated(kernel, first, cases, changes, workspace),
            _ => continue,
        };
        exchange.record(&record);
    }
    exit::DONE
}

/// Compares until a case differs.
fn compared(kernel: KernelId, first: u32, cases: u32, workspace: &mut Workspace) -> Record<'static> {
    let mut equal = 0;
    for seed in first..first.saturating_add(cases) {
        let verdict = compare(kernel, seed, workspace);
        if let Some(unsaved) = keeps(kernel, seed) {
            return unsaved;
        }
        match verdict {
            Ok(Verdict::Equal) => equal += 1,
            Ok(Verdict::NotComputed) => {}
            Err(difference) => return differs(kernel, seed, difference),
        }
    }
    Record::Compared {
        kernel: kernel as u8,
        cases: equal,
    }
}

/// Changes cases until one is accepted that should not be.
fn mutated(kernel: KernelId, first: u32, cases: u32, changes: u32, workspace: &mut Workspace) -> Record<'static> {
    let mut tally = Mutations::default();
    for seed in first..first.saturating_add(cases) {
        let done = mutate(kernel, seed, Attack::Random(changes), &mut tally, workspace);
        if let Some(unsaved) = keeps(kernel, seed) {
            return unsaved;
        }
        if let Err(difference) = done {
            return differs(kernel, seed, difference);
        }
    }
    Record::Mutated {
        kernel: kernel as u8,
        refused: tally.refused,
        ran: tally.ran,
        digest: tally.digest,
    }
}

/// The registers that a function of the case did not restore.
fn keeps(kernel: KernelId, seed: u32) -> Option<Record<'static>> {
    unsaved().map(|unsaved| Record::Unsaved {
        kernel: kernel as u8,
        seed,
        registers: unsaved.registers,
        function: unsaved.function as u64,
    })
}

fn differs(kernel: KernelId, seed: u32, difference: Difference) -> Record<'static> {
    Record::Differs {
        kernel: kernel as u8,
        seed,
        at: difference.at,
        found: difference.found,
        expected: difference.expected,
    }
}
