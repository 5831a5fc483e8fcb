//! Parts of the memory that a board gives.

use arenite::{ARENA_ALIGN, Kernels, MAX_REGIONS, MODEL_ALIGN, Model};

/// Alignment of the first byte of a model, an arena and a state.
const ALIGN: usize = if MODEL_ALIGN > ARENA_ALIGN {
    MODEL_ALIGN
} else {
    ARENA_ALIGN
};

/// Returns the memory from its first aligned byte on.
pub(crate) fn aligned(memory: &mut [u8]) -> &mut [u8] {
    let skipped = memory.as_ptr().align_offset(ALIGN);
    memory.get_mut(skipped..).unwrap_or_default()
}

/// Bytes as the protocol says them; of more than it can, the most.
pub(crate) fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Copies `bytes` to `offset` of `to`; false where they do not fit.
pub(crate) fn copy(bytes: &[u8], to: &mut [u8], offset: u32) -> bool {
    let to = to.get_mut(offset as usize..).and_then(|to| to.get_mut(..bytes.len()));
    match to {
        Some(to) => {
            to.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte);
            true
        }
        None => false,
    }
}

/// Arenas, by region, and state.
pub(crate) type Parts<'m> = ([&'m mut [u8]; MAX_REGIONS], &'m mut [u8]);

/// Memory for a model; else the bytes that it wants.
pub(crate) fn parts<'m, K: Kernels>(model: &Model<'_, K>, memory: &'m mut [u8]) -> Result<Parts<'m>, usize> {
    let mut rest = aligned(memory);
    let mut needed = 0_usize;
    let mut take = |bytes: usize| {
        let whole = bytes.checked_next_multiple_of(ALIGN);
        needed = needed.saturating_add(whole.unwrap_or(usize::MAX));
        let (part, behind) = core::mem::take(&mut rest).split_at_mut_checked(whole?)?;
        rest = behind;
        part.get_mut(..bytes)
    };
    let mut arenas = [const { None }; MAX_REGIONS];
    for (region, arena) in arenas.iter_mut().enumerate() {
        *arena = take(model.arena_bytes(region));
    }
    let state = take(model.state_bytes());
    let missing = arenas.iter().any(Option::is_none);
    match state {
        Some(state) if !missing => Ok((arenas.map(Option::unwrap_or_default), state)),
        _ => Err(needed),
    }
}
