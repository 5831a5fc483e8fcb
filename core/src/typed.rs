//! Inputs and outputs as numbers instead of bytes, and what the module of an embedded model is made of.

use crate::blob::MAX_RANK;
use crate::cells::{Element, bytes_of, cast_slice};
use crate::error::RunError;
use crate::errors::Error;
use crate::kernels::table::Kernels;
use crate::session::Session;
use crate::tensor::DType;

/// An element of inputs and outputs.
pub trait Number: Element + PartialOrd + 'static {
    /// The type in the model.
    const DTYPE: DType;

    /// Zeros.
    #[doc(hidden)]
    fn zeros<const LEN: usize>() -> &'static [Self; LEN];

    /// The stored number nearest to a real one (halves away from zero), within what the type holds; `scale` 0 where it is not quantised.
    fn stored(real: f32, scale: f32, zero_point: i32) -> Self;

    /// The real number that a stored one stands for.
    fn real(self, scale: f32, zero_point: i32) -> f32;
}

/// The type of the elements of each [`DType`], by its number.
#[derive(Debug)]
pub struct Numbered<const DTYPE: u8>;

/// See [`Numbered`].
pub trait HasElement {
    /// The type.
    type Element: Number;
}

macro_rules! numbers {
    ($($number:ident $dtype:ident;)*) => {$(
        impl Number for $number {
            const DTYPE: DType = DType::$dtype;

            fn zeros<const LEN: usize>() -> &'static [Self; LEN] {
                &[0; LEN]
            }

            fn stored(real: f32, scale: f32, zero_point: i32) -> Self {
                // Casts saturate.
                if scale == 0.0 {
                    return libm::roundf(real) as Self;
                }
                let stored = (libm::roundf(real / scale) as i32).saturating_add(zero_point);
                // A wider type holds all of them.
                Self::try_from(stored).unwrap_or(if stored < 0 { Self::MIN } else { Self::MAX })
            }

            fn real(self, scale: f32, zero_point: i32) -> f32 {
                if scale == 0.0 {
                    return self as f32;
                }
                let stored = i32::try_from(self).unwrap_or(if self > 0 { i32::MAX } else { i32::MIN });
                scale * stored.saturating_sub(zero_point) as f32
            }
        }

        impl HasElement for Numbered<{ DType::$dtype as u8 }> {
            type Element = $number;
        }
    )*};
}

numbers! {
    i8 I8;
    u8 U8;
    i16 I16;
    i32 I32;
    i64 I64;
}

impl Number for f32 {
    const DTYPE: DType = DType::F32;

    fn zeros<const LEN: usize>() -> &'static [Self; LEN] {
        &[0.0; LEN]
    }

    fn stored(real: f32, _: f32, _: i32) -> Self {
        real
    }

    fn real(self, _: f32, _: i32) -> f32 {
        self
    }
}

impl HasElement for Numbered<{ DType::F32 as u8 }> {
    type Element = f32;
}

/// One byte, 0 or 1.
impl HasElement for Numbered<{ DType::Bool as u8 }> {
    type Element = u8;
}

impl<K: Kernels> Session<'_, '_, K> {
    /// As [`Session::set_input`], of numbers.
    ///
    /// # Errors
    /// Those of [`Session::set_input`]; [`RunError::PortType`] where the input holds others.
    pub fn set_values<T: Number>(&mut self, index: usize, values: &[T]) -> Result<(), RunError> {
        match self.model().parts().input_place(index) {
            Some(place) if !holds::<T>(place.dtype) => Err(RunError::PortType { port: index as u32 }),
            _ => self.set_input(index, bytes_of(values)),
        }
    }

    /// As [`Session::output`], of numbers.
    ///
    /// # Errors
    /// [`RunError::NoSuchPort`]; [`RunError::PortType`] where the output holds others.
    pub fn values<T: Number>(&self, index: usize) -> Result<&[T], RunError> {
        let parts = self.model().parts();
        let port = (parts.inputs() + index) as u32;
        match parts.output_place(index) {
            Some(place) if !holds::<T>(place.dtype) => Err(RunError::PortType { port }),
            _ => cast_slice(self.output(index)?).ok_or(RunError::PortType { port }),
        }
    }
}

