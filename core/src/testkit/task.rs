//! Tasks on a case.

use super::field::Guard;
use super::mutate::{Attack, Mutations};

/// Tasks on a case.
pub(super) enum Task<'t> {
    Compare,
    /// The first output of the reference is changed before: the comparison must find it.
    #[cfg(test)]
    Spoil,
    /// Runs are guarded where there is a guard.
    Mutate(Attack, &'t mut Mutations, Option<Guard<'t>>),
    /// Encoded parameters; their length, the constants' and the arena's.
    Export(&'t mut [u8], &'t mut [usize; 3]),
    Guard(Guard<'t>),
}
