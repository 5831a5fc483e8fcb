//! The memory of a board, by what its steps wrote.

use arenite::Slot;

use crate::model::ModelView;

/// A copy of a board's memory, built from what its steps wrote.
pub(super) struct Shadow {
    regions: Vec<(u8, Vec<u8>)>,
}

impl Shadow {
    pub(super) fn new(view: &ModelView<'_>) -> Self {
        let header = view.header();
        let arenas = header
            .arena
            .iter()
            .zip(0..)
            .map(|(&bytes, region)| (region, vec![0; bytes as usize]));
        let state = (Slot::STATE, view.state_init().bytes().collect());
        Self {
            regions: arenas.chain([state]).collect(),
        }
    }

    pub(super) fn write(&mut self, slot: Slot, bytes: &[u8]) {
        let memory = self.regions.iter_mut().find(|(region, _)| *region == slot.region);
        let place = memory.and_then(|(_, memory)| memory.get_mut(slot.offset as usize..)?.get_mut(..bytes.len()));
        if let Some(place) = place {
            place.copy_from_slice(bytes);
        }
    }

    pub(super) fn read(&self, slot: Slot, bytes: u32) -> Option<Vec<u8>> {
        let (_, memory) = self.regions.iter().find(|(region, _)| *region == slot.region)?;
        memory
            .get(slot.offset as usize..)?
            .get(..bytes as usize)
            .map(<[u8]>::to_vec)
    }
}