pub(crate) fn holds<T: Number>(dtype: DType) -> bool {
    T::DTYPE as u8 == dtype as u8 || (dtype as u8 == DType::Bool as u8 && T::DTYPE as u8 == DType::U8 as u8)
}

/// Inputs of a run: a reference to an array, a tuple of those, or `()` where there are none or more than four; the session has those set already.
pub trait Inputs {
    /// Sets them for the next run.
    ///
    /// # Errors
    /// See [`Session::set_values`].
    fn set<K: Kernels>(self, session: &mut Session<'_, '_, K>) -> Result<(), RunError>;
}

/// Outputs of a run, in the same forms; `()` leaves them to [`Session::values`].
pub trait Outputs<'o>: Sized {
    /// Finds them behind a run.
    ///
    /// # Errors
    /// See [`Session::values`].
    fn of<K: Kernels>(session: &'o Session<'_, '_, K>) -> Result<Self, RunError>;
}

impl Inputs for () {
    fn set<K: Kernels>(self, _: &mut Session<'_, '_, K>) -> Result<(), RunError> {
        Ok(())
    }
}

impl Outputs<'_> for () {
    fn of<K: Kernels>(_: &Session<'_, '_, K>) -> Result<Self, RunError> {
        Ok(())
    }
}

impl<T: Number, const N: usize> Inputs for &[T; N] {
    fn set<K: Kernels>(self, session: &mut Session<'_, '_, K>) -> Result<(), RunError> {
        session.set_values(0, self)
    }
}

impl<'o, T: Number, const N: usize> Outputs<'o> for &'o [T; N] {
    fn of<K: Kernels>(session: &'o Session<'_, '_, K>) -> Result<Self, RunError> {
        array(session, 0)
    }
}

fn array<'o, T: Number, const N: usize, K: Kernels>(
    session: &'o Session<'_, '_, K>,
    index: usize,
) -> Result<&'o [T; N], RunError> {
    let port = (session.model().parts().inputs() + index) as u32;
    session
        .values(index)?
        .try_into()
        .map_err(|_| RunError::PortType { port })
}

/// The form that `COUNT` inputs or outputs take.
#[derive(Debug)]
pub struct Count<const COUNT: usize>;

/// See [`Count`].
pub trait Form<A, B, C, D> {
    /// The form.
    type Of;
}

impl<A, B, C, D> Form<A, B, C, D> for Count<0> {
    type Of = ();
}

impl<A, B, C, D> Form<A, B, C, D> for Count<1> {
    type Of = A;
}

macro_rules! tuples {
    ($($count:tt: $($number:ident $length:ident $index:tt),*;)*) => {$(
        impl<A, B, C, D> Form<A, B, C, D> for Count<$count> {
            type Of = tuples!(@ $count A B C D);
        }

        impl<$($number: Number, const $length: usize),*> Inputs for ($(&[$number; $length],)*) {
            fn set<K: Kernels>(self, session: &mut Session<'_, '_, K>) -> Result<(), RunError> {
                $(session.set_values($index, self.$index)?;)*
                Ok(())
            }
        }

        impl<'o, $($number: Number, const $length: usize),*> Outputs<'o> for ($(&'o [$number; $length],)*) {
            fn of<K: Kernels>(session: &'o Session<'_, '_, K>) -> Result<Self, RunError> {
                Ok(($(array::<$number, $length, K>(session, $index)?,)*))
            }
        }
    )*};
    (@ 2 $a:ident $b:ident $c:ident $d:ident) => { ($a, $b) };
    (@ 3 $a:ident $b:ident $c:ident $d:ident) => { ($a, $b, $c) };
    (@ 4 $a:ident $b:ident $c:ident $d:ident) => { ($a, $b, $c, $d) };
}

tuples! {
    2: S M 0, T N 1;
    3: S M 0, T N 1, U O 2;
    4: S M 0, T N 1, U O 2, V P 3;
}

/// Sets inputs, runs, and finds the outputs.
///
/// # Errors
/// See [`Session::set_input`] and [`Session::run`].
pub fn run<'o, K: Kernels, O: Outputs<'o>>(
    session: &'o mut Session<'_, '_, K>,
    inputs: impl Inputs,
) -> Result<O, Error> {
    inputs.set(session)?;
    session.run()?;
    Ok(O::of(session)?)
}

/// An input or output of an embedded model, as its file describes it: a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Described {
    /// The tensor's name in the trace.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    pub(crate) extents: [u32; MAX_RANK],
    pub(crate) rank: usize,
    /// `real = scale * (stored - zero_point)`; 0 where it is not quantised.
    pub scale: f32,
    /// See `scale`.
    pub zero_point: i32,
}

