//! Record of the constants that load has checked and kernels trust.
//!
//! Steps may share constants, as the bands of one convolution do. Whether a kernel may trust its constants depends on its parameters and on them, and not
//! on the places of its operands: what was checked for one step holds for every one of the same kernel with the same parameters. To remember all of them
//! would take memory; to look for each among all before it, time in proportion to the square of their number. So constants behind all that were checked are
//! new and need no search, a search goes on where the one before it found something, as bands repeat in their order, and what is looked at again is counted.

use core::cell::Cell;

use crate::fields::Fields;

/// Number of times that load looks at each byte of the weights and of all steps again, at most. Of a step that it passes in a search, four bytes take no longer
/// than one of the weights.
const AGAIN: u32 = 16;

/// A step as the file has it: its kernel's number and its parameters.
pub(crate) type Record<'a> = (u8, &'a [u8]);

/// The places of an operator in the order of its fields: how many, and a bit for each that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Places {
    /// At most 32.
    pub count: u8,
    /// Bit `n` for place `n`.
    pub optional: u32,
}

impl Places {
    pub(crate) const NONE: Self = Self { count: 0, optional: 0 };
    pub(crate) const ONE: Self = Self { count: 1, optional: 0 };
    pub(crate) const OPTIONAL: Self = Self { count: 1, optional: 1 };

    /// These and those behind them.
    pub(crate) const fn and(self, next: Self) -> Self {
        Self {
            count: self.count + next.count,
            optional: self.optional | next.optional << self.count,
        }
    }
}

/// Knowledge of a step's constants before they are looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// An equal step was checked with them.
    Checked,
    /// Nothing.
    No,
    /// Nothing, and too much has been looked at again.
    Shared,
}

/// Result of the checks of one list of steps, which those of the file's next list go on with.
#[cfg(any(feature = "training", feature = "rolling"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// End of the weights that any step was checked with.
    end: u32,
    /// Bytes that may still be looked at again.
    left: u32,
}

/// Constants checked so far.
#[derive(Debug)]
pub(crate) struct Trusted<'a> {
    /// All steps.
    steps: &'a [u8],
    /// The steps behind the one that a search found last.
    next: Cell<&'a [u8]>,
    /// End of the weights that any step was checked with.
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

    /// Result of the checks so far.
    #[cfg(any(feature = "training", feature = "rolling"))]
    pub(crate) fn seen(&self) -> Seen {
        Seen {
            end: self.end.get(),
            left: self.budget.get(),
        }
    }

    /// Goes on behind another list of the same weights: the budget is what that one left, and its part for these steps.
    #[cfg(any(feature = "training", feature = "rolling"))]
    pub(crate) fn go_on(&self, seen: Seen) {
        let steps = (self.steps.len() as u32).saturating_mul(AGAIN);
        self.end.set(seen.end);
        self.budget.set(seen.left.saturating_add(steps));
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

    /// Knowledge of the constants of `record`, which begins with these places. They count as checked from then on: a load in which they turn
    /// out to be wrong ends there.
    #[inline(never)]
    pub(crate) fn before(&self, record: Record<'_>, places: Places) -> Before {
        let checked = self.end.get();
        self.end.set(checked.max(self.last.get()));
        if self.first.get() >= checked {
            Before::No
        } else if self.find(record, places) {
            Before::Checked
        } else if self.spend(self.bytes.get()) {
            Before::No
        } else {
            Before::Shared
        }
    }

    /// Whether a step before `record` is equal to it but for its places: those behind the last one that was found, then those before them.
    fn find(&self, (kernel, params): Record<'_>, places: Places) -> bool {
        let (wanted, next) = (behind(params, places), self.next.get());
        let (mut fields, mut until) = (Fields::new(next), params.as_ptr());
        loop {
            match fields.record() {
                Some((id, other)) if other.as_ptr() < until => {
                    if !self.spend(other.len() as u32 / 4 + 1) {
                        return false;
                    }
                    // No comparison of slices, which is a function of a library.
                    let found = behind(other, places);
                    if id == kernel && found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| a == b) {
                        self.next.set(fields.rest());
                        return true;
                    }
                }
                _ if until == params.as_ptr() => (fields, until) = (Fields::new(self.steps), next.as_ptr()),
                _ => return false,
            }
        }
    }

    /// Takes what is to be looked at again from the budget; false where there is not so much.
    fn spend(&self, bytes: u32) -> bool {
        let left = self.budget.get().checked_sub(bytes);
        left.map(|left| self.budget.set(left)).is_some()
    }
}

