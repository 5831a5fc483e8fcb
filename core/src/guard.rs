//! Canaries behind arenas and state, and marks of how far both were used. Feature `guard`.
//!
//! A session writes nothing outside what its model declares; what does is another part of the program, a DMA, a stack that grew into the arena.
//! Checking costs a few instructions for each canary, so a program can do so after every run.

#[cfg(feature = "error-text")]
use core::fmt;
use core::hint::black_box;

use crate::align::ARENA_ALIGN;
use crate::arena::MAX_REGIONS;
use crate::blob::Model;
use crate::error::SessionError;
use crate::kernels::table::Kernels;
use crate::session::{Arenas, Session};

/// Bytes of a canary. A guarded arena or state has as many more than the model needs, rounded up to [`ARENA_ALIGN`].
pub const CANARY_BYTES: usize = 16;

/// A pattern that neither memory of one value nor counters hold.
const CANARY: [u8; CANARY_BYTES] = *b"\xC5\x3A\x96\x0F\xE1\x5C\x27\xB8\x4D\xF2\x71\x8E\xA3\x1C\xD9\x64";

/// Fill byte of an arena, by which the bytes that were written are found.
const PAINT: u8 = 0xA7;

/// The canaries of a session's memory.
#[derive(Debug)]
pub struct Guard<'s> {
    arenas: [Option<&'s mut [u8; CANARY_BYTES]>; MAX_REGIONS],
    state: Option<&'s mut [u8; CANARY_BYTES]>,
}

/// Something wrote behind a memory.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Overrun {
    /// Behind an arena.
    Arena {
        /// Its region.
        region: u8,
    },
    /// Behind the state.
    State,
}

/// High-water marks of memories, in bytes from their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Marks {
    /// Of each arena: up to the last byte that was written.
    pub arena: [u32; MAX_REGIONS],
    /// Of the state: up to the last byte that differs from its initial value.
    pub state: u32,
}

/// Bytes of a guarded arena or state of `needed` bytes; none for none.
pub const fn guarded_bytes(needed: usize) -> usize {
    match needed {
        0 => 0,
        needed => needed.saturating_add(CANARY_BYTES),
    }
}

impl<'m, 's, K: Kernels> Session<'m, 's, K> {
    /// Opens a session as [`Session::new`] does, with a canary behind every arena and the state, and the arenas painted. Each wants [`guarded_bytes`] of
    /// what the model needs; a larger arena has its canary right behind the model's part.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn guarded(
        model: Model<'m, K>,
        arenas: impl Into<Arenas<'s>>,
        state: &'s mut [u8],
    ) -> Result<(Self, Guard<'s>), SessionError> {
        let Arenas(regions) = arenas.into();
        let mut guard = Guard {
            arenas: [const { None }; MAX_REGIONS],
            state: None,
        };
        let mut inner: [&'s mut [u8]; MAX_REGIONS] = [&mut [], &mut [], &mut [], &mut []];
        let memories = regions.into_iter().zip(&mut inner).zip(&mut guard.arenas);
        for (index, ((memory, inner), canary)) in memories.enumerate() {
            let needed = model.arena_bytes(index);
            if needed == 0 {
                continue;
            }
            let given = u32::try_from(memory.len()).unwrap_or(u32::MAX);
            let (used, guarded) = split(memory, needed).ok_or(SessionError::ArenaTooSmall {
                region: index as u8,
                needed: u32::try_from(guarded_bytes(needed)).unwrap_or(u32::MAX),
                given,
            })?;
            used.fill(PAINT);
            (*inner, *canary) = (used, Some(guarded));
        }
        let needed = model.state_bytes();
        let mut inner_state: &'s mut [u8] = state;
        if needed > 0 {
            let given = u32::try_from(inner_state.len()).unwrap_or(u32::MAX);
            let (used, guarded) = split(inner_state, needed).ok_or(SessionError::StateSize {
                needed: u32::try_from(guarded_bytes(needed)).unwrap_or(u32::MAX),
                given,
            })?;
            (inner_state, guard.state) = (used, Some(guarded));
        }
        Ok((Self::new(model, inner, inner_state)?, guard))
    }

    /// High-water marks of the memories of a guarded session since it was opened. Reads the unused bytes, and no more.
    pub fn marks(&self) -> Marks {
        let written = |memory: &[u8]| {
            memory
                .iter()
                .rposition(|&byte| byte != PAINT)
                .map_or(0, |last| last as u32 + 1)
        };
        let (regions, state) = self.memories();
        let changed = state
            .iter()
            .zip(self.model().state_init().bytes())
            .enumerate()
            .filter(|(_, (now, first))| *now != first)
            .last();
        let mut marks = Marks {
            arena: [0; MAX_REGIONS],
            state: changed.map_or(0, |(last, _)| last as u32 + 1),
        };
        for (mark, memory) in marks.arena.iter_mut().zip(regions) {
            *mark = written(memory);
        }
        marks
    }
}

impl Guard<'_> {
    /// Whether every canary is as it was written.
    ///
    /// # Errors
    /// The first memory that something wrote behind.
    pub fn check(&self) -> Result<(), Overrun> {
        for (region, canary) in (0..).zip(&self.arenas) {
            if !canary.as_deref().is_none_or(intact) {
                return Err(Overrun::Arena { region });
            }
        }
        if self.state.as_deref().is_none_or(intact) {
            Ok(())
        } else {
            Err(Overrun::State)
        }
    }
}

/// Whether a canary is what it was. Nothing in the program may write it, so the compiler is kept from knowing that.
fn intact(canary: &[u8; CANARY_BYTES]) -> bool {
    u128::from_ne_bytes(*black_box(canary)) == u128::from_ne_bytes(CANARY)
}

/// Splits a memory into the part that the model uses and the canary behind it.
fn split(memory: &mut [u8], needed: usize) -> Option<(&mut [u8], &mut [u8; CANARY_BYTES])> {
    let (used, rest) = memory.split_at_mut_checked(needed)?;
    let (canary, _) = rest.split_first_chunk_mut()?;
    *canary = CANARY;
    Some((used, canary))
}

#[cfg(feature = "error-text")]
impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overrun::Arena { region } => write!(f, "something wrote behind arena {region}"),
            Overrun::State => write!(f, "something wrote behind the state"),
        }
    }
}

impl core::error::Error for Overrun {}

const _: () = assert!(CANARY_BYTES.is_multiple_of(ARENA_ALIGN));

#[cfg(test)]
mod tests {
    use super::*;

    /// Answer of a guard of arenas 0 and 2 and a state after `change`.
    fn checked(change: impl FnOnce(&mut [[u8; CANARY_BYTES]; 3])) -> Result<(), Overrun> {
        let mut canaries = [CANARY; 3];
        change(&mut canaries);
        let [first, third, state] = &mut canaries;
        let arenas = [Some(first), None, Some(third), None];
        let state = Some(state);
        Guard { arenas, state }.check()
    }

    #[test]
    fn any_changed_byte_of_any_canary_is_told() {
        assert_eq!(checked(|_| ()), Ok(()));
        for byte in 0..CANARY_BYTES {
            assert_eq!(checked(|all| all[0][byte] ^= 1), Err(Overrun::Arena { region: 0 }));
            assert_eq!(checked(|all| all[1][byte] ^= 0x80), Err(Overrun::Arena { region: 2 }));
            assert_eq!(checked(|all| all[2][byte] ^= 4), Err(Overrun::State));
        }
        let both = checked(|all| (all[1][0], all[2][0]) = (0, 0));
        assert_eq!(both, Err(Overrun::Arena { region: 2 }));
    }
}
