//! What load has seen of the constants that kernels trust.
//!
//! Steps may share constants, as the bands of one convolution do. Whether a kernel may trust its constants depends on its parameters and on them, and not on the
//! places of its operands: what was checked for one step holds for every one of the same kernel with the same parameters. To remember all of them would take
//! memory; to look for each among all before it, time in proportion to the square of their number. So constants behind all that were checked are new and need no
//! search, a search goes on where the one before it found something, as bands repeat in their order, and what is looked at again is counted.

use core::cell::Cell;

use crate::fields::Fields;

/// How often load looks at each byte of the weights and of the steps again, at most. Of a step that it passes in a search, four bytes take no longer than one of
/// the weights.
const AGAIN: u32 = 16;

/// A step as the file has it: its kernel's number and its parameters.
pub(crate) type Record<'a> = (u8, &'a [u8]);

/// What is known of a step's constants before they are looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// An equal step was checked with them.
    Checked,
    /// Nothing.
    No,
    /// Nothing, and too much has been looked at again.
    Shared,
}

/// What was checked so far.
#[derive(Debug)]
pub(crate) struct Trusted<'a> {
    /// All steps.
    steps: &'a [u8],
    /// The steps behind the one that a search found last.
    next: Cell<&'a [u8]>,
    /// Where the weights end that any step was checked with.
    end: Cell<u32>,
    /// Of the step that is being checked: where its constants begin and end, and how many bytes they are. Here, because every other place would be in the frame
    /// of each kernel's check.
    first: Cell<u32>,
    last: Cell<u32>,
    bytes: Cell<u32>,
    /// Bytes that may be looked at again.
    budget: Cell<u32>,
}

impl<'a> Trusted<'a> {
    pub(crate) fn new(weights: &[u8], steps: &'a [u8]) -> Self {
        let bytes = (weights.len() as u32).saturating_add(steps.len() as u32);
        Self {
            steps,
            next: Cell::new(steps),
            end: Cell::new(0),
            first: Cell::new(0),
            last: Cell::new(0),
            bytes: Cell::new(0),
            budget: Cell::new(bytes.saturating_mul(AGAIN)),
        }
    }

    /// Begins with a step.
    pub(crate) fn begin(&self) {
        self.first.set(u32::MAX);
        self.last.set(0);
        self.bytes.set(0);
    }

