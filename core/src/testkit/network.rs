//! The steps of a model between forbidden bytes, each on what the steps before it have computed.

use super::field::{Bed, Finding, Guard, Memory};
use super::guarded::{guarded, run_alone};
use crate::arena::MAX_REGIONS;
use crate::blob::Model;
use crate::kernels::Backend;
use crate::kernels::table::{KernelId, Kernels};

/// The memory of a model, its inputs in place.
pub struct NetworkMemory<'m> {
    /// An arena for each region that the model has.
    pub regions: [&'m mut [u8]; MAX_REGIONS],
    /// Its state, which begins anew.
    pub state: &'m mut [u8],
    /// Room for a copy of all of them.
    pub saved: &'m mut [u8],
}

/// Is told a step's index and kernel before the step runs, and what came of it.
pub type StepFound<'e> = dyn FnMut((u32, KernelId), Option<Result<(), Finding>>) + 'e;

/// Runs every step of a model, those from `from` on with each operand in turn between forbidden bytes. `each` is told the step's index and kernel before it
/// runs, and what came of it.
pub fn guard_network<K: Kernels>(
    model: &Model<'_, K>,
    memory: NetworkMemory<'_>,
    from: u32,
    guard: &mut Guard<'_>,
    each: &mut StepFound<'_>,
) {
    model.state_init().reset(memory.state);
    let mut bed = NetworkBed {
        memory,
        weights: model.weights(),
    };
    for (index, record) in (0..).zip(model.steps()) {
        // Load has read all of them. An NPU's commands are no kernel of this core.
        let step = record.and_then(|(kernel, params)| Some((KernelId::from_u8(kernel)?, params)));
        let Some((kernel, params)) = step.filter(|(kernel, _)| kernel.backend() != Backend::EthosU) else {
            continue;
        };
        bed.save();
        if index >= from {
            each((index, kernel), None);
            let found = guarded(kernel, params, &mut bed, guard);
            each((index, kernel), found.or(Some(Err(Finding::Stopped))));
        }
        // Without it the next step has nothing to run on.
        if run_alone(kernel, params, bed.before()).is_none() {
            return;
        }
    }
}

struct NetworkBed<'m> {
    memory: NetworkMemory<'m>,
    weights: &'m [u8],
}

impl NetworkBed<'_> {
    /// Each part of the memory with its copy; copies that do not fit are cut short.
    fn each(&mut self, copy: fn(&mut [u8], &mut [u8])) {
        let NetworkMemory { regions, state, saved } = &mut self.memory;
        let mut rest = &mut **saved;
        for part in regions.iter_mut().chain([state]) {
            let len = part.len().min(rest.len());
            let (own, others) = rest.split_at_mut(len);
            copy(part.get_mut(..len).unwrap_or_default(), own);
            rest = others;
        }
    }

    fn save(&mut self) {
        self.each(|part, saved| saved.copy_from_slice(part));
    }
}

impl Bed for NetworkBed<'_> {
    fn before(&mut self) -> Memory<'_> {
        self.each(|part, saved| part.copy_from_slice(saved));
        let NetworkMemory { regions, state, .. } = &mut self.memory;
        Memory {
            regions: regions.each_mut().map(|region| &mut **region),
            state,
            weights: self.weights,
        }
    }
}