/// The parameters behind their places.
#[inline(never)]
fn behind(params: &[u8], places: Places) -> &[u8] {
    let mut fields = Fields::new(params);
    for place in 0..places.count {
        let optional = (places.optional >> (place & 31)) & 1 == 1;
        // Of one that may be missing whether it is there comes first.
        if !optional || fields.byte() != 0 {
            fields.byte();
            fields.varint(u32::BITS);
        }
    }
    fields.rest()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::arena::Slot;
    use crate::kernels::api::candidate::Candidate;
    use crate::kernels::table::{KernelId, KernelVisitor};
    use crate::ops::operator::Placed;

    /// Records as the file has them: kernel, length, a place, parameters.
    const STEPS: &[u8] = &[
        7, 3, 0, 0, 5, 8, 3, 0, 1, 5, 7, 3, 0, 2, 5, 7, 3, 0, 3, 6, 9, 0, 7, 3, 0, 4, 5, 7, 3, 0, 5, 6, 8, 3, 0, 6, 5,
    ];

    fn record(index: usize) -> Record<'static> {
        let mut fields = Fields::new(STEPS);
        let mut record = fields.record();
        for _ in 0..index {
            record = fields.record();
        }
        record.expect("a record")
    }

    fn before(trusted: &Trusted<'_>, index: usize, operands: &[(u32, u32)]) -> Before {
        trusted.begin();
        for &(offset, bytes) in operands {
            trusted.add(offset, bytes);
        }
        trusted.before(record(index), Places::ONE)
    }

    #[test]
    fn places_are_passed_over_whether_they_are_there_or_not() {
        let places = Places::NONE.and(Places::ONE).and(Places::OPTIONAL).and(Places::ONE);
        assert_eq!(places, Places { count: 3, optional: 2 });
        assert_eq!(behind(&[0, 5, 0, 1, 0x80, 1, 9, 8], places), [9, 8]);
        assert_eq!(behind(&[0, 5, 1, 0x81, 0xFF, 0x7F, 1, 4, 9], places), [9]);
        let nested = Places::OPTIONAL.and(places).and(Places::OPTIONAL);
        assert_eq!(
            nested,
            Places {
                count: 5,
                optional: 0b10101
            }
        );
        assert_eq!(behind(&[0, 0, 5], places), []);
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
        // A refusal ends the load; it counts all the same.
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
        assert_eq!(shared(4 + 29, 30), (Before::Shared, 29));
        assert_eq!(shared(3, 0), (Before::No, 0));
        let trusted = Trusted::new(&[0; 100], STEPS);
        assert_eq!(trusted.budget.get(), 16 * (100 + STEPS.len() as u32));
    }

    /// Both lists together look at no more than 16 times the bytes of the weights and of their steps again.
    #[test]
    #[cfg(any(feature = "training", feature = "rolling"))]
    fn a_second_list_goes_on_with_the_budget_of_the_first() {
        let first = Trusted::new(&[0; 100], STEPS);
        assert_eq!(before(&first, 0, &[(0, 60)]), Before::No);
        assert_eq!(before(&first, 1, &[(0, 50)]), Before::No);
        let left = first.budget.get();
        assert!(left < 16 * (100 + STEPS.len() as u32) - 50, "{left}");
        let second = Trusted::new(&[0; 100], STEPS);
        second.go_on(first.seen());
        assert_eq!(second.budget.get(), left + 16 * STEPS.len() as u32);
        // Bytes that the first has looked at are not new to the second, and those behind them are.
        assert_eq!(before(&second, 1, &[(60, 40)]), Before::No);
        assert_eq!(second.budget.get(), left + 16 * STEPS.len() as u32);
        second.budget.set(0);
        assert_eq!(before(&second, 2, &[(10, 10)]), Before::Shared);
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

    /// An operator of bytes that are all the same: whatever may be missing is missing of 0, and there of 1.
    struct OfBytes(u8);

    impl KernelVisitor for OfBytes {
        type Output = ();

        /// The parameters do not change with the places, and in front of them are the places and nothing else.
        fn visit<K: Candidate>(self) {
            let (name, places) = (core::any::type_name::<K::Op>(), K::Op::PLACES);
            let encoded = |op: &K::Op| postcard::to_extend(op, Vec::new()).expect("an operator");
            let (op, _) = postcard::take_from_bytes::<K::Op>(&[self.0; 512]).expect("an operator");
            let step = encoded(&op);
            let params = behind(&step, places);
            let (mut count, mut bytes) = (0, 0);
            let elsewhere = op.map(&mut |slot: Slot| {
                count += 1;
                bytes += postcard::to_extend(&slot, Vec::new()).expect("a slot").len();
                Ok::<_, ()>(Slot {
                    region: slot.region ^ 0x83,
                    offset: slot.offset ^ (0x40 << count),
                })
            });
            let elsewhere = elsewhere.expect("always another");
            assert_eq!(behind(&encoded(&elsewhere), places), params, "{name}");
            let tags = places.optional.count_ones();
            assert_eq!(step.len() - params.len(), bytes + tags as usize, "{name}");
            let missing = if self.0 == 0 { tags } else { 0 };
            assert_eq!(count + missing, places.count.into(), "{name}");
        }
    }

    #[test]
    fn what_is_compared_is_behind_the_places_of_every_operator() {
        for kernel in KernelId::ALL {
            kernel.visit(OfBytes(0));
            kernel.visit(OfBytes(1));
        }
    }
}
