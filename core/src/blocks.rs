//! Blocks of a length that is known at run time only.

/// Whole blocks of a slice, from its start on.
#[derive(Debug, Clone)]
pub(crate) struct Blocks<'a, T> {
    rest: &'a [T],
    len: usize,
}

/// The whole blocks of `len` elements, at least one, of `elements`. As `chunks_exact`, which divides, and links a panic wherever the compiler does not see
/// that the length is not zero.
#[inline(always)]
pub(crate) fn blocks<T>(elements: &[T], len: usize) -> Blocks<'_, T> {
    Blocks {
        rest: elements,
        len: len.max(1),
    }
}

impl<'a, T> Iterator for Blocks<'a, T> {
    type Item = &'a [T];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [T]> {
        let (block, rest) = self.rest.split_at_checked(self.len)?;
        self.rest = rest;
        Some(block)
    }
}

/// The last `len` elements; `None` where there are fewer.
#[inline(always)]
pub(crate) fn last<T>(elements: &[T], len: usize) -> Option<&[T]> {
    elements.get(elements.len().checked_sub(len)?..)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn blocks_are_exact_chunks() {
        let elements: Vec<u8> = (0..20).collect();
        for end in 0..=elements.len() {
            let elements = &elements[..end];
            for len in 1..=21 {
                assert!(blocks(elements, len).eq(elements.chunks_exact(len)));
                let tail = last(elements, len);
                assert_eq!(tail.map(|tail| &tail[0]), elements.iter().nth_back(len - 1));
                assert!(tail.is_none_or(|tail| tail.len() == len));
            }
            assert!(blocks(elements, 0).eq(elements.chunks_exact(1)));
        }
    }
}
