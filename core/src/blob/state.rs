//! The state's value after a reset, as files have it: its bytes, or runs of one value, for most states begin with zeros or zero points.

/// Neighbouring bytes of one value: their number in the upper 24 bits, little-endian, above the value.
pub(super) type Run = [u8; 4];

/// The state's value after a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StateInit<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// Runs of equal bytes: little-endian words of the value in the low byte and their number above.
    Runs(&'a [[u8; 4]]),
}

impl<'a> StateInit<'a> {
    /// Bytes of the state.
    pub fn len(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Runs(runs) => runs.iter().map(|&run| of(run).0 as u64).sum(),
        }
    }

    /// Whether the runs, if any, are as a packer writes them: none of no bytes.
    pub(super) fn has_no_empty_run(self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::Runs(runs) => runs.iter().all(|&run| of(run).0 > 0),
        }
    }

    /// Whether there is neither byte nor run, which a constant can say.
    #[cfg(feature = "include")]
    pub(crate) const fn is_none(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Runs(runs) => runs.is_empty(),
        }
    }

    /// Whether there is no state.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The state, byte for byte.
    pub fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        let (bytes, runs): (&[u8], &[Run]) = match self {
            Self::Bytes(bytes) => (bytes, &[]),
            Self::Runs(runs) => (&[], runs),
        };
        let each = |&run: &Run| {
            let (count, value) = of(run);
            core::iter::repeat_n(value, count)
        };
        runs.iter().flat_map(each).chain(bytes.iter().copied())
    }

    /// Gives a state of this length its value. One function for all sessions, for its size.
    #[inline(never)]
    pub(crate) fn reset(self, state: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => state.iter_mut().zip(bytes).for_each(|(state, &byte)| {
                *state = byte;
                core::hint::black_box(());
            }),
            Self::Runs(runs) => {
                let mut rest = state;
                for &run in runs {
                    let (count, value) = of(run);
                    let Some((part, behind)) = rest.split_at_mut_checked(count) else {
                        return;
                    };
                    for byte in part {
                        *byte = value;
                        // Nothing, but the compiler makes a `memset` of no loop that holds it: two thousand bytes that a small program needs for nothing else.
                        core::hint::black_box(());
                    }
                    rest = behind;
                }
            }
        }
    }

    /// The words of the runs of a state, for a packer; `None` where its bytes are no longer than they.
    #[cfg(feature = "pack")]
    pub fn runs_of(state: &[u8], words: &mut impl Extend<u8>) -> Option<u8> {
        let runs = || {
            let equal = state.chunk_by(|a, b| a == b);
            equal
                .flat_map(|run| run.chunks(MOST))
                .filter_map(|run| Some((run.len(), *run.first()?)))
        };
        let count = u8::try_from(runs().count())
            .ok()
            .filter(|&count| 0 < count && usize::from(count) * 4 < state.len())?;
        words.extend(runs().flat_map(|(count, value)| ((count as u32) << 8 | u32::from(value)).to_le_bytes()));
        Some(count)
    }
}

/// The most bytes of a run.
#[cfg(feature = "pack")]
const MOST: usize = (1 << 24) - 1;

/// Number and value of a run's bytes.
fn of(run: Run) -> (usize, u8) {
    let word = u32::from_le_bytes(run);
    ((word >> 8) as usize, word as u8)
}

#[cfg(all(test, feature = "pack"))]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Runs and what they are made of: of one byte, at their limit, of more than there may be.
    #[test]
    fn runs_are_the_bytes_that_they_were_made_of() {
        let part = |count: usize, value: u8| std::vec![value; count];
        let states = [
            (part(5, 0), Some(1)),
            (part(4, 0), None),
            (Vec::new(), None),
            ([part(100, 7), part(1, 8), part(99, 255)].concat(), Some(3)),
            (part(MOST, 1), Some(1)),
            (part(MOST + 1, 1), Some(2)),
            ((0..=254).flat_map(|value| part(9, value)).collect(), Some(255)),
            ((0..=255).flat_map(|value| part(9, value)).collect(), None),
            ((0..=99).collect(), None),
        ];
        for (state, count) in states {
            let mut words = Vec::new();
            assert_eq!(StateInit::runs_of(&state, &mut words), count);
            let Some(count) = count else {
                assert!(words.is_empty());
                continue;
            };
            let (runs, []) = words.as_chunks() else {
                panic!("whole words");
            };
            assert_eq!(runs.len(), usize::from(count));
            let init = StateInit::Runs(runs);
            assert_eq!(init.len(), state.len() as u64);
            assert!(!init.is_empty());
            let mut reset = part(state.len(), 77);
            init.reset(&mut reset);
            assert!(reset == state && init.bytes().eq(state.iter().copied()));
            let bytes = StateInit::Bytes(&state);
            reset.fill(78);
            bytes.reset(&mut reset);
            assert!(reset == state && bytes.bytes().eq(state.iter().copied()) && bytes.len() == init.len());
        }
    }
}
