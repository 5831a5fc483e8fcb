//! The search states that are known to fail.

/// Entries of the set: a power of two.
const SLOTS: usize = 1 << 18;

/// A lossy set of 128-bit hashes: a new entry may displace an old one.
///
/// With 128 bits, the chance that two of a billion different states meet is below 10^-20.
#[derive(Debug, Default)]
pub(super) struct Failures {
    slots: Vec<u128>,
}

impl Failures {
    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
    }

    pub(super) fn contains(&self, hash: u128) -> bool {
        self.slots.get(hash as usize % SLOTS).is_some_and(|&slot| slot == hash)
    }

    pub(super) fn insert(&mut self, hash: u128) {
        if self.slots.is_empty() {
            self.slots = vec![0; SLOTS];
        }
        if let Some(slot) = self.slots.get_mut(hash as usize % SLOTS) {
            *slot = hash;
        }
    }
}

/// One term of the hash of a search state; the terms of all unplaced bodies are added.
pub(super) fn state_hash(body: u32, least: i64, blocked: bool) -> u128 {
    const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
    let key = (u128::from(body) << 65) | (u128::from(blocked) << 64) | least as u64 as u128;
    let mixed = (key ^ 0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f).wrapping_mul(MULTIPLIER);
    let mixed = (mixed ^ (mixed >> 64)).wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 61)
}
