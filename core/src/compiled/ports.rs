//! Inputs and outputs of a compiled model as numbers: nothing of them can be wrong when the program runs.

use super::refusal::Ended;
use super::session::{Network, Session};
use crate::typed::Number;

/// Inputs of a run: a reference to an array, a tuple of those, or `()` where the session has them already.
pub trait Inputs {
    /// Sets them for the next run.
    fn set<N: Network>(self, session: &mut Session<'_, N>);
}

/// Outputs of a run, in the same forms.
pub trait Outputs<'o>: Sized {
    /// Finds them behind a run.
    fn of<N: Network>(session: &'o Session<'_, N>) -> Self;
}

impl<N: Network> Session<'_, N> {
    /// Sets inputs, runs all steps, and gives the outputs; in a `Result` where a step may refuse an index.
    #[doc(hidden)]
    #[inline(always)]
    pub fn run_typed<'o, I: Inputs, O: Outputs<'o>>(&'o mut self, inputs: I) -> <N::End as Ended>::Run<O> {
        inputs.set(self);
        let end = N::run(&self.mem());
        self.end();
        end.with(|| O::of(self))
    }
}

impl Inputs for () {
    #[inline(always)]
    fn set<N: Network>(self, _: &mut Session<'_, N>) {}
}

impl Outputs<'_> for () {
    #[inline(always)]
    fn of<N: Network>(_: &Session<'_, N>) {}
}

impl<T: Number, const LEN: usize> Inputs for &[T; LEN] {
    #[inline(always)]
    fn set<N: Network>(self, session: &mut Session<'_, N>) {
        session.put(0, self);
    }
}

impl<'o, T: Number, const LEN: usize> Outputs<'o> for &'o [T; LEN] {
    #[inline(always)]
    fn of<N: Network>(session: &'o Session<'_, N>) -> Self {
        session.array(0)
    }
}

macro_rules! tuples {
    ($($($number:ident $length:ident $index:tt),*;)*) => {$(
        impl<$($number: Number, const $length: usize),*> Inputs for ($(&[$number; $length],)*) {
            #[inline(always)]
            fn set<Q: Network>(self, session: &mut Session<'_, Q>) {
                $(session.put($index, self.$index);)*
            }
        }

        impl<'o, $($number: Number, const $length: usize),*> Outputs<'o> for ($(&'o [$number; $length],)*) {
            #[inline(always)]
            fn of<Q: Network>(session: &'o Session<'_, Q>) -> Self {
                ($(session.array::<$number, $length>($index),)*)
            }
        }
    )*};
}

tuples! {
    S M 0, T N 1;
    S M 0, T N 1, U O 2;
    S M 0, T N 1, U O 2, V P 3;
}