    /// Adds an operand of the step among the weights, inside of them.
    pub(crate) fn add(&self, offset: u32, bytes: u32) {
        self.first.set(self.first.get().min(offset));
        self.last.set(self.last.get().max(offset + bytes));
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// What is known of the constants of `record`, whose parameters behind its places `key` gives. They count as checked from then on: a load in which they turn
    /// out to be wrong ends there.
    #[inline(never)]
    pub(crate) fn before(&self, record: Record<'_>, key: fn(&[u8]) -> &[u8]) -> Before {
        let checked = self.end.get();
        self.end.set(checked.max(self.last.get()));
        if self.first.get() >= checked {
            Before::No
        } else if self.find(record, key) {
            Before::Checked
        } else if self.spend(self.bytes.get()) {
            Before::No
        } else {
            Before::Shared
        }
    }

    /// Whether a step before `record` is equal to it but for its places: those behind the last one that was found, then those before them.
    fn find(&self, (kernel, params): Record<'_>, key: fn(&[u8]) -> &[u8]) -> bool {
        let (wanted, next) = (key(params), self.next.get());
        [(next, params), (self.steps, next)].into_iter().any(|(steps, until)| {
            let mut fields = Fields::new(steps);
            while let Some((id, other)) = fields.record() {
                if other.as_ptr() >= until.as_ptr() || !self.spend(other.len() as u32 / 4 + 1) {
                    return false;
                }
                if id == kernel && key(other) == wanted {
                    self.next.set(fields.rest());
                    return true;
                }
            }
            false
        })
    }

    /// Takes what is to be looked at again from the budget; false where there is no more.
    fn spend(&self, bytes: u32) -> bool {
        let left = self.budget.get().checked_sub(bytes);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as the file has them: kernel, length, one byte of places, parameters.
    const STEPS: &[u8] = &[
        7, 2, 0, 5, 8, 2, 1, 5, 7, 2, 2, 5, 7, 2, 3, 6, 9, 0, 7, 2, 4, 5, 7, 2, 5, 6, 8, 2, 6, 5,
    ];

    fn record(index: usize) -> Record<'static> {
        let mut fields = Fields::new(STEPS);
        let mut record = fields.record();
        for _ in 0..index {
            record = fields.record();
        }
        record.expect("a record")
    }

    fn behind(params: &[u8]) -> &[u8] {
        params.get(1..).unwrap_or_default()
    }

    fn before(trusted: &Trusted<'_>, index: usize, operands: &[(u32, u32)]) -> Before {
        trusted.begin();
        for &(offset, bytes) in operands {
            trusted.add(offset, bytes);
        }
        trusted.before(record(index), behind)
    }

    #[test]
    fn equal_steps_of_one_kernel_are_checked_once() {
        let trusted = Trusted::new(&[0; 100], STEPS);
        let asked = |index: usize| before(&trusted, index, &[(8, 4), (0, 2)]);
        // The kernel differs in the second, a parameter in the fourth; the fifth has none. Places differ in all.
        let expected = [true, true, false, true, true, false, false, false]
            .map(|new| if new { Before::No } else { Before::Checked });
        for (index, expected) in expected.into_iter().enumerate() {
            assert_eq!(asked(index), expected, "step {index}");
        }
    }

    #[test]
    fn constants_behind_all_that_were_checked_are_new() {
        let trusted = Trusted::new(&[0; 100], STEPS);
        let broke = |index: usize, operands: &[(u32, u32)]| {
            trusted.budget.set(0);
            before(&trusted, index, operands)
        };
        assert_eq!(broke(0, &[(8, 8), (2, 4)]), Before::No);
        assert_eq!(broke(1, &[(16, 4)]), Before::No);
        assert_eq!(broke(2, &[(20, 4), (19, 1)]), Before::Shared);
        // What was refused for ends the load; it counts all the same.
        assert_eq!(broke(3, &[(23, 4)]), Before::Shared);
        assert_eq!(broke(4, &[(27, 1), (90, 10)]), Before::No);
        assert_eq!(broke(5, &[(99, 1)]), Before::Shared);
    }

    #[test]
    fn what_is_looked_at_again_is_counted() {
        let shared = |budget: u32, bytes: u32| {
            let trusted = Trusted::new(&[0; 100], STEPS);
            trusted.end.set(50);
            trusted.budget.set(budget);
            (before(&trusted, 4, &[(0, bytes)]), trusted.budget.get())
        };
        // Four steps are passed.
        assert_eq!(shared(4 + 30, 30), (Before::No, 0));
        assert_eq!(shared(4 + 30, 29), (Before::No, 1));
        assert_eq!(shared(4 + 29, 30), (Before::Shared, 0));
        assert_eq!(shared(3, 0), (Before::No, 0));
        let trusted = Trusted::new(&[0; 100], STEPS);
        assert_eq!(trusted.budget.get(), 16 * (100 + STEPS.len() as u32));
    }

    #[test]
    fn a_search_goes_on_behind_the_last_one_and_then_from_the_start() {
        let trusted = Trusted::new(&[0; 100], STEPS);
        trusted.end.set(50);
        let passed = |index: usize| {
            trusted.budget.set(100);
            let before = before(&trusted, index, &[(0, 1)]);
            (before, 100 - trusted.budget.get())
        };
        assert_eq!(passed(2), (Before::Checked, 1));
        assert_eq!(passed(5), (Before::Checked, 2));
        assert_eq!(passed(6), (Before::Checked, 1));
        // Three between that and the step, then two from the start.
        assert_eq!(passed(7), (Before::Checked, 3 + 2));
    }
}