impl Described {
    pub(crate) const NONE: Self = Self {
        name: "",
        dtype: DType::F32,
        extents: [0; MAX_RANK],
        rank: 0,
        scale: 0.0,
        zero_point: 0,
    };

    /// A description, of at most [`MAX_RANK`] extents.
    #[doc(hidden)]
    pub const fn new(name: &'static str, dtype: DType, shape: &[u32], scale: f32, zero_point: i32) -> Self {
        let mut described = Self {
            name,
            dtype,
            scale,
            zero_point,
            ..Self::NONE
        };
        while described.rank < shape.len() && described.rank < MAX_RANK {
            described.extents[described.rank] = shape[described.rank];
            described.rank += 1;
        }
        described
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[u32] {
        self.extents.get(..self.rank).unwrap_or_default()
    }

    /// The stored number nearest to a real one, as `arenite run` makes it of a file of floats: halves away from zero, within what the type holds.
    pub fn quantize<T: Number>(&self, real: f32) -> T {
        T::stored(real, self.scale, self.zero_point)
    }

    /// The real number that a stored one stands for.
    pub fn dequantize<T: Number>(&self, stored: T) -> f32 {
        stored.real(self.scale, self.zero_point)
    }
}

/// The places and values of the `K` largest numbers, the largest first; of equal ones the first. NaNs come last.
///
/// ```
/// let [(class, score), (second, _)] = arenite::top(&[3i8, 9, -4, 9]);
/// assert_eq!((class, score, second), (1, 9, 3));
/// ```
///
/// More than there are do not compile:
///
/// ```compile_fail
/// let [_, _, _] = arenite::top(&[1.0f32, 2.0]);
/// ```
pub fn top<T: Number, const N: usize, const K: usize>(numbers: &[T; N]) -> [(usize, T); K] {
    const { assert!(K <= N && K > 0, "there are fewer numbers than are asked for") };
    const NONE: usize = usize::MAX;
    let mut largest = [(NONE, numbers[0]); K];
    for (index, &number) in numbers.iter().enumerate() {
        let mut next = (index, number);
        for place in &mut largest {
            let nan = place.1.partial_cmp(&place.1).is_none();
            let number = next.1.partial_cmp(&next.1).is_some();
            if place.0 == NONE || next.1 > place.1 || (nan && number) {
                core::mem::swap(place, &mut next);
            }
            if next.0 == NONE {
                break;
            }
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTISED: Described = Described {
        name: "x",
        dtype: DType::I8,
        scale: 0.5,
        zero_point: -3,
        ..Described::NONE
    };

    #[test]
    fn the_largest_come_first_and_no_number_comes_last() {
        let numbers = [f32::NAN, 2.0, -1.0, f32::NAN, 7.0, 2.0];
        assert_eq!(top(&numbers).map(|(at, _): (usize, _)| at), [4, 1, 5, 2]);
        let [.., last] = top::<_, 6, 6>(&numbers);
        assert!(last.0 == 3 && last.1.is_nan());
        assert_eq!(top(&[i8::MIN, i8::MIN]), [(0, i8::MIN), (1, i8::MIN)]);
    }

    #[test]
    fn numbers_are_rounded_as_the_host_does_and_saturate() {
        let stored = [0.75, -0.25, 0.24, 1e9, -1e9, f32::NAN].map(|real| QUANTISED.quantize::<i8>(real));
        assert_eq!(stored, [-1, -4, -3, 127, -128, -3]);
        assert_eq!(QUANTISED.quantize::<u8>(-1e9), 0);
        assert_eq!(
            (QUANTISED.dequantize(-1i8), QUANTISED.dequantize(i64::MAX)),
            (1.0, 0.5 * i32::MAX as f32)
        );
        let plain = Described {
            scale: 0.0,
            zero_point: 0,
            ..QUANTISED
        };
        assert_eq!((plain.quantize::<f32>(0.1), plain.dequantize(0.1f32)), (0.1, 0.1));
        assert_eq!((plain.quantize::<i64>(-2.5), plain.dequantize(7u8)), (-3, 7.0));
    }
}
