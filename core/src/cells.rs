//! Typed views of the caller's bytes.
//!
//! An operator's output may overlap its input (in-place operators, a convolution over rows that it has consumed), so
//! activations are shared slices of [`Cell`]s: aliasing is then plain safe Rust. An operand that is only read may lie among the constants, too,
//! which are no cells:
//! a [`Src`] is a pointer that reads either. This file holds the only casts from bytes to elements; everything that it hands out is within bounds and aligned.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::align::ARENA_ALIGN;

/// A number whose every bit pattern is valid, so that bytes can be viewed as it.
pub trait Element: Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {}
    )*};
}
elements!(u8 i8 i16 u16 i32 u32 i64 f32);

/// Elements that are only read, from the arena, the state or the weights. The same step may be writing them through a
/// [`Dst`]; each read sees the value of its moment.
///
/// A pointer and no slice: of cells it could not be made from constants, which are borrowed as what does not change; of plain elements not from cells,
/// which change.
#[derive(Clone, Copy)]
pub struct Src<'a, T> {
    /// For as long as `'a` aligned and valid for reads of `len` elements, which nothing borrows exclusively.
    start: NonNull<T>,
    len: usize,
    memory: PhantomData<&'a [Cell<T>]>,
}

/// Blocks of elements of a [`Src`].
#[derive(Clone, Copy)]
pub struct Chunks<'a, T, const N: usize> {
    /// As in [`Src`].
    start: NonNull<[T; N]>,
    len: usize,
    memory: PhantomData<&'a [Cell<T>]>,
}

/// Elements that are written (and may be read back).
#[derive(Clone, Copy)]
pub struct Dst<'a, T>(&'a [Cell<T>]);

impl<'a, T: Element> Src<'a, T> {
    /// Views arena bytes; `None` where they are misaligned or no whole number of elements.
    pub fn from_cells(bytes: &'a [Cell<u8>]) -> Option<Self> {
        cast_cells(bytes).map(Self::of_cells)
    }

    /// Views constant elements.
    pub fn from_slice(elements: &'a [T]) -> Self {
        Self {
            start: NonNull::from(elements).cast(),
            len: elements.len(),
            memory: PhantomData,
        }
    }

    fn of_cells(cells: &'a [Cell<T>]) -> Self {
        Self {
            start: NonNull::from(cells).cast(),
            len: cells.len(),
            memory: PhantomData,
        }
    }

    /// Element `i`.
    #[inline]
    pub fn get(self, i: usize) -> Option<T> {
        if i < self.len {
            // SAFETY: `i < self.len`, as just checked.
            Some(unsafe { self.read(i) })
        } else {
            None
        }
    }

    /// `len` elements from `start`.
    #[inline]
    pub fn slice(self, start: usize, len: usize) -> Option<Self> {
        if len > self.len.checked_sub(start)? {
            return None;
        }
        Some(Self {
            // SAFETY: `start + len <= self.len`, as just checked.
            start: unsafe { self.start.add(start) },
            len,
            memory: PhantomData,
        })
    }

    /// All elements from `start`.
    #[inline]
    pub fn tail(self, start: usize) -> Option<Self> {
        self.slice(start, self.len.checked_sub(start)?)
    }

    /// All elements in order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + 'a
    where
        T: 'a,
    {
        // SAFETY: the range ends at `self.len`.
        (0..self.len).map(move |i| unsafe { self.read(i) })
    }

    /// Whole blocks of `N` elements, and what is left over.
    #[inline]
    pub fn chunks<const N: usize>(self) -> (Chunks<'a, T, N>, Self) {
        const { assert!(N > 0) };
        let (len, rest) = (self.len / N, self.len % N);
        let chunks = Chunks {
            start: self.start.cast(),
            len,
            memory: PhantomData,
        };
        let rest = Self {
            // SAFETY: `len * N <= self.len`.
            start: unsafe { self.start.add(len * N) },
            len: rest,
            memory: PhantomData,
        };
        (chunks, rest)
    }

    /// Number of elements.
    #[expect(clippy::len_without_is_empty, reason = "a view is never asked whether it is empty")]
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// The first element's address, for backends; valid for reads of `len` elements.
    #[inline]
    pub fn as_ptr(self) -> *const T {
        self.start.as_ptr()
    }

    /// # Safety
    /// `i` is below `len`.
    #[inline]
    unsafe fn read(self, i: usize) -> T {
        // SAFETY: `i < len` (fn docs), and the fields promise `len` valid, aligned elements at `start`.
        unsafe { self.start.add(i).read() }
    }
}

