//! The trait of an operator: parameters over places, conditions on them, and the operands that follow from them.

use crate::arena::{Operand, Place, Slot};
use crate::ops::cost::{self, Cost};
use crate::ops::fault::Fault;
use crate::ops::window::Window2d;
use crate::trusted::Places;

/// Parameters of an operator over places: [`Slot`]s in the blob and on devices, the host's own places until memory is planned.
pub trait Operator: Placed + Clone {
    /// Checks that shapes and attributes agree and that no size overflows 32 bits.
    ///
    /// # Errors
    /// The first check that failed.
    fn check(&self) -> Result<(), Fault>;

    /// Visits every operand with its place, access and size: the one statement of what the step touches. The output comes first; a kernel's rules count
    /// operands in this order. Constants in the weights come last.
    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<Self::Place>));

    /// Says where its packed weights and the records of its channels are, for the host, which packs them before it knows.
    fn set_constants(&mut self, weights: u32, records: u32) {
        let _ = (weights, records);
    }

    /// Largest cost of the step, with the memory that its kernel needs beside its operands; closed, and sound for parameters that [`Operator::check`] accepts.
    /// An operator that reads more than each operand once for each output says so.
    fn cost(&self, needs: Needs) -> Cost {
        cost::of_operands(|visit| self.operands(needs, visit))
    }

    /// The window of an operator that slides over rows and columns, for the host to cut it into bands of rows.
    fn window_mut(&mut self) -> Option<&mut Window2d> {
        None
    }

    /// Number of elements of an operator that takes each element of its output from the same one of each operand, for the host to cut it anywhere.
    fn elements_mut(&mut self) -> Option<&mut u32> {
        None
    }

    /// Number of rows of an operator that sums them up in scratch, so that they may come one by one: the output is there behind the last one.
    fn summed_mut(&mut self) -> Option<&mut u16> {
        None
    }
}

/// A structure that holds places beside parameters; `operator!` implements it.
pub trait Placed: Sized {
    /// Its places.
    type Place: Place;
    /// Its places, as the blob has them in front of all else.
    const PLACES: Places;
    /// The same parameters over other places.
    type Over<Q: Place>: Placed<Place = Q>;

    /// Gives each place, in the order of the fields, for another one.
    ///
    /// # Errors
    /// The first of `each`.
    fn map<Q: Place, E>(self, each: &mut impl FnMut(Self::Place) -> Result<Q, E>) -> Result<Self::Over<Q>, E>;

    /// The parameters alone, for the rules of kernels, which depend on no place: every place is the default one.
    fn parameters(self) -> Self::Over<Slot> {
        let nowhere = |_| Ok::<_, core::convert::Infallible>(Slot::default());
        let Ok(parameters) = self.map(&mut { nowhere });
        parameters
    }
}

/// Bytes that a kernel wants beside its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Needs {
    /// Scratch in the arena.
    pub scratch: u32,
    /// Packed weights.
    pub weights: u32,
}

impl Needs {
    /// For what a kernel does not support: no arena is that large, so load refuses the step.
    pub(crate) const UNSUPPORTED: Self = Self {
        scratch: u32::MAX,
        weights: u32::MAX,
    };
}

/// Declares a structure over places `P` and implements [`Placed`] for it. Places (`P`, `Option<P>` or such a structure) come first, up to the semicolon;
/// parameters follow, some of a type of their own. The order of the fields is that of the blob.
macro_rules! operator {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident<P $(, $set:ident: $bound:ident = $usual:ty)?> {
            $($(#[$about_place:meta])* pub $place:ident: $kind:ident $(<$of:ident>)?),+;
            $($(#[$about_field:meta])* pub $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        pub struct $name<P = $crate::arena::Slot $(, $set = $usual)?> {
            $($(#[$about_place])* pub $place: $kind $(<$of>)?,)+
            $($(#[$about_field])* pub $field: $type,)+
        }

        impl<P: $crate::arena::Place $(, $set: $bound)?> $crate::ops::operator::Placed for $name<P $(, $set)?> {
            type Place = P;
            type Over<Q: $crate::arena::Place> = $name<Q $(, $set)?>;
            const PLACES: $crate::trusted::Places =
                $crate::trusted::Places::NONE$(.and(operator!(@places $kind $(<$of>)?)))+;

            fn map<Q: $crate::arena::Place, E>(
                self,
                each: &mut impl FnMut(P) -> Result<Q, E>,
            ) -> Result<$name<Q $(, $set)?>, E> {
                Ok($name {
                    $($place: operator!(@map each, self.$place, $kind $(<$of>)?),)+
                    $($field: self.$field,)+
                })
            }
        }
    };
    (@places P) => { $crate::trusted::Places::ONE };
    (@places Option<P>) => { $crate::trusted::Places::OPTIONAL };
    (@places $places:ident<P>) => { <$places<$crate::arena::Slot> as $crate::ops::operator::Placed>::PLACES };
    (@map $each:ident, $value:expr, P) => { $each($value)? };
    (@map $each:ident, $value:expr, Option<P>) => {
        match $value {
            Some(place) => Some($each(place)?),
            None => None,
        }
    };
    (@map $each:ident, $value:expr, $places:ident<P>) => { $crate::ops::operator::Placed::map($value, &mut *$each)? };
}
pub(crate) use operator;
