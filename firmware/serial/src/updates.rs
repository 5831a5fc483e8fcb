//! Models that a board keeps.

use arenite::slots::{MappedFlash, Policy, SlotError, Slots, Update};
use arenite::{All, Kernels, Model};

use crate::memory;

/// Where updates go.
pub trait Updates<K: Kernels = All> {
    /// Why one is refused.
    type Error: core::fmt::Display;
    /// Whether there is a place for them.
    fn exist(&self) -> bool;
    /// Begins with a file of so many bytes.
    ///
    /// # Errors
    /// Errors of the place.
    fn begin(&mut self, length: u32) -> Result<(), Self::Error>;
    /// Its next bytes.
    ///
    /// # Errors
    /// Errors of the place.
    fn write(&mut self, piece: &[u8]) -> Result<(), Self::Error>;
    /// Checks the file, runs its self-test in `memory`, and uses it from now on, on trial. Gives the self-test's runs.
    ///
    /// # Errors
    /// Errors of the place.
    fn install(&mut self, memory: &mut [u8]) -> Result<u32, Self::Error>;
    /// Ends the trial: it works.
    ///
    /// # Errors
    /// Errors of the place.
    fn confirm(&mut self) -> Result<(), Self::Error>;
    /// The model in use.
    ///
    /// # Errors
    /// Errors of the place.
    fn model(&self) -> Result<Model<'_, K>, Self::Error>;
}

/// No place for updates: each is refused.
#[derive(Debug, Clone, Copy)]
pub struct NoSlots;

/// The words of [`NoSlots`].
const NONE: &str = "this board's program keeps no models in slots";

impl<K: Kernels> Updates<K> for NoSlots {
    type Error = &'static str;

    fn exist(&self) -> bool {
        false
    }

    fn begin(&mut self, _: u32) -> Result<(), Self::Error> {
        Err(NONE)
    }

    fn write(&mut self, _: &[u8]) -> Result<(), Self::Error> {
        Err(NONE)
    }

    fn install(&mut self, _: &mut [u8]) -> Result<u32, Self::Error> {
        Err(NONE)
    }

    fn confirm(&mut self) -> Result<(), Self::Error> {
        Err(NONE)
    }

    fn model(&self) -> Result<Model<'_, K>, Self::Error> {
        Err(NONE)
    }
}

/// Updates in [`Slots`].
#[derive(Debug)]
pub struct InSlots<F, P, K: Kernels = All> {
    slots: Slots<F, P, K>,
    update: Option<Update>,
}

impl<F, P, K: Kernels> InSlots<F, P, K> {
    /// In these.
    pub fn new(slots: Slots<F, P, K>) -> Self {
        Self { slots, update: None }
    }
}

impl<F: MappedFlash, P: Policy, K: Kernels + Copy> Updates<K> for InSlots<F, P, K> {
    type Error = SlotError;

    fn exist(&self) -> bool {
        true
    }

    fn begin(&mut self, length: u32) -> Result<(), SlotError> {
        self.update = None;
        self.update = Some(self.slots.begin(length)?);
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), SlotError> {
        let update = self.update.as_mut().ok_or(SlotError::Stale)?;
        self.slots.write(update, piece)
    }

    fn install(&mut self, memory: &mut [u8]) -> Result<u32, SlotError> {
        let update = self.update.take().ok_or(SlotError::Stale)?;
        let runs = self.slots.finish_after(update, |model| {
            // Without room the arenas are empty, which the self-test refuses by name.
            let (arenas, state) = memory::parts(model, memory).unwrap_or_default();
            model.self_test_with(arenas, state).map_err(SlotError::SelfTest)
        })?;
        self.slots.start()?;
        Ok(runs)
    }

    fn confirm(&mut self) -> Result<(), SlotError> {
        self.slots.confirm()
    }

    fn model(&self) -> Result<Model<'_, K>, SlotError> {
        self.slots.model()
    }
}