impl<T: Element, const N: usize> Chunks<'_, T, N> {
    /// Block `i`.
    #[inline]
    pub fn get(self, i: usize) -> Option<[T; N]> {
        if i < self.len {
            // SAFETY: in bounds, as just checked; valid and aligned, as the fields promise.
            Some(unsafe { self.start.add(i).read() })
        } else {
            None
        }
    }
}

impl<'a, T: Element> Dst<'a, T> {
    /// Views arena bytes; `None` where they are misaligned or no whole number of elements.
    pub fn from_cells(bytes: &'a [Cell<u8>]) -> Option<Self> {
        cast_cells(bytes).map(Self)
    }

    /// The cells themselves.
    pub fn cells(self) -> &'a [Cell<T>] {
        self.0
    }

    /// The same elements for reading.
    pub fn as_src(self) -> Src<'a, T> {
        Src::of_cells(self.0)
    }

    /// `len` elements from `start`.
    pub fn slice(self, start: usize, len: usize) -> Option<Self> {
        self.0.get(start..)?.get(..len).map(Self)
    }

    /// All elements from `start`.
    pub fn tail(self, start: usize) -> Option<Self> {
        self.0.get(start..).map(Self)
    }

    /// Writes element `i`; `None` where there is none.
    pub fn set(self, i: usize, value: T) -> Option<()> {
        self.0.get(i).map(|cell| cell.set(value))
    }

    /// The first element's address, for backends; valid for reads and writes of `self.cells().len()` elements.
    pub fn as_mut_ptr(self) -> *mut T {
        self.0.as_ptr().cast::<T>().cast_mut()
    }
}

/// Memory for a [`Region`].
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Block<const N: usize>(pub [u8; N]);

const _: () = assert!(align_of::<Block<1>>() == ARENA_ALIGN);

impl<'s, const N: usize> From<&'s mut Block<N>> for Region<'s, N> {
    #[inline(always)]
    fn from(block: &'s mut Block<N>) -> Self {
        Self(&mut block.0)
    }
}

impl Region<'_, 0> {
    /// No memory.
    pub fn none() -> Self {
        Self(&mut [])
    }
}

/// Memory of a known length, at a multiple of [`ARENA_ALIGN`] where it has any.
#[derive(Debug)]
pub struct Region<'s, const N: usize>(&'s mut [u8; N]);

impl<'s, const N: usize> Region<'s, N> {
    /// The first bytes of a slice; `None` where they are too few, or misaligned.
    pub fn of(bytes: &'s mut [u8]) -> Option<Self> {
        let bytes = bytes.first_chunk_mut()?;
        (N == 0 || bytes.as_ptr().addr().is_multiple_of(ARENA_ALIGN)).then_some(Self(bytes))
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8; N] {
        self.assume();
        self.0
    }

    /// The bytes, to write.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8; N] {
        self.assume();
        self.0
    }

    /// The bytes, for steps.
    #[inline(always)]
    pub fn cells(&mut self) -> &[Cell<u8>] {
        Cell::from_mut(self.bytes_mut().as_mut_slice()).as_slice_of_cells()
    }

    /// Tells the compiler what it cannot see.
    #[inline(always)]
    fn assume(&self) {
        // SAFETY: `of` compares the address, a block is aligned to `ARENA_ALIGN` (asserted above), and `none` has `N == 0`: nothing else makes one.
        unsafe { core::hint::assert_unchecked(N == 0 || self.0.as_ptr().addr().is_multiple_of(ARENA_ALIGN)) };
    }
}

/// Views constant bytes as elements; `None` where they are misaligned or no whole number of elements.
pub fn cast_slice<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    if !bytes.len().is_multiple_of(size_of::<T>()) || !bytes.as_ptr().cast::<T>().is_aligned() {
        return None;
    }
    // SAFETY: in bounds and aligned, as just checked; every bit pattern is a valid `T` (`Element` is sealed).
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), bytes.len() / size_of::<T>()) })
}

/// The bytes of elements.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: the memory of the elements, which have no padding (`Element` is sealed).
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }
}

fn cast_cells<T: Element>(bytes: &[Cell<u8>]) -> Option<&[Cell<T>]> {
    if !bytes.len().is_multiple_of(size_of::<T>()) || !bytes.as_ptr().cast::<T>().is_aligned() {
        return None;
    }
    // SAFETY: in bounds and aligned, as just checked; `Cell<T>` has the layout of `T`, every bit pattern is a valid `T`, and all
    // views of these bytes are cells, so that writes through one are allowed while others exist.
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast::<Cell<T>>(), bytes.len() / size_of::<T>()) })
}
